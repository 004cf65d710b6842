"""Chains of perturbed objectives: models with less and less noise and less and less shrinkage, until one will do.

For goals in people's units (an error rate, R²), which promise nothing about a λ. A level is one number, ρ for Gaussian
noise and x, the inverse of the typical noise on a mean gradient, for pure noise; noise and shrinkage follow from it
(theory C2, C5): with N the noise for rows of the shape, ε′ = 2κNx/n and λ = 1/(xR). The first level is centred at zero,
each further one at the last model released, unless that was far noisier: θ₀ is public by then, so objective
perturbation costs the same, and what was learned is not shrunk away again. It is not a gradual release: every level
pays for itself. What a level costs, its Jacobian and its solver among it, stands in
`expost.mechanisms.objective.mechanism` and `expost.mechanisms.objective.gaussian`; levels, tests and both theorems are
those of `expost.search.engine`.

A chain starts where easy goals end, jumps from there, and then lets the last noisy shortfall say how far the next level
goes (theory D10). All of that is choice: it reads released numbers only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expost.account.composition import ROW, Curve, Unit
from expost.goals.goal import TestedGoal
from expost.goals.measure import Judge
from expost.mechanisms.mechanism import NoiseKind
from expost.mechanisms.objective.gaussian import GaussianShot
from expost.mechanisms.objective.mechanism import ObjectiveGenerator, ObjectivePerturbation, Shot
from expost.noise.source import WordSource
from expost.passes.blocks import to_grid
from expost.search import METHODS
from expost.search.engine import Schedule, StagedPlan, StagedSearch, largest_stage, level_at
from expost.search.noisy_test import laplace_deviations
from expost.search.request import Request
from expost.solve.losses import Loss
from expost.solve.perturbed import STEEPEST, PerturbedObjective
from expost.solve.problem import Problem
from expost.table.shape import Geometry

_HOPELESS = 0.5  # a first level this many times below where it should be is noise
_FAR = 3.5  # a level with so many times less noise than the last is centred at zero: little of its noise is left then
_FURTHER = 0.1  # the chance that noise moved the released parameters further than is stated
_NOTHING = 1e-30  # a level of no use, where nothing can be afforded


class PerturbedLevels:
    """The last model; it was released."""

    def __init__(self, plan: _Perturbed, objective: PerturbedObjective, theta: NDArray[np.float64]) -> None:
        self._plan, self._objective, self.theta = plan, objective, theta
        self._level = 0.0  # of the last model
        self.drawn: Any = None  # what it was drawn by

    def center(self, level: float) -> NDArray[np.float64]:
        """Return θ₀ of a level: the last model, or zero where that was far noisier; it was released."""
        far = self._level and self._plan.noise_quotient(self._level, level) > _FAR
        return np.zeros_like(self.theta) if far else self.theta

    def shot(self, level: float) -> Any:
        """Return the next level's release: a function of public and released numbers."""
        return self._plan.shot(level, float(np.linalg.norm(self.center(level))))

    def cost(self, level: float) -> Curve:
        """Return what the next level costs."""
        return self._plan.cost(level, float(np.linalg.norm(self.center(level))))

    def stage(self, level: float, source: WordSource) -> NDArray[np.float64]:
        """Perturb the objective and return the model, on a public grid."""
        self.drawn, center, self._level = self.shot(level), self.center(level), level
        self.theta = self.drawn.draw(self._objective, center, source)
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
        if isinstance(shot, GaussianShot):
            return shot.curve
        return Curve.ex_post(self.unit.charge(shot.epsilon) if self.delta else shot.epsilon)

    def measured(self, goal: TestedGoal, gamma: float) -> Self:
        """Return the plan for a goal as it was measured: loss, noise and shrinkage follow it."""
        plan = super().measured(goal, gamma)
        return replace(plan, loss=goal.chain().loss, schedule=self.usual_schedule(self.loss, goal))

    def _lam(self, x: float) -> float:
        """Return λ where noise on a mean gradient is 1/x."""
        return max(1.0 / (x * self.schedule.reach * self.geometry.scale), 2.0 * self.loss.curvature / STEEPEST)

    def walk(self, generator: ObjectiveGenerator) -> tuple[PerturbedLevels, Judge]:
        """Return the first level, centred at zero."""
        return self.from_model(generator.judge, np.zeros(self.geometry.columns))

    def from_model(self, judge: Any, model: NDArray[np.float64]) -> tuple[PerturbedLevels, Judge]:
        """Return the first level, centred at a model that was released."""
        passes = judge.with_loss(self.loss)
        return PerturbedLevels(self, PerturbedObjective(passes), model), passes


class GaussianChainPlan(_Perturbed):
    """Perturbed objectives with Gaussian noise; levels are ρ."""

    each = "objective perturbation with Gaussian noise: {stages} level(s)"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return the schedule for a loss and a goal: Huber's loss shrinks more, for its Jacobian is dear."""
        if goal is None:
            return Schedule(gathers=False)
        asked = goal.chain()
        return Schedule(start=asked.start, reach=asked.reach, growth=4.0, fastest=16.0, jump=25.0, gathers=False)

    def shot(self, level: float, center_norm: float = 0.0) -> GaussianShot:
        """Return the release of a level."""
        lam = self._lam(level_at(level, self.noise_of(self.loss, self.geometry), self.n, self.unit))
        return GaussianShot(self.loss, self.geometry, self.n, level, lam, center_norm, self.unit.rows)


class ChainPlan(_Perturbed):
    """Perturbed objectives with pure noise, all of it for one row replaced; levels are x."""

    gaussian: ClassVar[bool] = False

    @property
    def each(self) -> str:  # type: ignore[override]
        """What was done in how many levels, and which shape the noise follows."""
        reason = f": {self.geometry.reason}" if self.geometry.reason else ""
        return f"objective perturbation: {{stages}} level(s); noise for rows of shape {self.geometry.name}{reason}"

    @classmethod
    def usual_schedule(cls, loss: Loss, goal: TestedGoal | None = None) -> Schedule:
        """Return what the goal asks for."""
        assert goal is not None
        asked = goal.chain()
        return Schedule(
            start=asked.start,
            reach=asked.reach,
            growth=2.0,
            fastest=4.0,
            jump=5.0,
            gain=1.3,
            gathers=False,
            test_part=2.0,
        )

    def less_noise(self, times: float) -> float:
        """Return it: levels are x."""
        return times

    def noise_quotient(self, before: float, after: float) -> float:
        """Return the quotient."""
        return after / before

    def most_of_test(self, level: float) -> float:
        """Return what the test of a model may cost: a part of what the model costs."""
        return self.schedule.test_part * self.cost(level).most

    def shot(self, level: float, center_norm: float = 0.0) -> Shot:
        """Return the release of a level."""
        noise = 2.0 * self.loss.lipschitz(math.inf) * self.geometry.noise * level / self.n
        return Shot(self.loss, self.geometry, self.n, noise, self._lam(level), center_norm)

    @property
    def start(self) -> float:
        """x of the first level, or the largest that the budget allows."""
        whole = self._whole()
        if whole.fits(self.cost(self.usual_start) + self.look(self.usual_start)):
            return self.usual_start
        return max(largest_stage(whole, self.cost, self.look, 0.0, self.usual_start), _NOTHING)

    @property
    def usual_start(self) -> float:
        """x of the first level where the budget allows it."""
        return self.clear(self.schedule.start * self.geometry.scale)

    def missing(self) -> float:
        """Return how many times the rows it would take so that a perfect model could be shown to do; zero if it can."""
        steer = self.goal.chain().steer
        budget = self.unit.worst_case(self.budget) if self.delta else self.budget  # as the sensitivity is meant
        needed = laplace_deviations(self.gamma(1)) * self.sensitivity / budget
        least = _HOPELESS * self.usual_start
        if needed <= steer and self.start >= least:
            return 0.0
        return max(needed / steer, self.shot(least).epsilon / self.budget)


class ChainSearch(StagedSearch):
    """One run of a pure chain, which knows how far noise has moved its models."""

    plan: ChainPlan
    walk: PerturbedLevels
    moved = 0.0

    def _passes(self, model: NDArray[np.float64], x: float) -> bool:
        """Test a model.

        Models are prox points of their centres, which moves them no further apart than the centres are: so far at most
        is this one from where the same levels without noise would be, half of what is left for each.
        """
        self.moved += self.walk.drawn.reach(_FURTHER * 0.5**self.stages)
        return super()._passes(model, x)

    def _details(self, theta: NDArray[np.float64] | None) -> dict[str, Any]:
        """Return what a release says beside: how far noise has moved it among it."""
        if theta is None:
            return super()._details(theta)
        details = super()._details(theta)
        said = {
            **details.pop("parameters", {}),
            "regularization": self.walk.drawn.lam,
            "typical_noise": self.walk.drawn.typical,
            "noise_reach": self.moved * (1 + 1e-4),  # rounding to a grid included
            "noise_reach_coverage": 1.0 - _FURTHER,
        }
        return {**details, "parameters": said}


ChainPlan.running = ChainSearch


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
