"""The log-cosh loss: a parabola for small residuals, a straight line for large ones, smooth in between."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from expost.numeric import AnyArray, FloatArray, round_up
from expost.solve.losses import Labels, Loss, sigmoid


class LogCoshLoss(Loss):
    """φ(u, y) = log cosh(u − y), |y| ≤ 1.

    Examples
    --------
    >>> loss = LogCoshLoss()
    >>> loss.curvature, round(loss.lipschitz(1.0), 3), round(loss.null_value, 3)
    (1.0, 0.964, 0.434)
    """

    labels: ClassVar[Labels] = "real"
    name = "log-cosh"
    symmetric = True  # φ(−u, −y) = φ(u, y), and the slope tanh(u − y) is largest at y = −1
    self_concordance = 2.0  # φ‴ = −2·tanh·φ″
    curvature = 1.0
    null_value = round_up(math.log(math.cosh(1.0)))
    pull = 0.23227056  # the largest u·tanh(1 − u), at u = 0.535, rounded up

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return log cosh(u − y), without overflow."""
        size = np.abs(u - y)
        return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return tanh(u − y)."""
        return np.asarray(np.tanh(u - y))

    def derivative_in_units(self, u: AnyArray, y: AnyArray, bits: int) -> AnyArray:
        """Return tanh(u − y) = 2σ(2(u − y)) − 1: twice the sigmoid's error of two units."""
        return np.asarray(2 * sigmoid(2 * (u - y), bits) - (1 << bits))

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return 1 − tanh²(u − y)."""
        return np.asarray(1.0 - np.tanh(u - y) ** 2)

    def lipschitz(self, radius: float) -> float:
        """Return tanh(1 + radius), rounded up, at most 1."""
        return min(1.0, round_up(math.tanh(1.0 + radius)))

    def spread(self, radius: float) -> float:
        """Return log cosh(1 + radius), rounded up: the least value is 0."""
        size = 1.0 + radius
        return round_up(size + math.log1p(math.exp(-2.0 * size)) - math.log(2.0))
