"""With a schema, one row replaced by anything at all leaves every other row's integers alone, and nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from expost import Schema
from expost.table.encoding import Encoding
from expost.table.kinds import Boolean, Categorical, Dated, Numeric
from tests.helpers import read_columns, readable_cells, repetitions

from .hostile import any_cell, silence

COLUMNS = {
    "age": Numeric((0, 100)),
    "gain": Numeric((0, 9), transform="log1p", missing="indicator"),
    "job": Categorical(["a", "b", 3], other=True),
    "sex": Categorical(["F", "M"], missing="zero"),
    "vip": Boolean(),
    "bend": Numeric((0, 10), curve="auto"),
    "jump": Numeric((0, 10), steps=[2, 5], transform="sqrt"),
    "born": Dated(("1950-01-01", "2020-12-31"), knots=5),
    "rank": Categorical(["low", "middle", "high"], ordered=True),
}
SCHEMAS = {
    "classification": Schema("y", COLUMNS, classes=(0, "yes"), missing=("", "?", -999)),
    "regression": Schema("y", COLUMNS, target_bounds=(0, 1), missing=("", "?", -999)),
}
NAMES = [*COLUMNS, "y"]
# By the type that a container or a reader would make of all cells of a column.
GOOD = {
    "numbers": [
        [31.5, 2, 3, 1.0, 1, 3.0, 4, 1970, 1.0, 0],
        [47.0, 4, 3, 0.0, 0, 10.0, 5, 8.5, 0.0, 1],
        [-999.0, 9, 1, 0.5, 1, 0.5, 0, -1, 0.5, 1],
    ],
    "text": [
        ["31", "2", "a", "F", "yes", "3", "2", "1970-01-01", "low", "yes"],
        ["47", "?", "3.0", " M ", "no", "?", "4.5", " 1999-12-31T12:00 ", "high", "0"],
        ["x", "9", "c", "", "t", "7.25", "-", "yesterday", "LOW", "0.5"],
    ],
    "all sorts": [
        [31, None, "a", b"F", True, 2, "3", date(1960, 2, 29), "low", 0],
        ["47", 2.5, 3, None, "no", None, 2.0, datetime(2001, 1, 1, 6), "middle", "yes"],
        [np.nan, "9", 3.0, "M", 1, "9", True, pd.Timestamp("1980-05-05"), b"high", b"0"],
    ],
}
EXAMPLES = settings(max_examples=repetitions(10, 25), suppress_health_check=[HealthCheck.function_scoped_fixture])
pytestmark = pytest.mark.repeats
ROW = st.lists(any_cell, min_size=len(NAMES), max_size=len(NAMES))
task = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)


def object_column(cells: list[Any]) -> np.ndarray:
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        array[i] = cell
    return array


def by_column(rows: list[list[Any]]) -> dict[str, list[Any]]:
    return {name: [row[j] for row in rows] for j, name in enumerate(NAMES)}


def polars_column(name: str, cells: list[Any]) -> pl.Series:
    return pl.Series(name, [0.0, *cells], dtype=pl.Object).slice(1)  # Polars looks at a first cell


FRAMES: dict[str, Callable[[list[list[Any]]], Any]] = {
    "dict of lists": by_column,
    "dict of arrays": lambda rows: {name: object_column(cells) for name, cells in by_column(rows).items()},
    "pandas": lambda rows: pd.DataFrame(
        {name: pd.Series(object_column(cells), dtype=object) for name, cells in by_column(rows).items()}
    ),
    "polars": lambda rows: pl.DataFrame([polars_column(name, cells) for name, cells in by_column(rows).items()]),
}


def encoded(schema: Schema, frame: Any) -> tuple[np.ndarray, np.ndarray]:
    encoding = Encoding(schema)
    with silence():
        rows = encoding.encode(frame, on_invalid="clip")
        design = encoding.design(frame)
        readable_cells(encoding, frame)
    assert (design == rows.x / 2**20).all()
    return rows.x, rows.y


def assert_only_one_row_differs(one: Any, two: Any, i: int) -> None:
    for a, b in zip(one, two, strict=True):
        assert a.shape == b.shape
        assert np.array_equal(np.delete(a, i, axis=0), np.delete(b, i, axis=0))


@task
@pytest.mark.parametrize("container", FRAMES)
@EXAMPLES
@given(
    good=st.sampled_from(sorted(GOOD)),
    i=st.integers(0, 2),
    drawn=ROW,
)
def test_cells_of_any_kind(schema, container, good, i, drawn):
    rows = GOOD[good]
    spoilt = [*rows[:i], [cell.cell for cell in drawn], *rows[i + 1 :]]
    before = encoded(schema, FRAMES[container](rows))
    frame = FRAMES[container](spoilt)  # made outside: what pandas does with cells is not the entrance's
    assert_only_one_row_differs(before, encoded(schema, frame), i)


def nullable(cells: list[Any], kind: str) -> pd.Series:
    return pd.Series(cells, dtype=kind)


numbers, texts = st.floats() | st.none(), st.text(max_size=4).filter(str.isprintable) | st.none()
integers, booleans = st.integers(-(2**63), 2**63 - 1) | st.none(), st.booleans() | st.none()
times = integers  # microseconds
TYPED: dict[str, tuple[Any, Any, list[Any]]] = {
    "arrow float": (lambda c: pa.array(c, pa.float64()), numbers, [1.0, 3.0, -999.0]),
    "arrow int": (lambda c: pa.array(c, pa.int64()), integers, [1, 3, 2**53 + 1]),
    "arrow bool": (lambda c: pa.array(c, pa.bool_()), booleans, [True, False, True]),
    "arrow text": (lambda c: pa.array(c, pa.string()), texts, ["a", "3", "?"]),
    "arrow dictionary": (lambda c: pa.array(c, pa.string()).dictionary_encode(), texts, ["a", "3", "?"]),
    "pandas Int64": (lambda c: nullable(c, "Int64"), integers, [1, 3, 2**53 + 1]),
    "pandas boolean": (lambda c: nullable(c, "boolean"), booleans, [True, False, True]),
    "pandas string": (lambda c: nullable(c, "string"), texts, ["a", "3", "?"]),
    "pandas category": (lambda c: nullable(c, "category"), texts, ["a", "3", "?"]),
    "pandas str": (lambda c: pd.Series(c, dtype="str"), texts, ["a", "3", "?"]),
    "polars float": (lambda c: pl.Series(c, dtype=pl.Float64), numbers, [1.0, 3.0, -999.0]),
    "polars text": (lambda c: pl.Series(c, dtype=pl.String), texts, ["a", "3", "?"]),
    "polars categorical": (lambda c: pl.Series(c, dtype=pl.Categorical), texts, ["a", "3", "?"]),
}


@task
@pytest.mark.parametrize("container", TYPED)
@EXAMPLES
@given(i=st.integers(0, 2), data=st.data())
def test_cells_of_a_declared_type(schema, container, i, data):
    made, cells, good = TYPED[container]
    spoilt = {name: [*good[:i], data.draw(cells), *good[i + 1 :]] for name in NAMES}
    before = encoded(schema, dict.fromkeys(NAMES, made(good)))
    assert_only_one_row_differs(before, encoded(schema, {name: made(c) for name, c in spoilt.items()}), i)


LINES = [b"31,2,a,F,yes,yes", b"47, ?,3.0, M ,no,0", b"-999,9,c,,t,0.5"]
raw_lines = st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))
comma_lines = st.lists(st.text(alphabet='a3FMyes0.?-9",;\t ', max_size=6), max_size=9).map(
    lambda cells: ",".join(cells).encode()
)


@task
@EXAMPLES
@given(i=st.integers(0, 2), line=raw_lines | comma_lines, decimal=st.sampled_from([".", ","]))
def test_lines_of_a_csv_file(tmp_path, schema, i, line, decimal):
    found = []
    for lines in (LINES, [*LINES[:i], line, *LINES[i + 1 :]]):
        path = tmp_path / "t.csv"
        path.write_bytes(b"\n".join([",".join(NAMES).encode(), *lines, b""]))
        with silence():
            columns = read_columns(path, NAMES, decimal=decimal)
        found.append(encoded(schema, columns))
    assert_only_one_row_differs(*found, i)


@task
@EXAMPLES
@given(
    i=st.integers(0, 2),
    cells=st.tuples(numbers, integers, texts, texts, booleans, numbers, integers, times, texts, texts),
)
def test_rows_of_a_parquet_file(tmp_path, schema, i, cells):
    kinds = [pa.float64(), pa.int64(), pa.string(), pa.string(), pa.bool_()]
    kinds += [pa.float64(), pa.int64(), pa.timestamp("us"), pa.string(), pa.string()]
    good = [
        [31.0, 2, "a", "F", True, 3.0, 1, 0, "low", "yes"],
        [47.0, 4, "3", "M", False, 9.5, 6, 10**15, "high", "0"],
        [5.0, 9, "c", None, True, None, 2, None, "", "0.5"],
    ]
    found = []
    for rows in (good, [*good[:i], list(cells), *good[i + 1 :]]):
        path = tmp_path / "t.parquet"
        columns = [pa.array([row[j] for row in rows], kind) for j, kind in enumerate(kinds)]
        pa.parquet.write_table(pa.table(columns, names=NAMES), path)
        found.append(encoded(schema, path))
    assert_only_one_row_differs(*found, i)


@EXAMPLES
@given(
    i=st.integers(0, 2),
    drawn=ROW,
    good=st.sampled_from(sorted(GOOD)),
)
def test_counts_move_by_at_most_one_each(i, drawn, good):
    rows = GOOD[good]
    spoilt = [*rows[:i], [cell.cell for cell in drawn], *rows[i + 1 :]]
    for schema in SCHEMAS.values():
        one, two = (readable_cells(Encoding(schema), by_column(table)) for table in (rows, spoilt))
        assert list(one) == list(two)
        moved = {name: abs(one[name] - two[name]) for name in one}
        assert max(moved.values()) <= 1
        assert sum(moved.values()) <= len(COLUMNS) + (2 if schema.task == "classification" else 1)
