"""The null model as the zeroth candidate (theory B6): is θ = 0 good enough already?

*Released*: whether ‖∇L(0)‖ + noise stays below a limit. *Sensitivity*: S(0)/n (2/n for the squared loss, 1/n for the
logistic). *Theorem*: `expost.search.noisy_test`, on the measure of `expost.goals.measure`. The question is cheap
because a gradient is: a few thousandths at n = 100,000. L(0) itself certifies nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.measure import GradientLength, gradient_target
from expost.noise.source import WordSource
from expost.search.noisy_test import OneTest
from expost.shown import down, up
from expost.solve.error_bounds import ErrorBounds
from expost.solve.problem import Problem
from expost.solve.risk import Risk

# A null model that meets the target usually meets it by far, so most of the target may go to noise.
_SHARE = 0.6


@dataclass(frozen=True)
class NullQuestion:
    """The question, settled; public.

    Attributes
    ----------
    problem, excess_risk
        What is asked about, and how good is good enough.
    test
        The test of θ = 0.
    cost
        What it costs, rounding and floating point included; known before it is asked.
    """

    problem: Problem
    excess_risk: float
    test: OneTest
    cost: float

    @classmethod
    def of(cls, problem: Problem, excess_risk: float, failure_probability: float, errors: ErrorBounds) -> NullQuestion:
        """Settle the test."""
        test = OneTest(gradient_target(excess_risk, problem.regularization), failure_probability, _SHARE)
        cost = test.cost(problem.null_gradient_sensitivity, errors.gradient_error_bound(0.0))
        return cls(problem, excess_risk, test, 0.0 if excess_risk >= problem.loss.null_value else cost)

    @property
    def holds_for_any_rows(self) -> bool:
        """Whether θ = 0 meets the target whatever the rows: min L ≥ 0, and L(0) is at most what a row costs there."""
        return self.excess_risk >= self.problem.loss.null_value

    def require_affordable(self, budget: float) -> None:
        """Say so if not even this question fits the budget; nothing is spent by that."""
        if self.cost > budget:
            n = self.problem.n
            rows = math.ceil(n * self.cost / budget * 1.01)
            raise TargetUnreachable(
                f"at n = {n} the first question alone (is the null model good enough?) costs epsilon = "
                f"{up(self.cost)}, more than max_epsilon = {down(budget)}. Pass a larger excess_risk or max_epsilon, "
                f"or at least {rows:,} rows. Nothing was spent."
            )

    def ask(self, risk: Risk, account: Account, source: WordSource) -> bool:
        """Ask, and charge the account; nothing is asked or charged if the answer does not depend on the rows."""
        if self.holds_for_any_rows:
            account.reasons.append("the null model meets the target whatever the rows: nothing was looked at")
            return True
        measure = GradientLength(risk, self.problem.loss, self.problem.n)
        accepted, epsilon = self.test.ask(measure, np.zeros(self.problem.p), source)
        account.test = add_losses(account.test, epsilon)
        account.reasons.append(
            f"null model tested for epsilon = {up(epsilon)}: "
            + ("good enough" if accepted else "not shown to be good enough")
        )
        return accepted
