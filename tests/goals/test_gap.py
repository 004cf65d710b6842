"""The gap L(0) − min L and its scale: never more sensitive than claimed, and nearly as sensitive."""

import math

import numpy as np
import pytest

from expost.goals.relative_excess_risk import GapScale
from expost.solve.losses import HuberLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss, WeightedLoss
from expost.solve.minimiser import GeneralRisk, minimise

LOSSES = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(0.5),
    SmoothedHingeLoss(0.5),
    WeightedLoss(LogisticLoss(), 0.25, 1.0),
]


def gap_of(loss, X, y, lam, radius=None):
    risk = GeneralRisk(minimise(loss, X, y, lam, radius=radius))
    return risk.excess(np.zeros(X.shape[1]))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gap_range_bounds_a_grid(loss):
    for radius in (0.2, 0.9, 1.0, 2.5, 7.0):
        u = np.linspace(-radius, radius, 201)
        targets = (-1.0, 1.0) if loss.labels == "binary" else np.linspace(-1, 1, 41)
        values = [loss.value(np.zeros(1), np.full(1, y)) - loss.value(u, np.full(201, y)) for y in targets]
        found = np.max(values) - np.min(values)
        assert found <= loss.gap_range(radius) * (1 + 1e-12)
        if loss.name in ("squared", "logistic"):
            assert found >= 0.999 * loss.gap_range(radius)


@pytest.mark.parametrize("radius", [None, 0.8])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_random_and_corner_neighbours(loss, radius):
    rng = np.random.default_rng(5)
    n, lam = 40, 0.05
    bound = loss.radius(lam) if radius is None else min(radius, loss.radius(lam))
    scale = GapScale.of(loss, n, lam, radius=bound, error_bound=1e-9)
    for trial in range(60):
        X = rng.dirichlet(np.ones(3), n)[:, :2] * rng.choice([0.05, 0.3, 1.0])
        y = np.sign(rng.normal(size=n) + rng.choice([0.0, 2.0]))
        gaps = []
        for _ in range(2):
            if trial % 2:
                X[0], y[0] = rng.choice([-1, 1]) * np.eye(2)[rng.integers(2)], rng.choice([-1, 1])
            else:
                X[0], y[0] = rng.dirichlet(np.ones(3))[:2] * rng.choice([-1, 1], 2), rng.choice([-1, 1])
            gaps.append(gap_of(loss, X, y, lam, radius))
        larger = max(gaps)
        assert abs(gaps[0] - gaps[1]) <= loss.gap_range(min(bound, math.sqrt(2 * larger / lam))) / n + 1e-9
        assert abs(scale.height(gaps[0]) - scale.height(gaps[1])) <= scale.sensitivity


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=repr)
@pytest.mark.parametrize("norm", [0.5, 1.5, 3.0])
def test_nearly_attained(loss, norm):
    """Many short rows that agree, and one long row turned round: half of the sensitivity would be caught."""
    n, lam = 200_000, 0.002
    slope = 1.0 if loss.name == "squared" else 0.5  # of the loss at 0: so short rows give ‖θ*‖ = norm
    X, y = np.full((n, 1), lam * norm / slope), np.ones(n)
    scale = GapScale.of(loss, n, lam, radius=loss.radius(lam))
    X[0], y[0] = 1.0, -1.0
    before = gap_of(loss, X, y, lam)
    X[0], y[0] = (min(1.0, 1 / norm) if loss.name == "squared" else 1.0), 1.0
    after = gap_of(loss, X, y, lam)
    assert 0.85 < (scale.height(after) - scale.height(before)) / scale.sensitivity <= 1.0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_scale(loss):
    scale = GapScale.of(loss, 100_000, 0.005, radius=loss.radius(0.005), error_bound=1e-12)
    assert 1.0 <= scale.sensitivity * 100_000 < 1.1
    for gap in (0.0, 1e-7, 1e-3, 0.02, 0.3 * loss.null_value, loss.null_value):
        assert scale.gap(scale.height(gap)) == pytest.approx(gap, rel=1e-9, abs=1e-15)
    assert scale.height(-1.0) == 0.0
    assert scale.gap(scale.heights[-1] + 1.0) == loss.null_value
