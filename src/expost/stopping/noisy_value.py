"""A real statistic released with exact discrete noise on a public grid."""

from __future__ import annotations

import math

from expost.erm.sensitivity.grid import Grid
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource


def noisy_values(
    values: list[float], *, sensitivity: float, error_bound: float, epsilon: float, source: WordSource
) -> list[float]:
    """Return values of joint ℓ₁-sensitivity Δ with discrete Laplace noise of scale Δ/ε (theory B1's rounding).

    Each value is computed to within ``error_bound`` and rounded to the grid, which is charged: ⌊(Δ + 2kη)/g⌋ + k
    units for k values.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> [noisy] = noisy_values([0.25], sensitivity=1e-5, error_bound=0.0, epsilon=1.0, source=SeededSource(1))
    >>> abs(noisy - 0.25) < 1e-3
    True
    """
    count = len(values)
    grid = Grid.of(sensitivity, error_bound=count * error_bound)
    units = grid.units + count - 1
    noise = discrete_laplace(epsilon, units, count, random_state=source)
    return [
        (math.floor(value / grid.unit) + int(extra)) * grid.unit for value, extra in zip(values, noise, strict=True)
    ]
