"""Passes by threads of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Literal

from expost.data.batches import RowSource
from expost.data.scratch import scratch_folder
from expost.engines.engine import Totals, Work, add_totals, part_totals
from expost.engines.watch import watched_pass
from expost.threads import one_thread, processors

__all__ = ["LocalEngine"]

_MOST_THREADS = 8  # each holds a batch
_SMALL = 1 << 25  # cells in memory, added up once, below which threads cost more than they bring


class LocalEngine:
    """Threads that each read a part at a time.

    Parameters
    ----------
    threads : int, optional
        By default as many as there are processors for this process, at most eight.
    memory : float, default=128
        Megabytes: rows that take up at most so much, at four bytes a cell, stay in memory once they were read.
    scratch : str, path or False, optional
        A folder in which rows that are too many for memory are kept between passes, several times faster than reading
        their files again: in encrypted files that have no names and are gone with the process
        (:mod:`expost.data.scratch`). By default the system's folder for temporary files, where that is a disk with
        three times the room. False: nothing is written.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.data import Rows
    >>> from expost.data.batches import MemorySource
    >>> rows = Rows(np.array([[1], [2]], dtype=np.int32), np.zeros(2, dtype=np.int32))
    >>> LocalEngine().total(MemorySource(rows), lambda batch: (int(batch.x.sum()),))
    (3,)
    """

    name = "local"

    def __init__(
        self,
        threads: int | None = None,
        *,
        memory: float | None = None,
        scratch: str | os.PathLike[str] | Literal[False] | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ValueError("threads must be at least 1")
        if memory is not None and not 0.0 <= memory < 1e9:
            raise ValueError("memory must be a number of megabytes from 0 to below 1e9")
        self.kept = None if memory is None else int(memory * 2**20)
        self.writes = scratch is not False
        self.scratch = None if scratch is None or scratch is False else scratch_folder(scratch)
        self.threads = min(processors(), _MOST_THREADS) if threads is None else threads

    def __repr__(self) -> str:
        return f"LocalEngine(threads={self.threads})"

    def total(self, source: RowSource, work: Work) -> Totals:
        """Return the sum of a piece of work over all batches; private."""
        parts = source.parts()
        # products are small, and threads of BLAS beside ours cost far more than they bring
        with watched_pass(source.n) as told, one_thread():
            effort = source.n * source.p * max(source.effort, getattr(work, "effort", 1.0))
            if self.threads == 1 or len(parts) == 1 or effort < _SMALL:
                found: Iterator[Totals | None] = (part_totals(source, part, work, told) for part in parts)
                return _sum(found)
            return _sum(self._by_threads(source, parts, work, told))

    def _by_threads(self, source: RowSource, parts: Sequence[Any], work: Work, told: Any) -> Iterator[Totals | None]:
        """Yield results as they come; a part is begun when another is done, so that few are held at a time."""
        pool = ThreadPoolExecutor(self.threads)
        try:
            left = iter(parts)
            running: set[Future[Totals | None]] = set()
            while True:
                for part in left:
                    running.add(pool.submit(part_totals, source, part, work, told))
                    if len(running) >= 2 * self.threads:
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _sum(results: Iterator[Totals | None]) -> Totals:
    total: Totals | None = None
    for result in results:
        if result is not None:
            total = result if total is None else add_totals(total, result)
    if total is None:
        raise ValueError("there are no rows; pass at least one")
    return total
