"""What ``expost fit`` does with a release once it is paid for: save it, show it, and say what could not be done.

Whatever goes wrong here, the release must reach the caller: in a file, or else on the screen.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from expost.cli.ledger_options import with_charge
from expost.cli.options import print_text
from expost.cli.output import default_stem, write_new, write_whole
from expost.visible import one_line

if TYPE_CHECKING:
    from expost.privacy.ledger import Ledger
    from expost.privacy.release import Release

Failures = list[tuple[str, str]]


def deliver(release: Release, options: argparse.Namespace, ledger: Ledger | None = None) -> bool:
    """Save and show a release, and what a ledger has to say of it; returns whether all of it was possible."""
    failures: Failures = []
    saved = _save(release, options, failures)
    _save_report(release, options, ledger, failures)
    keep = "keep the release above, it was paid for" if saved is None else f"the release is in {saved}"
    shown = True
    try:
        print_text(release.to_json() if options.json else _shown(release, saved, options, failures, ledger))
        sys.stdout.flush()
    except (OSError, KeyboardInterrupt) as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # so that the exit does not fail as well
        if saved is None:
            print(release.to_json(), file=sys.stderr)
        failed = "standard output failed" if isinstance(error, OSError) else "interrupted while the release was shown"
        print(f"expost: {failed}; {keep}", file=sys.stderr)
        shown = isinstance(error, BrokenPipeError) and saved is not None  # whoever reads has seen enough
    for what, failure in failures:
        print(f"expost: {what} could not be written ({failure}); {keep}", file=sys.stderr)
    return shown and not failures


def _save(release: Release, options: argparse.Namespace, failures: Failures) -> Path | None:
    """Return where the release was saved."""
    text = release.to_json() + "\n"
    try:
        if options.output is not None:
            write_whole(options.output, text, force=options.force)
            return Path(options.output)
        return None if options.json else write_new(default_stem(options.data, release.target), ".json", text)
    except (OSError, KeyboardInterrupt) as error:
        failures.append((str(options.output or "a file for the release"), str(error) or "interrupted"))
        return None


def _save_report(release: Release, options: argparse.Namespace, ledger: Ledger | None, failures: Failures) -> None:
    if options.report is None:
        return
    from expost.report import BudgetLine, report

    try:
        budget = None if ledger is None else BudgetLine.of(ledger, release)
        write_whole(options.report, report(release, budget), force=options.force)
    except (Exception, KeyboardInterrupt) as error:  # whatever it is, the release is not to be lost over it
        failures.append((str(options.report), str(error) or "interrupted"))


def _shown(
    release: Release,
    saved: Path | None,
    options: argparse.Namespace,
    failures: Failures,
    ledger: Ledger | None,
) -> str:
    """Return the summary and what can be done next, or the whole release if it is nowhere else."""
    shown = with_charge(release, ledger)
    if saved is None:
        return "\n".join([shown, "", release.to_json()])
    lines = [shown, f"saved to {one_line(saved)}"]
    if options.report is not None and not failures:
        lines.append(f"report in {one_line(options.report)}")
    return "\n".join([*lines, *_next(release, saved, options)])


def _next(release: Release, saved: Path, options: argparse.Namespace) -> list[str]:
    """Return what can be done now, a command a line."""
    name = shlex.quote(str(saved))
    charged = "" if options.ledger is None else _charged(options)
    then = [] if options.report is not None else [f"expost report {name}{charged}"]
    if release.status == "released":
        then.insert(0, f"expost predict {name} DATA")
        if options.keep_statistics:
            then.append(f"expost refit {name} --regularization L    another λ, or fewer columns: costs nothing more")
        if options.keep_path is not None:
            opened = f"--path {options.keep_path} --key {options.key}"
            then.append(f"expost refine {name} {opened} --excess-risk A    for the difference")
    return [f"{'next:' if i == 0 else '     '} {command}" for i, command in enumerate(then)]


def _charged(options: argparse.Namespace) -> str:
    """Return the options that name the ledger, without which a report says nothing of the budget."""
    return f" --ledger {shlex.quote(str(options.ledger))} --dataset {shlex.quote(options.dataset)}"
