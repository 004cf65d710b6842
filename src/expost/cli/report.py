"""``expost report``: a release on paper, for a privacy officer."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost.cli.output import add_output, check_output, write_whole
from expost.cli.paths import check_release
from expost.cli.predict import read_release
from expost.cli.words import complain

DESCRIPTION = (
    "Write a report on a release: what was promised, what was paid and what that means, what was stated and not "
    "checked, and the model. One HTML file that opens without a network and prints. Nothing is spent; the data "
    "are not needed."
)
EXAMPLES = ("expost report survey-satisfied.json",)
EXITS = {0: "written", 2: "a mistake in the arguments or files; nothing was written"}


def add_arguments(report: argparse.ArgumentParser) -> None:
    """Add the options."""
    report.add_argument("release", type=Path, help="a release, as expost fit saves it; refusals as well")
    add_output(report, "where to write (default: beside the release, ending in .html)")


def run(options: argparse.Namespace) -> int:
    """Write the report; returns the exit status."""
    output = options.output or options.release.with_suffix(".html")
    try:
        check_release(options.release)
        check_output(output, force=options.force, inputs=(options.release,))
        release = read_release(options.release)
        from expost.report import report

        write_whole(output, report(release), force=options.force)
    except (ValueError, TypeError, OSError) as error:
        return complain(error, options)
    print(f"report in {output}; open it in a browser, and print it from there")
    return 0
