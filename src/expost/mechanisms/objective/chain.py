"""A chain of releases: models with less and less noise and less and less shrinkage, each tested, until one will do.

For goals in people's units (an error rate, R²), which promise nothing about a λ. A level is one number x, the inverse
of the typical noise on a mean gradient; noise and shrinkage follow from it (theory C5): ε′ = 2κNx/n for rows of shape
N, λ = 1/(xR). The first level is centred at zero, each further one at the last model released: θ₀ is public by then, so
objective perturbation costs the same, and what was learned is not shrunk away again.

*Released*: models, and after each a noisy shortfall (how far the goal is missed), sometimes twice. *Neighbours*: one
row replaced. *Theorem (privacy)*: adaptive composition; every cost is a function of what was released before. *Theorem
(accuracy)*: the k-th test asked fails with probability at most γ_k = γ(1 − q)q^{k−1}; Σ γ_k ≤ γ however many are asked.
So but for γ every noisy shortfall with its margin is a bound, and a refusal states the least for nothing (theory D3).
Everything else, λ, the steps from level to level and when to give up among it, is choice: it reads released numbers
only, and nothing has to be right about it for either theorem.

*Giving up*: where the budget leaves two doublings or fewer, a search whose shortfall is more than twice the better of
its last two improvements, noise taken into account, refuses instead of spending the rest on what it will not reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.account.unit import ROW, Unit, tried
from expost.exceptions import TargetUnreachable
from expost.goals.goal import ChainSettings, TestedGoal, lowered
from expost.mechanisms.objective.mechanism import ObjectiveGenerator, ObjectivePerturbation, Shot
from expost.noise.source import WordSource
from expost.passes.blocks import to_grid
from expost.release.release import Release
from expost.search import METHODS
from expost.search.noisy_test import ValueTest
from expost.search.request import Request
from expost.shown import down
from expost.solve.perturbed import STEEPEST
from expost.solve.problem import Problem
from expost.table.shape import Geometry

_KEPT = 0.6  # q: what is left of γ after each test
_FLOOR = 0.8  # the best model is taken to miss nothing beyond this part of ``steer``
_LEAST, _MOST = 2.0, 4.0  # from one level to the next
_RETEST = 0.6  # a second look at the same model may cost this part of the next level
_SURELY = 2.0  # a second look is calibrated to fail with probability e^−2 if the first was right
_NOTHING = 1e-30  # x where nothing can be afforded: its cost is above what is left, and no number is zero
_HOPELESS = 0.25  # a first level this far below where it should be is noise
_WIDE = 3.0  # in scales of the noise: how far a released shortfall may be off
_DOUBLINGS = 2  # a search may give up where no more of them are left
_FURTHER = 0.1  # the chance that noise moved the released parameters further than is stated
_WORTH = 1.3  # what is left of the budget is spent on a last level if it is that many times the last one


@dataclass(frozen=True)
class ChainPlan:
    """Where the chain starts and how it goes on; public.

    Attributes
    ----------
    goal, settings
        What is searched for, and what it asks of the chain.
    geometry, n
        The rows' shape and number.
    failure_probability, budget
        γ, and what no outcome may exceed.
    unit
        What neighbours differ in, for messages: everything here is for one row replaced.
    """

    goal: TestedGoal
    settings: ChainSettings
    geometry: Geometry
    n: int
    failure_probability: float
    budget: float
    unit: Unit = ROW

    @classmethod
    def of(
        cls, goal: TestedGoal, geometry: Geometry, n: int, failure_probability: float, budget: float, unit: Unit = ROW
    ) -> ChainPlan:
        """Settle it, or say that no data set of this size could meet the goal within the budget."""
        plan = cls(goal, goal.chain(), geometry, n, failure_probability, budget, unit)
        plan.require_possible()
        return plan

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget."""
        return self.budget

    def shot(self, x: float, center_norm: float = 0.0) -> Shot:
        """Return the release of a level."""
        loss = self.settings.loss
        noise = 2.0 * loss.lipschitz(math.inf) * self.geometry.noise * x / self.n
        lam = max(1.0 / (x * self.settings.reach * self.geometry.scale), 2.0 * loss.curvature / STEEPEST)
        return Shot(loss, self.geometry, self.n, noise, lam, center_norm)

    @cached_property
    def start(self) -> float:
        """x of the first level, or the largest that the budget allows."""
        return min(self.usual_start, self._affordable(self.budget, 0.0))

    @property
    def usual_start(self) -> float:
        """x of the first level where the budget allows it."""
        usual = self.settings.start * self.geometry.scale
        return usual * lowered(self.shot(usual).epsilon, self.settings.lowest)

    def _affordable(self, left: float, center_norm: float) -> float:
        """Return the largest x whose model and test cost no more than what is left; next to nothing if none does."""
        room = left * (1 - 1e-9) / (1 + self.settings.test_part)
        low, high = 0.0, self.n / self.geometry.noise * room / self.settings.loss.lipschitz(math.inf)
        high = max(high, _NOTHING)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.shot(middle, center_norm).epsilon <= room else (low, middle)
        return max(low, _NOTHING)

    def require_possible(self) -> None:
        """Refuse a goal that not even a perfect model could be shown to meet."""
        part = self.settings.test_part / (1 + self.settings.test_part)
        test = ValueTest.of(self.goal.shortfall_sensitivity(self.n), 0.0, self.budget * part)
        needed = test.margin((1 - _KEPT) * self.failure_probability, 0.0)
        hopeless = self.start < _HOPELESS * self.settings.start * self.geometry.scale
        if needed > self.settings.steer or hopeless:
            wanted = self.shot(_HOPELESS * self.settings.start * self.geometry.scale).epsilon * (
                1 + self.settings.test_part
            )
            unit = self.unit
            enough = math.ceil(self.n / unit.rows * max(needed / self.settings.steer, wanted / self.budget) * 1.1)
            raise TargetUnreachable(
                f"at {unit.count(self.n)} no model could be shown to meet the goal for max_epsilon = "
                f"{down(unit.charge(self.budget))}, whatever the data: the noise that hides one {unit.noun} would "
                f"drown it. Pass a larger max_epsilon, or fewer columns or categories. {tried(enough, unit)}. Nothing "
                f"was spent."
            )

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Go from level to level until a test passes or the budget is used up."""
        return _Chain(self, generator, account, source).run()


def chain_request(
    goal: TestedGoal, geometry: Geometry, n: int, failure_probability: float, budget: float, unit: Unit = ROW
) -> Request:
    """Return the request for a goal in people's units, for n rows of a shape; nobody states a λ.

    The problem names the loss that the goal asks for and the λ of the first level; later levels have their own.
    """
    start = ChainPlan(goal, goal.chain(), geometry, n, 0.1, budget)
    lam = min(start.shot(start.start).lam, 1e15)
    problem = Problem.of(start.settings.loss, n=n, p=geometry.columns, regularization=lam)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        ObjectivePerturbation(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
    )


class _Chain:
    """One run: the last model, the tests asked so far, the account."""

    def __init__(self, plan: ChainPlan, generator: ObjectiveGenerator, account: Account, source: WordSource) -> None:
        self.plan, self.account, self.source = plan, account, source
        self.generator = generator
        self.judge = generator.rows.passes
        self.theta = np.zeros(generator.problem.p)
        self.asked, self.levels, self.moved = 0, 0, 0.0
        self.shown = math.inf  # the least bound on a shortfall that tests have shown
        self.shortfalls: list[tuple[float, float]] = []  # of each level, with the scale of their noise

    def run(self) -> Release:
        plan, x, last = self.plan, self.plan.start, 0.0
        while True:
            shot = plan.shot(x, float(np.linalg.norm(self.theta)))
            test = plan.settings.test_part * shot.epsilon
            if self.account.after(shot.epsilon, test) > plan.budget:
                x = plan._affordable(plan.budget - self.account.total, float(np.linalg.norm(self.theta)))
                shot = plan.shot(x, float(np.linalg.norm(self.theta)))
                test = plan.settings.test_part * shot.epsilon
                over = self.account.after(shot.epsilon, test) > plan.budget
                if over or shot.epsilon < _WORTH * last:
                    return self._refused("the next level would exceed the budget")
            last = shot.epsilon
            self.theta = shot.draw(self.generator.rows.perturbed, self.theta, self.source)
            self.levels += 1
            # Models are prox points of their centres, which moves them no further apart than the centres are: so far
            # at most is this one from where the same levels without noise would be, half of what is left for each.
            self.moved += shot.reach(_FURTHER * 0.5**self.levels)
            self.account.generation = add_losses(self.account.generation, shot.epsilon)
            tested = to_grid(self.theta, float(np.abs(self.theta).max(initial=0.0)) or 1.0, norm="l2")
            passed, noisy = self._ask(tested, test)
            self.shortfalls.append((noisy, plan.goal.shortfall_sensitivity(plan.n) / test))
            if not passed and noisy < 0:
                passed = self._ask_again(tested, noisy, _RETEST * _LEAST * add_losses(shot.epsilon, test))
            if passed:
                return self._released(tested, shot)
            if self._futile(add_losses(shot.epsilon, test)):
                return self._refused("the last levels improved too little for the budget to reach the goal")
            x *= self._ratio(noisy)

    def _gamma(self) -> float:
        return self.plan.failure_probability * (1 - _KEPT) * _KEPT**self.asked

    def _ask(self, theta: NDArray[np.float64], epsilon: float) -> tuple[bool, float]:
        """Release a noisy shortfall; whether it shows that the goal is met."""
        goal, n = self.plan.goal, self.plan.n
        error = goal.shortfall_error(n, theta.size, theta)
        test = ValueTest.of(goal.shortfall_sensitivity(n), error, epsilon)
        margin = test.margin(self._gamma(), error)
        self.asked += 1
        noisy = test.ask(goal.shortfall(self.judge, theta), self.source)
        self.account.test = add_losses(self.account.test, epsilon)
        self.shown = min(self.shown, noisy + margin)
        return noisy + margin <= 0, noisy

    def _ask_again(self, theta: NDArray[np.float64], noisy: float, most: float) -> bool:
        """Look at a model once more that nearly passed, if that is cheaper than going on."""
        goal, n = self.plan.goal, self.plan.n
        tail = math.log(1 / (2 * self._gamma())) + _SURELY
        epsilon = goal.shortfall_sensitivity(n) * tail / -noisy
        if epsilon > most or self.account.after(test=epsilon) > self.plan.budget:
            return False
        return self._ask(theta, epsilon)[0]

    def _ratio(self, noisy: float) -> float:
        steer = self.plan.settings.steer
        room = (1 - _FLOOR) * steer
        return min(max(((max(noisy, 0.0) + room) / room) ** 2, _LEAST), _MOST)

    def _futile(self, last: float) -> bool:
        """Whether as much improvement again at each doubling that is left would not do; reads released numbers."""
        if len(self.shortfalls) < 3 or self.plan.budget - self.account.total > (2**_DOUBLINGS - 1) * last:
            return False
        gains = [
            before - after + _WIDE * (wide + narrow)
            for (before, wide), (after, narrow) in pairwise(self.shortfalls[-3:])
        ]
        shortfall, scale = self.shortfalls[-1]
        return shortfall - _WIDE * scale > _DOUBLINGS * max(gains)

    def _reason(self) -> str:
        geometry = self.plan.geometry
        return (
            f"objective perturbation: {self.levels} level(s) and {self.asked} test(s); noise for rows of shape "
            f"{geometry.name}{': ' if geometry.reason else ''}{geometry.reason}"
        )

    def _released(self, theta: NDArray[np.float64], shot: Shot) -> Release:
        self.account.reasons.append(self._reason())
        return self.account.released(
            theta,
            level=self.levels - 1,
            noise="over the reals",
            parameters={
                "regularization": shot.lam,
                "typical_noise": shot.typical,
                "noise_reach": self.moved * (1 + 1e-4),  # rounding to a grid included
                "noise_reach_coverage": 1.0 - _FURTHER,
            },
        )

    def _refused(self, why: str) -> Release:
        self.account.reasons.append(self._reason())
        self.account.reasons.append(why)
        return self.account.refused(noise="over the reals", parameters=self.plan.goal.shown(self.shown))
