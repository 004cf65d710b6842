"""Missed positives: at most this share of the rows is positive and predicted negative.

*Sensitivity*: as for an error rate, the number of such rows is an exact integer for θ on a public grid
(`expost.goals.measure`) and moves by at most one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.goals.goal import ChainSettings, TestedGoal
from expost.goals.measure import Judge
from expost.numeric import FloatArray, to_grid
from expost.solve.losses import CappedLogisticLoss


@dataclass(frozen=True)
class MissedPositives(TestedGoal):
    """At most this share of the rows is positive and predicted negative.

    Parameters
    ----------
    at_most : float
        The share, of all rows, strictly between 0 and 1.
    margin : float, default=0.2
        As in :class:`ErrorRate`.

    Examples
    --------
    >>> MissedPositives(0.02)
    MissedPositives(at_most=0.02, margin=0.2)
    """

    at_most: float
    margin: float = 0.2

    name = "missed positives"
    labels = "binary"

    def statement(self) -> str:
        """Say what is promised about the share."""
        return (
            f"the share of clipped, rounded rows that are positive and predicted negative is at most {self.at_most:g}"
        )

    def hypothesis(self, generator: Any) -> Callable[[Any], Any]:
        """Round hypotheses to the grid on which predictions are exact."""
        return lambda values: to_grid(np.asarray(generator.hypothesis(values)), generator.problem.radius)

    def chain(self) -> ChainSettings:
        """Minimise what an error rate does."""
        return ChainSettings(CappedLogisticLoss(0.5), reach=5.0, start=5.0, steer=self.at_most)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the share of missed rows less what is allowed; θ is on the grid of `to_grid`."""
        return objective.mean_of(missed, theta, 1.0) - self.at_most

    def shortfall_sensitivity(self, n: int) -> float:
        """Return 1/n."""
        return 1.0 / n

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of a quotient and a difference: counts are exact."""
        return 2.0**-51


def missed(u: FloatArray, y: FloatArray) -> FloatArray:
    """Return 1 for a positive row that is predicted negative: a mean of such is a count, exact up to one quotient."""
    return ((u <= 0.0) & (y > 0.0)).astype(np.float64)
