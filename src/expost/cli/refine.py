"""``expost refine``: go on from a release to a more accurate one, and pay the difference."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from expost import defaults, search
from expost.cli.options import (
    DATA,
    add_engine,
    add_failure_probability,
    add_file_options,
    add_goals,
    add_ledger_options,
    check_input,
    check_numbers,
    check_release,
    check_tables,
    file_options,
    named_ledger,
    stated_engine,
    stated_goal,
    stated_ledger,
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
from expost.cli.predict import read_release
from expost.goals.flags import FLAGS
from expost.table.formats import file_of

if TYPE_CHECKING:
    from expost.goals import Goal
    from expost.release.release import Release

DESCRIPTION = (
    "Go on from a release to a more accurate one. Of a table with a schema: one more search, which begins at the "
    "released model and takes the same table; its release says what both have cost together. For an excess risk: along "
    "the path that expost fit --keep-path kept. The new release says how much of its cost is new."
)
EXAMPLES = (
    "expost refine survey-satisfied.json survey.csv --error-rate 0.18",
    "expost refine survey.json --path survey.path --key curator.key --excess-risk 0.001",
)
EXITS = {
    0: "released",
    1: "released, short or refused, but a file could not be written, or the ledger not charged",
    2: "a mistake in the arguments or files; nothing was spent",
    3: "refused or interrupted, with its cost",
    5: "short of the goal: the best model is saved, with what was shown of it and its cost",
}
_OF_PATHS = ("path", "key", "regularization")


def add_arguments(refine: argparse.ArgumentParser) -> None:
    """Add the options."""
    refine.add_argument("release", type=Path, help="the release to go on from, in JSON")
    refine.add_argument("data", type=Path, nargs="?", help=f"the table it is about: {DATA}")
    refine.set_defaults(**{flag.attribute: None for flag in FLAGS.values()})
    title = "accuracy wanted now (one, or several about labels at once, as they were)"
    add_goals(refine, title, lambda flag: flag.of_tables or flag is FLAGS["ExcessRisk"])
    refine.add_argument(
        "--max-epsilon",
        type=float,
        metavar="E",
        help=f"no outcome may cost more, what was paid before included (default: {defaults.MAX_EPSILON:g})",
    )
    table = refine.add_argument_group("of a table")
    add_failure_probability(table, "of the new accuracy promise, beside that of the first")
    table.add_argument("--on-invalid", default="error", choices=("error", "clip"), help="what bad cells do")
    table.add_argument("--seed", type=int, metavar="S", help="simulate with seeded noise, which protects nobody")
    table.add_argument(
        "--when-short",
        default="keep",
        choices=("keep", "discard"),
        help="what becomes of the best model if none meets the goal, as in expost fit (default: %(default)s)",
    )
    path = refine.add_argument_group("along a path that was kept")
    path.add_argument("--path", type=Path, metavar="FILE", help="the path")
    path.add_argument("--key", type=Path, metavar="FILE", help="the key it was sealed with")
    path.add_argument("--regularization", type=float, metavar="L", help="another one; second moments only")
    add_file_options(refine)
    add_engine(refine)
    add_release_output(refine)
    add_ledger_options(refine)
    refine.set_defaults(lifted=True, delta=0.0)


def add_release_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of a release that is made of another."""
    parser.add_argument("--json", action="store_true", help="print the release as JSON")
    add_verbose(parser)
    add_output(parser, "where to save the release (default: a new file beside the other; with --json none)")


def run(options: argparse.Namespace) -> int:
    """Refine, show and write the release; returns the exit status."""
    check_numbers(options)
    check_release(options.release)
    return _along_path(options) if options.data is None else _on_table(options)


def _along_path(options: argparse.Namespace) -> int:
    """Go on along a path that was kept."""
    if options.path is None or options.key is None or options.excess_risk is None:
        raise ValueError(
            "name the table to go on with and a goal, or for an excess risk the path that was kept: --path, --key and "
            "--excess-risk"
        )
    check_input(options.path, "path")
    check_input(options.key, "key", "; expost key makes one")
    before = read_release(options.release)
    options.output = output_of(options, f"{options.excess_risk:g}")
    ledger = named_ledger(options, lower=options.lower_max_epsilon)
    with noting(options) as noted:
        release, complaint = outcome(
            lambda: search.refine(
                before,
                options.path,
                options.key,
                excess_risk=options.excess_risk,
                regularization=options.regularization,
                max_epsilon=options.max_epsilon,
                ledger=ledger,
            )
        )
    return deliver(release, options, ledger, complaint, noted)


def _on_table(options: argparse.Namespace) -> int:
    """Go on with a search of a table."""
    stated = [name for name in _OF_PATHS if getattr(options, name) is not None]
    if stated:
        raise ValueError(f"--{stated[0]} goes with a path that was kept, not with a table; leave one of them out")
    goal = stated_goal(options)
    if goal is None or options.excess_risk is not None:
        tables = ", ".join(flag.name for flag in FLAGS.values() if flag.of_tables)
        raise ValueError(f"how good must the model of the table be now? State one of {tables}")
    check_tables(options.data)
    before = read_release(options.release)
    options.output = output_of(options, _called(goal))
    check_named(options.output, options)
    ledger = stated_ledger(options)
    with noting(options) as noted:
        release, complaint = outcome(lambda: _refined(before, goal, options, ledger))
    return deliver(release, options, ledger, complaint, noted)


def _called(goal: Goal) -> str:
    """Return what a file is called by: the number of the goal, or of each of them."""
    numbers = goal.value.values() if isinstance(goal.value, dict) else [goal.value]
    return "-".join(f"{number:g}" for number in numbers)


def _refined(before: Release, goal: object, options: argparse.Namespace, ledger: object) -> Release:
    from expost.estimators import AccuracyFirstModel
    from expost.release.scoring import SchemaScorer, scorer_of
    from expost.table.files import open_disk

    scorer = scorer_of(before)
    if not isinstance(scorer, SchemaScorer):
        raise ValueError(
            f"{options.release} is of a fit without a schema, which is gone on from by a path that it kept"
        )
    model = AccuracyFirstModel(
        scorer.encoding.schema,
        failure_probability=options.failure_probability,
        on_invalid=options.on_invalid,
        engine=stated_engine(options),
        random_state=options.seed,
        ledger=ledger,  # type: ignore[arg-type]
        when_short=options.when_short,
    )
    table = open_disk(options.data, **file_options(options))
    made = model.refine(table, goal=goal, release=before, max_epsilon=options.max_epsilon)  # type: ignore[arg-type]
    return made.release_


def output_of(options: argparse.Namespace, called: str) -> Path | None:
    """Return the file to write, after complaining about one that could not be."""
    output: Path | None = options.output
    if output is None and not options.json:
        output = options.release.with_name(f"{options.release.stem}-{called}.json")
    read = (options.release, *(getattr(options, name, None) for name in ("path", "key", "ledger")))
    data = getattr(options, "data", None)
    read = read if data is None else (*read, file_of(data))
    check_output(output, force=options.force, inputs=read)
    check_printed(output, options)
    return output
