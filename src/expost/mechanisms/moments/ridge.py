"""The certified search for ridge regression (theory B6): the same promise without paying for tests of the risk.

The search asks, in this order and always with the same budgets,

1. whether the null model is good enough (a few thousandths);
2. if few statistics are expected to cost clearly less than second moments: up to four attempts with them, each ended
   by a gradient test;
3. the covariance certificate, level by level.

The order is settled by n, p, λ, α and γ; the data enter only through what is released and paid for. Failure
probabilities add up to γ: each step fails with at most its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.mechanisms.moments.certificate import CovariancePlan, certified_covariance
from expost.mechanisms.moments.few_statistics import FewPlan, few_statistics
from expost.mechanisms.null_model import NullQuestion
from expost.noise.source import WordSource
from expost.release.release import Release
from expost.shown import up
from expost.solve.error_bounds import ErrorBounds
from expost.solve.problem import Problem

# How the failure probability is shared out; without few statistics, the certificate gets their share too.
NULL_SHARE, _FEW, _COVARIANCE = 0.2, 0.35, 0.45
_CLEARLY_LESS = 0.75  # few statistics are tried if expected to cost at most this part of second moments


@dataclass(frozen=True)
class RidgeCertificate:
    """The steps of the search, settled; public.

    Attributes
    ----------
    null, few, full
        The first question, the attempts with few statistics (None: not tried), the covariance certificate.
    budget
        No outcome may cost more.
    """

    null: NullQuestion
    few: FewPlan | None
    full: CovariancePlan
    budget: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        errors: ErrorBounds,
        *,
        budget: float = math.inf,
        few: bool | None = None,
        keep_statistics: bool = False,
    ) -> RidgeCertificate:
        """Settle the steps, or say that not even the first fits the budget.

        ``few`` says whether to try few statistics; None decides by expected cost, which is public. With
        ``keep_statistics`` they are not tried: no other λ or columns could be fitted from them.
        """
        gamma = failure_probability
        null = NullQuestion.of(problem, excess_risk, NULL_SHARE * gamma, errors)
        null.require_affordable(budget)
        attempts = FewPlan.of(problem, excess_risk, _FEW * gamma, errors)
        full = CovariancePlan.of(problem, excess_risk, _COVARIANCE * gamma)
        assert full is not None  # without a budget there is always room
        if few is None:
            few = not keep_statistics and attempts.expected <= _CLEARLY_LESS * full.expected()
        if few:
            return cls(null, attempts, full, budget)
        alone = CovariancePlan.of(problem, excess_risk, (_FEW + _COVARIANCE) * gamma, keep_statistics=keep_statistics)
        assert alone is not None
        return cls(null, None, alone, budget)

    @property
    def expected(self) -> float:
        """Roughly what is paid where the null model does not do; used to choose, never to promise."""
        full = self.full.expected()
        return add_losses(self.null.cost, full if self.few is None else min(full, self.few.expected))

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        most = add_losses(
            self.null.cost,
            self.full.charge(self.full.levels[-1]),
            self.few.most if self.few is not None else 0.0,
        )
        return min(self.budget, most)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Take the steps, on the sums of a covariance generator."""
        if self.null.ask(generator.risk, account, source):
            return account.released(np.zeros(self.full.problem.p))
        if self.few is not None:
            account.reasons.append(
                f"few statistics first: expected epsilon = {up(self.few.expected)} against {up(self.full.expected())}"
            )
            theta = few_statistics(generator.sums, generator.risk, self.few, account, self.budget, source)
            if theta is not None:
                return account.released(theta)
        rest: CovariancePlan | None = self.full
        if not math.isinf(self.budget):
            full = self.full
            rest = CovariancePlan.of(
                full.problem,
                full.excess_risk,
                full.failure_probability,
                self.budget,
                account.after,
                full.keep_statistics,
            )
        if rest is None:
            account.reasons.append("covariance certificate: no room left in the budget")
            return account.refused()
        theta = certified_covariance(generator.sums, rest, account, source)
        return account.refused() if theta is None else account.released(theta)
