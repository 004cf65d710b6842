"""What a pass is: a piece of work done on every batch, whose results are integers that are added up.

Integers add up to the same however they are ordered and grouped, so the result of a pass is the same to the bit for
every way of cutting rows into batches, every number of workers, and after a worker was lost and its part done anew.

Whoever runs a pass is told how far it has come: rows, not what is in them. How many passes a search makes depends on
the rows, so it is for the curator who watches, and stands in no release; who has to hide it from others settles it
beforehand (:func:`constant_passes`). Here threads of this process carry passes out; :mod:`expost.passes.dask` has a
cluster do it.

**Blocks.** A batch is cut into blocks; sums over them are exact in float64, and what is found in blocks is added up.
Rows are integers of at most 2²⁰. A group stands for at most 2¹¹ of them, so weights below 2²² have products with it
below 2⁵³. A block is up to sixteen groups, as many as a cache holds: two threads that call NumPy for little work spend
their time on handing the interpreter's lock to each other. Groups are added as 64-bit integers, and blocks as Python's.

*Predictions* of a θ on its grid are exact, those of any other the sum of two exact numbers (`expost.numeric`).

*Rows that are equal* are worked on once: answers about many rows often come in few kinds. A pass over the rows then
costs as much as there are kinds. Nothing else changes: n stays the number of rows, and error bounds are those of n
rows, because how many kinds there are is private.
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
from numpy.typing import NDArray

from expost import validation
from expost.numeric import FloatArray, exact_bits, one_thread, processors
from expost.passes.scratch import scratch_folder
from expost.table.rows import FRACTION_BITS, ONE, Batch, Rows, RowSource, by_column, room_for

#: Integers and arrays of them, int64 or Python's own.
Totals = tuple[Any, ...]

_LIMIT = 2**62


#: What is done on a batch: returns sums over its rows, which are private. Small: it travels to every worker.
Work = Callable[[Batch], Totals]


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


class _Settled:
    """In how many passes at a time one search is carried out, how many it has made, and how to make the last again."""

    def __init__(self, passes: int) -> None:
        self.passes, self.made = passes, 0
        self.again: Callable[[], object] | None = None

    def begin(self, again: Callable[[], object]) -> None:
        """Count a pass."""
        self.made, self.again = self.made + 1, again

    def fill(self) -> None:
        """Make what is missing, for nothing."""
        while self.again is not None and self.made % self.passes:
            self.again()


_CONSTANT: ContextVar[int | None] = ContextVar("constant passes", default=None)
_SETTLED: ContextVar[_Settled | None] = ContextVar("settled passes", default=None)


@contextmanager
def constant_passes(passes: int) -> Iterator[None]:
    """Let every search inside make so many passes over the rows, however few it needs.

    A search that is done sooner makes its last pass again until they are as many; only then does its outcome, a
    refusal included, leave it and reach a ledger. Should it need more it makes twice as many, or three times.

    *What is constant*: how often a pass is begun, by threads or by a cluster, once a search has made one; so how often
    files, a scratch file or workers are read. *What is not*: how long a pass takes and what is computed in it; and
    whether so many were enough. A search that has drawn its noise may not be stopped for that: whether it needs another
    pass depends on rows by more than its loss, and the outcome "stopped" would tell everybody what is now told to those
    who count passes. So settle far more than searches of such a table take; `docs/side_channels.md` has measured them.
    *Releases* are the same as without: passes that are made for nothing draw nothing, and what they find is dropped.

    Fits in other threads and processes are not inside, and passes of an engine of your own are not counted.

    Parameters
    ----------
    passes : int
        How many; public, settled before anything is read.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstModel, ErrorRate
    >>> from expost.passes import constant_passes
    >>> schema = {"target": "late", "classes": ["no", "yes"], "columns": {"age": {"bounds": [18, 90]}}}
    >>> age = np.random.default_rng(0).uniform(18, 90, 4000)
    >>> model = AccuracyFirstModel(schema, ErrorRate(0.2), random_state=0)
    >>> with constant_passes(60):
    ...     release = model.fit({"age": age, "late": np.where(age > 50, "yes", "no")}).release_
    >>> release.status
    'released'
    """
    token = _CONSTANT.set(validation.count("constant_passes", passes))
    try:
        yield
    finally:
        _CONSTANT.reset(token)


@contextmanager
def one_search() -> Iterator[None]:
    """Let what is inside make as many passes as were settled, if any were, whether it ends well or with an error.

    A search inside a search is a part of it. What stops a process (an interrupt from the keyboard) is not held up.
    """
    passes = _CONSTANT.get()
    if passes is None or _SETTLED.get() is not None:
        yield
        return
    token = _SETTLED.set(settled := _Settled(passes))
    try:
        try:
            yield
        except Exception:
            settled.fill()
            raise
        settled.fill()
    finally:
        _SETTLED.reset(token)


@contextmanager
def watched_pass(rows: int, again: Callable[[], object]) -> Iterator[Callable[[int], None]]:
    """Announce a pass to whoever watches; yields whom to tell of rows that are done. ``again`` makes it once more."""
    settled = _SETTLED.get()
    if settled is not None:
        settled.begin(again)
    watcher = _WATCHER.get()
    if watcher is None:
        yield _nobody
        return
    watcher.begin(rows)
    try:
        yield watcher.advance
    finally:
        watcher.end()


def again(engine: Engine, source: RowSource, work: Work) -> Callable[[], object]:
    """Return what makes a pass once more, for nothing: work that keeps something says what to do instead."""
    return lambda: engine.total(source, getattr(work, "again", work))


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
        with watched_pass(source.n, again(self, source, work)) as told, one_thread():
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
    """Return x and y with each kind of row once, and how many rows are of it; or all rows and ``None``."""
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
