"""The certified search and the automatic choice (theory B6): the same promise without paying for tests of the risk.

For ridge regression the search asks, in this order and always with the same budgets,

1. whether the null model is good enough (a few thousandths); 2. if few statistics are expected to cost clearly less
than second moments: up to four attempts with them, each ended by a gradient test; 3. the covariance certificate,
level by level.

For other losses, or ``perturbation="output"``: the null model, then the certified release of the minimiser. The order
is settled by n, p, λ, α, γ and the loss; the data enter only through what is released and paid for. Failure
probabilities add up to γ: each step fails with at most its share.
"""

from __future__ import annotations

import math

import numpy as np

from expost.noise.source import WordSource
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.search.account import Account
from expost.search.certified_covariance import CovariancePlan, certified_covariance
from expost.search.covariance import CovarianceGenerator
from expost.search.few_statistics import FewPlan, few_statistics
from expost.search.null_model import null_model_qualifies, require_affordable
from expost.search.plan import Problem
from expost.search.threads import one_thread

# How the failure probability is shared out; without few statistics, the certificate gets their share too.
_NULL, _FEW, _COVARIANCE = 0.2, 0.35, 0.45
_CLEARLY_LESS = 0.75  # few statistics are tried if expected to cost at most this part of second moments


def certified_ridge(
    generator: CovarianceGenerator,
    problem: Problem,
    *,
    few: bool | None = None,
    max_epsilon: float | None = None,
    source: WordSource,
) -> Release:
    """Run the certified search for ridge regression.

    Parameters
    ----------
    generator, problem
        What is searched.
    few
        Whether to try few statistics first; ``None`` decides by expected cost, which is public.
    max_epsilon
        No outcome may cost more.
    source
        Where noise comes from.
    """
    gamma = problem.failure_probability
    budget = math.inf if max_epsilon is None else max_epsilon
    first = require_affordable(generator.risk, problem, _NULL * gamma, budget)
    with one_thread():
        full = CovariancePlan.of(problem, _COVARIANCE * gamma)
        assert full is not None  # without a budget there is always room
        few_plan = FewPlan.of(problem, _FEW * gamma, generator.risk)
        if few_plan.expected <= _CLEARLY_LESS * full.expected() if few is None else few:
            return _search(generator, problem, few_plan, full, first, budget, source)
        alone = CovariancePlan.of(problem, (_FEW + _COVARIANCE) * gamma)
        assert alone is not None
        return _search(generator, problem, None, alone, first, budget, source)


def _search(
    generator: CovarianceGenerator,
    problem: Problem,
    few_plan: FewPlan | None,
    full: CovariancePlan,
    first: float,
    budget: float,
    source: WordSource,
) -> Release:
    most = add_losses(first, full.charge(full.levels[-1]), few_plan.most if few_plan is not None else 0.0)
    worst = min(budget, most)
    account = Account("certified", worst, source.secure)
    gamma = problem.failure_probability
    if null_model_qualifies(generator.risk, problem, _NULL * gamma, account, source):
        return account.released(np.zeros(problem.p))
    if few_plan is not None:
        account.reasons.append(
            f"few statistics first: expected epsilon = {few_plan.expected:.3g} against {full.expected():.3g}"
        )
        theta = few_statistics(generator.sums, generator.risk, few_plan, account, budget, source)
        if theta is not None:
            return account.released(theta)
    rest = full if math.isinf(budget) else CovariancePlan.of(problem, full.failure_probability, budget, account.after)
    if rest is None:
        account.reasons.append("covariance certificate: no room left in the budget")
        raise account.refused()
    theta = certified_covariance(generator.sums, rest, account, source)
    if theta is None:
        raise account.refused()
    return account.released(theta)
