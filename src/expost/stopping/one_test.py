"""One question with Laplace noise, settled before it is asked.

*Released*: whether value + noise stays below a limit. *Theorem*: Laplace noise of scale s costs Δ/s, whatever the
answer; with s = f·target/ln(1/(2δ)) and the limit at (1 − f)·target, a wrong "yes" needs the noise to fall below
−f·target = −s·ln(1/(2δ)), which has probability at most δ. The ε of a question depends on the hypothesis only through
what is released before it is asked, so ε is known beforehand and questions add up adaptively.

On the grid the value is rounded up, its floating-point error added, and the limit lowered by two units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expost.erm.sensitivity.grid import Grid
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.stopping.measure import Measure, charged_grid

_SLACK = 2  # grid units: rounding of the limit, and discrete against continuous tails


@dataclass(frozen=True)
class OneTest:
    """A single yes/no question with Laplace noise.

    Attributes
    ----------
    target
        What must not be exceeded, in real units.
    failure_probability
        δ, the chance of a wrong yes.
    share
        f, the part of the target given to the noise: the limit is (1 − f)·target, the noise scale f·target/ln(1/(2δ)).
    """

    target: float
    failure_probability: float
    share: float

    def __post_init__(self) -> None:
        if not 0 < self.failure_probability < 0.5 or not 0 < self.share < 1 or not self.target > 0:
            raise ValueError("a test needs 0 < failure_probability < 1/2, 0 < share < 1 and a positive target")

    @property
    def scale(self) -> float:
        """Noise scale in real units."""
        return self.share * self.target / math.log(1 / (2 * self.failure_probability))

    def epsilon(self, sensitivity: float) -> float:
        """Return what the answer costs for a measure of that sensitivity."""
        return sensitivity / self.scale

    def cost(self, sensitivity: float, error_bound: float) -> float:
        """Return what the answer costs, rounding to a grid and floating point included."""
        return self.epsilon(charged_grid(sensitivity, error_bound).effective_sensitivity)

    def ask(self, measure: Measure, hypothesis: Any, source: WordSource) -> tuple[bool, float]:
        """Return the answer and what it cost."""
        grid = measure.fine_grid(hypothesis)
        epsilon = self.epsilon(grid.effective_sensitivity)
        noise = int(discrete_laplace(epsilon, grid.units, 1, random_state=source)[0])
        return self.passes(measure, hypothesis, noise, grid), epsilon

    def passes(self, measure: Measure, hypothesis: Any, noise: int, grid: Grid) -> bool:
        """Return the answer for noise drawn beforehand."""
        limit = math.floor((1 - self.share) * self.target / grid.unit) - _SLACK - noise
        return measure.at_most(hypothesis, limit, grid.unit)


def best_share(test_cost: float, other_cost: float) -> float:
    """Return f that makes test_cost/f + other_cost/(1 − f) smallest: √T/(√T + √G).

    Examples
    --------
    >>> best_share(1.0, 4.0)
    0.3333333333333333
    """
    return math.sqrt(test_cost) / (math.sqrt(test_cost) + math.sqrt(other_cost))
