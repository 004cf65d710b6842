"""The doubling method (theory A6): run a black box at ε, test, and start again with twice the ε.

*Released*: every hypothesis tried, and whether each passed. *Neighbours*: one row replaced. *Sensitivity*: the
error query's. *Theorem*: round i costs its ε_i (the black box's claim) plus the test's 2Δ·ln(T/γ)/α; rounds add up,
so stopping at round k costs k tests and ε₁(f^k − 1)/(f − 1) for a factor f. With the test noise as chosen, a wrong
accept needs one of T one-sided Laplace tails beyond α/2, which has probability at most γ/2; ``published`` uses up
that half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource, resolve_source
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.search.levels import doubling_rounds
from expost.search.query import Query, check_sensitivity

_SLACK = 2  # grid units: rounding of the threshold, and discrete against continuous tails
CALLER_CLAIM = "the black box is ε-private at every ε it was called with, in the neighbouring relation stated here"


@dataclass(frozen=True)
class DoublingPlan:
    """Rounds and test budget of a doubling search; public.

    Examples
    --------
    >>> plan = DoublingPlan.of(target=0.05, failure_probability=0.1, sensitivity=0.0023, first=1e-5, last=70.8)
    >>> plan.rounds, round(plan.epsilon_test, 3)
    (23, 0.5)
    """

    target: float
    sensitivity: float
    first: float
    factor: float
    rounds: int
    epsilon_test: float

    @classmethod
    def of(
        cls,
        *,
        target: float,
        failure_probability: float,
        sensitivity: float,
        first: float,
        last: float,
        factor: float = 2.0,
        calibration: str = "theorem",
        max_epsilon: float | None = None,
    ) -> DoublingPlan:
        """Settle T and the test's ε; with ``max_epsilon``, T is cut so that no outcome costs more."""
        if not 0 < target < math.inf:
            raise ValueError(f"the target must be positive and finite, got {target}")
        if not 0 < failure_probability < 1:
            raise ValueError(f"failure_probability must lie strictly between 0 and 1, got {failure_probability}")
        if calibration not in ("theorem", "published", "tight"):
            raise ValueError(f"calibration must be 'theorem', 'published' or 'tight', got {calibration!r}")
        tails = 1 if calibration == "theorem" else 2  # one tail suffices: ln(T/2γ)
        for rounds in range(doubling_rounds(first, last, factor), 0, -1):
            scale = math.log(max(rounds / (tails * failure_probability), math.e))
            plan = cls(target, sensitivity, first, factor, rounds, 2 * sensitivity * scale / target)
            if max_epsilon is None or plan.epsilon_after(rounds) <= max_epsilon:
                return plan
        raise TargetUnreachable(
            f"a single round of doubling would already cost more than max_epsilon = {max_epsilon:.4g}; pass a larger "
            f"excess_risk or max_epsilon, or more rows. Nothing was spent."
        )

    def level(self, index: int) -> float:
        """Return the ε of round ``index`` (from 0)."""
        return self.first * self.factor**index

    def generation_after(self, rounds: int) -> float:
        """Return what the hypotheses of that many rounds cost."""
        return add_losses(*(self.level(i) for i in range(rounds)))

    def tests_after(self, rounds: int) -> float:
        """Return what the tests of that many rounds cost."""
        return add_losses(*(self.epsilon_test for _ in range(rounds)))

    def epsilon_after(self, rounds: int) -> float:
        """Return the total cost of stopping after that many rounds."""
        return add_losses(self.generation_after(rounds), self.tests_after(rounds))


def doubling_method(
    mechanism: Callable[[float], Any],
    query: Query,
    plan: DoublingPlan,
    *,
    project: Callable[[Any], Any] | None = None,
    random_state: int | WordSource | None = None,
) -> Release:
    """Search by doubling ε around any private mechanism.

    Parameters
    ----------
    mechanism
        ``epsilon -> hypothesis``. That it is ε-private is the caller's claim, and the release records it as such.
    query
        The error to be tested; must have its stated sensitivity for every projected hypothesis.
    plan
        From :meth:`DoublingPlan.of`, made with the query's sensitivity.
    project
        Applied to each hypothesis before it is tested, for instance into the ball the sensitivity was computed for.
    random_state
        Source of the test noise; ``None`` is secure.

    Raises
    ------
    AccuracyNotReached
        When no round passes; carries the refusal and its cost.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import ErrorQuery, SeededSource, discrete_laplace
    >>> noise = SeededSource(4)
    >>> def private_count(epsilon):
    ...     return 5000 + int(discrete_laplace(epsilon, 1, 1, random_state=noise)[0])
    >>> query = ErrorQuery(lambda count: abs(count - 5000.0), sensitivity=1.0)
    >>> plan = DoublingPlan.of(
    ...     target=100.0,
    ...     failure_probability=0.1,
    ...     sensitivity=query.effective_sensitivity,
    ...     first=0.001,
    ...     last=1.0,
    ... )
    >>> doubling_method(private_count, query, plan, random_state=noise).status
    'released'
    """
    source = resolve_source(random_state)
    check_sensitivity(plan.sensitivity, query)
    limit = math.floor(plan.target / 2 / query.grid) - _SLACK
    noise = discrete_laplace(plan.epsilon_test, query.sensitivity, plan.rounds, random_state=source)
    worst = plan.epsilon_after(plan.rounds)
    for index in range(plan.rounds):
        hypothesis = mechanism(plan.level(index))
        if project is not None:
            hypothesis = project(hypothesis)
        bound = limit - int(noise[index])
        if bound >= 0 and query.at_most(hypothesis, bound):
            return _outcome("released", plan, index + 1, source.secure, worst, hypothesis)
    raise AccuracyNotReached(_outcome("refused", plan, plan.rounds, source.secure, worst, None))


def _outcome(status: Any, plan: DoublingPlan, rounds: int, secure: bool, worst: float, hypothesis: Any) -> Release:
    return Release(
        status=status,
        method="doubling",
        epsilon_generation=plan.generation_after(rounds),
        epsilon_test=plan.tests_after(rounds),
        epsilon_worst_case=worst,
        hypothesis=hypothesis,
        level=rounds - 1 if status == "released" else None,
        n_levels=plan.rounds,
        secure=secure,
        claims=(CALLER_CLAIM,),
    )
