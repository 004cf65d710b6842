"""Chains of perturbed objectives: models with less and less noise and less and less shrinkage, until one will do.

For goals in people's units (an error rate, R²), which promise nothing about a λ. A level is one number, ρ for Gaussian
noise and x, the inverse of the typical noise on a mean gradient, for pure noise; noise and shrinkage follow from it
(theory C2, C5): with N the noise for rows of the shape, ε′ = 2κNx/n and λ = 1/(xR). The first level is centred at zero,
each further one at the last model released: θ₀ is public by then, so objective perturbation costs the same, and what
was learned is not shrunk away again. It is not a gradual release: every level pays for itself. What a level costs, its
Jacobian and its solver among it, stands in `expost.mechanisms.objective.mechanism` and
`expost.mechanisms.objective.gaussian`; levels, tests and both theorems are those of `expost.search.engine`.

*Pure chains* ask the k-th test, of whatever model, with γ_k = γ(1 − q)q^{k−1}; Σ γ_k ≤ γ however many are asked. So but
for γ every noisy shortfall with its margin is a bound, and a refusal states the least for nothing (theory D3). The last
noisy shortfall says how far the next level goes, whether a model that nearly passed is tested again, and when to give
up: where the budget leaves two doublings or fewer, a search whose shortfall is more than twice the better of its last
two improvements, noise taken into account, refuses instead of spending the rest on what it will not reach. All of that
is choice: it reads released numbers only.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.account.account import Account
from expost.account.composition import ROW, Curve, Unit, add_losses
from expost.goals.goal import TestedGoal, lowered
from expost.goals.measure import Judge
from expost.mechanisms.mechanism import NoiseKind
from expost.mechanisms.objective.gaussian import GaussianShot
from expost.mechanisms.objective.mechanism import ObjectiveGenerator, ObjectivePerturbation, Shot
from expost.noise.source import WordSource
from expost.passes.blocks import to_grid
from expost.search import METHODS
from expost.search.engine import HOPELESS, USUALLY, Schedule, StagedPlan, StagedSearch, level_at
from expost.search.noisy_test import NoisyTest, NoisyValue
from expost.search.request import Request
from expost.solve.losses import Loss
from expost.solve.perturbed import STEEPEST, PerturbedObjective
from expost.solve.problem import Problem
from expost.table.shape import Geometry

_FLOOR = 0.8  # the best model is taken to miss nothing beyond this part of what the goal calls large
_RETEST = 0.6  # a second test of the same model may cost this part of the next level
_SURELY = 2.0  # a second test is calibrated to fail with probability e^−2 if the first was right
_NOTHING = 1e-30  # x where nothing can be afforded: its cost is above what is left, and no number is zero
_WIDE = 3.0  # in scales of the noise: how far a released shortfall may be off
_DOUBLINGS = 2  # a search may give up where no more of them are left
_FURTHER = 0.1  # the chance that noise moved the released parameters further than is stated
#: What chains with pure noise cost beside the sum of their levels up to the usual: for labels so that the quotient of
#: both kinds is about that of what they paid on made-up tables of 11 to 113 columns (`expost.planning`) and on Adult;
#: for mean squares as on Diamonds, where targets fill their bounds.
_DEARER = {"binary": 1.3, "real": 1.6}


class PerturbedLevels:
    """The last model; it was released."""

    def __init__(self, plan: _Perturbed, objective: PerturbedObjective) -> None:
        self._plan, self._objective = plan, objective
        self.theta = np.zeros(plan.geometry.columns)
        self.drawn: Any = None  # what the last model was drawn by

    @property
    def center_norm(self) -> float:
        """‖θ₀‖₂ of the next level."""
        return float(np.linalg.norm(self.theta))

    def shot(self, level: float) -> Any:
        """Return the next level's release: a function of public and released numbers."""
        return self._plan.shot(level, self.center_norm)

    def cost(self, level: float) -> Curve:
        """Return what the next level costs."""
        return self._plan.cost(level, self.center_norm)

    def stage(self, level: float, source: WordSource) -> NDArray[np.float64]:
        """Perturb the objective and return the model, on a public grid."""
        self.drawn = self.shot(level)
        self.theta = self.drawn.draw(self._objective, self.theta, source)
        return to_grid(self.theta, float(np.abs(self.theta).max(initial=0.0)) or 1.0, norm="l2")


class _Perturbed(StagedPlan):
    """What chains share, whatever the noise; attributes are those of :class:`~expost.search.engine.StagedPlan`."""

    noise: ClassVar[NoiseKind] = "over the reals"

    def shot(self, level: float, center_norm: float = 0.0) -> Any:
        """Return the release of a level."""
        raise NotImplementedError

    def cost(self, level: float, center_norm: float = 0.0) -> Curve:
        """Return what a level costs; at a first one the centre is zero."""
        shot = self.shot(level, center_norm)
        return shot.curve if isinstance(shot, GaussianShot) else Curve.ex_post(shot.epsilon)

    def _lam(self, x: float) -> float:
        """Return λ where noise on a mean gradient is 1/x."""
        return max(1.0 / (x * self.schedule.reach * self.geometry.scale), 2.0 * self.loss.curvature / STEEPEST)

    def walk(self, generator: ObjectiveGenerator) -> tuple[PerturbedLevels, Judge]:
        """Return the first level."""
        return PerturbedLevels(self, generator.rows.perturbed), generator.rows.passes


class GaussianChainPlan(_Perturbed):
    """Perturbed objectives with Gaussian noise; levels are ρ."""

    each = "objective perturbation with Gaussian noise: {stages} level(s)"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal: Huber's loss shrinks more, for its Jacobian is dear."""
        if loss.labels == "binary":
            return Schedule.of(goal, growth=2.5, gathers=False)
        return Schedule.of(goal, growth=2.5, gathers=False, start=64.0, lowest=0.375, reach=1.0)

    def shot(self, level: float, center_norm: float = 0.0) -> GaussianShot:
        """Return the release of a level."""
        lam = self._lam(level_at(level, self.noise_of(self.loss, self.geometry), self.n, self.unit))
        return GaussianShot(self.loss, self.geometry, self.n, level, lam, center_norm, self.unit.rows)


class ChainPlan(_Perturbed):
    """Perturbed objectives with pure noise, all of it for one row replaced; levels are x."""

    gaussian: ClassVar[bool] = False

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return what the goal asks for."""
        assert goal is not None
        asked = goal.chain()
        return Schedule(
            start=asked.start,
            lowest=asked.lowest,
            reach=asked.reach,
            test_part=asked.test_part,
            growth=2.0,
            gain=1.3,
            gathers=False,
        )

    @classmethod
    def schedule_for(
        cls, loss: Loss, goal: TestedGoal | None, geometry: Geometry, n: int, delta: float, unit: Unit = ROW
    ) -> Schedule:
        """Return the same: where a first level would be dear, `usual_start` has more noise."""
        return cls.usual_schedule(loss, goal)

    def shot(self, level: float, center_norm: float = 0.0) -> Shot:
        """Return the release of a level."""
        noise = 2.0 * self.loss.lipschitz(math.inf) * self.geometry.noise * level / self.n
        return Shot(self.loss, self.geometry, self.n, noise, self._lam(level), center_norm)

    @cached_property
    def start(self) -> float:
        """x of the first level, or the largest that the budget allows."""
        return min(self.usual_start, self.affordable(self.budget, 0.0))

    @property
    def usual_start(self) -> float:
        """x of the first level where the budget allows it."""
        usual = self.schedule.start * self.geometry.scale
        return usual * lowered(self.shot(usual).epsilon, self.schedule.lowest)

    @property
    def sensitivity(self) -> float:
        """How far one row can move a shortfall."""
        return self.goal.shortfall_sensitivity(self.n)

    @property
    def predicted(self) -> float:
        """What it would cost to go on until noise is as small as at the end of usual searches with Gaussian noise."""
        x = USUALLY * GaussianChainPlan.usual_schedule(self.loss, self.goal).start * self.geometry.scale
        total = 0.0
        while True:
            total += self.shot(x).epsilon * (1.0 + self.schedule.test_part)
            x /= 2.0
            if x < self.usual_start:
                return _DEARER[self.loss.labels] * total

    def affordable(self, left: float, center_norm: float) -> float:
        """Return the largest x whose model and test cost no more than what is left; next to nothing if none does."""
        room = left * (1 - 1e-9) / (1 + self.schedule.test_part)
        low, high = 0.0, self.n / self.geometry.noise * room / self.loss.lipschitz(math.inf)
        high = max(high, _NOTHING)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.shot(middle, center_norm).epsilon <= room else (low, middle)
        return max(low, _NOTHING)

    def missing(self) -> float:
        """Return how many times the rows it would take so that a perfect model could be shown to do; zero if it can."""
        part, steer = self.schedule.test_part, self.goal.chain().steer
        needed = NoisyValue.of(self.sensitivity, 0.0).margin(self.budget * (part / (1 + part)), self.gamma(1))
        least = HOPELESS * self.schedule.start * self.geometry.scale
        if needed <= steer and self.start >= least:
            return 0.0
        return max(needed / steer, self.shot(least).epsilon * (1 + part) / self.budget)

    def run_of(self, generator: ObjectiveGenerator, account: Account, source: WordSource) -> ChainSearch:
        """Return the run, before its first level."""
        return ChainSearch(self, *self.walk(generator), account, source)


class ChainSearch(StagedSearch):
    """One run of a pure chain, steered by its noisy shortfalls."""

    plan: ChainPlan
    walk: PerturbedLevels
    tests: NoisyTest

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.last, self.tested, self.moved = 0.0, 0.0, 0.0  # ε of the last model and of its test, and how far it is
        self.shortfalls: list[tuple[float, float]] = []  # of each level, with the scale of their noise

    def _tests(self, schedule: Schedule) -> NoisyTest:
        return NoisyTest(self.account, self.source)

    def _exceeds(self, x: float) -> bool:
        epsilon = self.walk.shot(x).epsilon
        return self.account.after(epsilon, self.plan.schedule.test_part * epsilon) > self.plan.budget

    def _affordable(self, x: float) -> tuple[float, str]:
        """Return the level, or the largest that the budget still allows; or why there is no other."""
        if self._futile(add_losses(self.last, self.tested)):
            return x, "the last levels improved too little for the budget to reach the goal"
        if self._exceeds(x):
            x = self.plan.affordable(self.plan.budget - self.account.total, self.walk.center_norm)
            if self._exceeds(x) or self.walk.shot(x).epsilon < self.plan.schedule.gain * self.last:
                return x, "the next level would exceed the budget"
        return x, ""

    def _passes(self, model: NDArray[np.float64], x: float) -> bool:
        """Test a model, and once more if it nearly passed and that is cheaper than going on."""
        plan = self.plan
        self.last = self.walk.drawn.epsilon
        self.tested = plan.schedule.test_part * self.last
        # Models are prox points of their centres, which moves them no further apart than the centres are: so far at
        # most is this one from where the same levels without noise would be, half of what is left for each.
        self.moved += self.walk.drawn.reach(_FURTHER * 0.5**self.stages)
        passed, noisy = self._ask(model, self.tested)
        self.shortfalls.append((noisy, plan.sensitivity / self.tested))
        if passed or noisy >= 0:
            return passed
        tail = math.log(1 / (2 * self._gamma())) + _SURELY
        epsilon = plan.sensitivity * tail / -noisy
        most = _RETEST * plan.schedule.growth * add_losses(self.last, self.tested)
        if epsilon > most or self.account.after(test=epsilon) > plan.budget:
            return False
        return self._ask(model, epsilon)[0]

    def _gamma(self) -> float:
        return self.plan.gamma(self.tests.count + 1)

    def _ask(self, theta: NDArray[np.float64], epsilon: float) -> tuple[bool, float]:
        """Release a noisy shortfall; whether it shows that the goal is met."""
        goal, n = self.plan.goal, self.plan.n
        value = NoisyValue.of(self.plan.sensitivity, goal.shortfall_error(n, theta.size, theta))
        margin = value.margin(epsilon, self._gamma())
        noisy = self.tests.ask(value, goal.shortfall(self.judge, theta), epsilon)
        return self.tests.shows(noisy + margin), noisy

    def _next(self, x: float) -> float:
        """Return the next level: further where the noisy shortfall is large."""
        schedule, room = self.plan.schedule, (1 - _FLOOR) * self.plan.goal.chain().steer
        noisy, _ = self.shortfalls[-1]
        return x * min(max(((max(noisy, 0.0) + room) / room) ** 2, schedule.growth), schedule.fastest)

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

    def _said(self) -> list[str]:
        geometry = self.plan.geometry
        return [
            f"objective perturbation: {self.stages} level(s) and {self.tests.count} test(s); noise for rows of shape "
            f"{geometry.name}{': ' if geometry.reason else ''}{geometry.reason}"
        ]

    def _details(self, theta: NDArray[np.float64] | None) -> dict[str, Any]:
        """Return what a release says beside: how far noise has moved it among it."""
        if theta is None:
            return super()._details(theta)
        said = {
            "regularization": self.walk.drawn.lam,
            "typical_noise": self.walk.drawn.typical,
            "noise_reach": self.moved * (1 + 1e-4),  # rounding to a grid included
            "noise_reach_coverage": 1.0 - _FURTHER,
        }
        return {**super()._details(theta), "parameters": said}


def chain_request(
    goal: TestedGoal, geometry: Geometry, n: int, failure_probability: float, budget: float, unit: Unit = ROW
) -> Request:
    """Return the request for a goal in people's units, for n rows of a shape; nobody states a λ.

    The problem names the loss that the goal asks for and the λ of the first level; later levels have their own.
    """
    start = ChainPlan.settled(goal, goal.chain().loss, geometry, n, 0.1, budget)
    lam = min(start.shot(start.start).lam, 1e15)
    problem = Problem.of(start.loss, n=n, p=geometry.columns, regularization=lam)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        ObjectivePerturbation(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
    )
