"""``expost report``: a release on paper, for a privacy officer."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost.cli.options import check_release, named_ledger
from expost.cli.output import add_output, check_output, write_whole
from expost.cli.predict import read_release
from expost.cli.terminal import print_line

DESCRIPTION = (
    "Write a report on a release: what was promised, what was paid and what that means, what was stated and not "
    "checked, and the model. One HTML file that opens without a network and prints. Nothing is spent; the data "
    "are not needed."
)
EXAMPLES = (
    "expost report survey-satisfied.json",
    "expost report survey-satisfied.json --ledger budget.db --dataset survey-2026",
)
EXITS = {0: "written", 2: "a mistake in the arguments or files; nothing was written"}


def add_arguments(report: argparse.ArgumentParser) -> None:
    """Add the options."""
    report.add_argument("release", type=Path, help="a release, as expost fit saves it; refusals as well")
    report.add_argument("--ledger", type=Path, metavar="FILE", help="the ledger it was charged to: shows what is left")
    report.add_argument("--dataset", metavar="NAME", help="the data set in it")
    add_output(report, "where to write (default: beside the release, ending in .html)")


def run(options: argparse.Namespace) -> int:
    """Write the report; returns the exit status."""
    output = options.output or options.release.with_suffix(".html")
    check_release(options.release)
    read = tuple(path for path in (options.release, options.ledger) if path is not None)
    check_output(output, force=options.force, inputs=read)
    ledger = named_ledger(options)
    release = read_release(options.release)
    from expost.release.page import BudgetLine, report

    if ledger is not None and all(release.id not in (e.id, e.release_id) for e in ledger.budget.entries):
        charge = f", or charge it there first: expost ledger book {options.ledger} {options.release} --dataset"
        charge = f"{charge} {options.dataset}" if ledger.budget.cap.takes(release.delta) else ""
        raise ValueError(
            f"release {release.id} is not booked in data set {options.dataset!r}; leave out --ledger{charge}"
        )
    budget = None if ledger is None else BudgetLine.of(ledger.budget, release)
    write_whole(output, report(release, budget), force=options.force)
    print_line(f"report in {output}; open it in a browser, and print it from there")
    return 0
