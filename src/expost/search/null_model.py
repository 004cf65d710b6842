"""The null model as the zeroth candidate (theory B6): is θ = 0 good enough already?

*Released*: whether ‖∇L(0)‖ + noise stays below a limit. *Sensitivity*: S(0)/n (2/n for the squared loss, 1/n for the
logistic). *Theorem*: ``expost.search.stationarity``. The question is cheap because a gradient is: a few thousandths
at n = 100,000. L(0) itself certifies nothing.
"""

from __future__ import annotations

import math

import numpy as np

from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.risk import Risk
from expost.exceptions import TargetUnreachable
from expost.noise.source import WordSource
from expost.privacy.composition import add_losses
from expost.search.account import Account
from expost.search.plan import Problem
from expost.search.query import QueryGrid
from expost.search.stationarity import OneTest, gradient_query, gradient_target

# A null model that meets the target usually meets it by far, so most of the target may go to noise.
_SHARE = 0.6


def null_test(problem: Problem, failure_probability: float) -> OneTest:
    """Settle the test of θ = 0; its cost is known before it is asked."""
    target = gradient_target(problem.excess_risk, problem.regularization)
    return OneTest(target, failure_probability, _SHARE)


def holds_for_any_rows(problem: Problem) -> bool:
    """Whether θ = 0 meets the target whatever the rows: min L ≥ 0, and L(0) is at most what a row can cost there."""
    return problem.excess_risk >= problem.loss.null_value


def null_cost(risk: Risk, problem: Problem, failure_probability: float) -> float:
    """Return what the question costs, rounding and floating point included; public, though the risk is not."""
    if holds_for_any_rows(problem):
        return 0.0
    sensitivity = gradient_sensitivity(problem.loss, 0.0) / problem.n
    charged = QueryGrid.of(sensitivity, error_bound=risk.gradient_error_bound(0.0))
    return null_test(problem, failure_probability).epsilon(charged.effective_sensitivity)


def require_affordable(risk: Risk, problem: Problem, failure_probability: float, budget: float) -> float:
    """Return the cost of the first question, or say that not even it fits the budget; nothing is spent by either."""
    cost = null_cost(risk, problem, failure_probability)
    if cost > budget:
        rows = math.ceil(problem.n * cost / budget * 1.01)
        raise TargetUnreachable(
            f"at n = {problem.n} the first question alone (is the null model good enough?) costs epsilon = {cost:.4g}, "
            f"more than max_epsilon = {budget:.4g}. Pass a larger excess_risk or max_epsilon, or at least {rows:,} "
            f"rows. Nothing was spent."
        )
    return cost


def null_model_qualifies(
    risk: Risk, problem: Problem, failure_probability: float, account: Account, source: WordSource
) -> bool:
    """Ask, and charge the account; nothing is asked or charged if the answer does not depend on the rows."""
    if holds_for_any_rows(problem):
        account.reasons.append("the null model meets the target whatever the rows: nothing was looked at")
        return True
    zero = np.zeros(problem.p)
    query = gradient_query(risk, problem.loss, problem.n, zero)
    accepted, epsilon = null_test(problem, failure_probability).ask(query, zero, source)
    account.test = add_losses(account.test, epsilon)
    account.reasons.append(
        f"null model tested for epsilon = {epsilon:.3g}: "
        + ("good enough" if accepted else "not shown to be good enough")
    )
    return accepted
