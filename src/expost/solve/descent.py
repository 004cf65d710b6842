"""What a minimiser is accepted by, how exact it is asked to be, and gradient descent that is certain to get there.

A minimiser is accepted by what its computed gradient proves about the exact one (:func:`certificate`). How small that
has to be is a public number, and every data set can be that exact:

*Lemma (the tolerance is met at the minimiser).* Let θ* be the minimiser, over the ball if there is
one, ν* its multiplier, and θ̂ the float64 vector nearest to a point within 2⁻⁶⁰N of θ*,
N = min(radius, ``loss.radius(lam)``). Then what :func:`certificate` computes
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
is left is for rows off the grid of ``expost.solve.exact``.)

*Corollary.* Whoever finds θ* to 60 binary digits has a certified minimiser. ``expost.solve.exact`` does, for every loss
with ``derivative_in_units``.

For losses that are only known in floating point, *gradient descent* meets the tolerance directly: slow, and certain.
The gradient is computed at the float64 vector nearest to θ, which itself is kept in integers: it is then off by at most
e = r + (c + λ)uN, r the rounding bound, and e ≤ 2r. Let C = c + λ, ν̄ = ``lipschitz(R)``/R a bound on the multiplier
(zero without a ball) and A ≥ 16(C + ν̄) a power of two.

*Theorem.* Let θ⁺ be the point of the ball nearest to θ − ĝ/A. From any θ with L(θ) ≤ L(0) these
steps meet :func:`expost.solve.descent.default_tolerance` after :func:`descent_steps` at the latest.

*Proof.* Write s = θ⁺ − θ and h for L less its minimum over the ball.
(i) *Approach.* θ⁺ minimises ⟨ĝ, w − θ⟩ + (A/2)‖w − θ‖² over the ball; compare with
w = θ + q(θ* − θ), q = λ/(2A), and use smoothness and strong convexity: h⁺ ≤ (1 − q)h + q·e²/λ +
e‖s‖ − ½(A − C)‖s‖² ≤ (1 − q)h + 3q·e²/λ. So h ≤ 4e²/λ after (2A/λ)·ln(λ·null_value/e²) steps, and
from then on.
(ii) *Fall.* ⟨ĝ, s⟩ ≤ −A‖s‖² gives h⁺ ≤ h + e‖s‖ − A′‖s‖², A′ = A − C/2. A step is *small* if
‖s‖ ≤ 1.25e/A′; any other makes h fall by 0.31e²/A′, and a small one lets it rise by 0.25e²/A′ at most.
(iii) *A small step certifies* the θ it starts from, unless that lies inside and θ⁺ on the sphere:
ĝ + νθ⁺ = −As for some ν ≥ 0 (zero if θ⁺ is inside), so ‖ĝ + νθ‖ ≤ (A + ν)‖s‖ ≤ 1.38e, as
ν ≤ 1.01(C + ν̄). The certificate adds r to that: at most 3.8r, below the tolerance of 4r.
(iv) After a small step from inside to the sphere the next one is not of that kind. So until a step
certifies, each two lower h by 0.06e²/A: there are at most 128A/λ. ∎

Without a ball, e is that of norms up to ``paper_radius`` until (i) is done, and then that of the
minimiser up to 1.5 %, if e ≤ λN/200 to begin with (:func:`descent_is_certain`); it may have fallen
in between, and (iv) takes longer by the square of that. In a ball, norms are at most its radius, and
if that is at most N nothing of the kind is needed.
"""

from __future__ import annotations

import math

import numpy as np

from expost.exceptions import ConvergenceError
from expost.numeric import INFLATION, UNIT, AnyArray, FloatArray, gamma, round_up
from expost.solve.losses import Loss, array_to_units, norm, to_floats, to_units
from expost.solve.objective import Gradient, Objective, gradient_rounding


def certificate(
    theta: FloatArray, gradient: Gradient, radius: float, rho: float, *, careful: bool = False
) -> tuple[float, float]:
    """Return the multiplier ν and a certified bound on ‖∇L(θ) + νθ‖₂.

    Any ν ≥ 0 is admissible on the sphere; the one that makes the residual shortest is taken. Inside, ν = 0.

    Parameters
    ----------
    theta, gradient
        The point and what was computed there.
    radius, rho
        Of the ball (``inf`` for none), and how far off ‖θ‖ may be for θ to count as on the sphere.
    careful
        Sum the products in ν exactly, so that ν has all its digits whatever p is.
    """
    square = float(theta @ theta)
    norm = math.sqrt(square)
    # The computed norm is within γ(p+2) of the true one, so half of ρ here certifies all of it.
    on_sphere = square > 0.0 and abs(norm - radius) <= 0.5 * rho
    along = math.fsum((gradient.vector * theta).tolist()) if careful else float(gradient.vector @ theta)
    nu = max(0.0, -along / square) if on_sphere else 0.0
    residual = gradient.vector + nu * theta
    bound = float(np.linalg.norm(residual)) * (1.0 + gamma(theta.size + 4))
    return nu, INFLATION * (bound + gradient.rounding + gamma(3) * nu * norm)


def default_tolerance(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> float:
    """Return a gradient tolerance that is public and that rounding cannot keep any rows from reaching.

    It is four times the rounding bound at the minimiser, and at least 10⁻¹².

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss
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
    >>> from expost.solve.losses import SquaredLoss
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
    >>> from expost.solve.losses import SquaredLoss
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


_MOST = 1e100  # beyond, numbers made of these leave what floating point holds
_STEEPEST = 1e7  # (c + λ)/λ beyond which the theorem's number of steps is no comfort


def require_reachable(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> None:
    """Raise unless a certified minimiser is certain to be found whatever the rows; public numbers only.

    It is for every loss that provides ``derivative_in_units``, as the library's do.
    """
    if not (loss.curvature + lam) / lam <= _MOST:
        raise ValueError(f"lam = {lam:.3g} is too small for a loss of curvature {loss.curvature:.3g}")
    if radius is not None and not 1.0 / _MOST <= radius <= _MOST:
        raise ValueError(f"radius = {radius:.3g} is too extreme; it must lie between {1.0 / _MOST:g} and {_MOST:g}")
    if not loss.has_units and not descent_is_certain(loss, n, p, lam, radius):
        raise ValueError(
            f"lam = {lam:.3g} is too small for the {loss.name} loss: no minimiser is certain to be found in floating "
            f"point. Pass a larger lam ({loss.curvature / _STEEPEST:.3g} will do, or more if there are very many rows "
            f"or columns), or give the loss a derivative_in_units."
        )


def descent_is_certain(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> bool:
    """Whether the theorem applies, and in a number of steps worth the name; public."""
    longest, natural = _longest(loss, lam, radius), loss.radius(lam)
    near = longest <= natural or _error(loss, n, p, lam, longest) <= lam * natural / 200.0
    return near and (loss.curvature + lam) / lam <= _STEEPEST


def descent_steps(loss: Loss, n: int, p: int, lam: float, radius: float | None = None) -> int:
    """Return the theorem's number of steps; public.

    Examples
    --------
    >>> from expost.solve.losses import LogisticLoss
    >>> descent_steps(LogisticLoss(), 1000, 5, 0.1) < 100_000
    True
    """
    longest = _longest(loss, lam, radius)
    first, last = _error(loss, n, p, lam, longest), _error(loss, n, p, lam, min(longest, loss.radius(lam)))
    far = max(0.0, math.log(lam) + math.log(loss.null_value) - 2.0 * math.log(first))
    steps = math.ldexp(1.0, _shift(loss, lam, radius)) / lam * (2.0 * far + 130.0 * (first / last) ** 2)
    return math.ceil(min(steps, 1e300)) + 3


def descend(
    objective: Objective, radius: float | None, tolerance: float, start: FloatArray
) -> tuple[FloatArray, Gradient]:
    """Return θ whose certificate is at most the tolerance, and the gradient computed there."""
    loss, lam, p = objective.loss, objective.lam, objective.p
    shift = _shift(loss, lam, radius)
    longest = _longest(loss, lam, radius)
    bits = 256 + max(0, shift) + math.ceil(abs(math.log2(longest)))
    ball = math.inf if radius is None else radius
    rho = 0.0 if radius is None else radius_tolerance(p, radius)
    at = array_to_units(_better(objective, start, longest), bits)
    for _ in range(descent_steps(loss, objective.n, p, lam, radius) + 1):
        theta = to_floats(at, bits)
        gradient = objective.gradient(theta, objective.predictions(theta))
        if certificate(theta, gradient, ball, rho, careful=True)[1] <= tolerance:
            return theta, gradient
        step = array_to_units(gradient.vector, bits)
        at = at - (step >> shift if shift >= 0 else step << -shift)
        if radius is not None:
            at = _into_ball(at, to_units(radius, bits))
    raise ConvergenceError(
        "the loss is not what it says it is: descent does not end as it does for a smooth convex one"
    )


def _longest(loss: Loss, lam: float, radius: float | None) -> float:
    """Bound the norm of a θ in the ball with L(θ) ≤ L(0)."""
    return loss.paper_radius(lam) if radius is None else min(radius, loss.paper_radius(lam))


def _shift(loss: Loss, lam: float, radius: float | None) -> int:
    """Return log₂ A."""
    held = 0.0 if radius is None else loss.lipschitz(radius) / radius
    return math.ceil(math.log2(16.0 * (loss.curvature + lam + held)))


def _error(loss: Loss, n: int, p: int, lam: float, norm: float) -> float:
    """Return e for θ of such a norm."""
    slope = math.sqrt(2.0 * loss.curvature * loss.null_value)
    return gradient_rounding(loss, n, p, lam, norm, slope) + (loss.curvature + lam) * UNIT * norm


def _better(objective: Objective, start: FloatArray, longest: float) -> FloatArray:
    """Return the start if it is one the theorem allows, else zero."""
    zero = np.zeros_like(start)
    if not np.isfinite(start).all() or float(np.linalg.norm(start)) > longest:
        return zero
    return start if _value(objective, start) <= _value(objective, zero) else zero


def _value(objective: Objective, theta: FloatArray) -> float:
    values = objective.loss.value(objective.predictions(theta), objective.y)
    return objective.mean(values) + 0.5 * objective.lam * float(theta @ theta)


def _into_ball(at: AnyArray, radius: int) -> AnyArray:
    length = norm(at)
    return at if length <= radius else np.asarray(at * radius // length)
