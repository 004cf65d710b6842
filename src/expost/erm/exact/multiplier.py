"""The minimiser over a ball as an unconstrained one: that of L + (ν/2)‖θ‖² for the right ν ≥ 0.

‖θ_ν‖ decreases in ν, and its slope is at most ‖θ_ν‖/(λ + ν) in size. So between 0 and a ν that is
large enough there is a stretch of ln(λ + ν) of length 2⁻⁶¹ on which ‖θ_ν‖ is right to 2⁻⁶⁰, and
bisection of that logarithm ends. Newton's method for 1/‖θ_ν‖, which is nearly a straight line (Moré
and Sorensen 1983), gets there in a few steps; whenever one of them does not halve the distance to
the sphere, the next is a bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from expost.erm._types import AnyArray
from expost.erm.units import norm, to_units

_CLOSE = 60


def on_ball(
    solve: Callable[[int], AnyArray],
    rate: Callable[[AnyArray, int], float],
    radius: int,
    most: int,
    lam: int,
    bits: int,
) -> AnyArray:
    """Return θ_ν with ‖θ_ν‖ = radius, or θ_0 if it lies inside; all in units of 2^−bits.

    Parameters
    ----------
    solve
        ν ↦ θ_ν.
    rate
        (θ_ν, ν) ↦ −d ln‖θ_ν‖/dν, as far as floating point knows it.
    radius, most, lam
        Of the ball; a ν for which θ_ν lies inside; λ.
    bits
        Of the units.
    """
    theta = solve(0)
    if norm(theta) <= radius + (radius >> _CLOSE):
        return theta
    low, high, nu, before = 0, most, 0, 2 * norm(theta)
    while high - low > 1:
        beyond = norm(theta) - radius
        if abs(beyond) <= radius >> _CLOSE:
            break
        low, high = (nu, high) if beyond > 0 else (low, nu)
        speed = rate(theta, nu) if theta.any() else 0.0
        if 0.0 < speed < math.inf and math.isfinite(1.0 / speed):
            nu += beyond * to_units(1.0 / speed, bits) // radius
        if not low < nu < high or 2 * abs(beyond) > before:
            nu, beyond = math.isqrt((lam + low) * (lam + high)) - lam, 2 * norm(theta)
        before = abs(beyond)
        theta = solve(nu)
    return theta
