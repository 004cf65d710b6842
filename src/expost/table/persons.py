"""Whose a row is, and the slots that every person's rows fill.

*Lemma.* With k slots for each of m persons (their first k rows in the order of the table, from the first again if there
are fewer), replacing one person by another changes k of the m·k slots at most and none of anybody else's. *Proof.* A
person's slots are a function of the list of their own rows, in their own order. ∎ What that is worth is in
:mod:`expost.account.unit`.

Two cells mean the same person if they are the same text, spaces around it aside. Numbers are taken as their digits: 7,
7.0 and "7" are one person, as a column of integers becomes one of floats where a cell is missing; "007" is another, and
so are 2⁵³ and 2⁵³ + 1. A cell that is missing (None, NaN, empty, one of the schema's marks) makes its row a person of
its own. Cells that are neither text nor numbers cannot be told apart without calling what they are, and are one person
together: whoever stands behind them is protected with the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from expost.table.cells import is_na, is_undecoded, label

__all__ = ["PersonTally", "count_persons", "person_of", "slots"]

UNREADABLE: Final = ("neither text nor a number",)  # no text, so nobody's
_DIGITS = 10_000  # Python refuses to write larger integers in decimal digits


def person_of(cell: Any) -> Hashable:
    """Return what tells a person apart: text, ``None`` if it is missing, ``UNREADABLE``.

    Examples
    --------
    >>> [person_of(cell) for cell in (" p1 ", 7, 7.0, "007", 2**53 + 1, None, "", float("nan"))]
    ['p1', '7', '7', '007', '9007199254740993', None, None, None]
    >>> person_of([7])
    ('neither text nor a number',)
    """
    if type(cell) is Decimal:  # read as a number it would be rounded
        return _digits(cell)
    value = label(cell)
    if value is None:
        return None if cell is None or is_na(cell) else UNREADABLE
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float):
        if value != value:
            return None
        if not value.is_integer():
            return repr(value)
        value = int(value)
    return str(value) if value.bit_length() < _DIGITS else hex(value)


def slots(cells: Iterable[Any], rows_per_person: int, marks: Iterable[Any] = ()) -> tuple[npt.NDArray[np.intp], int]:
    """Say which row fills each slot, person after person, and how many persons there are.

    Parameters
    ----------
    cells : iterable
        Whose each row is.
    rows_per_person : int
        k.
    marks : iterable
        What stands for a missing cell, beside None, NaN and empty text.

    Examples
    --------
    >>> places, persons = slots(["ann", "bob", "ann", "ann", None, "bob"], 3)
    >>> places.reshape(persons, 3)
    array([[0, 2, 3],
           [1, 5, 1],
           [4, 4, 4]])
    """
    none = {None, *map(person_of, marks)}
    own = [rows[:rows_per_person] for rows in _grouped(map(person_of, cells), none)]
    many = np.array([len(rows) for rows in own], dtype=np.intp)[:, None]
    first = np.cumsum(many, axis=0) - many
    listed = np.fromiter(chain.from_iterable(own), dtype=np.intp)
    return listed[first + np.arange(rows_per_person) % many].ravel(), len(own)


@dataclass(frozen=True)
class PersonTally:
    """Counts for the curator, of private rows.

    Attributes
    ----------
    persons
        How many there are, rows without a person included, one each.
    missing, unreadable, undecoded
        Rows without a person, rows whose cell is neither text nor a number, and rows whose cell has bytes in it that
        are not in the encoding.
    longer, left_out
        Persons with more rows than are kept, and rows that are not.
    """

    persons: int
    missing: int
    unreadable: int
    longer: int
    left_out: int
    undecoded: int = 0


def count_persons(cells: Iterable[Any], rows_per_person: int, marks: Iterable[Any] = ()) -> PersonTally:
    """Count persons and their rows.

    Examples
    --------
    >>> count_persons(["ann", "bob", "ann", None, {}], 1)
    PersonTally(persons=4, missing=1, unreadable=1, longer=1, left_out=1, undecoded=0)
    """
    none = {None, *map(person_of, marks)}
    rows: dict[Hashable, int] = {}
    missing = undecoded = 0
    for cell in cells:  # which may be those of a file, read in pieces: only what tells persons apart is held
        key = person_of(cell)
        undecoded += is_undecoded(cell)
        if key in none:
            missing += 1
        else:
            rows[key] = rows.get(key, 0) + 1
    beyond = [many - rows_per_person for many in rows.values() if many > rows_per_person]
    return PersonTally(
        persons=len(rows) + missing,
        missing=missing,
        unreadable=rows.get(UNREADABLE, 0),
        longer=len(beyond),
        left_out=sum(beyond),
        undecoded=undecoded,
    )


def _grouped(keys: Iterable[Hashable], none: set[Hashable]) -> list[list[int]]:
    """Return the rows of each person in the order of the table."""
    known: dict[Hashable, list[int]] = {}
    persons: list[list[int]] = []
    for i, key in enumerate(keys):
        rows = None if key in none else known.get(key)
        if rows is not None:
            rows.append(i)
            continue
        persons.append([i])
        if key not in none:
            known[key] = persons[-1]
    return persons


def _digits(cell: Decimal) -> Hashable:
    """Return a decimal's digits, as an integer's if it is one; its exponent may be too large to write it out."""
    if cell.is_nan():
        return None
    if cell.is_infinite():
        return str(float(cell))
    sign, digits, exponent = cell.as_tuple()
    assert isinstance(exponent, int)  # letters stand for what was dealt with above
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    exponent += len(text) - len(kept)
    if not kept:
        return "0"
    plain = kept + "0" * exponent if 0 <= exponent < _DIGITS else f"{kept}e{exponent}"
    return "-" * sign + plain
