"""``expost evaluate``: what a released model is worth on private rows, and what finding out cost."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost import validation
from expost.cli.options import (
    DATA,
    add_engine,
    add_file_options,
    add_ledger_options,
    check_release,
    check_tables,
    file_options,
    stated_engine,
    stated_ledger,
)
from expost.cli.output import (
    add_output,
    asked,
    charged_by,
    check_output,
    noting,
    outcome,
    write_new,
)
from expost.cli.predict import read_release
from expost.cli.terminal import NOT_WRITTEN, REFUSED, complain, paid, print_text
from expost.shown import one_line
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.account.ledger import Ledger
    from expost.release.evaluation import Evaluation
    from expost.release.release import Release

DESCRIPTION = (
    "Say what a released model is worth on private rows: recall, precision and errors at every cut-off, ROC, "
    "calibration and lift, or R² and residuals. All of it comes from one noisy histogram. What that costs follows from "
    "the margin and is known before a row is read; it adds to what the model cost."
)
EXAMPLES = (
    "expost evaluate survey-satisfied.json survey.csv --margin 0.02",
    "expost evaluate survey-satisfied.json survey.csv --margin 0.03 --new-rows",
    "expost evaluate survey-satisfied.json test.csv --public-rows",
)
EXITS = {
    0: "evaluated",
    1: "evaluated, but a file could not be written, or the ledger not charged",
    2: "a mistake in the arguments or files, or a margin that costs too much; nothing was spent",
    3: "interrupted, with its cost",
}


def add_arguments(evaluate: argparse.ArgumentParser) -> None:
    """Add the options."""
    evaluate.add_argument("release", type=Path, help="a release with a model, as expost fit saves it")
    evaluate.add_argument("data", type=Path, help=f"{DATA}; with the target")
    evaluate.add_argument(
        "--margin",
        type=float,
        default=validation.EVALUATED_WITHIN,
        metavar="M",
        help="every count, as a share of the rows, is right within it: the smaller, the dearer (default: %(default)s)",
    )
    which = evaluate.add_mutually_exclusive_group()
    which.add_argument(
        "--new-rows",
        action="store_true",
        help="only the rows that expost fit --new-rows held out; pass the same table, in the same order",
    )
    which.add_argument(
        "--public-rows",
        action="store_true",
        help="the rows are public: exact counts, no noise and no charge. Never for rows of anybody to be protected",
    )
    evaluate.add_argument(
        "--cut-off", nargs="+", type=float, default=[], metavar="P", help="probabilities to say it at as well"
    )
    evaluate.add_argument("--bins", type=int, metavar="B", help="of scores (default: 32), or of numbers (16)")
    evaluate.add_argument(
        "--residuals-within", type=float, metavar="R", help="larger residuals count as that (default: by the goal)"
    )
    evaluate.add_argument(
        "--failure-probability",
        type=float,
        default=validation.GAMMA,
        metavar="G",
        help="that any band is missed (default: %(default)s)",
    )
    evaluate.add_argument(
        "--max-epsilon",
        type=float,
        default=validation.MOST,
        metavar="E",
        help="a margin that costs more is refused before a row is read (default: %(default)s)",
    )
    evaluate.add_argument(
        "--delta", type=float, default=0.0, metavar="D", help="what a ledger at a delta counts by (default: 0, pure)"
    )
    evaluate.add_argument(
        "--on-invalid",
        default="clip",
        choices=("error", "clip"),
        help="what bad cells do: count as missing, or stop, which tells of a row (default: %(default)s)",
    )
    evaluate.add_argument("--seed", type=int, metavar="S", help="simulate with seeded noise, which protects nobody")
    add_file_options(evaluate)
    add_engine(evaluate, searches=False)
    add_ledger_options(evaluate)
    evaluate.add_argument("--json", action="store_true", help="print the evaluation as JSON")
    add_output(evaluate, "where to save it, and a page beside it that ends in .html (default: beside the release)")


def run(options: argparse.Namespace) -> int:
    """Evaluate, show and write it; returns the exit status."""
    validation.share("--margin", options.margin)
    check_release(options.release)
    check_tables(options.data)
    read = (options.release, options.data, options.ledger)
    for path in () if options.output is None else (options.output, options.output.with_suffix(".html")):
        check_output(path, force=options.force, inputs=read)
    if options.output is not None and options.output.suffix == ".html":
        raise ValueError("--output names the file in JSON; the page beside it ends in .html")
    release = read_release(options.release)
    ledger = None if options.public_rows and options.ledger is None else stated_ledger(options)
    return evaluate_and_show(release, options, ledger)


def evaluate_and_show(release: Release, options: argparse.Namespace, ledger: Ledger | None) -> int:
    """Evaluate a release as options say, save it and show it; returns the exit status."""
    before = paid()  # by a fit that this follows
    with noting(options) as noted:
        try:
            made, complaint = outcome(lambda: evaluated(release, options, ledger).release)
        except (ValueError, TypeError, OSError) as error:
            if paid() is not None and paid() is not before:  # it is no mistake of the caller's, then
                raise
            return complain(error, options)
    stem = options.release.with_name(f"{options.release.stem}-evaluation")
    status = show(made, stem, options, ledger, complaint)
    for line, _ in noted:
        print(line, file=sys.stderr)
    return status


def evaluated(release: Release, options: argparse.Namespace, ledger: Ledger | None) -> Evaluation:
    """Evaluate a release as options say."""
    from expost.table.files import open_disk

    table: Any = open_disk(options.data, **file_options(options))
    return release.evaluate(
        table,
        margin=options.margin,
        failure_probability=options.failure_probability,
        max_epsilon=options.max_epsilon,
        bins=options.bins,
        cut_offs=options.cut_off,
        residuals_within=options.residuals_within,
        new_rows=options.new_rows,
        public_rows=options.public_rows,
        on_invalid=options.on_invalid,
        engine=stated_engine(options),
        delta=options.delta,
        ledger=ledger,
        random_state=options.seed,
    )


def show(made: Release, stem: Path, options: argparse.Namespace, ledger: Ledger | None, complaint: str = "") -> int:
    """Save and show an evaluation, whatever goes wrong: it was paid for; returns the exit status."""
    from expost.release.evaluation import Evaluation

    output, saved, failed = options.output, None, []
    found = None if made.hypothesis is None else Evaluation(made)
    try:
        if output is None:
            saved = write_new(stem, ".json", made.to_json() + "\n")
        else:
            write_whole(output, made.to_json() + "\n", force=options.force)
            saved = output
        if found is not None:
            write_whole(saved.with_suffix(".html"), found.to_page(), force=options.force)
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, what was paid for is not to be lost over it
        failed.append(f"a file could not be written ({str(error) or 'interrupted'})")
    if options.json or saved is None or found is None:
        print_text(made.to_json())
    else:
        lines = found.lines()
        if ledger is not None:
            budget = asked(ledger)
            lines.append(f"  ledger: {budget if isinstance(budget, str) else charged_by(budget, made)}")
        lines.append(f"saved to {one_line(saved)}")
        if not failed:
            lines.append(f"page with pictures: {one_line(saved.with_suffix('.html'))}")
        print_text("\n".join(lines))
    for said in failed:
        print(f"expost: {said}; keep the evaluation above, it was paid for", file=sys.stderr)
    if complaint:
        complain(complaint, options)
        return REFUSED
    from expost.account.account import Spending

    uncharged = ledger is not None and Spending.latest is not None and Spending.latest.uncharged
    return NOT_WRITTEN if failed or uncharged else 0
