"""What a method promises about accuracy, in words and numbers."""

from __future__ import annotations

import dataclasses

from expost.privacy.release import Promise
from expost.search.goals import ErrorRate, Goal, MeanSquaredError, RelativeExcessRisk
from expost.search.plan import Problem

_ABOUT = "regularised empirical risk of the clipped, rounded rows"


def promise_of(problem: Problem, method: str, goal: Goal | None = None, reduced: Promise | None = None) -> Promise:
    """Return the promise; ``reduced`` is the one that a relative goal was reduced to, if it came to that."""
    alpha, gamma, against = problem.excess_risk, problem.failure_probability, problem.compared_with
    if method == "fixed":
        promise = Promise("no accuracy is promised")
    elif method == "theory":
        promise = Promise(f"the expected excess {_ABOUT} is at most {alpha:g}, against {against}", excess_risk=alpha)
    else:
        chance = f"with probability at least {1 - gamma:g} over the noise, either nothing is released or "
        kept = _excess(alpha, against) if goal is None else _goal(goal, against, reduced)
        promise = dataclasses.replace(kept, statement=chance + kept.statement, failure_probability=gamma)
    return dataclasses.replace(promise, radius=problem.radius, regularization=problem.regularization)


def _excess(alpha: float, against: str) -> Promise:
    return Promise(f"the excess {_ABOUT} is at most {alpha:g}, against {against}", excess_risk=alpha)


def _goal(goal: Goal, against: str, reduced: Promise | None) -> Promise:
    if isinstance(goal, RelativeExcessRisk):
        alpha = None if reduced is None else reduced.excess_risk
        number = "" if alpha is None else f" (and at most {alpha:g})"
        return Promise(
            f"the excess {_ABOUT} is at most {goal.fraction:g} of that of the null model θ = 0{number}, against "
            f"{against}",
            excess_risk=alpha,
            goal="relative excess risk",
            at_most=float(goal.fraction),
        )
    if isinstance(goal, MeanSquaredError):
        statement = (
            f"the mean squared error of the clipped, rounded rows is at most {goal.at_most:g}, targets in [-1, 1]"
        )
        return Promise(statement, goal="mean squared error", at_most=float(goal.at_most))
    assert isinstance(goal, ErrorRate)
    statement = (
        f"the share of clipped, rounded rows misclassified is at most {goal.at_most:g} (xᵀθ = 0 is predicted negative)"
    )
    return Promise(statement, goal="error rate", at_most=float(goal.at_most))
