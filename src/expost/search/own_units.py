"""AboveThreshold where every hypothesis is measured in units of its own sensitivity (theory B5).

*Released*: the first t whose v(θ_t)/Δ_t passes a noisy limit. *Neighbours*: one row replaced. *Sensitivity*: Δ_t is a
function of the released θ_t and bounds how far v(θ_t) moves, so the ratio is a query of sensitivity one. *Theorem*: the
costs are AboveThreshold's, e₁ + 2e₂ for stopping and e₁ for never stopping. With limits τ/Δ_t − c − ρ + ν_t a wrong
accept needs ν_t ≥ c + ρ, whatever the Δ_t turn out to be, so a calibration made for a typical sensitivity keeps its
promise for all; in real units the margin is c·Δ_t, smaller where the hypothesis is less sensitive.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from expost.noise.laplace import geometric
from expost.noise.source import WordSource, resolve_source
from expost.search.calibration import CalibratedTest, calibrate

UNITS = 1 << 20  # grid units in one sensitivity
_SLACK = 2  # grid units: rounding of the limit, and discrete against continuous tails


class Measure(Protocol):
    """Something about a hypothesis that should be small."""

    def unit(self, theta: NDArray[np.float64]) -> float:
        """Return the size of one unit, public given θ: one row moves :meth:`units` by at most UNITS of them."""
        ...

    def units(self, theta: NDArray[np.float64], unit: float) -> int:
        """Return the measure in units, never below the true one; private."""
        ...

    def lower(self, theta: NDArray[np.float64]) -> float:
        """Return a cheap lower bound on the measure in real units; private. It spares work and changes no answer."""
        ...


class OwnUnitsTest(CalibratedTest):
    """A stopping rule: accept the first hypothesis whose measure passes a noisy test.

    Parameters
    ----------
    measure
        What is tested.
    target
        What must not be exceeded, in real units.
    room
        How much of the target the test's noise may take up at the typical sensitivity; costs grow as its inverse.
    typical
        That sensitivity; any value is sound.
    failure_probability, n_tests
        γ and T.
    random_state
        ``None`` for the secure source.
    """

    name = "above_threshold"

    def __init__(
        self,
        measure: Measure,
        *,
        target: float,
        room: float,
        typical: float,
        failure_probability: float,
        n_tests: int,
        random_state: int | WordSource | None = None,
    ) -> None:
        source = resolve_source(random_state)
        self.secure = source.secure
        self.n_tests = n_tests
        self._measure, self._target = measure, target
        self.calibration = calibrate(
            "tight", target=room, failure_probability=failure_probability, n_tests=n_tests, sensitivity=typical
        )
        margin = math.ceil((room - self.calibration.threshold) / typical * UNITS) + _SLACK
        on_threshold = geometric(self.calibration.epsilon_threshold, UNITS, 1, random_state=source)
        on_queries = geometric(self.calibration.epsilon_query, UNITS, n_tests, random_state=source)
        self._offsets = [int(noise) - int(on_threshold[0]) - margin for noise in on_queries]
        self._next, self._done = 0, False

    def accepts(self, hypothesis: object) -> bool:
        """Test the next hypothesis."""
        if self._done or self._next >= self.n_tests:
            raise RuntimeError("this test is over; start another one for another search")
        offset = self._offsets[self._next]
        self._next += 1
        theta = np.asarray(hypothesis, dtype=np.float64)
        # strictly negative, because two quotients by the unit may round to the same integer
        if offset < 0 and self._measure.lower(theta) > self._target:
            return False  # as the comparison below would say, whatever the unit is
        unit = self._measure.unit(theta)
        limit = math.floor(self._target / unit) + offset
        self._done = limit >= 0 and self._measure.units(theta, unit) <= limit
        return self._done

    def __reduce__(self) -> str:
        raise TypeError("a test holds private data and unrevealed noise; it cannot be pickled")


def unit_of(sensitivity: float, error: float) -> float:
    """Return the unit for a value of that sensitivity computed to within ``error``, so that rounding makes it UNITS."""
    return (sensitivity + 2 * error) / (UNITS - 1)
