"""``expost evaluate``: what a released model is worth on private rows, and what finding out cost."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost import defaults, validation
from expost.cli.options import (
    DATA,
    add_engine,
    add_failure_probability,
    add_file_options,
    add_ledger_options,
    check_release,
    check_tables,
    file_options,
    stated_engine,
    stated_ledger,
)
from expost.cli.output import (
    Failures,
    add_output,
    asked,
    charged_by,
    check_output,
    check_room,
    hand_over,
    noting,
    outcome,
    why,
    write_new,
)
from expost.cli.predict import read_release
from expost.shown import one_line
from expost.table.formats import file_of
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
    1: "evaluated or interrupted, but a file could not be written, nothing printed, or the ledger not charged",
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
        metavar="M",
        help="every count, as a share of the rows, is right within it: the smaller, the dearer (default: "
        f"{defaults.EVALUATED_WITHIN:g}, unless that would cost more than the model did)",
    )
    which = evaluate.add_mutually_exclusive_group()
    which.add_argument(
        "--new-rows",
        action="store_true",
        help="only the rows that expost fit --new-rows held out; pass the same table, in the same order",
    )
    evaluate.add_argument(
        "--held-out",
        type=Path,
        metavar="FILE",
        help=f"which those are, as expost fit kept it (default: beside the release, ending in {defaults.HELD_OUT})",
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
    add_failure_probability(evaluate, "that any band is missed")
    evaluate.add_argument(
        "--max-epsilon",
        type=float,
        default=defaults.MAX_EPSILON,
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
    if options.margin is not None:
        validation.share("--margin", options.margin)
    if options.held_out is not None and not options.new_rows:
        raise ValueError("--held-out goes with --new-rows, which looks at those rows alone")
    if options.new_rows and options.held_out is None:
        from expost.release.held_out import held_out_beside

        options.held_out = held_out_beside(options.release)
    check_release(options.release)
    check_tables(options.data)
    _check_outputs(options)
    release = read_release(options.release)
    ledger = None if options.public_rows and options.ledger is None else stated_ledger(options)
    return evaluate_and_show(release, options, ledger)


def _check_outputs(options: argparse.Namespace) -> None:
    """Complain about files that could not be written before there is anything to write."""
    read = (options.release, file_of(options.data), options.ledger, options.held_out)
    if options.output is None:
        check_beside(options.release)
        return
    for path in (options.output, options.output.with_suffix(".html")):
        check_output(path, force=options.force, inputs=read)
    if options.output.suffix == ".html":
        raise ValueError("--output names the file in JSON; the page beside it ends in .html")


def check_beside(release: Path, short: str = "") -> None:
    """Complain about a release beside which there is no place for its evaluation; ``short``: what its name may get."""
    if not os.access(release.absolute().parent, os.W_OK | os.X_OK):
        raise ValueError(f"the folder of {release} cannot be written to; say with --output where to save what it shows")
    name = "-evaluation that the name of what it shows ends in"
    check_room(release, f"{short}-evaluation-99.html", name, "name a shorter one with --output")


def evaluate_and_show(release: Release, options: argparse.Namespace, ledger: Ledger | None) -> int:
    """Evaluate a release as options say, save it and show it; returns the exit status."""
    with noting(options) as noted:
        made, complaint = outcome(lambda: evaluated(release, options, ledger).release)
    stem = options.release.with_name(f"{options.release.stem}-evaluation")
    return show(made, stem, options, ledger, complaint, noted)


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
        new_rows=options.held_out if options.new_rows else None,
        public_rows=options.public_rows,
        on_invalid=options.on_invalid,
        engine=stated_engine(options),
        delta=options.delta,
        ledger=ledger,
        random_state=options.seed,
    )


def show(
    made: Release,
    stem: Path,
    options: argparse.Namespace,
    ledger: Ledger | None,
    complaint: str = "",
    noted: Sequence[tuple[str, type[Warning]]] = (),
) -> int:
    """Save and show an evaluation, whatever goes wrong: it was paid for; returns the exit status."""
    from expost.release.evaluation import Evaluation

    output, saved, page = options.output, None, None
    failures: Failures = []
    found = None if made.hypothesis is None else Evaluation(made)
    try:
        if output is None:
            saved = write_new(stem, ".json", made.to_json() + "\n")
        else:
            write_whole(output, made.to_json() + "\n", force=options.force)
            saved = output
        if found is not None and output is None:
            page = write_new(saved.with_suffix(""), ".html", found.to_page())
        elif found is not None:
            write_whole(saved.with_suffix(".html"), found.to_page(), force=options.force)
            page = saved.with_suffix(".html")
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, what was paid for is not to be lost over it
        failures.append((str(getattr(error, "filename", None) or output or "a file"), why(error)))

    def shown() -> str:
        if options.json or saved is None or found is None:
            return made.to_json()
        lines = found.lines()
        if ledger is not None:
            budget = asked(ledger)
            lines.append(f"  ledger: {budget if isinstance(budget, str) else charged_by(budget, made)}")
        lines.append(f"saved to {one_line(saved)}")
        if page is not None:
            lines.append(f"page with pictures: {one_line(page)}")
        return "\n".join(lines)

    return hand_over(made, saved, shown, failures, options, complaint, noted)
