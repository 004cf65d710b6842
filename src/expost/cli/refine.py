"""``expost refine``: go on from a release to a more accurate one on its kept path, and pay the difference."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost import search, validation
from expost.cli.options import add_charged_ledger, check_input, check_release, named_ledger
from expost.cli.output import add_output, check_output, deliver, noting, outcome
from expost.cli.predict import read_release

DESCRIPTION = (
    "Go on from a release to a more accurate one on the path that expost fit --keep-path kept. The new release says "
    "what all of them have cost together and how much of it is new."
)
EXAMPLES = ("expost refine survey.json --path survey.path --key curator.key --excess-risk 0.001",)
EXITS = {
    0: "released",
    1: "released or refused, but a file could not be written, or the ledger not charged",
    2: "a mistake in the arguments or files; nothing was spent",
    3: "refused or interrupted, with its cost",
}


def add_arguments(refine: argparse.ArgumentParser) -> None:
    """Add the options."""
    refine.add_argument("release", type=Path, help="the release to go on from, in JSON")
    refine.add_argument("--path", type=Path, required=True, metavar="FILE", help="the path that was kept")
    refine.add_argument("--key", type=Path, required=True, metavar="FILE", help="the key it was sealed with")
    refine.add_argument("--excess-risk", type=float, required=True, metavar="A", help="the accuracy wanted now")
    refine.add_argument("--regularization", type=float, metavar="L", help="another one; second moments only")
    refine.add_argument(
        "--max-epsilon",
        type=float,
        metavar="E",
        help=f"no outcome may cost more, everything on the path included (default: {validation.MOST:g})",
    )
    add_release_output(refine)
    add_charged_ledger(refine)


def add_release_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of a release that is made of another."""
    parser.add_argument("--json", action="store_true", help="print the release as JSON")
    add_output(parser, "where to save the release (default: a new file beside the other; with --json none)")


def run(options: argparse.Namespace) -> int:
    """Refine, show and write the release; returns the exit status."""
    validation.positive("--excess-risk", options.excess_risk)
    check_release(options.release)
    check_input(options.path, "path")
    check_input(options.key, "key", "; expost key makes one")
    before = read_release(options.release)
    options.output = output_of(options, f"{options.excess_risk:g}")
    ledger = named_ledger(options)
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


def output_of(options: argparse.Namespace, called: str) -> Path | None:
    """Return the file to write, after complaining about one that could not be."""
    output: Path | None = options.output
    if output is None and not options.json:
        output = options.release.with_name(f"{options.release.stem}-{called}.json")
    read = (options.release, *(getattr(options, name, None) for name in ("path", "key", "ledger")))
    check_output(output, force=options.force, inputs=read)
    return output
