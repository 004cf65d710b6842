"""Rows as the rest of the library sees them: bounded, in fixed point, and private.

Whoever holds a :class:`Rows` may rely on ‖x‖ ≤ 1, in the norm it names, and |y| ≤ 1 holding exactly for each row, and
on whatever else it declares; every sensitivity in the library starts from that. The object refuses the usual ways
private values escape: it prints no value and cannot be pickled.

*Fixed point.* Numbers are whole multiples of 2⁻²⁰, so that norms, clips and sums are exact. A float norm depends on the
order of summation, and a bound that holds "up to rounding" is no sensitivity bound. So rows are truncated to integers
*first* and clipped *afterwards, in integers*: the norm the privacy proof relies on then holds exactly (theory B3).
Products of two such numbers are multiples of 2⁻⁴⁰.

*Sources.* Everything the searches need is a sum over rows: XᵀX, gradients, error counts. So a data set is a
:class:`RowSource`, which says publicly how many rows there are and in what shape, has parts that can be read by
themselves (a slice of an array, a row group of a file), and reads a part batch by batch. Nothing ever asks for all rows
at once, and sums are exact integers (:mod:`expost.solve.row_sums`), so no result depends on how the rows were cut into
batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

FRACTION_BITS = 20
"""Binary digits after the point."""

ONE = 1 << FRACTION_BITS
"""The number 1 in fixed-point units."""

_REACH_BITS = 22  # |x| ≤ 2²² is at most 2⁴² units, and that times ONE still fits in int64
_MAX_UNITS = 1 << (_REACH_BITS + FRACTION_BITS)

MAX_COLUMNS = (1 << 63) // _MAX_UNITS - 1
"""Most columns whose largest possible ℓ₁ norm, p · 2⁴², still fits in int64."""


def to_fixed_point(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Truncate rows of finite values toward zero to multiples of 2⁻²⁰: units, none larger than 2⁴² in size.

    A row with an entry beyond 2²² in size is first multiplied by the power of two that brings its largest entry into
    [2²¹, 2²²). Its ℓ₁ norm is beyond 1 before and after, so the clip that follows sends it in the same direction. A
    row's result depends on that row only.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        # One dimension could mean one row or one column, and the scaling above must never couple two rows.
        raise ValueError("x must have two dimensions, rows and columns")
    largest = np.max(np.abs(x), axis=1, initial=0.0)
    if not np.isfinite(largest).all():
        raise ValueError("x must be finite; replace NaN and infinite values before converting to fixed point")
    _, exponent = np.frexp(largest)
    shift = np.where(largest > 2.0**_REACH_BITS, _REACH_BITS - exponent, 0) + FRACTION_BITS
    with np.errstate(under="ignore"):  # what underflows is far below one unit and truncates to zero
        scaled = np.ldexp(x, shift[:, np.newaxis])
    units: npt.NDArray[np.int64] = scaled.astype(np.int64)  # the cast truncates toward zero
    return units


def clip_l1(x: npt.NDArray[np.int64], bound: int = ONE) -> npt.NDArray[np.int64]:
    """Shrink rows whose ℓ₁ norm exceeds a bound, in integers, so that the bound holds exactly.

    Parameters
    ----------
    x : ndarray of int64, shape (n, p)
        Fixed-point units, at most 2⁴² in size.
    bound : int, default=ONE
        Largest norm allowed, in the same units, between 0 and ONE.

    Returns
    -------
    ndarray of int64, shape (n, p)
        Rows within the bound as they were; other rows times bound / ⌈norm⌉, truncated toward zero.

    Examples
    --------
    >>> import numpy as np
    >>> clip_l1(np.array([[3, 0], [30, -10]]), bound=10)
    array([[ 3,  0],
           [ 7, -2]])
    """
    x = np.asarray(x)
    _check_units(x, bound)
    norm = np.abs(x).sum(axis=1)
    clipped, over = x.copy(), norm > bound
    wide = x[over]
    # Floors of non-negative parts: Σⱼ ⌊|xⱼ|·bound/norm⌋ ≤ bound; products stay below 2⁴² · 2²⁰ = 2⁶².
    clipped[over] = np.sign(wide) * (np.abs(wide) * bound // norm[over, np.newaxis])
    return clipped


def _check_units(x: npt.NDArray[np.int64], bound: int) -> None:
    if not 0 <= bound <= ONE:
        raise ValueError(f"bound must lie between 0 and {ONE} units")
    if x.ndim != 2 or x.dtype != np.int64:
        raise ValueError("x must be an int64 array with two dimensions, rows and columns")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"{x.shape[1]} columns are too many: row norms are exact in 64 bits up to {MAX_COLUMNS} columns"
        )
    if x.size and (x.max() > _MAX_UNITS or x.min() < -_MAX_UNITS):
        raise ValueError("x has entries beyond 2**42 units; make it with to_fixed_point")


Norm = Literal["l1", "l2"]
#: Number of columns, norm and radius (in units of 2⁻²⁰) of each block that rows are made of.
Shape = tuple[tuple[int, Literal["box", "l1"], int], ...]

_CHECK_ROWS = 65_536  # the check works on slices, so that it needs no second copy of the data


class PrivateRows:
    """Whatever holds rows: it cannot leave the process by accident."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")


@dataclass(frozen=True, eq=False, repr=False)
class Rows(PrivateRows):
    """Private rows in fixed-point units of 2⁻²⁰.

    Parameters
    ----------
    x : ndarray of int32, shape (n, p)
        Features; the norm of every row is at most ONE.
    y : ndarray of int32, shape (n,)
        Targets, or labels as −ONE and +ONE; at most ONE in size.
    norm : {"l1", "l2"}, default="l1"
        Which norm that is. ‖x‖₁ ≤ 1 says more than ‖x‖₂ ≤ 1: what needs only the latter takes either.
    shape : tuple of (int, "box" or "l1", int), optional
        Blocks of columns, in order, none longer than its radius.
    longest : float, default=1
        No row has a larger Euclidean norm.
    constant : (int, int), optional
        A column that is the same in every row, and its value.

    Notes
    -----
    The arrays are kept read-only, as copies where somebody could still write to them, so that what was checked is what
    is used (:func:`given_up` spares the copy). Mechanisms go by what is declared
    and never by the rows: all of it is checked here, and holds for the rows next door as well.

    Examples
    --------
    >>> import numpy as np
    >>> Rows(np.array([[ONE, 0]], dtype=np.int32), np.array([-ONE], dtype=np.int32))
    Rows(n=1, p=2)
    """

    x: npt.NDArray[np.int32]
    y: npt.NDArray[np.int32]
    norm: Norm = "l1"
    shape: Shape | None = None
    longest: float = 1.0
    constant: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, ndim in (("x", 2), ("y", 1)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int32 or array.ndim != ndim:
                raise ValueError(f"{name} must be an int32 array with {ndim} dimension(s), in fixed point")
            kept = given_up(array.copy(order="K")) if any(each.flags.writeable for each in _bases(array)) else array
            object.__setattr__(self, name, kept.view())
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} rows and y has {len(self.y)}; they must be as many")
        if self.shape is not None and sum(size for size, _, _ in self.shape) != self.p:
            raise ValueError(f"the blocks of a shape are all {self.p} columns together")
        wide, undeclared = 0, False
        for start in range(0, self.n, _CHECK_ROWS):
            # 64 bits: |−2³¹| is not an int32, and p entries may add up to more than 2³¹.
            part = self.x[start : start + _CHECK_ROWS].astype(np.int64)
            wide += int(np.count_nonzero(_too_long(part, self.norm, ONE)))
            undeclared |= any(_too_long(part[:, some], norm, most).any() for some, norm, most in self._within())
            undeclared |= self.constant is not None and bool((part[:, self.constant[0]] != self.constant[1]).any())
        if wide:
            name = {"l1": "ℓ₁", "l2": "ℓ₂"}[self.norm]
            raise ValueError(f"{wide} row(s) have an {name} norm above 1; shorten them, or let a recipe make rows")
        if undeclared:
            raise ValueError("rows are not what they are declared to be, in shape, length or constant")
        beyond = int(np.count_nonzero((self.y > ONE) | (self.y < -ONE)))
        if beyond:
            raise ValueError(f"{beyond} target(s) lie outside [-1, 1]; move them into it, or let a recipe make rows")

    def _within(self) -> Iterator[tuple[slice, str, float]]:
        """Yield columns, a norm and what it is at most, beyond the norm of whole rows."""
        place = 0
        for size, norm, unit in self.shape or ():
            yield slice(place, place + size), norm, unit
            place += size
        if self.longest < 1.0:
            yield slice(None), "l2", self.longest * ONE

    @property
    def n(self) -> int:
        """Number of rows, which is public."""
        return int(self.x.shape[0])

    @property
    def p(self) -> int:
        """Number of columns, including the constant column if there is one."""
        return int(self.x.shape[1])

    def __repr__(self) -> str:
        return f"Rows(n={self.n}, p={self.p})"


def given_up(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return an array that nobody will write to any more: neither it nor what it is a view of can be written to."""
    for each in _bases(array):
        each.flags.writeable = False
    return array


def _bases(array: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield an array, what it is a view of, and so forth."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def declared(rows: Any) -> dict[str, Any]:
    """Return what rows, or a source of them, declare of every row: for those that are made of them."""
    return {name: getattr(rows, name) for name in ("norm", "shape", "longest", "constant")}


def _too_long(part: npt.NDArray[np.int64], norm: str, most: float) -> npt.NDArray[np.bool_]:
    if norm == "l1":
        return np.asarray(np.abs(part).sum(axis=1) > most)
    beyond = np.asarray((np.abs(part) > most).any(axis=1))  # whose squares might not add up in 64 bits
    if norm == "box":
        return beyond
    square = np.where(np.asarray(beyond)[:, None], 0, part)
    return np.asarray(beyond | ((square * square).sum(axis=1) > most * most))


_SLICE = 1 << 16  # rows of a part of an array
_CELLS = 1 << 21  # cells of it, if rows are long
_THIN = 16  # one entry in so many is not zero, or fewer: sparse products are faster
_THIN_COLUMNS = 128  # and there are at least so many columns
_DIGIT = 11  # counts are written in digits of so many bits, see ``digits``


@dataclass(frozen=True, eq=False, repr=False)
class Batch(PrivateRows):
    """Some private rows in fixed point, each perhaps standing for several that are equal.

    Attributes
    ----------
    x, y
        As in :class:`~expost.table.rows.Rows`; x row by row or, as tables have it, column by column.
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
        """Yield the rows themselves, each as often as it counts, at most so many at a time; without counts of cells."""
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


class RowSource(ABC):
    """Private rows that are read batch by batch, as often as they are asked for.

    Attributes
    ----------
    n, p
        Number of rows and of columns; public.
    norm, shape, longest, constant
        What :class:`Rows` would declare; here it holds by how they are made.
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


class MemorySource(PrivateRows, RowSource):
    """Rows in memory; those that are equal are worked on once.

    Parameters
    ----------
    rows, counts
        The rows, and how many each stands for.
    sparse
        Whether whoever works on them can do with sparse rows, where that is faster: where at most one entry in 16 is
        not zero, as where most columns are indicators.
    """

    effort = 1.0

    def __init__(self, rows: Rows, counts: npt.NDArray[np.float64] | None = None, *, sparse: bool = False) -> None:
        self.n, self.p = rows.n if counts is None else int(counts.sum()), rows.p
        vars(self).update(declared(rows))
        self._batches = [Batch(rows.x, rows.y)] if counts is None else list(digits(rows.x, rows.y, counts))
        if sparse:
            self._batches = [thinned(batch) for batch in self._batches]

    def mapped(self, change: Callable[[Batch], Batch], p: int, declares: dict[str, Any]) -> MemorySource:
        """Return the same rows, each changed by itself into one of p columns of which all that is declared holds."""
        made = MemorySource.__new__(MemorySource)
        made.n, made.p, made.engine = self.n, p, self.engine
        vars(made).update({"longest": 1.0, **declares})
        made._batches = [change(batch) for batch in self._batches]
        return made

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
    """Return an array for n rows of p columns, held column by column or row by row."""
    return np.empty((p, n), dtype).T if columns else np.empty((n, p), dtype)


def by_column(x: npt.NDArray[Any]) -> bool:
    """Say whether cells of a column, not of a row, stand beside each other."""
    return abs(x.strides[0]) < abs(x.strides[1])


def as_source(rows: Rows | RowSource) -> RowSource:
    """Return a source, whatever rows came as."""
    return rows if isinstance(rows, RowSource) else MemorySource(rows)
