"""A log loss: the mean of −log(probability given to the true label) is at most this.

*Sensitivity*: log odds are moved into [−M, M], so a row's term lies between log(1 + e^{−M}) and log(1 + e^M), which
differ by M: sensitivity M/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from expost.goals.goal import ChainSettings
from expost.goals.labels_and_base_rate import BaseRate, LabelGoal
from expost.goals.measure import Judge
from expost.numeric import INFLATION, FloatArray, gamma, summation_length
from expost.shown import up
from expost.solve.losses import LogisticLoss

LARGEST_ODDS = 4.0  # M: probabilities between 1.8 % and 98.2 %


@dataclass(frozen=True)
class ClippedLogLoss:
    """−log of the probability given to the label, log odds clipped to [−M, M]."""

    def __call__(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return it for each row."""
        return LogisticLoss().value(np.clip(u, -LARGEST_ODDS, LARGEST_ODDS), y)


_STATED = "always stating the base rate"


def _cross_entropy(share: float, stated: float) -> float:
    """Return the log loss of stating one share where it is another, log odds in [−M, M]."""
    least = 1.0 / (1.0 + math.exp(LARGEST_ODDS))
    said = min(max(stated, least), 1.0 - least)
    return -share * math.log(said) - (1.0 - share) * math.log1p(-said)


@dataclass(frozen=True)
class LogLoss(LabelGoal):
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
    base: BaseRate | None = field(default=None, repr=False)

    name = "log loss"
    end: ClassVar[float] = math.log(2.0)
    largest_odds = LARGEST_ODDS
    chained_only = True
    offered: ClassVar[tuple[float, ...]] = (0.65, 0.6, 0.5, 0.4, 0.3, 0.2)
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def statement(self) -> str:
        """Say what is promised about the mean."""
        return (
            f"the log loss of the bounded, rounded rows is at most {up(self.at_most, 6)}, log odds moved into "
            f"[-{LARGEST_ODDS:g}, {LARGEST_ODDS:g}]"
        )

    def missed(self, u: FloatArray, y: FloatArray, weights: FloatArray) -> float:
        """Return the mean log loss less what is allowed, log odds moved into bounds as a test does."""
        return float(weights @ ClippedLogLoss()(u, y)) - self.at_most

    def number_at(self, reach: float) -> float:
        """Return the log loss that is that part of the way from a perfect model's to what is allowed."""
        return self.at_most - (1.0 - reach) * self.room

    def constants(self, share: float, base: BaseRate) -> dict[str, float]:
        """Return what always stating the released share misses: linear in the true one."""
        return {_STATED: _cross_entropy(share, base.rate) - self.at_most}

    def compared(self, constant: str, base: BaseRate) -> str:
        """Say what that reaches."""
        share = base.about(lambda share: share)
        return f"{_STATED}, {share}, has log loss {base.about(lambda share: _cross_entropy(share, base.rate))}"

    def chain(self) -> ChainSettings:
        """Minimise the logistic loss itself: capping its slope would not estimate probabilities."""
        return ChainSettings(LogisticLoss(), reach=5.0, start=5.0, steer=0.5 * self.at_most)

    @property
    def room(self) -> float:
        """What is allowed, less the log loss of a model that is right in every row, its log odds clipped."""
        return max(self.at_most - math.log1p(math.exp(-LARGEST_ODDS)), 1e-9 * self.at_most)

    @property
    def each_row(self) -> tuple[float, float]:
        """What log odds of ±M give for the label that they speak for, and for the other."""
        return math.log1p(math.exp(-LARGEST_ODDS)) * (1.0 - 1e-12), math.log1p(math.exp(LARGEST_ODDS)) * (1.0 + 1e-12)

    @property
    def constant(self) -> float:
        """What always saying ½ reaches."""
        return math.log(2.0)

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
