"""A fraction of what a baseline leaves on the table, reduced to an excess risk that any method can promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from expost import validation
from expost.erm.baseline import constant_gain, has_constant
from expost.erm.losses import Loss
from expost.erm.problem import Problem
from expost.goals.goal import ABOUT_RISK, Goal
from expost.privacy.release import Promise

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

Baseline = Literal["constant", "null"]


@dataclass(frozen=True)
class RelativeExcessRisk(Goal):
    """At most this fraction of what the best constant leaves on the table: L(θ) − min L ≤ r·(C − min L).

    Parameters
    ----------
    fraction : float
        r, strictly between 0 and 1.
    baseline : {"constant", "null"}, default="constant"
        What the best model is compared with. C is the mean loss of the best constant, without a penalty: half the
        variance of the target, or the entropy of the labels. ``"null"`` compares with L(0) instead, what predicting
        the middle of the target's bounds (or a probability of ½) leaves on the table, which is easier to beat.

    Examples
    --------
    >>> RelativeExcessRisk(0.1)
    RelativeExcessRisk(fraction=0.1, baseline='constant')
    """

    fraction: float
    baseline: Baseline = "constant"

    name = "relative excess risk"
    methods = ("auto", "certified", "stationarity", "above_threshold", "doubling")

    def __post_init__(self) -> None:
        self.settle("fraction")
        validation.one_of("baseline", self.baseline, ("constant", "null"))

    @property
    def against(self) -> str:
        """Name the baseline."""
        return "the null model" if self.baseline == "null" else "the best constant"

    @property
    def none_better(self) -> str:
        """Say what it means that there is no gap."""
        if self.baseline == "null":
            return "the null model is the optimum"
        return "no model is better than the best constant at this regularization, and a smaller one may help"

    def require(self, loss: Loss) -> None:
        """Raise unless the best constant is known."""
        if self.baseline == "constant" and not has_constant(loss):
            raise ValueError(
                f"the best constant is known for the squared and the logistic loss, not for the {loss.name} loss; pass "
                f"RelativeExcessRisk({self.fraction:g}, baseline='null')"
            )

    def require_rows(self, generator: Any) -> None:
        """Raise for sums made by hand without the one that the best constant needs."""
        if self.baseline == "constant":
            constant_gain(generator.risk, generator.problem.loss)

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise, with the excess risk it was reduced to if it came to that."""
        alpha = None if reduced is None else reduced.excess_risk
        whose = "that of the null model θ = 0"
        if self.baseline == "constant":
            whose = "what the best constant (its mean loss, no penalty) is above the minimum"
        number = "" if alpha is None else f" (and at most {alpha:g})"
        return Promise(
            f"the excess {ABOUT_RISK} is at most {self.fraction:g} of {whose}{number}, against {problem.compared_with}",
            excess_risk=alpha,
            goal=self.name,
            at_most=self.fraction,
        )

    def plan(self, request: Request) -> Plan:
        """Measure what the baseline leaves on the table, and go on for a fraction of that."""
        return request.relative(self)

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        gap = f"gap of {self.against}: rounded to a public grid, floating-point error bounded and charged"
        return (*super().charged(by_method), gap)
