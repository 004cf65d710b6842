"""The release layout: a faithful round trip, and the sensitivity it is claimed to have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from expost.mechanisms.moments.statistics import STATISTICS_SENSITIVITY, Layout
from expost.passes.sums import SUM_UNIT, Sums, sums_over
from expost.table.rows import Rows
from tests.solve.helpers import ONE, random_rows

Row = tuple[list[int], int]


@pytest.mark.parametrize("full_matrix", [False, True])
@pytest.mark.parametrize("p", [1, 2, 5])
def test_round_trip(p: int, full_matrix: bool) -> None:
    sums = sums_over(random_rows(np.random.default_rng(p), 100, p))
    vector = Layout(sums.p, full_matrix).pack(sums)
    assert vector.shape == ((p * p if full_matrix else p * (p + 1) // 2) + p,)
    gram, moment = Layout(p, full_matrix).unpack(vector)
    np.testing.assert_array_equal(gram * SUM_UNIT, sums.gram)
    np.testing.assert_array_equal(moment * SUM_UNIT, sums.moment)


def test_default_layout_is_diagonal_then_doubled_upper_triangle_then_moment() -> None:
    gram = np.array([[1, 10, 20], [10, 2, 30], [20, 30, 3]])
    sums = Sums(1, 3, gram, np.array([7, 8, 9]), 0)
    assert Layout(3).pack(sums).tolist() == [1, 2, 3, 20, 40, 60, 7, 8, 9]


def test_noise_in_an_off_diagonal_is_halved_or_averaged() -> None:
    nothing = Sums(0, 2, np.zeros((2, 2), np.int64), np.zeros(2, np.int64), 0)
    vector = Layout(2).pack(nothing)
    vector[2] += 2**40
    gram, _ = Layout(2).unpack(vector)
    np.testing.assert_array_equal(gram, [[0.0, 0.5], [0.5, 0.0]])
    vector = Layout(2, True).pack(nothing)
    vector[1] += 2**40
    vector[2] += 3 * 2**40
    gram, _ = Layout(2, True).unpack(vector)
    np.testing.assert_array_equal(gram, [[0.0, 2.0], [2.0, 0.0]])


@pytest.mark.parametrize("full_matrix", [False, True])
def test_wide_integers_pass_through(full_matrix: bool) -> None:
    n = 2**24
    sums = Sums(n, 2, np.array([[n * SUM_UNIT, 5], [5, n * SUM_UNIT]], object), np.array([-n * SUM_UNIT, 3], object), 0)
    vector = Layout(sums.p, full_matrix).pack(sums)
    assert vector.dtype == object
    assert vector[0] == n * SUM_UNIT
    vector[0] += 2**70
    gram, moment = Layout(2, full_matrix).unpack(vector)
    assert gram.dtype == moment.dtype == np.float64
    assert gram[0, 0] == n + 2.0**30
    assert gram[0, 1] == 5 / SUM_UNIT
    assert moment[0] == -n


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="features"):
        Layout(3).pack(sums_over(random_rows(np.random.default_rng(0), 5, 2)))
    with pytest.raises(ValueError, match="expected 5"):
        Layout(2).unpack(np.zeros(6, np.int64))


@st.composite
def row(draw: st.DrawFn, p: int) -> Row:
    left, entries = ONE, []
    for _ in range(p):
        size = draw(st.one_of(st.just(left), st.integers(0, left)))
        left -= size
        entries.append(draw(st.sampled_from([-1, 1])) * size)
    order = draw(st.permutations(entries))
    return order, draw(st.sampled_from([-ONE, ONE]) | st.integers(-ONE, ONE))


def vector_of(rows: list[Row], full_matrix: bool) -> list[int]:
    plain = Rows(np.array([x for x, _ in rows], np.int32), np.array([y for _, y in rows], np.int32))
    return [int(v) for v in Layout(sums_over(plain).p, full_matrix).pack(sums_over(plain))]


@given(st.data(), st.integers(1, 5), st.booleans())
@settings(max_examples=200, deadline=None)
def test_replacing_a_row_moves_the_vector_by_the_sensitivity_at_most(
    data: st.DataObject, p: int, full_matrix: bool
) -> None:
    old, new, other = (data.draw(row(p)) for _ in range(3))
    before, after = vector_of([old, other], full_matrix), vector_of([new, other], full_matrix)
    assert sum(abs(a - b) for a, b in zip(before, after, strict=True)) <= STATISTICS_SENSITIVITY


@pytest.mark.parametrize("full_matrix", [False, True])
def test_the_sensitivity_is_attained(full_matrix: bool) -> None:
    before = vector_of([([ONE, 0], ONE)], full_matrix)
    after = vector_of([([0, ONE], ONE)], full_matrix)
    assert sum(abs(a - b) for a, b in zip(before, after, strict=True)) == STATISTICS_SENSITIVITY
