"""A table of raw cells, as it came in: an array, the columns of a frame, or a list of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.data.cells import numbers
from expost.data.columns import Column, read_floats, which_not_numbers

__all__ = ["Block", "Columns", "ListedRows", "RawRows", "cells_of_row", "length_of_row"]


class RawRows:
    """The cells of a table; like all private values it prints nothing of what it holds.

    Parameters
    ----------
    n, width : int
        Number of rows and of columns.
    names : list, optional
        Names of the columns, if they have any.
    counted : bool, default=False
        Whether the number of columns is that of most rows of a list, because nobody stated it.
    """

    def __init__(self, n: int, width: int, *, names: list[Any] | None = None, counted: bool = False) -> None:
        self.n, self.width, self.names, self.counted = n, width, names, counted

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, width={self.width})"

    def floats(self, part: slice) -> npt.NDArray[np.float64]:
        """Read rows as numbers; what is none becomes NaN."""
        return self._floats(part)

    def not_numbers(self) -> npt.NDArray[np.int64]:
        """Count, by column, cells that are neither numbers nor missing."""
        return self._not_numbers()

    def plain_columns(self) -> list[npt.NDArray[np.float64]] | None:
        """Return columns that are numbers by their types, none of them missing; None if they do not come that way."""
        return None

    def _floats(self, part: slice) -> npt.NDArray[np.float64]:
        raise NotImplementedError

    def _not_numbers(self) -> npt.NDArray[np.int64]:
        raise NotImplementedError


class Block(RawRows):
    """An array with two dimensions."""

    def __init__(self, values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None = None) -> None:
        super().__init__(*values.shape)
        self._values, self._missing = values, missing

    def _floats(self, part: slice) -> npt.NDArray[np.float64]:
        return read_floats(self._values[part], None if self._missing is None else self._missing[part])

    def _not_numbers(self) -> npt.NDArray[np.int64]:
        return np.asarray(which_not_numbers(self._values).sum(axis=0), dtype=np.int64)


class Columns(RawRows):
    """Columns of a frame, each with a type of its own."""

    def __init__(self, columns: Sequence[Column], n: int, names: list[Any]) -> None:
        super().__init__(n, len(columns), names=names)
        self._columns = columns

    def plain_columns(self) -> list[npt.NDArray[np.float64]] | None:
        """Return columns that are numbers by their types, none of them missing; None if they do not come that way."""
        found = [column.plain() for column in self._columns]
        plain = [column for column in found if column is not None]
        return plain if len(plain) == len(found) else None

    def _floats(self, part: slice) -> npt.NDArray[np.float64]:
        return np.column_stack([column.floats(part) for column in self._columns])

    def _not_numbers(self) -> npt.NDArray[np.int64]:
        return np.array([column.not_numbers() for column in self._columns], dtype=np.int64)


class ListedRows(RawRows):
    """A list of rows, each a list, a tuple or an array with one dimension.

    A row of another kind is a row of missing cells. A shorter one lacks its last cells, a longer one is cut.
    """

    def __init__(self, rows: list[Any], width: int, *, counted: bool) -> None:
        super().__init__(len(rows), width, counted=counted)
        self._rows = rows

    def _floats(self, part: slice) -> npt.NDArray[np.float64]:
        return numbers(self._cells(part)).reshape(-1, self.width)

    def _not_numbers(self) -> npt.NDArray[np.int64]:
        bad = which_not_numbers(self._cells(slice(None))).reshape(-1, self.width)
        return np.asarray(bad.sum(axis=0), dtype=np.int64)

    def _cells(self, part: slice) -> list[Any]:
        flat: list[Any] = []
        for row in self._rows[part]:
            cells = cells_of_row(row, self.width)
            flat += cells
            flat += [None] * (self.width - len(cells))
        return flat


def cells_of_row(row: Any, limit: int | None = None) -> list[Any] | tuple[Any, ...]:
    """Return the first cells of a row from a list, none if it is no row; what a subclass overrides is not called.

    Examples
    --------
    >>> cells_of_row([1, "x"]), cells_of_row(np.arange(3), 2), cells_of_row("no row")
    ([1, 'x'], [0, 1], ())
    """
    kind = type(row)
    if issubclass(kind, list):
        return list.__getitem__(row, slice(limit))
    if issubclass(kind, tuple):
        return tuple.__getitem__(row, slice(limit))
    if kind is np.ndarray and row.ndim == 1:
        return row[:limit].tolist()  # type: ignore[no-any-return]
    return ()


def length_of_row(row: Any) -> int:
    """Return how many cells a row from a list has, −1 if it is no row.

    Examples
    --------
    >>> length_of_row((1, 2)), length_of_row("no row")
    (2, -1)
    """
    kind = type(row)
    if issubclass(kind, list):
        return list.__len__(row)
    if issubclass(kind, tuple):
        return tuple.__len__(row)
    return len(row) if kind is np.ndarray and row.ndim == 1 else -1
