"""Raw cells as they came in, by column or as a table, and the ways of reading them.

How many there are, their declared types and the names of columns are public, and may be complained about; what is in
a cell is read by :mod:`expost.table.cells` where it is not a number already. Text may be held in other ways than cell
by cell, and is read to the same effect. A table is an array, the columns of a frame, a list of rows, or columns by
name. Like all private values, none of them prints anything of what it holds.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import numpy as np
import numpy.typing as npt

from expost.shown import listed
from expost.table.cells import MISSING, UNKNOWN, Label, Lookup, is_undecoded, label, number, numbers, signs
from expost.table.dates import day, days_of_array

#: What to do about labels that are numbers where classes are text.
RECODED = (
    ". BaggingClassifier, VotingClassifier, OneVsRestClassifier and cross_val_predict pass labels as 0 and 1, in "
    "sorted order: classes are (0, 1) then"
)
_NUMBERS = "biuf"
_LONG = 200  # letters of a name
_LOOSE = "OUST"  # objects, text and bytes: read cell by cell

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def require_readable(dtype: np.dtype[Any], name: str) -> None:
    """Complain about a declared type that cannot hold real numbers, such as complex numbers or dates."""
    if dtype.kind not in _NUMBERS + _LOOSE:
        hint = "Complex data not supported: " if dtype.kind == "c" else ""
        raise ValueError(f"{hint}{name} must hold real numbers; its dtype is {dtype}")


class Column:
    """The cells of one column: an array, which says by its type what all of them are, or a list, which says nothing.

    ``missing`` says which are missing, whatever ``values`` holds there.
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

    def cells(self) -> list[Any]:
        """Return the cells as they came, None where they are missing."""
        cells = _cells_of(self._values)
        if self._missing is None:
            return cells
        return [None if gone else cell for cell, gone in zip(cells, self._missing.tolist(), strict=True)]

    def written(self, decimal: str) -> Column:
        """Return the same cells, of which text has that mark before the fraction of a number, whatever the file has."""
        if not self.is_loose:
            return self
        return (CommaColumn if decimal == "," else Column)(self.cells())

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
        missing = self._absent(np.isnan(values), marks)
        for mark in marks.numbers:
            missing |= values == number(mark)
        return np.where(missing, np.nan, values) if missing.any() else values, missing

    def _absent(self, nan: Booleans, marks: Lookup) -> Booleans:
        """Say which cells that are no numbers are missing; ``nan`` may be overwritten."""
        if self.is_loose and nan.any():
            cells = self.cells()
            for i in np.flatnonzero(nan).tolist():
                nan[i] = marks.code(cells[i]) != UNKNOWN
        return nan

    def days(self, marks: Lookup) -> tuple[Floats, Booleans]:
        """Read all cells as dates, days since 1970, NaN if they are none, and say which are missing or marked so."""
        if not self.is_loose:  # numbers are no dates
            return np.full(len(self), np.nan), self.codes(marks) != UNKNOWN
        return _read_days(self.cells(), marks)

    def codes(self, lookup: Lookup) -> npt.NDArray[np.int64]:
        """Say for each cell which group of labels it belongs to."""
        values: Any = self._values
        if self.is_loose:
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
        recoded = kind in _NUMBERS and all(isinstance(c, str | bytes) for c in classes)
        if recoded or (kind == "U" and not any(text)):
            raise ValueError(
                f"labels have dtype {self._values.dtype}, which classes cannot match; "  # type: ignore[union-attr]
                f"pass classes like them{RECODED if recoded else ''}"
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


def _read_days(cells: list[Any], marks: Lookup) -> tuple[Floats, Booleans]:
    """Read cells as dates, each by itself, and say which are missing."""
    days, missing = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=np.bool_)
    for i, cell in enumerate(cells):
        read = None if marks.code(cell) != UNKNOWN else day(cell)
        if read is not None:
            days[i] = read
        missing[i] = read != read if read is not None else marks.code(cell) != UNKNOWN
    return days, missing


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


_SWAPPED: Final[dict[Any, Any]] = {str: str.maketrans(",.", ".,"), bytes: bytes.maketrans(b",.", b".,")}


class CommaColumn(Column):
    """Text with decimal commas. Points are swapped with them, so that one for thousands makes no number."""

    def floats(self, part: slice) -> Floats:
        """Read cells as numbers; what is none becomes NaN."""
        cells = self.cells()[part]
        return numbers([cell.translate(_SWAPPED[type(cell)]) if type(cell) in (str, bytes) else cell for cell in cells])


class DictionaryColumn(Column):
    """Text by number: each different text once, and which of them a cell is.

    A label is looked up once for each text; what a cell becomes depends on its text alone.
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

    def days(self, marks: Lookup) -> tuple[Floats, Booleans]:
        """Read all cells as dates, each text once."""
        days, missing = _read_days(self._texts, marks)
        return days[self._places], missing[self._places]


class DateColumn(Column):
    """Cells whose declared type says that they are dates or times, NumPy's; ``said`` is why they are nothing else."""

    def __init__(self, values: npt.NDArray[Any], said: str) -> None:
        super().__init__(values)
        self._said = said

    def taken(self, places: npt.NDArray[np.intp]) -> Self:
        """Return the cells at some places."""
        return type(self)(self._values[places], self._said)

    def days(self, marks: Lookup) -> tuple[Floats, Booleans]:
        """Return days since 1970, and which are missing."""
        found = days_of_array(np.asarray(self._values))
        return found, np.isnan(found)

    def undecoded(self, among: Booleans) -> Booleans:
        """None is text."""
        return np.zeros(len(among), dtype=np.bool_)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Complain about whoever takes them for anything else; by their declared type, which is public."""
        raise ValueError(self._said)

    cells = array = floats = numbers = codes = signs = distinct = not_numbers = written = refuse


class ParsedColumn(Column):
    """Text that a reader has parsed as numbers: finite ones, or empty cells."""

    def _absent(self, nan: Booleans, marks: Lookup) -> Booleans:
        empty = np.zeros_like(nan) if self._missing is None else self._missing
        return empty & (marks.code("") != UNKNOWN)


class RawRows:
    """The cells of a table of n rows and so many columns, which may have names.

    ``counted`` says whether the number of columns is that of most rows of a list, because nobody stated it.
    """

    def __init__(self, n: int, width: int, *, names: list[Any] | None = None, counted: bool = False) -> None:
        self.n, self.width, self.names, self.counted = n, width, names, counted

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, width={self.width})"

    def floats(self, part: slice) -> Floats:
        """Read rows as numbers; what is none becomes NaN."""
        raise NotImplementedError

    def not_numbers(self) -> npt.NDArray[np.int64]:
        """Count, by column, cells that are neither numbers nor missing."""
        raise NotImplementedError


class ArrayRows(RawRows):
    """An array with two dimensions."""

    def __init__(self, values: npt.NDArray[Any], missing: Booleans | None = None, *, counted: bool = False) -> None:
        super().__init__(*values.shape, counted=counted)
        self._values, self._missing = values, missing

    def floats(self, part: slice) -> Floats:
        """Read rows as numbers; what is none becomes NaN."""
        return read_floats(self._values[part], None if self._missing is None else self._missing[part])

    def not_numbers(self) -> npt.NDArray[np.int64]:
        """Count, by column, cells that are neither numbers nor missing."""
        return np.asarray(which_not_numbers(self._values).sum(axis=0), dtype=np.int64)

    @classmethod
    def listed(cls, rows: list[Any], width: int, *, counted: bool) -> ArrayRows:
        """Return rows of a list, each a list, a tuple or an array with one dimension.

        A row of another kind is a row of missing cells. A shorter one lacks its last cells, a longer one is cut.
        """
        flat: list[Any] = []
        for row in rows:
            cells = cells_of_row(row, width) or ()
            flat += cells
            flat += [None] * (width - len(cells))
        values = np.fromiter(flat, dtype=object, count=len(flat))
        return cls(values.reshape(len(rows), width), counted=counted)


class Columns(RawRows):
    """Columns of a frame, each with a type of its own."""

    def __init__(self, columns: Sequence[Column], n: int, names: list[Any]) -> None:
        super().__init__(n, len(columns), names=names)
        self.in_order = columns

    def floats(self, part: slice) -> Floats:
        """Read rows as numbers; what is none becomes NaN."""
        return np.column_stack([column.floats(part) for column in self.in_order])

    def not_numbers(self) -> npt.NDArray[np.int64]:
        """Count, by column, cells that are neither numbers nor missing."""
        return np.array([column.not_numbers() for column in self.in_order], dtype=np.int64)


def cells_of_row(row: Any, limit: int | None = None) -> list[Any] | tuple[Any, ...] | None:
    """Return the first cells of a row from a list, None if it is no row; what a subclass overrides is not called.

    Examples
    --------
    >>> cells_of_row([1, "x"]), cells_of_row(np.arange(3), 2), cells_of_row("no row")
    ([1, 'x'], [0, 1], None)
    """
    kind = type(row)
    if issubclass(kind, list):
        return list.__getitem__(row, slice(limit))
    if issubclass(kind, tuple):
        return tuple.__getitem__(row, slice(limit))
    return row[:limit].tolist() if kind is np.ndarray and row.ndim == 1 else None


class NamedColumns:
    """Raw columns of n rows, by name.

    ``uneven`` are rows, from 0, whose line in a CSV file has another number of cells than the first line has names.
    """

    def __init__(self, columns: Mapping[str, Column], n: int, uneven: Sequence[int] = ()) -> None:
        self.columns, self.n, self.uneven = dict(columns), n, uneven

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def taken(self, places: npt.NDArray[np.intp]) -> NamedColumns:
        """Return the rows at some places, in that order, some of them more than once perhaps."""
        return NamedColumns({name: column.taken(places) for name, column in self.columns.items()}, len(places))

    def __repr__(self) -> str:
        return f"NamedColumns(n={self.n}, names={list(self.columns)})"


class FirstLine(list[str]):
    """The first line of a CSV file, which is taken for the names of its columns."""

    @property
    def doubtful(self) -> str:
        """Why it may be a row, in words that quote nothing of it, or nothing."""
        plain = [name.strip() for name in self if name.strip()]
        if len(set(plain)) == len(plain) and all(number(name) is None for name in plain):
            return ""
        return "its first line does not look like names (a number is there, or one twice); is a header missing?"


def places_of(there: Sequence[Any], wanted: Sequence[str], file: Path | None = None) -> dict[str, int]:
    """Say where each column is, after complaining about those that are not there or there twice.

    A file is named where a table has several.
    """
    plain = [str(name).strip() for name in there]
    places, many = {name: j for j, name in enumerate(plain)}, Counter(plain)
    for name in wanted:
        if many[name] != 1:
            if name in many:
                raise ValueError(f"there are {many[name]} columns {name!r} in {file or 'the table'}; rename them")
            hint = getattr(there, "doubtful", "") or suggestion(name, plain)
            if file is not None:
                raise ValueError(f"{file} has no column {name!r}; {hint}")
            raise ValueError(f"there is no column {name!r} in the table; {hint}")
    return {name: places[name] for name in wanted}


def suggestion(key: Any, known: Sequence[str]) -> str:
    """Say what may have been meant; long names are not compared, which takes time in the square of their length."""
    short = [name for name in known if len(name) <= _LONG]
    near = difflib.get_close_matches(str(key), short, n=1) if len(str(key)) <= _LONG else []
    return f"did you mean {near[0]!r}?" if near else f"known are {listed(known, 20)}"
