"""InteractiveAboveThreshold over privately generated hypotheses (theory A3, B5).

*Released*: the first t whose error plus noise stays below the noisy threshold. *Neighbours*: one row replaced.
*Sensitivity*: each query changes by at most Δ, in grid units, rounding and floating point included.
*Theorem*: with threshold noise of rate e₁/Δ and fresh query noise of rate e₂/Δ, stopping at t costs e₁ + 2e₂ plus the
prefix of hypotheses up to t, and never stopping costs e₁ plus the whole prefix; for Laplace and for one-sided
geometric noise alike. Proof: move the threshold by Δ (a factor e^{e₁}); every earlier query then fails at least as
easily under the neighbour, and the last one passes with at most a factor e^{2e₂} less.

The paper writes queries that should be *large*; errors that should be *small* are the same thing with the sign
turned, and are what every caller here has.
"""

from __future__ import annotations

import math
from typing import Any

from expost.noise.laplace import discrete_laplace, geometric
from expost.noise.source import WordSource, resolve_source
from expost.search.calibration import CalibratedTest, Calibration
from expost.search.query import Query, check_sensitivity

# The calibrations are computed for continuous noise. One-sided noise on the grid is its floor, so the difference of
# the two noises is less than one unit above the continuous one. Two-sided noise on the grid is stochastically below
# the continuous one plus one unit (half a unit for the upper tail alone), twice. Error and threshold are rounded to
# the safe side. Lowering the threshold by this many units covers all of it.
_SLACK = 3


class AboveThreshold(CalibratedTest):
    """A stopping rule: accept the first hypothesis whose error passes a noisy test.

    Parameters
    ----------
    query
        The error, as a :class:`~expost.search.query.Query`.
    calibration
        Threshold and noise budgets, from :func:`~expost.search.calibration.calibrate` or
        :meth:`with_epsilon`.
    n_tests
        At most how many hypotheses may be tested; the accuracy promise was made for that many.
    random_state
        ``None`` for the secure source.

    Notes
    -----
    One object serves one search: its threshold noise must not be used twice.
    """

    name = "above_threshold"

    def __init__(
        self,
        query: Query,
        calibration: Calibration,
        n_tests: int,
        *,
        random_state: int | WordSource | None = None,
    ) -> None:
        check_sensitivity(calibration.sensitivity, query)
        source = resolve_source(random_state)
        self.secure = source.secure
        self.calibration = calibration
        self._query = query
        delta = query.sensitivity
        if calibration.kind == "laplace":
            on_threshold = int(discrete_laplace(calibration.epsilon_threshold, delta, 1, random_state=source)[0])
            on_queries = discrete_laplace(calibration.epsilon_query, delta, n_tests, random_state=source)
        else:
            on_threshold = -int(geometric(calibration.epsilon_threshold, delta, 1, random_state=source)[0])
            on_queries = geometric(calibration.epsilon_query, delta, n_tests, random_state=source)
        threshold = math.floor(calibration.threshold / query.grid) - _SLACK
        self._limits = [threshold + on_threshold + int(noise) for noise in on_queries]
        self._next = 0
        self._done = False

    @property
    def n_tests(self) -> int:
        """At most how many hypotheses may be tested."""
        return len(self._limits)

    @classmethod
    def with_epsilon(
        cls,
        query: Query,
        *,
        epsilon: float,
        threshold: float,
        n_tests: int,
        random_state: int | WordSource | None = None,
    ) -> AboveThreshold:
        """Return the paper's algorithm as it stands: Lap(2Δ/ε) on the threshold, Lap(4Δ/ε) on each query."""
        delta = query.sensitivity * query.grid
        given = Calibration("given", "laplace", threshold, epsilon / 2, epsilon / 4, delta)
        return cls(query, given, n_tests, random_state=random_state)

    def accepts(self, hypothesis: Any) -> bool:
        """Test the next hypothesis."""
        if self._done:
            raise RuntimeError("this test has already stopped; start another one for another search")
        if self._next >= len(self._limits):
            raise RuntimeError(f"this test was calibrated for {len(self._limits)} hypotheses, and all were used")
        limit = self._limits[self._next]
        self._next += 1
        # errors are non-negative, so a negative limit rejects whatever the hypothesis is
        self._done = limit >= 0 and self._query.at_most(hypothesis, limit)
        return self._done

    @property
    def rejects_next_unseen(self) -> bool:
        """Whether the noise alone already rejects the next hypothesis, so that it need not be computed."""
        return not self._done and self._next < len(self._limits) and self._limits[self._next] < 0

    def skip(self) -> None:
        """Reject the next hypothesis without looking at it; only where :attr:`rejects_next_unseen`."""
        if not self.rejects_next_unseen:
            raise RuntimeError("the next hypothesis has to be tested")
        self._next += 1

    def __reduce__(self) -> str:
        raise TypeError("a test holds private data and unrevealed noise; it cannot be pickled")
