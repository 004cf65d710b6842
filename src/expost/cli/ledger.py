"""``expost ledger``: the budget of a data set, over many fits.

A ledger as people read it: a table of entries, a history of events, JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.command import go_through
from expost.cli.output import add_output, check_output
from expost.cli.predict import read_release
from expost.cli.terminal import print_text
from expost.goals.flags import words_of
from expost.shown import aligned, down, one_line, up
from expost.whole import write_whole

if TYPE_CHECKING:
    from expost.account.events import Budget, Entry, Event
    from expost.account.ledger import Ledger
    from expost.account.loss import PrivacyLoss


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
EXITS = {
    0: "done",
    1: "done, but what there is to show could not be printed",
    2: "a mistake in the arguments or the ledger; nothing was recorded",
}
_EXIT = "Exit status: 0 done, 1 done but not printed, 2 an error and nothing recorded."


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
    print_text(options.action(options))
    return 0


def _create(options: argparse.Namespace) -> str:
    from expost.account.ledger import Ledger

    unit = {} if options.unit is None else {"unit": options.unit.strip()}
    go_through()
    ledger = Ledger.create(
        options.ledger, options.dataset, cap=options.cap, delta=options.delta, person=options.person, **unit
    )
    about = _said_of(ledger, lambda budget: f"ε up to {budget.cap.text(rounding='down')}, {budget.unit}")
    return (
        f"{options.ledger} keeps the budget of {ledger.dataset}: {about}\n"
        f"charge a fit to it with: expost fit … --ledger {options.ledger} --dataset {ledger.dataset}"
    )


def _show(options: argparse.Namespace) -> str:
    return "\n\n".join(shown(ledger.budget) for ledger in _chosen(options))


def _history(options: argparse.Namespace) -> str:
    return "\n\n".join(told(ledger.budget) for ledger in _chosen(options))


def _export(options: argparse.Namespace) -> str:
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
    go_through()
    entry = ledger.decide(options.entry, loss, reason=options.reason)
    return f"entry {one_line(entry.id)}: {entry.loss.text()} is charged; {_left(ledger)}"


def _verify(options: argparse.Namespace) -> str:
    from expost.account.ledger import Ledger

    damage = Ledger.damage(options.ledger)
    if damage:
        raise ValueError(
            f"{options.ledger} was damaged or changed: {damage}. Restore a copy of it and book what was released "
            f"since, or decide what is to be charged: expost ledger repair"
        )
    return f"{options.ledger} is as it was recorded"


def _repair(options: argparse.Namespace) -> str:
    ledger = _one(options)
    go_through()
    damage = ledger.repair(options.epsilon, reason=options.reason)
    charged = _said_of(ledger, lambda budget: f"{budget.total.text()} is charged")
    return f"{damage}; taken as it is. {ledger.dataset!r}: {charged}, {_left(ledger)}"


def _book(options: argparse.Namespace) -> str:
    release, ledger = read_release(options.release), _one(options)
    known = any(release.id == entry.release_id for entry in ledger.budget.entries)
    go_through()
    entry = ledger.book(release, reason=options.reason)
    done = "was booked before, and is not charged again" if known else f"{entry.loss.text()} is charged"
    return f"entry {one_line(entry.id)}: {done}; {_left(ledger)}"


def _left(ledger: Ledger) -> str:
    def left(budget: Budget) -> str:
        over = "" if budget.total.within(budget.cap) else f"; the cap is exceeded, {budget.total.text()} is charged"
        return f"{budget.remaining.text(rounding='down')} of {budget.cap.text(rounding='down')} left{over}"

    return _said_of(ledger, left)


def _said_of(ledger: Ledger, say: Callable[[Budget], str]) -> str:
    """Return what is said of a budget that was written to: that it was stands, whether or not it can be read again."""
    try:
        return say(ledger.budget)
    except Exception as error:  # whatever it is, nobody is to believe that nothing was recorded
        return f"recorded; what there is now could not be read ({error})"


def _chosen(options: argparse.Namespace) -> list[Ledger]:
    """Return the data set that was named, or all of them."""
    from expost.account.ledger import Ledger

    if options.dataset is not None:
        return [Ledger(options.ledger, options.dataset)]
    return [Ledger(options.ledger, name) for name in Ledger.datasets(options.ledger)]


def _one(options: argparse.Namespace) -> Ledger:
    found = _chosen(options)
    if len(found) != 1:
        names = ", ".join(repr(ledger.dataset) for ledger in found)
        raise ValueError(f"{options.ledger} has several data sets: {names}; name one with --dataset")
    return found[0]


FORMAT = 1
_SHORTEST = 4  # digits of an id
_SETTLE = "← settle"


def shown(budget: Budget) -> str:
    """Return the entries of a data set with a running total, and what is left.

    Examples
    --------
    >>> from expost.account.events import Budget, Event
    >>> from expost.account.loss import PureLoss
    >>> event = Event("a1f03c", "reserved", PureLoss(0.75), "2026-03-03", "ada")
    >>> print(shown(Budget("survey", "one household replaced", PureLoss(2.0), "2026-03-01", "ada", (event,))))
    survey · one household replaced · cap 2
    date        id    what  status                           ε  total
    2026-03-03  a1f0        not settled, worst case held  0.75   0.75  ← settle
    remaining 1.25, and 0.75 held for searches not settled
    """
    lines = [one_line(f"{budget.dataset} · {budget.unit} · cap {budget.cap.text(rounding='down')}")]
    entries, width = budget.entries, id_width(budget)
    rows = [("date", "id", "what", "status", "ε", "total", "")]
    losses, totals = budget.cap.texts(entry.loss for entry in entries), budget.cap.texts(budget.totals)
    for entry, loss, total in zip(entries, losses, totals, strict=True):
        note = _SETTLE if entry.held and not _running(entry) else ""
        day, short = entry.events[0].day, entry.id[:width]
        rows.append((day, short, what(entry), status(entry), loss, total, note))
    if entries:
        lines += aligned(rows, right=(4, 5))
    left = f"remaining {budget.remaining.text(rounding='down')}{squares(budget)}"
    if any(entry.held for entry in entries):
        left += f", and {budget.held.text()} held for searches not settled"
    if not budget.total.within(budget.cap):
        left += f"; the cap is exceeded: {budget.total.text()} of {budget.cap.text(rounding='down')} is charged"
    return "\n".join([*lines, left])


def squares(budget: Budget) -> str:
    """Say how what is left is meant where losses do not simply add up."""
    from expost.account.loss import ApproximateCap

    if not isinstance(budget.cap, ApproximateCap):
        return ""
    return f" for one more fit at δ = {up(budget.cap.delta, 6)}; two that cost half of it each would leave some"


def told(budget: Budget) -> str:
    """Return everything that was ever recorded about a data set, in order."""
    width = id_width(budget)
    rows = [(budget.day, "created", "", f"cap {budget.cap.text(rounding='down')}", budget.by, budget.unit)]
    for event in budget.events:
        rows.append((event.day, event.kind, event.entry[:width], event.loss.text(), event.by, _said(event)))
    return "\n".join([one_line(budget.dataset), *aligned(rows)])


def exported(budgets: Sequence[Budget]) -> dict[str, Any]:
    """Return everything as plain values: losses exactly, in hexadecimal, beside decimals rounded to the safe side."""
    return {"format": FORMAT, "datasets": [_plain_budget(budget) for budget in budgets]}


def id_width(budget: Budget) -> int:
    """Return how many digits tell the entries apart."""
    names = [entry.id for entry in budget.entries]
    longest = max(map(len, names), default=_SHORTEST)
    fit = (width for width in range(_SHORTEST, longest) if len({name[:width] for name in names}) == len(names))
    return next(fit, longest)


def what(entry: Entry) -> str:
    """Say what was asked for: the target and the goal, as far as the release says so in a way that can be read."""
    release = _release(entry.release)
    promise, target = _mapping(release.get("promise")), release.get("target")
    stated: tuple[Any, ...] = tuple(
        map(promise.get, ("goal", "at_least", "at_most", "at_most_caller_units", "excess_risk"))
    )
    goal, least, most, in_units, excess = stated
    numbers = _mapping(promise.get("goals"))
    if isinstance(goal, str) and numbers and all(map(_number, numbers.values())):
        asked = " and ".join(
            f"{name} ≥ {down(number)}" if words_of(name).at_least else f"{name} ≤ {up(number)}"
            for name, number in numbers.items()
        )
    elif isinstance(goal, str) and _number(least):
        asked = f"{goal} ≥ {down(least)}"
    elif isinstance(goal, str) and words_of(goal).at_least and _number(most):  # as older releases state it
        asked = f"{goal} ≥ {down(1 - most)}"
    elif isinstance(goal, str) and _number(most):
        asked = f"{goal} ≤ {up(in_units if _number(in_units) else most)}"
    elif _number(excess):
        asked = f"excess risk ≤ {up(excess)}"
    else:
        asked = str(release.get("method", ""))
    return ", ".join(part for part in (target if isinstance(target, str) else "", asked) if part)


def status(entry: Entry) -> str:
    """Say how far an entry has come."""
    if entry.held:
        return f"{'running' if _running(entry) else 'not settled'}, worst case held"
    kinds = [event.kind for event in entry.events]
    if kinds[-1] == "returned":
        return "nothing drawn"
    if kinds[0] == "decided":
        return "charged by a repair"
    by_hand = "settled by decision" if "decided" in kinds else "booked by hand" if "booked" in kinds else None
    release = _release(entry.release)
    interrupted = _mapping(release.get("parameters")).get("interrupted", False)
    outcome = "interrupted, worst case" if interrupted else str(release.get("status"))
    return ", ".join(part for part in (outcome if entry.release_id else None, by_hand) if part)


@lru_cache(maxsize=1)  # an entry is asked for what was wanted of it and for what became of it
def _release(text: str | None) -> dict[str, Any]:
    """Return the release as plain values: that of another version of expost can be told from others all the same."""
    try:
        return _mapping(None if text is None else json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)


def _running(entry: Entry) -> bool:
    process = entry.events[0].process
    return process is not None and process.alive


def _said(event: Event) -> str:
    parts = []
    if event.process is not None:
        parts.append(f"by process {event.process.pid} on {event.process.host}")
    if event.release_id is not None and event.release is not None:
        parts.append(f"{_release(event.release).get('status')}, release {event.release_id}")
    if event.reason is not None:
        parts.append(f"because {event.reason}" if event.kind != "returned" else event.reason)
    return "; ".join(parts)


def _plain_loss(loss: PrivacyLoss, rounding: Any = "up") -> dict[str, Any]:
    return {"kind": loss.kind, **loss.to_dict(), "text": loss.text(rounding=rounding)}


def _plain_budget(budget: Budget) -> dict[str, Any]:
    return {
        "dataset": budget.dataset,
        "unit": budget.unit,
        "cap": _plain_loss(budget.cap, "down"),
        "created": budget.day,
        "by": budget.by,
        "total": _plain_loss(budget.total),
        "held": _plain_loss(budget.held),
        "remaining": _plain_loss(budget.remaining, "down"),
        "entries": [
            {
                "id": entry.id,
                "what": what(entry),
                "status": status(entry),
                "loss": _plain_loss(entry.loss),
                "events": [_plain_event(event) for event in entry.events],
            }
            for entry in budget.entries
        ],
    }


def _plain_event(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "loss": _plain_loss(event.loss),
        "day": event.day,
        "by": event.by,
        "reason": event.reason,
        "release_id": event.release_id,
        "release": None if event.release is None else _release(event.release),
        "process": None if event.process is None else json.loads(event.process.to_json()),
    }
