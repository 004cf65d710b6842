"""How exact a minimiser is asked to be: public numbers, and why every data set can be that exact.

*Lemma (the tolerance is met at the minimiser).* Let θ* be the minimiser, over the ball if there is
one, ν* its multiplier, and θ̂ the float64 vector nearest to a point within 2⁻⁶⁰N of θ*,
N = min(radius, ``loss.radius(lam)``). Then what :func:`expost.erm.certificate.certificate` computes
at θ̂, with ``careful``, is at most :func:`default_tolerance`.

*Proof.* Let G = min(``loss.lipschitz(N)``, √(2c·null_value)) and r the rounding bound for norm N
and mean slope G. ‖θ̂ − θ*‖ ≤ 1.01uN, so the norm, the mean slope and with them the rounding bound at
θ̂ are those at θ* but for a part of 10⁻⁷. There mean|φ'| ≤ G: a non-negative loss with second
derivative at most c has φ'² ≤ 2cφ, and mean φ ≤ L(θ*) ≤ L(0) ≤ null_value, 0 being in every ball.
∇L(θ*) + ν*θ* = 0, hence ‖∇L(θ̂) + ν*θ̂‖ ≤ 1.01(c + λ + ν*)uN, where ν*N ≤ G + λN. If ν* > 0 the norm
of θ̂ is the radius but for its rounding, so θ̂ is seen to be on the sphere, and ν is chosen to make
the residual smallest: ν* makes it no smaller, except for the rounding of ν, 3u(G + λN). The
certificate is off by r in the gradient, adds r for that and 3u(G + λN) for νθ̂. In all, and with
(c + λ)uN ≤ r, it is at most 3.1r + 8u(G + λN); the tolerance is 4r + 32u(G + λN) or more. ∎ (What
is left is for rows off the grid of ``expost.erm.exact``.)

*Corollary.* Whoever finds θ* to 60 binary digits has a certified minimiser. ``expost.erm.exact``
does, for every loss with ``derivative_in_units``. For the others ``expost.erm.descent`` meets the
tolerance directly.
"""

from __future__ import annotations

import math

from expost.erm._rounding import INFLATION, UNIT, gamma, round_up
from expost.erm.losses import Loss
from expost.erm.objective import gradient_rounding


def default_tolerance(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> float:
    """Return a gradient tolerance that is public and that rounding cannot keep any rows from reaching.

    It is four times the rounding bound at the minimiser, and at least 10⁻¹².

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> default_tolerance(LogisticLoss(), 100_000, 38, 0.005) < 1e-11
    True
    """
    norm = loss.radius(lam) if radius is None else min(radius, loss.radius(lam))
    slope = min(loss.lipschitz(norm), math.sqrt(2.0 * loss.curvature * loss.null_value))
    rounding = gradient_rounding(loss, n, p, lam, norm, slope) + gamma(8) * (slope + lam * norm)
    return max(1e-12, 4.0 * rounding)


def radius_tolerance(p: int, radius: float) -> float:
    """Return ρ, by how much the norm of a θ rescaled to ``radius`` may miss it in floating point.

    Examples
    --------
    >>> radius_tolerance(38, 7.5) < 1e-13
    True
    """
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
    >>> from expost.erm.losses import SquaredLoss
    >>> distance_bound(SquaredLoss(), 0.01, 1e-10) < 1.0000001e-8
    True
    """
    return round_up((tolerance + (loss.curvature + lam) * radius_error) / lam)


def minimum_error_bound(loss: Loss, lam: float, norm: float, tolerance: float, radius_error: float) -> float:
    """Bound |L(θ̂) − min L| by τ²/(2λ) + (G + λ(N + ρ))ρ.

    θ̂ is certified as in :func:`distance_bound`. ``norm`` is N, a bound on ‖θ̂‖ and on
    ‖θ*‖, and G = ``loss.lipschitz(N + ρ)``.

    Proof. With e = ∇L(θ̂) + νθ̂ and w in the ball, strong convexity gives L(w) ≥ L(θ̂) + ⟨e − νθ̂, w − θ̂⟩
    + (λ/2)‖w − θ̂‖² ≥ L(θ̂) − τ²/(2λ) − ν⟨θ̂, w − θ̂⟩, and ν⟨θ̂, w − θ̂⟩ ≤ ν‖θ̂‖(‖w‖ − ‖θ̂‖) ≤ ν‖θ̂‖ρ ≤ (G
    + λ‖θ̂‖)ρ, because ν‖θ̂‖ ≤ ‖∇L(θ̂)‖ for the multiplier that makes ‖e‖ smallest. Conversely θ̂ may lie
    outside by ρ at most; moving it back to the ball changes L by at most (G + λ(N + ρ))ρ. ∎

    Examples
    --------
    >>> from expost.erm.losses import SquaredLoss
    >>> minimum_error_bound(SquaredLoss(), 0.01, 5.0, 1e-10, 0.0) < 1e-17
    True
    """
    outside = norm + radius_error
    boundary = (loss.lipschitz(outside) + lam * outside) * radius_error
    return INFLATION * (tolerance * tolerance / (2.0 * lam) + boundary)


def ridge_tolerance(p: int, lam: float, norm: float) -> float:
    """Return the public residual tolerance of the ridge solver.

    A Cholesky solve has residual at most γ_{3p+1}·p·‖H‖‖θ‖ (Higham, theorem 10.4); the eigenvalue path is
    of the same order. It enters the excess risk squared, so a generous constant costs nothing. The float64
    vector nearest to the minimiser meets it for all sums: H is off by 2u(1 + λ), the products by γ_{p+2}, θ by u, and
    νN ≤ ‖Xᵀy/n‖ ≤ 1, so the residual is below (2p + 12)u(1 + (1 + λ)N), and what is added for rounding is below
    (4p + 34)u of the same.
    """
    return 16.0 * (p + 4) ** 2 * UNIT * (1.0 + (1.0 + lam) * norm)
