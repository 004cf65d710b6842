"""Rows that are equal are worked on once: answers about many rows often come in few kinds.

A pass over the rows then costs as much as there are kinds. Nothing else changes: n stays the number of rows, and error
bounds are those of n rows, because how many kinds there are is private.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.data.rows import Rows
from expost.erm._types import FloatArray
from expost.erm.prediction_grid import exact_bits

_SAMPLE = 4096  # rows looked at first; if hardly two of them are equal it is not worth looking further
_BLOCK = 1 << 12  # rows looked at together
_MIXED = 0x2545F4914F6CDD1D  # odd, so that multiplying by it loses nothing
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
        keys[some] = (first * _MIXED) ^ second
        keys[some] += y[some]
    return keys * _MIXED
