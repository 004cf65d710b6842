"""How many cells fit what the schema says: counts for the curator, of private rows.

Nothing here is covered by a privacy guarantee. A count goes out only with noise on it, or to somebody who may see the
rows anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Tally", "complaints", "misfits"]

_RARE_VALUE = 0.01  # less than this part of a column that can be read, or lies within bounds, is "almost none"
_RARE_CLASS = 0.001  # classes are rare more often than columns are broken


@dataclass(frozen=True)
class Tally:
    """Counts of one column's cells.

    Attributes
    ----------
    name
        The column's.
    kind
        ``"number"``, ``"category"``, ``"boolean"`` or ``"class"``.
    rows
        All cells.
    missing
        Cells that are missing or hold a mark for it.
    unreadable
        Cells that are neither missing nor what the column should hold.
    outside
        Numbers beyond their bounds, which are moved to the nearest.
    other
        Values that are not listed where the schema allows others.
    classes
        Cells of the negative and of the positive class.
    """

    name: str
    kind: str
    rows: int
    missing: int
    unreadable: int
    outside: int = 0
    other: int = 0
    classes: tuple[int, int] | None = None

    @property
    def readable(self) -> int:
        """Cells that are what the column should hold; others count."""
        return self.rows - self.missing - self.unreadable


_WHAT = {
    "number": "cells that are not numbers",
    "category": "values that are not among the categories",
    "boolean": "cells that are neither true nor false",
    "class": "labels that are neither class",
}


def complaints(tallies: Sequence[Tally], target: Tally | None) -> list[str]:
    """Say which columns have cells that cannot be read, with counts and without quoting any."""
    said = []
    for kind, what in _WHAT.items():
        found = [f"{tally.name} ({tally.unreadable})" for tally in tallies if tally.kind == kind and tally.unreadable]
        if found:
            said.append(f"{what} in column(s) {', '.join(found[:10])}{_more(found)}")
    if target is not None:
        if target.unreadable:
            said.append(f"{_WHAT[target.kind]} in the target {target.name} ({target.unreadable})")
        if target.missing:
            said.append(f"targets that are missing in {target.name} ({target.missing})")
    return said


def misfits(tallies: Sequence[Tally], target: Tally | None) -> list[str]:
    """Say where the schema and the table can hardly be meant for each other, and what to check."""
    said = []
    for tally in [*tallies, *([target] if target is not None else [])]:
        name, few = repr(tally.name), _RARE_VALUE * tally.rows
        if tally.readable == 0 or tally.readable < few:
            said.append(f"column {name} has almost no {_EXPECTED[tally.kind]}; {_CHECK[tally.kind]}")
        elif tally.readable - tally.outside < _RARE_VALUE * tally.readable:
            said.append(f"almost every number in column {name} lies outside its bounds; check their unit")
        elif tally.readable - tally.other < _RARE_VALUE * tally.readable:
            said.append(f"almost no value in column {name} is one of its categories; check how they are spelt")
        elif tally.classes is not None:
            for stated, count in zip(("first", "second"), tally.classes, strict=True):
                if count == 0 or count < _RARE_CLASS * tally.rows:
                    said.append(f"the {stated} of classes almost never occurs in {name}; check how it is spelt")
    return said


_EXPECTED = {
    "number": "readable number",
    "category": "known category",
    "boolean": "true or false",
    "class": "known label",
}
_CHECK = {
    "number": "check that it is the right column, its decimal mark and the marks for missing cells",
    "category": "check how the categories are spelt",
    "boolean": "if it has other words for them, describe them as categories",
    "class": "check how the classes are spelt",
}


def _more(found: list[str]) -> str:
    return f" and {len(found) - 10} more" if len(found) > 10 else ""
