"""A fraction of what the null model leaves on the table, reduced to an excess risk that any method can promise.

*Released*: a lower bound g of G = L(0) − min L (`expost.goals.gap_probe`), then whatever the method releases for the
target r·g ≤ r·G. *Theorem*: losses add, the target being a function of what was released; failure probabilities add,
the probe's share of γ and the rest, which is the method's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expost import validation
from expost.erm.problem import Problem
from expost.exceptions import TargetUnreachable
from expost.goals.excess_risk import ExcessRisk
from expost.goals.gap_probe import PROBE_SHARE, GapPlan, probe_gap
from expost.goals.goal import ABOUT_RISK, Flag, Goal
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.composition import add_losses
from expost.privacy.release import Promise, Release

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
    flag = Flag("--relative-excess-risk", "R", "the same as a fraction of what the null model misses")
    methods = ("auto", "certified", "stationarity", "above_threshold", "doubling")

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", validation.share("fraction", self.fraction))

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
        """Settle the probe, and let the method say now what it would say after the most hopeful one."""
        probe = GapPlan.of(request.problem, request.failure_probability, request.errors, request.max_epsilon)
        plan = RelativePlan(self, request, probe)
        plan.reduced(request.problem.loss.null_value, probe.levels[0]).plan()
        return plan

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        gap = "gap of the null model: rounded to a public grid, floating-point error bounded and charged"
        return (*super().charged(by_method), gap)


@dataclass(frozen=True)
class RelativePlan:
    """Measure the gap, then search for a fraction of it."""

    goal: RelativeExcessRisk
    request: Request
    probe: GapPlan

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the budget; without one there is no bound, the gap being unknown."""
        return math.inf if self.request.max_epsilon is None else self.request.max_epsilon

    def reduced(self, gap: float, spent: float) -> Request:
        """Return the request for a fraction of a gap, with what is left of γ and of the budget.

        With room for a few roundings: the probe's loss joins one of the method's own, and each sum is rounded up.
        """
        request, budget = self.request, self.request.max_epsilon
        return request.reduced_to(
            ExcessRisk(self.goal.fraction * gap * (1 - 1e-12)),
            failure_probability=(1 - PROBE_SHARE) * request.failure_probability,
            max_epsilon=None if budget is None else (budget - spent) * (1 - 1e-12),
        )

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Probe, and go on with what the probe leads to."""
        problem, budget = self.request.problem, self.request.max_epsilon
        found = probe_gap(generator.risk, problem.p, self.probe, source)
        account.probe = add_losses(account.probe, found.epsilon)
        if found.lower is None:
            account.reasons.append(
                f"gap of the null model probed for epsilon = {found.epsilon:.3g}: about {found.noisy:.3g}, not to be "
                f"told from nothing at that epsilon with {problem.n:,} rows"
                + (", half of max_epsilon; a larger one may do" if budget is not None else "")
                + ". Or the null model is the optimum; no fraction is promised"
            )
            return account.refused()
        reason = f"gap of the null model probed for epsilon = {found.epsilon:.3g}: at least {found.lower:.3g}"
        request = self.reduced(found.lower, found.epsilon)
        assert isinstance(request.goal, ExcessRisk)
        alpha = request.goal.at_most
        try:
            plan = request.plan()
        except TargetUnreachable:  # whose message says that nothing was spent
            account.reasons.append(f"{reason}; excess risk {alpha:.3g} is out of reach with what is left of the budget")
            return account.refused()
        account.reasons.append(reason)
        inner = plan.search(generator, Account(account.method, plan.worst_case, account.secure), source)
        return account.conclude(inner, promise=Promise("reduced", excess_risk=alpha))
