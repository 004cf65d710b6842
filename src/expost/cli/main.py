"""The command ``expost``: a private model from a file, and what it cost."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np
from expost.options import WRONG, print_text, stated_bounds, stated_classes, stated_goal, stated_target_type
from expost.progress import Progress
from expost.search.calibration import CalibrationName
from expost.search.goals import Goal
from expost.search.plan import Noise, Perturbation
from expost.search.settings import Method
from expost.summary import summary

from expost import __version__
from expost.data.files import Table, read_table
from expost.erm.exceptions import ConvergenceError
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstRidge
from expost.exceptions import ADVICE, AccuracyNotReached
from expost.privacy.release import Release

NOT_WRITTEN = 1  # a release was made and shown, but its file could not be written
REFUSED = 3  # the search refused: not a mistake of the caller's, but no model either

_NEGATIVE_NUMBER = re.compile(r"-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-inf")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    # argparse takes -1e3 for an option unless something stands before the dash
    options = _parser().parse_args([f" {text}" if _NEGATIVE_NUMBER.fullmatch(text) else text for text in given])
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("expost: interrupted; nothing was released", file=sys.stderr)
        return 130
    return status


class _OneLineParser(argparse.ArgumentParser):
    """Mistakes get one line, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog="expost",
        description="Accuracy-first privacy: state the accuracy, get the most private model that meets it.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"expost {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_demo(commands)
    _add_experiments(commands)
    return parser


def _add_fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit",
        allow_abbrev=False,
        help="fit a model to a CSV or Parquet file",
        description="Find the most private model that meets an accuracy target. Bounds are public knowledge you state; "
        "none is read off the data. Exit status: 0 released, 3 refused (with its cost), 2 an error and nothing spent, "
        "1 released or refused, but --output could not be written.",
    )
    fit.add_argument("data", type=Path, help="a .csv, .csv.gz or .parquet file")
    fit.add_argument("--target", required=True, metavar="COL", help="column to predict")
    fit.add_argument("--task", required=True, choices=("regression", "classification"))
    goals = fit.add_argument_group(
        "accuracy target (exactly one, but for --method fixed)"
    ).add_mutually_exclusive_group()
    goals.add_argument(
        "--excess-risk", type=float, metavar="A", help="how much worse than the best model, in scaled units"
    )
    goals.add_argument(
        "--relative-excess-risk", type=float, metavar="R", help="the same as a fraction of what the null model misses"
    )
    goals.add_argument("--error-rate", type=float, metavar="E", help="share of rows misclassified at most")
    goals.add_argument(
        "--mean-squared-error", type=float, metavar="M", help="at most, in squared units of the target column"
    )
    fit.add_argument(
        "--margin", type=float, default=0.2, metavar="F", help="part of such a goal for test noise (default: 0.2)"
    )
    fit.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all but the target)")
    bounds = fit.add_argument_group("public bounds")
    bounds.add_argument("--bounds", nargs=2, type=float, metavar=("LO", "HI"), help="for every column")
    bounds.add_argument(
        "--column-bounds", nargs=3, action="append", default=[], metavar=("COL", "LO", "HI"), help="for one column"
    )
    bounds.add_argument("--bounds-file", type=Path, metavar="JSON", help='{"column": [lower, upper], …}')
    bounds.add_argument(
        "--feature-bound", type=float, metavar="F", help="ℓ₁ norm that rows are clipped to, after bounds"
    )
    bounds.add_argument("--target-bound", type=float, metavar="B", help="the target lies in [-B, B]")
    bounds.add_argument(
        "--target-bounds", nargs=2, type=float, metavar=("LO", "HI"), help="the target lies in [LO, HI]"
    )
    bounds.add_argument("--classes", nargs=2, metavar=("NEG", "POS"), help="the two class labels")
    search = fit.add_argument_group("search")
    search.add_argument("--regularization", type=float, default=0.01, metavar="L", help="ridge weight (default: 0.01)")
    search.add_argument(
        "--failure-probability", type=float, default=0.1, metavar="G", help="of the accuracy promise (default: 0.1)"
    )
    search.add_argument("--max-epsilon", type=float, metavar="E", help="no outcome may cost more")
    search.add_argument("--method", default="auto", choices=get_args(Method), help="(default: %(default)s)")
    search.add_argument(
        "--calibration", default="tight", choices=get_args(CalibrationName), help="of the test (default: %(default)s)"
    )
    search.add_argument(
        "--perturbation",
        choices=get_args(Perturbation),
        help="where the noise goes (default for regression: covariance)",
    )
    search.add_argument(
        "--noise",
        default="laplace",
        choices=get_args(Noise),
        help="exact Laplace, or with --perturbation output spherical, analysed over the reals (default: %(default)s)",
    )
    search.add_argument("--radius", type=float, metavar="R", help="largest norm of the parameters considered")
    search.add_argument("--n-levels", type=int, metavar="T", help="how many privacy levels to search")
    search.add_argument("--fit-intercept", action="store_true", help="add a constant column")
    search.add_argument(
        "--intercept-weight", type=float, default=0.25, metavar="C", help="its share of a row's norm (default: 0.25)"
    )
    search.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what NaN and infinities do")
    search.add_argument("--seed", type=int, metavar="S", help="simulate with seeded noise, which protects nobody")
    out = fit.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print the release as JSON")
    out.add_argument("--output", type=Path, metavar="FILE", help="also write the release as JSON to FILE")
    fit.set_defaults(run=_fit)


def _fit(options: argparse.Namespace) -> int:
    try:
        with warnings.catch_warnings(record=True) as noted, Progress() as progress:
            warnings.simplefilter("always")
            release = _search(options, progress)
    except (ValueError, TypeError, OSError, ConvergenceError) as error:
        print(f"expost: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG
    # From here on privacy has been spent: whatever goes wrong, the release must reach the caller.
    for warning in noted:
        print(f"expost: warning: {warning.message}", file=sys.stderr)
    failure = None
    if options.output is not None:
        try:
            _write_whole(options.output, release.to_json() + "\n")
        except OSError as error:
            failure = error
    print_text(release.to_json() if options.json else summary(release))
    if failure is not None:
        print(
            f"expost: {options.output} could not be written ({failure}); keep the release above, it was paid for",
            file=sys.stderr,
        )
        return NOT_WRITTEN
    if release.status == "released":
        return 0
    print(f"expost: refused. {ADVICE}", file=sys.stderr)
    return REFUSED


def _search(options: argparse.Namespace, progress: Progress) -> Release:
    goal = stated_goal(options)
    if options.excess_risk is None and goal is None and options.method != "fixed":
        raise ValueError(
            "--excess-risk is required: how much worse than the best model may the released one be? Or state "
            "--relative-excess-risk, --error-rate or --mean-squared-error"
        )
    _check_output(options.output)
    progress.stage("reading data")
    clip = options.on_invalid == "clip"
    table = read_table(
        options.data,
        options.target,
        columns=options.columns,
        text_as_missing=clip,
        target_as=stated_target_type(options) if clip else "inferred",
    )
    if len(table.y) == 0:
        raise ValueError(f"{options.data} has no rows")
    if options.task == "regression" and table.y.dtype.kind not in "biuf":
        raise ValueError(f"target column {options.target!r} is not numeric; is this --task classification?")
    model = _model(options, table, goal)
    progress.stage("searching")
    try:
        release: Release = model.fit(_frame(table), table.y).release_
    except AccuracyNotReached as refusal:
        release = refusal.release
    return release


def _check_output(path: Path | None) -> None:
    """Complain before anything is spent about a file that could not be written afterwards."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"the folder of {path} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; --output must name a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"the folder of {path} cannot be written to")


def _model(options: argparse.Namespace, table: Table, goal: Goal | None) -> Any:
    common: dict[str, Any] = {
        "excess_risk": options.excess_risk,
        "goal": goal,
        "regularization": options.regularization,
        "failure_probability": options.failure_probability,
        "bounds": stated_bounds(options, table),
        "feature_bound": options.feature_bound,
        "method": options.method,
        "calibration": options.calibration,
        "noise": options.noise,
        "radius": options.radius,
        "n_levels": options.n_levels,
        "max_epsilon": options.max_epsilon,
        "fit_intercept": options.fit_intercept,
        "intercept_weight": options.intercept_weight,
        "on_invalid": options.on_invalid,
        "random_state": options.seed,
    }
    if options.perturbation is not None:
        common["perturbation"] = options.perturbation
    if options.task == "regression":
        if options.classes is not None:
            raise ValueError("--classes is for --task classification")
        pair = None if options.target_bounds is None else tuple(options.target_bounds)
        return AccuracyFirstRidge(target_bound=options.target_bound, target_bounds=pair, **common)
    if options.target_bound is not None or options.target_bounds is not None:
        raise ValueError("--target-bound and --target-bounds are for --task regression")
    return AccuracyFirstLogisticRegression(classes=stated_classes(options.classes, table), **common)


def _frame(table: Table) -> Any:
    """Give the estimator column names without asking for pandas."""
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(column)) for column in table.X.T]
    return pa.table(columns, names=list(table.column_names))


def _write_whole(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # a temporary file is its owner's alone; a release is for others to read
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo", allow_abbrev=False, help="fit a model to a generated data set and compare it with the truth"
    )
    demo.set_defaults(run=_demo)


def _add_experiments(commands: Any) -> None:
    from expost.experiments.command import add_commands

    add_commands(commands)


def _demo(options: argparse.Namespace) -> int:
    from expost.demo import run_demo

    del options
    with Progress() as progress:
        progress.stage("generating and fitting a survey")
        status, text = run_demo()
    print_text(text)
    return 0 if status == "released" else REFUSED


if __name__ == "__main__":
    sys.exit(main())
