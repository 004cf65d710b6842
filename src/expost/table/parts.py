"""One column of a table as the columns of a row that it becomes: numbers in [−1, 1] or indicators, in fixed point.

A part is public. What it makes of a cell depends on that cell alone.

Many columns of plain numbers at once: bit for bit what column by column would give, several times as fast.

Columns are *plain* if they come as floats or integers of which none is missing or marked as such: nearly all of a large
table are. A column whose numbers all are within its bounds is scaled and rounded, some rows at a time. Others are put
side by side, a cache's worth of rows at a time, and bounded, scaled and rounded together; every operation is
elementwise. A column that turns out not to be plain is left to its own part. Rows that are held column by column
(:func:`expost.table.rows.room_for`) are written to where they stand; into others columns are turned by way of a
buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.table.bounds import Bounds
from expost.table.cells import MISSING, UNKNOWN, Lookup
from expost.table.columns import Column
from expost.table.kinds import BOOLEAN_WORDS, TRANSFORMS, Boolean, Categorical, Kind, Numeric
from expost.table.rows import ONE, by_column, clip_unit
from expost.table.tallies import Tally

Units = npt.NDArray[np.int32]

_MISSING = "(missing)"


@dataclass(frozen=True)
class Part:
    """What one column becomes.

    Attributes
    ----------
    name
        The column's.
    marks
        What stands for a missing cell.
    """

    name: str
    marks: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        raise NotImplementedError

    @property
    def counted_as(self) -> str:
        """What kind of cells its tally counts."""
        raise NotImplementedError

    @property
    def plain_bounds(self) -> tuple[float, float] | None:
        """Bounds of a column that is scaled as it stands; None for others."""
        return None

    @property
    def boxed(self) -> bool:
        """Whether it is one number and nothing else, to be put with others like it."""
        return len(self.names) == 1 and not isinstance(self, _CategoricalPart)

    def fill(self, column: Column, out: Units, unit: int) -> Tally:
        """Write the column's rows, where 1 is ``unit``, to zeros; returns counts, which are private."""
        raise NotImplementedError

    def unreadable(self, column: Column) -> npt.NDArray[np.bool_]:
        """Say which cells are neither missing nor what the column should hold; private, as they are."""
        raise NotImplementedError


@dataclass(frozen=True)
class _NumericPart(Part):
    kind: Numeric

    @property
    def counted_as(self) -> str:
        return "number"

    @property
    def plain_bounds(self) -> tuple[float, float] | None:
        low, high = self.kind.bounds
        return (float(low), float(high)) if self.kind.transform is None else None

    @property
    def names(self) -> tuple[str, ...]:
        name = self.name if self.kind.transform is None else f"{self.kind.transform}({self.name})"
        return (name, f"{self.name}={_MISSING}") if self.kind.missing == "indicator" else (name,)

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of what is scaled."""
        low, high = (self._one(end) for end in self.kind.bounds)
        return Bounds((low,), (high,))

    def _one(self, value: float) -> float:
        return value if self.kind.transform is None else TRANSFORMS[self.kind.transform][0](value)

    def fill(self, column: Column, out: Units, unit: int) -> Tally:
        values, missing = column.numbers(Lookup([self.marks]))
        low, high = self.kind.bounds
        gone = np.isnan(values)
        outside = (values < low) | (values > high)
        within = np.clip(values, low, high)
        if self.kind.transform is not None:
            # One by one: a vectorised logarithm may round an entry differently beside other neighbours.
            within = np.fromiter(map(self._one, within.tolist()), dtype=np.float64, count=len(within))
        scaled = self.bounds.scale(within)
        # |scaled| ≤ 1 and unit is an integer, so the product rounds to at most unit; the cast truncates toward zero.
        out[:, 0] = (np.where(gone, 0.0, scaled) * unit).astype(np.int32)
        if self.kind.missing == "indicator":
            out[gone, 1] = unit
        bad = gone & ~missing
        undecoded, gone_out = int(column.undecoded(bad).sum()), int(outside.sum())
        return Tally(
            self.name, "number", len(values), int(missing.sum()), int(bad.sum()), outside=gone_out, undecoded=undecoded
        )

    def unreadable(self, column: Column) -> npt.NDArray[np.bool_]:
        values, missing = column.numbers(Lookup([self.marks]))
        return np.isnan(values) & ~missing


@dataclass(frozen=True)
class _CategoricalPart(Part):
    kind: Categorical

    @property
    def counted_as(self) -> str:
        return "category"

    @property
    def names(self) -> tuple[str, ...]:
        shown = [str(value).lower() if isinstance(value, bool) else str(value) for value in self.kind.categories]
        extra = ["(other)"] * self.kind.other + [_MISSING] * (self.kind.missing == "indicator")
        return tuple(f"{self.name}={value}" for value in [*shown, *extra])

    def fill(self, column: Column, out: Units, unit: int) -> Tally:
        many = len(self.kind.categories)
        codes = column.codes(Lookup([*([value] for value in self.kind.categories), self.marks]))
        codes[codes == many] = MISSING
        # Which indicator is set for UNKNOWN, MISSING and each category; −1 for none.
        other = many if self.kind.other else -1
        absent = {"indicator": len(self.names) - 1, "other": other, "zero": -1}[self.kind.missing]
        place = np.array([other if self.kind.other else absent, absent, *range(many)])[codes - UNKNOWN]
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = unit
        unknown = int((codes == UNKNOWN).sum())
        missing = int((codes == MISSING).sum())
        undecoded = int(column.undecoded(codes == UNKNOWN).sum())
        if self.kind.other:
            return Tally(self.name, "category", len(codes), missing, 0, other=unknown, undecoded=undecoded)
        return Tally(self.name, "category", len(codes), missing, unknown, undecoded=undecoded)

    def unreadable(self, column: Column) -> npt.NDArray[np.bool_]:
        unknown = column.codes(Lookup([*([value] for value in self.kind.categories), self.marks])) == UNKNOWN
        return column.undecoded(unknown) if self.kind.other else np.asarray(unknown)


@dataclass(frozen=True)
class _BooleanPart(Part):
    kind: Boolean

    @property
    def counted_as(self) -> str:
        return "boolean"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}={_MISSING}") if self.kind.missing == "indicator" else (self.name,)

    def fill(self, column: Column, out: Units, unit: int) -> Tally:
        codes = column.codes(Lookup([*BOOLEAN_WORDS, self.marks], fold=True))
        codes[codes == 2] = MISSING
        out[codes == 1, 0] = unit
        if self.kind.missing == "indicator":
            out[codes < 0, 1] = unit
        else:
            out[codes < 0, 0] = unit // 2
        missing, unknown = int((codes == MISSING).sum()), int((codes == UNKNOWN).sum())
        undecoded = int(column.undecoded(codes == UNKNOWN).sum())
        return Tally(self.name, "boolean", len(codes), missing, unknown, undecoded=undecoded)

    def unreadable(self, column: Column) -> npt.NDArray[np.bool_]:
        return np.asarray(column.codes(Lookup([*BOOLEAN_WORDS, self.marks], fold=True)) == UNKNOWN)


def part_of(name: str, kind: Kind, marks: tuple[Any, ...]) -> Part:
    """Return what a column becomes.

    Examples
    --------
    >>> part_of("sex", Categorical(["F", "M"], other=True), ("",)).names
    ('sex=F', 'sex=M', 'sex=(other)', 'sex=(missing)')
    """
    if isinstance(kind, Numeric):
        return _NumericPart(name, marks, kind)
    return _CategoricalPart(name, marks, kind) if isinstance(kind, Categorical) else _BooleanPart(name, marks, kind)


def read_target(
    name: str,
    column: Column,
    classes: tuple[Any, Any] | None,
    bounds: tuple[float, float] | None,
    marks: tuple[Any, ...],
) -> tuple[Units, Tally]:
    """Return the target in fixed point, and counts, which are private.

    What is in neither class counts as the negative one, what is no number goes to the middle of the bounds.
    """
    if classes is not None:
        codes = column.codes(Lookup([[classes[0]], [classes[1]], marks]))
        codes[codes == 2] = MISSING
        negative, positive, missing, unknown = (int((codes == code).sum()) for code in (0, 1, MISSING, UNKNOWN))
        undecoded = int(column.undecoded(codes == UNKNOWN).sum())
        tally = Tally(name, "class", len(codes), missing, unknown, undecoded=undecoded, classes=(negative, positive))
        return np.where(codes == 1, ONE, -ONE).astype(np.int32), tally
    assert bounds is not None
    values, gone = column.numbers(Lookup([marks]))
    low, high = bounds
    nan = np.isnan(values)
    scaled = Bounds((low,), (high,)).scale(values)
    bad = nan & ~gone
    outside, undecoded = int(((values < low) | (values > high)).sum()), int(column.undecoded(bad).sum())
    tally = Tally(name, "number", len(values), int(gone.sum()), int(bad.sum()), outside=outside, undecoded=undecoded)
    return clip_unit(np.where(nan, 0.0, scaled)).astype(np.int32), tally


def middle_and_half(part: Part) -> tuple[float, float]:
    """Return what is taken off the first of a part's columns and what it is divided by then.

    Examples
    --------
    >>> middle_and_half(part_of("age", Numeric((0, 100)), ()))
    (50.0, 50.0)
    """
    if not isinstance(part, _NumericPart):
        return 0.0, 1.0
    return float(part.bounds.center[0]), float(part.bounds.half_range[0])


def unit_for(square: int) -> int:
    """Return ⌊2²⁰/√B⌋, exactly.

    Examples
    --------
    >>> unit_for(4) == ONE // 2
    True
    """
    return math.isqrt(ONE * ONE // square)


Floats = npt.NDArray[np.float64]

_CELLS = 1 << 16
_ROWS = 1 << 15


class PlainNumbers:
    """Bounds of several columns, and what is missing in each.

    Parameters
    ----------
    bounds : Bounds
        Of the columns.
    marks : sequence of float
        Numbers that stand for a missing cell.

    Examples
    --------
    >>> plain = PlainNumbers(Bounds((0.0, 0.0), (10.0, 1.0)), [])
    >>> out = np.zeros((2, 2), dtype=np.int32)
    >>> outside, dirty = plain.fill([np.array([5.0, 20.0]), np.array([1.0, np.nan])], [0, 1], out, 1000)
    >>> out[:, 0].tolist(), outside.tolist(), dirty.tolist()
    ([0, 1000], [1, 1], [False, True])
    """

    def __init__(self, bounds: Bounds, marks: Sequence[float]) -> None:
        self._low, self._high = (np.array(ends)[:, None] for ends in (bounds.lower, bounds.upper))
        self._center, self._half = bounds.center[:, None], bounds.half_range[:, None]
        self._marks = list(marks)
        ends = np.array([(end - self._center) / self._half for end in (self._low, self._high)])
        # Rounding is monotone: if the ends of a column are scaled to within [−1, 1], so is everything between.
        self._narrow = bool((np.abs(ends) > 1.0).any())

    @np.errstate(all="ignore")  # a warning would tell of a cell
    def fill(
        self, columns: Sequence[Floats], places: Sequence[int], out: npt.NDArray[np.int32], unit: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Write columns to their places, where 1 is ``unit``; returns numbers beyond bounds, and who is not plain."""
        many = len(columns)
        outside, dirty = np.zeros(many, np.int64), np.zeros(many, np.bool_)
        if not many or not len(out):
            return outside, dirty
        within = np.array([self._within(column, j) for j, column in enumerate(columns)])
        for some, fill in ((np.flatnonzero(within), self._scaled), (np.flatnonzero(~within), self._bounded)):
            if some.size:
                found = fill([columns[int(j)] for j in some], some, [places[int(j)] for j in some], out, unit)
                if found is not None:
                    outside[some], dirty[some] = found
        return outside, dirty

    def all_within(self, columns: Sequence[Floats]) -> bool:
        """Whether no number is missing or beyond its bounds."""
        return all(self._within(column, j) for j, column in enumerate(columns))

    def _within(self, column: Floats, j: int) -> bool:
        """Whether nothing has to be done to a column but scaling."""
        least, most = column.min(initial=math.inf), column.max(initial=-math.inf)
        if not (self._low[j, 0] <= least and most <= self._high[j, 0]):  # as it is with NaN
            return False
        return not any(least <= mark <= most and (column == mark).any() for mark in self._marks)

    def _scaled(
        self,
        columns: Sequence[Floats],
        which: npt.NDArray[np.intp],
        places: Sequence[int],
        out: npt.NDArray[np.int32],
        unit: float,
    ) -> None:
        """Write columns within their bounds."""
        room = np.empty(min(len(out), _ROWS))
        straight = by_column(out)
        ints = np.empty((0 if straight else len(columns), len(room)), dtype=np.int32)
        target = _together(places)
        for start in range(0, len(out), _ROWS):
            some = slice(start, min(start + _ROWS, len(out)))
            size = some.stop - start
            made = room[:size]
            for i, j in enumerate(which):
                np.subtract(columns[i][some], self._center[j, 0], out=made)
                np.divide(made, self._half[j, 0], out=made)
                if self._narrow:
                    np.clip(made, -1.0, 1.0, out=made)
                np.multiply(made, unit, out=made)
                if straight:
                    out[some, places[i]] = made  # the cast truncates toward zero
                else:
                    ints[i, :size] = made
            if not straight:
                out[some, target] = ints[:, :size].T

    def _bounded(
        self,
        columns: Sequence[Floats],
        which: npt.NDArray[np.intp],
        places: Sequence[int],
        out: npt.NDArray[np.int32],
        unit: float,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Write columns with numbers beyond their bounds, or missing ones, and say how many there are."""
        many, n = len(columns), len(out)
        low, high, center, half = (ends[which] for ends in (self._low, self._high, self._center, self._half))
        outside, dirty = np.zeros(many, np.int64), np.zeros(many, np.bool_)
        rows = max(256, _CELLS // many)
        raw, made = np.empty((many, rows)), np.empty((many, rows))
        target = _together(places)
        for start in range(0, n, rows):
            size = min(rows, n - start)
            values, within = raw[:, :size], made[:, :size]
            for j, column in enumerate(columns):
                values[j] = column[start : start + size]
            np.clip(values, low, high, out=within)
            changed = np.count_nonzero(values != within, axis=1)  # NaN is not equal to itself
            if changed.any():
                outside += changed
                some = np.flatnonzero(changed)
                dirty[some] |= np.isnan(values[some]).any(axis=1)
            for mark in self._marks:
                dirty |= (values == mark).any(axis=1)
            within -= center
            within /= half
            if self._narrow:
                np.clip(within, -1.0, 1.0, out=within)
            within *= unit
            # |within| ≤ unit (an integer), and the cast truncates toward zero; NaN is written again by its own part
            out[start : start + size, target] = within.astype(np.int32).T
        return outside, dirty


def _together(places: Sequence[int]) -> slice | list[int]:
    """Return places as a slice if they are one after the other, which is faster."""
    first, last = places[0], places[-1]
    return slice(first, last + 1) if list(places) == list(range(first, last + 1)) else list(places)
