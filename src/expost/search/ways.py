"""Ways to make models under approximate privacy, and which of them is predicted to be cheapest for a goal.

A way is a mechanism and its plan. Which one is taken is settled before a row is looked at: every candidate says what it
would cost, at δ, to get as far as searches usually have to (`StagedPlan.predicted`), a number that follows from the
rows' shape and number, the goal and δ. The release states the comparison. Nothing has to be right about it. Only ways
compete that minimise what the goal is about (`StagedPlan.serves`). One that is out of reach, whatever the rows are, is
not taken where another is predicted to get there within the budget.

A new way is an entry in :data:`STAGED`, and in :data:`WAYS` if it may be chosen by name.
"""

from __future__ import annotations

from dataclasses import replace

from expost import validation
from expost.erm.geometry import Geometry
from expost.erm.problem import Problem
from expost.exceptions import TargetUnreachable
from expost.goals.goal import TestedGoal
from expost.mechanisms.descent import GradientDescent
from expost.mechanisms.gaussian_moments import GaussianMoments
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.objective import ObjectivePerturbation
from expost.privacy.shared import current
from expost.privacy.unit import ROW, Unit
from expost.rounding import up
from expost.search.chain import ChainPlan
from expost.search.descent import DescentPlan
from expost.search.gaussian_chain import GaussianChainPlan
from expost.search.methods import METHODS
from expost.search.moments import MomentsPlan
from expost.search.request import Request
from expost.search.staged import USUALLY, StagedPlan

#: The plan of each mechanism, by the mechanism's own name.
STAGED: dict[str, type[StagedPlan]] = {
    "gradient descent": DescentPlan,
    "objective": GaussianChainPlan,
    "covariance": MomentsPlan,
}
PURE = "pure"  # a chain of releases with pure losses, which count at any δ
_SAID = {
    "descent": "gradient descent",
    "objective": "objective perturbation with Gaussian noise",
    "covariance": "second moments under Gaussian noise",
    PURE: "objective perturbation with pure noise",
}
#: What chains with pure noise cost beside the sum of their levels up to the usual: for labels so that the quotient of
#: both kinds is about that of what they paid on made-up tables of 11 to 113 columns (`expost.planning`) and on Adult;
#: for mean squares as on Diamonds, where targets fill their bounds.
_DEARER = {"binary": 1.3, "real": 1.6}


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
        As in :class:`~expost.search.staged.StagedPlan`.
    pure
        The shape of rows that pure noise would follow, where that may be chosen.

    Examples
    --------
    >>> from expost import ErrorRate
    >>> from expost.erm.geometry import l2_ball
    >>> request = staged_request(None, ErrorRate(0.2), l2_ball(50), 50_000, 0.1, 10.0, 1e-6)
    >>> request.mechanism.name
    'gradient descent'
    """
    reason = ""
    validation.failure_probability(failure_probability)  # which is computed with before the request is made
    if perturbation is None:
        plans = _plans(goal, geometry, n, failure_probability, budget, delta, unit, pure)
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


def predictions(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit = ROW,
    pure: Geometry | None = None,
) -> dict[str, float]:
    """Return what each way that serves the goal is predicted to cost, at δ; from public numbers alone."""
    plans = _plans(goal, geometry, n, failure_probability, budget, delta, unit, pure)
    return {name: _predicted(plan) for name, plan in plans.items()}


def _plans(
    goal: TestedGoal,
    geometry: Geometry,
    n: int,
    failure_probability: float,
    budget: float,
    delta: float,
    unit: Unit,
    pure: Geometry | None,
) -> dict[str, StagedPlan | ChainPlan]:
    """Return the ways that compete, whether or not they are within reach."""
    loss, plans = goal.chain().loss, dict[str, StagedPlan | ChainPlan]()
    for name, mechanism in (("descent", "gradient descent"), ("objective", "objective"), ("covariance", "covariance")):
        kind = STAGED[mechanism]
        if kind.serves(loss):
            pace = kind.pace_for(loss, goal, geometry, n, delta, unit)
            plans[name] = kind(goal, loss, geometry, n, failure_probability, budget, delta, pace, unit)
    # several rows of a person, and budgets that several fits share, are where Gaussian costs add in squares
    if pure is not None and unit == ROW and current(delta, unit) is None:
        plans[PURE] = ChainPlan(goal, goal.chain(), pure, n, failure_probability, budget)
    return plans


def _predicted(plan: StagedPlan | ChainPlan) -> float:
    if isinstance(plan, StagedPlan):
        return plan.predicted
    return _chained(plan, USUALLY * GaussianChainPlan.usual_pace(plan.settings.loss, plan.goal).start)


def _within_reach(plan: StagedPlan | ChainPlan) -> bool:
    try:
        plan.require_possible()
    except TargetUnreachable:
        return False
    return True


def _chained(chain: ChainPlan, level: float) -> float:
    """Return what a chain with pure noise costs that goes on until noise on a mean gradient is 1/level."""
    x, settings = level * chain.geometry.scale, chain.settings
    total = 0.0
    while True:
        total += chain.shot(x).epsilon * (1.0 + settings.test_part)
        x /= 2.0
        if x < chain.usual_start:
            return _DEARER[settings.loss.labels] * total


def _cheapest(plans: dict[str, StagedPlan | ChainPlan], most: float) -> tuple[str, str]:
    """Return the way that is predicted to cost least, the next within ε if it cannot get there, and why, for people."""
    costs = {name: _predicted(plan) for name, plan in plans.items()}
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
