"""What a pass is: a piece of work done on every batch, whose results are integers that are added up.

Integers add up to the same however they are ordered and grouped, so the result of a pass is the same to the bit for
every way of cutting rows into batches, every number of workers, and after a worker was lost and its part done anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, RowSource

__all__ = ["Engine", "Totals", "Work", "add_totals", "part_totals"]

#: Integers and arrays of them, int64 or Python's own.
Totals = tuple[Any, ...]

_LIMIT = 2**62


class Work(Protocol):
    """What is done on a batch. Public apart from what it returns, and small: it travels to every worker."""

    def __call__(self, batch: Batch) -> Totals:
        """Return sums over the rows of the batch; private."""


class Engine(Protocol):
    """Carries out passes."""

    def total(self, source: RowSource, work: Work) -> Totals:
        """Return the sum of a piece of work over all batches of a source; private."""


def add_totals(first: Totals, second: Totals) -> Totals:
    """Add results entry by entry, in Python's integers where 64 bits might not do.

    Examples
    --------
    >>> add_totals((1, np.array([2**61])), (2, np.array([2**61])))
    (3, array([4611686018427387904], dtype=object))
    """
    return tuple(_added(a, b) for a, b in zip(first, second, strict=True))


def _added(a: Any, b: Any) -> Any:
    if not isinstance(a, np.ndarray):
        return a + b
    if a.dtype != object and b.dtype != object and _largest(a) + _largest(b) < _LIMIT:
        return a + b
    return a.astype(object) + b.astype(object)


def _largest(values: npt.NDArray[np.int64]) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def part_totals(source: RowSource, part: Any, work: Work, told: Any = None) -> Totals | None:
    """Return the sums over one part, None if it has no rows."""
    total: Totals | None = None
    for batch in source.lent(part):
        found = work(batch)
        total = found if total is None else add_totals(total, found)
        if told is not None:
            told(len(batch))
    return total


def joined(results: Sequence[Totals | None]) -> Totals | None:
    """Add results up as a tree, leaving out parts without rows."""
    left = [result for result in results if result is not None]
    while len(left) > 1:
        pairs = [add_totals(*left[i : i + 2]) for i in range(0, len(left) - 1, 2)]
        left = pairs + left[len(pairs) * 2 :]
    return left[0] if left else None
