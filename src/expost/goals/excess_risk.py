"""Excess risk, the paper's target: how much worse than the best model the released one may be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expost.goals.goal import ABOUT_RISK, Goal
from expost.release.release import Promise
from expost.shown import up
from expost.solve.problem import Problem

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


@dataclass(frozen=True)
class ExcessRisk(Goal):
    """L(θ) − min L is at most this.

    Parameters
    ----------
    at_most : float
        α, in scaled units: rows in the unit ball, targets in [−1, 1].

    Examples
    --------
    >>> ExcessRisk(0.05)
    ExcessRisk(at_most=0.05)
    """

    at_most: float

    name = None
    methods = ("auto", "certified", "stationarity", "above_threshold", "doubling", "theory", "fixed")

    def __post_init__(self) -> None:
        self.settle("at_most", math.inf, called="excess_risk")

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about the risk."""
        return Promise(
            f"the excess {ABOUT_RISK} is at most {up(self.at_most, 6)}, against {problem.compared_with}",
            excess_risk=self.at_most,
        )

    @property
    def excess_risk(self) -> float:
        """α."""
        return self.at_most

    def plan(self, request: Request) -> Plan:
        """Leave it to the method."""
        return request.method.settle(request, self.at_most)
