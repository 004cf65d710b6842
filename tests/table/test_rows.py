import copy
import pickle

import numpy as np
import pytest

from expost.table.rows import ONE, Rows


def rows(x, y):
    return Rows(np.array(x, dtype=np.int32), np.array(y, dtype=np.int32))


def test_rows_within_bounds_are_accepted():
    made = rows([[ONE, 0], [-ONE // 2, ONE // 2], [0, 0]], [ONE, -ONE, 0])
    assert (made.n, made.p) == (3, 2)


@pytest.mark.parametrize("x", [[[ONE, 1]], [[-ONE - 1, 0]], [[-(2**31), 0]], [[2**30, 2**30]]])
def test_one_unit_too_many_is_refused(x):
    with pytest.raises(ValueError, match=r"1 row\(s\) have an ℓ₁ norm above 1"):
        rows(x, [0])


@pytest.mark.parametrize("y", [ONE + 1, -ONE - 1, -(2**31)])
def test_targets_beyond_one_are_refused(y):
    with pytest.raises(ValueError, match=r"1 target\(s\) lie outside"):
        rows([[0]], [y])


def test_every_slice_is_checked():
    x = np.zeros((70_000, 1), dtype=np.int32)
    x[-1] = ONE + 1
    with pytest.raises(ValueError, match=r"1 row\(s\)"):
        Rows(x, np.zeros(70_000, dtype=np.int32))


def test_shape_and_type():
    with pytest.raises(ValueError, match="x must be an int32 array"):
        Rows(np.zeros((1, 1)), np.zeros(1, dtype=np.int32))
    with pytest.raises(ValueError, match="y must be an int32 array"):
        Rows(np.zeros((1, 1), dtype=np.int32), np.zeros((1, 1), dtype=np.int32))
    with pytest.raises(ValueError, match="x has 2 rows and y has 1"):
        rows([[0], [0]], [0])


def test_rows_show_no_value():
    made = rows([[123456]], [654321])
    for text in (repr(made), str(made), f"{made}"):
        assert text == "Rows(n=1, p=1)"


def test_rows_cannot_leave_the_process():
    made = rows([[1]], [1])
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="rows are private"):
            pickle.dumps(made, protocol=protocol)
    with pytest.raises(TypeError, match="rows are private"):
        copy.deepcopy(made)


def test_checked_values_cannot_be_changed():
    made = rows([[1]], [1])
    with pytest.raises(ValueError, match="read-only"):
        made.x[0, 0] = 2 * ONE
    with pytest.raises(AttributeError):
        made.y = made.y
