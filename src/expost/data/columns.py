"""One column of raw cells, as it came in, and the ways of reading it.

How long it is and its declared type are public; what is in it is read by :mod:`expost.data.cells` where it is not
numbers already. Like all private values it prints nothing of what it holds.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from expost.data.cells import Label, is_undecoded, label, number, numbers, signs
from expost.data.lookup import MISSING, UNKNOWN, Lookup

__all__ = ["Column", "labels_array", "read_floats", "require_readable", "which_not_numbers"]

_NUMBERS = "biuf"
_LOOSE = "OUST"  # objects, text and bytes: read cell by cell

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def require_readable(dtype: np.dtype[Any], name: str) -> None:
    """Complain about a declared type that cannot hold real numbers, such as complex numbers or dates."""
    if dtype.kind not in _NUMBERS + _LOOSE:
        hint = "Complex data not supported: " if dtype.kind == "c" else ""
        raise ValueError(f"{hint}{name} must hold real numbers; its dtype is {dtype}")


class Column:
    """The cells of one column.

    Parameters
    ----------
    values : ndarray with one dimension, or list
        The cells. An array says by its type what all of them are; a list says nothing.
    missing : ndarray of bool, optional
        Which cells are missing, whatever ``values`` holds there.
    """

    def __init__(self, values: npt.NDArray[Any] | list[Any], missing: Booleans | None = None) -> None:
        self._values, self._missing = values, missing

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Column(n={len(self)})"

    @property
    def is_loose(self) -> bool:
        """Whether its type says nothing about its cells, or that they are text."""
        return not (isinstance(self._values, np.ndarray) and self._values.dtype.kind in _NUMBERS)

    def plain(self) -> Floats | None:
        """Return the cells if they are numbers by their type and none is missing; None otherwise."""
        if self.is_loose or (self._missing is not None and self._missing.any()):
            return None
        return self.floats(slice(None))

    def cells(self) -> list[Any]:
        """Return the cells as they came, None where they are missing."""
        cells = _cells_of(self._values)
        if self._missing is None:
            return cells
        return [None if gone else cell for cell, gone in zip(cells, self._missing.tolist(), strict=True)]

    def taken(self, places: npt.NDArray[np.intp]) -> Self:
        """Return the cells at some places, in that order, some of them more than once perhaps."""
        values = self._values
        chosen = values[places] if isinstance(values, np.ndarray) else [values[i] for i in places.tolist()]
        return type(self)(chosen, None if self._missing is None else self._missing[places])

    def array(self) -> npt.NDArray[Any]:
        """Return the cells in an array of their declared type, masked if that is a type of numbers."""
        if isinstance(self._values, np.ndarray):
            return self._values if self._missing is None else np.ma.MaskedArray(self._values, self._missing)
        array = np.empty(len(self._values), dtype=object)
        array[:] = self._values
        return array

    def floats(self, part: slice) -> Floats:
        """Read cells as numbers; what is none becomes NaN."""
        values = self._values[part]
        return read_floats(values, None if self._missing is None else self._missing[part])

    def not_numbers(self) -> int:
        """Count cells that are neither numbers nor missing."""
        return int(which_not_numbers(self._values).sum())

    def numbers(self, marks: Lookup) -> tuple[Floats, Booleans]:
        """Read all cells as numbers, NaN if they are none, and say which are missing or marked as such."""
        values = self.floats(slice(None))
        nan = np.isnan(values)
        missing = np.zeros(len(values), dtype=np.bool_)
        for mark in marks.numbers:
            missing |= values == number(mark)
        if isinstance(self._values, np.ndarray) and self._values.dtype.kind in _NUMBERS:
            missing |= nan
        else:
            cells = self.cells()
            for i in np.flatnonzero(nan).tolist():
                missing[i] = marks.code(cells[i]) != UNKNOWN
        return np.where(missing, np.nan, values), missing

    def codes(self, lookup: Lookup) -> npt.NDArray[np.int64]:
        """Say for each cell which group of labels it belongs to."""
        values = self._values
        if not (isinstance(values, np.ndarray) and values.dtype.kind in _NUMBERS):
            return np.array(lookup.codes(self.cells()), dtype=np.int64)
        codes = np.full(len(values), UNKNOWN, dtype=np.int64)
        for stated, code in lookup.numbers.items():
            codes[_equal_numbers(values, stated)] = code
        codes[np.isnan(values)] = MISSING
        if self._missing is not None:
            codes[self._missing] = MISSING
        return codes

    def undecoded(self, among: Booleans) -> Booleans:
        """Say which of some cells are text in which bytes were not in the encoding it was read with."""
        found = np.zeros(len(among), dtype=np.bool_)
        if self.is_loose and among.any():
            cells = self.cells()
            for i in np.flatnonzero(among).tolist():
                found[i] = is_undecoded(cells[i])
        return found

    def signs(self, part: slice, classes: tuple[Label, Label]) -> tuple[Booleans, Booleans]:
        """Say which labels are the positive class and which are neither class."""
        values = self._values[part]
        kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
        text = [isinstance(c, str) for c in classes]
        if (kind in _NUMBERS and all(isinstance(c, str | bytes) for c in classes)) or (kind == "U" and not any(text)):
            raise ValueError(
                f"labels have dtype {self._values.dtype}, which classes cannot match; "  # type: ignore[union-attr]
                "pass classes like them"
            )
        if isinstance(values, np.ndarray) and kind in _NUMBERS + "US":
            equal = _equal_numbers if kind in _NUMBERS else _equal_text
            negative, positive = (equal(values, c) for c in classes)
            unknown = ~(negative | positive)
        else:
            positive, unknown = signs(_cells_of(values), classes)
        if self._missing is not None:
            positive, unknown = positive & ~self._missing[part], unknown | self._missing[part]
        return positive, unknown

    def distinct(self) -> tuple[npt.NDArray[Any], int]:
        """Return the different labels in order, and how many cells are none: missing, infinite, or something else.

        This reads labels off the data, which no guarantee covers.
        """
        if isinstance(self._values, np.ndarray) and self._values.dtype.kind in _NUMBERS:
            usable = np.isfinite(self._values) if self._missing is None else np.isfinite(self._values) & ~self._missing
            return np.unique(self._values[usable]), int((~usable).sum())
        found: dict[tuple[str, Label], Any] = {}
        unusable = 0
        for cell in _cells_of(self._values):
            value = label(cell)
            if value is None or (isinstance(value, float) and not np.isfinite(value)):
                unusable += 1
            else:
                truth = type(cell) is bool or type(cell) is np.bool_
                found.setdefault((_sort(value), value), bool(value) if truth else value)
        if len({sort for sort, _ in found}) > 1:
            raise ValueError(
                "Unknown label type: y has labels of several kinds (numbers, text, bytes); pass "
                "classes=(negative, positive)"
            )
        return labels_array([found[key] for key in sorted(found)]), unusable


def _cells_of(values: npt.NDArray[Any] | list[Any]) -> list[Any]:
    """Return cells as a flat list of objects, none of them looked at."""
    return values.ravel().tolist() if isinstance(values, np.ndarray) else values


def read_floats(values: npt.NDArray[Any] | list[Any], missing: Booleans | None) -> Floats:
    """Read cells as numbers, of an array with any number of dimensions; what is none becomes NaN."""
    if not isinstance(values, np.ndarray):
        read = numbers(values)
    elif values.dtype.kind in _NUMBERS:
        with np.errstate(all="ignore"):  # a long double may not fit
            read = values.astype(np.float64, copy=missing is not None)
    else:
        read = numbers(_cells_of(values)).reshape(values.shape)
    if missing is not None:
        read[missing] = np.nan
    return read


def which_not_numbers(values: npt.NDArray[Any] | list[Any]) -> Booleans:
    """Say which cells are neither numbers nor missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in _NUMBERS:
        return np.zeros(values.shape, dtype=np.bool_)
    bad = np.array([number(cell) is None for cell in _cells_of(values)], dtype=np.bool_)
    return bad.reshape(values.shape) if isinstance(values, np.ndarray) else bad


def _equal_numbers(values: npt.NDArray[Any], stated: Label) -> Booleans:
    """Compare numbers by value: neither 2⁵³ + 1 nor 300 beside bytes may be rounded to something else."""
    if isinstance(stated, str | bytes):
        return np.zeros(values.shape, dtype=np.bool_)
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(np.float64) == number(stated), dtype=np.bool_)
    if isinstance(stated, float):
        if not stated.is_integer():
            return np.zeros(values.shape, dtype=np.bool_)
        stated = int(stated)
    if values.dtype.kind == "b":
        values = values.view(np.uint8)  # beside truth values NumPy takes no integer that is too large for it
    return np.asarray(values == stated, dtype=np.bool_)


def _equal_text(values: npt.NDArray[Any], stated: Label) -> Booleans:
    if not isinstance(stated, str if values.dtype.kind == "U" else bytes):
        return np.zeros(values.shape, dtype=np.bool_)
    return np.asarray(values == stated, dtype=np.bool_)


def _sort(value: Label) -> str:
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "number"


def labels_array(labels: list[Any]) -> npt.NDArray[Any]:
    """Make an array of labels that holds them as they are; NumPy's own text drops zeros at the end."""
    array = np.array(labels)
    return array if array.tolist() == labels else np.array(labels, dtype=object)
