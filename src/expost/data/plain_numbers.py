"""Many columns of plain numbers at once: bit for bit what column by column would give, several times as fast.

Columns are *plain* if they come as floats or integers of which none is missing or marked as such: nearly all of a large
table are. A column whose numbers all are within its bounds is scaled and rounded, some rows at a time. Others are put
side by side, a cache's worth of rows at a time, and bounded, scaled and rounded together; every operation is
elementwise. A column that turns out not to be plain is left to its own part. Rows that are held column by column
(:func:`expost.data.batches.room_for`) are written to where they stand; into others columns are turned by way of a
buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from expost.data.batches import by_column
from expost.data.bounds import Bounds

__all__ = ["PlainNumbers"]

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
