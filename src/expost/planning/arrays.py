"""What goals cost for plain arrays, whose columns a caller scales to the ℓ₁ ball and whose λ he states.

Every method that the goal allows is settled, with every mechanism, as `expost.search.run_search` does, and run on
made-up rows. Where a certificate says beforehand what suffices, every run costs the worst case: the price is known.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from expost.data.fixed_point import ONE
from expost.data.rows import Rows
from expost.erm.geometry import l1_ball
from expost.erm.losses import LogisticLoss, SquaredLoss
from expost.erm.problem import Problem
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.goals import ExcessRisk, Goal
from expost.mechanisms import MECHANISMS, Mechanism, mechanism_for
from expost.noise.source import SeededSource
from expost.planning.result import GoalPrice, MethodPrice
from expost.planning.worlds import REACH, Floats, draw_array, with_target
from expost.search.methods import METHODS
from expost.search.request import Request
from expost.search.run import run_search, settle

ROWS = 4000  # simulated at most; ε·n hardly depends on n
_KEPT = 0.5  # of what a model says at least, or λ is worth a warning
_WANTED = 0.9


def array_problem(labels: bool, n: int, p: int, regularization: float) -> Problem:
    """Return what the estimators minimise by default."""
    return Problem.of(LogisticLoss() if labels else SquaredLoss(), n=n, p=p, regularization=regularization)


def price_array(
    problem: Problem, goal: Goal, failure_probability: float, max_epsilon: float | None, worlds: int, seed: int
) -> GoalPrice:
    """Return what every method costs, the typically cheapest first.

    Examples
    --------
    >>> price = price_array(array_problem(True, 20_000, 5, 0.01), ExcessRisk(0.01), 0.1, None, 2, 0)
    >>> price.cheapest.perturbation, price.cheapest.known
    ('objective', True)
    """
    goal.require(problem.loss)
    small = dataclasses.replace(problem, n=min(problem.n, ROWS))
    tables = [_world(small, goal, k, worlds, seed) for k in range(worlds)]
    prices, refusal = [], ""
    for method, mechanism in _ways(problem, goal):
        worst, reason = _worst(_request(problem, goal, method, mechanism, failure_probability, max_epsilon))
        affordable, refusal = not reason, refusal or reason
        if not affordable:
            worst, _ = _worst(_request(problem, goal, method, mechanism, failure_probability, None))
        most, _ = _worst(_request(small, goal, method, mechanism, failure_probability, None))
        paid = [
            _paid(rows, small, goal, method, mechanism, failure_probability, k, seed) for k, rows in enumerate(tables)
        ]
        known = all(epsilon == most for epsilon in paid)
        # what is known is known for n rows; the rest was paid for fewer
        epsilons = [worst if known else epsilon * small.n / problem.n for epsilon in paid]
        prices.append(MethodPrice.over(method, mechanism.name, epsilons, worst, known=known, affordable=affordable))
    # a utility theorem promises the mean only: it is no rival of those that keep a promise with probability 1 − γ
    prices.sort(key=lambda price: (price.method == "theory", not price.affordable, price.typical, price.worst_case))
    nothing = not any(price.affordable for price in prices if price.method != "theory")
    return GoalPrice(goal, problem.n, tuple(prices), refusal if nothing else "")


def _ways(problem: Problem, goal: Goal) -> Iterator[tuple[str, Mechanism]]:
    """Yield the methods and mechanisms that a caller can ask for, each pair once."""
    seen = set()
    for method in goal.methods:
        for name in (None, *MECHANISMS):
            chosen_for = method == "auto" and isinstance(goal, ExcessRisk)
            try:
                mechanism = mechanism_for(name, problem, shape=l1_ball(problem.p) if chosen_for else None)
                mechanism.require(problem)
            except ValueError:
                continue  # one that is for another loss
            if method != "fixed" and (method, mechanism.name) not in seen:
                seen.add((method, mechanism.name))
                yield method, mechanism


def _request(
    problem: Problem, goal: Goal, method: str, mechanism: Mechanism, gamma: float, max_epsilon: float | None
) -> Request:
    return Request(problem, goal, METHODS[method], mechanism, gamma, max_epsilon=max_epsilon)


def _worst(request: Request) -> tuple[float, str]:
    """Return the worst case, or an infinite one and why no data set can meet the goal."""
    try:
        return settle(request).worst_case, ""
    except TargetUnreachable as reason:
        return math.inf, str(reason)


def _world(problem: Problem, goal: Goal, k: int, worlds: int, seed: int) -> Rows:
    """Return rows one by one, as the exact sums want them."""
    features = draw_array(problem.p, problem.n, np.random.default_rng([seed, k]))
    reach = REACH[0] + (REACH[1] - REACH[0]) * (k + 0.5) / worlds
    labels = problem.loss.labels == "binary"
    return with_target(features, goal, labels, reach, problem.n, np.random.default_rng([seed, k, 1]))[0]


def _paid(
    rows: Rows, problem: Problem, goal: Goal, method: str, mechanism: Mechanism, gamma: float, k: int, seed: int
) -> float:
    generator = mechanism.on(rows, problem)
    source = SeededSource([seed, k, 2])
    try:
        return run_search(
            generator, problem, goal, method=method, failure_probability=gamma, random_state=source
        ).epsilon
    except (AccuracyNotReached, TargetUnreachable):
        return math.inf


def shrunk(problem: Problem, worlds: int, seed: int) -> str:
    """Warn if λ leaves little of a model but its constant; empty if it does not."""
    small = dataclasses.replace(problem, n=min(problem.n, ROWS))
    moments = []
    for k in range(worlds):
        features = draw_array(small.p, small.n, np.random.default_rng([seed, k]))
        x: Floats = features.x / ONE
        moments.append((x.T @ x / small.n, x.T @ features.score / small.n))

    def kept(lam: float) -> float:
        """Share of what the best model says that is left: the slope of its predictions on the score."""
        parts = []
        for square, cross in moments:
            free = cross @ np.linalg.lstsq(square, cross, rcond=None)[0]
            pulled = cross @ np.linalg.solve(square + lam / problem.loss.curvature * np.eye(small.p), cross)
            parts.append(float(pulled / free))
        return float(np.median(parts))

    lam = problem.regularization
    left = kept(lam)
    if left >= _KEPT:
        return ""
    better = lam
    while kept(better) < _WANTED and better > 1e-12:
        better /= 2
    return (
        f"regularization = {lam:g} leaves about {100 * left:.0f} % of what a model of {small.p} such columns could "
        f"say: an excess risk is then promised about a model close to its constant. {better:.1g} would leave "
        f"{100 * _WANTED:.0f} %"
    )
