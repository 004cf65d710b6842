"""Goals about squared errors: a mean squared error of at most this, or R², the share of the variance explained.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.

*Mean squared error.* For a released θ it moves by at most (1 + ‖θ‖_∞)²/n (:func:`mean_square_sensitivity`).

*R².* The shortfall is MSE − (1 − r)·Var(y), predictions and targets in [−1, 1]. With m the mean of the other
targets, Var(y) = const + ((n − 1)/n²)(y − m)², so a row contributes (1/n)(y − ŷ)² − (1 − r)((n − 1)/n²)(y − m)², whose
range over y and ŷ is 4/n + (1 − r)((n − 1)/n²)·4|m| and is largest at |m| = 1: D = (4/n)(1 + (1 − r)(n − 1)/n). ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost import validation
from expost.goals.goal import LOWEST, ChainSettings, TestedGoal
from expost.goals.measure import (
    Judge,
    MeanSquare,
    Measure,
    clipped_mean_square,
    clipped_mean_square_error,
)
from expost.numeric import check, round_up
from expost.shown import down, up
from expost.solve.losses import HuberLoss
from expost.solve.problem import Problem

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


def mean_square_sensitivity(largest_coordinate: float, n: int) -> float:
    """Return (1 + m)²/n, the sensitivity of mean (y − xᵀθ)² for a fixed θ with ‖θ‖_∞ ≤ m.

    Proof. ‖x‖₁ ≤ 1 and |y| ≤ 1 put a row's term between 0 and (1 + m)², and both are attained: x = ±e_j. ∎

    Examples
    --------
    >>> round(mean_square_sensitivity(1.0, 100), 12)
    0.04
    """
    check(n=n, radius=largest_coordinate)
    return round_up((1.0 + largest_coordinate) ** 2 / n)


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
    margin: float = validation.MARGIN

    name = "mean squared error"
    labels = "real"
    end: ClassVar[float] = math.inf
    largest: ClassVar[float] = 4.0
    power = 2
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.1, 0.05, 0.02, 0.01)

    def statement(self) -> str:
        """Say what is promised about the mean square."""
        return (
            f"the mean squared error of the clipped, rounded rows is at most {up(self.at_most, 6)}, targets in [-1, 1] "
            f"and predictions moved into the target's bounds"
        )

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

    def idle_variance(self) -> float:
        """Return what is allowed: the mean has the target's variance."""
        return self.at_most

    def unexplained(self, reach: float, spread: float) -> float:
        """Return the part stated of what is allowed, as a part of the variance."""
        return reach * self.at_most / spread**2

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


_VARIANCE = 0.1  # a guess of Var(y) in units where targets lie in [−1, 1]; it only steers


@dataclass(frozen=True)
class R2(TestedGoal):
    """At least this share of the target's variance is explained, by predictions moved into the target's bounds.

    Parameters
    ----------
    at_least : float
        r, strictly between 0 and 1. Zero is what always predicting the mean reaches.

    Examples
    --------
    >>> R2(0.8)
    R2(at_least=0.8)
    """

    at_least: float

    name = "R²"
    labels = "real"
    sign = "≥"
    chained_only = True
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return (
            f"R² of the bounded, rounded rows is at least {down(self.at_least, 6)}, predictions moved into the "
            f"target's bounds"
        )

    def chain(self) -> ChainSettings:
        """Minimise Huber's loss: a row moves the gradient by a quarter of its length at most."""
        steer = (1.0 - self.at_least) * _VARIANCE
        return ChainSettings(HuberLoss(0.25), reach=0.75, start=48.0, test_part=1.0, steer=steer, lowest=LOWEST)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return D, rounded up."""
        return math.nextafter((4.0 / n) * (1.0 + (1.0 - self.at_least) * (n - 1) / n) * (1 + 1e-15), math.inf)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return MSE − (1 − r)·Var(y)."""
        return clipped_mean_square(objective, theta) - (1.0 - self.at_least) * objective.target_variance()

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of both means."""
        return 2.0 * clipped_mean_square_error(n, p, theta) + 2.0**-50

    def shown(self, bound: float) -> dict[str, float]:
        """Return nothing: MSE − (1 − r)·Var(y) ≤ b says R² ≥ r − b/Var(y), and b > 0 says nothing without Var(y).

        That is private, and nobody has paid for a bound on it (theory D2).
        """
        return {}

    def reached(self, shortfall: float, objective: Judge) -> float:
        """Return R²."""
        return self.at_least - shortfall / objective.target_variance()

    def idle_variance(self) -> float:
        """Return zero: the mean explains nothing, whatever the target."""
        return 0.0

    def unexplained(self, reach: float, spread: float) -> float:
        """Return the part stated of what is allowed."""
        return reach * (1.0 - self.at_least)
