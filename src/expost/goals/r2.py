"""R²: at least this share of the target's variance is explained.

*Sensitivity*: the shortfall is MSE − (1 − r)·Var(y), predictions and targets in [−1, 1]. With m the mean of the other
targets, Var(y) = const + ((n − 1)/n²)(y − m)², so a row contributes (1/n)(y − ŷ)² − (1 − r)((n − 1)/n²)(y − m)², whose
range over y and ŷ is 4/n + (1 − r)((n − 1)/n²)·4|m| and is largest at |m| = 1: D = (4/n)(1 + (1 − r)(n − 1)/n). ∎
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from expost.erm.losses import HuberLoss, Loss
from expost.erm.measures import Judge, clipped_mean_square, clipped_mean_square_error, target_variance
from expost.erm.problem import Problem
from expost.goals.goal import TestedGoal
from expost.goals.shortfall import LOWEST, ChainSettings
from expost.privacy.release import Promise
from expost.stopping.measure import Measure

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
    chained_only = True
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def __post_init__(self) -> None:
        self.settle("at_least")

    @classmethod
    def stated(cls, value: float, margin: float) -> R2:
        """Return the goal that a flag states; it has no margin."""
        return cls(value)

    def require(self, loss: Loss) -> None:
        """Raise unless the loss is one of real targets."""
        if loss.labels != "real":
            raise ValueError("R2 is for regression; for classification pass ErrorRate(...) or LogLoss(...)")

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about the share."""
        statement = (
            f"R² of the bounded, rounded rows is at least {self.at_least:g}, predictions moved into the target's bounds"
        )
        return Promise(statement, goal=self.name, at_least=self.at_least)

    def typical(self, problem: Problem) -> float:
        """Return the sensitivity of the shortfall."""
        return self.shortfall_sensitivity(problem.n)

    def measure(self, generator: Any) -> Measure:
        """Refuse: it is searched for by a chain of releases only."""
        raise ValueError("R2 has no measure of its own: it is searched for by a chain of releases")

    def chain(self) -> ChainSettings:
        """Minimise Huber's loss: a row moves the gradient by a quarter of its length at most."""
        steer = (1.0 - self.at_least) * _VARIANCE
        return ChainSettings(HuberLoss(0.25), reach=0.75, start=48.0, test_part=1.0, steer=steer, lowest=LOWEST)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return D, rounded up."""
        return math.nextafter((4.0 / n) * (1.0 + (1.0 - self.at_least) * (n - 1) / n) * (1 + 1e-15), math.inf)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return MSE − (1 − r)·Var(y)."""
        return clipped_mean_square(objective, theta) - (1.0 - self.at_least) * target_variance(objective)

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of both means."""
        return 2.0 * clipped_mean_square_error(n, p, theta) + 2.0**-50

    def shown(self, bound: float) -> dict[str, float]:
        """Return nothing: MSE − (1 − r)·Var(y) ≤ b says R² ≥ r − b/Var(y), and b > 0 says nothing without Var(y).

        That is private, and nobody has paid for a bound on it (theory D2).
        """
        return {}

    def in_caller_units(self, promise: Promise, square_unit: float) -> Promise:
        """Return the promise as it is: a share has no units."""
        return dataclasses.replace(promise)
