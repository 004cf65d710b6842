"""Options that charge a fit to a ledger."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from expost.account.ledger import Ledger
    from expost.release.release import Release


def add_charged_ledger(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what names a ledger and a data set in it."""
    group = parser.add_argument_group("budget of the data set (expost ledger create states it)")
    group.add_argument("--ledger", type=Path, metavar="FILE", help="the ledger that it is charged to")
    group.add_argument("--dataset", metavar="NAME", help="the data set in it that the file belongs to")
    return group


def add_ledger_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a fit."""
    add_charged_ledger(parser).add_argument(
        "--lower-max-epsilon", action="store_true", help="lower --max-epsilon to what is left of the budget"
    )


def named_ledger(options: argparse.Namespace, *, lower: bool = False) -> Ledger | None:
    """Return the ledger that was named, once it is known to be there, or None."""
    if options.ledger is None:
        if options.dataset is not None or lower:
            flag = "--dataset" if options.dataset is not None else "--lower-max-epsilon"
            raise ValueError(f"{flag} goes with --ledger; name its file")
        return None
    from expost.account.ledger import Ledger

    if options.dataset is None:
        raise ValueError("--ledger goes with --dataset: which data set of the ledger is this?")
    ledger = Ledger(options.ledger, options.dataset, when_short="lower" if lower else "refuse")
    assert ledger.budget  # complains about a file or a data set that is not there
    return ledger


def stated_ledger(options: argparse.Namespace) -> Ledger | None:
    """Return the ledger that a fit is charged to; nothing has been read or spent."""
    ledger = named_ledger(options, lower=options.lower_max_epsilon)
    if ledger is not None and options.seed is not None:
        raise ValueError(
            "seeded noise protects nobody, and a ledger books no simulation; leave out --seed, or --ledger"
        )
    return ledger


def with_charge(release: Release, ledger: Ledger | None) -> str:
    """Return the summary of a release, and beneath it what a ledger charged."""
    from expost.release.words import summary

    return summary(release, [] if ledger is None else [("ledger", charged(ledger, release))])


def uncharged() -> bool:
    """Return whether the ledger that the last search was reserved in has nothing for what it cost."""
    from expost.account.account import Spending

    return Spending.latest is not None and Spending.latest.uncharged


def charged(ledger: Ledger, release: Release) -> str:
    """Say what the ledger charged for a release, and what is left."""
    try:
        budget = ledger.budget
        entry = budget.entry(release.id)
    except (ValueError, OSError) as error:
        return f"{error}"
    held = ", its worst case, until it is settled" if entry.held else ""
    left = f"{budget.remaining.text(rounding='down')} of {budget.cap.text(rounding='down')} left"
    return f"{ledger.dataset}: {entry.loss.text()} charged{held}; {left} (entry {entry.id})"
