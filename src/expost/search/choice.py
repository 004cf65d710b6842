"""Which mechanism a search at a δ takes: the one that is predicted to be cheapest, by public numbers alone.

Every candidate says, before a row is looked at, what it would roughly cost, at δ, to get as far as searches usually
have to; the release states the comparison, and nothing has to be right about it. A pure ε holds at every δ, so whoever
accepts a δ may be given it. For goals that are tested (:func:`staged_request`) that number follows from the rows' shape
and number, the goal and δ (`StagedPlan.predicted`). Only ways compete that minimise what the goal is about
(`StagedPlan.serves`), and one that is out of reach, whatever the rows are, is not taken where another is predicted to
get there within the budget. For an excess risk (:func:`cheaper_at_delta`) second moments under Gaussian noise compete
with what is pure. A new way is an entry in :data:`STAGED`.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

from expost import validation
from expost.account.account import current
from expost.account.composition import ROW, Curve, Unit
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.mechanisms.descent.mechanism import DescentPlan, GradientDescent
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.moments.gaussian import GaussianMoments, MomentsPlan
from expost.mechanisms.moments.risk import MomentRiskPlan
from expost.mechanisms.objective.chain import ChainPlan, GaussianChainPlan
from expost.mechanisms.objective.mechanism import ObjectivePerturbation
from expost.search import METHODS
from expost.search.engine import StagedPlan
from expost.search.request import Request
from expost.shown import up
from expost.solve.problem import Problem
from expost.table.shape import Geometry

PURE = "pure"  # a chain of releases with pure losses, which count at any δ
#: The plan of each mechanism, by the mechanism's own name.
STAGED: dict[str, type[StagedPlan]] = {
    "gradient descent": DescentPlan,
    "objective": GaussianChainPlan,
    "covariance": MomentsPlan,
    PURE: ChainPlan,
}
_SAID = {
    "descent": "gradient descent",
    "objective": "objective perturbation with Gaussian noise",
    "covariance": "second moments under Gaussian noise",
    PURE: "objective perturbation with pure noise",
}


def staged_request(
    perturbation: str | None,
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
    pure: Geometry | None = None,
) -> Request:
    """Return the request at δ for a goal in people's units: by the way that is stated, or that is predicted cheapest.

    Parameters
    ----------
    perturbation
        The way, of `expost.mechanisms.WITH_SCHEMA`, or None.
    goal, geometry, n, failure_probability, budget, delta, unit
        As in :class:`~expost.search.engine.StagedPlan`.
    pure
        The shape of rows that pure noise would follow, where that may be chosen.

    Examples
    --------
    >>> from expost import ErrorRate
    >>> from expost.table.shape import l2_ball
    >>> request = staged_request(None, ErrorRate(0.2), l2_ball(50), 50_000, 0.1, 10.0, 1e-6)
    >>> request.mechanism.name
    'gradient descent'
    """
    reason = ""
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    if perturbation is None:
        plans = competing_plans(goal, geometry, n, failure_probability, budget, delta, unit, pure)
        perturbation, reason = _cheapest(plans, unit.worst_case(budget))
    else:
        validation.one_of("perturbation", perturbation, ["descent", "objective", "covariance"])
    mechanism: Mechanism
    if perturbation == PURE:
        assert pure is not None
        said = f"{pure.reason}; {reason}" if pure.reason else reason
        mechanism = ObjectivePerturbation(replace(pure, reason=said))
    elif perturbation == "objective":
        mechanism = ObjectivePerturbation(geometry, gaussian=True)
    elif perturbation == "covariance":
        mechanism = GaussianMoments(geometry)
    else:
        mechanism = GradientDescent(geometry)
    problem = Problem.of(goal.chain().loss, n=n, p=geometry.columns, regularization=1.0)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        mechanism,
        failure_probability,
        max_epsilon=budget,
        unit=unit,
        delta=delta,
        reason=reason,
    )


def competing_plans(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
    pure: Geometry | None = None,
) -> dict[str, StagedPlan]:
    """Return the ways that compete, whether or not they are within reach."""
    loss, plans = goal.chain().loss, dict[str, StagedPlan]()
    for name, mechanism in (("descent", "gradient descent"), ("objective", "objective"), ("covariance", "covariance")):
        kind = STAGED[mechanism]
        if kind.serves(loss):
            plans[name] = kind.settled(goal, loss, geometry, n, failure_probability, budget, delta, unit)
    # several rows of a person, and budgets that several fits share, are where Gaussian costs add in squares
    if pure is not None and unit == ROW and current(delta, unit) is None:
        plans[PURE] = ChainPlan.settled(goal, loss, pure, n, failure_probability, budget)
    return plans


def _within_reach(plan: StagedPlan) -> bool:
    try:
        plan.require_possible()
    except TargetUnreachable:
        return False
    return True


def _cheapest(plans: dict[str, StagedPlan], most: float) -> tuple[str, str]:
    """Return the way that is predicted to cost least, the next within ε if it cannot get there, and why, for people."""
    costs = {name: plan.predicted for name, plan in plans.items()}
    best = min(costs, key=lambda name: costs[name])
    reached = costs if _within_reach(plans[best]) else {name for name in costs if _within_reach(plans[name])}
    if best not in reached:
        best = min((name for name in reached if costs[name] <= most), key=lambda name: costs[name], default=best)
    others = ", ".join(
        f"{_SAID[name]} {up(cost, 2) if name in reached else 'out of reach'}"
        for name, cost in costs.items()
        if name != best
    )
    return best, (
        f"{_SAID[best]} was predicted to be cheapest by a formula of public numbers alone: epsilon about "
        f"{up(costs[best], 2)} where searches usually end ({others}); where this one ends, its rows decide"
    )


def cheaper_at_delta(gaussian: Request | None, pure: Request | None) -> Request:
    """Return the request at δ, or the pure one for the same goal with the reason for it; None is what cannot be."""
    if gaussian is None:
        return _pure_alone(pure)
    if pure is None or current(gaussian.delta, gaussian.unit) is not None:
        return gaussian  # as stated; or in a budget that several fits share, where costs add in squares
    at_delta, alone = _expected(gaussian), _expected(pure)
    if not alone < at_delta:
        return gaussian
    said = "out of reach" if math.isinf(at_delta) else up(at_delta, 2)
    reason = (
        f"pure noise was predicted to be cheapest from public numbers alone: epsilon about {up(alone, 2)} "
        f"({_SAID['covariance']} {said})"
    )
    return dataclasses.replace(pure, reason=reason)


def _pure_alone(pure: Request | None) -> Request:
    """Return the pure request where a loss has no other way to an excess risk, or say that it has none."""
    if pure is None:
        raise ValueError(
            "with a delta an excess risk of this loss is searched for by method='auto' alone, with noise on the "
            "gradient; leave perturbation, noise, keep_path and on_failure out, or state a goal in people's units"
        )
    current(pure.delta, pure.unit, stated=True)
    return dataclasses.replace(
        pure, reason="this loss has a pure way to an excess risk alone, which holds at any delta"
    )


def _expected(request: Request) -> float:
    """Return roughly what a search will cost; infinite where it cannot be tried."""
    try:
        plan = request.plan()
    except TargetUnreachable:
        return math.inf
    if isinstance(plan, MomentRiskPlan):
        return Curve.gaussian(plan.expected).epsilon(plan.delta) if plan.rhos else 0.0
    return float(getattr(plan, "expected", plan.worst_case))
