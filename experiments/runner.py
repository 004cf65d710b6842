"""From a plan to a finished table: what is there is kept, what is missing is run, and the end is the same.

Trials spread over processes, each row handed back as soon as it is there.

Processes are spawned, not forked (a fork would copy the locks of BLAS threads), and one process does all trials of a
target, because they share tables. A worker that dies is noticed and named; the rows already handed back are safe.

A progress bar on stderr: how much is done, and how long the rest will take.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TextIO

from experiments.plan import Job, Plan, Task
from experiments.table import Journal, Row, read_rows, write_final, write_whole
from experiments.trial import Bench
from expost.numeric import processors


class WorkerLost(RuntimeError):
    """A worker process was killed, by a lack of memory for instance; finished trials are kept."""


def stream(task: Task, plan: Plan, jobs: Sequence[Job], processes: int) -> Iterator[Row]:
    """Yield the rows of all jobs, in whatever order they get done."""
    batches = [list(batch) for _, batch in groupby(jobs, key=lambda job: job.alpha)]
    processes = min(processes, len(batches))
    if processes <= 1:
        yield from Bench(task, plan).work(jobs)
        return
    context = multiprocessing.get_context("spawn")
    waiting = iter(batches)
    ours: dict[Connection[Any, Any], Any] = {}
    try:
        for _ in range(processes):
            here, there = context.Pipe()
            worker = context.Process(target=_serve, args=(there, task, plan), daemon=True)
            worker.start()
            there.close()
            ours[here] = worker
            here.send(next(waiting))
        busy = set(ours)
        while busy:
            for ready in wait(list(busy)):
                connection: Any = ready
                try:
                    done, row = connection.recv()
                except (EOFError, OSError):
                    raise WorkerLost("a worker process was killed; the same command goes on from there") from None
                if isinstance(row, str):
                    raise RuntimeError(f"a trial failed:\n{row}")
                if row is not None:
                    yield row
                if done:
                    batch = next(waiting, None)
                    connection.send(batch)
                    if batch is None:
                        busy.remove(connection)
    finally:
        for connection, worker in ours.items():
            worker.terminate()  # idle, or its trial will be run again
            worker.join()
            connection.close()


def _serve(connection: Any, task: Task, plan: Plan) -> None:
    """Work on batches until told to stop, or until nobody listens any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with contextlib.suppress(EOFError, OSError):
        try:
            bench = Bench(task, plan)
            while (batch := connection.recv()) is not None:
                for row in bench.work(batch):
                    connection.send((False, row))
                connection.send((True, None))
        except (EOFError, OSError):
            raise
        except BaseException:
            connection.send((True, traceback.format_exc()))


SETTINGS = "settings.json"


def run_experiment(
    task: Task,
    plan: Plan,
    folder: str | Path,
    *,
    processes: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> list[Row]:
    """Run all trials of a plan, going on from whatever an earlier run left in the folder.

    Parameters
    ----------
    task, plan
        What to run.
    folder
        Where the table goes; a run with the same settings is resumed, one with others is left alone.
    processes
        How many to use; by default all processors. The result does not depend on it.
    progress
        Called with the work done in this run and the work it has, in units of a cheap trial.

    Returns
    -------
    list of Row
        Sorted as in the file.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _claim(folder, task, plan)
    jobs = list(plan.jobs())
    kept = {row.key: row for row in read_rows(folder)}
    extra = kept.keys() - {job.key for job in jobs}
    if extra:
        raise ValueError(
            f"{folder} holds {len(extra)} trials beyond the grid asked for; ask for at least as many targets and "
            f"trials as before, or use another folder"
        )
    missing = [job for job in jobs if job.key not in kept]
    total = sum(job.method.weight for job in missing)
    weights = {job.method.name: job.method.weight for job in jobs}
    done = 0.0
    if missing:
        with Journal(folder) as journal:
            for row in stream(task, plan, missing, processes or processors()):
                journal.append(row)
                kept[row.key] = row
                done += weights[row.method]
                if progress is not None:
                    progress(done, total)
    rows = [kept[job.key] for job in _sorted(jobs, plan)]
    write_final(folder, rows, [method.name for method in plan.methods])
    return rows


def _sorted(jobs: list[Job], plan: Plan) -> list[Job]:
    order = {method.name: k for k, method in enumerate(plan.methods)}
    return sorted(jobs, key=lambda job: (order[job.method.name], job.alpha, job.trial))


def _claim(folder: Path, task: Task, plan: Plan) -> None:
    """Write down what this folder is about, or see that it is about the same."""
    path, identity = folder / SETTINGS, plan.identity(task)
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        differing = [name for name in identity if name != "methods" and there.get(name) != identity[name]]
        if not set(there.get("methods", ())) <= set(identity["methods"]):
            differing.append("methods")
        if differing:
            raise ValueError(
                f"{folder} holds another experiment (it differs in {', '.join(differing)}); use another folder"
            )
        if there["methods"] == identity["methods"]:
            return  # else methods are added, like targets and trials: the rows there do not depend on them
    write_whole(path, (json.dumps(identity, indent=2, ensure_ascii=False) + "\n").encode())


_WIDTH = 30
_EVERY = {True: 0.2, False: 15.0}  # seconds between updates, on a terminal and in a log


class Bar:
    """Call it with work done and work in all; it draws no more often than is useful.

    Examples
    --------
    >>> clock = iter([0.0, 30.0]).__next__
    >>> bar = Bar(sys.stdout, clock=clock)
    >>> bar(0.0, 100.0)
    >>> bar(50.0, 100.0)
    [###############...............]  50 %, about 30 s left
    """

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._live = self._stream.isatty()
        self._first: tuple[float, float] | None = None
        self._next = 0.0

    def __call__(self, done: float, total: float) -> None:
        """Say how far the work is."""
        now = self._clock()
        if self._first is None:  # what came before the first trial says nothing about the rest
            self._first, self._next = (now, done), now + _EVERY[self._live]
            return
        if now < self._next or done <= self._first[1]:
            return
        self._next = now + _EVERY[self._live]
        part = done / total
        left = (now - self._first[0]) * (total - done) / (done - self._first[1])
        filled = int(part * _WIDTH)
        text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {part:4.0%}".replace("%", " %")
        text += f", about {duration(left)} left"
        self._stream.write(f"\r\033[K{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the line empty."""
        if self._live:
            self._stream.write("\r\033[K")
            self._stream.flush()


def duration(seconds: float) -> str:
    """Say a time span in the two units a reader wants.

    Examples
    --------
    >>> duration(8.4), duration(75), duration(7300)
    ('8 s', '1 min 15 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
