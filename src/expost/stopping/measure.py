"""Something about a hypothesis that should be small, as an integer on a public grid: what a stopping rule may ask.

*Released*: never the value itself, only whether value + noise stays below a noisy limit. A real value of sensitivity
Δ, computed in floating point with an error of at most η, is rounded *up* to a multiple of g; neighbouring answers then
differ by at most ⌊(Δ + 2η)/g⌋ + 1 units, which is the integer sensitivity charged.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from expost.erm.sensitivity.grid import Grid


class Measure(ABC):
    """Something about a hypothesis that should be small. Values are private; all else is public given the hypothesis.

    A new measure says what it is, how far one row can move it and how far its computation may be off. Cheap bounds are
    optional: they settle most comparisons, and never differently.
    """

    #: The one grid for all hypotheses, or None where each has a sensitivity of its own.
    uniform: Grid | None = None

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

    def grid(self, hypothesis: Any) -> Grid:
        """Return the grid a rule counts on: the one for all, or the one of this hypothesis's own sensitivity."""
        return self.uniform or Grid.by_sensitivity(
            self.sensitivity(hypothesis), error_bound=self.error_bound(hypothesis)
        )

    def fine_grid(self, hypothesis: Any) -> Grid:
        """Return the grid of a question asked about this hypothesis alone."""
        return charged_grid(self.sensitivity(hypothesis), self.error_bound(hypothesis))

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


def charged_grid(sensitivity: float, error_bound: float) -> Grid:
    """Return the grid for a value of that sensitivity computed to within that error."""
    return Grid.of(sensitivity, error_bound=error_bound)


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
        self.uniform: Grid = Grid.of(sensitivity, error_bound=error_bound)
        self._sensitivity, self._error_bound = sensitivity, error_bound
        self._error, self._upper = error, upper
        self._lower = (lower,) if callable(lower) else tuple(lower)
        self.evaluations = 0

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, which a test has to be calibrated for."""
        return self.uniform.effective_sensitivity

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
