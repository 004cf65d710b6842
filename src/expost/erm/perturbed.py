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

*Rounding.* Predictions are computed in two parts, θ = θ₁ + θ₂: rows are multiples of 2⁻²⁰, so xᵀθ₁ is exact in float64
for θ₁ on a coarse grid (as in `expost.erm.measures`), and θ₂ is smaller by far. A prediction is then off by a unit or
two of its size instead of p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, gamma, summation_length
from expost.erm._types import FloatArray
from expost.erm.exceptions import ConvergenceError
from expost.erm.losses import Loss
from expost.erm.measures import exact_bits, to_grid
from expost.erm.objective import Objective

_NEWTON_STEPS = 60
_HALVINGS = 40
_LEAST_LEFT = 2.0**-20  # part of θ that is assumed to be left beside its coarse part, at least


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
        sums = gamma(summation_length(self.n) + self.loss.EVALUATION_ULPS + 4) * slope
        # the coarse part has steps of at most 2^(1 − bits) of the largest coordinate, and leaves half a step of each
        left = max(_LEAST_LEFT, 2.0 ** (1 - exact_bits(self.p, "l2")) * math.sqrt(self.p))
        predictions = self.loss.curvature * (gamma(3) + gamma(self.p) * left) * norm
        return INFLATION * (sums + predictions + gamma(8) * (slope + self.lam * (norm + self.center_norm) + self.pull))

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


class PerturbedObjective(Private):
    """F over given rows; private.

    Parameters
    ----------
    objective
        mean φ + (λ/2)‖θ‖²; its λ is not used, so that one object serves every level.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective

    @np.errstate(all="ignore")  # a warning that some rows cause would tell of them
    def minimiser(self, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> FloatArray:
        """Return a point whose gradient is certified to ``errors.tolerance``; ``linear`` is b/n."""
        theta = center.copy()
        for _ in range(_NEWTON_STEPS):
            u = self._predictions(theta)
            gradient = self._gradient(theta, u, errors.lam, center, linear)
            if self._accepted(gradient, errors):
                return theta
            following = self._newton(theta, u, gradient, errors.lam, center, linear)
            if following is None:
                break
            theta = following
        return self._descend(errors, center, linear)

    def _accepted(self, gradient: FloatArray, errors: PerturbedErrors) -> bool:
        return float(np.linalg.norm(gradient)) * (1.0 + gamma(errors.p + 4)) <= 3.0 * errors.rounding

    def _predictions(self, theta: FloatArray) -> FloatArray:
        """Return Xθ to a few units of ‖θ‖."""
        largest = float(np.abs(theta).max(initial=0.0))
        coarse = to_grid(theta, largest, norm="l2") if largest > 0.0 else theta
        return self.objective.predictions(coarse) + self.objective.predictions(theta - coarse)

    def _gradient(
        self, theta: FloatArray, u: FloatArray, lam: float, center: FloatArray, linear: FloatArray
    ) -> FloatArray:
        mean = self.objective.mean_gradient(u)
        return np.asarray(mean + (lam * (theta - center) + linear))

    def _newton(
        self,
        theta: FloatArray,
        u: FloatArray,
        gradient: FloatArray,
        lam: float,
        center: FloatArray,
        linear: FloatArray,
    ) -> FloatArray | None:
        """Return the next point, or None where floating point finds no way on."""
        hessian = self.objective.curvature_at(u)
        hessian[np.diag_indices_from(hessian)] += lam
        try:
            step = np.asarray(-np.linalg.solve(hessian, gradient), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        v, length, before = self.objective.predictions(step), 1.0, float(np.linalg.norm(gradient))
        for _ in range(_HALVINGS):
            # along the step the slope is computed from predictions alone; it falls until the minimum
            moved = theta + length * step
            after = self._gradient(moved, u + length * v, lam, center, linear)
            if float(np.linalg.norm(after)) < before * (1.0 - 0.1 * length):
                return np.asarray(moved)
            length *= 0.5
        return None

    def _descend(self, errors: PerturbedErrors, center: FloatArray, linear: FloatArray) -> FloatArray:
        """Go down by steps of 1/C, which is certain to end."""
        theta, size = center.copy(), 1.0 / (errors.loss.curvature + errors.lam)
        for _ in range(errors.steps):
            gradient = self._gradient(theta, self._predictions(theta), errors.lam, center, linear)
            if self._accepted(gradient, errors):
                return theta
            theta = theta - size * gradient
        raise ConvergenceError("the loss is not what it says it is: not convex, or steeper than its constants")
