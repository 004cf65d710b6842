"""Batches cut into blocks, sums over them that are exact in float64, and what is found in blocks added up.

Rows are integers of at most 2²⁰. A group stands for at most 2¹¹ of them, so weights below 2²² have products with it
below 2⁵³. A block is up to sixteen groups, as many as a cache holds: two threads that call NumPy for little work spend
their time on handing the interpreter's lock to each other. Groups are added as 64-bit integers, and blocks as Python's.

*Grids on which predictions are exact in float64, whatever the order of summation.* Rows are multiples of 2⁻²⁰ with ‖x‖₁
≤ 1. Let θ be a multiple of a power of two g with ‖θ‖_∞ ≤ 2³³·g. Then every product and every partial sum of xᵀθ is a
multiple of 2⁻²⁰g of at most 2⁵³ such units: float64 holds it exactly, in any order and with or without fused
multiply-add. Under ‖x‖₂ ≤ 1 it takes ‖θ‖_∞ ≤ 2ᵇ·g, b = 33 − ⌈½log₂ p⌉, as ‖x‖₁ ≤ √p.

*Any θ* is the sum of two such vectors, the second on a grid finer by 2⁻ᵇ, and a rest of at most 2⁻²ᵇ‖θ‖_∞ a
coordinate. So xᵀθ is computed as the sum of two exact numbers, rounded once: the same bits on every machine, off by
(2⁻⁵³ + √p·2⁻²ᵇ)·‖θ‖₂ at most (:func:`prediction_rounding`).

*Rows that are equal* are worked on once: answers about many rows often come in few kinds. A pass over the rows then
costs as much as there are kinds. Nothing else changes: n stays the number of rows, and error bounds are those of n
rows, because how many kinds there are is private.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from expost.numeric import INFLATION, UNIT, FloatArray
from expost.passes.engine import Totals, joined
from expost.table.rows import FRACTION_BITS, ONE, Batch, Norm, Rows, by_column, room_for

_STEPS_BITS = 33  # 2²⁰ units of a row times 2³³ steps of θ is 2⁵³


def exact_bits(p: int, norm: Norm) -> int:
    """Return how many binary digits θ may have for predictions to be exact.

    Examples
    --------
    >>> exact_bits(100, "l1"), exact_bits(100, "l2"), exact_bits(5000, "l2")
    (33, 29, 26)
    """
    return _STEPS_BITS - (math.ceil(math.log2(max(1, p)) / 2) if norm == "l2" else 0)


def to_grid(theta: FloatArray, radius: float, *, norm: Norm = "l1") -> FloatArray:
    """Round θ with ‖θ‖_∞ ≤ radius to the public grid on which predictions are exact; a finer θ is never needed.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.abs(to_grid(np.array([0.1, -2.0]), 7.0) - [0.1, -2.0]).max()) < 1e-9
    True
    """
    bits = exact_bits(np.size(theta), norm)
    step = math.ldexp(1.0, math.frexp(radius * (1.0 + 1e-6))[1] - bits)
    steps = np.clip(np.rint(np.asarray(theta) / step), -(2.0**bits), 2.0**bits)
    return np.asarray(steps * step)


def exact_parts(theta: FloatArray) -> FloatArray:
    """Return θ as one or two columns, predictions of which are exact for rows with ‖x‖₂ ≤ 1.

    Examples
    --------
    >>> exact_parts(np.array([0.1, 0.5])).sum(axis=1).tolist()
    [0.1, 0.5]
    >>> exact_parts(np.array([0.25, 0.5])).shape
    (2, 1)
    """
    largest = float(np.abs(theta).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return np.asarray(theta, dtype=np.float64)[:, None]
    coarse = to_grid(theta, largest, norm="l2")
    rest = theta - coarse  # exact: what a number is rounded by has no more digits than the number
    if not rest.any():
        return coarse[:, None]
    step = math.ldexp(1.0, math.frexp(largest * (1.0 + 1e-6))[1] - exact_bits(theta.size, "l2"))
    return np.column_stack([coarse, to_grid(rest, 0.5 * step, norm="l2")])


def prediction_rounding(p: int) -> float:
    """Return r such that computed predictions are off by at most r·‖θ‖₂ for rows with ‖x‖₂ ≤ 1; p below 2²⁰.

    Examples
    --------
    >>> prediction_rounding(50) < 2e-16, prediction_rounding(5000) < 1e-13
    (True, True)
    """
    # |xᵀrest| ≤ ‖rest‖₂ ≤ √p·2^−2b·‖θ‖_∞, twice that for steps that are clipped at the end of the grid
    return INFLATION * (UNIT + 2.0 * math.sqrt(p) * 2.0 ** (-2 * exact_bits(p, "l2")))


#: Rows in a group: 2¹¹ · 2²² · 2²⁰ = 2⁵³.
GROUP = 1 << 11
_GROUPS = 16  # of a block
_CELLS = 1 << 20  # of a block, so that it stays in cache
_FLUSH = 1 << 4  # blocks below 2⁵⁷ that are added in 64 bits
_GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: multiples of it lie evenly modulo 2⁶⁴
_MIXED = 0xD6E8FEB86659FD93


def blocks(batch: Batch) -> Iterator[tuple[Any, FloatArray, FloatArray | None]]:
    """Yield x in units, y, and counts, of some rows; x only until the next is asked for.

    x is sparse if the batch's is; rows with counts, and sparse ones, stand for at most one group.
    """
    p, dense = batch.x.shape[1], isinstance(batch.x, np.ndarray)
    size = max(64, min(_GROUPS * GROUP, _CELLS // max(1, p))) if dense else GROUP
    size = size - size % GROUP or size
    room = room_for(min(size, len(batch)), p, columns=by_column(batch.x), dtype=np.float64) if dense else None
    for part in _slices(batch, size):
        counts = None if batch.counts is None else batch.counts[part]
        if room is None:
            x = batch.x[part]
        else:
            x = room[: min(part.stop, len(batch)) - part.start]
            np.copyto(x, batch.x[part])
        yield x, batch.y[part] / float(ONE), counts


def _slices(batch: Batch, size: int) -> Iterator[slice]:
    if batch.counts is None:
        yield from (slice(start, start + size) for start in range(0, len(batch), size))
        return
    before = np.concatenate([[0], np.cumsum(batch.counts.astype(np.int64))])
    start = 0
    while start < len(batch):
        stop = int(np.searchsorted(before, before[start] + GROUP, side="right")) - 1
        stop = max(start + 1, min(stop, start + size))
        yield slice(start, stop)
        start = stop


def folded(found: Iterator[Totals], shift: int) -> Totals:
    """Add the totals of blocks, arrays below 2⁵⁷ or Python's integers, and count them 2^shift times."""
    total: Totals | None = None
    recent: Totals | None = None
    for k, block in enumerate(found, start=1):
        recent = block if recent is None else tuple(a + b for a, b in zip(recent, block, strict=True))
        if k % _FLUSH == 0:
            total, recent = joined((total, recent)), None
    total = joined((total, recent))
    assert total is not None
    if not shift:
        return total
    return tuple((value.astype(object) if isinstance(value, np.ndarray) else value) << shift for value in total)


def whole(values: FloatArray) -> Any:
    """Return numbers that are whole as integers."""
    return values.astype(np.int64)


def scaled_rows(x: Any, scales: FloatArray) -> Any:
    """Return rows times a number each, rounded to integers; x itself may be overwritten."""
    if isinstance(x, np.ndarray):
        x *= scales[:, None]
        return np.rint(x, out=x)
    made = x.multiply(scales[:, None]).tocsr()
    np.rint(made.data, out=made.data)
    return made


def gram(z: Any, counts: FloatArray | None) -> Any:
    """Return zᵀz, each row as often as it counts, as integers."""
    if not isinstance(z, np.ndarray):
        return whole((z.T @ (z if counts is None else z.multiply(counts[:, None]).tocsr())).toarray())
    if counts is not None:
        return whole((z * counts[:, None]).T @ z)
    groups, rest = _groups(z)
    return whole(groups.transpose(0, 2, 1) @ groups).sum(axis=0) + whole(rest.T @ rest)


def _groups(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rows as groups, and those that are left."""
    full = len(x) - len(x) % GROUP
    return x[:full].reshape(-1, GROUP, x.shape[1]), x[full:]


def predictions(x: Any, parts: FloatArray) -> FloatArray:
    """Return xᵀθ of rows in units: one or two exact numbers, added."""
    scaled = np.ascontiguousarray(parts.T) * 2.0**-FRACTION_BITS
    # a column at a time, as BLAS is quicker at that, and in one call, as threads wait for each other between calls
    found = np.matmul(x, scaled[:, :, None])[:, :, 0] if isinstance(x, np.ndarray) else [x @ each for each in scaled]
    return np.asarray(found[0] if len(found) == 1 else found[0] + found[1])


def weighted(x: Any, weights: FloatArray) -> Any:
    """Return the sums of rows with each of some weights, as integers."""
    if not isinstance(x, np.ndarray):
        return whole(np.asarray(x.T @ weights.T).T)
    groups, rest = _groups(x)
    full = len(x) - len(rest)
    # one weight at a time, as BLAS is quicker at that, and all in one call
    sums = whole(weights[:, :full].reshape(len(weights), -1, 1, GROUP) @ groups).sum(axis=(1, 2))
    return sums + whole(weights[:, None, full:] @ rest)[:, 0]


def sampled(x: Any, bits: int) -> npt.NDArray[np.intp]:
    """Return about one place in 2^bits, by what the rows are: the same rows wherever and in whatever order they stand.

    Examples
    --------
    >>> x = np.arange(20_000.0).reshape(10_000, 2)
    >>> 500 < len(sampled(x, 4)) < 750
    True
    """
    p = x.shape[1]
    mixer = np.arange(1, p + 1, dtype=np.uint64) * np.uint64(_GOLDEN) >> np.uint64(64 - exact_bits(p, "l2"))
    keys = (x @ mixer.astype(np.float64)).astype(np.int64).view(np.uint64)  # exact, like predictions
    return np.flatnonzero((keys * np.uint64(_MIXED)) >> np.uint64(64 - bits) == 0)


_SAMPLE = 4096  # rows looked at first; if hardly two of them are equal it is not worth looking further
_BLOCK = 1 << 12  # rows looked at together
_ODD = 0x2545F4914F6CDD1D  # odd, so that multiplying by it loses nothing
_WORTH = 0.7  # kinds are used if there are at most this many times n


def distinct(rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int32], FloatArray | None]:
    """Return x and y with each kind of row once, and how many rows are of it; or all rows and ``None``.

    Examples
    --------
    >>> x = np.zeros((5000, 2), dtype=np.int32)
    >>> x[:1000] = 7
    >>> kinds, _, counts = distinct(Rows(x, np.ones(5000, dtype=np.int32)))
    >>> sorted(counts.tolist()), kinds.shape
    ([1000.0, 4000.0], (2, 2))
    """
    x, y = rows.x, rows.y
    step = max(1, rows.n // _SAMPLE)
    sample = _keys(x[::step], y[::step])
    if rows.n < _SAMPLE or np.unique(sample).size > 0.98 * sample.size:
        return x, y, None
    _, first, kind, counts = np.unique(_keys(x, y), return_index=True, return_inverse=True, return_counts=True)
    # equal keys mean equal rows, unless somebody arranged otherwise
    if first.size > _WORTH * rows.n:
        return x, y, None
    kinds, targets = x[first], y[first]
    for start in range(0, rows.n, _BLOCK):
        some = slice(start, start + _BLOCK)
        if not (np.array_equal(kinds[kind[some]], x[some]) and np.array_equal(targets[kind[some]], y[some])):
            return x, y, None
    return kinds, targets, counts.astype(np.float64)


def _keys(x: NDArray[np.int32], y: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number for each row: two exact products with fixed weights, mixed modulo 2⁶⁴."""
    p = x.shape[1]
    most = float(1 << exact_bits(p, "l2"))
    weights = np.floor(
        np.random.default_rng(0).random((p, 2)) * most
    ).T  # a product is below 2⁵³: the same in any order
    keys = np.empty(len(y), dtype=np.int64)
    for start in range(0, len(y), _BLOCK):
        some = slice(start, start + _BLOCK)
        block = x[some].astype(np.float64)
        first, second = ((block @ each).astype(np.int64) for each in weights)
        keys[some] = (first * _ODD) ^ second
        keys[some] += y[some]
    return keys * _ODD
