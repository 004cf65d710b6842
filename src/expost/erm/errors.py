"""How far a computed minimiser, risk or gradient may be off, from public numbers only.

A search settles what it will pay before it looks at a row; rounding and an inexact minimum are part of that. The proofs
stand where the computation is: `expost.erm.minimise` and `expost.erm.risk`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from expost.erm._rounding import INFLATION, UNIT, gamma, summation_length
from expost.erm.losses import Loss, SquaredLoss
from expost.erm.minimise import default_tolerance, distance_bound, radius_tolerance
from expost.erm.objective import gradient_rounding


class Errors(Protocol):
    """Bounds on what floating point and an inexact minimum can do; public."""

    @property
    def distance(self) -> float:
        """Bound on the ℓ₂ distance of the computed minimiser from the exact one."""
        ...

    def excess(self, radius: float) -> float:
        """Return a bound on the error of an excess risk over ‖θ‖₂ ≤ radius."""
        ...

    def gradient(self, radius: float) -> float:
        """Return a bound on the error of a gradient norm over ‖θ‖₂ ≤ radius."""
        ...


def minimum_error_bound(loss: Loss, lam: float, norm: float, tolerance: float, radius_error: float) -> float:
    """Bound |L(θ̂) − min L| by τ²/(2λ) + (G + λ(N + ρ))ρ.

    θ̂ is certified as in :func:`expost.erm.minimise.distance_bound`. ``norm`` is N, a bound on ‖θ̂‖ and on
    ‖θ*‖, and G = ``loss.lipschitz(N + ρ)``.

    Proof. With e = ∇L(θ̂) + νθ̂ and w in the ball, strong convexity gives L(w) ≥ L(θ̂) + ⟨e − νθ̂, w − θ̂⟩
    + (λ/2)‖w − θ̂‖² ≥ L(θ̂) − τ²/(2λ) − ν⟨θ̂, w − θ̂⟩, and ν⟨θ̂, w − θ̂⟩ ≤ ν‖θ̂‖(‖w‖ − ‖θ̂‖) ≤ ν‖θ̂‖ρ ≤ (G
    + λ‖θ̂‖)ρ, because ν‖θ̂‖ ≤ ‖∇L(θ̂)‖ for the multiplier that makes ‖e‖ smallest. Conversely θ̂ may lie
    outside by ρ at most; moving it back to the ball changes L by at most (G + λ(N + ρ))ρ. ∎

    Examples
    --------
    >>> minimum_error_bound(SquaredLoss(), 0.01, 5.0, 1e-10, 0.0) < 1e-17
    True
    """
    outside = norm + radius_error
    boundary = (loss.lipschitz(outside) + lam * outside) * radius_error
    return INFLATION * (tolerance * tolerance / (2.0 * lam) + boundary)


@dataclass(frozen=True)
class RidgeErrors:
    """Errors of ridge regression from exact sums (:class:`expost.erm.risk.RidgeRisk`).

    Examples
    --------
    >>> RidgeErrors(38, 0.005, math.inf).excess(1.0) < 1e-11
    True
    """

    p: int
    lam: float
    radius: float

    @cached_property
    def norm(self) -> float:
        """Bound on the exact minimiser's norm."""
        return min(self.radius, SquaredLoss().radius(self.lam))

    @cached_property
    def radius_error(self) -> float:
        """ρ, by how much the norm of a minimiser on the sphere may miss the radius."""
        return 0.0 if math.isinf(self.radius) else radius_tolerance(self.p, self.radius)

    @cached_property
    def tolerance(self) -> float:
        """The residual allowed to the solver.

        A Cholesky solve has residual at most γ_{3p+1}·p·‖H‖‖θ‖ (Higham, theorem 10.4); the eigenvalue path is
        of the same order. It enters the excess risk squared, so a generous constant costs nothing.
        """
        return 16.0 * (self.p + 4) ** 2 * UNIT * (1.0 + (1.0 + self.lam) * self.norm)

    @cached_property
    def distance(self) -> float:
        """Bound on the ℓ₂ distance of the computed minimiser from the exact one."""
        return distance_bound(SquaredLoss(), self.lam, self.tolerance, self.radius_error)

    def excess(self, radius: float) -> float:
        """Return a bound on the error of an excess risk over ‖θ‖₂ ≤ radius, from n, p, λ and the radii only.

        Proof. Let N bound ‖θ̂‖, D = radius + N bound ‖θ − θ̂‖ and M = 1 + λ. Entrywise absolute values of
        XᵀX/n have Frobenius norm at most 1 (‖x‖₁ ≤ 1), so H, its rounding (2u·M) and the matrix-vector
        product (γ_p·M·‖·‖) are all bounded through M. The quadratic form is off by at most γ_{2p+8}·M·D²,
        the gradient by γ_{p+6}(MN + 1) and its product with θ − θ̂ by γ_{2p+8}(MN + 1)D. To this comes the
        inexact minimum, :func:`minimum_error_bound`. ∎
        """
        norm = self.norm + self.distance
        distance = radius + norm
        steep = 1.0 + self.lam
        rounding = gamma(2 * self.p + 16) * (steep * distance * distance + (steep * norm + 1.0) * distance)
        solver = minimum_error_bound(SquaredLoss(), self.lam, norm, self.tolerance, self.radius_error)
        return INFLATION * (rounding + solver)

    def gradient(self, radius: float) -> float:
        """Return a bound on the error of a gradient norm over ‖θ‖₂ ≤ radius: each product as in :meth:`excess`."""
        norm = self.norm + self.distance
        steep = 1.0 + self.lam
        return INFLATION * gamma(2 * self.p + 16) * (steep * (radius + 2.0 * norm) + 1.0)


@dataclass(frozen=True)
class GeneralErrors:
    """Errors of any loss by passes over the rows (:class:`expost.erm.risk.GeneralRisk`).

    ``radius`` is None where the minimum is unconstrained, ``stated_tolerance`` where it is the default one.
    """

    loss: Loss
    n: int
    p: int
    lam: float
    radius: float | None = None
    stated_tolerance: float | None = None

    @cached_property
    def tolerance(self) -> float:
        """The certified gradient norm allowed to the minimiser."""
        if self.stated_tolerance is not None:
            return self.stated_tolerance
        return default_tolerance(self.loss, self.n, self.p, self.lam, self.radius)

    @cached_property
    def radius_error(self) -> float:
        """ρ, by how much the norm of a minimiser on the sphere may miss the radius."""
        return 0.0 if self.radius is None else radius_tolerance(self.p, self.radius)

    @cached_property
    def distance(self) -> float:
        """Bound on the ℓ₂ distance of the computed minimiser from the exact one."""
        return distance_bound(self.loss, self.lam, self.tolerance, self.radius_error)

    @cached_property
    def norm(self) -> float:
        """Bound on the computed minimiser's norm."""
        natural = self.loss.radius(self.lam)
        return (natural if self.radius is None else min(self.radius, natural)) + self.distance

    @cached_property
    def minimum(self) -> float:
        """Bound on how far the computed minimum of L is from the exact one."""
        return minimum_error_bound(self.loss, self.lam, self.norm, self.tolerance, self.radius_error)

    def excess(self, radius: float) -> float:
        """Return a bound on the error of an excess risk over ‖θ‖₂ ≤ radius, from public numbers only.

        Proof. With m the larger of radius and ‖θ̂‖'s bound N, a prediction is off by γ_p·m, hence φ by
        lipschitz(m)·γ_p·m plus EVALUATION_ULPS·u·max(1, φ), for θ and for θ̂. The blocked mean of
        differences, each at most maximum(m), adds γ_K·maximum(m), K = min(n, 8192) + ⌈n/8192⌉ + 2; the
        regulariser γ_{p+6}(λ/2)(radius + N)². To this comes the inexact minimum,
        :func:`minimum_error_bound`. ∎
        """
        loss = self.loss
        size = max(radius, self.norm)
        top = max(1.0, loss.maximum(size))
        evaluation = 2.0 * (loss.lipschitz(size) * gamma(self.p) * size + loss.EVALUATION_ULPS * UNIT * top)
        summation = gamma(summation_length(self.n) + 4) * top
        regulariser = gamma(self.p + 6) * 0.5 * self.lam * (radius + self.norm) ** 2
        return INFLATION * (evaluation + summation + regulariser + self.minimum)

    def gradient(self, radius: float) -> float:
        """Return a bound on the error of a gradient norm over ‖θ‖₂ ≤ radius, from public numbers only."""
        slope = self.loss.lipschitz(radius)
        rounding = gradient_rounding(self.loss, self.n, self.p, self.lam, radius, slope)
        return INFLATION * (rounding + gamma(self.p + 4) * (slope + self.lam * radius))
