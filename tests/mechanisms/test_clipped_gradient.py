"""Sums of clipped gradients: exact, moved by one row only, and close to the gradient they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from expost.mechanisms.descent.clipping import PARTS, SLOPE_ONE, Clip, ClippedGradients, Frame, SlopeTable
from expost.numeric import to_grid
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, WeightedLoss
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import Block, Geometry, l2_ball

LOSSES = [CappedLogisticLoss(0.5), LogisticLoss(), HuberLoss(0.25), WeightedLoss(LogisticLoss(), 0.25, 1.0)]


WIDE = Clip.of(Frame.of(l2_ball(5)), 8.0)  # clips nothing
NARROW = Clip.of(Frame.of(l2_ball(5)), 0.05)


def made(n=400, p=5, seed=0, labels=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * 1.001
    y = rng.choice([-1.0, 1.0], n) if labels else rng.uniform(-1, 1, n)
    return Rows(np.trunc(x * ONE).astype(np.int32), np.trunc(y * ONE).astype(np.int32), norm="l2")


def by_hand(rows, table, theta, clip):
    """Row by row, in Python integers."""
    steps = to_grid(theta, float(np.abs(theta).max()), norm="l2")
    total = [0] * rows.p
    for x, y in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        u = sum(value / ONE * step for value, step in zip(x, steps.tolist(), strict=True))
        (slope,) = table.at(np.array([u]), np.array([y / ONE])).tolist()
        square = sum(value * value for value in x)
        while slope * slope * square > clip.most**2:
            slope -= 1 if slope > 0 else -1
        total = [sum_ + slope * value for sum_, value in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("clip", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_exact(loss, clip):
    rows, table = made(labels=loss.labels == "binary"), SlopeTable.of(loss)
    theta = np.random.default_rng(1).normal(size=rows.p) * 2
    assert ClippedGradients(rows, table).total(theta, clip).tolist() == by_hand(rows, table, theta, clip)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_close_to_the_gradient_where_nothing_is_clipped(loss):
    rows, table = made(labels=loss.labels == "binary"), SlopeTable.of(loss)
    theta = np.random.default_rng(1).normal(size=rows.p) * 2
    total = ClippedGradients(rows, table).total(theta, WIDE)
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
    for slopes in (table.slopes, table.negative):
        assert slopes is None or (np.diff(slopes) >= 0).all()  # a convex loss


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_replacing_a_row_moves_the_sum_by_that_row_only(loss):
    labels = loss.labels == "binary"
    rows, table = made(labels=labels), SlopeTable.of(loss)
    other = made(seed=9, labels=labels)
    theta = np.random.default_rng(3).normal(size=rows.p)
    before = ClippedGradients(rows, table).total(theta, NARROW)
    for i in (0, 7, 399):
        x, y = rows.x.copy(), rows.y.copy()
        x[i], y[i] = other.x[i], other.y[i]
        after = ClippedGradients(Rows(x, y, norm="l2"), table).total(theta, NARROW)
        one = [
            ClippedGradients(Rows(r.x[i : i + 1], r.y[i : i + 1], norm="l2"), table).total(theta, NARROW)
            for r in (other, rows)
        ]
        assert ((after - before) == one[0] - one[1]).all()
        assert np.linalg.norm((after - before).astype(float)) <= 2 * NARROW.most


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
    assert (
        ClippedGradients(shuffled, table).total(theta, NARROW) == ClippedGradients(rows, table).total(theta, NARROW)
    ).all()


def test_private():
    with pytest.raises(TypeError, match="private"):
        ClippedGradients(made(), SlopeTable.of(LogisticLoss())).__reduce_ex__(2)


SHAPE = Geometry((Block(2, "box", 0.5), Block(12, "l1", 0.5)), 1.0, "blocks", constant=0)


def table_rows(n=300, seed=0):
    """Rows as tables give them: mostly zeros, the constant first."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, 14), dtype=np.int32)
    x[:, 0] = ONE // 2
    x[:, 1] = rng.choice([-ONE // 2, ONE // 2, 0, 7], n)
    x[np.arange(n), rng.integers(2, 14, n)] = ONE // 2
    return Rows(x, np.trunc(rng.uniform(-1, 1, n) * ONE).astype(np.int32), norm="l2")


@pytest.mark.parametrize("length", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("centre", [0.0, 0.4, 100.0])
def test_no_row_is_longer_than_the_clip_in_its_frame(length, centre):
    """Exactly, in integers, for every row by itself: the sensitivity that noise is made for."""
    clip = Clip.of(Frame.of(SHAPE, 4).moved(np.full(14, centre)), length)
    rows, table = table_rows(60), SlopeTable.of(HuberLoss(0.25))
    theta = np.random.default_rng(3).normal(size=14)
    longest = 0
    for i in range(60):
        alone = ClippedGradients(Rows(rows.x[i : i + 1], rows.y[i : i + 1], norm="l2"), table)
        for total in (alone.total(theta, clip), alone.rows_total(clip)):
            square = sum(value**2 for value in clip.frame.coordinates(total))
            assert square <= clip.most**2
            longest = max(longest, square)
    assert longest > 0.9 * clip.most**2 or length == 1.0


def test_control_clipping_slopes_alone_leaves_rows_longer():
    """With the table's own largest slope in the place of a limit."""
    clip, table = Clip.of(Frame.of(SHAPE, 4), 0.1), SlopeTable.of(HuberLoss(0.25))
    wide = Clip.of(Frame.of(SHAPE, 4), 100.0)
    rows = table_rows(60)
    alone = [ClippedGradients(Rows(rows.x[i : i + 1], rows.y[i : i + 1], norm="l2"), table) for i in range(60)]
    squares = [sum(v**2 for v in wide.frame.coordinates(one.total(np.zeros(14), wide))) for one in alone]
    assert max(squares) > clip.most**2


def test_rows_in_memory_and_in_passes_give_the_same_integers():
    rows, table = table_rows(), SlopeTable.of(HuberLoss(0.25))
    clip = Clip.of(Frame.of(SHAPE, 4).moved(np.full(14, 0.3)), 0.05)
    theta = np.random.default_rng(4).normal(size=14)
    sparse, streamed = ClippedGradients(rows, table), ClippedGradients(MemorySource(rows), table)
    assert (sparse.total(theta, clip) == streamed.total(theta, clip)).all()
    assert (sparse.rows_total(clip) == streamed.rows_total(clip)).all()
    assert sparse.lengths_total(clip.frame, 1.5) == streamed.lengths_total(clip.frame, 1.5)


def test_how_long_rows_are():
    """Close to the mean of squares; a row adds between nothing and all parts."""
    rows, table = table_rows(), SlopeTable.of(HuberLoss(0.25))
    frame = Frame.of(SHAPE, 4).moved(np.full(14, 0.3))
    squares = np.mean((frame.lengths(rows.x.astype(float)) / ONE) ** 2)
    total = ClippedGradients(rows, table).lengths_total(frame, 4.0)
    assert 0 <= squares - 16.0 * total / PARTS / rows.n < 16.0 / PARTS
    for most, parts in ((1e-3, PARTS), (1e6, 0)):
        one = Rows(rows.x[:1], rows.y[:1], norm="l2")
        assert ClippedGradients(one, table).lengths_total(frame, most) == parts
