"""A fraction of what the null model leaves on the table, reduced to an excess risk that any method can promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expost.erm.problem import Problem
from expost.goals.goal import ABOUT_RISK, Goal
from expost.privacy.release import Promise

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


@dataclass(frozen=True)
class RelativeExcessRisk(Goal):
    """At most this fraction of what the null model leaves on the table: L(θ) − min L ≤ r·(L(0) − min L).

    Parameters
    ----------
    fraction : float
        r, strictly between 0 and 1.

    Examples
    --------
    >>> RelativeExcessRisk(0.1)
    RelativeExcessRisk(fraction=0.1)
    """

    fraction: float

    name = "relative excess risk"
    methods = ("auto", "certified", "stationarity", "above_threshold", "doubling")

    def __post_init__(self) -> None:
        self.settle("fraction")

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise, with the excess risk it was reduced to if it came to that."""
        alpha = None if reduced is None else reduced.excess_risk
        number = "" if alpha is None else f" (and at most {alpha:g})"
        return Promise(
            f"the excess {ABOUT_RISK} is at most {self.fraction:g} of that of the null model θ = 0{number}, against "
            f"{problem.compared_with}",
            excess_risk=alpha,
            goal=self.name,
            at_most=self.fraction,
        )

    def plan(self, request: Request) -> Plan:
        """Measure what the null model leaves on the table, and go on for a fraction of that."""
        return request.relative(self)

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        gap = "gap of the null model: rounded to a public grid, floating-point error bounded and charged"
        return (*super().charged(by_method), gap)
