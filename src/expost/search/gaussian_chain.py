"""Objective perturbation with Gaussian noise in stages: noise and shrinkage fall together until a look passes (C2, C5).

A stage perturbs the objective anew with noise that would cost ρ on a gradient. Noise of 1/x on a mean gradient goes
with λ = 1/(xR); the first model is centred at zero, each further one at the last one released, which is public by then.
Stages, looks and both theorems are those of `expost.search.staged`; what a stage costs, its Jacobian and its solver
among it, stands in `expost.mechanisms.gaussian_objective`. It is not a gradual release: every stage pays for itself.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from expost.erm.losses import Loss
from expost.erm.measures import Judge, to_grid
from expost.erm.perturbed import STEEPEST, PerturbedObjective
from expost.goals.goal import TestedGoal
from expost.mechanisms.gaussian_objective import GaussianShot
from expost.mechanisms.mechanism import NoiseKind
from expost.mechanisms.objective import ObjectiveGenerator
from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.search.pace import Pace
from expost.search.staged import Floats, StagedPlan, level_at


class GaussianChainPlan(StagedPlan):
    """Perturbed objectives, stage by stage; attributes are those of :class:`~expost.search.staged.StagedPlan`."""

    each = "objective perturbation with Gaussian noise: {stages} level(s)"
    noise: ClassVar[NoiseKind] = "over the reals"

    @classmethod
    def usual_pace(cls, loss: Loss, goal: TestedGoal | None = None) -> Pace:
        """Return the pace for a loss and a goal: Huber's loss shrinks more, for its Jacobian is dear."""
        if loss.labels == "binary":
            return Pace.of(goal, growth=2.5, gathers=False)
        return Pace.of(goal, growth=2.5, gathers=False, start=64.0, lowest=0.375, reach=1.0)

    def shot(self, rho: float, center_norm: float = 0.0) -> GaussianShot:
        """Return the release of a stage."""
        level = level_at(rho, self.noise_of(self.loss, self.geometry), self.n, self.unit)
        lam = max(1.0 / (level * self.pace.reach * self.geometry.scale), 2.0 * self.loss.curvature / STEEPEST)
        return GaussianShot(self.loss, self.geometry, self.n, rho, lam, center_norm, self.unit.rows)

    def cost(self, rho: float) -> Curve:
        """Return what a first stage costs."""
        return self.shot(rho).curve

    def walk(self, generator: ObjectiveGenerator) -> tuple[Levels, Judge]:
        """Return the first level."""
        return Levels(self, generator.rows.perturbed), generator.rows.passes


class Levels:
    """The last model; it was released."""

    def __init__(self, plan: GaussianChainPlan, objective: PerturbedObjective) -> None:
        self._plan, self._objective = plan, objective
        self.theta = np.zeros(plan.geometry.columns)

    def _shot(self, rho: float) -> GaussianShot:
        return self._plan.shot(rho, float(np.linalg.norm(self.theta)))

    def cost(self, rho: float) -> Curve:
        """Return what the next stage costs: a function of public and released numbers."""
        return self._shot(rho).curve

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Perturb the objective and return the model, on a public grid."""
        self.theta = self._shot(rho).draw(self._objective, self.theta, source)
        return to_grid(self.theta, float(np.abs(self.theta).max(initial=0.0)) or 1.0, norm="l2")
