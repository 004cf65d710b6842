"""What ``reproduce`` and ``compare`` share: both are simulations on data that may be looked at."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import Any, TextIO, cast

from expost import validation
from expost.cli.command import INTERRUPTED
from expost.cli.options import check_counts
from expost.cli.terminal import Losing, complain, print_text
from expost.exceptions import SearchInterrupted

FAILED = 1
EXITS = {
    0: "done; tables and figures are in the folder",
    1: "a process was lost or a trial failed; finished trials are kept, the same command goes on from there",
    2: "a mistake in the arguments or the data",
    130: "interrupted; finished trials are kept",
}


def add_grid(parser: argparse.ArgumentParser) -> None:
    """Add the options that state targets, trials and output."""
    grid = parser.add_argument_group("grid and output")
    grid.add_argument("--quick", action="store_true", help="8 targets and 3 trials: less than a minute")
    grid.add_argument("--alphas", nargs="+", type=float, metavar="A", help="targets of your own")
    grid.add_argument("--trials", type=int, metavar="K", help="trials a target")
    grid.add_argument("--seed", type=int, default=0, metavar="S", help="of the drawing of rows and of all noise")
    grid.add_argument("--processes", type=int, metavar="P", help="how many to use (default: all processors)")
    grid.add_argument("--output", type=Path, metavar="DIR", help="folder to write to, and to resume from")
    grid.add_argument("--no-figures", action="store_true", help="tables only; needs no matplotlib")


def _check_folder(path: Path) -> None:
    """Complain about a folder to write to that is a file, or cannot be made."""
    there = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise ValueError(f"{there} is a file; --output must name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{there} cannot be written to")


def run_experiment_command(options: argparse.Namespace, load: Any, command: str, default_folder: Path) -> int:
    """Run, print and report failures in a line; returns the exit status."""
    folder = options.output or default_folder.with_name(default_folder.name + ("-quick" if options.quick else ""))
    _check_folder(folder)
    from experiments.plan import SIMULATION
    from experiments.runner import WorkerLost

    try:
        print(SIMULATION, file=sys.stderr)
        print_text(_experiment(options, load, command, folder))
    except (KeyboardInterrupt, SearchInterrupted) as error:
        if isinstance(error, SearchInterrupted) and error.by != KeyboardInterrupt.__name__:
            complain(f"a trial failed ({error.by}): please report it; finished trials are kept in {folder}")
            return FAILED
        complain(f"interrupted; finished trials are kept in {folder}, the same command goes on from there")
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError) as error:
        return complain(error, options)
    except WorkerLost as error:
        complain(error)
        return FAILED
    return 0


def check_grid(options: argparse.Namespace) -> None:
    """Complain about numbers out of their range before anything is read."""
    check_counts(options)
    for alpha in options.alphas or ():
        validation.positive("--alphas", alpha)


def _experiment(options: argparse.Namespace, load: Any, command: str, folder: Path) -> str:
    """Run, draw and write; returns what to print."""
    from experiments.curves import Facts
    from experiments.figures import draw_all, require_matplotlib
    from experiments.plan import SIMULATION
    from experiments.runner import Bar, run_experiment
    from experiments.summary import headline_table, write_summary
    from experiments.table import write_whole
    from expost.cli.progress import Progress

    if not options.no_figures:
        require_matplotlib()  # before hours of work, not after
    with Progress() as progress:
        progress.stage("reading data")
        task, plan = load()
        plan = dataclasses.replace(
            plan, alphas=tuple(sorted(options.alphas or plan.alphas)), trials=options.trials or plan.trials
        )
        facts = Facts.of(task, plan)
    bar = Bar(cast(TextIO, Losing(sys.stderr)))
    try:
        rows = run_experiment(task, plan, folder, processes=options.processes, progress=bar)
    finally:
        bar.close()
    for name in ("quick", "seed", "trials"):  # what changes the numbers, never a path
        value = getattr(options, name)
        if value:
            command += f" --{name}" + ("" if value is True else f" {value}")
    if options.alphas:
        command += " --alphas " + " ".join(f"{alpha:g}" for alpha in plan.alphas)
    write_whole(folder / "summary.md", write_summary(rows, facts, plan.methods, command).encode())
    if not options.no_figures:
        labels = {method.name: method.label for method in plan.methods}
        draw_all(folder, rows, facts, labels)
    return f"{headline_table(rows, facts, plan.methods)}\n\n{SIMULATION} More in {folder / 'summary.md'}."
