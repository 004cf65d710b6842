"""Gradient descent in stages, each with less noise, until a test passes (theory C6).

A stage is a number of noisy gradient steps that together cost ρ; it goes on from where the last one ended, and its
model is the mean of the later half of all iterates: nothing that was paid for is thrown away. Stages, looks and both
theorems are those of `expost.search.staged`; what a step costs stands in `expost.mechanisms.descent`.

*Noise and steps.* Steps have about the same noise while there are few of them, so a stage that pays more takes more of
them. Descent that ends early shrinks a model as a λ would, the less the longer it goes on: noise and shrinkage fall
together (theory C5). Noisier first steps do not pay: along directions that are nearly flat a descent remembers them.
"""

from __future__ import annotations

import math

import numpy as np

from expost.erm.clipped_gradient import ClippedGradients, SlopeTable
from expost.erm.geometry import Geometry
from expost.erm.losses import Loss
from expost.erm.measures import Judge, to_grid
from expost.goals.goal import TestedGoal
from expost.mechanisms.descent import DescentGenerator, GradientNoise, noisy_sum
from expost.noise.source import WordSource
from expost.privacy.renyi import Curve
from expost.privacy.unit import ROW, Unit
from expost.search.pace import Pace
from expost.search.staged import Floats, StagedPlan, rho_at

_MOMENTUM = 0.9  # part of a step that is taken again
_LEAST_STEPS, _MOST_STEPS = 8, 256  # of a stage


def first_rho(loss: Loss, geometry: Geometry, n: int, pace: Pace, unit: Unit = ROW) -> float:
    """Return ρ of a first stage whose noise leaves something to be seen."""
    return rho_at(pace.start * geometry.scale, loss, geometry, n, unit)


class DescentPlan(StagedPlan):
    """Gradient descent, stage by stage; attributes are those of :class:`~expost.search.staged.StagedPlan`."""

    each = "gradient descent under Gaussian noise: {stages} stage(s)"

    @classmethod
    def usual_pace(cls, loss: Loss, goal: TestedGoal | None = None) -> Pace:
        """Return the pace for a loss and a goal: mean squares take closer looks."""
        if loss.labels == "binary":
            return Pace.of(goal, settled=48)
        return Pace.of(goal, start=64.0, lowest=0.375, step=8.0, length=2.0)

    def walk(self, generator: DescentGenerator) -> tuple[Walk, Judge]:
        """Return the descent, at its beginning."""
        return Walk(self.loss, self.geometry, generator.gradients, self.pace, self.unit), generator.judge


class Walk:
    """Where the descent is; everything in it was released."""

    def __init__(
        self, loss: Loss, geometry: Geometry, gradients: ClippedGradients, pace: Pace, unit: Unit = ROW
    ) -> None:
        self._geometry, self._gradients = geometry, gradients
        self._step = rho_at(pace.step * geometry.scale, loss, geometry, gradients.n, unit)
        self._size, self._settled = pace.length / loss.curvature / gradients.n, pace.settled
        self._largest = unit.rows * SlopeTable.of(loss).largest
        self._gathers = pace.gathers
        self._begin()

    def _begin(self) -> None:
        self.theta = self._velocity = np.zeros(self._gradients.p)
        self._sums = [self.theta]  # of the iterates so far

    def cost(self, rho: float) -> Curve:
        """Return what a stage costs: its steps are Gaussian releases."""
        return Curve.gaussian(rho)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Take a stage's steps, which cost ρ together; return the mean of the later iterates, on a public grid."""
        if not self._gathers:
            self._begin()
        count = min(max(round(rho / self._step), _LEAST_STEPS), _MOST_STEPS)
        noise = GradientNoise(self._geometry, self._largest, rho / count).draws(count, source)
        for step in range(count):
            gradient = noisy_sum(self._gradients.total(self.theta), noise[step])
            size = self._size * min(1.0, math.sqrt(self._settled / len(self._sums)))
            self._velocity = _MOMENTUM * self._velocity - size * gradient
            self.theta = self.theta + self._velocity
            self._sums.append(self._sums[-1] + self.theta)
        taken = len(self._sums) - 1
        model = (self._sums[-1] - self._sums[taken // 2]) / (taken - taken // 2)
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")
