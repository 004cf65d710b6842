"""Rows that are equal are worked on once: answers about many rows often come in few kinds.

A pass over the rows then costs as much as there are kinds. Nothing else changes: n stays the number of rows, and error
bounds are those of n rows, because how many kinds there are is private.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.data.rows import Rows
from expost.erm._types import FloatArray

_SAMPLE = 4096  # rows looked at first; if hardly two of them are equal it is not worth looking further
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
    if first.size > _WORTH * rows.n or not (np.array_equal(x[first][kind], x) and np.array_equal(y[first][kind], y)):
        return x, y, None
    return x[first], y[first], counts.astype(np.float64)


def _keys(x: NDArray[np.int32], y: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number for each row: a sum with fixed odd weights, modulo 2⁶⁴."""
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, x.shape[1] + 1, dtype=np.int64) | 1
    keys = y * weights[-1]
    for j, weight in enumerate(weights[:-1]):  # whole columns: there is no fast product of integer matrices
        keys += x[:, j] * weight
    return np.asarray(keys)
