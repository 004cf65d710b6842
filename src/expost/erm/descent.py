"""Gradient descent with a gradient that is off by rounding: slow, and certain to meet the tolerance.

For losses that are only known in floating point. The gradient is computed at the float64 vector
nearest to θ, which itself is kept in integers: it is then off by at most e = r + (c + λ)uN, r the
rounding bound, and e ≤ 2r. Let C = c + λ, ν̄ = ``lipschitz(R)``/R a bound on the multiplier (zero
without a ball) and A ≥ 16(C + ν̄) a power of two.

*Theorem.* Let θ⁺ be the point of the ball nearest to θ − ĝ/A. From any θ with L(θ) ≤ L(0) these
steps meet :func:`expost.erm.tolerances.default_tolerance` after :func:`descent_steps` at the latest.

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

from expost.erm._rounding import UNIT
from expost.erm._types import AnyArray, FloatArray
from expost.erm.certificate import certificate
from expost.erm.exceptions import ConvergenceError
from expost.erm.losses import Loss
from expost.erm.objective import Gradient, Objective, gradient_rounding
from expost.erm.tolerances import radius_tolerance
from expost.erm.units import array_to_units, norm, to_floats, to_units

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
    >>> from expost.erm.losses import LogisticLoss
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
