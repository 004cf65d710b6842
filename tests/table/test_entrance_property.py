"""One row replaced by anything at all: every other row is prepared as before, and nothing is raised, warned or printed.

Nor does a release say anything else because of it, but for the numbers that have noise on them. This is what
"neighbours: one row replaced" rests on before any mathematics begins. The tests use only what a caller can reach:
``fit``, ``transform`` and the command line.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import expost.estimators.base as base
from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, PublicBoundsScaler, Release
from expost.cli import main
from tests.helpers import repetitions

from .hostile import Named, any_cell, nested_cells, shows, silence

N = 5
FIXED: dict[str, Any] = {"method": "fixed", "max_epsilon": 1.0, "random_state": 0}
# The same file again and again costs nothing here; nothing of the fixtures is changed by an example.
EXAMPLES = settings(max_examples=repetitions(10, 25), suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(EXAMPLES, max_examples=repetitions(6, 12))
pytestmark = pytest.mark.repeats


class Outcome(NamedTuple):
    """The rows that reach the search, and what the release says beside the numbers that have noise on them."""

    arrays: tuple[np.ndarray, ...]
    said: dict[str, Any] | None = None


@contextlib.contextmanager
def prepared() -> Iterator[list[Any]]:
    """Collect the rows that reach the search, which goes on as ever."""
    seen: list[Any] = []
    carry_out = base.carry_out

    def watched(request: Any, plan: Any, rows: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(rows)
        return carry_out(request, plan, rows, *arguments, **options)

    with mock.patch.object(base, "carry_out", watched):
        yield seen


def outcome(rows: Any, release: Release) -> Outcome:
    said = release.to_dict()
    del said["id"], said["hypothesis"], said["parameters"]["coef"], said["parameters"]["intercept"]
    return Outcome((rows.x, rows.y), said)


def fitted(model: Any, X: Any, y: Any) -> Outcome:
    with prepared() as seen, silence():
        model.fit(X, y)
    (rows,) = seen
    return outcome(rows, model.release_)


def assert_only_one_row_differs(one: Outcome, two: Outcome, i: int) -> None:
    for a, b in zip(one.arrays, two.arrays, strict=True):
        assert a.shape == b.shape
        assert np.array_equal(np.delete(a, i, axis=0), np.delete(b, i, axis=0), equal_nan=a.dtype.kind == "f")
    assert one.said == two.said


# Good cells of two columns, by the type that NumPy, pandas or a reader would make of all of them together.
GOOD: dict[str, list[list[Any]]] = {
    "booleans": [[True, False], [False, True], [True, True], [False, False], [True, False]],
    "integers": [[1, 0], [0, 1], [1, 1], [0, 0], [2**60 + 1, -1]],
    "floats": [[0.31415, 0.5], [0.27182, 0.25], [0.9, -0.1], [0.5, 0.125], [0.75, 2.0]],
    "float32": [[np.float32(0.1), np.float32(0.2)] for _ in range(N)],
    "text": [["0.31415", "0.5"], ["0.27182", "0.25"], ["0.9", "-0.1"], ["0.5", "1e-3"], ["0.75", "2"]],
    "bytes": [[b"0.31415", b"0.5"], [b"0.27182", b"0.25"], [b"0.9", b"-0.1"], [b"0.5", b"1e-3"], [b"0.75", b"2"]],
    "all sorts": [[True, "0.5"], [0.25, None], [1, np.float32(0.1)], [b"0.5", 0.125], [np.int8(1), "x"]],
}
LABELS: dict[str, tuple[Any, Any]] = {
    "booleans": (False, True),
    "integers": (0, 1),
    "floats": (-0.5, 0.5),
    "text": ("no", "yes"),
    "text with zeros": ("no\0", "yes"),
    "bytes": (b"no", b"yes"),
}


def objects(rows: list[list[Any]]) -> np.ndarray:
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i, j] = cell
    return array


def object_column(cells: list[Any]) -> np.ndarray:
    return objects([[cell] for cell in cells])[:, 0]


def polars_column(cells: list[Any], name: str = "y") -> pl.Series:
    # While a series is made, Polars looks at its first cell.
    return pl.Series(name, [0.0, *cells], dtype=pl.Object).slice(1)


# Containers that take any cell at all, and say nothing about its type.
TABLES: dict[str, Callable[[list[list[Any]]], Any]] = {
    "lists": lambda rows: [list(row) for row in rows],
    "tuples": lambda rows: tuple(tuple(row) for row in rows),
    "list of arrays": lambda rows: [object_column(row) for row in rows],
    "array": objects,
    "masked array": lambda rows: np.ma.MaskedArray(objects(rows), mask=False),
    "pandas": lambda rows: pd.DataFrame(objects(rows), columns=["a", "b"], dtype=object),
    "polars": lambda rows: pl.DataFrame([polars_column([row[j] for row in rows], "ab"[j]) for j in (0, 1)]),
}
COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": object_column,
    "pandas": lambda cells: pd.Series(object_column(cells), dtype=object),
    "polars": polars_column,
}
kinds = st.sampled_from(sorted(GOOD)).map(GOOD.__getitem__)
MODES = pytest.mark.parametrize("on_invalid", ["clip", "error"])


def ridge(**changes: Any) -> AccuracyFirstRidge:
    return AccuracyFirstRidge(**{**FIXED, "bounds": (0, 1), "target_bounds": (0, 1), "on_invalid": "clip", **changes})


def logistic(classes: tuple[Any, Any], **changes: Any) -> AccuracyFirstLogisticRegression:
    options = {**FIXED, "bounds": (0, 1), "classes": classes, "on_invalid": "clip", **changes}
    return AccuracyFirstLogisticRegression(**options)


def replaced(values: list[Any], i: int, new: Any) -> list[Any]:
    return [*values[:i], new, *values[i + 1 :]]


@pytest.mark.parametrize("container", TABLES)
@EXAMPLES
@given(good=kinds, i=st.integers(0, N - 1), cells=st.tuples(any_cell, any_cell), target=any_cell)
def test_cells_of_any_kind(good, container, i, cells, target):
    table, column = TABLES[container], COLUMNS["pandas" if container == "pandas" else "list"]
    y = [row[0] for row in good]
    spoilt, new_y = replaced(good, i, [drawn.cell for drawn in cells]), replaced(y, i, target.cell)
    before = fitted(ridge(), table(good), column(y))
    X, wanted = table(spoilt), column(new_y)  # made outside: what pandas does with cells is not the entrance's
    assert_only_one_row_differs(before, fitted(ridge(), X, wanted), i)


@pytest.mark.parametrize("bounds", [(0, 1), ([0, 0], [1, 1])], ids=["not stated", "stated"])
@EXAMPLES
@given(good=kinds, i=st.integers(0, N - 1), row=any_cell, target=any_cell)
def test_rows_of_any_kind_in_a_list(good, bounds, i, row, target):
    """What stands in a list instead of a row may be no row, or a longer or shorter one."""
    y = [row[0] for row in good]
    model = ridge(bounds=bounds)
    before = fitted(model, good, y)
    spoilt, new_y = replaced(good, i, row.cell), replaced(y, i, target.cell)
    assert_only_one_row_differs(before, fitted(model, spoilt, new_y), i)


@pytest.mark.parametrize("classes", LABELS.values(), ids=LABELS)
@EXAMPLES
@given(container=st.sampled_from(sorted(COLUMNS)), i=st.integers(0, N - 1), target=any_cell)
def test_labels_of_any_kind(classes, container, i, target):
    X = np.linspace(0, 1, 2 * N).reshape(N, 2)
    column = COLUMNS[container]
    labels = [classes[k % 2] for k in range(N)]
    before = fitted(logistic(classes), X, column(labels))
    assert sorted(set(before.arrays[1].tolist())) == [-(2**20), 2**20]
    wanted = column(replaced(labels, i, target.cell))
    assert_only_one_row_differs(before, fitted(logistic(classes), X, wanted), i)


def nullable(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda cells: pd.Series(cells, dtype=kind)


NEAR = [0, 2**60, 0, 2**60, 2**60 + 1]  # equal as floats, which a missing cell must not make of them

# Containers that declare a type, and cells that it takes.
TYPED: dict[str, tuple[Callable[[list[Any]], Any], Any, list[Any]]] = {
    "numpy float64": (np.array, st.floats(), [0.1, 0.2, 0.3, 0.4, 0.5]),
    "numpy bool": (np.array, st.booleans(), [True, False, True, False, True]),
    "numpy int64": (lambda c: np.array(c, dtype=np.int64), st.integers(-(2**63), 2**63 - 1), NEAR),
    "numpy text": (lambda c: np.array(c, dtype="U9"), st.text(max_size=9), ["0.1", "0.2", "0.3", "0.4", "0.5"]),
    "numpy bytes": (lambda c: np.array(c, dtype="S9"), st.binary(max_size=9), [b"0.1", b"0.2", b"0.3", b"0.4", b"0.5"]),
    "pandas Int64": (nullable("Int64"), st.none() | st.integers(-(2**63), 2**63 - 1), NEAR),
    "pandas boolean": (nullable("boolean"), st.none() | st.booleans(), [True, False, True, False, True]),
    "pandas string": (nullable(pd.StringDtype("python")), st.none() | st.text(), ["0.1", "0.2", "0.3", "0.4", "0.5"]),
    "pandas category": (
        nullable(pd.CategoricalDtype([*sorted(set(NEAR)), 7])),
        st.sampled_from([None, 7]),
        NEAR,
    ),
    "pandas arrow": (nullable(pd.ArrowDtype(pa.int64())), st.none() | st.integers(0, 9), NEAR),
    "arrow int64": (lambda c: pa.array(c, pa.int64()), st.none() | st.integers(0, 9), NEAR),
    "arrow bool": (lambda c: pa.chunked_array([c], pa.bool_()), st.none() | st.booleans(), [True, False] * 2 + [True]),
    "arrow dictionary": (
        lambda c: pa.array(c).dictionary_encode(),
        st.none() | st.sampled_from(["0.1", "x"]),
        ["0.1", "0.2", "0.3", "0.4", "0.5"],
    ),
    "arrow binary": (lambda c: pa.array(c, pa.binary()), st.none() | st.binary(), [b"0.1", b"0.2", b"0.3", b"1", b"2"]),
    "polars Int64": (lambda c: pl.Series(c, dtype=pl.Int64), st.none() | st.integers(0, 9), NEAR),
    "polars Boolean": (lambda c: pl.Series(c, dtype=pl.Boolean), st.none() | st.booleans(), [True, False] * 2 + [True]),
    "polars String": (lambda c: pl.Series(c, dtype=pl.String), st.none() | st.text("01x."), list("01234")),
}


def as_frame(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return np.column_stack([column, column])
    if isinstance(column, pd.Series):
        return pd.DataFrame({"a": column, "b": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": column, "b": column})
    return pa.table({"a": column, "b": column})


@pytest.mark.parametrize(("make", "cells", "good"), TYPED.values(), ids=TYPED)
@FEW
@given(data=st.data(), i=st.integers(0, N - 1))
def test_containers_with_a_type(make, cells, good, data, i):
    new = data.draw(cells)
    one, two = make(good), make(replaced(good, i, new))
    before = fitted(ridge(), as_frame(one), one)
    assert_only_one_row_differs(before, fitted(ridge(), as_frame(two), two), i)
    model = logistic((good[1], good[4]))
    before = fitted(model, as_frame(one), one)
    assert_only_one_row_differs(before, fitted(model, as_frame(two), two), i)


@MODES
@pytest.mark.parametrize("container", [*TABLES, "scaler"])
@FEW
@given(i=st.integers(0, N - 1), cells=st.tuples(any_cell, any_cell), target=any_cell)
def test_no_message_quotes_a_cell(container, on_invalid, i, cells, target):
    """With "error" a row may raise, but what is said shows no cell, of its own row or of others."""
    good = GOOD["floats"]
    X = TABLES.get(container, list)(replaced(good, i, [drawn.cell for drawn in cells]))
    y = replaced([row[0] for row in good], i, target.cell)
    model = PublicBoundsScaler(bounds=(0, 1)) if container == "scaler" else ridge(on_invalid=on_invalid)
    shown = [repr(cell) for row in good for cell in row if len(repr(cell)) > 3]
    shown += [repr(drawn) for drawn in (*cells, target) if not isinstance(drawn, Named) and len(repr(drawn)) > 3]
    error = None
    with silence():
        try:
            model.fit(X, y)
        except ValueError as caught:
            error = caught
    if on_invalid == "clip" or container == "scaler":
        assert error is None
    elif error is not None:
        said = shows(error)
        assert error.__context__ is None
        assert [cell for cell in [*shown, "27182818", "0.31415"] if cell in said] == []


@pytest.mark.parametrize("container", TABLES)
@EXAMPLES
@given(good=kinds, i=st.integers(0, N - 1), cells=st.tuples(any_cell, any_cell), clip=st.booleans())
def test_the_scaler(good, container, i, cells, clip):
    table = TABLES[container]
    scaler = PublicBoundsScaler(bounds=(0, 4), clip=clip)
    one, two = table(good), table(replaced(good, i, [drawn.cell for drawn in cells]))
    with silence():
        before, after = scaler.fit(one).transform(one), scaler.fit(two).transform(two)
        back = scaler.inverse_transform(before), scaler.inverse_transform(two)
    assert_only_one_row_differs(Outcome((before,)), Outcome((after,)), i)
    assert [array.shape for array in back] == [(N, 2)] * 2


# ---------------------------------------------------------------------------------------------- the command line

TASKS: dict[str, tuple[list[str], list[bytes]]] = {
    "regression": (
        ["--task", "regression", "--target-bounds", "0", "1"],
        [b"0.1", b"0.2", b"0.9", b"0.4", b"0.5"],
    ),
    "text classes": (["--task", "classification", "--classes", "no", "yes"], [b"no", b"yes", b"no", b"yes", b"yes"]),
    "number classes": (["--task", "classification", "--classes", "0", "1"], [b"0", b"1", b"1", b"0", b"1"]),
    "true and false": (
        ["--task", "classification", "--classes", "false", "true"],
        [b"true", b"false", b"true", b"false", b"true"],
    ),
}
CELLS = {
    "numbers": [b"0.1,0.2", b"0.3,0.4", b"0.5,0.6", b"0.7,0.8", b"0.9,1.0"],
    "booleans": [b"true,false", b"false,true", b"true,true", b"false,false", b"true,false"],
}


def command(path: Any, *options: str) -> Outcome:
    arguments = ["fit", str(path), "--target", "y", "--bounds", "0", "1", "--on-invalid", "clip", *options]
    out = io.StringIO()
    patience = mock.patch("expost.cli.progress._PATIENCE", 600.0)  # how long it takes is the machine's, not the rows'
    with prepared() as seen, silence(), patience, contextlib.redirect_stdout(out):
        status = main([*arguments, "--method", "fixed", "--max-epsilon", "1", "--seed", "1", "--json"])
    assert status == 0
    (rows,) = seen
    return outcome(rows, Release.from_json(out.getvalue()))


AWKWARD = [
    b'"',
    b'"a',
    b"1,2,3,4",
    b",",
    b"",
    b"\r",
    b"\xff",
    b'"\xff',
    b"\0",
    b'1,"2\r,3',
    b"1,2,3\r",
    b"\xef\xbb\xbf",
]
any_line = st.one_of(
    st.sampled_from(AWKWARD),
    st.binary(max_size=30),
    st.text(max_size=20).map(str.encode),
    nested_cells.map(lambda cell: repr(cell).encode()),
)


@pytest.mark.parametrize(("options", "targets"), TASKS.values(), ids=TASKS)
@EXAMPLES
@given(
    cells=st.sampled_from(list(CELLS.values())),
    i=st.integers(0, N - 1),
    line=any_line,
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_lines_of_a_csv_file(tmp_path, cells, options, targets, i, line, end):
    lines = [b",".join(pair) for pair in zip(cells, targets, strict=True)]
    spoilt = replaced(lines, i, line.replace(b"\n", b""))
    paths = tmp_path / "one.csv", tmp_path / "two.csv"
    for path, rows in zip(paths, (lines, spoilt), strict=True):
        path.write_bytes(b"".join(row + end for row in [b"a,b,y", *rows]))
    one, two = (command(path, *options) for path in paths)
    assert one.arrays[0].shape == (N, 3)  # two columns and the constant
    assert_only_one_row_differs(one, two, i)


PARQUET = {
    "float64": (pa.float64(), [0.1, 0.2, 0.3, 0.4, 0.5], st.none() | st.floats()),
    "int64": (pa.int64(), NEAR, st.none() | st.integers(-(2**63), 2**63 - 1)),
    "bool": (pa.bool_(), [True, False, True, False, True], st.none() | st.booleans()),
    "text": (pa.string(), ["0.1", "true", "0.3", "0", "1"], st.none() | st.text(st.characters(codec="utf-8"))),
    "bytes": (pa.binary(), [b"0.1", b"0.2", b"0.3", b"0", b"1"], st.none() | st.binary()),
}
PARQUET_TASKS = {
    "float64": ["--task", "regression", "--target-bounds", "0", "1"],
    "int64": ["--task", "classification", "--classes", str(2**60), str(2**60 + 1)],
    "bool": ["--task", "classification", "--classes", "false", "true"],
    "text": ["--task", "classification", "--classes", "0", "true"],
}


@pytest.mark.parametrize("target", PARQUET_TASKS)
@EXAMPLES
@given(kind=st.sampled_from(sorted(PARQUET)), data=st.data(), i=st.integers(0, N - 1))
def test_rows_of_a_parquet_file(tmp_path, kind, target, data, i):
    paths = tmp_path / "one.parquet", tmp_path / "two.parquet"
    for path, spoil in zip(paths, (False, True), strict=True):
        columns = {}
        for name, (declared, good, cells) in {"a": PARQUET[kind], "y": PARQUET[target]}.items():
            values = replaced(good, i, data.draw(cells)) if spoil else good
            columns[name] = pa.array(values, declared)
        pa.parquet.write_table(pa.table(columns), path)
    one, two = (command(path, *PARQUET_TASKS[target]) for path in paths)
    assert_only_one_row_differs(one, two, i)
