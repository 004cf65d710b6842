"""Rows in the Euclidean ball, in integers: the bound holds exactly, and nothing else changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from expost.table.rows import ONE, Rows, _ceil_root, clip_l2

UNITS = st.integers(-(1 << 42), 1 << 42)


def norms(x):
    return [sum(int(v) ** 2 for v in row) for row in x]


@settings(max_examples=200, deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=UNITS), st.integers(0, ONE))
def test_no_row_is_longer_than_the_bound(x, bound):
    assert all(square <= bound * bound for square in norms(clip_l2(x, bound)))


@given(arrays(np.int64, (3, 4), elements=st.integers(-ONE // 2, ONE // 2)))
def test_rows_within_the_ball_stay_as_they_are(x):
    assert np.array_equal(clip_l2(x), x)


@settings(deadline=None)
@given(arrays(np.int64, (1, 5), elements=UNITS))
def test_the_direction_stays(x):
    long = norms(x)[0] > ONE * ONE
    clipped = clip_l2(x).astype(float)[0]
    if long:
        wanted = x[0] / math.sqrt(norms(x)[0]) * ONE
        assert np.abs(clipped - wanted).max() <= 4  # truncated twice, and the root rounded up


@given(st.integers(1, 2**62))
def test_roots_are_exact(square):
    root = int(_ceil_root(np.array([square]))[0])
    assert (root - 1) ** 2 < square <= root**2


def test_a_root_rounded_down_would_leave_rows_outside():
    """The broken variant: ⌊norm⌋ instead of ⌈norm⌉."""
    x = np.array([[3 * ONE // 4, 3 * ONE // 4, 12345]])
    square = norms(x)[0]
    broken = np.abs(x) * ONE // math.isqrt(square)
    exact = np.abs(x) * ONE // (math.isqrt(square) + 1)
    assert norms(exact)[0] <= ONE * ONE
    assert (
        any(norms(np.array([[v, v, 1]]) * ONE // math.isqrt(2 * v * v + 1))[0] > ONE * ONE for v in range(2, 200))
        or norms(broken)[0] > ONE * ONE
    )


class TestRows:
    def test_the_euclidean_ball_is_larger(self):
        x = np.full((1, 4), ONE // 2, dtype=np.int32)
        y = np.zeros(1, dtype=np.int32)
        assert Rows(x, y, "l2").norm == "l2"
        with pytest.raises(ValueError, match="ℓ₁ norm above 1"):
            Rows(x, y)

    @pytest.mark.parametrize("wide", [ONE // 2 + 1, -(2**31)])
    def test_longer_rows_are_refused(self, wide):
        x = np.full((1, 4), ONE // 2, dtype=np.int32)
        x[0, 0] = wide
        with pytest.raises(ValueError, match="ℓ₂ norm above 1; clip them with clip_l2"):
            Rows(x, np.zeros(1, dtype=np.int32), "l2")
