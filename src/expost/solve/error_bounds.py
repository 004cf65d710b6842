"""How exact a minimiser is asked to be, and how far off it, excess risks and gradients may be: public numbers.

They are to be had before a row is looked at, so plans can charge them first. The risks (``expost.solve.minimiser``),
which have seen rows, carry the same objects.

A minimiser is accepted by what its computed gradient proves about the exact one
(:meth:`expost.solve.objective.Gradient.certificate`). How small that has to be is a public number, and every data set
can be that exact:

*Lemma (the tolerance is met at the minimiser).* Let θ* be the minimiser, over the ball if there is one, ν* its
multiplier, and θ̂ the float64 vector nearest to a point within 2⁻⁶⁰N of θ*, N = min(radius, ``loss.radius(lam)``). Then
what the certificate says at θ̂, with ``careful``, is at most :func:`default_tolerance`.

*Proof.* Let G = min(``loss.lipschitz(N)``, √(2c·null_value)) and r the rounding bound for norm N and mean slope G. ‖θ̂
− θ*‖ ≤ 1.01uN, so the norm, the mean slope and with them the rounding bound at θ̂ are those at θ* but for a part of
10⁻⁷. There mean|φ'| ≤ G: a non-negative loss with second derivative at most c has φ'² ≤ 2cφ, and mean φ ≤ L(θ*) ≤ L(0)
≤ null_value, 0 being in every ball. ∇L(θ*) + ν*θ* = 0, hence ‖∇L(θ̂) + ν*θ̂‖ ≤ 1.01(c + λ + ν*)uN, where ν*N ≤ G + λN.
If ν* > 0 the norm of θ̂ is the radius but for its rounding, so θ̂ is seen to be on the sphere, and ν is chosen to make
the residual smallest: ν* makes it no smaller, except for the rounding of ν, 3u(G + λN). The certificate is off by r in
the gradient, adds r for that and 3u(G + λN) for νθ̂. In all, and with (c + λ)uN ≤ r, it is at most 3.1r + 8u(G + λN);
the tolerance is 4r + 32u(G + λN) or more. ∎ (What is left is for rows off the grid of ``expost.solve.exact``.)

*Corollary.* Whoever finds θ* to 60 binary digits has a certified minimiser. ``expost.solve.exact`` does, for every loss
with ``derivative_in_units``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

from expost.numeric import INFLATION, UNIT, check, gamma, round_up, summation_length
from expost.solve.losses import Loss, SquaredLoss


def gradient_rounding(loss: Loss, n: int, p: int, lam: float, norm: float, mean_slope: float) -> float:
    """Bound ‖computed ∇L(θ) − ∇L(θ)‖₂, given ‖θ‖₂ ≤ ``norm`` and mean |φ'| ≤ ``mean_slope``.

    Proof. Predictions: |û_i − u_i| ≤ γ_p·Σ_j|x_ij||θ_j| ≤ γ_p‖θ‖ since ‖x_i‖₂ ≤ 1 (Cauchy–Schwarz), which moves φ' by
    at most curvature·γ_p‖θ‖; evaluating φ' adds a relative EVALUATION_ULPS·u. Sums: entry j of Σ x_i w_i has error
    at most γ_K·Σ_i|x_ij||w_i|, K = min(n, 8192) + ⌈n/8192⌉ + 1, and the ℓ₂ norm over j of a sum of vectors is at most
    the sum of theirs, γ_K·Σ_i‖x_i‖₂|w_i| ≤ γ_K·n·mean|w|. Division by n, the product λθ and the last addition add one
    unit each. Second-order terms are far below the final inflation by 10⁻⁶. ∎
    """
    length = summation_length(n) + loss.EVALUATION_ULPS + 4
    bound = gamma(length) * mean_slope + loss.curvature * gamma(p) * norm + gamma(3) * lam * norm
    return INFLATION * bound


def default_tolerance(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> float:
    """Return a gradient tolerance that is public and that rounding cannot keep any rows from reaching.

    It is four times the rounding bound at the minimiser, and at least 10⁻¹².
    """
    norm = loss.radius(lam) if radius is None else min(radius, loss.radius(lam))
    slope = min(loss.lipschitz(norm), math.sqrt(2.0 * loss.curvature * loss.null_value))
    rounding = gradient_rounding(loss, n, p, lam, norm, slope) + gamma(8) * (slope + lam * norm)
    return max(1e-12, 4.0 * rounding)


def radius_tolerance(p: int, radius: float) -> float:
    """Return ρ, by how much the norm of a θ rescaled to ``radius`` may miss it in floating point."""
    return 2.0 * gamma(p + 8) * radius


def distance_bound(loss: Loss, lam: float, tolerance: float, radius_error: float = 0.0) -> float:
    """Return (τ + (c + λ)ρ)/λ, a bound on ‖θ̂ − θ*‖₂ from public constants only.

    Here θ* minimises L over the ball of radius R (or everywhere: ρ = 0), c = ``loss.curvature``, and θ̂
    satisfies ‖∇L(θ̂) + νθ̂‖ ≤ τ for some ν ≥ 0 with either ν > 0 and |‖θ̂‖ − R| ≤ ρ, or ν = 0 and ‖θ̂‖ ≤ R
    + ρ.

    Proof. Let r = ‖θ̂‖ if ν > 0 and r = max(R, ‖θ̂‖) if ν = 0, e = ∇L(θ̂) + νθ̂, and θ_r the minimiser over
    the ball of radius r. Strong convexity, ⟨∇L(θ_r), θ̂ − θ_r⟩ ≥ 0 (optimality of θ_r) and ν⟨θ̂, θ̂ − θ_r⟩
    ≥ 0 (‖θ_r‖ ≤ r) give λ‖θ̂ − θ_r‖² ≤ ⟨∇L(θ̂) − ∇L(θ_r), θ̂ − θ_r⟩ ≤ ⟨e, θ̂ − θ_r⟩, so ‖θ̂ − θ_r‖ ≤ τ/λ.

    It remains to compare two radii r < R (or the other way round), |R − r| ≤ ρ. Write a = θ_r and b = θ_R;
    if a is inside its ball then a = b. Otherwise ‖a‖ = r and ∇L(a) = −ν_r·a, ∇L(b) = −ν_R·b, where ‖b‖ = R
    or ν_R = 0. Then λ‖a − b‖² ≤ ⟨ν_R·b − ν_r·a, a − b⟩ = (ν_r + ν_R)⟨a, b⟩ − ν_r r² − ν_R R² ≤ (R − r)(ν_r
    r − ν_R R), using ⟨a, b⟩ ≤ rR, and ν_r r − ν_R R = ‖∇L(a)‖ − ‖∇L(b)‖ ≤ ‖∇L(a) − ∇L(b)‖ ≤ (c + λ)‖a − b‖,
    since XᵀX/n ⪯ I. (With ν_R = 0 the same chain holds with ∇L(b) = 0.) Dividing, ‖a − b‖ ≤ (c + λ)ρ/λ. ∎

    The bound is linear in ρ. Comparing values instead, λ/2·‖a − b‖² ≤ L(a) − L(b) ≤ (G + λR)ρ, gives only a
    square root, √(2(G + λR)ρ/λ): many orders of magnitude more at ρ near the rounding error.

    Examples
    --------
    >>> from expost.solve.losses import SquaredLoss
    >>> distance_bound(SquaredLoss(), 0.01, 1e-10) < 1.0000001e-8
    True
    """
    return round_up((tolerance + (loss.curvature + lam) * radius_error) / lam)


_LARGEST = 1e100  # beyond, numbers made of these leave what floating point holds
STEEPEST = 1e7  #: (c + λ)/λ beyond which a theorem's number of steps of descent is no comfort


@dataclass(frozen=True)
class DescentBounds:
    """Gradient descent that meets the tolerance in floating point: slow, and certain. Public numbers.

    The gradient is computed at the float64 vector nearest to θ, which itself is kept in integers: it is then off by at
    most e = r + (c + λ)uN, r the rounding bound, and e ≤ 2r. Let C = c + λ, ν̄ = ``lipschitz(R)``/R a bound on the
    multiplier (zero without a ball) and A ≥ 16(C + ν̄) a power of two.

    *Theorem.* Let θ⁺ be the point of the ball nearest to θ − ĝ/A. From any θ with L(θ) ≤ L(0) these steps meet
    :func:`default_tolerance` after :attr:`steps` at the latest.

    *Proof.* Write s = θ⁺ − θ and h for L less its minimum over the ball.
    (i) *Approach.* θ⁺ minimises ⟨ĝ, w − θ⟩ + (A/2)‖w − θ‖² over the ball; compare with w = θ + q(θ* − θ), q = λ/(2A),
    and use smoothness and strong convexity: h⁺ ≤ (1 − q)h + q·e²/λ + e‖s‖ − ½(A − C)‖s‖² ≤ (1 − q)h + 3q·e²/λ. So h ≤
    4e²/λ after (2A/λ)·ln(λ·null_value/e²) steps, and from then on.
    (ii) *Fall.* ⟨ĝ, s⟩ ≤ −A‖s‖² gives h⁺ ≤ h + e‖s‖ − A′‖s‖², A′ = A − C/2. A step is *small* if ‖s‖ ≤ 1.25e/A′; any
    other makes h fall by 0.31e²/A′, and a small one lets it rise by 0.25e²/A′ at most.
    (iii) *A small step certifies* the θ it starts from, unless that lies inside and θ⁺ on the sphere: ĝ + νθ⁺ = −As for
    some ν ≥ 0 (zero if θ⁺ is inside), so ‖ĝ + νθ‖ ≤ (A + ν)‖s‖ ≤ 1.38e, as ν ≤ 1.01(C + ν̄). The certificate adds r to
    that: at most 3.8r, below the tolerance of 4r.
    (iv) After a small step from inside to the sphere the next one is not of that kind. So until a step certifies, each
    two lower h by 0.06e²/A: there are at most 128A/λ. ∎

    Without a ball, e is that of norms up to ``paper_radius`` until (i) is done, and then that of the minimiser up to
    1.5 %, if e ≤ λN/200 to begin with (:attr:`certain`); it may have fallen in between, and (iv) takes longer by the
    square of that. In a ball, norms are at most its radius, and if that is at most N nothing of the kind is needed.
    """

    loss: Loss
    n: int
    p: int
    lam: float
    radius: float | None = None

    @property
    def longest(self) -> float:
        """Bound on the norm of a θ in the ball with L(θ) ≤ L(0)."""
        longest = self.loss.paper_radius(self.lam)
        return longest if self.radius is None else min(self.radius, longest)

    @property
    def shift(self) -> int:
        """log₂ A."""
        held = 0.0 if self.radius is None else self.loss.lipschitz(self.radius) / self.radius
        return math.ceil(math.log2(16.0 * (self.loss.curvature + self.lam + held)))

    def _error(self, norm: float) -> float:
        """Return e for θ of such a norm."""
        loss, lam = self.loss, self.lam
        slope = math.sqrt(2.0 * loss.curvature * loss.null_value)
        return gradient_rounding(loss, self.n, self.p, lam, norm, slope) + (loss.curvature + lam) * UNIT * norm

    @property
    def certain(self) -> bool:
        """Whether the theorem applies, and in a number of steps worth the name."""
        natural = self.loss.radius(self.lam)
        near = self.longest <= natural or self._error(self.longest) <= self.lam * natural / 200.0
        return near and (self.loss.curvature + self.lam) / self.lam <= STEEPEST

    @property
    def steps(self) -> int:
        """The theorem's number of steps."""
        first, last = self._error(self.longest), self._error(min(self.longest, self.loss.radius(self.lam)))
        far = max(0.0, math.log(self.lam) + math.log(self.loss.null_value) - 2.0 * math.log(first))
        steps = math.ldexp(1.0, self.shift) / self.lam * (2.0 * far + 130.0 * (first / last) ** 2)
        return math.ceil(min(steps, 1e300)) + 3


class ErrorBounds(ABC):
    """What a plan asks of the arithmetic, and what follows for a minimiser from the tolerance that its gradient met."""

    loss: Loss
    p: int
    lam: float
    radius: float | None
    tolerance: float

    def _require_reachable(self, n: int) -> None:
        """Raise unless a certified minimiser is certain to be found whatever the rows.

        It is for every loss that provides ``derivative_in_units``, as the library's do.
        """
        loss, lam, radius = self.loss, self.lam, None if self.radius == math.inf else self.radius
        if not (loss.curvature + lam) / lam <= _LARGEST:
            raise ValueError(f"lam = {lam:.3g} is too small for a loss of curvature {loss.curvature:.3g}")
        if radius is not None and not 1.0 / _LARGEST <= radius <= _LARGEST:
            raise ValueError(
                f"radius = {radius:.3g} is too extreme; it must lie between {1.0 / _LARGEST:g} and {_LARGEST:g}"
            )
        if not loss.has_units and not DescentBounds(loss, n, self.p, lam, radius).certain:
            raise ValueError(
                f"lam = {lam:.3g} is too small for the {loss.name} loss: no minimiser is certain to be found in "
                f"floating point. Pass a larger lam ({loss.curvature / STEEPEST:.3g} will do, or more if there are "
                f"very many rows or columns), or give the loss a derivative_in_units."
            )

    @cached_property
    def norm(self) -> float:
        """N, a bound on the norm of the exact minimiser."""
        natural = self.loss.radius(self.lam)
        return natural if self.radius is None else min(self.radius, natural)

    @cached_property
    def radius_tolerance(self) -> float:
        """ρ, by how much ‖θ̂‖ may miss the radius; zero without a ball."""
        return 0.0 if self.radius is None or math.isinf(self.radius) else radius_tolerance(self.p, self.radius)

    @cached_property
    def distance_bound(self) -> float:
        """Bound on the distance of the computed minimiser θ̂ from the exact one."""
        return distance_bound(self.loss, self.lam, self.tolerance, self.radius_tolerance)

    @cached_property
    def minimum_error(self) -> float:
        """Bound on |L(θ̂) − min L|: τ²/(2λ) + (G + λ(N + ρ))ρ, G = ``loss.lipschitz(N + ρ)``, ‖θ̂‖ ≤ N.

        Proof. θ̂ is certified as in :func:`distance_bound`. With e = ∇L(θ̂) + νθ̂ and w in the ball, strong convexity
        gives L(w) ≥ L(θ̂) + ⟨e − νθ̂, w − θ̂⟩ + (λ/2)‖w − θ̂‖² ≥ L(θ̂) − τ²/(2λ) − ν⟨θ̂, w − θ̂⟩, and ν⟨θ̂, w − θ̂⟩ ≤
        ν‖θ̂‖(‖w‖ − ‖θ̂‖) ≤ ν‖θ̂‖ρ ≤ (G + λ‖θ̂‖)ρ, because ν‖θ̂‖ ≤ ‖∇L(θ̂)‖ for the multiplier that makes ‖e‖ smallest.
        Conversely θ̂ may lie outside by ρ at most; moving it back to the ball changes L by at most (G + λ(N + ρ))ρ. ∎
        """
        outside = self.norm + self.distance_bound + self.radius_tolerance
        boundary = (self.loss.lipschitz(outside) + self.lam * outside) * self.radius_tolerance
        return INFLATION * (self.tolerance * self.tolerance / (2.0 * self.lam) + boundary)

    @abstractmethod
    def excess_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed excess risk over ‖θ‖₂ ≤ radius."""

    @abstractmethod
    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed ‖∇L(θ)‖₂ over ‖θ‖₂ ≤ radius."""


@dataclass(frozen=True)
class GeneralErrors(ErrorBounds):
    """Error bounds for :func:`~expost.solve.minimiser.minimise` and :class:`~expost.solve.minimiser.GeneralRisk`.

    Parameters
    ----------
    loss, n, p, lam
        What is minimised, over how many rows and columns.
    radius : float, optional
        Of the ball, if there is one.
    tolerance : float, optional
        Largest certified gradient norm accepted: :func:`default_tolerance` if not given, and
        not less than that, which is what every data set is certain to reach.

    Raises
    ------
    ValueError
        If no minimiser is certain to be found for these numbers; no rows have been looked at.
    """

    loss: Loss
    n: int
    p: int
    lam: float
    radius: float | None = None
    tolerance: float = math.nan

    def __post_init__(self) -> None:
        check(lam=self.lam)
        if self.radius is not None and not 0.0 < self.radius < math.inf:
            raise ValueError("radius must be positive and finite; leave it out for no ball")
        self._require_reachable(self.n)
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
        regulariser γ_{p+6}(λ/2)(radius + N)². To this comes the inexact minimum. ∎
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
class RidgeErrors(ErrorBounds):
    """Error bounds for :class:`~expost.solve.minimiser.RidgeRisk`.

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
        check(lam=self.lam)
        if not self.radius > 0.0:
            raise ValueError("radius must be positive")
        self._require_reachable(1)
        # A Cholesky solve has residual at most γ_{3p+1}·p·‖H‖‖θ‖ (Higham, theorem 10.4); the eigenvalue path is of the
        # same order. It enters the excess risk squared, so a generous constant costs nothing. The float64 vector
        # nearest to the minimiser meets it for all sums: H is off by 2u(1 + λ), the products by γ_{p+2}, θ by u, and
        # νN ≤ ‖Xᵀy/n‖ ≤ 1, so the residual is below (2p + 12)u(1 + (1 + λ)N), and what is added for rounding is below
        # (4p + 34)u of the same.
        tolerance = 16.0 * (self.p + 4) ** 2 * UNIT * (1.0 + (1.0 + self.lam) * self.norm)
        object.__setattr__(self, "tolerance", tolerance)

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
        inexact minimum. ∎
        """
        norm = self.norm + self.distance_bound
        distance = radius + norm
        steep = 1.0 + self.lam
        rounding = gamma(2 * self.p + 16) * (steep * distance * distance + (steep * norm + 1.0) * distance)
        return INFLATION * (rounding + self.minimum_error)
