"""Newton's method on a gradient that has no rounding to speak of.

Only the direction is worked out in floating point; a wrong digit there makes the next step
necessary and nothing else. Slopes and gradients are integers, so near the minimum they still say
which way is down.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from expost.erm._types import AnyArray, FloatArray
from expost.erm.exact.objective import ExactObjective
from expost.erm.line_search import step_length
from expost.erm.units import array_to_units, norm, to_units

_MAX_ITERATIONS = 200


def newton(objective: ExactObjective, theta: AnyArray, nu: int, target: int) -> AnyArray | None:
    """Return θ with ‖∇L(θ) + νθ‖ ≤ target, all in units, or None if the steps run out."""
    bits = objective.bits
    for _ in range(_MAX_ITERATIONS):
        u, gradient = objective.gradient(theta, nu)
        if norm(gradient) <= target:
            return theta
        step = _direction(objective.root(u, nu), gradient, bits)
        if step is None:
            return None
        t = _length(objective, theta, step, u, nu)
        if t == 0.0:
            return None
        theta = theta + (to_units(t, bits) * step >> bits)
    return None


def _direction(root: FloatArray, gradient: AnyArray, bits: int) -> AnyArray | None:
    """Return −(RᵀR)⁻¹·gradient, or None if floating point cannot hold it."""
    largest = max(abs(value) for value in gradient.tolist())
    scaled = np.array([value / largest for value in gradient.tolist()])
    half, failed = lapack.dtrtrs(root, scaled, trans=1)
    whole, failed_too = lapack.dtrtrs(root, half)
    if failed or failed_too or not np.isfinite(whole).all():
        return None
    return np.asarray(-(array_to_units(whole, bits) * largest) >> bits)


def _length(objective: ExactObjective, theta: AnyArray, step: AnyArray, u: AnyArray, nu: int) -> float:
    """Return how far to go along a step, 0 if it does not lead down."""
    v = objective.along(step)
    start = objective.slope_along(theta, step, u, v, nu, 0.0)
    if start >= 0:
        return 0.0
    return step_length(lambda t: _ratio(objective.slope_along(theta, step, u, v, nu, t), -start))


def _ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.copysign(math.inf, numerator)
