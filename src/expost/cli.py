"""The command ``expost``: a private model from a file, and what it cost."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from expost import __version__
from expost.data.files import Table, read_table
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstRidge
from expost.exceptions import AccuracyNotReached
from expost.privacy.release import Release
from expost.progress import Progress

REFUSED = 3  # exit status of a search that refused: not a mistake of the caller's, but no model either


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        status: int = options.run(options)
    except (ValueError, OSError) as error:
        print(f"expost: {error}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="expost",
        description="Accuracy-first privacy: state the accuracy, get the most private model that meets it.",
    )
    parser.add_argument("--version", action="version", version=f"expost {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_demo(commands)
    return parser


def _add_fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit",
        help="fit a model to a CSV or Parquet file",
        description="Find the most private model that meets an accuracy target. Bounds are public knowledge you state; "
        "none is read off the data. Exit status: 0 released, 3 refused (with its cost), 2 an error and nothing spent.",
    )
    fit.add_argument("data", type=Path, help="a .csv, .csv.gz or .parquet file")
    fit.add_argument("--target", required=True, metavar="COL", help="column to predict")
    fit.add_argument("--task", required=True, choices=("regression", "classification"))
    fit.add_argument("--excess-risk", required=True, type=float, metavar="A", help="accuracy target, in scaled units")
    fit.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all but the target)")
    bounds = fit.add_argument_group("public bounds")
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
    search = fit.add_argument_group("search")
    search.add_argument("--regularization", type=float, default=0.01, metavar="L")
    search.add_argument("--failure-probability", type=float, default=0.1, metavar="G")
    search.add_argument("--max-epsilon", type=float, metavar="E", help="no outcome may cost more")
    search.add_argument("--method", default="above_threshold", help="above_threshold, doubling, theory or fixed")
    search.add_argument("--calibration", default="tight", help="tight, theorem or published")
    search.add_argument("--perturbation", help="covariance (regression's default) or output")
    search.add_argument("--radius", type=float, help="largest norm of the parameters considered")
    search.add_argument("--n-levels", type=int)
    search.add_argument("--fit-intercept", action="store_true")
    search.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what NaN and infinities do")
    search.add_argument("--seed", type=int, help="simulate with seeded noise, which protects nobody")
    out = fit.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print the release as JSON")
    out.add_argument("--output", type=Path, metavar="FILE", help="also write the release as JSON to FILE")
    fit.set_defaults(run=_fit)


def _fit(options: argparse.Namespace) -> int:
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise ValueError(f"the folder of {options.output} does not exist; nothing was spent")
    with Progress() as progress:
        progress.stage("reading data")
        table = read_table(options.data, options.target, columns=options.columns)
        model = _model(options, table)
        progress.stage("searching")
        try:
            model.fit(_frame(table), table.y)
            release: Release = model.release_
        except AccuracyNotReached as refusal:
            release = refusal.release
    if options.output is not None:
        _write_whole(options.output, release.to_json() + "\n")
    print(release.to_json() if options.json else summary(release))
    return 0 if release.status == "released" else REFUSED


def _model(options: argparse.Namespace, table: Table) -> Any:
    common: dict[str, Any] = {
        "excess_risk": options.excess_risk,
        "regularization": options.regularization,
        "failure_probability": options.failure_probability,
        "bounds": _bounds(options, table),
        "feature_bound": options.feature_bound,
        "method": options.method,
        "calibration": options.calibration,
        "radius": options.radius,
        "n_levels": options.n_levels,
        "max_epsilon": options.max_epsilon,
        "fit_intercept": options.fit_intercept,
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
    return AccuracyFirstLogisticRegression(classes=_classes(options.classes, table), **common)


def _bounds(options: argparse.Namespace, table: Table) -> Any:
    """Join the three ways of stating bounds; the most specific wins."""
    stated: dict[str, tuple[float, float]] = {}
    if options.bounds is not None:
        stated = dict.fromkeys(table.column_names, (options.bounds[0], options.bounds[1]))
    if options.bounds_file is not None:
        try:
            read = json.loads(options.bounds_file.read_text(encoding="utf-8"))
            stated.update({str(name): (float(pair[0]), float(pair[1])) for name, pair in read.items()})
        except (json.JSONDecodeError, AttributeError, TypeError, IndexError, ValueError) as error:
            raise ValueError(f'{options.bounds_file} must hold {{"column": [lower, upper], …}}: {error}') from None
    for name, low, high in options.column_bounds:
        stated[name] = (float(low), float(high))
    return stated or None


def _classes(stated: Sequence[str] | None, table: Table) -> Any:
    """Return the labels in the type the column has: the command line only knows strings."""
    if stated is None or table.y.dtype.kind in "OUST":
        return stated
    kinds = {"b": lambda text: {"true": True, "1": True, "false": False, "0": False}[text.lower()]}
    convert = kinds.get(table.y.dtype.kind, float)
    try:
        return [convert(text) for text in stated]  # type: ignore[no-untyped-call, unused-ignore]
    except (ValueError, KeyError):
        raise ValueError(f"--classes {' '.join(stated)}: the target column holds {table.y.dtype} values") from None


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
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def summary(release: Release) -> str:
    """Return the few lines a person wants to read."""
    rows = [
        ("status", release.status + ("" if release.status == "released" else ": no level met the target")),
        ("privacy loss paid", f"ε = {release.epsilon:.4g} ex-post (odds move by at most ×{release.risk_factor:.4g})"),
        ("  of which", f"{release.epsilon_generation:.4g} generating, {release.epsilon_test:.4g} testing"),
        ("before the run", f"no outcome could cost more than ε = {release.epsilon_worst_case:.4g}"),
        ("neighbours", release.neighbours),
        ("promise", release.promise.statement),
        ("method", _method_line(release)),
        ("noise", _noise_line(release)),
    ]
    rows += [("not covered", text) for text in release.not_covered]
    names = release.parameters.get("columns")
    if names and "coef" in release.parameters:
        rows.append(("model", "coefficients in your units:"))
        rows += [("", f"{value:+.5g}  {name}") for name, value in zip(names, release.parameters["coef"], strict=True)]
        rows.append(("", f"{release.parameters['intercept']:+.5g}  (constant)"))
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


def _method_line(release: Release) -> str:
    parts = [release.method, release.perturbation, release.calibration]
    line = ", ".join(part for part in parts if part)
    return line if release.level is None else f"{line}; stopped at level {release.level + 1} of {release.n_levels}"


def _noise_line(release: Release) -> str:
    kind = "exact" if release.noise == "exact" else "analysed over the reals"
    return f"{kind}, " + ("cryptographic source" if release.secure else "SEEDED SIMULATION: protects nobody")


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="fit a model to a generated data set and compare it with the truth")
    demo.set_defaults(run=_demo)


def _demo(options: argparse.Namespace) -> int:
    from expost.demo import run_demo

    del options
    run_demo(sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
