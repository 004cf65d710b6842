"""Gradient descent in stages, each with less noise, until a test passes (theory C6).

A stage is a number of noisy gradient steps that together cost ρ; it goes on from where the last one ended, and its
model is the mean of the iterates of its second half. After each stage a noisy shortfall (how far the goal is missed)
is looked at, and once more, more closely, if it looks as if that would show that the goal is met. Then ρ grows.

*Released*: noisy sums of gradients and noisy shortfalls. *Neighbours*: one row replaced. *Theorem (privacy)*: every
step books its Rényi curve (`expost.mechanisms.descent`, `expost.stopping.gaussian_value`) and is taken only if the sum
with it is within the budget (`expost.privacy.renyi`: the account is a filter, and the release states it at δ, ex post).
*Theorem (accuracy)*: look j at the model of stage i passes wrongly with probability at most γ_{ij}, settled before the
run, ΣΣ γ_{ij} ≤ γ; so a model that misses the goal is released with probability at most γ, however many stages there
are. Everything else (step sizes, how ρ grows, when to look again) reads public and released numbers only, and nothing
has to be right about it for either theorem. The constants were looked at on Adult and Diamonds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from expost.erm.clipped_gradient import SLOPE_ONE, ClippedGradients, SlopeTable
from expost.erm.geometry import Geometry
from expost.erm.losses import Loss
from expost.erm.measures import Judge, to_grid
from expost.erm.problem import Problem
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.mechanisms.descent import GradientDescent, GradientNoise, noisy_sum
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.release import Release
from expost.privacy.renyi import NOTHING, Curve, room
from expost.privacy.renyi_account import RenyiAccount
from expost.privacy.unit import ROW, Unit, tried
from expost.search.methods import METHODS
from expost.search.request import Request
from expost.stopping.gaussian_value import GaussianValue
from expost.stopping.looks import Looks
from expost.tails.discrete_gaussian import deviations

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pace:
    """How the descent goes; public, and any values are sound.

    Attributes
    ----------
    start
        The first stage's noise on a mean gradient, averaged over the stage, is at most 1/start in units of the table.
    clear
        Its first look can show a shortfall of this part of what the goal calls large.
    growth
        From one stage's ρ to the next one's.
    steps
        Of a stage.
    momentum
        Part of a step that is taken again.
    length
        Step size, times the loss's largest curvature: short, for noise adds up along directions that are nearly flat.
    test_part
        ρ of a first look, as a part of the stage's.
    again
        ρ of a second look, as a multiple of the first one's.
    kept, first
        Part of γ left after each stage, and part of a stage's for its first look.
    """

    start: float = 16.0
    clear: float = 0.8
    growth: float = 1.6
    steps: int = 64
    momentum: float = 0.9
    length: float = 0.5
    test_part: float = 0.3
    again: float = 3.0
    kept: float = 0.6
    first: float = 0.5

    @classmethod
    def of(cls, loss: Loss, goal: TestedGoal | None = None) -> Pace:
        """Return the pace for a loss and a goal: regression takes more and longer steps, mean squares closer looks."""
        part = 0.3 if goal is None else min(1.0, 2.0 * goal.chain().test_part)
        return cls(test_part=part) if loss.labels == "binary" else cls(steps=96, length=2.0, test_part=part)


_LEAST_GAIN = 1.2  # what is left of the budget is spent on a last stage if its ρ is that many times the last one's
_MOST_STAGES = 40  # ρ has grown by 10⁸ by then
_HOPELESS = 0.25  # a first stage with noise this many times below where it should be is in vain


def first_rho(loss: Loss, geometry: Geometry, n: int, pace: Pace, unit: Unit = ROW) -> float:
    """Return ρ of a first stage whose noise leaves something to be seen."""
    largest = unit.rows * SlopeTable.of(loss).largest
    noise = 2.0 * largest / SLOPE_ONE * GradientNoise(geometry, largest, 1.0).shape
    return 0.5 * (noise * pace.start * geometry.scale / n) ** 2


@dataclass(frozen=True)
class DescentPlan:
    """Where the descent starts and how it goes on; public.

    Attributes
    ----------
    goal, loss
        What is searched for, and what is minimised for it.
    geometry, n
        The rows' shape and number.
    failure_probability, budget, delta
        γ; what no outcome may exceed, for one row replaced (k times that for a person with k rows); δ.
    pace
        How it goes.
    unit
        What neighbours differ in. k rows replaced together move a sum of gradients, and a shortfall, by k times what
        one does, so all that follows from ρ is for the unit.
    """

    goal: TestedGoal
    loss: Loss
    geometry: Geometry
    n: int
    failure_probability: float
    budget: float
    delta: float
    pace: Pace
    unit: Unit = ROW

    gaussian: ClassVar[bool] = True  # what it books

    @classmethod
    def of(
        cls,
        goal: TestedGoal,
        loss: Loss,
        geometry: Geometry,
        n: int,
        failure_probability: float,
        budget: float,
        delta: float,
        unit: Unit = ROW,
    ) -> DescentPlan:
        """Settle it, or say that no data set of this size could meet the goal within the budget."""
        plan = cls(goal, loss, geometry, n, failure_probability, budget, delta, Pace.of(loss, goal), unit)
        plan._require_possible()
        return plan

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget, at δ."""
        return self.budget

    @property
    def start(self) -> float:
        """ρ of the first stage: a stage of noise alone, or a look that could show nothing, is not worth paying for."""
        return max(self._least_stage, self._least_look / self.pace.test_part)

    @property
    def sensitivity(self) -> float:
        """How far the unit can move a shortfall."""
        return self.unit.rows * self.goal.shortfall_sensitivity(self.n) * (1.0 + 1e-15)

    @property
    def _least_stage(self) -> float:
        return first_rho(self.loss, self.geometry, self.n, self.pace, self.unit)

    @property
    def _least_look(self) -> float:
        """ρ of a first look whose margin is ``clear`` of a large shortfall."""
        pace = self.pace
        margin = deviations(pace.first * (1.0 - pace.kept) * self.failure_probability)
        large = pace.clear * self.goal.chain().steer
        return 0.5 * (margin * self.sensitivity / large) ** 2

    def _require_possible(self) -> None:
        """Refuse a goal that not even a perfect model could be shown to meet."""
        pace, unit = self.pace, self.unit
        budget = unit.charge(self.budget)
        all_of_it = room(NOTHING, budget, self.delta) / (1.0 + pace.test_part)
        needed = max(_HOPELESS**2 * self._least_stage, self._least_look * pace.clear**2 / pace.test_part)
        if needed > all_of_it:
            enough = math.ceil(self.n / unit.rows * math.sqrt(needed / max(all_of_it, 1e-300)) * 1.1)
            raise TargetUnreachable(
                f"at {unit.count(self.n)} no model could be shown to meet the goal for max_epsilon = {budget:.4g} at "
                f"delta = {self.delta:g}, whatever the data: the noise that hides one {unit.noun} would drown it. Pass "
                f"a larger max_epsilon, or fewer columns or categories. {tried(enough, unit)}. Nothing was spent."
            )

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Go from stage to stage until a test passes or the budget is used up."""
        assert isinstance(account, RenyiAccount)
        walk = Walk(self.loss, self.geometry, generator.gradients, self.pace, self.unit)
        return StagedSearch(self, walk, generator.judge, account, source).run()

    @property
    def each(self) -> str:
        """What a stage is, for people."""
        return f"gradient descent under Gaussian noise: {{}} stage(s) of {self.pace.steps} steps"


def descent_request(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
) -> Request:
    """Return the request for a goal in people's units under approximate privacy; it promises nothing about a λ."""
    problem = Problem.of(goal.chain().loss, n=n, p=geometry.columns, regularization=1.0)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        GradientDescent(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
        delta=delta,
    )


class Walk:
    """Where the descent is; everything in it was released."""

    def __init__(
        self, loss: Loss, geometry: Geometry, gradients: ClippedGradients, pace: Pace, unit: Unit = ROW
    ) -> None:
        self._geometry, self._gradients, self._pace = geometry, gradients, pace
        self._largest = unit.rows * SlopeTable.of(loss).largest
        self._size = pace.length / loss.curvature / gradients.n
        self.theta, self._velocity = np.zeros(gradients.p), np.zeros(gradients.p)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Take a stage's steps, which cost ρ together; return the mean of the later iterates, on a public grid."""
        pace = self._pace
        noise = GradientNoise(self._geometry, self._largest, rho / pace.steps).draws(pace.steps, source)
        later = np.zeros_like(self.theta)
        for step in range(pace.steps):
            gradient = noisy_sum(self._gradients.total(self.theta), noise[step])
            self._velocity = pace.momentum * self._velocity - self._size * gradient
            self.theta = self.theta + self._velocity
            if 2 * step >= pace.steps:
                later += self.theta
        model = later / (pace.steps // 2)
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")


class Staged(Protocol):
    """What goes from stage to stage."""

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Release what costs ρ; return the model of all that was released so far, on a public grid."""
        ...


class StagedSearch:
    """One run: stages, and looks at their models."""

    def __init__(
        self, plan: DescentPlan, walk: Staged, judge: Judge, account: RenyiAccount, source: WordSource
    ) -> None:
        self.plan, self.walk, self.judge, self.account, self.source = plan, walk, judge, account, source
        self.looks = Looks(account, source, plan.pace.again, plan.pace.first)
        self.stages = 0

    def run(self) -> Release:
        """Go from stage to stage until a look passes or the budget is used up."""
        pace, rho, last = self.plan.pace, self.plan.start, 0.0
        while True:
            if not self.account.fits(Curve.gaussian(rho * (1.0 + pace.test_part))):
                rho = self.account.room * (1.0 - 1e-9) / (1.0 + pace.test_part)
                if rho < _LEAST_GAIN * last or rho <= 0.0:
                    return self._refused("the next stage would exceed the budget")
            if self.stages == _MOST_STAGES:
                return self._refused(f"no model of {self.stages} stages was good enough")
            self.account.book("generation", Curve.gaussian(rho))
            model = self.walk.stage(rho, self.source)
            self.stages += 1
            if self._passes(model, pace.test_part * rho):
                return self._released(model)
            last, rho = rho, rho * pace.growth

    def _passes(self, model: Floats, rho: float) -> bool:
        """Look at a model, and once more if that looks promising."""
        plan, pace, goal = self.plan, self.plan.pace, self.plan.goal
        gamma = plan.failure_probability * (1.0 - pace.kept) * pace.kept ** (self.stages - 1)
        error = goal.shortfall_error(plan.n, model.size, model)
        value = GaussianValue.of(plan.sensitivity, error)
        return self.looks.pass_at(value, goal.shortfall(self.judge, model), rho, gamma)

    def _reason(self) -> str:
        return (
            f"{self.plan.each.format(self.stages)}, each with less noise than the last, and {self.looks.count} look(s)"
        )

    def _released(self, theta: Floats) -> Release:
        self.account.reasons.append(self._reason())
        return self.account.released(theta, level=self.stages - 1)

    def _refused(self, reason: str) -> Release:
        self.account.reasons += [self._reason(), reason]
        return self.account.refused()
