"""The one entrance: containers of any kind come in, and nothing has looked at a cell before.

Neighbours are data sets in which one row is replaced, so a row must not change what becomes of another, nor raise, warn
or print. That is easily lost before the first line of mathematics: NumPy makes text of a whole list for the sake of one
cell, a reader guesses the type of a column from all of them. Here a container is taken apart by its *structure* alone
(dimensions, declared types, names of columns), which is public and may be complained about, and each cell is read by
itself (:mod:`expost.data.cells`) when the rows are prepared.

A list declares nothing, and so needs a rule for its number of columns, because a single row must not decide it. With
``on_invalid="clip"`` it is the number that was stated (``width``: by bounds for each column, or by an earlier fit).
If none was, it is what more than half of the rows have, and is taken to be public: no single row can change it where
the others agree, and nothing computed from the rows could do better, because step by step every list becomes every
other. Shorter rows then lack cells, longer ones are cut, and what is no row is a row of missing cells. With
``on_invalid="error"`` rows of different lengths are an error.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse

from expost.data.columns import Column, require_readable
from expost.data.frames import column_of_frame, columns_of_frame
from expost.data.tables import Block, Columns, ListedRows, RawRows, cells_of_row, length_of_row

__all__ = ["OnInvalid", "open_column", "open_rows"]

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
        What to call the table in messages.

    Returns
    -------
    RawRows

    Raises
    ------
    TypeError, ValueError
        About the structure: sparse matrices, other numbers of dimensions, types that cannot hold real numbers.

    Examples
    --------
    >>> rows = open_rows([[True, "2.5"], ["x", None]])
    >>> rows
    ListedRows(n=2, width=2)
    >>> rows.floats(slice(None))
    array([[1. , 2.5],
           [nan, nan]])
    """
    if isinstance(X, RawRows):
        return X
    _refuse_sparse(X, name)
    frame = columns_of_frame(X)
    if frame is not None:
        return Columns(*frame)
    listed = _as_list(X)
    if listed is not None:
        return _listed_rows(listed, on_invalid, width, name)
    array, missing = _as_array(X, name)
    _require_dimensions(array.shape, name)
    return Block(array, missing)


def open_column(y: Any, *, on_invalid: OnInvalid = "error", name: str = "y") -> tuple[Column, int]:
    """Take a target apart into cells.

    Parameters
    ----------
    y : list, array, or column of pandas, Polars or PyArrow
        Or a table of one column.
    on_invalid : {"error", "clip"}, default="error"
        With ``"clip"`` an entry of a list that is a list of one cell is read as that cell, by itself; with ``"error"``
        a list of such entries is a table of one column.
    name : str
        What to call the target in messages.

    Returns
    -------
    column : Column
    dimensions : int
        2 if it came as a table of one column.

    Examples
    --------
    >>> column, dimensions = open_column(["yes", "no", b"no"])
    >>> column.signs(slice(None), ("no", "yes"))
    (array([ True, False, False]), array([False, False,  True]))
    """
    if isinstance(y, Column):
        return y, 1
    _refuse_sparse(y, name)
    single = column_of_frame(y, name)
    if single is not None:
        return single, 1
    frame = columns_of_frame(y)
    if frame is not None:
        columns, n, _ = frame
        _require_one_column((n, len(columns)), name)
        return columns[0], 2
    listed = _as_list(y)
    if listed is not None:
        return _listed_column(listed, on_invalid, name)
    array, missing = _as_array(y, name)
    if array.ndim == 1:
        return Column(array, missing), 1
    _require_one_column(array.shape, name)
    return Column(array[:, 0], None if missing is None else missing[:, 0]), 2


def _listed_rows(rows: list[Any], on_invalid: OnInvalid, width: int | None, name: str) -> RawRows:
    if on_invalid == "clip" and width is not None:
        return ListedRows(rows, width, counted=False)
    lengths = Counter(map(length_of_row, rows))
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
    return ListedRows(rows, most, counted=on_invalid == "clip")


def _listed_column(cells: list[Any], on_invalid: OnInvalid, name: str) -> tuple[Column, int]:
    if on_invalid == "error":
        lengths = set(map(length_of_row, cells))
        if cells and -1 not in lengths:
            _require_one_column((len(cells), lengths.pop() if len(lengths) == 1 else "…"), name)
            return Column([cells_of_row(cell)[0] for cell in cells]), 2
        return Column(cells), 1
    return Column([cells_of_row(cell)[0] if length_of_row(cell) == 1 else cell for cell in cells]), 1


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
