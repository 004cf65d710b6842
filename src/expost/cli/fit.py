"""``expost fit``: a private model from a file, and what it cost."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import expost.search
from expost import defaults, validation
from expost.cli.command import go_through, unexpected
from expost.cli.evaluate import check_beside
from expost.cli.options import (
    DATA,
    add_bounds,
    add_class_weight,
    add_engine,
    add_file_options,
    add_goals,
    add_ledger_options,
    add_person_options,
    add_promise_options,
    check_input,
    check_numbers,
    check_schema,
    check_tables,
    file_options,
    stated_bounds,
    stated_classes,
    stated_engine,
    stated_goal,
    stated_ledger,
    stated_schema,
    stated_target_type,
    table_on_disk,
)
from expost.cli.output import (
    add_output,
    add_verbose,
    check_named,
    check_output,
    check_printed,
    deliver,
    noting,
    outcome,
)
from expost.cli.progress import Progress
from expost.cli.terminal import NOT_WRITTEN, complain, in_words, paid, print_line, with_notes
from expost.exceptions import UNSPENT
from expost.goals.flags import FLAGS
from expost.mechanisms import NAMES as MECHANISMS, NOISES, WITH_SCHEMA
from expost.search import METHOD_NAMES as METHODS
from expost.shown import one_line, up
from expost.table.formats import file_of
from expost.validation import CALIBRATIONS

if TYPE_CHECKING:  # imported once the arguments are known to be right
    from expost.account.ledger import Ledger
    from expost.goals import Goal
    from expost.release.release import Release
    from expost.table.files import Table
    from expost.table.schema import Schema
    from expost.table.streamed import TableOnDisk

# options that only fits without a schema have
_UNUSED = (
    "target",
    "task",
    "columns",
    "bounds",
    "bounds_file",
    "target_bound",
    "target_bounds",
    "classes",
    "method",
    "calibration",
    "noise",
    "radius",
    "n_levels",
    "regularization",
    "margin",
    "fit_intercept",
    "intercept_weight",
    "feature_bound",
    "keep_path",
    "key",
    "later",
    "keep_statistics",
    "column_bounds",
)

DESCRIPTION = (
    "Find the most private model that meets an accuracy target. Bounds are public knowledge you state; "
    "none is read off the data. The release, which holds the model and what it cost, is saved to a new file."
)
EXAMPLES = (
    "expost fit survey.csv --schema survey.toml --error-rate 0.20",
    "expost fit survey.csv --schema survey.toml --error-rate 0.20 --max-epsilon 1 --report report.html",
    "expost fit energy.parquet --target kwh --task regression --bounds 0 10 --target-bounds 0 80 --excess-risk 0.01",
)
EXITS = {
    0: "released",
    1: "released, short or refused, but a file could not be written, nothing printed, the ledger not charged, or the "
    "model not evaluated",
    2: "a mistake in the arguments, the schema or the table; nothing was spent",
    3: "refused or interrupted, with its cost",
    5: "short of the goal: the best model is saved, with what was shown of it and its cost",
}
_NO_MORE = "Nothing more was spent"
FINGERPRINTED = (
    "data_fingerprint is computed from the file without noise: whoever can guess all of it can check the guess"
)


def add_arguments(fit: argparse.ArgumentParser) -> None:
    """Add the options."""
    fit.add_argument("data", type=Path, help=DATA)
    fit.add_argument(
        "--schema", type=Path, metavar="TOML", help="what is publicly known about the table; expost init drafts one"
    )
    add_file_options(fit)
    add_person_options(fit)
    fit.add_argument("--target", metavar="COL", help="column to predict (a schema names it)")
    fit.add_argument("--task", choices=("regression", "classification"), help="(follows from a schema)")
    title = "accuracy target (one, or several about labels at once; none for --method fixed)"
    add_goals(fit, title, lambda flag: True)
    fit.add_argument(
        "--margin",
        type=float,
        default=defaults.MARGIN,
        metavar="F",
        help="part of such a goal for test noise, where one --regularization is searched for; without a schema only "
        "(default: %(default)s)",
    )
    fit.add_argument(
        "--new-rows",
        nargs="?",
        type=float,
        const=defaults.HOLDOUT,
        default=0.0,
        metavar="PART",
        help="promise an error rate, a log loss or a mean squared error about new rows drawn like these (new persons, "
        "with --person), which holds out that part of them for tests (with a schema; default: %(const)s). Which is "
        f"drawn at random, and kept for evaluate --new-rows beside the release, in a file that ends in "
        f"{defaults.HELD_OUT}: as private as the data",
    )
    fit.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all but the target)")
    add_bounds(fit)
    search = fit.add_argument_group("search")
    search.add_argument(
        "--regularization",
        type=_number_or_auto,
        default="auto",
        metavar="L",
        help="ridge weight (default: auto, which follows from the noise, or for an excess risk from the bounds)",
    )
    add_promise_options(search, lifted=True)
    add_class_weight(search)
    search.add_argument("--method", default="auto", choices=list(METHODS), help="(default: %(default)s)")
    search.add_argument(
        "--calibration", default="tight", choices=CALIBRATIONS, help="of the test (default: %(default)s)"
    )
    search.add_argument(
        "--perturbation",
        choices=sorted({*MECHANISMS, *WITH_SCHEMA}),
        help="where the noise goes: with a schema objective or, with --delta, descent or covariance; without one "
        "covariance or output (default: what is predicted to be cheapest)",
    )
    search.add_argument(
        "--noise",
        default="laplace",
        choices=NOISES,
        help="exact Laplace, or with --perturbation output spherical, analysed over the reals (default: %(default)s)",
    )
    search.add_argument("--radius", type=float, metavar="R", help="largest norm of the parameters considered")
    search.add_argument("--n-levels", type=int, metavar="T", help="how many privacy levels to search")
    search.add_argument(
        "--fit-intercept", action=argparse.BooleanOptionalAction, default=True, help="with a constant, or without"
    )
    search.add_argument(
        "--intercept-weight",
        type=float,
        default=0.25,
        metavar="C",
        help="its share of a row's norm, for an excess risk (default: 0.25)",
    )
    search.add_argument("--seed", type=int, metavar="S", help="simulate with seeded noise, which protects nobody")
    later = fit.add_argument_group("going on later (for an excess risk, without a schema)")
    later.add_argument("--keep-path", type=Path, metavar="FILE", help="keep what is left of the noise, sealed, in FILE")
    later.add_argument("--key", type=Path, metavar="FILE", help="the key to seal it with; expost key makes one")
    later.add_argument(
        "--later", nargs="+", type=float, metavar="A", help="excess risks that expost refine may be asked for"
    )
    later.add_argument(
        "--keep-statistics", action="store_true", help="release the noisy second moments too, for expost refit"
    )
    add_engine(fit)
    add_ledger_options(fit)
    out = fit.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print the release as JSON")
    add_output(out, "where to save the release (default: a new file named after data and target; with --json none)")
    add_verbose(out)
    out.add_argument("--report", type=Path, metavar="FILE", help="also write a report for a privacy officer, in HTML")
    out.add_argument(
        "--evaluate",
        nargs="?",
        type=_number_or_auto,
        const="auto",
        metavar="M",
        help="also say what the model is worth, as expost evaluate --margin does, and charge it: --max-epsilon is for "
        f"both together; with --new-rows on the rows held out (where no margin is stated {defaults.EVALUATED_WITHIN:g},"
        f" or up to {defaults.EVALUATED_AT_WIDEST:g} so that it costs no more than the model did)",
    )
    out.add_argument(
        "--when-short",
        default="keep",
        choices=("keep", "discard"),
        help="what becomes of the best model of a search that does not meet its goal: saved under a name that ends in "
        "-short with what was shown of it, or not kept, as a refusal that ends in -refused; the cost is the same "
        "(default: %(default)s)",
    )
    out.add_argument(
        "--fingerprint-data", action="store_true", help="put the SHA-256 of the data into the release, uncovered"
    )
    fit.set_defaults(usual={name: fit.get_default(name) for name in _UNUSED})


def run(options: argparse.Namespace) -> int:
    """Fit, show and write the release; returns the exit status."""
    _check(options)
    with noting(options) as noted, Progress(passes=options.progress) as progress:
        ledger = stated_ledger(options)
        release, complaint = _search(options, ledger, progress)
    # From here on privacy has been spent: whatever goes wrong, the release must reach the caller.
    status = deliver(release, options, ledger, complaint, noted)
    return status if options.evaluate is None or release.hypothesis is None else _evaluated(options, ledger, status)


def _evaluated(options: argparse.Namespace, ledger: Ledger | None, status: int) -> int:
    """Evaluate the model that was saved on the same table, and charge that as well; returns the exit status.

    By now the fit was paid for, so nothing that ends the evaluation may say that nothing was.
    """
    if options.saved is None:  # which was said
        return status
    if options.stopped:
        complain(f"the model in {options.saved} is not evaluated: interrupted. {_NO_MORE}")
        return status or NOT_WRITTEN
    fitted = paid()
    try:
        found = _evaluate(options, ledger)
    except (Exception, KeyboardInterrupt) as error:
        go_through()
        if paid() is not None and paid() is not fitted:  # the evaluation has begun to cost: whoever ends this says so
            raise
        mistake = isinstance(error, ValueError | TypeError | OSError)
        said = in_words(error, options) if mistake else with_notes(unexpected(error), error)
        said = said.replace(UNSPENT, _NO_MORE)
        said = said if _NO_MORE in said else f"{said.removesuffix('.')}. {_NO_MORE}"
        complain(f"the model in {options.saved} is not evaluated: {said}")
        found = NOT_WRITTEN
    return status or found


def _evaluate(options: argparse.Namespace, ledger: Ledger | None) -> int:
    """Evaluate the model with what is left of --max-epsilon; returns the exit status."""
    from expost.account.composition import add_losses
    from expost.cli.evaluate import evaluate_and_show
    from expost.cli.predict import read_release

    release = read_release(options.saved)
    left = -add_losses(release.epsilon, -_most(options))
    if not left > 0.0:
        raise ValueError("--max-epsilon is spent; expost evaluate does it later")
    stated = {
        "release": options.saved,
        "margin": options.evaluate,
        "max_epsilon": left,
        "new_rows": bool(options.new_rows),
        "public_rows": False,
        "cut_off": [],
        "bins": None,
        "residuals_within": None,
        "output": None,
    }
    if options.schema is None:  # what such a model needs of a table is read in pieces by this process
        stated |= {"engine": "local", "memory": None, "scratch": None}
    print_line("")
    return evaluate_and_show(release, argparse.Namespace(**{**vars(options), **stated}), ledger)


def _check(options: argparse.Namespace) -> None:
    """Complain about what is wrong whatever the table holds, before anything is imported that would take time."""
    check_numbers(options)
    if options.new_rows:
        validation.share("--new-rows", options.new_rows)
    if options.evaluate is not None:
        if options.evaluate != "auto":
            validation.share("--evaluate", options.evaluate)
        if options.new_rows and options.query is not None:
            raise ValueError(
                "--evaluate with --new-rows finds rows by their places, and a query may give them in another order "
                "when it is run again: leave out one of the two, or save its rows to a file"
            )
        if options.json:
            raise ValueError(
                "--evaluate goes without --json, which prints one release; run expost evaluate --json after"
            )
    goals = [flag for flag in FLAGS.values() if getattr(options, flag.attribute) is not None]
    if options.schema is not None:
        _check_with_schema(options)
        if not goals:
            raise ValueError(
                "how good must the model be? State --error-rate, --log-loss, or --recall with --precision for classes, "
                "--r2 or --mean-squared-error for numbers"
            )
    elif options.new_rows:
        raise ValueError("--new-rows goes with --schema; expost init drafts a schema")
    elif options.perturbation in ("descent", "objective") and not options.delta:
        raise ValueError(f"--perturbation {options.perturbation} goes with --schema; expost init drafts a schema")
    elif options.person is not None or options.rows_per_person is not None:
        raise ValueError("--person and --rows-per-person go with --schema; expost init drafts a schema")
    elif options.target is None or options.task is None:
        raise ValueError("--schema is required, or --target and --task with bounds; expost init drafts a schema")
    elif not goals and options.method != "fixed":
        raise ValueError(
            "how good must the model be? State --error-rate or --log-loss for classes, --r2 or --mean-squared-error "
            "for numbers, or --excess-risk or --relative-excess-risk: how much worse than the best model it may be"
        )
    check_tables(options.data)
    if options.schema is not None:
        check_schema(options.schema)
    if options.bounds_file is not None:
        check_input(options.bounds_file, "file of bounds")
    if options.fingerprint_data and not options.data.is_file():
        raise ValueError(f"--fingerprint-data takes one file, and {options.data} is a folder, a pattern or a database")
    _check_outputs(options)


def _check_with_schema(options: argparse.Namespace) -> None:
    """Complain about options that a schema leaves no use for."""
    stated = [name for name in _UNUSED if getattr(options, name) != options.usual[name]]
    if options.perturbation in ("descent", "covariance") and not options.delta:
        raise ValueError(f"--perturbation {options.perturbation} has Gaussian noise: pass --delta, say --delta 1e-6")
    if options.perturbation == "output":
        raise ValueError("--perturbation output goes without a schema only; leave it out")
    if stated:
        raise ValueError(f"--{stated[0].replace('_', '-')} goes without a schema only; leave it out")


def _search(options: argparse.Namespace, ledger: Ledger | None, progress: Progress) -> tuple[Release, str]:
    """Return the outcome, and what to say about it if no model is released."""
    goal = stated_goal(options)
    # before the search: a file that cannot be read must be noticed while nothing is spent
    digest = hashlib.sha256(options.data.read_bytes()).hexdigest() if options.fingerprint_data else None
    made = _search_table if options.schema is not None else _search_columns
    release, complaint = made(options, goal, ledger, progress)
    if digest is None:
        return release, complaint
    uncovered = (*release.not_covered, FINGERPRINTED)
    return release.with_details(data_fingerprint=digest, not_covered=uncovered), complaint


def _check_outputs(options: argparse.Namespace) -> None:
    """Complain about files that could not be written before there is anything to write."""
    read = (file_of(options.data), options.schema, options.bounds_file, options.ledger, options.key)
    check_output(options.output, force=options.force, inputs=read)
    check_printed(options.output, options)
    if options.evaluate is not None and options.output is not None:
        check_beside(options.output, short="-short-99")
    check_named(options.output, options)
    check_output(options.report, force=options.force, option="--report", inputs=read)
    check_output(options.keep_path, force=True, option="--keep-path", inputs=read)  # none that is there is taken later
    written = [options.output, options.report, options.keep_path]
    if options.new_rows and options.output is not None:
        from expost.release.held_out import held_out_beside

        written.append(held_out_beside(options.output))
        check_output(written[-1], force=options.force, inputs=read)
    places = [path.resolve() for path in written if path is not None]
    if len(set(places)) < len(places):
        beside = f", and none ends in {defaults.HELD_OUT}, which says who was held out" if options.new_rows else ""
        raise ValueError(f"--output, --report and --keep-path must name different files{beside}")
    if options.output is None and not options.json and not _can_write_here():
        raise ValueError(
            "this folder cannot be written to; say with --output where to save the release, or pass --json"
        )


def _can_write_here() -> bool:
    try:
        return os.access(os.getcwd(), os.W_OK | os.X_OK)
    except OSError:  # the folder is gone
        return False


def _search_columns(
    options: argparse.Namespace, goal: Goal | None, ledger: Ledger | None, progress: Progress
) -> tuple[Release, str]:
    """Fit columns of numbers that options describe."""
    streamed = table_on_disk(options)
    table: Any = _read_whole(options, progress) if streamed is None else streamed
    if options.task == "regression" and table.y.dtype.kind not in "biuf":
        raise ValueError(f"target column {options.target!r} is not numeric; is this --task classification?")
    _remark(table.column_names if streamed is None else streamed.X.disk.header, None)
    if options.evaluate is not None:
        rows = len(table.y) if streamed is None else streamed.X.disk.count()
        _check_margin(options, rows, options.task == "classification")
    model = _model(options, table, goal, ledger)
    progress.stage(f"{'' if streamed is None else 'reading and '}searching{_if_stopped(options)}")
    release, complaint = _outcome(model, _named_columns(table) if streamed is None else streamed.X, table.y)
    return release.with_details(target=options.target), complaint


def _read_whole(options: argparse.Namespace, progress: Progress) -> Table:
    """Read a table that is not read in pieces."""
    from expost.table.files import read_table

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
    return table


def _if_stopped(options: argparse.Namespace) -> str:
    """Say what a search costs that is stopped: where it does may depend on the rows, so whatever it might have cost."""
    most = _most(options)
    return f" (if stopped, it counts by its worst case, ε = {up(most)} or less)" if most < float("inf") else ""


def _most(options: argparse.Namespace) -> float:
    """Return what the fit and its evaluation may cost together."""
    return defaults.MAX_EPSILON if options.max_epsilon is None else float(options.max_epsilon)


def _check_margin(options: argparse.Namespace, n: int, labels: bool) -> None:
    """Complain about an evaluation of a model of n rows that would cost too much, however little the fit does."""
    from expost.release.evaluation_count import require_price
    from expost.search.new_rows import held_out

    n = held_out(n, options.new_rows) if options.new_rows else n
    margin = defaults.EVALUATED_AT_WIDEST if options.evaluate == "auto" else options.evaluate
    require_price(margin, n, labels, options.failure_probability, _most(options))


def _number_or_auto(text: str) -> float | str:
    return text if text == "auto" else float(text)


def _outcome(model: Any, *data: Any) -> tuple[Release, str]:
    return outcome(lambda: model.fit(*data).release_, getattr(model, "regularization", "auto") != "auto")


def _search_table(
    options: argparse.Namespace, goal: Goal | None, ledger: Ledger | None, progress: Progress
) -> tuple[Release, str]:
    """Fit a table that a schema describes."""
    from expost.estimators import AccuracyFirstModel
    from expost.table.files import open_disk

    schema = stated_schema(options)
    model = AccuracyFirstModel(
        schema,
        goal,
        failure_probability=options.failure_probability,
        delta=options.delta,
        perturbation=options.perturbation,
        on_invalid=options.on_invalid,
        engine=stated_engine(options),
        random_state=options.seed,
        ledger=ledger,
        when_short=options.when_short,
        holdout=options.new_rows,
        class_weight=options.class_weight,
        **({} if options.max_epsilon is None else {"max_epsilon": options.max_epsilon}),
    )
    disk = open_disk(options.data, **file_options(options))
    _remark(disk.header, schema)
    # how many rows persons have is not public, and those of a query are counted as they are read
    if options.evaluate is not None and schema.person is None and not disk.once:
        _check_margin(options, disk.count(), schema.task == "classification")
    progress.stage(f"reading and searching{_if_stopped(options)}")
    found = _outcome(model, disk)
    options.held_out = getattr(model, "held_out_", None)
    return found


def _remark(names: Sequence[str], schema: Schema | None) -> None:
    """Say, before anything is read, which columns look by their names as if they said whose a row is."""
    from expost.table.findings import persons_unnamed

    for finding in persons_unnamed(names, schema):
        with_schema = "" if schema is not None else " (with --schema)"
        said = one_line(f"expost: column {finding.column}: {finding.said}; {finding.type}{with_schema}")
        print(said, file=sys.stderr, flush=True)


def _model(options: argparse.Namespace, table: Table | TableOnDisk, goal: Goal | None, ledger: Ledger | None) -> Any:
    from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstRidge

    regression = options.task == "regression"
    kind: Any = AccuracyFirstRidge if regression else AccuracyFirstLogisticRegression
    stated = {field.name: getattr(options, field.name) for field in fields(kind) if hasattr(options, field.name)} | {
        "excess_risk": None,  # which the goal says
        "goal": goal,
        "bounds": stated_bounds(options, table),
        "max_epsilon": "auto" if options.max_epsilon is None else options.max_epsilon,
        "random_state": options.seed,
        "keep_path": _kept(options),
        "ledger": ledger,
    }
    if regression:
        if options.classes is not None:
            raise ValueError("--classes is for --task classification")
        if options.class_weight is not None:
            raise ValueError("--class-weight is for --task classification")
        stated["target_bounds"] = None if options.target_bounds is None else tuple(options.target_bounds)
        return kind(**stated)
    if options.keep_statistics:
        raise ValueError("--keep-statistics is for --task regression: no second moments are released elsewhere")
    if options.target_bound is not None or options.target_bounds is not None:
        raise ValueError("--target-bound and --target-bounds are for --task regression")
    return kind(**stated | {"classes": stated_classes(options.classes, table)})


def _kept(options: argparse.Namespace) -> Any:
    """Return where the path is kept, if it is."""
    stated = {"--keep-path": options.keep_path, "--key": options.key, "--later": options.later}
    missing = [flag for flag, value in stated.items() if value is None]
    if len(missing) == len(stated):
        return None
    if missing:
        raise ValueError(f"{' and '.join(missing)} is missing: a path is kept with --keep-path, --key and --later")
    return expost.search.KeepPath(options.keep_path, options.key, tuple(options.later))


def _named_columns(table: Table) -> Any:
    """Give the estimator column names without asking for pandas."""
    import numpy as np
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(column)) for column in table.X.T]
    return pa.table(columns, names=list(table.column_names))
