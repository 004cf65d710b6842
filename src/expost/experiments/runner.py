"""From a plan to a finished table: what is there is kept, what is missing is run, and the end is the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from expost.experiments.plan import Job, Plan, Task
from expost.experiments.table import Journal, Row, read_rows, write_final, write_whole
from expost.experiments.workers import stream
from expost.threads import processors

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
