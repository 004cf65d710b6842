"""What a pass is: a piece of work done on every batch, whose results are integers that are added up.

Integers add up to the same however they are ordered and grouped, so the result of a pass is the same to the bit for
every way of cutting rows into batches, every number of workers, and after a worker was lost and its part done anew.

Whoever runs a pass is told how far it has come: rows, not what is in them. How many passes a search makes depends on
the rows, so it is for the curator who watches, and stands in no release. Here threads of this process carry passes out;
:mod:`expost.passes.dask` has a cluster do it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.passes.scratch import scratch_folder
from expost.table.rows import Batch, RowSource
from expost.threads import one_thread, processors

#: Integers and arrays of them, int64 or Python's own.
Totals = tuple[Any, ...]

_LIMIT = 2**62


#: What is done on a batch: returns sums over its rows, which are private. Small: it travels to every worker.
Work = Callable[[Batch], Totals]


class Engine(Protocol):
    """Carries out passes."""

    def total(self, source: RowSource, work: Work) -> Totals:
        """Return the sum of a piece of work over all batches of a source; private."""


def engine_claims(engine: Any) -> tuple[str, ...]:
    """Return what is taken as given of an engine that is not the library's own."""
    if engine is None or isinstance(engine, str) or not validation.foreign(engine):
        return ()
    return ("the engine given adds up every row, and each once",)


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


def _nobody(rows: int) -> None:
    """Tell nobody how many rows are done."""


def part_totals(source: RowSource, part: Any, work: Work, told: Callable[[int], None] = _nobody) -> Totals | None:
    """Return the sums over one part, None if it has no rows."""

    def found() -> Iterator[Totals]:
        for batch in source.lent(part):
            yield work(batch)
            told(len(batch))

    return joined(found())


def joined(results: Iterable[Totals | None]) -> Totals | None:
    """Add results up, leaving out parts without rows; None if there is none."""
    total: Totals | None = None
    for result in results:
        if result is not None:
            total = result if total is None else add_totals(total, result)
    return total


class Watcher(Protocol):
    """Is told about passes, from any thread."""

    def begin(self, rows: int) -> None:
        """Say that a pass over so many rows begins."""

    def advance(self, rows: int) -> None:
        """Say that so many more rows are done."""

    def end(self) -> None:
        """Say that the pass is over."""

    def note(self, text: str) -> None:
        """Say where rows are between passes."""


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let somebody watch the passes made inside."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def note(text: str) -> None:
    """Tell whoever watches where rows are between passes."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher.note(text)


@contextmanager
def watched_pass(rows: int) -> Iterator[Callable[[int], None]]:
    """Announce a pass to whoever watches; yields whom to tell of rows that are done."""
    watcher = _WATCHER.get()
    if watcher is None:
        yield _nobody
        return
    watcher.begin(rows)
    try:
        yield watcher.advance
    finally:
        watcher.end()


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
        (:mod:`expost.passes.scratch`). By default the system's folder for temporary files, where that is a disk with
        three times the room. False: nothing is written.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.table import Rows
    >>> from expost.table.rows import MemorySource
    >>> rows = Rows(np.array([[1], [2]], dtype=np.int32), np.zeros(2, dtype=np.int32))
    >>> LocalEngine().total(MemorySource(rows), lambda batch: (int(batch.x.sum()),))
    (3,)
    """

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
                total = joined(part_totals(source, part, work, told) for part in parts)
            else:
                total = joined(self._by_threads(source, parts, work, told))
        if total is None:
            raise ValueError("there are no rows; pass at least one")
        return total

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
