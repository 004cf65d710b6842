"""Batches cut into blocks, sums over them that are exact in float64, and what is found in blocks added up.

Rows are integers of at most 2²⁰. A group stands for at most 2¹¹ of them, so weights below 2²² have products with it
below 2⁵³. A block is up to sixteen groups, as many as a cache holds: two threads that call NumPy for little work spend
their time on handing the interpreter's lock to each other. Groups are added as 64-bit integers, and blocks as Python's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, by_column, room_for
from expost.data.fixed_point import FRACTION_BITS, ONE
from expost.engines.engine import Totals, add_totals
from expost.erm._types import FloatArray
from expost.erm.prediction_grid import exact_bits

__all__ = ["GROUP", "blocks", "folded", "gram", "predictions", "sampled", "scaled_rows", "weighted", "whole"]

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
    recent: list[Any] | None = None
    for k, block in enumerate(found, start=1):
        if recent is None:
            recent = list(block)
        else:
            for i, value in enumerate(block):
                recent[i] = recent[i] + value
        if k % _FLUSH == 0:
            total = tuple(recent) if total is None else add_totals(total, tuple(recent))
            recent = None
    if recent is not None:
        total = tuple(recent) if total is None else add_totals(total, tuple(recent))
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
