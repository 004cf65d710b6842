"""A mean squared error: the mean of (y − prediction)² is at most this.

*Sensitivity*: for a released θ it moves by at most (1 + ‖θ‖_∞)²/n (`expost.erm.sensitivity.mean_square`).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.erm.losses import HuberLoss, Loss
from expost.erm.measures import Judge, MeanSquare, clipped_mean_square, clipped_mean_square_error
from expost.erm.problem import Problem
from expost.erm.sensitivity.mean_square import mean_square_sensitivity
from expost.goals.goal import Goal, TestedGoal
from expost.goals.shortfall import LOWEST, ChainSettings
from expost.privacy.release import Promise
from expost.stopping.measure import Measure

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

_TYPICAL_COORDINATE = 2.0  # only settles how the margin is stated; any value is sound


@dataclass(frozen=True)
class MeanSquaredError(TestedGoal):
    """The mean of (y − prediction)² is at most this, predictions moved into the target's bounds.

    Parameters
    ----------
    at_most : float
        For estimators and the command line in squared units of the target passed to them; for
        :func:`expost.search.run_search`, whose rows are scaled, in units where targets lie in [−1, 1].
    margin : float, default=0.2
        As in :class:`ErrorRate`, for a θ whose largest coordinate is 2; in proportion to (1 + ‖θ‖_∞)² for others.

    Examples
    --------
    >>> MeanSquaredError(4.0)
    MeanSquaredError(at_most=4.0, margin=0.2)
    """

    at_most: float
    margin: float = 0.2

    name = "mean squared error"
    largest: ClassVar[float] = 4.0

    def __post_init__(self) -> None:
        self.settle("at_most", math.inf)
        self.settle("margin")

    def require(self, loss: Loss) -> None:
        """Raise unless the loss is one of real targets."""
        if loss.labels != "real":
            raise ValueError(
                "MeanSquaredError is for regression; for classification pass ErrorRate(...) or LogLoss(...)"
            )

    def in_scaled_units(self, square_unit: float) -> Goal:
        """Return the goal in units where targets lie in [−1, 1]."""
        return dataclasses.replace(self, at_most=self.at_most / square_unit)

    def in_caller_units(self, promise: Promise, square_unit: float) -> Promise:
        """Say the promise in squared units of the target as well."""
        if promise.at_most is None:
            return promise
        stated = promise.at_most * square_unit
        return dataclasses.replace(
            promise,
            statement=f"{promise.statement}; that is {stated:g} in squared units of the target",
            at_most_caller_units=stated,
        )

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about the mean square."""
        statement = (
            f"the mean squared error of the clipped, rounded rows is at most {self.at_most:g}, targets in [-1, 1] and "
            f"predictions moved into the target's bounds"
        )
        return Promise(statement, goal=self.name, at_most=self.at_most)

    def plan(self, request: Request) -> Plan:
        """Refuse what costs nothing to meet; else test."""
        if self.at_most >= 1:
            raise ValueError(
                "always predicting the middle of the target bounds has a mean squared error of at most one half-width "
                "of those bounds squared, whatever the rows: ask for less, or use that model, which costs nothing"
            )
        return super().plan(request)

    def typical(self, problem: Problem) -> float:
        """Return the sensitivity for a largest coordinate of 2."""
        return mean_square_sensitivity(min(problem.radius, _TYPICAL_COORDINATE), problem.n)

    def measure(self, generator: Any) -> Measure:
        """Return the mean squared error, by sums or by rows."""
        return SquaredErrorMean(generator.mean_square(), generator.problem.n)

    def chain(self) -> ChainSettings:
        """Minimise Huber's loss: a row moves the gradient by a quarter of its length at most."""
        huber = HuberLoss(0.25)
        return ChainSettings(huber, reach=0.75, start=48.0, test_part=1.0, steer=self.at_most, lowest=LOWEST)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return 4/n: predictions are clipped to [−1, 1], as targets are."""
        return 4.0 / n

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the mean squared error of clipped predictions less what is allowed."""
        return clipped_mean_square(objective, theta) - self.at_most

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding."""
        return clipped_mean_square_error(n, p, theta) + 2.0**-50

    @property
    def as_risk(self) -> float:
        """The risk of regression is half the mean square."""
        return self.at_most / 2

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        return ("mean squared error: rounded to a public grid, floating-point error bounded and charged",)


class SquaredErrorMean(Measure):
    """Mean squared error; sensitivity (1 + ‖θ‖_∞)²/n."""

    def __init__(self, mean_square: MeanSquare, n: int) -> None:
        self._mean_square, self._n = mean_square, n

    def value(self, hypothesis: Any) -> float:
        """Return the mean squared error."""
        return self._mean_square.value(np.asarray(hypothesis, dtype=np.float64))

    def sensitivity(self, hypothesis: Any) -> float:
        """Return (1 + ‖θ‖_∞)²/n."""
        return mean_square_sensitivity(_largest(hypothesis), self._n)

    def error_bound(self, hypothesis: Any) -> float:
        """Return the bound for ‖θ‖_∞."""
        return self._mean_square.error_bound(_largest(hypothesis))


def _largest(theta: Any) -> float:
    return float(np.abs(np.asarray(theta, dtype=np.float64)).max(initial=0.0))
