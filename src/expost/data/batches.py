"""The one door to private rows: a source yields batches, and whatever is computed is a sum over them.

Everything the searches need is a sum over rows: XᵀX, gradients, error counts. So a data set is a :class:`RowSource`,
which says publicly how many rows there are and in what shape, has parts that can be read by themselves (a slice of an
array, a row group of a file), and reads a part batch by batch. Nothing ever asks for all rows at once, and sums are
exact integers (:mod:`expost.erm.passes`), so no result depends on how the rows were cut into batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.rows import Norm, Rows, Shape, declared

__all__ = ["Batch", "MemorySource", "RowSource", "Shape", "as_source", "by_column", "room_for"]

_SLICE = 1 << 16  # rows of a part of an array
_CELLS = 1 << 21  # cells of it, if rows are long
_THIN = 16  # one entry in so many is not zero, or fewer: sparse products are faster
_THIN_COLUMNS = 128  # and there are at least so many columns
_DIGIT = 11  # counts are written in digits of so many bits, see ``digits``


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Some private rows in fixed point, each perhaps standing for several that are equal.

    Attributes
    ----------
    x, y
        As in :class:`~expost.data.rows.Rows`; x row by row or, as tables have it, column by column.
    counts
        How many rows each stands for: whole numbers below 2¹¹. None for one each.
    shift
        Counts are in units of 2^shift.
    cells
        Counts of cells that fit what is stated about them, by whoever made the rows; private too.
    uneven
        How many were lines of a CSV file with another number of cells than the first has; private too.
    """

    x: Any  # ndarray of int32; or a sparse array of float64, of the same integers
    y: npt.NDArray[np.int32]
    counts: npt.NDArray[np.float64] | None = None
    shift: int = 0
    cells: npt.NDArray[np.int64] | None = None
    uneven: int = 0

    def __len__(self) -> int:
        return len(self.y)

    @property
    def rows(self) -> int:
        """How many rows it stands for."""
        return len(self) if self.counts is None else int(self.counts.sum()) << self.shift

    def repeated(self) -> Batch:
        """Return the rows themselves, each as often as it counts."""
        if self.counts is None:
            return self
        often = self.counts.astype(np.int64) << self.shift
        return Batch(np.repeat(self.x, often, axis=0), np.repeat(self.y, often), cells=self.cells)

    def pieces(self, most: int) -> Iterator[Batch]:
        """Yield the rows themselves, each as often as it counts, at most so many at a time; without counts of cells.

        Examples
        --------
        >>> batch = Batch(np.array([[7], [8]], np.int32), np.zeros(2, np.int32), np.array([1.0, 4.0]))
        >>> [piece.x.ravel().tolist() for piece in batch.pieces(3)]
        [[7, 8, 8], [8, 8]]
        """
        often = np.ones(len(self), np.int64) if self.counts is None else self.counts.astype(np.int64) << self.shift
        ends = np.cumsum(often)
        for start in range(0, self.rows, most):
            stop = min(start + most, self.rows)
            first, last = np.searchsorted(ends, start, "right"), np.searchsorted(ends, stop, "left") + 1
            x, y = self.x[first:last], self.y[first:last]
            if self.counts is not None:
                times = np.minimum(ends[first:last], stop) - np.maximum(ends[first:last] - often[first:last], start)
                x, y = np.repeat(x, times, axis=0), np.repeat(y, times)
            yield Batch(x, y)

    def __repr__(self) -> str:
        return f"Batch(n={len(self)})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")


class RowSource(ABC):
    """Private rows that are read batch by batch, as often as they are asked for.

    Attributes
    ----------
    n, p
        Number of rows and of columns; public.
    norm
        Which norm of a row is at most 1.
    shape
        What is known about rows beyond that, by how they are made; None if nothing is.
    longest
        No row has a larger Euclidean norm, by how they are made.
    constant
        A column that is the same in every row by how they are made, and its value in units of 2⁻²⁰.
    """

    n: int
    p: int
    norm: Norm
    shape: Shape | None = None
    longest: float = 1.0
    constant: tuple[int, int] | None = None
    effort: float = 8.0  # of reading a cell, in units of adding up one that is in memory
    engine: Any = None  # who carries out passes; threads of this process if nobody else was stated

    @abstractmethod
    def parts(self) -> Sequence[Any]:
        """Return what can be read by itself, in a fixed order; public."""

    @abstractmethod
    def read(self, part: Any) -> Iterator[Batch]:
        """Yield the rows of a part."""

    def lent(self, part: Any) -> Iterator[Batch]:
        """Yield the rows of a part, each batch only until the next is asked for: it may stand where that will."""
        return self.read(part)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, p={self.p})"


class MemorySource(RowSource):
    """Rows in memory; those that are equal are worked on once.

    Parameters
    ----------
    rows, counts
        The rows, and how many each stands for.
    sparse
        Whether whoever works on them can do with sparse rows, where that is faster: where at most one entry in 16 is
        not zero, as where most columns are indicators.

    Examples
    --------
    >>> x = np.full((3, 1), 7, dtype=np.int32)
    >>> source = MemorySource(Rows(x, np.ones(3, dtype=np.int32)))
    >>> [len(batch) for part in source.parts() for batch in source.read(part)]
    [3]
    """

    effort = 1.0

    def __init__(self, rows: Rows, counts: npt.NDArray[np.float64] | None = None, *, sparse: bool = False) -> None:
        self.n, self.p = rows.n if counts is None else int(counts.sum()), rows.p
        vars(self).update(declared(rows))
        self._batches = [Batch(rows.x, rows.y)] if counts is None else list(digits(rows.x, rows.y, counts))
        if sparse:
            self._batches = [thinned(batch) for batch in self._batches]

    def parts(self) -> Sequence[tuple[int, int]]:
        """Return slices: which batch, and where in it."""
        return [(k, start) for k, batch in enumerate(self._batches) for start in range(0, len(batch), self._slice)]

    @property
    def _slice(self) -> int:
        return min(_SLICE, max(1 << 11, _CELLS // self.p))

    def read(self, part: tuple[int, int]) -> Iterator[Batch]:
        """Yield the slice."""
        batch, some = self._batches[part[0]], slice(part[1], part[1] + self._slice)
        counts = None if batch.counts is None else batch.counts[some]
        yield Batch(batch.x[some], batch.y[some], counts, batch.shift)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")


def digits(x: npt.NDArray[np.int32], y: npt.NDArray[np.int32], counts: npt.NDArray[np.float64]) -> Iterator[Batch]:
    """Yield rows with their counts written in digits of eleven bits, so that sums over few of them stay exact.

    Examples
    --------
    >>> x, y = np.zeros((2, 1), dtype=np.int32), np.zeros(2, dtype=np.int32)
    >>> [(batch.counts.tolist(), batch.shift) for batch in digits(x, y, np.array([3.0, 4097.0]))]
    [([3.0, 1.0], 0), ([2.0], 11)]
    """
    left, shift = counts.astype(np.int64), 0
    while left.any():
        digit = left & ((1 << _DIGIT) - 1)
        some = np.flatnonzero(digit)
        if some.size:
            yield Batch(x[some], y[some], digit[some].astype(np.float64), shift)
        left, shift = left >> _DIGIT, shift + _DIGIT


def thinned(batch: Batch) -> Batch:
    """Return rows without their zeros, as floats that are the same integers, where that makes products faster."""
    x = batch.x
    if x.shape[1] < _THIN_COLUMNS or not isinstance(x, np.ndarray) or np.count_nonzero(x) * _THIN > x.size:
        return batch
    from scipy import sparse  # as this is asked for by few

    return replace(batch, x=sparse.csr_array(x).astype(np.float64))


def room_for(n: int, p: int, *, columns: bool, dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    """Return an array for n rows of p columns, held column by column or row by row.

    Examples
    --------
    >>> made = room_for(5, 2, columns=True)
    >>> made.shape, by_column(made), by_column(made[:3]), by_column(room_for(5, 2, columns=False))
    ((5, 2), True, True, False)
    """
    return np.empty((p, n), dtype).T if columns else np.empty((n, p), dtype)


def by_column(x: npt.NDArray[Any]) -> bool:
    """Say whether cells of a column, not of a row, stand beside each other."""
    return abs(x.strides[0]) < abs(x.strides[1])


def as_source(rows: Rows | RowSource) -> RowSource:
    """Return a source, whatever rows came as."""
    return rows if isinstance(rows, RowSource) else MemorySource(rows)
