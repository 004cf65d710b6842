"""Sums of clipped gradients: exact, moved by one row only, and close to the gradient they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from expost.data import Rows
from expost.data.fixed_point import ONE
from expost.erm.capped_logistic import CappedLogisticLoss
from expost.erm.clipped_gradient import SLOPE_ONE, ClippedGradients, SlopeTable
from expost.erm.losses import HuberLoss, LogisticLoss
from expost.erm.measures import to_grid

LOSSES = [CappedLogisticLoss(0.5), LogisticLoss(), HuberLoss(0.25)]


def made(n=400, p=5, seed=0, labels=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * 1.001
    y = rng.choice([-1.0, 1.0], n) if labels else rng.uniform(-1, 1, n)
    return Rows(np.trunc(x * ONE).astype(np.int32), np.trunc(y * ONE).astype(np.int32), norm="l2")


def by_hand(rows, table, theta):
    """Row by row, in Python integers."""
    steps = to_grid(theta, float(np.abs(theta).max()), norm="l2")
    total = [0] * rows.p
    for x, y in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        u = sum(value / ONE * step for value, step in zip(x, steps.tolist(), strict=True))
        (slope,) = table.at(np.array([u]), np.array([y / ONE])).tolist()
        total = [sum_ + slope * value for sum_, value in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_exact_and_close_to_the_gradient(loss):
    rows, table = made(labels=loss.labels == "binary"), SlopeTable.of(loss)
    theta = np.random.default_rng(1).normal(size=rows.p) * 2
    total = ClippedGradients(rows, table).total(theta)
    assert total.tolist() == by_hand(rows, table, theta)
    x, y = rows.x / ONE, rows.y / ONE
    smooth = loss.derivative(x @ theta, y) @ x
    assert np.abs(total / (ONE * SLOPE_ONE) - smooth).max() < rows.n * (1 / 512 + 1 / SLOPE_ONE)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_no_slope_is_above_the_largest(loss):
    table = SlopeTable.of(loss)
    assert table.largest <= loss.lipschitz(np.inf) * SLOPE_ONE
    u = np.random.default_rng(2).normal(size=10_000) * 100
    y = np.where(u > 3, 1.0, -1.0)
    assert np.abs(table.at(u, y)).max() <= table.largest
    assert (np.diff(table.slopes) >= 0).all()  # a convex loss


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_replacing_a_row_moves_the_sum_by_that_row_only(loss):
    labels = loss.labels == "binary"
    rows, table = made(labels=labels), SlopeTable.of(loss)
    other = made(seed=9, labels=labels)
    theta = np.random.default_rng(3).normal(size=rows.p)
    before = ClippedGradients(rows, table).total(theta)
    for i in (0, 7, 399):
        x, y = rows.x.copy(), rows.y.copy()
        x[i], y[i] = other.x[i], other.y[i]
        after = ClippedGradients(Rows(x, y, norm="l2"), table).total(theta)
        one = [
            ClippedGradients(Rows(r.x[i : i + 1], r.y[i : i + 1], norm="l2"), table).total(theta) for r in (other, rows)
        ]
        assert ((after - before) == one[0] - one[1]).all()
        assert np.linalg.norm((after - before).astype(float)) <= 2 * table.largest * ONE


def test_control_sums_in_floating_point_depend_on_their_order():
    """What integers are for: the same rows in another order give another float."""
    rows = made(n=3000)
    theta = np.random.default_rng(4).normal(size=rows.p)
    x, y = rows.x / ONE, rows.y / ONE
    slopes = LogisticLoss().derivative(x @ theta, y)
    order = np.random.default_rng(5).permutation(rows.n)
    assert (slopes[order] @ x[order] != slopes @ x).any()
    table = SlopeTable.of(LogisticLoss())
    shuffled = Rows(rows.x[order].copy(), rows.y[order].copy(), norm="l2")
    assert (ClippedGradients(shuffled, table).total(theta) == ClippedGradients(rows, table).total(theta)).all()


def test_private():
    with pytest.raises(TypeError, match="private"):
        ClippedGradients(made(), SlopeTable.of(LogisticLoss())).__reduce_ex__(2)
