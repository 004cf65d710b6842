"""What a curator should look at in a table, and what to type next: for the curator alone, of private rows.

Nothing here is covered by a privacy guarantee, and nothing in a fit asks for it. It is gathered in pieces and in little
memory, whatever the size of the table: for each column at most :data:`MOST` different spellings are told apart (those
that come later are counted together), a histogram of :data:`BINS` equal parts of its bounds or of its categories, and
in each part how many rows there are and the sums of their targets.

A column *repeats* the target if it tells nearly all of it: if guessing classes from the part of the histogram that a
row is in is wrong for less than a thousandth of the rows (of a constant, more than a hundredth are), or a straight line
in each part leaves less than a thousandth of the variance of a number, both on the scale of their transforms. Such a
column is often known only afterwards.

A mark between groups of three digits, for *thousands*, is read as a decimal mark without a complaint. So it is looked
for in what was read: numbers below a thousand in thousandths, among whole ones of which most are a thousand or more.
"""

from __future__ import annotations

import difflib
import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.table.cells import UNKNOWN, is_undecoded, label
from expost.table.columns import Column, NamedColumns
from expost.table.kinds import Boolean, Categorical, Classes, Dated, Kind, Numeric, Value
from expost.table.misfits import Tally
from expost.table.persons import names_a_person
from expost.table.schema import Schema, toml_line

MOST = 1000  # different spellings of a column
BINS = 200  # equal parts of the bounds of a number
_SHOWN = 5  # spellings, the most frequent ones
_LETTERS = 40  # of a spelling
_FEW = 100  # rows, below which parts of a table say little
_NARROW = 0.99  # part of a column's numbers within a hundredth of its bounds
_RARE = 0.001  # part of the rows: a category with fewer is nearly empty
_WRONG, _GUESSED = 0.001, 0.01  # part of the rows, or of the variance; and by a constant
_ROWS_A_BIN = 5
_NEAR = 0.82  # of two spellings, 1 the same; "male" and "female" are at 0.8
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")

_OF_NO_KIND: dict[Any, str] = {
    type(None): "an empty cell",
    list: "a list",
    dict: "an object",
    tuple: "a line that is no object",
}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """Something to look at.

    Attributes
    ----------
    about
        ``"unreadable"``, ``"other"``, ``"thousands"``, ``"bounds"``, ``"categories"``, ``"target"`` or ``"person"``.
    column
        The column's name.
    said
        What was found.
    type
        What to type, and when: a line of TOML or an option.
    """

    about: str
    column: str
    said: str
    type: str


class Spellings:
    """How often cells are spelt in which way."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.texts: dict[str, str] = {}
        self.others = 0

    def count(self, column: Column, among: npt.NDArray[np.bool_]) -> None:
        """Count some cells of a column."""
        if not among.any():
            return
        cells = column.cells()
        for i in np.flatnonzero(among).tolist():
            spelt = self._spelt(cells[i])
            if spelt in self.found or len(self.found) < MOST:
                self.found[spelt] += 1
            else:
                self.others += 1

    def _spelt(self, cell: Any) -> str:
        value = label(cell)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            text = value.strip()
            spelt = json.dumps(text[:_LETTERS], ensure_ascii=False) + ("…" if len(text) > _LETTERS else "")
            if len(text) <= _LETTERS and len(self.texts) < MOST:
                self.texts.setdefault(spelt, text)
            return spelt
        if value is None:
            return _OF_NO_KIND.get(type(cell), "another type")
        shown = f"{value:.17g}" if isinstance(value, float) else hex(value) if abs(value) > 10**20 else f"{value}"
        return shown[:_LETTERS]

    def listed(self) -> str:
        """Return the most frequent ones first."""
        said = [f"{spelt} ({many:,})" for spelt, many in self._ordered()[:_SHOWN]]
        different, more = len(self.found) - _SHOWN, "or more " * (self.others > 0)
        return ", ".join(said) + (f" and {different:,} {more}others" if different > 0 else "")

    def top(self, least: float = 1) -> list[str]:
        """Return the most frequent ones that are text, as they stand, of those that are there so often at least."""
        found = [self.texts[spelt] for spelt, many in self._ordered()[:_SHOWN] if many >= least and spelt in self.texts]
        return [text for text in found if not is_undecoded(text)]

    def _ordered(self) -> list[tuple[str, int]]:
        return sorted(self.found.items(), key=lambda item: (-item[1], item[0]))


class Looked:
    """What was seen of a table, in pieces that come from any thread."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        every = [*schema.columns, schema.target]
        self._spellings = {name: Spellings() for name in every}
        self._sums = {name: np.zeros((6, _parts(kind))) for name, kind in schema.columns.items()}
        self._sizes = {name: np.zeros(5) for name in every}
        self._rows, self._lock = 0, threading.Lock()

    def at(self, columns: NamedColumns) -> None:
        """Look at some rows."""
        with self._lock, np.errstate(all="ignore"):
            target, strange = self._target(columns[self.schema.target])
            self._rows += len(columns)
            self._spellings[self.schema.target].count(columns[self.schema.target], strange)
            for name, kind in self.schema.columns.items():
                read, _, strange = kind.read(columns[name], self.schema.missing)
                self._spellings[name].count(columns[name], strange)
                scaled = None
                if isinstance(kind, Numeric):
                    scaled = _scaled(read, kind)
                    self._sizes[name] += _sizes(read)
                self._sums[name] += _summed(_part_of(read, kind), target, _parts(kind), scaled)

    def _target(self, column: Column) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return targets between 0 and 1, NaN where there is none, and which are neither that nor missing."""
        schema = self.schema
        if schema.classes is None:
            kind = schema.target_numbers
            read, _, strange = kind.read(column, schema.missing)
            self._sizes[schema.target] += _sizes(read)
            return _scaled(read, kind), strange
        codes, _, strange = Classes(schema.classes).read(column, schema.missing)
        return np.where(codes < 0, np.nan, codes).astype(np.float64), strange

    def findings(self, tallies: Sequence[Tally], target: Tally, names: Sequence[str]) -> list[Finding]:
        """Return what there is to look at; ``names`` are those of all columns of the table."""
        found: list[Finding] = []
        for tally in [*tallies, target]:
            found += [*self._strange(tally), *self._thousands(tally.name)]
        for tally in tallies:
            kind = self.schema.columns[tally.name]
            if isinstance(kind, Numeric):
                found += self._narrow(tally, kind)
            elif isinstance(kind, Categorical):
                found += self._empty(tally, kind)
        for tally in tallies:
            found += self._repeats(tally.name)
        return [*found, *persons_unnamed(names, self.schema)]

    def _strange(self, tally: Tally) -> list[Finding]:
        spellings, name = self._spellings[tally.name], tally.name
        if not spellings.found:
            return []
        if tally.other:
            kind = self.schema.columns[name]
            assert isinstance(kind, Categorical)
            many = f"{len(spellings.found):,}{' or more' * (spellings.others > 0)}"
            values = "value" if tally.other == 1 else "values"
            said = f"{tally.other:,} {values} came under other, {many} different: {spellings.listed()}"
            often = spellings.top(max(2.0, _RARE * self._rows))
            meant, left = _meant(often, kind.categories)
            line = f"if the code book lists them, {_with_categories(name, kind, left)}"
            if not often:
                line = f"if they are ids or free text, take out the line {toml_line(name, kind)}"
            return [Finding("other", name, said, "; ".join([*meant, *([] if often and not left else [line])]))]
        cells = "cell is" if tally.unreadable == 1 else "cells are"
        said = f"{tally.unreadable:,} {cells} {_NOUNS[tally.kind]}: {spellings.listed()}"
        return [Finding("unreadable", name, said, self._mended(tally, spellings.top()))]

    def _mended(self, tally: Tally, top: list[str]) -> str:
        name, schema = tally.name, self.schema
        kind = schema.columns.get(name)
        if tally.kind == "number":
            mark = _mark_for(tally, kind, list(self._spellings[name].texts.values()))
            if mark:
                return mark
        if isinstance(kind, Categorical):
            meant, left = _meant(top, kind.categories)
            line = f"if the code book lists them, {_with_categories(name, kind, left)}; or, for all that are not listed"
            more = [f"{line}, {toml_line(name, replace(kind, other=True))}"] if left or not meant else []
            return "; ".join([*meant, *more])
        if isinstance(kind, Boolean) and top:
            return f"if these are its words, {toml_line(name, {'categories': top})}"
        # what has digits in it is rather a number that is written in another way
        marks = [text for text in top if text.isprintable() and not any(map(str.isdigit, text))]
        if name != schema.target and marks:
            return f"if they stand for no value, {toml_line('missing', [*schema.missing, *marks])}"
        if tally.kind == "class":
            meant, left = _meant(top, schema.classes or ())
            if meant and not left:
                return "; ".join(meant)
            return f"merge them into {toml_line('classes', list(schema.classes or ()))}, or take their rows out"
        return "mend these cells, or --on-invalid clip"

    def _thousands(self, name: str) -> list[Finding]:
        many, large, grouped, thousandths, further = self._sizes[name]
        if further or not grouped or 2 * thousandths < grouped or 2 * large < many:
            return []
        numbers = "number is" if grouped == 1 else "numbers are"
        said = (
            f"{grouped:,.0f} {numbers} below a thousand with up to three digits after the decimal mark, and most "
            f"others are whole and above it"
        )
        return [Finding("thousands", name, said, "if that mark parts thousands, write these cells plainly: 40441")]

    def _narrow(self, tally: Tally, kind: Numeric) -> list[Finding]:
        parts = self._sums[tally.name][0, :BINS]
        many = parts.sum()
        if many < _FEW or tally.outside > 0.05 * many or kind.transform is not None:
            return []
        width = BINS // 100
        near = np.convolve(parts, np.ones(width), "valid").max()
        if near < _NARROW * many:
            return []
        said = f"{near / many:.1%} of its numbers lie within a hundredth of its bounds, where a line is nearly flat"
        wider = kind.to_dict()
        if not isinstance(kind, Dated) and kind.bounds[0] >= 0 and kind.steps is None and kind.knots is None:
            also = f"; for amounts of very different size {toml_line(tally.name, {**wider, 'transform': 'log1p'})}"
        else:
            also = ""
        line = f"{toml_line(tally.name, kind)} with narrower bounds from what is publicly known, not from these rows"
        return [Finding("bounds", tally.name, said, line + also)]

    def _empty(self, tally: Tally, kind: Categorical) -> list[Finding]:
        counts = self._sums[tally.name][0, : len(kind.categories)]
        if self._rows < _FEW:
            return []
        rare = [j for j in range(len(counts)) if counts[j] < _RARE * self._rows]
        if not rare or len(rare) == len(counts):
            return []
        listed = ", ".join(f"{json.dumps(kind.categories[j], ensure_ascii=False)} ({counts[j]:,.0f})" for j in rare[:5])
        more = f" and {len(rare) - 5:,} more" if len(rare) > 5 else ""
        said = f"{len(rare):,} of {len(counts):,} categories are nearly empty: {listed}{more}; each costs a coefficient"
        left = tuple(value for j, value in enumerate(kind.categories) if j not in rare)
        if kind.ordered and len(left) < 2:
            return [Finding("categories", tally.name, said, "merge neighbours that are publicly known to be rare")]
        line = toml_line(tally.name, replace(kind, categories=left, other=True))
        return [Finding("categories", tally.name, said, f"if they are publicly known to be rare, {line}")]

    def _repeats(self, name: str) -> list[Finding]:
        kind = self.schema.columns[name]
        sums = self._sums[name]
        if isinstance(kind, Numeric):
            sums = _coarse_enough(sums)
        sums = sums[:, sums[0] > 0]
        rows, first, second = sums[:3]
        n = rows.sum()
        if n < _FEW or len(rows) * _ROWS_A_BIN > n:
            return []
        mean = first.sum() / n
        if self.schema.classes is not None:
            wrong, before = np.minimum(first, rows - first).sum() / n, min(mean, 1 - mean)
        else:
            variance = second.sum() / n - mean**2
            before = 1.0 if variance > 1e-9 else 0.0
            within = float(_left_by_lines(sums).sum()) / max(1.0, n - 2 * len(rows))
            wrong = within / variance if variance > 0 else 1.0
        if before <= _GUESSED or wrong > _WRONG:
            return []
        target = self.schema.target
        what = "its classes" if self.schema.classes is not None else "its variance"
        said = f"it repeats the target {target}: it alone tells all but {wrong:.2%} of {what}. Is it known beforehand?"
        return [Finding("target", name, said, f"if not, take out the line {toml_line(name, kind)}")]


_NOUNS = {
    "number": "no number",
    "date": "no date",
    "category": "not among the categories",
    "boolean": "neither true nor false",
    "class": "neither class",
}


def persons_unnamed(names: Sequence[str], schema: Schema | None) -> list[Finding]:
    """Return what names of columns say of persons that a schema does not; no row is looked at."""
    if schema is not None and schema.person is not None:
        return []
    every = dict.fromkeys([*(str(name).strip() for name in names), *(() if schema is None else schema.columns)])
    said = "by its name it says whose a row is, and no person is stated: each row is protected by itself"
    found = []
    for name in every:
        if names_a_person(name):
            feature = schema is not None and name in schema.columns
            leave = ", and take its line out of [columns]" if feature else ""
            line = f"if a person has several rows, --person {name} --rows-per-person K{leave}"
            found.append(Finding("person", name, said, line))
    return found


def _parts(kind: Kind) -> int:
    """Return how many parts a histogram of a column has: the last of them is for cells without a value."""
    if isinstance(kind, Numeric):
        return BINS + 1
    return len(kind.categories) + 2 if isinstance(kind, Categorical) else 3


def _part_of(read: npt.NDArray[Any], kind: Kind) -> npt.NDArray[np.int64]:
    if isinstance(kind, Numeric):
        scaled = _scaled(read, kind)
        return np.where(np.isnan(scaled), BINS, np.minimum(scaled * BINS, BINS - 1)).astype(np.int64)
    if isinstance(kind, Categorical):
        many = len(kind.categories)
        return np.where(read >= 0, read, np.where(read == UNKNOWN, many, many + 1)).astype(np.int64)
    return np.where(read >= 0, read, 2).astype(np.int64)


def _scaled(read: Floats, kind: Numeric) -> Floats:
    """Return numbers on a scale on which the bounds are 0 and 1."""
    low, high = float(kind.scaled.lower[0]), float(kind.scaled.upper[0])
    within = np.clip(read, *kind.bounds)
    if kind.transform is not None:
        within = {"log1p": np.log1p, "sqrt": np.sqrt, "log": np.log}[kind.transform](within)
    return np.asarray(np.clip((within - low) / (high - low), 0.0, 1.0))


def _summed(parts: npt.NDArray[np.int64], target: Floats, many: int, place: Floats | None) -> Floats:
    """Return for each part how many rows have a target, and sums of t, t², u, u² and u·t, u the ``place`` of a row."""
    known = ~np.isnan(target)
    parts, t = parts[known], target[known]
    u = np.zeros(len(t)) if place is None else np.nan_to_num(place[known])
    return np.stack([np.bincount(parts, weights, many) for weights in (np.ones(len(t)), t, t * t, u, u * u, u * t)])


def _left_by_lines(sums: Floats) -> Floats:
    """Return what a straight line in each part leaves of the squares of targets there."""
    rows, t, tt, u, uu, ut = sums
    spread, along = uu - u * u / rows, ut - u * t / rows
    slope = np.where(spread > 1e-10 * rows, along / np.maximum(spread, 1e-300), 0.0)
    return np.asarray(np.maximum(0.0, tt - t * t / rows - slope * along))


def _sizes(read: Floats) -> Floats:
    """Count numbers, whole ones of at least a thousand, and others: with three digits at most and below a thousand,
    of these in thousandths, and any others.
    """
    there = read[np.isfinite(read)]
    size = np.abs(there)
    broken = size[size % 1 != 0]
    grouped = broken[(broken < 1000) & (np.abs(broken * 1000 - np.rint(broken * 1000)) < 1e-6)]
    thousandths = np.abs(grouped * 100 - np.rint(grouped * 100)) > 1e-3
    large = (size >= 1000) & (size % 1 == 0)
    return np.array([len(there), large.sum(), len(grouped), thousandths.sum(), len(broken) - len(grouped)], np.float64)


def _coarse_enough(sums: Floats) -> Floats:
    """Join neighbouring parts until those that hold rows hold some each; the last one stays by itself."""
    numbers, rest = sums[:, :-1], sums[:, -1:]
    while numbers.shape[1] > 2 and (numbers[0] > 0).sum() * _ROWS_A_BIN > numbers[0].sum():
        if numbers.shape[1] % 2:
            numbers = np.hstack([numbers, np.zeros((len(numbers), 1))])
        numbers = numbers[:, ::2] + numbers[:, 1::2]
    return np.hstack([numbers, rest])


def _mark_for(tally: Tally, kind: Kind | None, texts: list[str]) -> str:
    """Say what to do where cells that are no numbers would be some with another mark before their fractions."""
    commas = [text for text in texts if _is_comma_number(text)]
    grouped = [text for text in texts if _THOUSANDS.fullmatch(text)]
    parted = f"if commas part thousands, write these cells plainly: {grouped[0].replace(',', '')}" if grouped else ""
    if grouped and len(grouped) >= len(commas):
        if tally.readable:
            return f"{parted} (with a decimal comma they would be a thousand times as small)"
    else:
        parted = ""
    more = [parted] if parted else []
    if commas:
        if isinstance(kind, Numeric):
            more.append(f"if that is a decimal comma, {toml_line(tally.name, replace(kind, decimal=','))}")
            more.append("or, if all numbers of the file have one, --decimal ,")
        else:
            more.append('if that is a decimal comma, --decimal , and decimal = "." for columns that have points')
    elif isinstance(kind, Numeric) and any(map(_is_point_number, texts)):
        more.append(f"if that is a decimal point, {toml_line(tally.name, replace(kind, decimal='.'))}")
    return "; ".join(more)


def _is_comma_number(text: str) -> bool:
    return text.count(",") == 1 and "." not in text and _is_point_number(text.replace(",", "."))


def _is_point_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _meant(texts: list[str], stated: Sequence[Value]) -> tuple[list[str], list[str]]:
    """Return questions whether stated labels were meant by text that is spelt nearly alike, and text that is not."""
    known = {value.casefold(): value for value in stated if isinstance(value, str)}
    meant: dict[str, str] = {}
    for text in texts:
        near = difflib.get_close_matches(text.casefold(), known, n=1, cutoff=_NEAR)
        meant |= {text: known[near[0]]} if near else {}
    shown = {json.dumps(text, ensure_ascii=False): json.dumps(near, ensure_ascii=False) for text, near in meant.items()}
    said = [f"{text}: did you mean {near}? Then mend these cells" for text, near in shown.items()]
    return said, [text for text in texts if text not in meant]


def _with_categories(name: str, kind: Categorical, more: list[str]) -> str:
    try:
        return toml_line(name, replace(kind, categories=(*kind.categories, *more)))
    except ValueError:  # spellings that a schema cannot hold
        return f"add them to the categories of {name}"
