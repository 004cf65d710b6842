"""One column of a table as the columns of a row that it becomes: numbers in [−1, 1] or indicators, in fixed point.

A part is public. What it makes of a cell depends on that cell alone. The target is a part as well: one number, or −1
and +1 for the two classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.table.bounds import Bounds
from expost.table.cells import MISSING, UNKNOWN, Lookup
from expost.table.columns import Booleans, Column
from expost.table.kinds import BOOLEAN_WORDS, TRANSFORMS, Boolean, Categorical, Kind, Numeric
from expost.table.rows import ONE
from expost.table.tallies import Tally

Units = npt.NDArray[np.int32]

_MISSING = "(missing)"


@dataclass(frozen=True)
class Part:
    """What one column becomes.

    Attributes
    ----------
    name
        The column's.
    marks
        What stands for a missing cell.
    kind
        What is stated about it: a kind of column, or two classes.
    """

    name: str
    marks: tuple[Any, ...]
    kind: Any

    counted_as = ""  # what kind of cells its tally counts
    other = False  # whether values that are not listed have an indicator, and are not unreadable

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name, f"{self.name}={_MISSING}") if self.kind.missing == "indicator" else (self.name,)

    @property
    def boxed(self) -> bool:
        """Whether it is one number and nothing else, to be put with others like it."""
        return len(self.names) == 1

    @property
    def middle_and_half(self) -> tuple[float, float]:
        """What is taken off the first of its columns, and what it is divided by then."""
        return 0.0, 1.0

    def read(self, column: Column) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        """Return numbers or codes of all cells, which are missing, and which are nothing that was stated."""
        groups = self._groups()
        codes = column.codes(Lookup([*groups, self.marks], fold=self.counted_as == "boolean"))
        codes[codes == len(groups)] = MISSING
        return codes, codes == MISSING, codes == UNKNOWN

    def fill(self, column: Column, out: Units, unit: int) -> Tally:
        """Write the column's rows, where 1 is ``unit``; returns counts, which are private."""
        read, missing, strange = self.read(column)
        outside = self._write(read, out, unit)
        unreadable, other = (0, strange.sum()) if self.other else (strange.sum(), 0)
        undecoded, classes = column.undecoded(strange).sum(), ((read == 0).sum(), (read == 1).sum())
        counts = map(int, (missing.sum(), unreadable, outside, other, undecoded, *classes))
        return Tally.of(self.name, self.counted_as, len(column), list(counts))

    def unreadable(self, column: Column) -> Booleans:
        """Say which cells are neither missing nor what the column should hold; private, as they are."""
        strange = self.read(column)[2]
        return column.undecoded(strange) if self.other else strange

    def _groups(self) -> list[Any]:
        """Return labels by their codes."""
        raise NotImplementedError

    def _write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write what was read; returns how many numbers lie beyond their bounds."""
        raise NotImplementedError


class _NumericPart(Part):
    kind: Numeric
    counted_as = "number"

    @property
    def names(self) -> tuple[str, ...]:
        transform = self.kind.transform
        return (self.name if transform is None else f"{transform}({self.name})", *super().names[1:])

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of what is scaled."""
        low, high = (self._one(end) for end in self.kind.bounds)
        return Bounds((low,), (high,))

    @property
    def middle_and_half(self) -> tuple[float, float]:
        return float(self.bounds.center[0]), float(self.bounds.half_range[0])

    def _one(self, value: float) -> float:
        return value if self.kind.transform is None else TRANSFORMS[self.kind.transform][0](value)

    def read(self, column: Column) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        values, missing = column.numbers(Lookup([self.marks]))
        return values, missing, np.isnan(values) & ~missing

    def _write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        gone = np.isnan(read)
        if self.kind.missing == "indicator":
            out[:, 1] = np.where(gone, unit, 0)
        if self.kind.transform is None:
            return self.bounds.to_units(read, unit, out[:, 0]) - int(gone.sum())
        low, high = self.kind.bounds
        # One by one: a vectorised logarithm may round an entry differently beside other neighbours.
        within = np.fromiter(map(self._one, np.clip(read, low, high).tolist()), dtype=np.float64, count=len(read))
        self.bounds.to_units(within, unit, out[:, 0])
        return int(((read < low) | (read > high)).sum())


class _CategoricalPart(Part):
    kind: Categorical
    counted_as = "category"

    @property
    def other(self) -> bool:  # type: ignore[override]
        return self.kind.other

    @property
    def names(self) -> tuple[str, ...]:
        shown = [str(value).lower() if isinstance(value, bool) else str(value) for value in self.kind.categories]
        extra = ["(other)"] * self.kind.other + [_MISSING] * (self.kind.missing == "indicator")
        return tuple(f"{self.name}={value}" for value in [*shown, *extra])

    @property
    def boxed(self) -> bool:
        return False

    def _groups(self) -> list[Any]:
        return [[value] for value in self.kind.categories]

    def _write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        many = len(self.kind.categories)
        # Which indicator is set for UNKNOWN, MISSING and each category; −1 for none.
        other = many if self.kind.other else -1
        absent = {"indicator": len(self.names) - 1, "other": other, "zero": -1}[self.kind.missing]
        place = np.array([other if self.kind.other else absent, absent, *range(many)])[read - UNKNOWN]
        rows = np.flatnonzero(place >= 0)
        out[...] = 0
        out[rows, place[rows]] = unit
        return 0


class _BooleanPart(Part):
    kind: Boolean
    counted_as = "boolean"

    def _groups(self) -> list[Any]:
        return list(BOOLEAN_WORDS)

    def _write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        marked = self.kind.missing == "indicator"
        out[:, 0] = np.where(read == 1, unit, np.where((read < 0) & (not marked), unit // 2, 0))
        if marked:
            out[:, 1] = np.where(read < 0, unit, 0)
        return 0


class _ClassPart(Part):
    """The target of a classification; what is in neither class counts as the negative one."""

    counted_as = "class"

    def _groups(self) -> list[Any]:
        return [[stated] for stated in self.kind]

    def _write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        out[:, 0] = np.where(read == 1, unit, -unit)
        return 0


def part_of(name: str, kind: Kind, marks: tuple[Any, ...]) -> Part:
    """Return what a column becomes.

    Examples
    --------
    >>> part_of("sex", Categorical(["F", "M"], other=True), ("",)).names
    ('sex=F', 'sex=M', 'sex=(other)', 'sex=(missing)')
    >>> part_of("age", Numeric((0, 100)), ()).middle_and_half
    (50.0, 50.0)
    """
    made = {Numeric: _NumericPart, Categorical: _CategoricalPart, Boolean: _BooleanPart}[type(kind)]
    return made(name, marks, kind)


def target_part(
    name: str, classes: tuple[Any, Any] | None, bounds: tuple[float, float] | None, marks: tuple[Any, ...]
) -> Part:
    """Return what the target becomes; 1 in fixed point is ``ONE``, and what is no number is the middle of its bounds.

    Examples
    --------
    >>> out = np.empty((3, 1), dtype=np.int32)
    >>> target_part("y", ("no", "yes"), None, ()).fill(Column(["yes", "no", None]), out, ONE).classes
    (1, 1)
    >>> (out[:, 0] / ONE).tolist()
    [1.0, -1.0, -1.0]
    """
    if classes is not None:
        return _ClassPart(name, marks, classes)
    assert bounds is not None
    return part_of(name, Numeric(bounds), marks)


def unit_for(square: int) -> int:
    """Return ⌊2²⁰/√B⌋, exactly.

    Examples
    --------
    >>> unit_for(4) == ONE // 2
    True
    """
    return math.isqrt(ONE * ONE // square)
