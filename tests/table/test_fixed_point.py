import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from expost.table.rows import FRACTION_BITS, MAX_COLUMNS, ONE, clip_l1, to_fixed_point

shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
finite_rows = hnp.arrays(np.float64, shapes, elements=st.floats(allow_nan=False, allow_infinity=False))
unit_rows = hnp.arrays(np.int64, shapes, elements=st.integers(-(2**42), 2**42))
small_unit_rows = hnp.arrays(np.int64, shapes, elements=st.integers(-ONE, ONE))


def test_unit():
    assert FRACTION_BITS == 20
    assert ONE == 2**20


@given(finite_rows)
def test_truncation_is_exact_and_toward_zero(x):
    units = to_fixed_point(x)
    for row, got in zip(x, units, strict=True):
        exact = [Fraction(v) for v in row.tolist()]
        largest = max(abs(v) for v in exact)
        scale = Fraction(1)
        if largest > 2**22:
            while largest * scale >= 2**22:
                scale /= 2
        # int() of a Fraction truncates toward zero
        assert got.tolist() == [int(v * scale * ONE) for v in exact]
        assert all(abs(v) <= 2**42 for v in got.tolist())


@given(finite_rows)
def test_long_rows_stay_long(x):
    # the power of two must never turn a row that has to be clipped into one that has not
    units = np.abs(to_fixed_point(x)).sum(axis=1)
    assert (units[np.abs(x).max(axis=1) > 2.0**22] >= 2**41).all()


@given(finite_rows, st.randoms())
def test_fixed_point_of_a_row_depends_on_that_row_only(x, random):
    order = list(range(len(x)))
    random.shuffle(order)
    one_by_one = np.concatenate([clip_l1(to_fixed_point(x[[i]])) for i in order])
    assert np.array_equal(one_by_one, clip_l1(to_fixed_point(x))[order])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_only_finite_values(bad):
    with pytest.raises(ValueError, match="finite"):
        to_fixed_point(np.array([[0.0, bad]]))


def test_one_dimension_is_ambiguous():
    with pytest.raises(ValueError, match="two dimensions"):
        to_fixed_point(np.zeros(3))


@given(st.one_of(unit_rows, small_unit_rows), st.integers(0, ONE))
def test_clip_bounds_the_norm_exactly(x, bound):
    clipped = clip_l1(x, bound)
    for before, after in zip(x.tolist(), clipped.tolist(), strict=True):
        norm = sum(map(abs, before))
        assert sum(map(abs, after)) <= bound
        if norm <= bound:
            assert after == before
        else:
            assert after == [int(math.copysign(abs(v) * bound // norm, v)) for v in before]


def test_clip_at_the_edge_of_64_bits():
    x = np.full((1, 3), -(2**42))
    assert clip_l1(x).tolist() == [[-(ONE // 3)] * 3]


def test_clip_does_not_touch_its_input():
    x = np.array([[2 * ONE, 0], [1, 1]])
    clip_l1(x)[1, 1] = 7
    assert x.tolist() == [[2 * ONE, 0], [1, 1]]


def test_clip_refuses_what_could_overflow():
    assert MAX_COLUMNS == 2**21 - 1
    with pytest.raises(ValueError, match="columns are too many"):
        clip_l1(np.zeros((1, 2**21), dtype=np.int64))
    for value in (2**42 + 1, -(2**42) - 1, -(2**63)):
        with pytest.raises(ValueError, match="beyond"):
            clip_l1(np.array([[value]]))
    for bound in (-1, ONE + 1):
        with pytest.raises(ValueError, match="bound must lie"):
            clip_l1(np.zeros((1, 1), dtype=np.int64), bound)
    with pytest.raises(ValueError, match="int64"):
        clip_l1(np.zeros((1, 1)))
