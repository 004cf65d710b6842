"""Shortfalls: how far one row moves them, by brute force, and how exactly they are computed, by fractions."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from expost.goals import ErrorRate, LogLoss, MeanSquaredError
from expost.goals.squared_errors import R2
from expost.numeric import to_grid
from expost.solve.losses import LogisticLoss
from expost.solve.objective import Objective
from expost.table.rows import ONE

LABELS = [ErrorRate(0.2), LogLoss(0.4)]
REAL = [R2(0.7), R2(0.05), MeanSquaredError(0.3)]
TIGHT = Fraction(1, 10**9)


def exact(goal, x, y, theta) -> Fraction:
    """The shortfall in rational arithmetic (log losses to 40 digits), written out anew."""
    n = len(y)
    u = [sum((Fraction(a) * Fraction(b) for a, b in zip(row, theta, strict=True)), Fraction(0)) for row in x]
    y = [Fraction(value) for value in y]
    if isinstance(goal, ErrorRate):
        return Fraction(sum((a > 0) != (b > 0) for a, b in zip(u, y, strict=True)), n) - Fraction(goal.at_most)
    if isinstance(goal, LogLoss):
        with localcontext() as context:
            context.prec = 40
            terms = [_log_loss(b * min(max(a, Fraction(-4)), Fraction(4))) for a, b in zip(u, y, strict=True)]
        return sum(terms, Fraction(0)) / n - Fraction(goal.at_most)
    clipped = [min(max(a, Fraction(-1)), Fraction(1)) for a in u]
    square = sum(((a - b) ** 2 for a, b in zip(clipped, y, strict=True)), Fraction(0)) / n
    if isinstance(goal, MeanSquaredError):
        return square - Fraction(goal.at_most)
    mean = sum(y, Fraction(0)) / n
    return square - (1 - Fraction(goal.at_least)) * sum(((b - mean) ** 2 for b in y), Fraction(0)) / n


def _log_loss(margin: Fraction) -> Fraction:
    return Fraction((1 + (-Decimal(margin.numerator) / Decimal(margin.denominator)).exp()).ln())


def moves(goal, n: int, labels: bool) -> Fraction:
    """The most that replacing one row moves the shortfall, over corners and middles, θ = 9."""
    targets = (-1.0, 1.0) if labels else (-1.0, 0.0, 0.25, 1.0)
    kinds = list(itertools.product((-1.0, 0.0, 1.0), targets))
    worst = Fraction(0)
    for rest in itertools.combinations_with_replacement(kinds, n - 1):
        values = [
            exact(goal, [(a,) for a, _ in (*rest, last)], [b for _, b in (*rest, last)], (9.0,)) for last in kinds
        ]
        worst = max(worst, max(values) - min(values))
    return worst


@pytest.mark.parametrize("goal", [*LABELS, *REAL], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_row_moves_a_shortfall_by_its_sensitivity(goal, n):
    stated, worst = Fraction(goal.shortfall_sensitivity(n)), moves(goal, n, goal in LABELS)
    assert worst <= stated * (1 + Fraction(1, 10**15))
    assert worst >= stated * (1 - TIGHT)  # attained
    assert worst > stated / 2  # half of it would not do


@pytest.mark.parametrize("r", [0.01, 0.3, 0.9, 0.999])
def test_the_range_of_r2_is_what_the_proof_says(r):
    """Over the mean m of the other targets: 4/n + (1 − r)((n − 1)/n²)·4|m|, largest at |m| = 1."""
    y, guess = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(-1, 1, 201))
    for n in (2, 5, 1000):
        weight = (1 - r) * (n - 1) / n**2
        for m in (0.0, 0.4, -0.8, 1.0):
            part = (y - guess) ** 2 / n - weight * (y - m) ** 2
            assert np.ptp(part) == pytest.approx(4 / n + weight * 4 * abs(m), rel=1e-9)
        assert Fraction(R2(r).shortfall_sensitivity(n)) >= Fraction(4, n) * (1 + (1 - Fraction(r)) * Fraction(n - 1, n))
        assert R2(r).shortfall_sensitivity(n) == pytest.approx(4 / n + 4 * weight, rel=1e-14)


def random_rows(rng, n: int, p: int, labels: bool):
    x = rng.uniform(-1, 1, (n, p)) / math.sqrt(p)
    x = np.trunc(x * ONE) / ONE
    y = rng.choice([-1.0, 1.0], n) if labels else np.rint(rng.uniform(-1, 1, n) * ONE) / ONE
    theta = rng.normal(size=p) * 10.0 ** rng.uniform(-2, 3)
    return x, y, to_grid(theta, float(np.abs(theta).max()), norm="l2")


@pytest.mark.parametrize("goal", [*LABELS, *REAL], ids=repr)
def test_shortfalls_are_off_by_no_more_than_stated(goal):
    rng = np.random.default_rng(0)
    for _ in range(12):
        n, p = int(rng.integers(1, 40)), int(rng.integers(1, 5))
        x, y, theta = random_rows(rng, n, p, goal in LABELS)
        objective = Objective(LogisticLoss(), x, y, 1.0, None, "l2") if goal in LABELS else _real(x, y)
        off = abs(Fraction(goal.shortfall(objective, theta)) - exact(goal, x.tolist(), y.tolist(), theta.tolist()))
        assert off <= Fraction(goal.shortfall_error(n, p, theta))
    assert goal.shortfall_error(1000, 5, theta) < 1e-9


def _real(x, y) -> Objective:
    from expost.solve.losses import HuberLoss

    return Objective(HuberLoss(0.25), x, y, 1.0, None, "l2")


@pytest.mark.parametrize("goal", [*LABELS, *REAL], ids=repr)
def test_rows_that_are_counted_give_the_same(goal):
    rng = np.random.default_rng(1)
    x, y, theta = random_rows(rng, 6, 2, goal in LABELS)
    counts = np.array([1.0, 5.0, 2.0, 1.0, 7.0, 3.0])
    times = counts.astype(int)
    loss = LogisticLoss() if goal in LABELS else _real(x, y).loss
    together = Objective(loss, x, y, 1.0, counts, "l2")
    apart = Objective(loss, np.repeat(x, times, axis=0), np.repeat(y, times), 1.0, None, "l2")
    assert goal.shortfall(together, theta) == pytest.approx(goal.shortfall(apart, theta), abs=1e-13)


def test_a_tie_is_predicted_negative():
    objective = Objective(LogisticLoss(), np.zeros((2, 1)), np.array([1.0, -1.0]), 1.0, None, "l2")
    assert ErrorRate(0.25).shortfall(objective, np.ones(1)) == 0.25


@pytest.mark.parametrize("goal", [*LABELS, *REAL], ids=repr)
def test_what_a_chain_is_told_makes_sense(goal):
    settings = goal.chain()
    assert settings.loss.labels == ("binary" if goal in LABELS else "real")
    assert math.isfinite(settings.loss.lipschitz(math.inf))
    assert min(settings.reach, settings.start, settings.steer, settings.spread) > 0


@pytest.mark.parametrize(
    ("build", "value"),
    [(R2, 0.0), (R2, 1.0), (R2, -0.2), (R2, math.nan), (LogLoss, 0.0), (LogLoss, 0.6932), (LogLoss, -1.0)],
)
def test_goals_out_of_reach_of_sense(build, value):
    with pytest.raises(ValueError, match="must"):
        build(value)


def test_goals_go_with_their_tasks():
    with pytest.raises(ValueError, match="regression"):
        R2(0.5).require(LogisticLoss())
    with pytest.raises(ValueError, match="classification"):
        LogLoss(0.5).require(_real(np.zeros((1, 1)), np.zeros(1)).loss)
    for goal in (R2(0.5), LogLoss(0.5)):
        with pytest.raises(ValueError, match="chain of releases"):
            goal.measure(None)
