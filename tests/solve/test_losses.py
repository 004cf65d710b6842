"""Every constant of every loss against brute force, and every radius against true minimisers."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from expost.solve.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss
from expost.solve.minimiser import minimise
from tests.solve.helpers import LOSSES, Floats, random_problem

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_radius = pytest.mark.parametrize("radius", [0.0, 0.3, 1.0, 4.0])


def grid(loss: Loss, radius: float, points: int = 2001) -> tuple[Floats, Floats]:
    """All |u| ≤ radius against all admissible targets, corners included."""
    targets = np.array([-1.0, 1.0]) if loss.labels == "binary" else np.linspace(-1.0, 1.0, 201)
    u, y = np.meshgrid(np.linspace(-radius, radius, points), targets)
    return u, y


@each_loss
def test_derivatives_are_those_of_the_value(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    u = rng.uniform(-4, 4, size=4000)
    y = rng.choice([-1.0, 1.0], size=4000)
    step = 1e-5
    first = (loss.value(u + step, y) - loss.value(u - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(u, y), first, atol=1e-4 * max(1.0, loss.curvature))
    second = (loss.derivative(u + step, y) - loss.derivative(u - step, y)) / (2 * step)
    # A point within a step of a kink has no second derivative to compare with; there are few of them.
    off = ~np.isclose(loss.second_derivative(u, y), second, atol=1e-6 * max(1.0, loss.curvature))
    assert np.count_nonzero(off) <= 4
    assert (loss.value(u, y) >= 0.0).all()


@each_loss
def test_curvature_is_the_largest_second_derivative(loss: Loss) -> None:
    second = loss.second_derivative(*grid(loss, 5.0))
    assert second.min() >= 0.0
    assert second.max() == pytest.approx(loss.curvature, rel=1e-12)


@each_loss
@each_radius
def test_lipschitz_spread_and_maximum(loss: Loss, radius: float) -> None:
    u, y = grid(loss, radius)
    value, slope = loss.value(u, y), np.abs(loss.derivative(u, y))
    assert slope.max() <= loss.lipschitz(radius) * (1 + 1e-15)
    assert slope.max() == pytest.approx(loss.lipschitz(radius), rel=1e-12)
    assert np.ptp(value) == pytest.approx(loss.spread(radius), rel=1e-12, abs=1e-15)
    assert value.max() == pytest.approx(loss.maximum(radius), rel=1e-12)


@each_loss
def test_null_value_and_pull(loss: Loss) -> None:
    _, y = grid(loss, 0.0)
    assert loss.value(np.zeros_like(y), y).max() == pytest.approx(loss.null_value, rel=1e-12)
    u, y = grid(loss, 5.0, points=100_001 if loss.labels == "binary" else 5001)
    pull = -loss.derivative(u, y) * u
    assert pull.max() <= loss.pull
    assert pull.max() == pytest.approx(loss.pull, rel=1e-4)


def test_known_constants() -> None:
    assert SquaredLoss().radius(0.005) == pytest.approx(0.5 / 0.005**0.5)
    assert SquaredLoss().paper_radius(0.005) == pytest.approx(1 / 0.005**0.5)
    assert LogisticLoss().paper_radius(0.005) == pytest.approx((2 * np.log(2) / 0.005) ** 0.5)
    assert LogisticLoss().pull == pytest.approx(0.2784645427610738)
    assert LogisticLoss().spread(np.float64(3.7)) == 3.7
    assert LogisticLoss().lipschitz(np.inf) == 1.0
    assert HuberLoss(0.7).pull == 0.25
    assert HuberLoss(0.2).pull == pytest.approx(0.16)
    assert SmoothedHingeLoss(0.2).pull == pytest.approx(0.8)
    assert SmoothedHingeLoss(2.0).pull == pytest.approx(0.125)


def test_logistic_pull_is_rounded_up() -> None:
    # W = W(1/e) solves W·e^(W + 1) = 1; the left side increases.
    with localcontext() as context:
        context.prec = 50
        pull = Decimal(LogisticLoss().pull)
        assert pull * (pull + 1).exp() > 1
        below = pull * (1 - Decimal(2) ** -45)
        assert below * (below + 1).exp() < 1


def test_logistic_is_accurate_everywhere() -> None:
    u = np.concatenate([np.linspace(-40, 40, 401), [700.0, -700.0, 1e5, -1e5]])
    loss, unit = LogisticLoss(), 2.0**-53
    for y in (-1.0, 1.0):
        value, slope = loss.value(u, np.full_like(u, y)), loss.derivative(u, np.full_like(u, y))
        with localcontext() as context:
            context.prec = 60
            for i in range(401):
                e = (-Decimal(y) * Decimal(float(u[i]))).exp()
                exact_value, exact_slope = float((1 + e).ln()), float(-Decimal(y) * e / (1 + e))
                assert abs(value[i] - exact_value) <= loss.EVALUATION_ULPS * unit * max(1.0, exact_value)
                assert abs(slope[i] - exact_slope) <= loss.EVALUATION_ULPS * unit * abs(exact_slope)
        assert np.isfinite(value).all()
        assert np.isfinite(slope).all()


@each_loss
@pytest.mark.parametrize("lam", [1.0, 0.05, 0.001])
def test_minimisers_lie_within_the_radius(loss: Loss, lam: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        x, y = random_problem(rng, 30, 3, loss)
        theta = minimise(loss, x, y, lam).theta
        assert np.linalg.norm(theta) <= loss.radius(lam) <= loss.paper_radius(lam)


@pytest.mark.parametrize(
    ("loss", "margin"),
    [
        (SquaredLoss(), 0.5),
        (LogisticLoss(), 1.2784645427610738),
        (HuberLoss(0.2), 0.8),
        (SmoothedHingeLoss(0.2), 0.8),
        (SmoothedHingeLoss(1.0), 0.5),
    ],
    ids=repr,
)
def test_radius_is_attained(loss: Loss, margin: float) -> None:
    # A single row (s, 1) whose minimiser predicts exactly the margin with the largest pull.
    lam = 1e-3
    shrink = margin / loss.radius(lam)
    theta = minimise(loss, np.array([[shrink]]), np.array([1.0]), lam).theta
    assert 0.999 * loss.radius(lam) <= theta[0] <= loss.radius(lam)


def test_losses_compare_by_their_parameters() -> None:
    assert HuberLoss(0.5) == HuberLoss(0.5) != HuberLoss(0.6)
    assert len({SquaredLoss(), SquaredLoss(), LogisticLoss()}) == 2
    for build in (HuberLoss, SmoothedHingeLoss):
        with pytest.raises(ValueError, match="positive"):
            build(0.0)
