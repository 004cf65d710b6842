"""The capped logistic loss: its constants against brute force, its values against decimals, its limits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from expost.solve.losses import CappedLogisticLoss, LogisticLoss

SLOPES = [0.05, 0.2, 0.5, 0.7, 0.95]
each_slope = pytest.mark.parametrize("loss", [CappedLogisticLoss(s) for s in SLOPES], ids=repr)


def grid(radius: float, points: int = 20_001) -> tuple[np.ndarray, np.ndarray]:
    u, y = np.meshgrid(np.linspace(-radius, radius, points), [-1.0, 1.0])
    return u, y


@each_slope
def test_derivatives_are_those_of_the_value(loss: CappedLogisticLoss) -> None:
    rng = np.random.default_rng(0)
    u, y, step = rng.uniform(-6, 6, 4000), rng.choice([-1.0, 1.0], 4000), 1e-5
    first = (loss.value(u + step, y) - loss.value(u - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(u, y), first, atol=1e-5)
    second = (loss.derivative(u + step, y) - loss.derivative(u - step, y)) / (2 * step)
    off = ~np.isclose(loss.second_derivative(u, y), second, atol=1e-6)
    assert np.count_nonzero(off) <= 4  # within a step of the corner
    assert (loss.value(u, y) >= 0.0).all()


@each_slope
def test_it_is_convex_with_the_constants_it_states(loss: CappedLogisticLoss) -> None:
    u, y = grid(12.0)
    slopes = loss.derivative(u, y)
    assert (np.diff(slopes, axis=1) >= 0).all()
    assert np.abs(slopes).max() <= loss.lipschitz(math.inf) == loss.slope
    steepest = (np.diff(slopes, axis=1) / np.diff(u, axis=1)).max()
    assert 0.99 * loss.curvature < steepest <= loss.curvature * (1 + 1e-9)
    second = loss.second_derivative(u, y)
    assert second.min() >= 0
    assert 0.999 * loss.curvature < second.max() <= loss.curvature


@each_slope
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.0, 4.0, 9.0])
def test_lipschitz_spread_null_value_and_pull(loss: CappedLogisticLoss, radius: float) -> None:
    u, y = grid(radius)
    value, slope = loss.value(u, y), np.abs(loss.derivative(u, y))
    assert slope.max() <= loss.lipschitz(radius) * (1 + 1e-15)
    assert slope.max() == pytest.approx(loss.lipschitz(radius), rel=1e-12)
    assert np.ptp(value) <= loss.spread(radius) <= np.ptp(value) + 1e-13
    assert loss.null_value == loss.value(np.zeros(1), np.ones(1))[0]
    if radius == 9.0:
        pull = -slope * np.sign(-y) * u
        assert pull.max() <= loss.pull
        assert pull.max() == pytest.approx(loss.pull, rel=1e-3)


@each_slope
def test_it_is_the_logistic_loss_above_the_corner_and_a_line_below(loss: CappedLogisticLoss) -> None:
    corner = math.log((1 - loss.slope) / loss.slope)
    m = corner + np.linspace(0, 20, 300)
    logistic, ones = LogisticLoss(), np.ones(300)
    np.testing.assert_allclose(loss.value(m, ones), logistic.value(m, ones), rtol=1e-14)
    np.testing.assert_allclose(loss.derivative(m, ones), logistic.derivative(m, ones), rtol=1e-14)
    below = corner - np.linspace(0, 20, 300)
    line = loss.value(np.array([corner]), ones[:1])[0] + loss.slope * (corner - below)
    np.testing.assert_allclose(loss.value(below, ones), line, rtol=1e-14)
    assert (loss.value(below, ones) <= logistic.value(below, ones) * (1 + 1e-15)).all()


@each_slope
def test_labels_change_places(loss: CappedLogisticLoss) -> None:
    u, ones = np.linspace(-9, 9, 101), np.ones(101)
    assert np.array_equal(loss.value(u, ones), loss.value(-u, -ones))
    assert np.array_equal(loss.derivative(u, ones), -loss.derivative(-u, -ones))
    assert np.array_equal(loss.second_derivative(u, ones), loss.second_derivative(-u, -ones))


@each_slope
def test_slopes_are_exact_to_the_units_they_state(loss: CappedLogisticLoss) -> None:
    u, unit = np.concatenate([np.linspace(-40, 40, 201), [-1e5, 1e5, -700.0, 700.0]]), 2.0**-53
    slope = -loss.derivative(u, np.ones(u.size))
    assert np.isfinite(loss.value(u, np.ones(u.size))).all()
    with localcontext() as context:
        context.prec = 60
        for i in range(201):
            exact = min(1 / (1 + Decimal(float(u[i])).exp()), Decimal(loss.slope))
            assert abs(Decimal(float(slope[i])) - exact) <= loss.EVALUATION_ULPS * Decimal(unit) * exact


def test_in_the_limit_it_is_the_logistic_loss() -> None:
    u, y = grid(10.0, 501)
    nearly = CappedLogisticLoss(1 - 1e-9)
    np.testing.assert_allclose(nearly.derivative(u, y), LogisticLoss().derivative(u, y), atol=1e-9)
    np.testing.assert_allclose(nearly.value(u, y), LogisticLoss().value(u, y), atol=1e-7)
    assert nearly.curvature == LogisticLoss().curvature


@pytest.mark.parametrize("slope", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_slopes_that_make_no_sense(slope: float) -> None:
    with pytest.raises(ValueError, match="strictly between"):
        CappedLogisticLoss(slope)


def test_it_compares_by_its_slope() -> None:
    assert CappedLogisticLoss(0.5) == CappedLogisticLoss(0.5) != CappedLogisticLoss(0.4)
