"""The one entrance: containers of any kind come in, and nothing has looked at a cell before.

Neighbours are data sets in which one row is replaced, so a row must not change what becomes of another, nor raise, warn
or print. That is easily lost before the first line of mathematics: NumPy makes text of a whole list for the sake of one
cell, a reader guesses the type of a column from all of them. Here a container is taken apart by its *structure* alone
(dimensions, declared types, names of columns), which is public and may be complained about, and each cell is read by
itself (:mod:`expost.table.cells`) when the rows are prepared.

A list declares nothing, and so needs a rule for its number of columns, because a single row must not decide it. With
``on_invalid="clip"`` it is the number that was stated (``width``: by bounds for each column, or by an earlier fit).
If none was, it is what more than half of the rows have, and is taken to be public: no single row can change it where
the others agree, and nothing computed from the rows could do better, because step by step every list becomes every
other. Shorter rows then lack cells, longer ones are cut, and what is no row is a row of missing cells. With
``on_invalid="error"`` rows of different lengths are an error.

Columns of Arrow, pandas and Polars are read by their declared types, which are public: a type says how cells are held,
and one that cannot hold real numbers is complained about. Times with a declared zone are read as its clocks show them,
as text and objects of Python are that state one: pandas, Arrow and Polars hold them as counts in UTC, which Arrow makes
local, whoever held them. pandas and Polars are looked up among the modules the caller has imported, never imported for
their sake.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
import scipy.sparse

from expost.table.columns import (
    ArrayRows,
    Column,
    Columns,
    DateColumn,
    DictionaryColumn,
    NamedColumns,
    RawRows,
    cells_of_row,
    places_of,
    require_readable,
)
from expost.table.dates import microseconds


def columns_of_frame(frame: Any) -> Columns | None:
    """Return the columns of a frame; None if it is none that is known here."""
    names = names_of_frame(frame)
    if names is None:
        return None
    columns = [frame_column(frame, j, name) for j, name in enumerate(names)]
    for column in columns:
        if isinstance(column, DateColumn):  # what bounds of dates describe, in a schema alone
            column.refuse()
    return Columns(columns, int(frame.shape[0]), names)


def names_of_frame(frame: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None if it is no frame that is known here."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return list(frame.schema.names)
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return list(frame.columns)
    if polars is not None and isinstance(frame, polars.DataFrame):
        return list(frame.columns)
    return None


def named_columns(frame: Any, names: Sequence[str]) -> NamedColumns:
    """Take columns out of a frame by their names; spaces around names in the frame do not count."""
    there = names_of_frame(frame)
    assert there is not None
    places = places_of(there, names)
    return NamedColumns({name: frame_column(frame, j, name) for name, j in places.items()}, int(frame.shape[0]))


def is_stream(table: Any) -> bool:
    """Whether a table hands out batches of Arrow, or is a function that returns what does; a frame is none."""
    if isinstance(table, type) or names_of_frame(table) is not None:
        return False
    return hasattr(type(table), "__arrow_c_stream__") or is_called(table)


def is_called(table: Any) -> bool:
    """Whether a table is a function that hands it out."""
    if isinstance(table, type) or hasattr(type(table), "__arrow_c_stream__"):
        return False
    return callable(table) and not hasattr(table, "columns")


def frame_column(frame: Any, j: int, name: Any) -> Column:
    """Read one column of a frame; the types of the others may be anything."""
    called = f"column {name!r}"
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow_column(frame.column(j), called)
    if hasattr(frame, "iloc"):
        return pandas_column(frame.iloc[:, j], called)
    return polars_column(frame.to_series(j), called)


def column_of_frame(column: Any, name: str) -> Column | None:
    """Return a single column; None if it is of no kind known here."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return arrow_column(column, name)
    if pandas is not None:
        if isinstance(column, pandas.Index | pandas.api.extensions.ExtensionArray):
            column = pandas.Series(column)
        if isinstance(column, pandas.Series):
            return pandas_column(column, name)
    if polars is not None and isinstance(column, polars.Series):
        return polars_column(column, name)
    return None


def arrow_column(column: Any, name: str) -> Column:
    """Read an Arrow array, in one piece or in chunks."""
    kind = column.type
    if type_is(kind, "dictionary"):
        found = _by_number(column) if type_is(kind.value_type, "string") else None
        if found is not None:
            return found
        column, kind = column.cast(kind.value_type), kind.value_type
    if type_is(kind, "null"):
        return Column(np.zeros(len(column)), np.ones(len(column), dtype=np.bool_))
    if type_is(kind, "floating"):
        column = column.cast(pa.float64())
    if type_is(kind, "floating", "integer", "boolean"):
        if column.null_count == 0:  # the same numbers, without a copy
            return Column(_numpy(column))
        return Column(_numpy(column.fill_null(False if type_is(kind, "boolean") else 0)), _numpy(column.is_null()))
    if type_is(kind, *TEXT):
        return _by_text(column) or Column([_decoded(cell) for cell in column.cast(pa.large_binary()).to_pylist()])
    if type_is(kind, "decimal", "fixed_size_binary", *BYTES):
        return Column(column.to_pylist())
    said = f"{name} must hold real numbers; its type is {kind}"
    if type_is(kind, "date", "timestamp"):
        whole = column.cast(pa.int32() if type_is(kind, "date32") else pa.int64()).cast(pa.int64())
        unit = "D" if type_is(kind, "date32") else "ms" if type_is(kind, "date64") else kind.unit
        counts = _numpy(whole.fill_null(np.iinfo(np.int64).min))  # which stands for none
        dates = counts.astype(f"datetime64[{unit}]")
        return DateColumn(dates if getattr(kind, "tz", None) is None else _local(dates, kind.tz, name), said)
    raise ValueError(said)


def _local(utc: Any, zone: str, name: str) -> Any:
    """Return what clocks of a zone show, to the microsecond; a cell beyond all calendars raises nothing."""
    shown = pa.array(microseconds(utc), pa.timestamp("us", zone))
    try:
        local = pa.compute.local_timestamp(shown)
    except pa.ArrowInvalid:
        raise ValueError(
            f"{name} holds times of the zone {zone!r}, which Arrow does not find among the time zones of this machine; "
            f"install them, or pass the times as they are there, without a zone"
        ) from None
    return _numpy(local.cast(pa.int64())).astype("datetime64[us]")


TEXT = ("string", "large_string", "string_view")
BYTES = ("binary", "large_binary", "binary_view")


def type_is(kind: Any, *names: str) -> bool:
    """Say whether a type of Arrow is one of those that ``pyarrow.types`` tells apart by such names."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def pandas_column(series: Any, name: str) -> Column:
    """Read a pandas series; a categorical one by its categories."""
    import pandas as pd

    dtype, values = series.dtype, series.array
    if isinstance(dtype, pd.DatetimeTZDtype):  # pandas would raise for a cell at the end of its calendar
        return arrow_column(_timestamps(series, name), name)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        return DateColumn(series.to_numpy(), f"{name} must hold real numbers; its dtype is {dtype}")
    if isinstance(dtype, np.dtype):
        require_readable(dtype, name)
        return Column(series.to_numpy())
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        return arrow_column(values.__arrow_array__(), name)
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.categories.dtype.kind == "M":
            return pandas_column(series.astype(dtype.categories.dtype), name)
        # By code, with an entry for "missing" at the end: pandas would make floats of all integers if one is missing.
        categories = np.empty(len(dtype.categories) + 1, dtype=object)
        categories[:-1] = np.asarray(dtype.categories, dtype=object)
        return Column(categories[values.codes])
    if isinstance(dtype, pd.SparseDtype):
        dense = np.asarray(values)
        require_readable(dense.dtype, name)
        return Column(dense)
    if dtype.kind in "biuf":
        missing = np.asarray(values.isna(), dtype=np.bool_)
        return Column(values.to_numpy(dtype=np.dtype(dtype.type), na_value=dtype.type(0)), missing)
    if dtype.kind == "O":
        return Column(np.asarray(values, dtype=object))
    raise ValueError(f"{name} must hold real numbers; its dtype is {dtype}")


def _timestamps(series: Any, name: str) -> Any:
    """Return a series of times with a zone as Arrow has them."""
    try:
        return pa.array(series)
    except (ValueError, TypeError, NotImplementedError, pa.ArrowException):
        raise ValueError(
            f"{name} holds times of a zone that has no name for Arrow, {series.dtype}; pass a zone that is called by a "
            f"name, such as 'Europe/Zurich', or the times as they are there, without a zone"
        ) from None


def polars_column(series: Any, name: str) -> Column:
    """Read a Polars series."""
    import polars as pl

    if series.dtype == pl.Object:
        return Column(series.to_list())
    if str(series.dtype) in ("Int128", "UInt128"):  # unknown to Arrow, and to older versions of Polars
        series = series.cast(pl.Float64, strict=False)
    return arrow_column(series.to_arrow(), name)


def _numpy(column: Any) -> Any:
    return column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)


def _by_text(column: Any) -> Column | None:
    """Return text by number; None if Arrow cannot, which is if it is no text."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    coded = column.dictionary_encode("encode")
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    return _by_number(coded)


def _by_number(column: Any) -> Column | None:
    """Return text that Arrow holds by number; None if it is in pieces, has more texts than cells, or is no text.

    A file's dictionary may be that of many more rows than were read. Arrow does not check text it is given; which way
    is taken does not show.
    """
    if isinstance(column, pa.ChunkedArray) or len(column.dictionary) > len(column):
        return None
    try:
        texts = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        return None
    places = column.indices
    if places.null_count:
        places = places.fill_null(len(texts))  # None, which comes after them
    return DictionaryColumn([*texts, None], places.to_numpy(zero_copy_only=False))


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


OnInvalid = Literal["error", "clip"]

_RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


def open_rows(X: Any, *, on_invalid: OnInvalid = "error", width: int | None = None, name: str = "X") -> RawRows:
    """Take a table apart into cells.

    Parameters
    ----------
    X : list of rows, array, or frame of pandas, Polars or PyArrow
    on_invalid : {"error", "clip"}, default="error"
        What rows of different lengths in a list are: an error, or rows that lack cells or have too many.
    width : int, optional
        The number of columns, where it was stated; it decides for a list with ``on_invalid="clip"`` alone.
    name : str
        What to call the table in messages, which are about the structure: sparse matrices, other numbers of
        dimensions, types that cannot hold real numbers.
    """
    if isinstance(X, RawRows):
        return X
    _refuse_sparse(X, name)
    frame = columns_of_frame(X)
    if frame is not None:
        return frame
    listed = _as_list(X)
    if listed is not None:
        return _listed_rows(listed, on_invalid, width, name)
    array, missing = _as_array(X, name)
    _require_dimensions(array.shape, name)
    return ArrayRows(array, missing)


def open_column(y: Any, *, on_invalid: OnInvalid = "error", name: str = "y") -> tuple[Column, int]:
    """Take a target apart into cells; returns how many dimensions it had, which are 2 for a table of one column.

    It is a list, an array, a column of pandas, Polars or PyArrow, or a table of one column. With ``"clip"`` an entry of
    a list that is a list of one cell is read as that cell, by itself; with ``"error"`` a list of such entries is a
    table of one column.
    """
    if isinstance(y, Column):
        return y, 1
    _refuse_sparse(y, name)
    single = column_of_frame(y, name)
    if single is not None:
        return single, 1
    frame = columns_of_frame(y)
    if frame is not None:
        _require_one_column((frame.n, frame.width), name)
        return frame.in_order[0], 2
    listed = _as_list(y)
    if listed is not None:
        return _listed_column(listed, on_invalid, name)
    if isinstance(y, np.ndarray) and y.dtype.kind == "M" and y.ndim == 1:
        dates = y.filled(np.datetime64("NaT")) if isinstance(y, np.ma.MaskedArray) else y
        return DateColumn(dates, f"{name} must hold real numbers; its dtype is {y.dtype}"), 1
    array, missing = _as_array(y, name)
    if array.ndim == 1:
        return Column(array, missing), 1
    _require_one_column(array.shape, name)
    return Column(array[:, 0], None if missing is None else missing[:, 0]), 2


def _listed_rows(rows: list[Any], on_invalid: OnInvalid, width: int | None, name: str) -> RawRows:
    if on_invalid == "clip" and width is not None:
        return ArrayRows.listed(rows, width, counted=False)
    lengths = Counter(_length(cells_of_row(row)) for row in rows)
    most, count = lengths.most_common(1)[0] if lengths else (-1, 1)
    if on_invalid == "error" and len(lengths) > 1:
        raise ValueError(f"{name} must be a dense array of shape (n_rows, n_columns): its rows differ in length")
    if 2 * count <= len(rows):
        raise ValueError(
            f"{name} is a list without a number of cells that most of its rows have; state the number of columns by "
            f"bounds for each column"
        )
    if most == -1:
        _require_dimensions((len(rows),), name)
    return ArrayRows.listed(rows, most, counted=on_invalid == "clip")


def _listed_column(cells: list[Any], on_invalid: OnInvalid, name: str) -> tuple[Column, int]:
    inside = [cells_of_row(cell, 2) for cell in cells]
    if on_invalid == "error" and (not cells or any(row is None for row in inside)):
        return Column(cells), 1
    if on_invalid == "error":
        lengths = {_length(cells_of_row(cell)) for cell in cells}
        _require_one_column((len(cells), lengths.pop() if len(lengths) == 1 else "…"), name)
    read = [cell if row is None or len(row) != 1 else row[0] for cell, row in zip(cells, inside, strict=True)]
    return Column(read), 1 + (on_invalid == "error")


def _length(row: Sequence[Any] | None) -> int:
    return -1 if row is None else len(row)


def _as_list(values: Any) -> list[Any] | None:
    """Return the elements of a container that declares no type for them."""
    if isinstance(values, list):
        return values
    if isinstance(values, tuple | range | deque):
        return list(values)
    if hasattr(values, "__array__") or isinstance(values, str | bytes | bytearray | memoryview):
        return None
    return list(values) if isinstance(values, Sequence) else None


def _as_array(values: Any, name: str) -> tuple[Any, Any]:
    """Return the array a container says it is, and which cells it hides."""
    if not hasattr(values, "__array__") and not isinstance(values, memoryview):
        raise ValueError(f"{name} must be a dense array, a list or a frame, not {type(values).__name__}")
    array = np.asarray(values)
    require_readable(array.dtype, name)
    if not isinstance(values, np.ma.MaskedArray):
        return array, None
    missing = np.ma.getmaskarray(values)
    if array.dtype.kind in "biuf":
        return array, missing
    array = array.astype(object)  # a copy: the caller keeps what is hidden
    array[missing] = None
    return array, None


def _refuse_sparse(values: Any, name: str) -> None:
    if scipy.sparse.issparse(values):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required. Use '.toarray()' to convert to a dense "
            "numpy array."
        )


def _require_dimensions(shape: Sequence[Any], name: str) -> None:
    if len(shape) > 2:
        found = f"Found array with dim {len(shape)}"
        raise ValueError(f"{name} must be a dense array of shape (n_rows, n_columns): {found}")
    if len(shape) < 2:
        got = "1D" if len(shape) else "scalar"
        raise ValueError(
            f"{name} must be a dense array of shape (n_rows, n_columns): Expected 2D array, got {got} array instead. "
            f"{_RESHAPE}"
        )


def _require_one_column(shape: Sequence[Any], name: str) -> None:
    if len(shape) != 2 or shape[1] != 1:
        stated = ", ".join(map(str, shape))
        raise ValueError(
            f"{name} must be a dense array of shape (n_rows,): {name} should be a 1d array, got an array of shape "
            f"({stated}) instead."
        )
