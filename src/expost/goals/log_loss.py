"""A log loss: the mean of −log(probability given to the true label) is at most this.

*Sensitivity*: log odds are moved into [−M, M], so a row's term lies between log(1 + e^{−M}) and log(1 + e^M), which
differ by M: sensitivity M/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from expost import validation
from expost.goals.goal import ChainSettings, TestedGoal
from expost.goals.measure import Judge, Measure
from expost.numeric import INFLATION, FloatArray, gamma, summation_length
from expost.release.release import Promise
from expost.shown import up
from expost.solve.losses import LogisticLoss, Loss
from expost.solve.problem import Problem

LARGEST_ODDS = 4.0  # M: probabilities between 1.8 % and 98.2 %


@dataclass(frozen=True)
class ClippedLogLoss:
    """−log of the probability given to the label, log odds clipped to [−M, M]."""

    def __call__(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return it for each row."""
        return LogisticLoss().value(np.clip(u, -LARGEST_ODDS, LARGEST_ODDS), y)


@dataclass(frozen=True)
class LogLoss(TestedGoal):
    """The mean of −log(probability given to the true label) is at most this.

    Parameters
    ----------
    at_most : float
        Strictly between 0 and ln 2 ≈ 0.69, which always saying ½ reaches. Log odds are moved into [−4, 4] before they
        are judged.

    Examples
    --------
    >>> LogLoss(0.4)
    LogLoss(at_most=0.4)
    """

    at_most: float

    name = "log loss"
    largest: ClassVar[float] = float(np.log1p(np.exp(LARGEST_ODDS)))
    chained_only = True
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "at_most", validation.share("at_most", self.at_most, end=float(np.log(2.0))))

    @classmethod
    def stated(cls, value: float, margin: float) -> LogLoss:
        """Return the goal that a flag states; it has no margin."""
        return cls(value)

    def require(self, loss: Loss) -> None:
        """Raise unless the loss is one of labels."""
        if loss.labels != "binary":
            raise ValueError("LogLoss is for classification; for regression pass R2(...) or MeanSquaredError(...)")

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about the mean."""
        statement = (
            f"the log loss of the bounded, rounded rows is at most {up(self.at_most, 6)}, log odds moved into "
            f"[-{LARGEST_ODDS:g}, {LARGEST_ODDS:g}]"
        )
        return Promise(statement, goal=self.name, at_most=self.at_most)

    def typical(self, problem: Problem) -> float:
        """Return the sensitivity of the shortfall."""
        return self.shortfall_sensitivity(problem.n)

    def measure(self, generator: Any) -> Measure:
        """Refuse: it is searched for by a chain of releases only."""
        raise ValueError("LogLoss has no measure of its own: it is searched for by a chain of releases")

    def chain(self) -> ChainSettings:
        """Minimise the logistic loss itself: capping its slope would not estimate probabilities."""
        return ChainSettings(LogisticLoss(), reach=5.0, start=32.0, test_part=0.3, steer=0.5 * self.at_most)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return M/n."""
        return LARGEST_ODDS / n

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the mean log loss of clipped odds less what is allowed."""
        return objective.mean_of(ClippedLogLoss(), theta) - self.at_most

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding: a prediction is off by γ_p‖θ‖₂, a term by that and a few units of 4.1."""
        length = gamma(p + 2) * float(np.linalg.norm(theta))
        return INFLATION * (length + 5.0 * gamma(summation_length(n) + LogisticLoss.EVALUATION_ULPS + 8))
