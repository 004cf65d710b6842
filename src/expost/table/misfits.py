"""Cells that do not fit what the schema says, an unknown category among them: counts for the curator, and their words.

Nothing here is covered by a privacy guarantee. A count goes out only with noise on it, or to somebody who may see the
rows anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from expost.shown import listed
from expost.table.kinds import PLAIN_NUMBERS

_RARE_VALUE = 0.01  # less than this part of a column that can be read, or lies within bounds, is "almost none"
_RARE_CLASS = 0.001  # classes are rare more often than columns are broken
_CLIPPED = 0.05  # more than this part of a column beyond its bounds, or of uneven lines, and a model is about those too

#: What clipping makes of targets, for releases to say whatever the rows hold.
CLIPPED_LABELS = "labels outside the classes, and missing ones, count as the first class"
CLIPPED_TARGETS = "targets that are missing or no numbers count as the middle of their bounds"
UNDECODED = "bytes that are not in the encoding the file is read with"
STATE_ENCODING = "read the file with encoding='latin-1', or whichever it is in"


@dataclass(frozen=True)
class Tally:
    """Counts of one column's cells.

    Attributes
    ----------
    name
        The column's.
    kind
        ``"number"``, ``"date"``, ``"category"``, ``"boolean"`` or ``"class"``.
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
    undecoded
        Cells, of those that are unreadable or others, in which bytes are not in the encoding they were read with.
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
    undecoded: int = 0
    classes: tuple[int, int] | None = None

    @classmethod
    def of(cls, name: str, kind: str, rows: int, counts: Sequence[int]) -> Tally:
        """Return the tally that has such :attr:`counts`."""
        missing, unreadable, outside, other, undecoded, *classes = counts
        pair = (classes[0], classes[1]) if kind == "class" else None
        return cls(name, kind, rows, missing, unreadable, outside, other, undecoded, pair)

    def __add__(self, other: Tally) -> Tally:
        """Return the counts of both: of further rows of the same column."""
        counts = [one + two for one, two in zip(self.counts, other.counts, strict=True)]
        return Tally.of(self.name, self.kind, self.rows + other.rows, counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts alone, which add up to those of more rows."""
        return self.missing, self.unreadable, self.outside, self.other, self.undecoded, *(self.classes or (0, 0))

    @property
    def readable(self) -> int:
        """Cells that are what the column should hold; others count."""
        return self.rows - self.missing - self.unreadable

    @property
    def wrong(self) -> int:
        """Cells that are unreadable for another reason than their encoding."""
        return max(0, self.unreadable - self.undecoded)


_WHAT = {
    "number": "cells that are not numbers",
    "date": "cells that are not dates",
    "category": "values that are not among the categories",
    "boolean": "cells that are neither true nor false",
    "class": "labels that are neither class",
}


def complaints(tallies: Sequence[Tally], target: Tally | None) -> list[str]:
    """Say which columns have cells that cannot be read, with counts and without quoting any."""
    said = []
    garbled = [f"{tally.name} ({tally.undecoded})" for tally in _all(tallies, target) if tally.undecoded]
    if garbled:
        said.append(f"{UNDECODED} in column(s) {listed(garbled)}")
    for kind, what in _WHAT.items():
        found = [f"{tally.name} ({tally.wrong})" for tally in tallies if tally.kind == kind and tally.wrong]
        if found:
            said.append(f"{what} in column(s) {listed(found)}")
    if target is not None:
        if target.wrong:
            said.append(f"{_WHAT[target.kind]} in the target {target.name} ({target.wrong})")
        if target.missing:
            said.append(f"targets that are missing in {target.name} ({target.missing})")
    return said


def remedies(tallies: Sequence[Tally], target: Tally | None) -> str:
    """Say what can be done about cells that cannot be read, and last what clipping would make of them."""
    said, clipped = [], []
    if any(tally.undecoded for tally in _all(tallies, target)):
        said.append(STATE_ENCODING)
    if any(tally.wrong and tally.kind == "number" for tally in _all(tallies, target)):
        said.append(
            f"pass decimal=',' if numbers have a decimal comma, or state it for some columns in the schema: "
            f'{{ bounds = [0, 100], decimal = "," }}; {PLAIN_NUMBERS}'
        )
    if any(tally.wrong and tally.kind == "date" for tally in tallies):
        said.append(_CHECK["date"])
    if target is not None and (target.wrong or target.missing):
        merge = "remove these rows, or merge labels until two are left and state those as classes"
        rows = "remove the rows whose target is missing or no number"
        said.append(merge if target.kind == "class" else rows)
    if any(tally.wrong for tally in tallies):
        said.append("mend these cells" if target is None else "mend these cells, or what the schema says of them")
    if any(tally.unreadable for tally in tallies):
        clipped.append("would treat such cells as missing")
    if target is not None and (target.unreadable or target.missing):
        negative = "would count rows with another label, or none, as the first class"
        middle = "would put such targets in the middle of their bounds"
        clipped.append(negative if target.kind == "class" else middle)
    if clipped:
        said.append(f'on_invalid="clip" {" and ".join(clipped)}')
    text = "; ".join(said)
    return text[:1].upper() + text[1:]


def clipped_away(tallies: Sequence[Tally], target: Tally | None) -> list[str]:
    """Say where much of a column lies beyond its bounds, so that a model knows it as the bounds alone."""
    return [
        f"{tally.outside:,} of {tally.readable:,} numbers in column {tally.name!r} lie outside its bounds, and count "
        f"as the nearest bound; check their unit, or state wider bounds from what is publicly known, not from these "
        f"rows"
        for tally in _all(tallies, target)
        if tally.outside > _CLIPPED * tally.readable
    ]


def uneven_lines(uneven: int, rows: int) -> tuple[str, bool]:
    """Say how many lines of CSV files have another number of cells than the first, and whether they are many."""
    one = uneven == 1
    said = (
        f"{uneven:,} of {rows:,} lines {'has' if one else 'have'} another number of cells than the first line of "
        f"{'its' if one else 'their'} file; cells that a line lacks are missing, and further ones are left out. Look "
        f"for separators or line breaks within cells"
    )
    return said, uneven > _CLIPPED * rows


def misfits(tallies: Sequence[Tally], target: Tally | None) -> list[str]:
    """Say where the schema and the table can hardly be meant for each other, and what to check."""
    said = []
    for tally in _all(tallies, target):
        name, few = repr(tally.name), _RARE_VALUE * tally.rows
        if tally.missing == tally.rows:
            said.append(f"every cell of column {name} is missing; check its name and which marks are listed as missing")
        elif tally.readable == 0 or tally.readable < few:
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
    "date": "readable date",
    "category": "known category",
    "boolean": "true or false",
    "class": "known label",
}
_CHECK = {
    "number": "check that it is the right column, its decimal mark (decimal=',' for a comma) and the marks for missing "
    "cells",
    "date": 'write dates as "2020-12-31"',
    "category": "check how the categories are spelt",
    "boolean": "if it has other words for them, describe them as categories",
    "class": "check how the classes are spelt",
}


def _all(tallies: Sequence[Tally], target: Tally | None) -> list[Tally]:
    return [*tallies, *([target] if target is not None else [])]
