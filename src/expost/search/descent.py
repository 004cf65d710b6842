"""Gradient descent in stages, each with less noise, until a test passes (theory C6).

A stage is a number of noisy gradient steps that together cost ρ; it goes on from where the last one ended, and its
model is the mean of the later half of all iterates: nothing that was paid for is thrown away. Stages, looks and both
theorems are those of `expost.search.staged`; what a step costs stands in `expost.mechanisms.descent`.

*Centre.* A part of the first stage is spent on the mean of the rows. Seen from there (`expost.erm.frame`) rows are
short and their columns hardly correlated with the constant: shorter gradients need less noise and fewer steps. What of
the mean is lost in its noise is left out.

*Noise and steps.* Steps have about the same noise while there are few of them, so a stage that pays more takes more of
them. Descent that ends early shrinks a model as a λ would, the less the longer it goes on: noise and shrinkage fall
together (theory C5). Noisier first steps do not pay: along directions that are nearly flat a descent remembers them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from expost.data.fixed_point import ONE
from expost.erm.clipped_gradient import SLOPE_ONE, Clip, ClippedGradients
from expost.erm.frame import Frame, typical_length
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

_MOMENTUM = 0.8  # part of a step that is taken again
_LEAST_STEPS, _MOST_STEPS = 8, 256  # of a stage
_CENTRE = 0.07  # part of the first stage's ρ for the centre
_START_LABELS, _START = 26.0, 114.0  # of a first stage, for an error rate and for an R² of 0.8
_USUAL_STEER = 0.02  # what that goal calls a large shortfall
_SEEN = 2.0  # a mean that is that many deviations of its noise large is one


def stretch_of(loss: Loss) -> int:
    """Return how far numbers are stretched beside indicators: far where a number is predicted from them; public."""
    return 2 if loss.labels == "binary" else 4


def clip_length(loss: Loss, geometry: Geometry) -> float:
    """Return C, how long a row's gradient may be; public.

    A row of typical length has its slope cut at a part of the loss's largest: what a large residual says beyond that is
    worth less than the noise it costs. Probabilities need every slope.
    """
    part = 1.0 if loss.name == "logistic" else 0.6 if loss.labels == "binary" else 0.45
    return part * loss.lipschitz(math.inf) * typical_length(geometry, stretch_of(loss), centred=True)


class DescentPlan(StagedPlan):
    """Gradient descent, stage by stage; attributes are those of :class:`~expost.search.staged.StagedPlan`."""

    each = "gradient descent under Gaussian noise: {stages} stage(s)"

    @classmethod
    def usual_pace(cls, loss: Loss, goal: TestedGoal | None = None) -> Pace:
        """Return the pace for a loss and a goal: mean squares take closer looks."""
        if loss.labels == "binary":
            looks = Pace(pure_looks=True, test_part=0.12, levels=8, kept=0.4, growth=3.0)
            return replace(looks, start=_START_LABELS, step=5.0, length=1.3, settled=48)
        # what a goal leaves unexplained is what noise has to be small beside
        part = 1.0 if goal is None else min(3.0, max(0.5, _USUAL_STEER / goal.chain().steer))
        pace = Pace.of(goal, start=_START * part, lowest=0.375, step=9.0, length=1.4)
        return replace(pace, test_part=pace.test_part * part**0.4)

    @classmethod
    def noise_of(cls, loss: Loss, geometry: Geometry) -> float:
        """Return the same for gradients that are clipped by their length."""
        return clip_length(loss, geometry) * math.sqrt(geometry.columns)

    def walk(self, generator: DescentGenerator) -> tuple[Walk, Judge]:
        """Return the descent, at its beginning."""
        return Walk(self.loss, self.geometry, generator.gradients, self.pace, self.unit), generator.judge


class Walk:
    """Where the descent is; everything in it was released."""

    def __init__(
        self, loss: Loss, geometry: Geometry, gradients: ClippedGradients, pace: Pace, unit: Unit = ROW
    ) -> None:
        self._gradients, self._rows, stretch = gradients, unit.rows, stretch_of(loss)
        length = typical_length(geometry, stretch, centred=True)
        self._around = typical_length(geometry, stretch, centred=False)
        self._step = rho_at(pace.step * geometry.scale, DescentPlan.noise_of(loss, geometry), gradients.n, unit)
        self._size, self._settled = pace.length / (loss.curvature * length**2) / gradients.n, pace.settled
        self._clip = Clip.of(Frame.of(geometry, stretch), clip_length(loss, geometry))
        self._psi = self._velocity = np.zeros(gradients.p)
        self._sums = [self._psi]  # of the iterates so far

    def cost(self, rho: float) -> Curve:
        """Return what a stage costs: its steps are Gaussian releases."""
        return Curve.gaussian(rho)

    def stage(self, rho: float, source: WordSource) -> Floats:
        """Take a stage's steps, which cost ρ together; return the mean of the later iterates, on a public grid."""
        if len(self._sums) == 1 and self._clip.frame.movable:
            self._centre(_CENTRE * rho, source)
            rho *= 1.0 - _CENTRE
        count = min(max(round(rho / self._step), _LEAST_STEPS), _MOST_STEPS)
        noise = self._noise(self._clip, rho / count).draws(count, source)
        frame = self._clip.frame
        for step in range(count):
            total = self._gradients.total(frame.hypothesis(self._psi), self._clip)
            gradient = noisy_sum(frame.coordinates(total), noise[step])
            size = self._size * min(1.0, math.sqrt(self._settled / len(self._sums)))
            self._velocity = _MOMENTUM * self._velocity - size * gradient
            self._psi = self._psi + self._velocity
            self._sums.append(self._sums[-1] + self._psi)
        taken = len(self._sums) - 1
        model = frame.hypothesis((self._sums[-1] - self._sums[taken // 2]) / (taken - taken // 2))
        return to_grid(model, float(np.abs(model).max(initial=0.0)) or 1.0, norm="l2")

    def _noise(self, clip: Clip, rho: float) -> GradientNoise:
        return GradientNoise(self._gradients.p, self._rows * clip.most, rho)

    def _centre(self, rho: float, source: WordSource) -> None:
        """Release the mean of the rows, which costs ρ, and look at them from there."""
        frame = self._clip.frame
        around = Clip.of(frame, self._around)
        noise = self._noise(around, rho)
        total = noisy_sum(frame.coordinates(self._gradients.rows_total(around)), noise.draws(1, source)[0])
        deviation = noise.deviation / (ONE * SLOPE_ONE)
        mean = np.where(np.abs(total) > _SEEN * deviation, total, 0.0) / self._gradients.n
        self._clip = Clip(frame.moved(mean), self._clip.most)
