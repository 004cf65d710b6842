"""Columns of text that are held in other ways than cell by cell, and read to the same effect."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from expost.data.cells import number, numbers
from expost.data.columns import Booleans, Column, Floats
from expost.data.lookup import UNKNOWN, Lookup

__all__ = ["CommaColumn", "DictionaryColumn", "ParsedColumn"]

_SWAPPED: Final = str.maketrans(",.", ".,")


class CommaColumn(Column):
    """Text with decimal commas. Points are swapped with them, so that one for thousands makes no number."""

    def floats(self, part: slice) -> npt.NDArray[np.float64]:
        """Read cells as numbers; what is none becomes NaN."""
        return numbers([cell.translate(_SWAPPED) if type(cell) is str else cell for cell in self.cells()[part]])


class DictionaryColumn(Column):
    """Text by number: each different text once, and which of them a cell is.

    A label is looked up once for each text; what a cell becomes depends on its text alone.

    Examples
    --------
    >>> column = DictionaryColumn(["no", "yes", None], np.array([1, 1, 0, 2]))
    >>> column.codes(Lookup([["no"], ["yes"]])).tolist(), column.cells()
    ([1, 1, 0, -1], ['yes', 'yes', 'no', None])
    """

    def __init__(self, texts: list[Any], places: npt.NDArray[Any]) -> None:
        self._texts, self._places = texts, places
        self._missing = None

    @property
    def _values(self) -> list[Any]:  # type: ignore[override]
        texts = self._texts
        return [texts[place] for place in self._places.tolist()]

    @property
    def is_loose(self) -> bool:
        """Whether its type says nothing about its cells, or that they are text; without making them."""
        return True

    def __len__(self) -> int:
        return len(self._places)

    def taken(self, places: npt.NDArray[np.intp]) -> Self:
        """Return the cells at some places, in that order, some of them more than once perhaps."""
        return type(self)(self._texts, self._places[places])

    def codes(self, lookup: Lookup) -> npt.NDArray[np.int64]:
        """Say for each cell which group of labels it belongs to."""
        return np.asarray(np.array(lookup.codes(self._texts), dtype=np.int64)[self._places])


class ParsedColumn(Column):
    """Text that a reader has parsed as numbers: finite ones, or empty cells.

    Examples
    --------
    >>> column = ParsedColumn(np.array([1.0, 0.0]), np.array([False, True]))
    >>> column.numbers(Lookup([[""]]))
    (array([ 1., nan]), array([False,  True]))
    """

    def __init__(self, values: Floats, empty: Booleans | None) -> None:
        super().__init__(values, empty)

    def numbers(self, marks: Lookup) -> tuple[Floats, Booleans]:
        """Read all cells as numbers, NaN if they are none, and say which are missing or marked as such."""
        values = self.floats(slice(None))
        missing = np.zeros(len(values), dtype=np.bool_)
        for mark in marks.numbers:
            missing |= values == number(mark)
        if self._missing is not None and marks.code("") != UNKNOWN:
            missing |= self._missing
        return np.where(missing, np.nan, values) if missing.any() else values, missing
