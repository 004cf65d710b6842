"""Questions about the data that a stopping rule may ask, as integers on a public grid.

*Released*: never the answer itself, only whether answer + noise stays below a noisy limit. A real-valued error
e(h) of sensitivity Δ, computed in floating point with an error of at most η, is rounded *up* to a multiple of g;
neighbouring answers then differ by at most ⌊(Δ + 2η)/g⌋ + 1 units, which is the integer sensitivity charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from expost.erm.sensitivity import grid_sensitivity


class Query(Protocol):
    """An error of a hypothesis, small when the hypothesis is good."""

    @property
    def grid(self) -> float:
        """Size of one unit."""
        ...

    @property
    def sensitivity(self) -> int:
        """Largest change of the answer between neighbours, in units; covers rounding and floating point."""
        ...

    def at_most(self, hypothesis: Any, limit: int) -> bool:
        """Whether the answer for ``hypothesis`` is at most ``limit`` units."""
        ...


def public_grid(delta: float, *, bits: int = 20) -> float:
    """Return a power of two between Δ·2^−bits−1 and Δ·2^−bits: fine enough to cost a millionth."""
    if not 0 < delta < math.inf:
        raise ValueError(f"sensitivity must be positive and finite, got {delta}")
    return math.ldexp(1.0, math.frexp(delta)[1] - 1 - bits)


@dataclass(frozen=True)
class QueryGrid:
    """The public side of a query: its grid and its integer sensitivity.

    Examples
    --------
    >>> scale = QueryGrid.of(0.001, error_bound=1e-9)
    >>> 0.001 < scale.effective_sensitivity < 0.00101
    True
    """

    grid: float
    units: int

    @classmethod
    def of(cls, sensitivity: float, *, error_bound: float = 0.0) -> QueryGrid:
        """Return the grid for an error of the given sensitivity, computed to within ``error_bound``."""
        if not error_bound >= 0:
            raise ValueError(f"error_bound must be non-negative, got {error_bound}")
        grid = public_grid(sensitivity)
        return cls(grid, grid_sensitivity(sensitivity + 2 * error_bound, grid, 1))

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, rounding and floating point included, in real units."""
        return self.units * self.grid


class ErrorQuery:
    """Any real-valued error function as a query.

    Parameters
    ----------
    error
        ``hypothesis -> float``, a function of the private data too, of sensitivity at most ``sensitivity`` for
        every fixed hypothesis.
    sensitivity
        That bound, in real units.
    error_bound
        Bound on the floating-point error of ``error`` and, if not zero, of adding this bound to it; public.
    lower, upper
        Optional cheaper functions with lower(h) ≤ error(h) ≤ upper(h); of lower ones there may be several, the cheapest
        first. They settle most comparisons, and never differently: the noise is fixed before the query is asked.

    Examples
    --------
    >>> query = ErrorQuery(lambda h: abs(h - 3.0), sensitivity=1.0)
    >>> limit = round(0.5 / query.grid)
    >>> query.at_most(3.4, limit), query.at_most(3.6, limit)
    (True, False)
    """

    def __init__(
        self,
        error: Callable[[Any], float],
        *,
        sensitivity: float,
        error_bound: float = 0.0,
        lower: Callable[[Any], float] | Sequence[Callable[[Any], float]] = (),
        upper: Callable[[Any], float] | None = None,
    ) -> None:
        scale = QueryGrid.of(sensitivity, error_bound=error_bound)
        self.grid, self.sensitivity = scale.grid, scale.units
        self.effective_sensitivity = scale.effective_sensitivity
        self.error_bound = error_bound
        self._error, self._upper = error, upper
        self._lower = (lower,) if callable(lower) else tuple(lower)
        self.evaluations = 0

    def _units(self, value: float) -> int:
        return math.ceil(value / self.grid)  # the grid is a power of two: the quotient is exact

    def at_most(self, hypothesis: Any, limit: int) -> bool:
        """Whether the error, rounded up to the grid, is at most ``limit`` units."""
        # The answer is the computed error plus η, hence never below the true error and at most 2η above it.
        for lower in self._lower:
            if self._units(lower(hypothesis)) > limit:
                return False
        if self._upper is not None and self._units(self._upper(hypothesis) + 2 * self.error_bound) <= limit:
            return True
        self.evaluations += 1
        return self._units(self._error(hypothesis) + self.error_bound) <= limit

    def __reduce__(self) -> str:
        raise TypeError("a query holds private data and cannot be pickled")


def check_sensitivity(calibrated: float, query: Query) -> None:
    """Raise unless a test calibrated for one sensitivity may be used with a query."""
    needed = query.sensitivity * query.grid
    if needed > calibrated:
        raise ValueError(
            f"the test was calibrated for a sensitivity of {calibrated!r}, but the query's is {needed!r} with its "
            f"rounding charged; calibrate with sensitivity=query.effective_sensitivity"
        )
