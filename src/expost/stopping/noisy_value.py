"""A real statistic released with exact discrete noise on a public grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

from expost.erm.sensitivity.grid import Grid
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource


@dataclass(frozen=True)
class ValueTest:
    """A value released with Laplace noise, to be compared with zero; settled before it is asked for.

    Attributes
    ----------
    grid
        What the value is rounded to, rounding and floating point charged.
    epsilon
        What it costs.
    """

    grid: Grid
    epsilon: float

    @classmethod
    def of(cls, sensitivity: float, error_bound: float, epsilon: float) -> ValueTest:
        """Settle it for a value of that sensitivity computed to within that error."""
        return cls(Grid.of(sensitivity, error_bound=error_bound), epsilon)

    def margin(self, failure_probability: float, error_bound: float) -> float:
        """Return m: noisy + m < value has at most that probability.

        A discrete Laplace variable of scale s falls below −s·ln(1/(2δ)) − one unit with probability at most δ; rounding
        down takes another unit, and the value computed may be too small by its error.
        """
        scale = self.grid.effective_sensitivity / self.epsilon
        tail = max(0.0, math.log(1 / (2 * failure_probability)))
        return scale * tail * (1 + 1e-9) + 3 * self.grid.unit + error_bound

    def ask(self, value: float, source: WordSource) -> float:
        """Return the noisy value."""
        noise = int(discrete_laplace(self.epsilon, self.grid.units, 1, random_state=source)[0])
        return (math.floor(value / self.grid.unit) + noise) * self.grid.unit


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
