"""No neighbour found by search exceeds a stated sensitivity, and the stated ones are not idle."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from erm_helpers import LOSSES, Floats, in_ball, objective
from hypothesis import given
from hypothesis import strategies as st

from expost.erm import (
    LogisticLoss,
    Loss,
    SquaredLoss,
    excess_risk_sensitivity,
    grid_sensitivity,
    minimise,
    minimiser_l1_sensitivity,
    minimiser_l2_sensitivity,
    paper_ridge_output_sensitivity,
)

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
    if rng.random() < 0.3:
        rows = [random_row(rng, p, loss)] * n  # all alike: the row that is replaced then weighs most
    else:
        rows = [random_row(rng, p, loss) for _ in range(n)]
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
        bound = max(a.distance_bound, b.distance_bound)
        assert np.linalg.norm(gap) <= minimiser_l2_sensitivity(loss, radius, n, lam, distance_bound=bound)
        assert np.abs(gap).sum() <= minimiser_l1_sensitivity(loss, radius, n, lam, p, distance_bound=bound)
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
            limit = excess_risk_sensitivity(loss, radius, n, value_error=1e-11)
            assert abs(values[0] - values[1]) <= limit


@pytest.mark.parametrize("replacement", [(1.0, 0.0), (0.0, 1.0)])
def test_half_the_ridge_sensitivity_is_exceeded(replacement: tuple[float, float]) -> None:
    """All rows (0, s) with y = 1, one replaced with y = −1: (R + 1)²/(2n) is no sensitivity of excess risk."""
    n, lam = 1000, 0.005
    loss, radius, theta = SquaredLoss(), SquaredLoss().radius(lam), np.zeros(2)
    theta[0] = radius
    stated, worst = excess_risk_sensitivity(loss, radius, n), 0.0
    assert stated == pytest.approx((radius + 1) ** 2 / n)
    for s in np.linspace(0.01, 1.0, 100):
        x, y = np.tile([0.0, s], (n, 1)), np.ones(n)
        before = excess(loss, x, y, lam, radius, theta)
        x[0], y[0] = replacement, -1.0
        worst = max(worst, abs(excess(loss, x, y, lam, radius, theta) - before))
    assert worst <= stated
    if replacement == (1.0, 0.0):
        assert worst > 1.2 * stated / 2


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


def test_errors_are_charged_once_for_each_neighbour() -> None:
    loss = SquaredLoss()
    plain = excess_risk_sensitivity(loss, 1.0, 10)
    assert excess_risk_sensitivity(loss, 1.0, 10, value_error=0.5) == pytest.approx(plain + 1.0)
    plain = minimiser_l2_sensitivity(loss, 1.0, 10, 0.1)
    assert minimiser_l2_sensitivity(loss, 1.0, 10, 0.1, distance_bound=0.5) == pytest.approx(plain + 1.0)
    plain = minimiser_l1_sensitivity(loss, 1.0, 10, 0.1, 9)
    assert minimiser_l1_sensitivity(loss, 1.0, 10, 0.1, 9, distance_bound=0.5) == pytest.approx(plain + 3.0)


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
    assert grid_sensitivity(0.3, 0.1, 1) == 3 - 1 + 1  # 0.3 is below three times the float 0.1
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
