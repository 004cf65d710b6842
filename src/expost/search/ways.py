"""Ways to make models under approximate privacy, and which of them is predicted to be cheapest for a goal.

A way is a mechanism and its plan. Which one is taken is settled before a row is looked at: every candidate says what it
would cost, at δ, to get as far as searches usually have to (`StagedPlan.predicted`), a number that follows from the
rows' shape and number, the goal and δ. The release states the comparison. Nothing has to be right about it.

A new way is an entry in :data:`STAGED`, and in :data:`WAYS` if it may be chosen by name.
"""

from __future__ import annotations

from expost import validation
from expost.erm.geometry import Geometry
from expost.erm.problem import Problem
from expost.goals.goal import TestedGoal
from expost.mechanisms.descent import GradientDescent
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.objective import ObjectivePerturbation
from expost.privacy.unit import ROW, Unit
from expost.search.descent import DescentPlan
from expost.search.gaussian_chain import GaussianChainPlan
from expost.search.methods import METHODS
from expost.search.request import Request
from expost.search.staged import StagedPlan

#: The plan of each mechanism, by the mechanism's own name.
STAGED: dict[str, type[StagedPlan]] = {"gradient descent": DescentPlan, "objective": GaussianChainPlan}
#: The mechanism of each way, by the name callers know it by; `expost.mechanisms.WITH_SCHEMA` has the names.
WAYS: dict[str, type[GradientDescent | ObjectivePerturbation]] = {
    "descent": GradientDescent,
    "objective": ObjectivePerturbation,
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
) -> Request:
    """Return the request at δ for a goal in people's units: by the way that is stated, or that is predicted cheapest.

    Examples
    --------
    >>> from expost import ErrorRate
    >>> from expost.erm.geometry import l2_ball
    >>> request = staged_request(None, ErrorRate(0.2), l2_ball(50), 50_000, 0.1, 10.0, 1e-6)
    >>> request.mechanism.name
    'gradient descent'
    """
    loss = goal.chain().loss
    reason = ""
    if perturbation is None:
        perturbation, reason = _cheapest(goal, geometry, n, failure_probability, budget, delta, unit)
    else:
        validation.one_of("perturbation", perturbation, list(WAYS))
    mechanism: Mechanism = WAYS[perturbation](geometry)
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


def _cheapest(
    goal: TestedGoal, geometry: Geometry, n: int, gamma: float, budget: float, delta: float, unit: Unit
) -> tuple[str, str]:
    """Return the way that is predicted to cost least, and why, for people."""
    costs = {}
    loss = goal.chain().loss
    for name, mechanism in WAYS.items():
        plan = STAGED[mechanism.name]
        costs[name] = plan(goal, loss, geometry, n, gamma, budget, delta, plan.usual_pace(loss, goal), unit).predicted
    best = min(costs, key=lambda name: costs[name])
    others = ", ".join(f"{WAYS[name].name} {cost:.2g}" for name, cost in costs.items() if name != best)
    return best, (
        f"{WAYS[best].name} was predicted to be cheapest from public numbers alone: epsilon about {costs[best]:.2g} "
        f"where searches of the kind usually end ({others})"
    )
