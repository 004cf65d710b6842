"""Missed positives: at most this share of the rows is positive and predicted negative.

*Sensitivity*: as for an error rate, the number of such rows is an exact integer for θ on a public grid
(`expost.goals.measure`) and moves by at most one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.goals.error_rate import ErrorRate
from expost.goals.measure import Judge, Measure
from expost.numeric import FloatArray
from expost.release.release import Promise
from expost.solve.problem import Problem


@dataclass(frozen=True)
class MissedPositives(ErrorRate):
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

    name = "missed positives"

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about the share."""
        statement = (
            f"the share of clipped, rounded rows that are positive and predicted negative is at most {self.at_most:g}"
        )
        return Promise(statement, goal=self.name, at_most=self.at_most)

    def measure(self, generator: Any) -> Measure:
        """Return the share of missed rows."""
        return MissedShare(generator.risk.objective)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the share of missed rows less what is allowed; θ is on the grid of `to_grid`."""
        return objective.mean_of(missed, theta, 1.0) - self.at_most


def missed(u: FloatArray, y: FloatArray) -> FloatArray:
    """Return 1 for a positive row that is predicted negative: a mean of such is a count, exact up to one quotient."""
    return ((u <= 0.0) & (y > 0.0)).astype(np.float64)


class MissedShare(Measure):
    """Share of rows missed; sensitivity 1/n."""

    def __init__(self, objective: Judge) -> None:
        self._objective = objective

    def value(self, hypothesis: Any) -> float:
        """Return the share."""
        return self._objective.mean_of(missed, np.asarray(hypothesis), 1.0)

    def sensitivity(self, hypothesis: Any) -> float:
        """Return 1/n."""
        return 1.0 / self._objective.n

    def error_bound(self, hypothesis: Any) -> float:
        """Return the rounding of one quotient: counts are exact."""
        return 2.0**-53
