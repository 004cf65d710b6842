"""Sums over blocks of rows at their largest, which float64 could not hold if they were taken in one go."""

from __future__ import annotations

import numpy as np
import pytest

from expost.numeric import exact_parts
from expost.passes.engine import _FLUSH, _GROUPS, GROUP, blocks, folded, gram, weighted
from expost.passes.sums import ProductSums
from expost.solve.losses import LogisticLoss
from expost.solve.row_sums import OutcomeCount, SlopeSums, TermSum
from expost.table.rows import Batch, by_column, room_for

MOST, WEIGHT = 2**20 - 1, 2**22 - 1


@pytest.mark.parametrize("columns", [False, True], ids=["by row", "by column"])
@pytest.mark.parametrize("n", [GROUP, 3 * GROUP + 77, 40 * GROUP])
def test_sums_of_the_largest_rows_are_exact(n, columns):
    x = room_for(n, 2, columns=columns)
    x[...] = MOST
    batch = Batch(x, np.zeros(n, dtype=np.int32))
    sums, squares = folded(
        ((weighted(x, np.full((2, len(y)), float(WEIGHT))), gram(x, None)) for x, y, _ in blocks(batch)), 0
    )
    assert sums.tolist() == [[n * MOST * WEIGHT] * 2] * 2
    assert squares.tolist() == [[n * MOST**2] * 2] * 2
    if n > GROUP:  # what groups are for
        one_by_one = np.cumsum(np.full(n, float(WEIGHT) * float(MOST)))  # in this order on every processor
        assert int(one_by_one[-1]) != n * MOST * WEIGHT


@pytest.mark.parametrize(
    "work",
    [
        SlopeSums(LogisticLoss(), exact_parts(np.linspace(-3, 3.1, 6)), 0, 1),
        OutcomeCount(exact_parts(np.linspace(-3, 3.1, 6))),
        ProductSums(),
    ],
    ids=["slopes", "errors", "products"],
)
def test_rows_that_are_held_column_by_column_give_the_same_integers(work):
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**17), 2**17, (3 * GROUP + 77, 6)).astype(np.int32)
    y = rng.choice([-(2**20), 2**20], len(x)).astype(np.int32)
    turned = Batch(np.asfortranarray(x), y)
    assert by_column(next(blocks(turned))[0])
    for one, other in zip(work(Batch(x, y)), work(turned), strict=True):
        assert np.array_equal(one, other)


def test_as_many_blocks_as_are_added_in_64_bits_fit():
    """The largest sums there can be, one more block than is added before Python's integers are."""
    block = np.full((1, 1), _GROUPS * 2**53)
    many = _FLUSH + 1
    assert folded(((block,) for _ in range(many)), 0)[0].tolist() == [[many * _GROUPS * 2**53]]


def nearly_one(u, y):
    return np.full(len(u), 1.0 - 2.0**-51)


def test_means_of_the_largest_terms_are_exact():
    n = 9 * GROUP
    batch = Batch(np.zeros((n, 1), dtype=np.int32), np.zeros(n, dtype=np.int32))
    assert TermSum(nearly_one, np.zeros((1, 1)), 0)(batch) == (n * (2**51 - 1),)
