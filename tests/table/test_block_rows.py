"""Rows in blocks: no row is too long, whatever is in it, and a broken length would be caught."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation
from expost.table.rows import ONE, Rows

SHAPES = ("box", "l1", "l1 without bounds")


def recipe(shape, columns=3, intercept=1.0):
    bounds = None if shape == "l1 without bounds" else Bounds((-1.0,) * columns, (3.0,) * columns)
    return Preparation(bounds, 1.0 if shape == "box" else 0.7, (-1.0, 3.0), intercept, columns, shape[:3].strip())


@given(
    shape=st.sampled_from(SHAPES),
    intercept=st.sampled_from([0.0, 1.0]),
    cells=hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats()),
)
def test_no_row_can_raise_and_every_row_is_within_its_blocks(shape, intercept, cells):
    made = recipe(shape, cells.shape[1], intercept)
    with np.errstate(all="raise"):
        rows = made.prepare_regression(cells, np.zeros(len(cells)), on_invalid="clip")  # Rows checks ‖x‖ ≤ 1
    assert rows.norm == made.norm == ("l1" if shape != "box" and not intercept else "l2")
    place = 0
    for size, norm in made.blocks:
        part = np.abs(rows.x[:, place : place + size].astype(np.int64))
        assert ((part.max(axis=1) if norm == "box" else part.sum(axis=1)) <= made.unit).all()
        place += size
    assert place == rows.p == made.n_parameters
    assert (rows.x[:, cells.shape[1] :] == made.unit).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_corners_are_as_long_as_rows_may_be(shape):
    made = recipe(shape)
    corner = [[3.0, 3.0, 3.0]] if shape == "box" else [[3.0, 1.0, 1.0]] if shape == "l1" else [[0.7, 0.0, 0.0]]
    x = made.prepare_regression(corner, [0.0]).x.astype(np.int64)
    assert 0.99999 * ONE**2 < (x**2).sum() <= ONE**2
    with pytest.raises(ValueError, match="norm above 1"):  # a unit that is a little too long is caught
        Rows((x + np.sign(x) * 2).astype(np.int32), np.zeros(1, dtype=np.int32), norm="l2")


def test_predictions_in_the_callers_units():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (20, 3))
    for shape in SHAPES:
        made = recipe(shape)
        theta = rng.normal(size=4)
        coef, intercept = made.to_caller_units(theta)
        rows = made.prepare_regression(X + (0.0 if shape == "l1 without bounds" else 1.0), np.zeros(20))
        caller = X + (0.0 if shape == "l1 without bounds" else 1.0)
        scaled = rows.x / ONE @ theta
        assert caller @ coef + intercept == pytest.approx(1.0 + 2.0 * scaled, abs=1e-4)


def test_a_box_needs_bounds():
    with pytest.raises(ValueError, match="a box is made of bounds"):
        Preparation(None, 1.0, None, 1.0, 2, "box")
    assert recipe("box").describe()["shape"] == "box"
