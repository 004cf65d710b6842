"""Equal rows taken together: the same sums to within rounding, the same public bounds, exact counts."""

import numpy as np
import pytest

from expost.goals.measure import MeanSquareByRows
from expost.numeric import to_grid
from expost.passes import engine as module
from expost.passes.engine import distinct
from expost.solve.losses import HuberLoss, LogisticLoss, SquaredLoss
from expost.solve.minimiser import GeneralRisk, minimise
from expost.solve.objective import Objective
from expost.table.rows import Rows

ONE = 2.0**20


def repeated(kinds=40, n=6000, p=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**18), 2**18, (kinds, p), dtype=np.int32)
    which = rng.integers(0, kinds, n)
    y = np.where(rng.random(kinds) < 0.5, 2**20, -(2**20)).astype(np.int32)
    return Rows(x[which], y[which])


def test_kinds_and_their_numbers():
    rows = repeated()
    x, y, counts = distinct(rows)
    assert counts.sum() == rows.n
    together = np.column_stack([x, y])
    every, numbers = np.unique(np.column_stack([rows.x, rows.y]), axis=0, return_counts=True)
    order = np.lexsort(together.T[::-1])
    np.testing.assert_array_equal(together[order], every)
    np.testing.assert_array_equal(counts[order], numbers)


def test_rows_that_differ_are_left_alone(monkeypatch):
    rng = np.random.default_rng(1)
    alone = Rows(rng.integers(-(2**18), 2**18, (9000, 3), dtype=np.int32), np.full(9000, 2**20, dtype=np.int32))
    assert distinct(alone)[2] is None
    assert distinct(repeated(n=500))[2] is None  # too few to be worth it
    rows = repeated()
    monkeypatch.setattr(module, "_keys", lambda x, y: np.zeros(len(y), dtype=np.int64))
    x, y, counts = distinct(rows)  # keys that lie are found out
    assert counts is None
    assert x is rows.x
    assert y is rows.y


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.5), SquaredLoss()], ids=repr)
def test_the_risk_is_the_same_and_so_are_its_public_bounds(loss):
    rows, lam, rng = repeated(), 0.01, np.random.default_rng(2)
    x, y = rows.x / ONE, rows.y / ONE
    kinds, targets, counts = distinct(rows)
    plain = GeneralRisk(minimise(loss, x, y, lam))
    few = (kinds / ONE, targets / ONE)
    grouped = GeneralRisk(minimise(loss, *few, lam, counts=counts))
    assert grouped.n == plain.n == rows.n
    assert grouped.distance_bound == plain.distance_bound
    error = plain.excess_error_bound(2.0)
    assert grouped.excess_error_bound(2.0) == error
    gradient_error = plain.gradient_error_bound(2.0)
    assert grouped.gradient_error_bound(2.0) == gradient_error
    for _ in range(50):
        theta = rng.uniform(-1, 1, 3)
        assert abs(grouped.excess(theta) - plain.excess(theta)) <= 2 * error
        assert abs(grouped.gradient_norm(theta) - plain.gradient_norm(theta)) <= 2 * gradient_error
        assert grouped.lower(theta) <= plain.excess(theta) + error
        assert grouped.upper(theta) >= plain.excess(theta) - error


def test_measures_count_every_row():
    rows, rng = repeated(), np.random.default_rng(3)
    kinds, targets, counts = distinct(rows)
    plain = Objective(LogisticLoss(), rows.x / ONE, rows.y / ONE, 0.01)
    grouped = Objective(LogisticLoss(), kinds / ONE, targets / ONE, 0.01, counts)
    for _ in range(20):
        theta = to_grid(rng.uniform(-1, 1, 3), 1.0)
        assert grouped.errors(theta) == plain.errors(theta)
    squares = MeanSquareByRows(grouped), MeanSquareByRows(plain)
    assert abs(squares[0].value(theta) - squares[1].value(theta)) <= 2 * squares[0].error_bound(1.0)
    assert squares[0].error_bound(1.0) == squares[1].error_bound(1.0)
