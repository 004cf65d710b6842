"""Which containers come in, what their structure says, and how wide a list is."""

from __future__ import annotations

import array
import collections
import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from expost.exceptions import InvalidRows
from expost.table.bounds import Bounds, stated_width
from expost.table.bounds_encoding import Preparation
from expost.table.entrance import open_column, open_rows

ALL = slice(None)
VALUES = [[1.0, 0.0], [0.5, np.nan]]
Pair = collections.namedtuple("Pair", "a b")


def pandas_frame(a, a_type, b, b_type):
    return pd.DataFrame({"a": pd.Series(a, dtype=a_type), "b": pd.Series(b, dtype=b_type)})


def arrow_table(a, a_type, b, b_type):
    return pa.table({"a": pa.array(a, a_type), "b": pa.array(b, b_type)})


def polars_frame(a, a_type, b, b_type):
    return pl.DataFrame({"a": pl.Series(a, dtype=a_type), "b": pl.Series(b, dtype=b_type)})


TABLES = {
    "lists": [[True, 0], [0.5, None]],
    "tuples": ((1, "0"), ("0.5", "x")),
    "named tuples": [Pair(1, 0), Pair(0.5, None)],
    "arrays in a list": [np.array([1, 0]), np.array([0.5, np.nan])],
    "deque": collections.deque([[1, 0], [0.5, None]]),
    "float64": np.array(VALUES),
    "float32": np.array(VALUES, dtype=np.float32),
    "long double": np.array(VALUES, dtype=np.longdouble),
    "objects": np.array([[1, b"0"], ["0.5", 2j]], dtype=object),
    "text": np.array([["1", "0"], ["0.5", "x"]]),
    "bytes": np.array([[b"1", b"0"], [b"0.5", b"x"]]),
    "variable text": np.array([["1", "0"], ["0.5", "x"]], dtype=np.dtypes.StringDType()),
    "masked": np.ma.MaskedArray([[1.0, 0.0], [0.5, 7.0]], mask=[[0, 0], [0, 1]]),
    "masked objects": np.ma.MaskedArray(np.array([[1, 0], [0.5, "7"]], dtype=object), mask=[[0, 0], [0, 1]]),
    "pandas": pd.DataFrame(VALUES, columns=["a", "b"]),
    "pandas objects": pandas_frame([True, "0.5"], object, [0, {}], object),
    "pandas nullable": pandas_frame([1, 0.5], "Float64", [False, None], "boolean"),
    "pandas arrow": pandas_frame(["1", "0.5"], "str", [0, None], "int8[pyarrow]"),
    "pandas sparse": pd.DataFrame({"a": [1.0, 0.5], "b": [0.0, np.nan]}).astype(pd.SparseDtype(float)),
    "pandas category": pandas_frame([1, 0.5], "category", ["0", None], "category"),
    "pandas of one name": pd.DataFrame(VALUES, columns=["a", "a"]),
    "arrow": arrow_table([1, 0.5], pa.float32(), [False, None], pa.bool_()),
    "arrow batch": pa.record_batch({"a": ["1", "0.5"], "b": pa.array(["0", "x"]).dictionary_encode()}),
    "arrow decimals": arrow_table([Decimal(1), Decimal("0.5")], pa.decimal128(5, 2), [0, None], pa.uint8()),
    "arrow half": arrow_table(np.array([1, 0.5], np.float16), pa.float16(), [np.float16(0), None], pa.float16()),
    "arrow views": arrow_table(["1", "0.5"], pa.string_view(), [b"0", None], pa.binary_view()),
    "polars": polars_frame([1, 0.5], pl.Float32, [0, None], pl.UInt8),
    "polars text": polars_frame(["1", "0.5"], pl.String, ["0", "x"], pl.Categorical),
    "polars objects": polars_frame([1, "0.5"], pl.Object, [0, []], pl.Object),
    "polars wide": polars_frame([1, 0.5], pl.Float64, [0, None], pl.Int128),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("on_invalid", ["error", "clip"])
def test_tables_of_every_kind(table, on_invalid):
    rows = open_rows(table, on_invalid=on_invalid)
    assert (rows.n, rows.width, len(rows)) == (2, 2, 2)
    np.testing.assert_array_equal(rows.floats(ALL), VALUES)
    np.testing.assert_array_equal(rows.floats(slice(1, 2)), VALUES[1:])
    assert "0.5" not in repr(rows)


COLUMNS = {
    "list": [True, "0.5", None],
    "array": np.array([1, 0.5, np.nan]),
    "buffer": array.array("d", [1, 0.5, np.nan]),
    "pandas": pd.Series([1, 0.5, None], dtype="Float64"),
    "index": pd.Index(["1", "0.5", "x"]),
    "extension array": pd.array([1, 0.5, None], dtype="Float64"),
    "categorical": pd.Categorical([1, 0.5, None]),
    "arrow": pa.array([1, 0.5, None]),
    "arrow chunks": pa.chunked_array([["1"], ["0.5", "x"]]),
    "arrow null": pa.chunked_array([pa.array([1, 0.5, None])]),
    "polars": pl.Series([1.0, 0.5, None]),
    "polars decimals": pl.Series(["1", "0.5", None]).cast(pl.Decimal(9, 2)),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("on_invalid", ["error", "clip"])
def test_columns_of_every_kind(column, on_invalid):
    opened, dimensions = open_column(column, on_invalid=on_invalid)
    assert (len(opened), dimensions) == (3, 1)
    np.testing.assert_array_equal(opened.floats(ALL), [1, 0.5, np.nan])
    assert "0.5" not in repr(opened)


@pytest.mark.parametrize("values", [np.ones((3, 1)), pd.DataFrame({"y": [1.0, 1, 1]}), pa.table({"y": [1, 1, 1]})])
def test_tables_of_one_column_are_columns(values):
    opened, dimensions = open_column(values)
    assert dimensions == 2
    assert opened.floats(ALL).tolist() == [1, 1, 1]


def test_lists_of_lists_of_one_cell_are_columns():
    assert open_column([[1.0], (2,)])[1] == 2
    opened, dimensions = open_column([[1.0], [2.0, 3.0], 4.0, []], on_invalid="clip")
    assert dimensions == 1  # one row more or less of this kind must not decide about all
    np.testing.assert_array_equal(opened.floats(ALL), [1, np.nan, 4, np.nan])


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "Expected 2D array, got 1D array.*Reshape your data"),
        ([], ValueError, "Expected 2D array"),
        (np.ones(3), ValueError, "Expected 2D array, got 1D array"),
        (np.array(1.0), ValueError, "got scalar array"),
        (np.ones((1, 1, 1)), ValueError, "Found array with dim 3"),
        (np.ones((1, 1)) * 1j, ValueError, "Complex data not supported.*complex128"),
        (np.zeros((1, 1), dtype="M8[s]"), ValueError, "must hold real numbers.*datetime64"),
        (np.zeros((1, 1), dtype=[("a", float)]), ValueError, r"must hold real numbers.*\('a'"),
        (pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}), ValueError, "column 'when' must hold real numbers"),
        (pd.DataFrame({"c": [1j]}), ValueError, "Complex data not supported: column 'c'"),
        (pa.table({"when": [datetime.date(2020, 1, 1)]}), ValueError, r"column 'when'.*date32"),
        (pa.table({"rows": [[1.0, 2.0]]}), ValueError, r"column 'rows'.*list"),
        (pl.DataFrame({"when": [datetime.date(2020, 1, 1)]}), ValueError, "column 'when'"),
        (sp.csr_array(np.ones((1, 1))), TypeError, "dense data is required"),
        ("text", ValueError, "not str"),
        ({"a": [1.0]}, ValueError, "not dict"),
        (None, ValueError, "not NoneType"),
    ],
)
@pytest.mark.parametrize("on_invalid", ["error", "clip"])
def test_structure_is_public_and_complained_about(values, error, message, on_invalid):
    with pytest.raises(error, match=message):
        open_rows(values, on_invalid=on_invalid)


def test_rows_of_different_lengths():
    rows = [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], "no row", [7.0, 8.0], [9.0, 10.0], [11.0, 12.0], None, (1.0, 1.0)]
    with pytest.raises(ValueError, match="rows differ in length"):
        open_rows(rows)
    opened = open_rows(rows, on_invalid="clip")
    assert opened.width == 2
    assert opened.counted
    nan = np.nan
    expected = [[1, 2], [3, nan], [4, 5], [nan, nan], [7, 8], [9, 10], [11, 12], [nan, nan], [1, 1]]
    np.testing.assert_array_equal(opened.floats(ALL), expected)
    stated = open_rows(rows, on_invalid="clip", width=3)
    assert stated.width == 3
    assert not stated.counted
    np.testing.assert_array_equal(stated.floats(ALL)[:3], [[1, 2, nan], [3, nan, nan], [4, 5, 6]])
    with pytest.raises(ValueError, match="state the number of columns by bounds"):
        open_rows([[1.0], [1.0, 2.0]], on_invalid="clip")


@pytest.mark.parametrize(
    ("bounds", "width"),
    [
        (None, None),
        (2.0, None),
        ((0, 1), None),
        ([0, [1, 2, 3]], 3),
        (([0, 0], [1, 1]), 2),
        (np.array([[0, 0], [1, 1]]), 2),
        ({0: (0, 1), 1: (0, 1)}, 2),
        (Bounds((0.0,), (1.0,)), 1),
        ("wide", None),
        ([(0, 1), (0, 1), (0, 1)], None),
    ],
)
def test_bounds_state_the_number_of_columns(bounds, width):
    assert stated_width(bounds) == width


def test_complaints_tell_missing_cells_from_those_that_are_no_numbers():
    recipe = Preparation(None, 1.0, (-1.0, 1.0), 0.0, 2)
    X = pa.table({"a": pa.array([31415.5, None, 1.0]), "b": ["Bern", "nan", "0.5"]})
    with pytest.raises(InvalidRows, match=r"2 of 3 rows") as caught:
        recipe.prepare_regression(X, [1.0, 1.0, 1.0])
    message = str(caught.value)
    assert "NaN or infinite in column(s) a (1), b (1); cells that are not numbers in column(s) b (1)" in message
    assert "Bern" not in message
    assert "31415" not in message
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)


def test_text_that_is_no_utf8_is_missing_by_itself():
    values = pa.py_buffer(b"0.5\xff\xff1")
    broken = pa.StringArray.from_buffers(3, pa.py_buffer(np.array([0, 3, 5, 6], np.int32)), values)
    np.testing.assert_array_equal(open_column(broken)[0].floats(ALL), [0.5, np.nan, 1])
    assert open_column(broken)[0].signs(ALL, ("0.5", "1"))[1].tolist() == [False, True, False]


def test_integers_as_labels_are_not_rounded():
    near, far = 2**53 + 1, 2**53
    for labels in (
        np.array([near, far]),
        pd.Series([near, far, None], dtype="Int64")[:2],
        pd.Series(pd.Categorical([near, far, None])),
        pa.array([near, far, None]),
        [near, far, None],
    ):
        assert open_column(labels)[0].signs(ALL, (0, near))[0].tolist()[:2] == [True, False]
        assert open_column(labels)[0].signs(ALL, (0, float(far)))[0].tolist()[:2] == [False, True]
    small = np.array([44, 0], dtype=np.uint8)
    for stated in (300, -212, 10**30, 0.5):
        assert not open_column(small)[0].signs(ALL, (0, stated))[0].any()


def test_the_callers_arrays_stay_as_they_are():
    masked = np.ma.MaskedArray(np.array([[1.0, 2.0]]), mask=[[False, True]])
    objects = np.ma.MaskedArray(np.array([[1.0, "x"]], dtype=object), mask=[[False, True]])
    for values in (masked, objects):
        open_rows(values).floats(ALL)
        assert values.data[0, 1] in (2.0, "x")
