"""``expost refit``: another λ or fewer columns from the second moments in a release, at no further cost."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost import search
from expost.cli.options import check_release
from expost.cli.output import deliver
from expost.cli.predict import read_release
from expost.cli.refine import add_release_output, output_of
from expost.cli.terminal import complain

DESCRIPTION = (
    "Fit another regularization or fewer columns to the noisy second moments that expost fit --keep-statistics put "
    "into a release. No rows are needed and nothing is spent."
)
EXAMPLES = ("expost refit survey.json --regularization 0.05 --columns age income",)
EXITS = {0: "done", 1: "done, but a file could not be written", 2: "a mistake in the arguments or the release"}


def add_arguments(refit: argparse.ArgumentParser) -> None:
    """Add the options."""
    refit.add_argument("release", type=Path, help="a release with statistics, in JSON")
    refit.add_argument("--regularization", type=float, metavar="L", help="ridge weight (default: the release's)")
    refit.add_argument("--columns", nargs="+", metavar="COL", help="columns to use (default: all)")
    add_release_output(refit)


def run(options: argparse.Namespace) -> int:
    """Refit, show and write the release; returns the exit status."""
    check_release(options.release)
    try:
        before = read_release(options.release)
        options.output = output_of(options, "refit")
        release = search.refit(before, regularization=options.regularization, columns=options.columns)
    except (ValueError, OSError) as error:
        said = argparse.Namespace(**vars(options), keep_statistics=None)  # an option of expost fit, which is spoken of
        return complain(error, said)
    return deliver(release, options)
