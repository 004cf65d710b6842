"""The minimiser to more digits than floating point holds, by Newton's or by the ellipsoid method."""

from __future__ import annotations

import math

import numpy as np

from expost.erm._types import AnyArray, FloatArray
from expost.erm.exact.ellipsoid import ellipsoid, ellipsoid_steps
from expost.erm.exact.multiplier import on_ball
from expost.erm.exact.newton import newton
from expost.erm.exact.objective import ExactObjective
from expost.erm.losses import Loss
from expost.erm.objective import Objective
from expost.erm.units import array_to_units, to_floats, to_units

_CLOSE = 64  # θ is found to within 2⁻⁶⁴ times the largest norm it can have


def exact_minimiser(
    objective: Objective, radius: float | None, start: FloatArray, *, at_any_price: bool = True
) -> FloatArray | None:
    """Return the float64 vector nearest to the minimiser.

    Parameters
    ----------
    objective : Objective
        Its loss provides ``derivative_in_units``.
    radius : float or None
        Of the ball.
    start : array of shape (p,)
        Where to begin; zero is taken if it is useless.
    at_any_price : bool
        Whether to go on with the ellipsoid method where Newton's fails; if not, None is returned.
    """
    loss, lam, p = objective.loss, objective.lam, objective.p
    natural = loss.radius(lam)
    smallest = natural if radius is None else min(radius, natural)
    bits = precision(loss, p, lam, radius)
    exact = ExactObjective(objective, bits)
    scale, longest = to_units(smallest, bits), to_units(natural, bits)
    usable = bool(np.isfinite(start).all()) and float(np.abs(start).max()) <= 2.0 * natural
    at = [array_to_units(start if usable else np.zeros(p), bits)]  # each search begins where the last one ended

    def solve(nu: int) -> AnyArray:
        target = (exact.lam + nu) * scale >> bits + _CLOSE
        found = newton(exact, at[0], nu, target)
        if found is None:
            if not at_any_price:
                raise _GaveUp
            steep = (loss.curvature + lam + nu / (1 << bits)) * (1.0 + 1e-6)  # rows may be longer than one by 10⁻⁹
            found = ellipsoid(exact, nu, longest, target, steep)
        at[0] = found
        return found

    try:
        if radius is None:
            return to_floats(solve(0), bits)
        # on the sphere ν·radius ≤ ‖mean φ'·x‖
        most = to_units(loss.lipschitz(radius) / radius * (1.0 + 1e-6), bits) + 1
        return to_floats(on_ball(solve, exact.rate, to_units(radius, bits), most, exact.lam, bits), bits)
    except _GaveUp:
        return None


class _GaveUp(Exception):
    """Newton's method ran out of steps."""


def _log2_ratio(loss: Loss, lam: float, radius: float | None) -> float:
    """Return log₂(8Cr/τ) for τ = 2⁻⁶⁴λ·min(r, radius), r the natural radius."""
    short = 1.0 if radius is None else min(1.0, radius / loss.radius(lam))
    return 3 + math.log2((loss.curvature + lam) / lam) + _CLOSE - math.log2(short) + 0.01


def precision(loss: Loss, p: int, lam: float, radius: float | None) -> int:
    """Return how many bits units need, for the ellipsoid method to be right and the rest with it.

    Its gradients may be off by τ²/(8Cr)·(ρ/2r)² with 2r/ρ = 8Cr/τ, that is, by τ·(τ/(8Cr))³; computed ones are off by
    c + 4 + 2√p units.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> precision(LogisticLoss(), 38, 0.01, None)
    320
    """
    ratio = _log2_ratio(loss, lam, radius)
    short = loss.radius(lam) if radius is None else min(radius, loss.radius(lam))
    target = math.log2(lam) + math.log2(short) - _CLOSE
    off = math.log2(loss.curvature + 4 + 2 * math.sqrt(p))
    return max(256, math.ceil(3 * ratio - target + off) + 32)


def exact_steps(loss: Loss, p: int, lam: float, radius: float | None) -> int:
    """Bound the gradients that one search by the ellipsoid method asks for; public."""
    return ellipsoid_steps(p, math.log(2) * _log2_ratio(loss, lam, radius))
