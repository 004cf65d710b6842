"""``expost reproduce`` and ``expost compare``: the paper's experiments on its data, and on anyone's own.

Both are simulations on data that may be looked at, and say so before they start.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.options import WRONG, print_text, stated_bounds, stated_classes

if TYPE_CHECKING:  # the command line starts without them
    from expost.experiments.plan import Plan, Task

PAPER_DATA = ("twitter", "twitter-q95", "kdd99")
FAILED = 1
INTERRUPTED = 130


def add_commands(commands: Any) -> None:
    """Add the two sub-commands to a parser."""
    reproduce = commands.add_parser(
        "reproduce",
        allow_abbrev=False,
        help="run the paper's experiments and draw its figures (a simulation)",
        description="Run the paper's experiments on one of its data sets: 40 targets, 80 trials each for ridge "
        "regression and 40 for logistic regression. A simulation with seeded noise on data that may be looked at: it "
        "protects nobody. An interrupted run goes on where it stopped.",
    )
    reproduce.add_argument("dataset", choices=PAPER_DATA, help="twitter-q95 clips long rows instead of shrinking all")
    reproduce.add_argument("--data", type=Path, metavar="PATH", help="the file or its folder (default: $EXPOST_DATA)")
    reproduce.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows to draw (default: 100,000)")
    _add_grid(reproduce)
    reproduce.set_defaults(run=_reproduce)

    compare = commands.add_parser(
        "compare",
        allow_abbrev=False,
        help="run the same experiments on your own data (a simulation)",
        description="Run the paper's methods side by side on a CSV or Parquet file. A simulation with seeded noise on "
        "data that you may look at: it writes true excess risks to disk and protects nobody.",
    )
    compare.add_argument("file", type=Path, metavar="DATA", help="a .csv, .csv.gz or .parquet file")
    compare.add_argument("--target", required=True, metavar="COL", help="column to predict")
    compare.add_argument("--task", required=True, choices=("regression", "classification"))
    compare.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all but the target)")
    _add_bounds(compare)
    _add_grid(compare)
    compare.add_argument("--regularization", type=float, default=0.005, metavar="L", help="λ (default: 0.005)")
    compare.add_argument("--failure-probability", type=float, default=0.1, metavar="G", help="γ (default: 0.1)")
    compare.add_argument("--n-levels", type=int, default=1000, metavar="T", help="levels of a search (default: 1000)")
    compare.set_defaults(run=_compare)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    """Add the options that state public bounds, as ``expost fit`` has them."""
    bounds = parser.add_argument_group("public bounds")
    bounds.add_argument("--bounds", nargs=2, type=float, metavar=("LO", "HI"), help="for every column")
    bounds.add_argument(
        "--column-bounds", nargs=3, action="append", default=[], metavar=("COL", "LO", "HI"), help="for one column"
    )
    bounds.add_argument("--bounds-file", type=Path, metavar="JSON", help='{"column": [lower, upper], …}')
    bounds.add_argument("--feature-bound", type=float, metavar="F", help="ℓ₁ norm that rows are clipped to")
    bounds.add_argument("--target-bound", type=float, metavar="B", help="the target lies in [-B, B]")
    bounds.add_argument(
        "--target-bounds", nargs=2, type=float, metavar=("LO", "HI"), help="the target lies in [LO, HI]"
    )
    bounds.add_argument("--classes", nargs=2, metavar=("NEG", "POS"), help="the two class labels")
    bounds.add_argument("--fit-intercept", action="store_true", help="add a constant column")
    bounds.add_argument("--intercept-weight", type=float, default=0.25, metavar="C", help="its share of a row's norm")
    bounds.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what NaN and infinities do")


def _add_grid(parser: argparse.ArgumentParser) -> None:
    grid = parser.add_argument_group("grid and output")
    grid.add_argument("--quick", action="store_true", help="8 targets and 3 trials: less than a minute")
    grid.add_argument("--alphas", nargs="+", type=float, metavar="A", help="targets of your own")
    grid.add_argument("--trials", type=int, metavar="K", help="trials a target")
    grid.add_argument("--seed", type=int, default=0, metavar="S", help="of the drawing of rows and of all noise")
    grid.add_argument("--processes", type=int, metavar="P", help="how many to use (default: all processors)")
    grid.add_argument("--output", type=Path, metavar="DIR", help="folder to write to, and to resume from")
    grid.add_argument("--no-figures", action="store_true", help="tables only; needs no matplotlib")


def _reproduce(options: argparse.Namespace) -> int:
    from expost.datasets import load_kddcup99, load_twitter_buzz
    from expost.experiments.plan import Task, paper_plan

    def load() -> tuple[Task, Plan]:
        if options.rows < 1:
            raise ValueError(f"--rows must be at least 1, got {options.rows}")
        if options.dataset == "kdd99":
            data = load_kddcup99(options.data)
        else:
            data = load_twitter_buzz(
                options.data, normalisation="q95" if options.dataset == "twitter-q95" else "maximum"
            )
        task = Task.of(data.sample(options.rows, seed=options.seed))
        return task, paper_plan(task.kind, quick=options.quick, seed=options.seed)

    command = f"expost reproduce {options.dataset}" + ("" if options.rows == 100_000 else f" --rows {options.rows}")
    return _run(options, load, command, Path(f"reproduce-{options.dataset}"))


def _compare(options: argparse.Namespace) -> int:
    from expost.experiments.plan import paper_plan

    def load() -> tuple[Task, Plan]:
        task = own_task(options)
        return task, dataclasses.replace(
            paper_plan(task.kind, quick=options.quick, seed=options.seed),
            regularization=options.regularization,
            failure_probability=options.failure_probability,
            n_levels=options.n_levels,
        )

    command = f"expost compare {options.file.name} --target {options.target} --task {options.task} …"
    return _run(options, load, command, Path(f"compare-{_plain_name(options.file)}"))


def own_task(options: argparse.Namespace) -> Task:
    """Read the caller's file and bound its rows, as ``expost fit`` would."""
    from expost.data import Preparation, read_table, resolve_bounds, resolve_feature_bound
    from expost.experiments.plan import Task

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


def _run(options: argparse.Namespace, load: Any, command: str, default_folder: Path) -> int:
    from expost.erm.exceptions import ConvergenceError
    from expost.experiments.plan import SIMULATION
    from expost.experiments.workers import WorkerLost

    print(SIMULATION, file=sys.stderr)
    folder = options.output or default_folder.with_name(default_folder.name + ("-quick" if options.quick else ""))
    try:
        print_text(_experiment(options, load, command, folder))
    except KeyboardInterrupt:
        kept = f"finished trials are kept in {folder}, the same command goes on from there"
        print(f"expost: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, ConvergenceError) as error:
        print(f"expost: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG
    except WorkerLost as error:
        print(f"expost: {error}", file=sys.stderr)
        return FAILED
    return 0


def _experiment(options: argparse.Namespace, load: Any, command: str, folder: Path) -> str:
    """Run, draw and write; returns what to print."""
    from expost.experiments.bar import Bar
    from expost.experiments.curves import Facts
    from expost.experiments.figures import draw_all, require_matplotlib
    from expost.experiments.plan import SIMULATION
    from expost.experiments.runner import run_experiment
    from expost.experiments.summary import headline_table, write_summary
    from expost.experiments.table import write_whole
    from expost.progress import Progress

    if not options.no_figures:
        require_matplotlib()  # before hours of work, not after
    with Progress() as progress:
        progress.stage("reading data")
        task, plan = load()
        plan = dataclasses.replace(
            plan, alphas=tuple(sorted(options.alphas or plan.alphas)), trials=options.trials or plan.trials
        )
        facts = Facts.of(task, plan)
    bar = Bar()
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
