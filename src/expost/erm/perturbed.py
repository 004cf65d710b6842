"""The minimiser of a perturbed objective, certified to a public tolerance, for every set of rows.

F(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ − θ₀‖² + bᵀθ/n, θ₀ released before, b noise. F is λ-strongly convex and C-smooth, C = c
+ λ. Newton's method with a line search finds the minimiser in a few steps. Should it not, gradient descent does, in a
number of steps that is known beforehand: no rows can make it fail.

*Theorem.* Let computed gradients be off by at most e in ℓ₂ and let τ ≥ 4(C/λ)·e. From any θ within distance D of the
minimiser, steps of size 1/C reach ‖computed gradient‖ + e ≤ τ after at most (C/λ)·ln(4CD/τ) + 1 of them.
*Proof.* A step with the exact gradient contracts the distance to the minimiser by 1 − λ/C; the error adds e/C at most.
So after k steps the distance is at most e^{−kλ/C}D + e/λ, the gradient there at most C times that, and the computed
one e more: C·e^{−kλ/C}D + (C/λ)e + e. With k as stated the first term is at most τ/4, the second at most τ/4; adding e
again, which is at most τ/4, makes no more than τ. ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.erm._private import Private
from expost.erm._rounding import INFLATION, gamma
from expost.erm._types import FloatArray
from expost.erm.exceptions import ConvergenceError
from expost.erm.losses import Loss
from expost.erm.objective import Objective, gradient_rounding

_NEWTON_STEPS = 60
_HALVINGS = 40


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
    def reach(self) -> float:
        """Bound on ‖θ − θ₀‖ of the minimiser: λ(θ − θ₀) = −mean φ′x − b/n, and ‖x‖₂ ≤ 1."""
        return (self.loss.lipschitz(math.inf) + self.pull) / self.lam

    @property
    def rounding(self) -> float:
        """e, at every point within twice that distance: loss, penalty and linear term."""
        norm = self.center_norm + 2.0 * self.reach
        slope = self.loss.lipschitz(math.inf)
        whole = gradient_rounding(self.loss, self.n, self.p, self.lam, norm, slope)
        return INFLATION * (whole + gamma(8) * (slope + self.lam * (norm + self.center_norm) + self.pull))

    @property
    def steepness(self) -> float:
        """C/λ."""
        return (self.loss.curvature + self.lam) / self.lam

    @property
    def tolerance(self) -> float:
        """τ, which ‖∇F‖ at the point returned does not exceed."""
        return 4.0 * self.steepness * self.rounding

    @property
    def distance(self) -> float:
        """Bound on the ℓ₂ distance of the point returned from the exact minimiser: τ/λ."""
        return INFLATION * self.tolerance / self.lam

    @property
    def steps(self) -> int:
        """Steps of gradient descent that suffice from θ₀."""
        size = 4.0 * (self.loss.curvature + self.lam) * 2.0 * self.reach / self.tolerance
        return math.ceil(self.steepness * math.log(max(size, math.e))) + 2


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
            u = self.objective.predictions(theta)
            gradient = self._gradient(theta, u, errors.lam, center, linear)
            if self._accepted(gradient, errors):
                return theta
            following = self._newton(theta, u, gradient, errors.lam, center, linear)
            if following is None:
                break
            theta = following
        return self._descend(errors, center, linear)

    def _accepted(self, gradient: FloatArray, errors: PerturbedErrors) -> bool:
        length = float(np.linalg.norm(gradient)) * (1.0 + gamma(errors.p + 4))
        return length + errors.rounding <= errors.tolerance

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
            step = -np.linalg.solve(hessian, gradient)
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
            gradient = self._gradient(theta, self.objective.predictions(theta), errors.lam, center, linear)
            if self._accepted(gradient, errors):
                return theta
            theta = theta - size * gradient
        raise ConvergenceError("the loss is not what it says it is: not convex, or steeper than its constants")
