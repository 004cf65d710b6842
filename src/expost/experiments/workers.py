"""Trials spread over processes, each row handed back as soon as it is there.

Processes are spawned, not forked (a fork would copy the locks of BLAS threads), and one process does all trials of a
target, because they share tables. A worker that dies is noticed and named; the rows already handed back are safe.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import traceback
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing.connection import Connection, wait
from typing import Any

from expost.experiments.plan import Job, Plan, Task
from expost.experiments.table import Row
from expost.experiments.trial import Bench


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
