"""Doubling around a black box, tested by the gradient instead of the risk (theory A6 with B12).

*Released*: every hypothesis tried, and whether each passed. Round i costs the black box's ε_i (the caller's claim)
and S(‖θ_i‖_∞)/(ns) for a test with noise of scale s; both are known before they are spent, and rounds add up. A wrong
accept has probability at most γ/T a round. No optimum and no radius is needed for the promise; hypotheses are moved
into the problem's ball only to bound the worst case.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from expost.erm.gradient_sensitivity import gradient_sensitivity
from expost.erm.risk import Risk
from expost.noise.source import WordSource, resolve_source
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.search.account import Account
from expost.search.covariance import into_ball
from expost.search.doubling import CALLER_CLAIM
from expost.search.levels import doubling_rounds
from expost.search.plan import Problem
from expost.search.query import QueryGrid
from expost.search.stationarity import OneTest, gradient_query, gradient_target

_SHARE = 0.5


def gradient_doubling(
    mechanism: Callable[[float], NDArray[np.float64]],
    risk: Risk,
    problem: Problem,
    *,
    first: float,
    last: float,
    factor: float = 2.0,
    random_state: int | WordSource | None = None,
) -> Release:
    """Search by doubling ε around any private mechanism, with a gradient test.

    Parameters
    ----------
    mechanism
        ``epsilon -> θ``; that it is ε-private is the caller's claim.
    risk, problem
        What the gradient is of, and target, failure probability and radius.
    first, last, factor
        ε of the first round, the ε that ends the search, and the step between rounds.
    random_state
        Source of the test noise; ``None`` is secure.

    Raises
    ------
    AccuracyNotReached
        When no round passes; carries the refusal and its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import Problem, SeededSource, SquaredLoss, sums_of, Preparation
    >>> from expost.search.generators import make_generator
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(20_000, 2))
    >>> recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    >>> rows = recipe.prepare_regression(X, X @ [1.0, -0.8])
    >>> problem = Problem.of(SquaredLoss(), n=rows.n, p=2, regularization=0.1, excess_risk=0.01)
    >>> generator = make_generator(rows, problem, "covariance")
    >>> source = SeededSource(3)
    >>> def black_box(epsilon):
    ...     (step,) = generator.path((epsilon,), source)
    ...     return np.asarray(generator.hypothesis(step.values))
    >>> gradient_doubling(black_box, generator.risk, problem, first=1e-3, last=4.0, random_state=source).status
    'released'
    """
    source = resolve_source(random_state)
    rounds = doubling_rounds(first, last, factor)
    target = gradient_target(problem.excess_risk, problem.regularization)
    test = OneTest(target, problem.failure_probability / rounds, _SHARE)
    levels = [first * factor**i for i in range(rounds)]
    longest = problem.radius * (1 + 1e-9)
    charged = QueryGrid.of(
        gradient_sensitivity(problem.loss, longest) / problem.n, error_bound=risk.gradient_error_bound(longest)
    )
    dearest = test.epsilon(charged.effective_sensitivity)
    # added up one by one, as the account will: each sum is rounded up
    worst = add_losses(reduce(add_losses, levels), reduce(add_losses, [dearest] * rounds))
    account = Account("doubling", worst, source.secure)
    for epsilon in levels:
        theta = into_ball(np.asarray(mechanism(epsilon), dtype=np.float64), problem.radius)
        account.generation = add_losses(account.generation, epsilon)
        accepted, cost = test.ask(gradient_query(risk, problem.loss, problem.n, theta), theta, source)
        account.test = add_losses(account.test, cost)
        if accepted:
            account.reasons.append(f"the gradient test passed at epsilon = {epsilon:.3g}")
            return account.released(theta, claims=(CALLER_CLAIM,))
    raise account.refused(claims=(CALLER_CLAIM,))
