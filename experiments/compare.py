"""``python -m experiments compare``: the paper's experiments on anyone's own data."""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import add_grid, check_grid, run_experiment_command
from expost import validation
from expost.cli.options import add_bounds, check_tables, stated_bounds, stated_classes

if TYPE_CHECKING:  # the command line starts without them
    from experiments.plan import Plan, Task

DESCRIPTION = (
    "Run the paper's methods side by side on a CSV or Parquet file. A simulation with seeded noise on "
    "data that you may look at: it writes true excess risks to disk and protects nobody."
)


def add_arguments(compare: argparse.ArgumentParser) -> None:
    """Add the options."""
    compare.add_argument("file", type=Path, metavar="DATA", help="a .csv, .csv.gz or .parquet file")
    compare.add_argument("--target", required=True, metavar="COL", help="column to predict")
    compare.add_argument("--task", required=True, choices=("regression", "classification"))
    compare.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all but the target)")
    bounds = add_bounds(compare)
    bounds.add_argument("--fit-intercept", action="store_true", help="add a constant column")
    bounds.add_argument("--intercept-weight", type=float, default=0.25, metavar="C", help="its share of a row's norm")
    bounds.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what NaN and infinities do")
    add_grid(compare)
    compare.add_argument("--regularization", type=float, default=0.005, metavar="L", help="λ (default: 0.005)")
    compare.add_argument("--failure-probability", type=float, default=0.1, metavar="G", help="γ (default: 0.1)")
    compare.add_argument("--n-levels", type=int, default=1000, metavar="T", help="levels of a search (default: 1000)")


def run(options: argparse.Namespace) -> int:
    """Run the experiments; returns the exit status."""
    _check(options)
    from experiments.plan import paper_plan

    def load() -> tuple[Task, Plan]:
        task = own_task(options)
        return task, dataclasses.replace(
            paper_plan(task.kind, quick=options.quick, seed=options.seed),
            regularization=options.regularization,
            failure_probability=options.failure_probability,
            n_levels=options.n_levels,
        )

    command = f"python -m experiments compare {options.file.name} --target {options.target} --task {options.task} …"
    return run_experiment_command(options, load, command, Path(f"compare-{_plain_name(options.file)}"))


def _check(options: argparse.Namespace) -> None:
    """Complain about what is wrong whatever the table holds, before anything is imported that would take time."""
    check_grid(options)
    check_tables(options.file)
    validation.regularization(options.regularization)
    validation.failure_probability(options.failure_probability)
    if options.task == "regression" and options.target_bounds is None and options.target_bound is None:
        raise ValueError("--target-bound or --target-bounds must be given for --task regression")
    if options.task == "classification" and options.classes is None:
        raise ValueError("--classes must be given for --task classification")


def own_task(options: argparse.Namespace) -> Task:
    """Read the caller's file and bound its rows, as ``expost fit`` would."""
    from experiments.plan import Task
    from expost.table.bounds import resolve_bounds
    from expost.table.bounds_encoding import Preparation, resolve_feature_bound
    from expost.table.files import read_table

    table = read_table(options.file, options.target, columns=options.columns)
    columns = list(table.column_names)
    bounds = resolve_bounds(stated_bounds(options, table), len(columns), columns)
    target: tuple[float, float] | None = None
    if options.task == "regression":
        if options.target_bounds is not None:
            target = (options.target_bounds[0], options.target_bounds[1])
        elif options.target_bound is not None:
            target = (-options.target_bound, options.target_bound)
        else:
            raise ValueError("--target-bound or --target-bounds must be given for --task regression")
    elif options.classes is None:
        raise ValueError("--classes must be given for --task classification")
    recipe = Preparation(
        bounds,
        resolve_feature_bound(options.feature_bound, bounds, len(columns)),
        target,
        intercept_weight=options.intercept_weight if options.fit_intercept else 0.0,
        n_columns=len(columns),
    )
    if target is not None:
        rows = recipe.prepare_regression(table.X, table.y, on_invalid=options.on_invalid)
    else:
        classes = stated_classes(options.classes, table)
        rows = recipe.prepare_classification(table.X, table.y, classes, on_invalid=options.on_invalid)
    notes = (f"from {options.file.name}", "rows scaled and clipped to the bounds stated on the command line")
    return Task(_plain_name(options.file), options.task, rows.x, rows.y, notes)


def _plain_name(file: Path) -> str:
    return re.sub(r"[^\w-]+", "-", file.name.split(".")[0]) or "data"
