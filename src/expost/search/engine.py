"""The one loop of searches in levels: draw a model if that can be afforded, test it, stop if it passes, else go on.

A level (a stage) releases something that costs a curve and makes a model of it, or of all that was released so far.
After each a noisy shortfall (how far the goal is missed) is released, sometimes twice. The engine knows no mechanism:
what a level costs and how it is drawn is a :class:`Staged`'s affair, in each mechanism's folder: pure and Gaussian
chains of perturbed objectives (`expost.mechanisms.objective.chain`), gradient descent, second moments.

*Released*: what levels release, and noisy shortfalls. *Neighbours*: one row replaced, or k of one person. *Theorem
(privacy)*: every step books its curve (`expost.search.noisy_test`, and where levels are made) and is taken only if the
sum with it is within the budget (`account.composition`: the account is a filter, and the release states it ex post).
*Theorem (accuracy)*: test j at the model of level i passes wrongly with probability at most γ_{ij}, settled before the
run, ΣΣ γ_{ij} ≤ γ; so a model that misses the goal is released with probability at most γ, however many levels there
are. Everything else (step sizes, how costs grow, when to test again, when to give up) reads public and released numbers
only, and nothing has to be right about it for either theorem. The constants were looked at on Adult and Diamonds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from expost.account.account import Account
from expost.account.composition import LEAST, NOTHING, ROW, Clock, Curve, Unit, room, tried
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal, lowered
from expost.goals.measure import Judge
from expost.mechanisms.mechanism import Mechanism, NoiseKind
from expost.noise.gaussian import deviations
from expost.noise.source import WordSource
from expost.release.release import Release
from expost.search import noisy_test
from expost.search.noisy_test import GaussianTest, GradualTest
from expost.shown import down
from expost.solve.losses import Loss
from expost.solve.problem import Problem
from expost.table.shape import Geometry, gaussian_size

#: Looks below this part of a model's ρ cost less with Gaussian noise: 5.7(√(1 + part) − 1) against 1.6√part, the factor
#: for δ of the one and the quotient of both margins.
_SMALL = 0.35


@dataclass(frozen=True)
class Schedule:
    """How levels and tests go, the constants of a search in one place; public, and any values are sound.

    Attributes
    ----------
    start, lowest
        The first stage's noise on a mean gradient, averaged over the stage, is at most 1/start in units of the table;
        where that would be dear, more, down to this part of ``start``.
    lower
        The part of its usual ``start`` that the first stage has.
    clear
        A first look can show a shortfall of this part of what the goal calls large.
    growth, fastest
        From one stage's ρ to the next one's; where stages gather, of all of them together. Pure chains let the noisy
        shortfall say how far: by no less than ``growth`` and no more than ``fastest``.
    gain
        What is left of the budget is spent on a last stage if it costs that many times what the last one did.
    gathers
        Whether a model is made of all that was paid for so far, or of its own stage alone.
    pure_tests
        Whether looks have Laplace noise. Gaussian looks add up in squares with what models cost, which is less where
        looks are small beside models; Laplace noise needs no factor for δ, and can be taken away step by step.
    test_part
        Of a first look, as a part of what the model cost: of its ρ, or under Laplace noise of its ε at δ.
    levels
        How many levels a look under Laplace noise may have.
    again
        A second look's, as a multiple of the first one's; under Gaussian noise.
    kept, first
        Part of γ left after each stage, and part of a stage's for its first look under Gaussian noise.
    reach
        For perturbed objectives: R, a guess of how far models are apart in units of the table; where noise on a mean
        gradient is 1/x, λ = 1/(xR).
    step, length, settled
        For descents: a step's noise on a mean gradient is 1/step in units of the table, and its size length over the
        loss's largest curvature and the mean square of rows' lengths; after as many steps as ``settled`` the k-th is
        √(settled/k) times as long.
    """

    start: float = 16.0
    lowest: float = 1.0
    lower: float = 1.0
    clear: float = 0.8
    growth: float = 1.6
    fastest: float = 4.0
    gain: float = 1.2
    gathers: bool = True
    pure_tests: bool = False
    test_part: float = 0.3
    levels: int = 3
    again: float = 3.0
    kept: float = 0.6
    first: float = 0.5
    reach: float = 5.0
    step: float = 2.8
    length: float = 0.6
    settled: float = math.inf

    def from_start(self, epsilon: float) -> Schedule:
        """Return the schedule where a first stage would cost ε: with more noise if that is dear, in as many steps."""
        part = lowered(epsilon, self.lowest)
        return replace(self, start=part * self.start, step=part * self.step, lowest=1.0, lower=part)

    @classmethod
    def of(cls, goal: TestedGoal | None, **fields: Any) -> Schedule:
        """Return a schedule with looks that suit a goal: closer ones, and fewer, where looks are dear beside models."""
        part = 0.3 if goal is None else 2.0 * goal.chain().test_part
        if part <= _SMALL:
            return cls(**{"test_part": part, **fields})
        looks = {"pure_tests": True, "test_part": 0.225 * part, "levels": 4, "kept": 0.2, "clear": 0.7, "growth": 2.2}
        return cls(**{**looks, **fields})


Floats = NDArray[np.float64]

_MOST_STAGES = 40  # ρ has grown by 10⁸ by then
USUALLY = 2.0  # searches usually end with noise about that many times below where they start
_AFTER = 1.0 + 1e-7  # sums are rounded up
_CLEARER = 1.3  # a later look under Laplace noise can show a shortfall this many times smaller than the last could
_BESIDE_LABELS, _BESIDE_SQUARES = 0.3, 3.0  # ρ of a look under Gaussian noise, as a part of a model's
HOPELESS = 0.25  # a first level this many times below where it should be is noise


class Staged(Protocol):
    """What goes from stage to stage."""

    def cost(self, rho: float) -> Curve:
        """Return what a stage with that ρ costs; public."""
        ...

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Release what costs that; return the model of all that was released so far, on a public grid."""
        ...


class StagedMechanism(Mechanism):
    """A mechanism that levels alone are made by: it has no utility theorem, and no certificate of one release."""

    instead: ClassVar[str]  # said to whoever asks for one

    @classmethod
    def of(cls, *, noise: str, full_matrix: bool) -> Mechanism:
        """Refuse: the shape of the rows has to be known."""
        raise ValueError(f"{cls.name} is made from the shape of the rows: {cls.__name__}(geometry)")

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> NoReturn:
        """Refuse: no utility theorem is used."""
        raise ValueError(self.instead)

    gradient_epsilon = theory_epsilon

    def certificate(self, request: Any, excess_risk: float, *, automatic: bool) -> NoReturn:
        """Refuse likewise."""
        raise ValueError(self.instead)


@dataclass(frozen=True)
class StagedPlan(ABC):
    """Where the search starts and how it goes on; public.

    Attributes
    ----------
    goal, loss
        What is searched for, and what is minimised for it.
    geometry, n
        The rows' shape and number.
    failure_probability, budget, delta
        γ; what no outcome may exceed, for one row replaced (k times that for a person with k rows); δ.
    schedule
        How it goes.
    unit
        What neighbours differ in. k rows replaced together move a sum of gradients, and a shortfall, by k times what
        one does, so all that follows from ρ is for the unit.
    reason
        Why this way was chosen, where there was a choice.
    """

    goal: TestedGoal
    loss: Loss
    geometry: Geometry
    n: int
    failure_probability: float
    budget: float
    delta: float
    schedule: Schedule
    unit: Unit = ROW
    reason: str = ""

    #: What was done in how many stages, for people; and whether the noise on models is exact.
    each: ClassVar[str]
    noise: ClassVar[NoiseKind] = "exact"
    gaussian: ClassVar[bool] = True  # what it books, and only as far as its account lets it
    timed: ClassVar[bool] = False  # whether a clock states what it costs: models are Gaussian releases, looks are pure

    @classmethod
    def settled(
        cls,
        goal: TestedGoal,
        loss: Loss,
        geometry: Geometry,
        n: int,
        failure_probability: float,
        budget: float,
        delta: float = 0.0,
        unit: Unit = ROW,
        reason: str = "",
    ) -> Self:
        """Settle it, whether or not the goal can be met."""
        schedule = cls.schedule_for(loss, goal, geometry, n, delta, unit)
        return cls(goal, loss, geometry, n, failure_probability, budget, delta, schedule, unit, reason)

    @classmethod
    def of(cls, *given: Any, **more: Any) -> Self:
        """Settle it, or say that no data set of this size could meet the goal within the budget."""
        plan = cls.settled(*given, **more)
        plan.require_possible()
        return plan

    @classmethod
    def serves(cls, loss: Loss) -> bool:
        """Whether models are made for goals that a loss is minimised for; ways that are not are taken by name alone."""
        return True

    @classmethod
    def schedule_for(
        cls, loss: Loss, goal: TestedGoal | None, geometry: Geometry, n: int, delta: float, unit: Unit = ROW
    ) -> Schedule:
        """Return the schedule for a table of that size as well."""
        schedule = cls.usual_schedule(loss, goal)
        first = rho_at(schedule.start * geometry.scale, cls.noise_of(loss, geometry), n, unit)
        return schedule.from_start(Curve.gaussian(first).epsilon(delta))

    @classmethod
    def noise_of(cls, loss: Loss, geometry: Geometry) -> float:
        """Return half of the root mean square of noise on a sum of gradients that a row moves by one deviation."""
        return loss.lipschitz(math.inf) * gaussian_size(geometry)

    @classmethod
    @abstractmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal."""

    @abstractmethod
    def walk(self, generator: Any) -> tuple[Staged, Judge]:
        """Return what goes from stage to stage, and what goals are measured on; private."""

    def cost(self, rho: float) -> Curve:
        """Return what a first stage costs."""
        return Curve.gaussian(rho)

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget, at δ."""
        return self.budget

    def look(self, rho: float, stage: int = 1) -> Curve:
        """Return what a first look costs at a model of a stage that cost ρ in all."""
        if self.schedule.pure_tests:
            return Curve.ex_post(self.look_epsilon(rho, stage))
        return Curve.gaussian(self.schedule.test_part * rho)

    def look_epsilon(self, rho: float, stage: int = 1) -> float:
        """Return ε of such a look under Laplace noise: a part of about what the model cost at δ, if that is clear."""
        part = self.schedule.test_part * (rho + 2.0 * math.sqrt(-rho * math.log(self.delta)))
        clear = noisy_test.laplace_deviations(self.gamma(stage), self.schedule.levels) * self._precise
        return max(part, clear * _CLEARER ** (stage - 1))

    def gamma(self, stage: int) -> float:
        """Return the part of γ for looks at a stage's model."""
        return self.failure_probability * (1.0 - self.schedule.kept) * self.schedule.kept ** (stage - 1)

    @property
    def start(self) -> float:
        """ρ of the first stage: a stage of noise alone, or a look that could show nothing, is not worth paying for."""
        return max(self.least_stage, self._clear_stage)

    @property
    def usually(self) -> float:
        """How many times less noise searches usually end with than a first stage has."""
        return USUALLY

    @property
    def predicted(self) -> float:
        """What it would cost, at δ, to get as far as searches usually have to: what ways are compared by."""
        rho = max((self.usually / self.schedule.lower) ** 2 * self.least_stage, self.start)
        curve = self.cost(rho) + self.look(rho)
        while not self.schedule.gathers and rho / self.schedule.growth >= self.start:
            rho /= self.schedule.growth
            curve = curve + self.cost(rho) + self.look(rho)
        return curve.epsilon(self.delta)

    @property
    def sensitivity(self) -> float:
        """How far the unit can move a shortfall."""
        return self.unit.rows * self.goal.shortfall_sensitivity(self.n) * (1.0 + 1e-15)

    @property
    def least_stage(self) -> float:
        """ρ of a stage whose noise leaves something to be seen."""
        noise = self.noise_of(self.loss, self.geometry)
        return rho_at(self.schedule.start * self.geometry.scale, noise, self.n, self.unit)

    @property
    def _precise(self) -> float:
        """What a look would cost if its noise were as large as its margin may be."""
        return self.sensitivity / (self.schedule.clear * self.goal.chain().steer)

    @cached_property
    def _clear_stage(self) -> float:
        """ρ of a stage whose first look under Gaussian noise has such a margin."""
        schedule = self.schedule
        if schedule.pure_tests:
            return 0.0
        return 0.5 * (deviations(schedule.first * self.gamma(1)) * self._precise) ** 2 / schedule.test_part

    def missing(self) -> float:
        """Return how many times the rows it would take so that a perfect model could be shown to do; zero if it can."""
        needed = max(HOPELESS**2 * self.least_stage, self._clear_stage * self.schedule.clear**2)
        whole = Account("", self.budget, False, unit=self.unit, delta=self.delta)
        if whole.fits(self.cost(needed) + self.look(needed)):
            return 0.0
        return math.sqrt(needed / max(largest_stage(whole, self.cost, self.look), 1e-300))

    def require_possible(self) -> None:
        """Refuse a goal that not even a perfect model could be shown to meet."""
        if times := self.missing():
            unit, at = self.unit, f" at delta = {self.delta:g}" if self.delta else ""
            raise TargetUnreachable(
                f"at {unit.count(self.n)} no model could be shown to meet the goal for max_epsilon = "
                f"{down(unit.charge(self.budget))}{at}, whatever the data: the noise that hides one {unit.noun} would "
                f"drown it. Pass a larger max_epsilon, or fewer columns or categories. "
                f"{tried(math.ceil(self.n / unit.rows * times * 1.1), unit)}. Nothing was spent."
            )

    def clock(self) -> Clock:
        """Return the sums of ρ at which the search may end: after each stage."""
        most = room(NOTHING, self.unit.worst_case(self.budget), self.delta)
        times, stage = [most], self.start
        while stage <= most and len(times) <= _MOST_STAGES:
            times.append(stage * _AFTER)
            stage *= self.schedule.growth
        # what is left of the budget may be enough for a part of a stage; times after all others take no share of theirs
        last = max((time for time in times[1:] if time < most), default=most)
        while last < most:
            last *= 1.2
            times.append(min(last, most))
        return Clock.of(times)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Go from stage to stage until a test passes or the budget is used up."""
        if account.one_curve or account.shared is not None:  # what others count on adds up in squares
            return self._in_squares().run_of(generator, account, source).run()
        account.clock = self.clock() if self.timed and self.delta >= LEAST else None
        return self.run_of(generator, account, source).run()

    def run_of(self, generator: Any, account: Account, source: WordSource) -> StagedSearch:
        """Return the run, before its first stage."""
        return StagedSearch(self, *self.walk(generator), account, source)

    def _in_squares(self) -> Self:
        """Return the plan with looks under Gaussian noise: dearer by themselves, and within one curve with models."""
        if not (self.timed and self.schedule.pure_tests):
            return self
        part = _BESIDE_LABELS if self.loss.labels == "binary" else _BESIDE_SQUARES
        return replace(self, schedule=replace(self.schedule, pure_tests=False, test_part=part, kept=0.6, growth=1.6))


def rho_at(level: float, noise: float, n: int, unit: Unit = ROW) -> float:
    """Return the ρ at which noise on a mean gradient is typically 1/level; ``noise`` is what a plan's `noise_of` is."""
    return 0.5 * (2.0 * unit.rows * noise * level / n) ** 2


def level_at(rho: float, noise: float, n: int, unit: Unit = ROW) -> float:
    """Return the level at which that is ρ."""
    return math.sqrt(2.0 * rho) * n / (2.0 * unit.rows * noise)


def largest_stage(
    account: Account, cost: Callable[[float], Curve], look: Callable[[float], Curve], before: float = 0.0
) -> float:
    """Return the largest ρ of a stage that may still be taken with its look; zero if none may.

    ``before`` is what the model was paid before the stage.
    """
    low, high = 0.0, account.room
    for _ in range(30):
        middle = 0.5 * (low + high)
        fits = middle > 0.0 and account.fits(cost(middle) + look(before + middle))
        low, high = (middle, high) if fits else (low, middle)
    return low


class StagedSearch:
    """One run: stages, and tests of their models."""

    plan: Any

    def __init__(self, plan: Any, walk: Staged, judge: Judge, account: Account, source: WordSource) -> None:
        self.plan, self.walk, self.judge, self.account, self.source = plan, walk, judge, account, source
        self.tests: Any = self._tests(plan.schedule)
        self.stages = 0
        self.paid = 0.0  # for the last model: by all stages where they gather

    def _tests(self, schedule: Schedule) -> Any:
        if schedule.pure_tests:
            return GradualTest(self.account, self.source, schedule.levels)
        return GaussianTest(self.account, self.source, schedule.again, schedule.first)

    def run(self) -> Release:
        """Go from stage to stage until a test passes, or there is a reason not to go on."""
        level = self.plan.start
        while True:
            level, why_not = self._affordable(level)
            if why_not:
                return self._refused(why_not)
            self.account.book("generation", self.walk.cost(level))
            model = self.walk.stage(level, self.source)
            self.stages, self.paid = self.stages + 1, self._before + level
            if self._passes(model, self.paid):
                return self._released(model)
            level = self._next(level)

    def _affordable(self, rho: float) -> tuple[float, str]:
        """Return the stage, or the largest that may still be taken with its test, and why it is not if it is not."""
        before = self._before
        look = partial(self.plan.look, stage=self.stages + 1)
        if not self.account.fits(self.walk.cost(rho) + look(before + rho)):
            rho = largest_stage(self.account, self.walk.cost, look, before)
            if before + rho < self.plan.schedule.gain * self.paid or rho <= 0.0:
                return rho, "the next stage would exceed the budget"
        return rho, f"no model of {self.stages} stages was good enough" if self.stages == _MOST_STAGES else ""

    @property
    def _before(self) -> float:
        return self.paid if self.plan.schedule.gathers else 0.0

    def _passes(self, model: Floats, rho: float) -> bool:
        """Test a model that cost ρ, and once more if that looks promising."""
        plan, goal = self.plan, self.plan.goal
        truth, error = goal.shortfall(self.judge, model), goal.shortfall_error(plan.n, model.size, model)
        cost = plan.look_epsilon(rho, self.stages) if plan.schedule.pure_tests else plan.schedule.test_part * rho
        return bool(self.tests.pass_at(truth, plan.sensitivity, error, cost, plan.gamma(self.stages)))

    def _next(self, rho: float) -> float:
        """Return the next stage."""
        growth: float = self.plan.schedule.growth
        return self.paid * (growth - 1.0) if self.plan.schedule.gathers else self.paid * growth

    def _said(self) -> list[str]:
        each = self.plan.each.format(stages=self.stages)
        looks = f"{each}, each with less noise than the last, and {self.tests.count} look(s)"
        return [*([self.plan.reason] if self.plan.reason else []), looks]

    def _released(self, theta: Floats) -> Release:
        self.account.reasons += self._said()
        return self.account.released(theta, **self._details(theta))

    def _refused(self, reason: str) -> Release:
        self.account.reasons += [*self._said(), reason]
        return self.account.refused(**self._details(None))

    def _details(self, theta: Floats | None) -> dict[str, Any]:
        """Return what a release of that model says beside, or a refusal."""
        if theta is None:
            return {"noise": self.plan.noise, "parameters": self.plan.goal.shown(self.tests.shown)}
        return {"level": self.stages - 1, "noise": self.plan.noise}
