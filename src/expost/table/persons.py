"""Whose a row is, and the slots that every person's rows fill.

*Lemma.* With k slots for each of m persons (their first k rows in the order of the table, from the first again if there
are fewer), replacing one person by another changes k of the m·k slots at most and none of anybody else's. *Proof.* A
person's slots are a function of the list of their own rows, in their own order. ∎ What that is worth is in
:mod:`expost.account.composition`.

Two cells mean the same person if they are the same text, spaces around it aside. Numbers are taken as their digits: 7,
7.0 and "7" are one person, as a column of integers becomes one of floats where a cell is missing; "007" is another, and
so are 2⁵³ and 2⁵³ + 1. A cell that is missing (None, NaN, empty, one of the schema's marks) makes its row a person of
its own. Cells that are neither text nor numbers cannot be told apart without calling what they are, and are one person
together: whoever stands behind them is protected with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from expost.table.cells import is_na, is_undecoded, label

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


_WHO = (
    "person|patient|user|customer|client|member|employee|student|pupil|subject|participant|respondent|citizen|"
    "resident|taxpayer|insured|account"
)
_NAMED = re.compile(
    f"(?:{_WHO})_?(?:id|nr|no|num|number|key|code|uuid|guid|hash)|(?:id|uuid)_?(?:{_WHO})|person|patient|user|pid|uid|"
    "ssn|social_security(?:_no|_number)?|mrn|nhs_?(?:no|number)|ahv_?(?:nr)?|e_?mail(?:_address)?|phone(?:_number)?|"
    "user_?name|full_?name|first_?name|last_?name|surname|passport(?:_no|_number)?"
)


def names_a_person(name: str) -> bool:
    """Whether the name of a column says that it tells whose a row is; names are public, and no row is looked at.

    Examples
    --------
    >>> [names_a_person(name) for name in ("patient_id", "UserID", "E-Mail", "SSN", "age", "paid", "members")]
    [True, True, True, True, False, False, False]
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return _NAMED.fullmatch(re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_")) is not None


class Persons:
    """Numbers of persons, in the order in which they come, and counts of them and of cells that name nobody; private.

    ``marks`` stand for a missing cell, beside None, NaN and empty text; the counts are as in :class:`PersonTally`.
    """

    def __init__(self, marks: Iterable[Any] = ()) -> None:
        self._none = {None, *map(person_of, marks)}
        self._known: dict[Hashable, int] = {}
        self.persons = self.missing = self.unreadable = self.undecoded = 0

    def numbers(self, cells: Iterable[Any]) -> npt.NDArray[np.int64]:
        """Return the number of each row's person; rows may come in pieces."""
        return np.fromiter(map(self._number, cells), dtype=np.int64)

    def _number(self, cell: Any) -> int:
        key = person_of(cell)
        self.undecoded += is_undecoded(cell)
        self.unreadable += key is UNREADABLE
        if key in self._none:
            self.missing += 1
            found = self.persons
        else:
            found = self._known.setdefault(key, self.persons)
        self.persons += found == self.persons
        return found


def slots(cells: Iterable[Any], rows_per_person: int, marks: Iterable[Any] = ()) -> tuple[npt.NDArray[np.intp], int]:
    """Say which row fills each of k slots of each person, person after person, and how many persons there are.

    Examples
    --------
    >>> places, persons = slots(["ann", "bob", "ann", "ann", None, "bob"], 3)
    >>> places.reshape(persons, 3)
    array([[0, 2, 3],
           [1, 1, 5],
           [4, 4, 4]])
    """
    persons = Persons(marks)
    numbers = persons.numbers(cells)
    order = np.argsort(numbers, kind="stable")
    return np.repeat(order, times(numbers, rows_per_person)[order]), persons.persons


def times(persons: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.int32]:
    """Say how many of their person's k slots each row fills."""
    many, order = np.bincount(persons), np.argsort(persons, kind="stable")
    rank = np.empty_like(persons)
    rank[order] = np.arange(len(persons)) - np.repeat(np.cumsum(many) - many, many)
    own = np.minimum(many, k)[persons]
    return np.where(rank < own, k // own + (rank < k % own), 0).astype(np.int32)


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
    """Count persons and their rows."""
    persons = Persons(marks)
    rows = np.bincount(persons.numbers(cells))
    beyond = rows[rows > rows_per_person] - rows_per_person
    return PersonTally(
        persons.persons,
        persons.missing,
        persons.unreadable,
        longer=len(beyond),
        left_out=int(beyond.sum()),
        undecoded=persons.undecoded,
    )


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
