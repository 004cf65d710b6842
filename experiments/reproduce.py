"""``python -m experiments reproduce``: the paper's experiments on its data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import add_grid, check_grid, run_experiment_command

if TYPE_CHECKING:  # the command line starts without them
    from experiments.plan import Plan, Task

PAPER_DATA = ("twitter", "twitter-q95", "kdd99")
DESCRIPTION = (
    "Run the paper's experiments on one of its data sets: 40 targets, 80 trials each for ridge "
    "regression and 40 for logistic regression. A simulation with seeded noise on data that may be looked at: it "
    "protects nobody. An interrupted run goes on where it stopped."
)


def add_arguments(reproduce: argparse.ArgumentParser) -> None:
    """Add the options."""
    reproduce.add_argument("dataset", choices=PAPER_DATA, help="twitter-q95 clips long rows instead of shrinking all")
    reproduce.add_argument("--data", type=Path, metavar="PATH", help="the file or its folder (default: $EXPOST_DATA)")
    reproduce.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows to draw (default: 100,000)")
    add_grid(reproduce)


def run(options: argparse.Namespace) -> int:
    """Run the experiments; returns the exit status."""
    check_grid(options)
    from experiments.datasets import load_kddcup99, load_twitter_buzz
    from experiments.plan import Task, paper_plan

    def load() -> tuple[Task, Plan]:
        if options.dataset == "kdd99":
            data = load_kddcup99(options.data)
        else:
            data = load_twitter_buzz(
                options.data, normalisation="q95" if options.dataset == "twitter-q95" else "maximum"
            )
        task = Task.of(data.sample(options.rows, seed=options.seed))
        return task, paper_plan(task.kind, quick=options.quick, seed=options.seed)

    command = f"python -m experiments reproduce {options.dataset}" + (
        "" if options.rows == 100_000 else f" --rows {options.rows}"
    )
    return run_experiment_command(options, load, command, Path(f"reproduce-{options.dataset}"))
