"""How far to go along a descent direction of a convex function, decided from its slope alone.

Near the minimum, differences of function values drown in rounding while slopes keep their relative
accuracy, so no value is ever compared.
"""

from __future__ import annotations

from collections.abc import Callable

_ENOUGH = 100  # steps after which any lower point will do
_MAX_STEPS = 2000  # the bracket shrinks by a tenth each time, and a step may overshoot by the condition number


def step_length(slope: Callable[[float], float]) -> float:
    """Return t in (0, 1] where a convex function with derivative ``slope`` is sufficiently lower than at 0.

    Or 0, if no lower point is seen: then the slope at 0 is not negative, or rounding has the better of it.

    With s₀ = |slope(0)| the full step is taken if the function still falls at 1, or if slope(1) ≤ s₀/10 and
    slope(½) ≤ −s₀/4: slopes of a convex function increase, so the change is then at most ½(−s₀/4) +
    ½(s₀/10) = −0.075·s₀. Otherwise a t with −s₀/2 ≤ slope(t) ≤ 0 is bracketed: the function falls all the
    way to it, and smoothness makes t, hence the fall, proportional to s₀.

    Examples
    --------
    >>> step_length(lambda t: t - 1.0)
    1.0
    >>> 0.125 <= step_length(lambda t: 4.0 * t - 1.0) <= 0.25
    True
    """
    start = slope(0.0)
    if start >= 0.0:
        return 0.0
    end = slope(1.0)
    if end <= 0.0 or (end <= -0.1 * start and slope(0.5) <= 0.25 * start):
        return 1.0
    low, slope_low, high, slope_high = 0.0, start, 1.0, end
    for taken in range(_MAX_STEPS):
        if taken >= _ENOUGH and low > 0.0:
            break
        width = high - low
        # Aim for slope s₀/4 short of the root, kept inside the bracket so that it shrinks by a tenth at
        # least.
        secant = low + width * (0.25 * start - slope_low) / (slope_high - slope_low)
        t = min(max(secant, low + 0.1 * width), high - 0.1 * width)
        value = slope(t)
        if value > 0.0:
            high, slope_high = t, value
        elif value >= 0.5 * start:
            return t
        else:
            low, slope_low = t, value
    return low
