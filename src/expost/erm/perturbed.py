"""The minimiser of a perturbed objective, certified to a public tolerance, for every set of rows.

F(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n, θ₀ released before, b noise. F is λ-strongly convex and C-smooth, C = c
+ λ. Newton's method with a line search finds the minimiser in a few steps. Should it not, gradient descent does, in a
number of steps that is known beforehand: no rows can make it fail.

*Theorem.* Let computed gradients be off by at most e in ℓ₂. Steps of size 1/C reach ‖computed gradient‖ ≤ 3e, hence
‖∇F‖ ≤ 4e =: τ, after at most (16C/3λ)·ln(1 + hλ/e²) + C/λ + 1 of them, h = F(θ₀) − min F.
*Proof.* While ‖ĝ‖ > 3e, smoothness gives a fall of at least (‖ĝ‖²/C)(1 − e/‖ĝ‖ − ½) ≥ ‖ĝ‖²/(6C), which is at least
1.5e²/C. Also ‖∇F‖ ≤ ‖ĝ‖ + e ≤ (4/3)‖ĝ‖ and ‖∇F‖² ≥ 2λ(F − min F), so each step takes off a part 3λ/(16C) of what is
left. After (16C/3λ)·ln(1 + hλ/e²) steps no more than e²/λ is left, which falls of 1.5e²/C use up in C/λ steps. F only
falls, so no point on the way is farther from the minimiser than √(2h/λ). ∎

*Rounding.* Predictions, slopes and their sums are those of `expost.erm.passes`: a prediction is off by a unit or two of
‖θ‖, slopes are rounded to a public grid and add up exactly, so the gradient does not depend on how the rows were read.

*Passes.* Each point that is looked at costs one pass over the rows, which brings its gradient and its second
derivatives. Where there are so many columns that p² numbers would not do, second derivatives are not formed, and
directions come from the last few gradients (L-BFGS). Either way the point is judged by its gradient alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, UNIT, gamma
from expost.erm._types import FloatArray
from expost.erm.exceptions import ConvergenceError
from expost.erm.limited_memory import LimitedMemory
from expost.erm.losses import Loss
from expost.erm.passes import Passes, Slopes, slope_rounding
from expost.erm.prediction_grid import prediction_rounding

_NEWTON_STEPS = 60
_QUASI_STEPS = 2000
_HALVINGS = 40
_WIDE = 1200  # columns from which on second derivatives are not formed: 11 MB for each thread, p²n operations a pass


@dataclass(frozen=True)
class PerturbedErrors:
    """How exact the minimiser is; public given θ₀ and a bound on the noise.

    Attributes
    ----------
    loss, n, p, lam
        What is minimised.
    center_norm
        ‖θ₀‖₂.
    pull
        Bound on ‖b‖₂/n.
    """

    loss: Loss
    n: int
    p: int
    lam: float
    center_norm: float
    pull: float

    @property
    def gap(self) -> float:
        """Bound on F(θ₀) − min F: ‖∇F(θ₀)‖²/(2λ), and ‖x‖₂ ≤ 1."""
        return (self.loss.lipschitz(math.inf) + self.pull) ** 2 / (2.0 * self.lam)

    @property
    def norm(self) -> float:
        """Bound on ‖θ‖₂ at every point looked at."""
        return self.center_norm + 2.0 * math.sqrt(2.0 * self.gap / self.lam) * INFLATION

    @property
    def rounding(self) -> float:
        """e, at every such point: predictions, slopes, sums, penalty and linear term."""
        slope, norm = self.loss.lipschitz(math.inf), self.norm
        slopes = slope_rounding(self.loss) + self.loss.EVALUATION_ULPS * UNIT * slope
        predicted = self.loss.curvature * prediction_rounding(self.p) * norm
        return INFLATION * (slopes + predicted + gamma(8) * (slope + self.lam * (norm + self.center_norm) + self.pull))

    @property
    def tolerance(self) -> float:
        """τ, which ‖∇F‖ at the point returned does not exceed."""
        return 4.0 * self.rounding

    @property
    def distance(self) -> float:
        """Bound on the ℓ₂ distance of the point returned from the exact minimiser: τ/λ."""
        return INFLATION * self.tolerance / self.lam

    @property
    def steps(self) -> int:
        """Steps of gradient descent that suffice from θ₀."""
        steep = (self.loss.curvature + self.lam) / self.lam
        return math.ceil(steep * (16.0 / 3.0 * math.log1p(self.gap * self.lam / self.rounding**2) + 1.0)) + 2


class _Point(NamedTuple):
    """A point that was looked at, ∇F there, and about the loss's second derivatives."""

    theta: FloatArray
    gradient: FloatArray
    curvature: FloatArray | None

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.gradient))


class PerturbedObjective(Private):
    """F over given rows; private.

    Parameters
    ----------
    passes
        Sums over the rows.
    """

    def __init__(self, passes: Passes) -> None:
        self.passes = passes

    @np.errstate(all="ignore")  # a warning that some rows cause would tell of them
    def minimiser(self, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> FloatArray:
        """Return a point whose gradient is certified to ``errors.tolerance``; ``linear`` is b/n."""
        dense = errors.p < _WIDE
        memory = LimitedMemory(1.0 / (errors.loss.curvature + errors.lam))
        at = self._look(center.copy(), errors.lam, center, linear, dense)
        for _ in range(_NEWTON_STEPS if dense else _QUASI_STEPS):
            if self._accepted(at.gradient, errors):
                return at.theta
            following = self._newton(at, errors.lam, center, linear, memory)
            if following is None:
                break
            memory.learn(following.theta - at.theta, following.gradient - at.gradient)
            at = following
        return self._descend(errors, center, linear)

    def _accepted(self, gradient: FloatArray, errors: PerturbedErrors) -> bool:
        return float(np.linalg.norm(gradient)) * (1.0 + gamma(errors.p + 4)) <= 3.0 * errors.rounding

    def _look(self, theta: FloatArray, lam: float, center: FloatArray, linear: FloatArray, dense: bool) -> _Point:
        """Look at a point: one pass over the rows."""
        found: Slopes = self.passes.slopes(theta, curvature=dense)
        return _Point(theta, np.asarray(found.gradient + (lam * (theta - center) + linear)), found.curvature)

    def _newton(
        self, at: _Point, lam: float, center: FloatArray, linear: FloatArray, memory: LimitedMemory
    ) -> _Point | None:
        """Return the next point, or None where floating point finds no way on."""
        if at.curvature is None:
            step = -memory.direction(at.gradient)
        else:
            hessian = at.curvature
            hessian[np.diag_indices_from(hessian)] += lam
            try:
                step = np.asarray(-np.linalg.solve(hessian, at.gradient), dtype=np.float64)
            except np.linalg.LinAlgError:
                return None
        if not np.isfinite(step).all():
            return None
        length = 1.0
        for _ in range(_HALVINGS):
            moved = self._look(np.asarray(at.theta + length * step), lam, center, linear, at.curvature is not None)
            if _closer(at, moved, step, length):
                return moved
            length *= 0.5
        return None

    def _descend(self, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> FloatArray:
        """Go down by steps of 1/C, which is certain to end."""
        theta, size = center.copy(), 1.0 / (errors.loss.curvature + errors.lam)
        for _ in range(errors.steps):
            gradient = self._look(theta, errors.lam, center, linear, False).gradient
            if self._accepted(gradient, errors):
                return theta
            theta = theta - size * gradient
        raise ConvergenceError("the loss is not what it says it is: not convex, or steeper than its constants")


def _closer(at: _Point, moved: _Point, step: FloatArray, length: float) -> bool:
    """Whether a step is worth taking: the gradient is shorter or, without second derivatives, not yet past the minimum.

    F is convex, so as long as the slope along the step stays negative F has fallen all the way.
    """
    if moved.length < at.length * (1.0 - 0.1 * length):
        return True
    return at.curvature is None and float(moved.gradient @ step) <= -0.1 * float(at.gradient @ step)
