"""Something about a hypothesis that should be small, as an integer on a public grid: what a stopping rule may ask.

*Released*: never the value itself, only whether value + noise stays below a noisy limit. A real value of sensitivity
Δ, computed in floating point with an error of at most η, is rounded *up* to a multiple of g; neighbouring answers then
differ by at most ⌊(Δ + 2η)/g⌋ + 1 units, which is the integer sensitivity charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from expost.erm.sensitivity.grid import grid_sensitivity

UNITS = 1 << 20  # grid units in one sensitivity, where every hypothesis is measured by its own


def public_grid(delta: float, *, bits: int = 20) -> float:
    """Return a power of two between Δ·2^−bits−1 and Δ·2^−bits: fine enough to cost a millionth."""
    if not 0 < delta < math.inf:
        raise ValueError(f"sensitivity must be positive and finite, got {delta}")
    return math.ldexp(1.0, math.frexp(delta)[1] - 1 - bits)


@dataclass(frozen=True)
class Grid:
    """The public side of a value: the size of one unit, and the sensitivity in units.

    Examples
    --------
    >>> grid = Grid.of(0.001, error_bound=1e-9)
    >>> 0.001 < grid.effective_sensitivity < 0.00101
    True
    """

    unit: float
    units: int

    @classmethod
    def of(cls, sensitivity: float, *, error_bound: float = 0.0) -> Grid:
        """Return the grid, a power of two, for a value of the given sensitivity computed to within ``error_bound``."""
        if not error_bound >= 0:
            raise ValueError(f"error_bound must be non-negative, got {error_bound}")
        unit = public_grid(sensitivity)
        return cls(unit, grid_sensitivity(sensitivity + 2 * error_bound, unit, 1))

    @classmethod
    def by_sensitivity(cls, sensitivity: float, *, error_bound: float) -> Grid:
        """Return the grid on which that value has a sensitivity of UNITS units, rounding included."""
        return cls((sensitivity + 2 * error_bound) / (UNITS - 1), UNITS)

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, rounding and floating point included, in real units."""
        return self.units * self.unit


class Measure(ABC):
    """Something about a hypothesis that should be small. Values are private; all else is public given the hypothesis.

    A new measure says what it is, how far one row can move it and how far its computation may be off. Cheap bounds are
    optional: they settle most comparisons, and never differently.
    """

    @abstractmethod
    def value(self, hypothesis: Any) -> float:
        """Return the measure, to within :meth:`error_bound`; private."""

    @abstractmethod
    def sensitivity(self, hypothesis: Any) -> float:
        """Return how far one row can move the true value for this hypothesis."""

    def error_bound(self, hypothesis: Any) -> float:
        """Return a bound on the floating-point error of :meth:`value`."""
        return 0.0

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield lower bounds on the true value, the cheapest first; private."""
        return ()

    def upper(self, hypothesis: Any) -> float:
        """Return an upper bound on the true value; private."""
        return math.inf

    @property
    def uniform(self) -> Grid | None:
        """The one grid for all hypotheses, or None where each has a sensitivity of its own."""
        return None

    def grid(self, hypothesis: Any) -> Grid:
        """Return the grid a rule counts on: the one for all, or the one of this hypothesis's own sensitivity."""
        return self.uniform or Grid.by_sensitivity(
            self.sensitivity(hypothesis), error_bound=self.error_bound(hypothesis)
        )

    def at_most(self, hypothesis: Any, limit: int, unit: float) -> bool:
        """Whether the value, rounded up to the grid, is at most ``limit`` units."""
        if limit < 0:  # measures are non-negative, so it rejects whatever the hypothesis is
            return False
        # The answer is the computed value plus η, hence never below the true one and at most 2η above it.
        if any(math.ceil(bound / unit) > limit for bound in self.lower(hypothesis)):
            return False
        error = self.error_bound(hypothesis)
        upper = self.upper(hypothesis)
        if math.isfinite(upper) and math.ceil((upper + 2 * error) / unit) <= limit:
            return True
        return math.ceil((self.value(hypothesis) + error) / unit) <= limit

    def __reduce__(self) -> NoReturn:
        raise TypeError("a measure holds private data and cannot be pickled")


class ErrorMeasure(Measure):
    """Any real-valued error function as a measure.

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
        first. They settle most comparisons, and never differently: the noise is fixed before the question is asked.

    Examples
    --------
    >>> far = ErrorMeasure(lambda h: abs(h - 3.0), sensitivity=1.0)
    >>> unit = far.uniform.unit
    >>> far.at_most(3.4, round(0.5 / unit), unit), far.at_most(3.6, round(0.5 / unit), unit)
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
        self._grid = Grid.of(sensitivity, error_bound=error_bound)
        self._sensitivity, self._error_bound = sensitivity, error_bound
        self._error, self._upper = error, upper
        self._lower = (lower,) if callable(lower) else tuple(lower)
        self.evaluations = 0

    @property
    def uniform(self) -> Grid:
        """The grid, the same for every hypothesis."""
        return self._grid

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, which a test has to be calibrated for."""
        return self._grid.effective_sensitivity

    def value(self, hypothesis: Any) -> float:
        """Return the error."""
        self.evaluations += 1
        return self._error(hypothesis)

    def sensitivity(self, hypothesis: Any = None) -> float:
        """Return the stated bound."""
        return self._sensitivity

    def error_bound(self, hypothesis: Any = None) -> float:
        """Return the stated bound."""
        return self._error_bound

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield the cheap bounds."""
        return (bound(hypothesis) for bound in self._lower)

    def upper(self, hypothesis: Any) -> float:
        """Return the cheap bound."""
        return math.inf if self._upper is None else self._upper(hypothesis)


def check_sensitivity(calibrated: float, grid: Grid) -> None:
    """Raise unless a test calibrated for one sensitivity may be used on a grid."""
    needed = grid.effective_sensitivity
    if needed > calibrated:
        raise ValueError(
            f"the test was calibrated for a sensitivity of {calibrated!r}, but the measure's is {needed!r} with its "
            f"rounding charged; calibrate with sensitivity=measure.effective_sensitivity"
        )
