"""An error rate: at most this share of the rows is misclassified.

*Sensitivity*: the number of misclassified rows is an exact integer for θ on a public grid (`expost.goals.measure`) and
moves by at most one. Rounding θ to the grid is post-processing, and the rounded θ is what is tested and released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from expost import validation
from expost.goals.base_rate import BaseRate
from expost.goals.counts import Added, CountedGoal
from expost.goals.goal import ChainSettings, TestedGoal
from expost.goals.measure import Judge, Measure
from expost.numeric import UNITS, Grid, to_grid
from expost.shown import up
from expost.solve.losses import CappedLogisticLoss

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class ErrorRate(CountedGoal):
    """At most this share of the rows is misclassified.

    Parameters
    ----------
    at_most : float
        The share, strictly between 0 and 1. A row is predicted positive where xᵀθ > 0, as ``predict`` does; a row
        with xᵀθ = 0 (every column at the middle of its bounds, say) is predicted negative.
    margin : float, default=0.2
        Part of ``at_most`` that the test's noise may take up: a model within (1 − margin)·at_most is likely to pass.
        The test costs in proportion to 1/margin; a small one is for targets close to what the best model reaches.

    Examples
    --------
    >>> ErrorRate(0.05)
    ErrorRate(at_most=0.05, margin=0.2)
    """

    at_most: float
    margin: float = validation.MARGIN
    base: BaseRate | None = field(default=None, repr=False)

    name = "error rate"
    chained_only = False
    cuts = False
    methods = TestedGoal.methods
    counts = True
    each_row = (0.0, 1.0)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return (
            f"the share of clipped, rounded rows misclassified is at most {up(self.at_most, 6)} (a tie counts as the "
            f"first class)"
        )

    def measure(self, generator: Any) -> Measure:
        """Return the share of misclassified rows."""
        return ErrorShare(generator.risk.objective)

    def hypothesis(self, generator: Any) -> Callable[[Any], Any]:
        """Round hypotheses to the grid on which predictions are exact."""
        radius = generator.problem.radius
        return lambda values: to_grid(np.asarray(generator.hypothesis(values)), radius)

    def chain(self) -> ChainSettings:
        """Minimise the logistic loss with its slope capped: as good for an error rate, at half the sensitivity."""
        return ChainSettings(CappedLogisticLoss(0.5), reach=5.0, start=5.0, steer=self.at_most)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        e = self.at_most
        return Added(-e, 1.0 - e, 1.0 - e, -e)

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return the share of errors."""
        return false_alarms + misses

    shown, missed, number_at = TestedGoal.shown, TestedGoal.missed, TestedGoal.number_at

    @property
    def constant(self) -> float:
        """The rarer label's share, or one half: one of the two labels is at least as common as that."""
        return 0.5 if self.base is None else min(self.base.rate, 1.0 - self.base.rate)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the share of errors less what is allowed; θ is on the grid of `to_grid`."""
        return objective.errors(theta) / objective.n - self.at_most

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of a quotient and a difference: counts are exact."""
        return 2.0**-51

    def exact(self) -> tuple[str, ...]:
        """Say that counts are exact."""
        return ("misclassified rows, θ being on a public grid",)


class ErrorShare(Measure):
    """Share of misclassified rows: an exact count, so the sensitivity is 1/n and nothing is added to it."""

    def __init__(self, objective: Judge) -> None:
        self._objective = objective

    def value(self, hypothesis: Any) -> float:
        """Return the share."""
        return self._objective.errors(np.asarray(hypothesis)) / self._objective.n

    def sensitivity(self, hypothesis: Any = None) -> float:
        """Return 1/n."""
        return 1.0 / self._objective.n

    def grid(self, hypothesis: Any) -> Grid:
        """Return 1/n in UNITS parts: counts need no rounding, so none is charged."""
        return Grid(1.0 / (self._objective.n * UNITS), UNITS)

    def fine_grid(self, hypothesis: Any) -> Grid:
        """Return the same: only on that grid are limits multiples of a count."""
        return self.grid(hypothesis)

    def at_most(self, hypothesis: Any, limit: int, unit: float) -> bool:
        """Compare counts, each UNITS units."""
        return limit >= 0 and self._objective.errors(np.asarray(hypothesis)) * UNITS <= limit
