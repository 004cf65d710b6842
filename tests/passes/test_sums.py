"""Exact sums: equal to Python integers to the bit, for every way of adding them up."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from expost.passes.engine import LocalEngine
from expost.passes.sums import MAX_CHUNK, SUM_UNIT, ProductSums, Sums, sums_over
from expost.table.rows import Batch, MemorySource, Rows
from tests.solve.helpers import ONE, random_rows


def reference(rows: Rows) -> tuple[list[list[int]], list[int], int]:
    x, y = rows.x.astype(object), rows.y.astype(object)
    return (x.T @ x).tolist(), (x.T @ y).tolist(), int(y @ y)


def assert_equals(sums: Sums, expected: tuple[list[list[int]], list[int], int]) -> None:
    assert (sums.gram.tolist(), sums.moment.tolist(), sums.target_square) == expected


@pytest.mark.parametrize("chunk_size", [1, 7, 1000, 4096, 8192])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_chunking_and_thread_count_gives_the_same_integers(
    chunk_size: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    n = 20_001 if chunk_size > 7 else 501
    rows = random_rows(rng, n, 4, full=True)
    monkeypatch.setattr(ProductSums, "chunk_size", chunk_size)
    source = MemorySource(rows)
    source.engine = LocalEngine(threads)
    sums = sums_over(source)
    assert_equals(sums, reference(rows))
    assert sums.gram.dtype == sums.moment.dtype == np.int64
    assert (sums.n, sums.p) == (n, 4)


def test_a_full_chunk_of_the_largest_rows_is_still_exact() -> None:
    # 8192 · 2^40 = 2^53 is reached, and one odd product makes any lost bit visible.
    x = np.full((MAX_CHUNK, 1), ONE, np.int32)
    x[0] = ONE - 1
    rows = Rows(x, np.full(MAX_CHUNK, -ONE, np.int32))
    assert_equals(sums_over(rows), reference(rows))


def test_one_row_more_than_int64_holds() -> None:
    n = 2**23 + 1
    rows = Rows(np.full((n, 1), ONE, np.int32), np.full(n, ONE, np.int32))
    sums = sums_over(rows)
    assert sums.gram.tolist() == [[n * SUM_UNIT]]
    assert sums.moment.tolist() == [n * SUM_UNIT]
    assert sums.target_square == n * SUM_UNIT
    assert sums.gram.dtype == object
    a, b, c = sums.as_floats()
    assert a[0, 0] == b[0] == c == 1.0


def test_merging_promotes_before_it_can_overflow() -> None:
    n = 2**22 - 1
    part = Sums(n, 1, np.array([[n * SUM_UNIT]]), np.array([-n * SUM_UNIT]), n * SUM_UNIT)
    assert part.gram.dtype == np.int64
    total = part + part + part
    assert total.n == 3 * n
    assert total.gram.tolist() == [[3 * n * SUM_UNIT]]
    assert total.moment.tolist() == [-3 * n * SUM_UNIT]
    assert total.gram.dtype == total.moment.dtype == object


def test_merged_parts_are_the_whole() -> None:
    rows = random_rows(np.random.default_rng(2), 1000, 3)
    first, second = Rows(rows.x[:300], rows.y[:300]), Rows(rows.x[300:], rows.y[300:])
    assert_equals(sums_over(first) + sums_over(second), reference(rows))
    with pytest.raises(ValueError, match="features"):
        sums_over(rows) + sums_over(random_rows(np.random.default_rng(3), 10, 2))


def test_means_are_the_rational_numbers_rounded_once() -> None:
    from fractions import Fraction

    sums = sums_over(random_rows(np.random.default_rng(4), 777, 3))
    a, b, c = sums.as_floats()
    scale = 777 * SUM_UNIT
    for value, exact in [
        (a[0, 1], sums.gram[0, 1]),
        (a[2, 2], sums.gram[2, 2]),
        (b[1], sums.moment[1]),
        (c, sums.target_square),
    ]:
        assert value == float(Fraction(int(exact), scale))


def test_sums_do_not_leave() -> None:
    sums = sums_over(random_rows(np.random.default_rng(7), 10, 2))
    assert repr(sums) == "Sums(n=10, p=2)"
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(sums)
    with pytest.raises(TypeError, match="private"):
        copy.deepcopy(sums)
    with pytest.raises(ValueError, match="read-only"):
        sums.gram[0, 0] = 0


class TestRowsThatCount:
    def test_sums_are_exact_beyond_64_bits(self):
        """65,536 rows that count 128 times each: 2⁶³, and one row replaced moves it by what a row may."""
        x = np.full((65_536, 1), 2**20, np.int32)
        y, counts = np.zeros(len(x), np.int32), np.full(len(x), 128.0)
        whole = ProductSums()(Batch(x, y, counts))
        assert (whole[0], int(whole[1][0, 0])) == (2**23, 2**63)
        x[0] = 0
        assert int(whole[1][0, 0]) - int(ProductSums()(Batch(x, y, counts))[1][0, 0]) == 128 * 2**40

    def test_they_are_those_of_the_rows_repeated(self):
        rng = np.random.default_rng(3)
        x, y = rng.integers(-(2**18), 2**18, (40, 3)).astype(np.int32), rng.integers(-9, 9, 40).astype(np.int32)
        batch = Batch(x, y, rng.integers(0, 9, 40).astype(float), shift=2)
        once = batch.repeated()
        for found, wanted in zip(ProductSums()(batch), ProductSums()(once), strict=True):
            np.testing.assert_array_equal(found, wanted)
        pieces = list(batch.pieces(7))
        assert max(map(len, pieces)) == 7
        np.testing.assert_array_equal(np.concatenate([piece.x for piece in pieces]), once.x)
        np.testing.assert_array_equal(np.concatenate([piece.y for piece in pieces]), once.y)
