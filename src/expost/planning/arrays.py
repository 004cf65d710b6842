"""What goals cost for plain arrays, whose columns the estimators scale by stated bounds.

Every method that the goal allows is settled, with every mechanism, by the estimator that a caller would use, and is
carried out on made-up rows. Where a certificate says beforehand what suffices, every run costs the worst case: the
price is known.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.account.account import Spending
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstRidge
from expost.estimators.defaults import chained
from expost.exceptions import StrongRegularizationWarning, TargetUnreachable
from expost.goals import ExcessRisk, Goal
from expost.mechanisms import MECHANISMS
from expost.noise.source import SeededSource
from expost.planning.prices import rescaled
from expost.planning.result import GoalPrice, MethodPrice
from expost.planning.synthetic import draw_array, place_of, reach_of, with_target
from expost.search.request import Request
from expost.search.run import carry_out, settle
from expost.table.preparation import Preparation
from expost.table.rows import Rows

ROWS = 4000  # simulated at most; ε·n hardly depends on n


@dataclass(frozen=True)
class ArrayTask:
    """What is asked of an array; public.

    Attributes
    ----------
    labels
        Whether it is a classification.
    n, columns
        Rows and columns.
    goal
        In units where targets lie in [−1, 1].
    regularization, failure_probability, max_epsilon
        As the estimators take them; None is their default cap.
    delta
        δ, for regression; 0 is pure.
    """

    labels: bool
    n: int
    columns: int
    goal: Goal
    regularization: float | str
    failure_probability: float
    max_epsilon: float | None
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.delta and self.labels:
            raise ValueError("with a delta, arrays are planned for regression; state a schema for classes")

    def estimator(self, method: str, perturbation: str | None, *, capped: bool = True) -> Any:
        """Return the estimator that a caller would fit."""
        stated: dict[str, Any] = {
            "bounds": 1.0,
            "regularization": self.regularization,
            "failure_probability": self.failure_probability,
            "method": method,
            "perturbation": perturbation,
            **({"excess_risk": self.goal.at_most} if isinstance(self.goal, ExcessRisk) else {"goal": self.goal}),
        }
        if not capped:
            stated["max_epsilon"] = math.inf
        elif self.max_epsilon is not None:
            stated["max_epsilon"] = self.max_epsilon
        if self.labels:
            return AccuracyFirstLogisticRegression(classes=("a", "b"), **stated)
        return AccuracyFirstRidge(target_bound=1.0, delta=self.delta, **stated)

    def settled(self, estimator: Any, n: int) -> tuple[Preparation, Request]:
        """Return what a fit of n rows would settle before it looks at one."""
        preparation = estimator._preparation(self.columns, in_blocks=chained(estimator))
        return preparation, estimator._request(n, preparation)

    def ways(self) -> Iterator[tuple[str, str | None]]:
        """Yield the methods and perturbations that can be asked for, each way once."""
        seen = set()
        for method in self.goal.methods:
            for perturbation in (None, *MECHANISMS):
                if method == "fixed":  # promises nothing
                    continue
                try:
                    _, request = self.settled(self.estimator(method, perturbation), self.n)
                except ValueError:
                    if (method, perturbation) == (self.goal.methods[0], None):
                        raise  # the goal itself is wrong
                    continue  # a mechanism for another loss
                if (method, request.mechanism.name) not in seen:
                    seen.add((method, request.mechanism.name))
                    yield method, perturbation


def price_array(task: ArrayTask, worlds: int, seed: int) -> tuple[GoalPrice, str]:
    """Return what every method costs, the typically cheapest first, and a warning about λ if there is one.

    Examples
    --------
    >>> price, _ = price_array(ArrayTask(True, 20_000, 5, ExcessRisk(0.01), "auto", 0.1, None), 2, 0)
    >>> price.cheapest.perturbation, price.cheapest.known
    ('objective', True)
    """
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StrongRegularizationWarning)
        prices, refusal = [], ""
        for method, perturbation in task.ways():
            price, reason = _price(task, method, perturbation, worlds, seed)
            refusal = refusal or reason
            prices.append(price)
    # a utility theorem promises the mean only: it is no rival of those that keep a promise with probability 1 − γ
    prices.sort(key=lambda price: (price.method == "theory", not price.affordable, price.typical, price.worst_case))
    nothing = not any(price.affordable for price in prices if price.method != "theory")
    told = str(noted[0].message) if noted else ""
    return GoalPrice(task.goal, task.n, tuple(prices), refusal if nothing else ""), told


def _price(task: ArrayTask, method: str, perturbation: str | None, worlds: int, seed: int) -> tuple[MethodPrice, str]:
    """Return what one way costs, and why it cannot be tried within the cap, if so."""
    capped, free = (task.estimator(method, perturbation, capped=capped) for capped in (True, False))
    worst, reason = _worst(task.settled(capped, task.n)[1])
    if reason:
        worst, _ = _worst(task.settled(free, task.n)[1])
    n = min(task.n, ROWS)
    preparation, request = task.settled(free, n)
    most, _ = _worst(request)
    paid = [_paid(task, preparation, request, k, worlds, seed) for k in range(worlds)]
    known = not task.delta and all(epsilon == most * n / task.n for epsilon in paid)
    # what is known is known for n rows; the rest was paid for fewer
    epsilons = [worst if known else epsilon for epsilon in paid]
    name = request.mechanism.name
    return MethodPrice.over(method, name, epsilons, worst, known=known, affordable=not reason), reason


def _worst(request: Request) -> tuple[float, str]:
    """Return the worst case, or an infinite one and why no data set can meet the goal."""
    try:
        return settle(request).worst_case, ""
    except TargetUnreachable as reason:
        return math.inf, str(reason)


def _paid(task: ArrayTask, preparation: Preparation, request: Request, k: int, worlds: int, seed: int) -> float:
    """Return what the search paid in one world, for the stated number of rows; infinite if it released nothing."""
    assert request.goal is not None
    n = request.problem.n
    features = draw_array(preparation, n, np.random.default_rng([seed, k]))
    reach = reach_of(k, worlds)
    rows: Rows
    rng = np.random.default_rng([seed, k, 1])
    rows, _ = with_target(features, request.goal, task.labels, reach, n, rng, place_of(k))
    try:
        release = carry_out(request, settle(request), rows, SeededSource([seed, k, 2]), Spending())
    except TargetUnreachable:
        return math.inf
    if release.status != "released":
        return math.inf
    if not task.delta:
        return release.epsilon * n / task.n
    return rescaled(release.account_curve(), n / task.n).epsilon(task.delta)
