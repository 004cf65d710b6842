"""Exact sums over fixed-point rows: XᵀX, Xᵀy, Σy² and Σy as integers, the same to the bit however added up.

Rows are integers in units of 2⁻²⁰ with integer ℓ₁ norm at most 2²⁰, so every product is an integer below
2⁴⁰ in units of 2⁻⁴⁰, and a sum over at most 8192 rows is below 2⁵³: float64 holds each partial sum exactly,
in any order of summation, so a BLAS product over such a chunk is exact (theory B3). Chunks are then added
as integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from expost.numeric import AnyArray, FloatArray, IntegerArray, Private
from expost.passes.engine import LocalEngine, Totals, add_totals
from expost.table.rows import Batch, Norm, Rows, RowSource, Shape, as_source, by_column, declared, room_for
from expost.table.streamed import StreamedSource

#: One, in the units rows are stored in.
ROW_UNIT = 2**20
#: One, in the units sums of products are stored in.
SUM_UNIT = 2**40
#: Largest number of rows whose float64 sum of products is exact: 8192 · 2⁴⁰ = 2⁵³.
MAX_CHUNK = 8192
#: Totals stay int64 while n · 2⁴⁰ is below this; a margin of two over the int64 range.
INT64_LIMIT = 2**62
#: Of chunks that stay in cache together, and how many of them: threads that call NumPy for little work wait for each
#: other.
_CELLS, _CHUNKS = 2**19, 8


@dataclass(frozen=True, eq=False, repr=False)
class Sums(Private):
    """XᵀX, Xᵀy and Σy² over n rows as exact integers in units of 2⁻⁴⁰. Private: not pickled, not printed.

    Arrays are int64 while n·2⁴⁰ < 2⁶², Python integers (object dtype) beyond: the dtype depends on n only. Σy, in units
    of 2⁻²⁰, is asked for by the best constant only, and sums made by hand may do without. What the rows declare is
    declared of their sums (:class:`~expost.table.rows.Rows`): mechanisms go by that.

    Examples
    --------
    >>> import numpy as np
    >>> one = Sums(1, 1, np.array([[2**40]]), np.array([-(2**40)]), 2**40)
    >>> (one + one).gram
    array([[2199023255552]])
    >>> one + one
    Sums(n=2, p=1)
    """

    n: int
    p: int
    gram: IntegerArray
    moment: IntegerArray
    target_square: int
    target_sum: int | None = None
    norm: Norm = "l1"
    shape: Shape | None = None
    longest: float = 1.0
    constant: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.n < 0 or self.p < 1:
            raise ValueError("sums need n >= 0 rows and p >= 1 features")
        if self.gram.shape != (self.p, self.p) or self.moment.shape != (self.p,):
            raise ValueError("gram must have shape (p, p) and moment shape (p,)")
        # One dtype for each n: otherwise the same sums could differ in their bits between two ways of adding.
        for name in ("gram", "moment"):
            array = _in_canonical_dtype(getattr(self, name), self.n)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "target_square", int(self.target_square))

    def __repr__(self) -> str:
        return f"Sums(n={self.n}, p={self.p})"

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over the union of two disjoint sets of rows."""
        if not isinstance(other, Sums):
            return NotImplemented
        if self.p != other.p:
            raise ValueError(f"cannot add sums over {self.p} and {other.p} features")
        n = self.n + other.n
        gram, moment = _in_canonical_dtype(self.gram, n), _in_canonical_dtype(self.moment, n)
        return Sums(
            n,
            self.p,
            cast(IntegerArray, gram + _in_canonical_dtype(other.gram, n)),
            cast(IntegerArray, moment + _in_canonical_dtype(other.moment, n)),
            self.target_square + other.target_square,
            None if self.target_sum is None or other.target_sum is None else self.target_sum + other.target_sum,
            norm="l1" if self.norm == other.norm == "l1" else "l2",
            shape=self.shape if self.shape == other.shape else None,
            longest=max(self.longest, other.longest),
            constant=self.constant if self.constant == other.constant else None,
        )

    def as_floats(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the means A = XᵀX/n, b = Xᵀy/n and c = Σy²/n in float64.

        Each entry is the exact rational number rounded once, so its error is at most 2⁻⁵³ times its size
        (and |A_ij|, |b_i|, c ≤ 1). Python divides integers of any length with correct rounding.
        """
        if self.n == 0:
            raise ValueError("no rows, so no means")
        scale = self.n * SUM_UNIT

        def mean(values: IntegerArray) -> FloatArray:
            flat = [value / scale for value in values.ravel().tolist()]
            return np.array(flat, dtype=np.float64).reshape(values.shape)

        return mean(self.gram), mean(self.moment), self.target_square / scale


@dataclass(frozen=True)
class ProductSums:
    """XᵀX, Xᵀy, Σy² and Σy of batches whose rows are within their bounds by how they were made; a pass."""

    #: What a row counts for whose label is negative, and whose is positive: it is (√w·x, √w·y), truncated towards zero.
    weights: tuple[float, float] = (1.0, 1.0)
    chunk_size = MAX_CHUNK
    effort = 4.0  # of a cell, in units of a gradient's

    def __call__(self, batch: Batch) -> Totals:
        """Return n, the products of (x, y) with itself, Σy, and counts of cells."""
        p, chunk = batch.x.shape[1], self.chunk_size
        size = max(256, min(_CHUNKS * chunk, _CELLS // (p + 1)))
        both = room_for(min(size, batch.rows), p + 1, columns=by_column(batch.x), dtype=np.float64)
        total: Totals = 0, np.zeros((p + 1, p + 1), np.int64), 0
        for piece in batch.pieces(size):
            some = both[: len(piece)]
            some[:, :p], some[:, p] = piece.x, piece.y
            if self.weights != (1.0, 1.0):
                negative, positive = np.sqrt(self.weights)
                np.trunc(some * np.where(piece.y > 0, positive, negative)[:, None], out=some)
            full = len(some) - len(some) % chunk
            chunks, rest = some[:full].reshape(-1, chunk, p + 1), some[full:]
            products = (chunks.transpose(0, 2, 1) @ chunks).astype(np.int64).sum(axis=0)
            products += (rest.T @ rest).astype(np.int64)  # below 2⁵⁷
            total = add_totals(total, (len(piece), products, int(some[:, p].sum())))
        return *total, 0 if batch.cells is None else batch.cells


def sums_over(rows: Rows | RowSource, weights: tuple[float, float] = (1.0, 1.0)) -> Sums:
    """Return the exact sums over rows, by one pass; of those that weights of labels make shorter, if there are some."""
    if not all(0.0 < weight <= 1.0 for weight in weights):
        raise ValueError("weights must be positive and at most 1: they make no row longer")
    source = as_source(rows)
    engine = LocalEngine() if source.engine is None else source.engine
    n, both, targets, cells = engine.total(source, ProductSums(weights))
    if isinstance(source, StreamedSource) and source.judge is not None:
        source.judge(cells, n)  # in the same pass: nothing has been drawn yet
        source.judge = None
    if n != source.n:
        raise ValueError("the table has another number of rows than when it was first looked at")
    return Sums(n, source.p, both[:-1, :-1].copy(), both[:-1, -1].copy(), both[-1, -1], targets, **declared(source))


def _in_canonical_dtype(values: AnyArray, n: int) -> IntegerArray:
    """Return integers as int64 if n rows cannot overflow it, as Python integers otherwise."""
    if values.dtype.kind not in "iO":
        raise TypeError("sums must be integers")
    if n * SUM_UNIT < INT64_LIMIT:
        return values.astype(np.int64)
    return values.astype(object)
