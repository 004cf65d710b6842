"""Which mechanism a search takes: the one stated, or the one that public numbers make the cheapest; as a request.

For goals that are tested, without a δ, noise goes on the objective
(:func:`chain_request`). At a δ (:func:`staged_request`) gradient descent goes first: it gathers what it has paid for,
and is cheapest where goals are easy. Near a model's limit perturbed objectives get further for the same loss, so a
search whose models have cost much of the budget turns to pure noise on the objective, from its last model on
(`expost.search.levels`): a pure ε holds at every δ. What decides that are released numbers alone. A way that is out of
reach, whatever the rows are, is not begun with. For an excess risk (:func:`risk_request`) what is predicted to cost
least is taken; at a δ second moments under Gaussian noise compete with what is pure. A new way is an entry in
:data:`STAGED`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from expost import validation
from expost.account.account import current
from expost.account.composition import ROW, Curve, Unit
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.mechanisms import Mechanism, ObjectivePerturbation, mechanism_for
from expost.mechanisms.descent.gradient_descent import DescentPlan, GradientDescent
from expost.mechanisms.moments.gaussian_moments import GaussianMoments, MomentsPlan, moments_for
from expost.mechanisms.moments.risk_at_delta import MomentRiskPlan
from expost.mechanisms.objective.chain import ChainPlan, GaussianChainPlan
from expost.search import METHODS
from expost.search.levels import StagedPlan
from expost.search.request import Request
from expost.shown import up
from expost.solve import Problem
from expost.table.shape import Geometry

PURE = "pure"  # a chain of releases with pure losses, which count at any δ
#: The plan of each mechanism, by the mechanism's own name.
STAGED: dict[str, type[StagedPlan]] = {
    "gradient descent": DescentPlan,
    "objective": GaussianChainPlan,
    "covariance": MomentsPlan,
    PURE: ChainPlan,
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
    """Return the request at δ for a goal in people's units: by the way stated, or by descent and then pure noise.

    Parameters
    ----------
    perturbation
        The way, of `expost.mechanisms.WITH_SCHEMA`, or None.
    goal, geometry, n, failure_probability, budget, delta, unit
        As in :class:`~expost.search.levels.StagedPlan`.
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
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    loss, reason = goal.chain().loss, ""
    if current(delta, unit) is not None:
        pure = None  # budgets that several fits share are where Gaussian costs add in squares
    mechanism: Mechanism
    if perturbation is None:
        asked = (n, failure_probability, budget, delta, unit)
        mechanism = GradientDescent(geometry, pure)
        drowned = pure is not None and DescentPlan.settled(goal, loss, geometry, *asked).missing()
        if pure is not None and drowned and not ChainPlan.settled(goal, loss, pure, *asked).missing():
            reason = "gradient descent would drown in the noise that hides one row"
            mechanism = ObjectivePerturbation(replace(pure, reason="; ".join(filter(None, (pure.reason, reason)))))
    else:
        ways: dict[str, Callable[[Geometry], Mechanism]] = {
            "descent": GradientDescent,
            "objective": lambda shape: ObjectivePerturbation(shape, gaussian=True),
            "covariance": GaussianMoments,
        }
        validation.one_of("perturbation", perturbation, list(ways))
        mechanism = ways[perturbation](geometry)
    problem = Problem.of(loss, n=n, p=geometry.columns, regularization=1.0)
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


def chain_request(
    goal: TestedGoal, geometry: Geometry, n: int, failure_probability: float, budget: float, unit: Unit = ROW
) -> Request:
    """Return the request for a goal in people's units, for n rows of a shape; nobody states a λ.

    The problem names the loss that the goal asks for and the λ of the first level; later levels have their own.
    """
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    start = ChainPlan.settled(goal, goal.chain().loss, geometry, n, failure_probability, budget)
    lam = min(start.shot(start.affordable_start or start.start).lam, 1e15)
    problem = Problem.of(start.loss, n=n, p=geometry.columns, regularization=lam)
    return Request(
        problem,
        goal,
        METHODS["auto"],
        ObjectivePerturbation(geometry),
        failure_probability,
        max_epsilon=budget,
        unit=unit,
    )


def risk_request(
    made: Callable[[Mechanism, float], Request],
    perturbation: str | None,
    problem: Problem,
    inside: Geometry,
    delta: float,
    *,
    around: Geometry | None,
    in_squares: bool,
    noise: str,
    full_matrix: bool,
) -> Request:
    """Return the request for an excess risk by the mechanism stated, or by the one that is predicted to be cheapest.

    Parameters
    ----------
    made
        Makes the request of a mechanism, at a δ or without one.
    perturbation, problem, delta, noise, full_matrix
        As in :func:`run_search`.
    inside
        The Euclidean ball of the rows, which Gaussian noise on second moments follows.
    around
        The shape that noise on the gradient would follow, where that may be chosen.
    in_squares
        Whether costs are to add in squares, as those of several fits do.
    """
    if not delta:
        return made(mechanism_for(perturbation, problem, noise=noise, full_matrix=full_matrix, shape=around), 0.0)
    at_delta = pure = None
    squared = problem.loss.name == "squared"
    if squared:
        at_delta = made(moments_for(perturbation, inside, noise=noise, full_matrix=full_matrix), delta)
    if perturbation is None and around is not None and not (in_squares and squared):
        pure = made(mechanism_for(None, problem, noise=noise, full_matrix=full_matrix, shape=around), 0.0)
    return _cheaper(at_delta, pure)


def _cheaper(gaussian: Request | None, pure: Request | None) -> Request:
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
        f"(second moments under Gaussian noise {said})"
    )
    return replace(pure, reason=reason)


def _pure_alone(pure: Request | None) -> Request:
    """Return the pure request where a loss has no other way to an excess risk, or say that it has none."""
    if pure is None:
        raise ValueError(
            "with a delta an excess risk of this loss is searched for by method='auto' alone, with noise on the "
            "gradient; leave perturbation, noise, keep_path and on_failure out, or state a goal in people's units"
        )
    current(pure.delta, pure.unit, stated=True)
    return replace(pure, reason="this loss has a pure way to an excess risk alone, which holds at any delta")


def _expected(request: Request) -> float:
    """Return roughly what a search will cost; infinite where it cannot be tried."""
    try:
        plan = request.plan()
    except TargetUnreachable:
        return math.inf
    if isinstance(plan, MomentRiskPlan):
        return Curve.gaussian(plan.expected).epsilon(plan.delta) if plan.rhos else 0.0
    return float(getattr(plan, "expected", plan.worst_case))
