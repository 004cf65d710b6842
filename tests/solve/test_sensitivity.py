"""No neighbour found by search exceeds a stated sensitivity, and the stated ones are not idle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from expost.numeric import grid_sensitivity
from expost.solve.losses import LogisticLoss, Loss, SquaredLoss
from expost.solve.minimiser import minimise
from expost.solve.problem import (
    excess_risk_sensitivity,
    minimiser_l1_sensitivity,
    minimiser_l2_sensitivity,
    paper_ridge_output_sensitivity,
)
from tests.solve.helpers import LOSSES, Floats, in_ball, objective

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def random_row(rng: np.random.Generator, p: int, loss: Loss) -> tuple[Floats, float]:
    """Mostly extreme rows: those are where sensitivities are attained."""
    if rng.random() < 0.7:
        x = np.zeros(p)
        x[rng.integers(p)] = rng.choice([-1.0, 1.0])
    else:
        x = rng.dirichlet(np.ones(p)) * rng.choice([-1.0, 1.0], size=p)
        x *= 1.0 - 1e-12
    y = rng.choice([-1.0, 1.0])
    return x, float(y if loss.labels == "binary" or rng.random() < 0.7 else rng.uniform(-1, 1))


def neighbours(rng: np.random.Generator, n: int, p: int, loss: Loss) -> list[tuple[Floats, Floats]]:
    # All alike now and then: the row that is replaced then weighs most.
    alike = rng.random() < 0.3
    rows = [random_row(rng, p, loss)] * n if alike else [random_row(rng, p, loss) for _ in range(n)]
    scale = rng.choice([1.0, 0.3, 0.05])
    kept = [(scale * x, y) for x, y in rows[1:]]
    pairs = [[random_row(rng, p, loss), *kept], [random_row(rng, p, loss), *kept]]
    return [(np.array([x for x, _ in r]), np.array([y for _, y in r])) for r in pairs]


@each_loss
@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01])
def test_minimisers_of_neighbours(loss: Loss, lam: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        n, p = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        ball = float(loss.radius(lam) * rng.choice([0.3, 0.7])) if rng.random() < 0.5 else None
        a, b = (minimise(loss, x, y, lam, radius=ball) for x, y in neighbours(rng, n, p, loss))
        radius = loss.radius(lam) if ball is None else ball
        gap = a.theta - b.theta
        bound = max(a.bounds.distance_bound, b.bounds.distance_bound)
        assert np.linalg.norm(gap) <= minimiser_l2_sensitivity(loss, radius, n, lam) + 2 * bound
        assert np.abs(gap).sum() <= minimiser_l1_sensitivity(loss, radius, n, lam, p) + 2 * p**0.5 * bound
        if loss == SquaredLoss():
            assert np.abs(gap).sum() <= paper_ridge_output_sensitivity(radius, n, p, lam) + 2 * p * bound


@each_loss
@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_excess_risks_of_neighbours(loss: Loss, lam: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(15):
        n, p = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        radius = float(loss.radius(lam) * rng.choice([0.3, 1.0]))
        pair = neighbours(rng, n, p, loss)
        lows = [objective(loss, x, y, lam, minimise(loss, x, y, lam, radius=radius).theta) for x, y in pair]
        for _ in range(20):
            theta = in_ball(rng, p, radius)
            values = [objective(loss, x, y, lam, theta) - low for (x, y), low in zip(pair, lows, strict=True)]
            limit = excess_risk_sensitivity(loss, radius, n) + 2e-11
            assert abs(values[0] - values[1]) <= limit


@pytest.mark.parametrize(("radius_of", "factor"), [(SquaredLoss().paper_radius, 1.25), (SquaredLoss().radius, 1.9)])
def test_half_the_ridge_sensitivity_is_exceeded(radius_of: Callable[[float], float], factor: float) -> None:
    """Rows (0, s) with y = 1, and one that is (1, 0) or (0, 1) with y = −1; θ = (R, 0).

    The row (1, 0) costs θ as much as a row can, the row (0, 1) costs the minimiser as much: both changes add up, and
    (R + 1)²/(2n) is no sensitivity of excess risk.
    """
    n, lam = 20_000, 0.005
    loss, radius = SquaredLoss(), radius_of(lam)
    theta = np.array([radius, 0.0])
    stated = excess_risk_sensitivity(loss, radius, n)
    assert stated == pytest.approx((radius + 1) ** 2 / n)
    # The s that makes the minimiser as long as it can be: it then predicts ½ on every row.
    x, y = np.tile([0.0, math.sqrt(lam)], (n, 1)), np.ones(n)
    y[0] = -1.0
    values = []
    for row in ((1.0, 0.0), (0.0, 1.0)):
        x[0] = row
        values.append(excess(loss, x, y, lam, radius, theta))
    assert factor * stated / 2 < values[0] - values[1] <= stated


def excess(loss: Loss, x: Floats, y: Floats, lam: float, radius: float, theta: Floats) -> float:
    lowest = minimise(loss, x, y, lam, radius=radius).theta
    return objective(loss, x, y, lam, theta) - objective(loss, x, y, lam, lowest)


def test_named_values() -> None:
    n, p, lam = 100_000, 38, 0.005
    m = LogisticLoss().paper_radius(lam)
    assert excess_risk_sensitivity(LogisticLoss(), m, n) == pytest.approx(2 * m / n)
    assert minimiser_l1_sensitivity(LogisticLoss(), math.inf, n, lam, p) == pytest.approx(2 * math.sqrt(p) / (n * lam))
    assert minimiser_l2_sensitivity(SquaredLoss(), 3.0, n, lam) == pytest.approx(8 / (n * lam))
    assert paper_ridge_output_sensitivity(3.0, n, p, lam) == pytest.approx(4 * math.sqrt(p / (n * lam)))


@given(st.floats(0.01, 100.0), st.integers(1, 10**7))
def test_floating_sensitivities_are_not_below_the_real_ones(radius: float, n: int) -> None:
    exact = (1 + Fraction(radius)) ** 2 / n
    assert exact <= Fraction(excess_risk_sensitivity(SquaredLoss(), radius, n)) <= exact * (1 + Fraction(1, 10**14))


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=5),
    st.integers(-6, 3),
    st.sampled_from([round, math.floor, math.trunc]),
)
def test_rounding_to_a_grid(pairs: list[tuple[float, float]], power: int, rounding: object) -> None:
    assert callable(rounding)
    grid = Fraction(2) ** power
    delta = sum((abs(Fraction(a) - Fraction(b)) for a, b in pairs), Fraction(0))
    moved = sum(abs(rounding(Fraction(a) / grid) - rounding(Fraction(b) / grid)) for a, b in pairs)
    assert moved <= grid_sensitivity(delta, grid, len(pairs))


def test_grid_sensitivity_is_exact() -> None:
    # The float 0.1 is above a tenth, so one holds it nine times; a floating-point quotient says ten.
    assert grid_sensitivity(1.0, 0.1, 1) == 9 + 1
    assert grid_sensitivity(1, 2**-70, 2) == 2**70 + 2
    assert grid_sensitivity(0.0, 1.0, 4) == 4
    with pytest.raises(ValueError, match="grid"):
        grid_sensitivity(1.0, 0.0, 1)


def test_meaningless_arguments_are_refused() -> None:
    for call in (
        lambda: excess_risk_sensitivity(SquaredLoss(), -1.0, 10),
        lambda: excess_risk_sensitivity(SquaredLoss(), math.nan, 10),
        lambda: minimiser_l2_sensitivity(SquaredLoss(), 1.0, 0, 0.1),
        lambda: minimiser_l2_sensitivity(SquaredLoss(), 1.0, 10, 0.0),
        lambda: minimiser_l1_sensitivity(SquaredLoss(), 1.0, 10, 0.1, 0),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()
