"""How far off minimisers, excess risks and gradients may be: public numbers.

They are to be had before a row is looked at, so plans can charge them first. The risks
(``expost.solve.risk``), which have seen rows, carry the same objects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from expost.numeric import INFLATION, UNIT, gamma, summation_length
from expost.solve.descent import (
    default_tolerance,
    distance_bound,
    minimum_error_bound,
    radius_tolerance,
    require_reachable,
    ridge_tolerance,
)
from expost.solve.losses import Loss, SquaredLoss
from expost.solve.objective import gradient_rounding


class ErrorBounds(Protocol):
    """What a plan asks of the arithmetic. A :class:`~expost.solve.risk.Risk` offers the same."""

    @property
    def distance_bound(self) -> float:
        """Bound on the distance of the computed minimiser from the exact one."""

    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed excess risk over ‖θ‖₂ ≤ radius."""

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed ‖∇L(θ)‖₂ over ‖θ‖₂ ≤ radius."""


class _MinimiserErrors:
    """What follows for a minimiser from the tolerance that its gradient met; subclasses are frozen dataclasses."""

    loss: Loss
    p: int
    lam: float
    radius: float | None
    tolerance: float

    @cached_property
    def norm(self) -> float:
        """Bound on the norm of the exact minimiser."""
        natural = self.loss.radius(self.lam)
        return natural if self.radius is None else min(self.radius, natural)

    @cached_property
    def radius_tolerance(self) -> float:
        """Return ρ, by how much ‖θ̂‖ may miss the radius; zero without a ball."""
        return 0.0 if self.radius is None or math.isinf(self.radius) else radius_tolerance(self.p, self.radius)

    @cached_property
    def distance_bound(self) -> float:
        """Bound on ‖θ̂ − θ*‖₂."""
        return distance_bound(self.loss, self.lam, self.tolerance, self.radius_tolerance)

    @cached_property
    def minimum_error(self) -> float:
        """Bound on |L(θ̂) − min L|."""
        reach = self.norm + self.distance_bound
        return minimum_error_bound(self.loss, self.lam, reach, self.tolerance, self.radius_tolerance)


@dataclass(frozen=True)
class GeneralErrors(_MinimiserErrors):
    """Error bounds for :func:`~expost.solve.minimisation.minimise` and :class:`~expost.solve.risk.GeneralRisk`.

    Parameters
    ----------
    loss, n, p, lam
        What is minimised, over how many rows and columns.
    radius : float, optional
        Of the ball, if there is one.
    tolerance : float, optional
        Largest certified gradient norm accepted: :func:`~expost.solve.descent.default_tolerance` if not given, and
        not less than that, which is what every data set is certain to reach.

    Raises
    ------
    ValueError
        If no minimiser is certain to be found for these numbers; no rows have been looked at.

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss
    >>> bounds = GeneralErrors(LogisticLoss(), n=100_000, p=38, lam=0.005)
    >>> bounds.distance_bound < 1e-8, bounds.gradient_error_bound(7.5) < 1e-11
    (True, True)
    """

    loss: Loss
    n: int
    p: int
    lam: float
    radius: float | None = None
    tolerance: float = math.nan

    def __post_init__(self) -> None:
        if not 0.0 < self.lam < math.inf:
            raise ValueError("lam must be positive and finite")
        if self.radius is not None and not 0.0 < self.radius < math.inf:
            raise ValueError("radius must be positive and finite; leave it out for no ball")
        require_reachable(self.loss, self.n, self.p, self.lam, self.radius)
        least = default_tolerance(self.loss, self.n, self.p, self.lam, self.radius)
        if math.isnan(self.tolerance):
            object.__setattr__(self, "tolerance", least)
        if not least <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be finite and at least {least:.6g}, which is what all rows can reach")

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed ‖∇L(θ)‖₂ over ‖θ‖₂ ≤ radius."""
        slope = self.loss.lipschitz(radius)
        rounding = gradient_rounding(self.loss, self.n, self.p, self.lam, radius, slope)
        return INFLATION * (rounding + gamma(self.p + 4) * (slope + self.lam * radius))

    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed excess risk over ‖θ‖₂ ≤ radius.

        Proof. With m the larger of radius and ‖θ̂‖'s bound N, a prediction is off by γ_p·m, hence φ by
        lipschitz(m)·γ_p·m plus EVALUATION_ULPS·u·max(1, φ), for θ and for θ̂. The blocked mean of
        differences, each at most maximum(m), adds γ_K·maximum(m), K = min(n, 8192) + ⌈n/8192⌉ + 2; the
        regulariser γ_{p+6}(λ/2)(radius + N)². To this comes the inexact minimum,
        :func:`~expost.solve.descent.minimum_error_bound`. ∎
        """
        loss = self.loss
        norm = self.norm + self.distance_bound
        size = max(radius, norm)
        top = max(1.0, loss.maximum(size))
        evaluation = 2.0 * (loss.lipschitz(size) * gamma(self.p) * size + loss.EVALUATION_ULPS * UNIT * top)
        summation = gamma(summation_length(self.n) + 4) * top
        regulariser = gamma(self.p + 6) * 0.5 * self.lam * (radius + norm) ** 2
        return INFLATION * (evaluation + summation + regulariser + self.minimum_error)


@dataclass(frozen=True)
class RidgeErrors(_MinimiserErrors):
    """Error bounds for :class:`~expost.solve.risk.RidgeRisk`.

    Parameters
    ----------
    p, lam
        Number of columns and λ.
    radius : float
        Of the ball; ``inf`` for none.

    Examples
    --------
    >>> RidgeErrors(p=77, lam=0.005, radius=14.2).excess_error_bound(14.2) < 1e-9
    True
    """

    p: int
    lam: float
    radius: float
    tolerance: float = field(init=False, repr=False)  # largest certified residual accepted
    loss: Loss = field(init=False, repr=False, default=SquaredLoss())

    def __post_init__(self) -> None:
        if not 0.0 < self.lam < math.inf:
            raise ValueError("lam must be positive and finite")
        if not self.radius > 0.0:
            raise ValueError("radius must be positive")
        require_reachable(self.loss, 1, self.p, self.lam, None if math.isinf(self.radius) else self.radius)
        object.__setattr__(self, "tolerance", ridge_tolerance(self.p, self.lam, self.norm))

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed ‖∇L(θ)‖₂: each product as in :meth:`excess_error_bound`."""
        norm = self.norm + self.distance_bound
        steep = 1.0 + self.lam
        return INFLATION * gamma(2 * self.p + 16) * (steep * (radius + 2.0 * norm) + 1.0)

    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed excess risk over ‖θ‖₂ ≤ radius, from p, λ and the radii only.

        Proof. Let N bound ‖θ̂‖, D = radius + N bound ‖θ − θ̂‖ and M = 1 + λ. Entrywise absolute values of
        XᵀX/n have Frobenius norm at most 1 (‖x‖₁ ≤ 1), so H, its rounding (2u·M) and the matrix-vector
        product (γ_p·M·‖·‖) are all bounded through M. The quadratic form is off by at most γ_{2p+8}·M·D²,
        the gradient by γ_{p+6}(MN + 1) and its product with θ − θ̂ by γ_{2p+8}(MN + 1)D. To this comes the
        inexact minimum, :func:`~expost.solve.descent.minimum_error_bound`. ∎
        """
        norm = self.norm + self.distance_bound
        distance = radius + norm
        steep = 1.0 + self.lam
        rounding = gamma(2 * self.p + 16) * (steep * distance * distance + (steep * norm + 1.0) * distance)
        return INFLATION * (rounding + self.minimum_error)
