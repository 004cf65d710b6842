"""``expost ledger``: the budget of a data set, over many fits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from expost.cli.output import add_output, check_output, write_whole
from expost.cli.predict import read_release
from expost.cli.terminal import print_text
from expost.cli.words import complain
from expost.visible import one_line

if TYPE_CHECKING:
    from expost.privacy.ledger import Ledger

Action = Callable[[argparse.Namespace], str]

DESCRIPTION = (
    "Keep the budget of a data set in a file. expost fit --ledger FILE --dataset NAME reserves the worst case of a "
    "search before it begins and settles what it cost afterwards, or refuses before anything is spent."
)
EXAMPLES = (
    "expost ledger create survey.db --dataset survey-2026 --cap 2",
    "expost fit survey.csv --schema survey.toml --error-rate 0.20 --max-epsilon 1 \\\n"
    "      --ledger survey.db --dataset survey-2026",
    "expost ledger show survey.db",
)
EXITS = {0: "done", 2: "a mistake in the arguments or the ledger; nothing was recorded"}
_EXIT = "Exit status: 0 done, 2 an error and nothing recorded."


def add_arguments(ledger: argparse.ArgumentParser) -> None:
    """Add the actions with their options."""
    actions = ledger.add_subparsers(title="actions", required=True, metavar="ACTION")

    def action(name: str, run: Action, summary: str, example: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(
            name,
            allow_abbrev=False,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. Example: expost ledger {name} {example}. {_EXIT}",
        )
        parser.add_argument("ledger", type=Path, metavar="FILE", help="the file of the ledger")
        parser.set_defaults(action=run)
        return parser

    example = "survey.db --dataset survey-2026 --cap 2.0 --person household"
    create = action("create", _create, "state the budget of a data set, once", example)
    create.add_argument("--dataset", required=True, metavar="NAME", help="what to call the data set")
    create.add_argument(
        "--cap", type=float, required=True, metavar="E", help="the largest ε that all releases may cost together"
    )
    create.add_argument(
        "--delta",
        type=float,
        default=0.0,
        metavar="D",
        help="a budget (cap, D) for fits with --delta, and pure ones (default: 0, a pure budget, which refuses them)",
    )
    unit = create.add_mutually_exclusive_group()
    unit.add_argument("--person", metavar="COL", help="one person is protected, told apart by this column as in fit")
    unit.add_argument(
        "--unit", metavar="TEXT", help="or what releases made elsewhere state, word for word (default: one row)"
    )
    some = [
        action("show", _show, "show what was spent, what is held and what is left", "survey.db"),
        action("history", _history, "tell everything that was recorded, reasons included", "survey.db"),
    ]
    export = action("export", _export, "write everything as JSON, losses exactly", "survey.db --output survey.json")
    add_output(export, "where to (default: standard output)")
    example = 'survey.db c55f --worst-case --reason "power cut on 11 March"'
    settle = action("settle", _settle, "decide what a search that never ended is charged", example)
    settle.add_argument("entry", metavar="ID", help="the entry, or how its id begins")
    charge = settle.add_mutually_exclusive_group(required=True)
    charge.add_argument("--worst-case", action="store_true", help="everything that is held")
    charge.add_argument("--release", type=Path, metavar="JSON", help="what the release that the search made says")
    charge.add_argument(
        "--epsilon", type=float, metavar="E", help="less, if nothing came out of the search that cost more"
    )
    settle.add_argument("--reason", required=True, metavar="TEXT", help="why; it is recorded")
    action("verify", _verify, "say whether the file is as it was recorded, bit for bit", "survey.db")
    example = 'survey.db --epsilon 0.5 --reason "a disk error; what is lost cost 0.41"'
    repair = action("repair", _repair, "take a damaged file as it is, and charge for what it may have lost", example)
    repair.add_argument(
        "--epsilon", type=float, required=True, metavar="E", help="what may be lost or lowered, which is charged"
    )
    repair.add_argument("--reason", required=True, metavar="TEXT", help="why that is enough; it is recorded")
    book = action("book", _book, "charge a release that was made without the ledger", "survey.db release.json")
    book.add_argument("release", type=Path, metavar="JSON", help="the release")
    book.add_argument("--reason", metavar="TEXT", help="why it was made without; it is recorded")
    for parser in (*some, export, settle, repair, book):
        parser.add_argument("--dataset", metavar="NAME", help="which data set (not needed if there is one)")


def run(options: argparse.Namespace) -> int:
    """Do what was asked, say what came of it; returns the exit status."""
    try:
        print_text(options.action(options))
    except (ValueError, OSError) as error:
        return complain(error, options)
    return 0


def _create(options: argparse.Namespace) -> str:
    from expost.privacy.ledger import Ledger

    unit = {} if options.unit is None else {"unit": options.unit.strip()}
    ledger = Ledger.create(
        options.ledger, options.dataset, cap=options.cap, delta=options.delta, person=options.person, **unit
    )
    return (
        f"{options.ledger} keeps the budget of {ledger.dataset}: ε up to {ledger.budget.cap.text(rounding='down')}, "
        f"{ledger.budget.unit}\n"
        f"charge a fit to it with: expost fit … --ledger {options.ledger} --dataset {ledger.dataset}"
    )


def _show(options: argparse.Namespace) -> str:
    from expost.cli.ledger_text import shown

    return "\n\n".join(shown(ledger.budget) for ledger in _chosen(options))


def _history(options: argparse.Namespace) -> str:
    from expost.cli.ledger_text import told

    return "\n\n".join(told(ledger.budget) for ledger in _chosen(options))


def _export(options: argparse.Namespace) -> str:
    from expost.cli.ledger_text import exported

    told = json.dumps(exported([ledger.budget for ledger in _chosen(options)]), indent=2, ensure_ascii=False)
    # what no terminal should be told is escaped as JSON does it
    text = "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in told)
    if options.output is None:
        return text
    check_output(options.output, force=options.force, inputs=(options.ledger,))
    write_whole(options.output, text + "\n", force=options.force)
    return f"written to {options.output}"


def _settle(options: argparse.Namespace) -> str:
    loss = read_release(options.release) if options.release is not None else options.epsilon
    ledger = _one(options)
    entry = ledger.decide(options.entry, loss, reason=options.reason)
    return f"entry {one_line(entry.id)}: {entry.loss.text()} is charged; {_left(ledger)}"


def _verify(options: argparse.Namespace) -> str:
    from expost.privacy.ledger import Ledger

    damage = Ledger.damage(options.ledger)
    if damage:
        raise ValueError(
            f"{options.ledger} was damaged or changed: {damage}. Restore a copy of it and book what was released "
            f"since, or decide what is to be charged: expost ledger repair"
        )
    return f"{options.ledger} is as it was recorded"


def _repair(options: argparse.Namespace) -> str:
    ledger = _one(options)
    damage = ledger.repair(options.epsilon, reason=options.reason)
    return f"{damage}; taken as it is. {ledger.dataset!r}: {ledger.budget.total.text()} is charged, {_left(ledger)}"


def _book(options: argparse.Namespace) -> str:
    release, ledger = read_release(options.release), _one(options)
    known = any(release.id == entry.release_id for entry in ledger.budget.entries)
    entry = ledger.book(release, reason=options.reason)
    done = "was booked before, and is not charged again" if known else f"{entry.loss.text()} is charged"
    return f"entry {one_line(entry.id)}: {done}; {_left(ledger)}"


def _left(ledger: Ledger) -> str:
    budget = ledger.budget
    over = "" if budget.total.within(budget.cap) else f"; the cap is exceeded, {budget.total.text()} is charged"
    return f"{budget.remaining.text(rounding='down')} of {budget.cap.text(rounding='down')} left{over}"


def _chosen(options: argparse.Namespace) -> list[Ledger]:
    """Return the data set that was named, or all of them."""
    from expost.privacy.ledger import Ledger

    if options.dataset is not None:
        return [Ledger(options.ledger, options.dataset)]
    return [Ledger(options.ledger, name) for name in Ledger.datasets(options.ledger)]


def _one(options: argparse.Namespace) -> Ledger:
    found = _chosen(options)
    if len(found) != 1:
        names = ", ".join(repr(ledger.dataset) for ledger in found)
        raise ValueError(f"{options.ledger} has several data sets: {names}; name one with --dataset")
    return found[0]
