"""A fraction of what the null model leaves on the table, reduced to an excess risk that any method can promise.

*Released*: a lower bound g of G = L(0) − min L (`expost.search.gap_probe`), then whatever the method releases for the
target r·g ≤ r·G. *Theorem*: losses add, the target being a function of what was released; failure probabilities add,
the probe's share of γ and the rest, which is the method's.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from expost.erm.risk import Risk
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.noise.source import WordSource
from expost.privacy.composition import add_losses
from expost.privacy.release import FrozenMapping, Release
from expost.search.gap_probe import PROBE_SHARE, GapPlan, probe_gap
from expost.search.goals import RelativeExcessRisk
from expost.search.plan import Problem

Search = Callable[[Problem, float | None], Release]
Check = Callable[[Problem, float | None], None]


def search_relative(
    risk: Risk,
    problem: Problem,
    goal: RelativeExcessRisk,
    *,
    check: Check,
    search: Search,
    max_epsilon: float | None,
    source: WordSource,
) -> Release:
    """Measure the gap, then search for a fraction of it.

    Parameters
    ----------
    risk, problem, goal
        What is searched; ``problem.excess_risk`` is not looked at.
    check
        Called with the most hopeful problem and what the cheapest probe would leave, to raise before anything is spent
        whatever ``search`` would raise for its arguments; its errors must depend on public numbers only.
    search
        Called with the problem the probe leads to and what is left of the budget.
    max_epsilon
        No outcome may cost more.
    source
        Where noise comes from.
    """
    plan = GapPlan.of(problem, risk, max_epsilon)

    def reduced(gap: float) -> Problem:
        left = (1 - PROBE_SHARE) * problem.failure_probability
        return dataclasses.replace(problem, excess_risk=goal.fraction * gap * (1 - 1e-12), failure_probability=left)

    check(reduced(problem.loss.null_value), _left(max_epsilon, plan.levels[0]))
    found = probe_gap(risk, problem.p, plan, source)
    worst = math.inf if max_epsilon is None else max_epsilon
    if found.lower is None:
        reason = (
            f"gap of the null model probed for epsilon = {found.epsilon:.3g}: about {found.noisy:.3g}, not to be told "
            f"from nothing at that epsilon with {problem.n:,} rows"
            + (", half of max_epsilon; a larger one may do" if max_epsilon is not None else "")
            + ". Or the null model is the optimum; no fraction is promised"
        )
        raise AccuracyNotReached(_refused(found.epsilon, worst, source.secure, reason))
    reason = f"gap of the null model probed for epsilon = {found.epsilon:.3g}: at least {found.lower:.3g}"
    problem = reduced(found.lower)
    try:
        release = search(problem, _left(max_epsilon, found.epsilon))
    except AccuracyNotReached as refusal:
        raise AccuracyNotReached(_with_probe(refusal.release, found.epsilon, worst, reason)) from None
    except TargetUnreachable:  # whose message says that nothing was spent
        why = f"{reason}; excess risk {problem.excess_risk:.3g} is out of reach with what is left of the budget"
        raise AccuracyNotReached(_refused(found.epsilon, worst, source.secure, why)) from None
    return _with_probe(release, found.epsilon, worst, reason)


def _left(max_epsilon: float | None, spent: float) -> float | None:
    """Return a budget that does not exceed the whole one together with what is spent.

    With room for a few roundings: the probe's loss joins one of the method's own, and each sum is rounded up.
    """
    return None if max_epsilon is None else (max_epsilon - spent) * (1 - 1e-12)


def _refused(epsilon: float, worst: float, secure: bool, reason: str) -> Release:
    return Release(
        status="refused",
        method="gap probe",
        epsilon_probe=epsilon,
        epsilon_worst_case=worst,
        secure=secure,
        parameters=FrozenMapping({"reasons": (reason,)}),
    )


def _with_probe(release: Release, epsilon: float, worst: float, reason: str) -> Release:
    reasons = (reason, *release.parameters.get("reasons", ()))
    return dataclasses.replace(
        release,
        epsilon_probe=add_losses(release.epsilon_probe, epsilon),
        epsilon_worst_case=worst,
        parameters=FrozenMapping({**release.parameters, "reasons": reasons}),
    )
