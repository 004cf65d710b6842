"""What neighbours differ in: one row, or one person with all of their rows; and what k rows of one person charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

#: Neighbours where each row stands for itself.
NEIGHBOURS = "one row replaced by any other row; the number of rows is public"

_ROUNDING = 2.0**-49  # three parts are multiplied and added, each result rounded up: less than four units of 2⁻⁵²


@dataclass(frozen=True)
class Unit:
    """What neighbours differ in; public.

    *Neighbours*, for persons: two tables of m persons each in which one person, with all of their rows, is replaced
    by another with any rows, at least one. m is public; how many rows there are, and whose, is not.

    *What is computed.* Every person fills exactly k slots: the first k of their rows in the order of the table,
    from the first again if they have fewer. Which rows fill a person's slots depends on that person's rows alone.
    So the N = m·k slots are a table whose size is public, and neighbours differ in exactly k of its rows. In which
    order persons come is of no consequence: sensitivities and error bounds hold for a collection of rows, in
    whatever order it is summed up.

    *Theorem (group privacy, ex post).* If a search on N rows reports an outcome's loss 𝓔(o), for one row replaced,
    then k·𝓔(o) bounds its loss for one person replaced; likewise the worst case. *Proof.* Replace the k slots one
    after the other: N rows each time, the last table being the neighbour. From each table to the next the log ratio
    of the probabilities of o is at most 𝓔(o), because that bound depends on o alone and holds for every pair of
    tables of N rows. The k log ratios add. ∎ It matters that 𝓔 is a function of the outcome: a bound that was a
    function of the table as well would be another number at each of the k steps. What is rounded is rounded upwards
    here.

    *What it costs.* A person has the weight 1/m, which is what one row in a table of m rows has: losses in
    proportion to 1/N, times k, are in proportion to 1/m, whatever k is. Cutting off at k without filling up would
    leave n ≤ mk rows, and a person of weight k/n ≥ 1/m.

    Parameters
    ----------
    rows
        k: how many rows of the table that is searched one of them fills.
    persons
        m: how many there are; None where each row stands for itself.
    column
        The column that says whose a row is.

    Examples
    --------
    >>> patients = Unit(rows=5, persons=4000, column="patient_id")
    >>> patients.charge(0.1) >= 0.5
    True
    >>> patients.worst_case(patients.share(2.0)) <= 2.0
    True
    >>> patients.count(20_000), ROW.count(20_000)
    ('4,000 persons', 'n = 20000')
    """

    rows: int = 1
    persons: int | None = None
    column: str | None = None

    @property
    def noun(self) -> Literal["row", "person"]:
        """What to call one of them."""
        return "row" if self.persons is None else "person"

    @property
    def neighbours(self) -> str:
        """What a release says about it."""
        if self.persons is None:
            return NEIGHBOURS
        return (
            f"one person, as column {self.column!r} tells them apart, replaced by any other with all of their rows; "
            f"the number of persons is public; a row without a person is taken to be one of its own"
        )

    @property
    def described(self) -> dict[str, Any]:
        """What a release says about it in numbers."""
        if self.persons is None:
            return {}
        return {"person": self.column, "persons": self.persons, "rows_per_person": self.rows}

    def charge(self, loss: float) -> float:
        """Return k times a loss, not below the exact product."""
        if self.rows == 1 or not math.isfinite(loss):
            return loss
        product = self.rows * loss
        if math.isinf(product) or Fraction(product) >= self.rows * Fraction(loss):
            return product
        return math.nextafter(product, math.inf)

    def worst_case(self, loss: float) -> float:
        """Return k times a bound on sums of losses, not below what any sum of charges is rounded to."""
        return loss if self.rows == 1 else self.charge(loss) * (1 + _ROUNDING)

    def share(self, budget: float) -> float:
        """Return what one row may cost so that no outcome costs more than the budget, roundings included."""
        return budget if self.rows == 1 else budget / self.rows * (1 - 2 * _ROUNDING)

    def count(self, n: int) -> str:
        """Say how many there are in a table of n rows, for messages."""
        if self.persons is None:
            return f"n = {n}"
        return f"{self.persons:,} person{'' if self.persons == 1 else 's'}"


def tried(enough: int, unit: Unit) -> str:
    """Say how many there would have to be for a search to begin, which is not to say that it would succeed.

    Examples
    --------
    >>> tried(1200, Unit(5, 4000, "patient_id"))
    'From about 1,200 persons on it can be tried, which may cost all and fail: expost plan says how many are enough'
    """
    return (
        f"From about {enough:,} {unit.noun}s on it can be tried, which may cost all and fail: expost plan says how "
        f"many are enough"
    )


#: Each row stands for itself.
ROW = Unit()
