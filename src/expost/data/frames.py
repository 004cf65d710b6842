"""Columns of Arrow, pandas and Polars, by their declared types.

The type of a column is public: it says how its cells are held, and a type that cannot hold real numbers is complained
about. pandas and Polars are looked up among the modules the caller has imported, never imported for their sake.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from expost.data.columns import Column, require_readable
from expost.data.text_columns import DictionaryColumn

__all__ = [
    "arrow_column",
    "column_of_frame",
    "columns_of_frame",
    "frame_column",
    "names_of_frame",
    "pandas_column",
    "polars_column",
]


def columns_of_frame(frame: Any) -> tuple[list[Column], int, list[Any]] | None:
    """Return the columns, number of rows and names of a frame; None if it is none that is known here."""
    names = names_of_frame(frame)
    if names is None:
        return None
    return [frame_column(frame, j, name) for j, name in enumerate(names)], int(frame.shape[0]), names


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


def frame_column(frame: Any, j: int, name: Any) -> Column:
    """Read one column of a frame; the types of the others may be anything."""
    called = f"column {name!r}"
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow_column(frame.column(j), called)
    return (
        pandas_column(frame.iloc[:, j], called) if hasattr(frame, "iloc") else polars_column(frame.to_series(j), called)
    )


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
    """Read an Arrow array, in one piece or in chunks.

    Examples
    --------
    >>> arrow_column(pa.array([1, None, 3]), "x").floats(slice(None))
    array([ 1., nan,  3.])
    """
    is_ = pa.types
    kind = column.type
    if is_.is_dictionary(kind):
        found = _by_number(column) if is_.is_string(kind.value_type) else None
        if found is not None:
            return found
        column, kind = column.cast(kind.value_type), kind.value_type
    if is_.is_null(kind):
        return Column(np.zeros(len(column)), np.ones(len(column), dtype=np.bool_))
    if is_.is_floating(kind):
        column = column.cast(pa.float64())
    if is_.is_floating(kind) or is_.is_integer(kind) or is_.is_boolean(kind):
        if column.null_count == 0:  # the same numbers, without a copy
            return Column(_numpy(column))
        values = column.fill_null(False if is_.is_boolean(kind) else 0)
        return Column(_numpy(values), _numpy(column.is_null()))
    if is_.is_decimal(kind):
        return Column(column.to_pylist())
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return _by_text(column) or Column(_texts(column))
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind) or is_.is_fixed_size_binary(kind):
        return Column(column.to_pylist())
    raise ValueError(f"{name} must hold real numbers; its type is {kind}")


def pandas_column(series: Any, name: str) -> Column:
    """Read a pandas series; a categorical one by its categories."""
    import pandas as pd

    dtype, values = series.dtype, series.array
    if isinstance(dtype, np.dtype):
        require_readable(dtype, name)
        return Column(series.to_numpy())
    if isinstance(dtype, pd.ArrowDtype) or (isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"):
        return arrow_column(values.__arrow_array__(), name)
    if isinstance(dtype, pd.CategoricalDtype):
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

    A file's dictionary may be that of many more rows than were read.
    """
    if isinstance(column, pa.ChunkedArray) or len(column.dictionary) > len(column):
        return None
    try:
        texts = column.dictionary.to_pylist()
    except UnicodeDecodeError:  # Arrow does not check text it is given; which way is taken does not show
        return None
    places = column.indices
    if places.null_count:
        places = places.fill_null(len(texts))  # None, which comes after them
    return DictionaryColumn([*texts, None], places.to_numpy(zero_copy_only=False))


def _texts(column: Any) -> list[str | None]:
    try:
        texts: list[str | None] = column.to_pylist()
    except UnicodeDecodeError:  # Arrow does not check text it is given; which way is taken does not show
        return [_decoded(cell) for cell in column.cast(pa.large_binary()).to_pylist()]
    return texts


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None
