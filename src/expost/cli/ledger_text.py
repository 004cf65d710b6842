"""A ledger as people read it: a table of entries, a history of events, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from expost.privacy.curve_loss import ApproximateCap
from expost.privacy.ledger import Budget, Entry, Event
from expost.privacy.loss import PrivacyLoss
from expost.visible import one_line

FORMAT = 1
_SHORTEST = 4  # digits of an id
_SETTLE = "← settle"


def shown(budget: Budget) -> str:
    """Return the entries of a data set with a running total, and what is left.

    Examples
    --------
    >>> from expost.privacy.loss import PureLoss
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
        lines += _table(rows, right=(4, 5))
    left = f"remaining {budget.remaining.text(rounding='down')}{squares(budget)}"
    if any(entry.held for entry in entries):
        left += f", and {budget.held.text()} held for searches not settled"
    if not budget.total.within(budget.cap):
        left += f"; the cap is exceeded: {budget.total.text()} of {budget.cap.text(rounding='down')} is charged"
    return "\n".join([*lines, left])


def squares(budget: Budget) -> str:
    """Say how what is left is meant where losses do not simply add up."""
    if not isinstance(budget.cap, ApproximateCap):
        return ""
    return f" for one more fit at δ = {budget.cap.delta:g}; two that cost half of it each would leave some"


def told(budget: Budget) -> str:
    """Return everything that was ever recorded about a data set, in order."""
    width = id_width(budget)
    rows = [(budget.day, "created", "", f"cap {budget.cap.text(rounding='down')}", budget.by, budget.unit)]
    for event in budget.events:
        rows.append((event.day, event.kind, event.entry[:width], event.loss.text(), event.by, _said(event)))
    return "\n".join([one_line(budget.dataset), *_table(rows)])


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
    if isinstance(goal, str) and _number(least):
        asked = f"{goal} ≥ {least:.4g}"
    elif goal == "R²" and _number(most):  # as older releases state it
        asked = f"R² ≥ {1 - most:.4g}"
    elif isinstance(goal, str) and _number(most):
        asked = f"{goal} ≤ {in_units if _number(in_units) else most:.4g}"
    elif _number(excess):
        asked = f"excess risk ≤ {excess:.4g}"
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


def _table(rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = ()) -> list[str]:
    rows = [tuple(map(one_line, row)) for row in rows]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        "  ".join(
            text.rjust(width) if j in right else text.ljust(width)
            for j, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


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
