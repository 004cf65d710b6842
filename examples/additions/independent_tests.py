"""A few independent tests with Laplace noise: cheaper than AboveThreshold where the first ones are likely to pass.

*Released*: whether each hypothesis tested passed. *Neighbours*: one row replaced. *Theorem (privacy)*: a test costs
Δ/s whatever its answer (`expost.search.noisy_test`), and tests add up, so stopping at the k-th costs k of them.
*Theorem (accuracy)*: each of at most N tests says yes wrongly with probability γ/N.
"""

from __future__ import annotations

from typing import Any

from expost.account.composition import add_losses
from expost.goals.measure import Measure
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource, resolve_source
from expost.search.noisy_test import OneTest


class IndependentTests:
    """A stopping rule: test every hypothesis anew, and pay for each test asked.

    Parameters
    ----------
    measure
        What is tested, with one sensitivity for all hypotheses.
    target, failure_probability
        What must not be exceeded, and γ.
    n_tests
        At most how many hypotheses may be tested.
    share
        Part of the target given to the noise.
    random_state
        ``None`` for the secure source.
    """

    name = "independent_tests"

    def __init__(
        self,
        measure: Measure,
        *,
        target: float,
        failure_probability: float,
        n_tests: int,
        share: float = 0.5,
        random_state: int | WordSource | None = None,
    ) -> None:
        grid = measure.uniform
        if grid is None:
            raise ValueError("independent tests are settled for one sensitivity, and this measure has none for all")
        source = resolve_source(random_state)
        self.secure, self.n_tests = source.secure, n_tests
        self._measure, self._grid = measure, grid
        self._test = OneTest(target, failure_probability / n_tests, share)
        self._each = self._test.epsilon(grid.effective_sensitivity)
        self._noise = discrete_laplace(self._each, grid.units, n_tests, random_state=source)
        self._asked = 0

    def accepts(self, hypothesis: Any) -> bool:
        """Test the next hypothesis."""
        noise = int(self._noise[self._asked])
        self._asked += 1
        return self._test.passes(self._measure, hypothesis, noise, self._grid)

    @property
    def epsilon_stop(self) -> float:
        """What the tests asked so far have cost."""
        return add_losses(*[self._each] * self._asked)

    @property
    def epsilon_never(self) -> float:
        """The same: a no costs as much as a yes."""
        return add_losses(*[self._each] * self._asked)

    @property
    def epsilon_worst_case(self) -> float:
        """What all tests would cost."""
        return add_losses(*[self._each] * self.n_tests)
