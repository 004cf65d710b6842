"""A real statistic released with exact Gaussian noise on a public grid, looked at once or twice (theory C4).

*Released*: the value, rounded down to a grid, plus a discrete Gaussian. *Sensitivity*: Δ units, rounding and floating
point charged (`expost.erm.sensitivity.grid`). *Theorem (privacy)*: ρ = Δ²/(2σ²) at every look. *Theorem (accuracy)*:
independent looks at one value, averaged with weights 1/σ², have noise that is stochastically between N(0, σ̄²) − 2 and
N(0, σ̄²) + 2 units, 1/σ̄² = Σ1/σ² (`expost.tails.discrete_gaussian`); so average + z·σ̄ + 3 units + error is below the
true value with probability at most Φ(−z). How precise a second look is must be settled before the first is seen;
whether it is taken need not be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from expost.erm.sensitivity.grid import Grid
from expost.noise.gaussian import discrete_gaussian
from expost.noise.source import WordSource
from expost.tails.discrete_gaussian import deviations


@dataclass(frozen=True)
class GaussianValue:
    """How a value is looked at; settled beforehand.

    Attributes
    ----------
    grid
        What the value is rounded to, rounding and floating point charged.
    error_bound
        How far the computed value may be off.
    """

    grid: Grid
    error_bound: float

    @classmethod
    def of(cls, sensitivity: float, error_bound: float) -> GaussianValue:
        """Settle it for a value of that sensitivity computed to within that error."""
        return cls(Grid.of(sensitivity, error_bound=error_bound), error_bound)

    def deviation(self, rho: float) -> float:
        """Return σ in real units at a cost of ρ."""
        return self._units(rho) * self.grid.unit

    def _units(self, rho: float) -> float:
        return self.grid.units / math.sqrt(2.0 * rho) * (1.0 + 1e-12)

    def ask(self, value: float, rho: float, source: WordSource) -> float:
        """Return the noisy value."""
        noise = int(discrete_gaussian(self._units(rho), 1, random_state=source)[0])
        return (math.floor(value / self.grid.unit) + noise) * self.grid.unit

    def margin(self, rho: float, failure_probability: float) -> float:
        """Return m: noisy + m < value has at most that probability, looks of ρ in all averaged by their ρ."""
        deviation = self.deviation(rho) * deviations(failure_probability)
        return deviation * (1.0 + 1e-9) + 4.0 * self.grid.unit + self.error_bound


def averaged(first: float, first_rho: float, second: float, second_rho: float) -> float:
    """Return the average of two looks, weighted by their ρ.

    Examples
    --------
    >>> round(averaged(1.0, 0.1, 2.0, 0.3), 12)
    1.75
    """
    return (first * first_rho + second * second_rho) / (first_rho + second_rho)
