"""The search for a fraction of what a baseline, the best constant or the null model, leaves on the table.

*Released*: a lower bound g of G, the gap of the baseline (`expost.search.gap_probe`), then whatever the method releases
for the target r·g ≤ r·G. *Theorem*: losses add, the target being a function of what was released; failure probabilities
add, the probe's share of γ and the rest, which is the method's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expost.exceptions import TargetUnreachable
from expost.goals.excess_risk import ExcessRisk
from expost.goals.relative import RelativeExcessRisk
from expost.mechanisms.mechanism import Generator
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.composition import add_losses
from expost.privacy.release import Promise, Release
from expost.rounding import up
from expost.search.gap_probe import PROBE_SHARE, GapPlan, probe_gap

if TYPE_CHECKING:
    from expost.search.request import Request


@dataclass(frozen=True)
class RelativePlan:
    """Measure the gap, then search for a fraction of it."""

    goal: RelativeExcessRisk
    request: Request
    probe: GapPlan

    @classmethod
    def of(cls, goal: RelativeExcessRisk, request: Request) -> RelativePlan:
        """Settle the probe, and let the method say now what it would say after the most hopeful one."""
        probe = GapPlan.of(
            request.problem, request.failure_probability, request.errors, request.max_epsilon, goal.baseline
        )
        plan = cls(goal, request, probe)
        plan.reduced(request.problem.loss.null_value, probe.levels[0]).plan()
        return plan

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

    def search(self, generator: Generator, account: Account, source: WordSource) -> Release:
        """Probe, and go on with what the probe leads to."""
        problem, budget = self.request.problem, self.request.max_epsilon
        found = probe_gap(generator.risk, problem.loss, problem.p, self.probe, source)
        account.probe = add_losses(account.probe, found.epsilon)
        if found.lower is None:
            account.reasons.append(
                f"gap of {self.goal.against} probed for epsilon = {up(found.epsilon)}: about {found.noisy:.3g}, not to "
                f"be told from nothing at that epsilon with {problem.n:,} rows"
                + (", half of max_epsilon; a larger one may do" if budget is not None and found.epsilon < 1.0 else "")
                + f". Or {self.goal.none_better}; no fraction is promised"
            )
            return account.refused()
        reason = f"gap of {self.goal.against} probed for epsilon = {up(found.epsilon)}: at least {found.lower:.3g}"
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
