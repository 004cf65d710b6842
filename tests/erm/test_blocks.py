"""Sums over blocks of rows at their largest, which float64 could not hold if they were taken in one go."""

from __future__ import annotations

import numpy as np
import pytest

from expost.data.batches import Batch
from expost.erm.blocks import GROUP, blocks, folded, gram, weighted
from expost.erm.passes import TermSum

MOST, WEIGHT = 2**20 - 1, 2**22 - 1


@pytest.mark.parametrize("n", [GROUP, 3 * GROUP + 77, 40 * GROUP])
def test_sums_of_the_largest_rows_are_exact(n):
    batch = Batch(np.full((n, 2), MOST, dtype=np.int32), np.zeros(n, dtype=np.int32))
    sums, squares = folded(
        ((weighted(x, np.full((2, len(y)), float(WEIGHT))), gram(x, None)) for x, y, _ in blocks(batch)), 0
    )
    assert sums.tolist() == [[n * MOST * WEIGHT] * 2] * 2
    assert squares.tolist() == [[n * MOST**2] * 2] * 2
    if n > GROUP:  # what groups are for
        in_one_go = float(WEIGHT) * np.ones(n) @ np.full(n, float(MOST))
        assert int(in_one_go) != n * MOST * WEIGHT


def nearly_one(u, y):
    return np.full(len(u), 1.0 - 2.0**-51)


def test_means_of_the_largest_terms_are_exact():
    n = 9 * GROUP
    batch = Batch(np.zeros((n, 1), dtype=np.int32), np.zeros(n, dtype=np.int32))
    assert TermSum(nearly_one, np.zeros((1, 1)), 0)(batch) == (n * (2**51 - 1),)
