"""What a column can be (a number or date within bounds, one of several categories, true or false), and what it becomes.

All of it is stated, never read off the data. A column becomes one or several columns of a row: numbers in [−1, 1],
curves (`expost.table.curves`) or indicators, in fixed point. What is made of a cell depends on that cell alone. The
target is a column as well: one number, or −1 and +1 for the two classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, time
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.table.bounds import Bounds
from expost.table.cells import MISSING, UNKNOWN, Lookup
from expost.table.columns import Booleans, Column, suggestion
from expost.table.curves import USUAL, Curve, coarser, even_knots, fewer_steps, stated_knots
from expost.table.dates import from_days, require_written, to_days

Transform = Literal["log1p", "sqrt", "log"]
#: And the lowest value that has one, or that all of them are above.
TRANSFORMS = {"log1p": (math.log1p, -1.0), "sqrt": (math.sqrt, 0.0), "log": (math.log, 0.0)}
#: What has that transform, of numbers and of arrays.
BACK = {None: np.positive, "log1p": np.expm1, "sqrt": np.square, "log": np.exp}
BOOLEAN_WORDS = (("false", "f", "no", "n", 0), ("true", "t", "yes", "y", 1))

#: What to do about a target that is a date.
NO_DATES = "a date cannot be predicted; turn it into a number, such as days since a public day"
#: What numbers look like, where cells of a column of numbers are none.
PLAIN_NUMBERS = (
    "write numbers plainly: 1234.5 and not 1,234.5, 12 and not 12 %; for a column of dates state bounds that are "
    'dates: bounds = ["1950-01-01", "2020-12-31"]'
)
#: What to do about columns that are no numbers, where no schema is stated.
TEXT_COLUMNS = "a schema describes text and categories, and expost init drafts one"
_DATE = re.compile(r"\s*(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})")

Value = str | int | float | bool
Units = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ColumnKind:
    """What all kinds of columns have in common: how cells are read, and what they become."""

    counted_as = ""  # what kind of cells a tally counts
    other = False  # whether values that are not listed have an indicator, and are not unreadable
    parsed = False  # whether a reader of files may parse its cells as numbers that are written as in the rest of it
    bends = False  # whether levels of a search with much noise see it coarser than it is encoded
    missing = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, in plain values."""
        said = ((field, getattr(self, field.name)) for field in fields(self))
        changed = ((field.name, value) for field, value in said if value != field.default)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in changed}

    def names(self, column: str) -> tuple[str, ...]:
        """Return names of the columns that a column becomes.

        Examples
        --------
        >>> Categorical(["F", "M"], other=True).names("sex")
        ('sex=F', 'sex=M', 'sex=(other)', 'sex=(missing)')
        """
        return (column, f"{column}=(missing)") if self.missing == "indicator" else (column,)

    @property
    def boxed(self) -> bool:
        """Whether it becomes one number and nothing else, to be put with others like it."""
        return self.missing != "indicator"

    @property
    def middle_and_half(self) -> tuple[float, float]:
        """What is taken off the first of its columns, and what it is divided by then."""
        return 0.0, 1.0

    @property
    def parts(self) -> tuple[ColumnKind, ...]:
        """What it is encoded as: itself, or several parts of a row."""
        return (self,)

    def view(self, intervals: int, width: int) -> tuple[npt.NDArray[np.float64], bool]:
        """Return the map from its columns to those that a coarser level sees, and whether that is one number.

        Entries are at most 1 in size, and what a column adds to a block adds up to at most 1 (`expost.table.views`).
        """
        return np.eye(width), self.boxed

    def groups(self) -> list[Any]:
        """Return labels by their codes."""
        raise NotImplementedError

    def read(self, column: Column, marks: tuple[Value, ...]) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        """Return numbers or codes of all cells, which are missing, and which are nothing that was stated."""
        groups = self.groups()
        codes = column.codes(Lookup([*groups, marks], fold=self.counted_as == "boolean"))
        codes[codes == len(groups)] = MISSING
        return codes, codes == MISSING, codes == UNKNOWN

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write what was read, where 1 is ``unit``; returns how many numbers lie beyond their bounds."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Numeric(ColumnKind):
    """A column of numbers.

    Parameters
    ----------
    bounds : (float, float)
        Lowest and highest possible value. Values beyond them are moved to the nearest.
    transform : {"log1p", "sqrt", "log"}, optional
        What is taken of a value before it is scaled: log(1 + v), √v or log v.
    missing : {"middle", "indicator"}, optional
        A missing value is put in the middle of the (transformed) bounds, or marked in a column of its own. By default
        it is put in the middle of a straight line, and marked beside a curve, where that costs next to nothing.
    curve : bool or "auto", optional
        Whether its part in the model is a curve, not a straight line; ``"auto"`` starts from the straight line and
        bends as noise falls. By default what the schema says of all columns.
    knots : int or sequence of float, optional
        Where the curve bends: so many places, evenly apart on the transformed scale (9 if nothing is said), or these.
    steps : int or sequence of float, optional
        A curve that jumps instead: so many intervals, or where each of them begins. With ``curve="auto"`` they stand
        beside the straight line.
    decimal : {".", ","}, optional
        What stands before the fraction of a number in text; by default what the rest of the file has.

    Examples
    --------
    >>> Numeric((0, 100_000), transform="log1p")
    Numeric(bounds=(0.0, 100000.0), transform='log1p')
    >>> Numeric((17, 90), knots=[25, 40]).names("age")
    ('age@17', 'age@25', 'age@40', 'age@90', 'age=(missing)')
    >>> Numeric((1, 99), steps=[20, 40, 41], missing="middle").names("hours")
    ('hours[1, 20)', 'hours[20, 40)', 'hours[40, 41)', 'hours[41, 99]')
    >>> Numeric((90, 17))
    Traceback (most recent call last):
    ...
    ValueError: bounds must have the lower one first; write bounds = [17, 90]
    """

    bounds: tuple[float, float]
    transform: Transform | None = None
    missing: Literal["middle", "indicator"] | None = None  # type: ignore[assignment]
    curve: bool | Literal["auto"] | None = None
    knots: int | tuple[float, ...] | None = None
    steps: int | tuple[float, ...] | None = None
    decimal: Literal[".", ","] | None = None

    counted_as = "number"

    def __post_init__(self) -> None:
        low, high = pair_of_numbers(self.bounds, "bounds")
        object.__setattr__(self, "bounds", (low, high))
        if self.transform is not None:
            _one_of(self.transform, tuple(TRANSFORMS), "transform")
            lowest = TRANSFORMS[self.transform][1]
            if low < lowest or (self.transform != "sqrt" and low == lowest):
                limit = "of at least 0" if self.transform == "sqrt" else f"above {lowest:g}"
                raise ValueError(f'transform = "{self.transform}" needs a lower bound {limit}, not {low:g}')
        if self.missing is not None:
            _one_of(self.missing, ("middle", "indicator"), "missing")
        if self.decimal is not None:
            _one_of(self.decimal, (".", ","), "decimal")
        self._check_curve()

    def __repr__(self) -> str:
        said = ((field.name, getattr(self, field.name)) for field in fields(self))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said if value is not None)})"

    def _check_curve(self) -> None:
        if self.curve not in (None, True, False, "auto") or isinstance(self.curve, int) != isinstance(self.curve, bool):
            raise ValueError(f'curve must be true, false or "auto", not {self.curve!r}')
        said = [name for name in ("knots", "steps") if getattr(self, name) is not None]
        if len(said) == 2:
            raise ValueError("knots are for curves that bend and steps for those that jump; state one of them")
        for name in said:
            checked = stated_knots(getattr(self, name), name)
            object.__setattr__(self, name, checked)
            if self.curve is False or (self.curve == "auto" and isinstance(checked, tuple)):
                allowed = "false takes none" if self.curve is False else '"auto" takes how many there are at most'
                raise ValueError(f"{name} are where a curve bends or jumps; curve = {allowed}")
            if isinstance(checked, tuple) and not self.bounds[0] <= checked[0] <= checked[-1] <= self.bounds[1]:
                raise ValueError(f"{name} must lie within the bounds")
        knots = () if self.shape is None else self.shape.knots
        if any(b <= a for a, b in pairwise(knots)) or len({*self.shown_knots}) < len(knots):
            raise ValueError("knots or steps are too close to each other to be told apart")

    @cached_property
    def shape(self) -> Curve | None:
        """Its knots, on the scale after the transform; None for a straight line."""
        if self.unsaid or self.curve is False:
            return None
        low, high = (float(end[0]) for end in (self.scaled.lower, self.scaled.upper))
        stated = self.knots if self.steps is None else self.steps
        jumps = self.steps is not None
        if isinstance(stated, tuple):
            inner = (self._transformed(value) for value in stated if self.bounds[0] < value < self.bounds[1])
            return Curve((low, *inner, high), jumps)
        intervals = USUAL - 1 if stated is None else stated if jumps else stated - 1
        return Curve(even_knots(low, high, intervals), jumps)

    @property
    def unsaid(self) -> bool:
        """Whether nothing is said of curves."""
        return self.curve is None and self.knots is None and self.steps is None

    @property
    def parsed(self) -> bool:  # type: ignore[override]
        """Whether numbers in text are written as in the rest of the file."""
        return self.decimal is None

    @property
    def marked(self) -> bool:
        """Whether a missing value has a mark of its own."""
        return self.missing == "indicator" or (self.missing is None and self.shape is not None)

    @property
    def boxed(self) -> bool:
        """Whether it becomes one number and nothing else, to be put with others like it."""
        return not self.marked and self.shape is None

    @property
    def bends(self) -> bool:  # type: ignore[override]
        """Whether its curve comes as noise falls."""
        return self.curve == "auto"

    def view(self, intervals: int, width: int) -> tuple[npt.NDArray[np.float64], bool]:
        """Return the map to fewer knots or steps, or to the straight line; its mark stays, if it was asked for."""
        if not self.bends or self.shape is None:
            return super().view(intervals, width)
        made = (fewer_steps if self.shape.steps else coarser)(self.shape.width, intervals)
        return with_marks(made, width, drop=intervals == 1 and self.missing is None)

    def bending(self, finest: int) -> Numeric:
        """Return it with a curve that bends as noise falls, up to so many intervals, if nothing is said of that.

        Amounts, which have a transform, jump (at zero, at thresholds), other numbers bend: a straight line and steps
        for the former, hats for the latter, are near the better of the two on tables that were looked at.
        """
        if self.knots is not None or self.steps is not None or self.curve in (True, False):
            return self
        if finest == 1:
            return replace(self, curve=False)
        if self.transform is None:
            return replace(self, curve="auto", knots=finest + 1)
        return replace(self, curve="auto", steps=finest)

    @property
    def parts(self) -> tuple[Numeric, ...]:
        """What it is encoded as: with steps that come as noise falls, a straight line as well."""
        if not (self.bends and self.steps is not None):
            return (self,)
        return replace(self, curve=False, steps=None, missing="middle"), self

    def names(self, column: str) -> tuple[str, ...]:
        """Return names of the columns that a column becomes."""
        mark = (f"{column}=(missing)",) if self.marked else ()
        if self.shape is None:
            return (column if self.transform is None else f"{self.transform}({column})", *mark)
        ends = self.shown_knots
        if not self.shape.steps:
            return (*(f"{column}@{end}" for end in ends), *mark)
        last = len(ends) - 2
        between = (f"{column}[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1))
        return (*between, *mark)

    @property
    def shown_knots(self) -> list[str]:
        """Knots in the column's own units, as people read them."""
        if self.shape is None:
            return []
        values = self.own_units(np.array(self.shape.knots))
        values[0], values[-1] = self.bounds
        for digits in (4, 6, 9, 17):
            shown = [f"{value:.{digits}g}" for value in values]
            if len(set(shown)) == len(shown):
                break
        return shown

    def own_units(self, scaled: npt.NDArray[np.float64]) -> list[float]:
        """Return what has been transformed in the column's own units again."""
        found: list[float] = np.clip(BACK[self.transform](scaled), *self.bounds).tolist()
        return found

    @property
    def scaled(self) -> Bounds:
        """Bounds of what is scaled."""
        low, high = map(self._transformed, self.bounds)
        return Bounds((low,), (high,))

    @property
    def middle(self) -> float:
        """The middle of what is scaled."""
        return float(self.scaled.center[0])

    @property
    def middle_and_half(self) -> tuple[float, float]:
        """What is taken off the first of its columns, and what it is divided by then."""
        return (0.0, 1.0) if self.shape else (self.middle, float(self.scaled.half_range[0]))

    def _transformed(self, value: float) -> float:
        return value if self.transform is None else TRANSFORMS[self.transform][0](value)

    def read(self, column: Column, marks: tuple[Value, ...]) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        """Return all cells as numbers, which are missing, and which are no numbers."""
        values, missing = (column if self.decimal is None else column.written(self.decimal)).numbers(Lookup([marks]))
        return values, missing, np.isnan(values) & ~missing

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write numbers, or their hats or steps; where there is none the middle of the bounds, or a mark."""
        gone = np.isnan(read)
        low, high = self.bounds
        outside = int(((read < low) | (read > high)).sum())
        within: npt.NDArray[np.float64] = read
        if self.transform is not None or self.shape is not None:
            within = np.clip(read, low, high)
        if self.transform is not None:
            # One by one: a vectorised logarithm may round an entry differently beside other neighbours.
            within = np.fromiter(map(self._transformed, within.tolist()), np.float64, len(read))
        if self.shape is None:
            self.scaled.to_units(within, unit, out[:, 0])
        else:
            if not self.marked:
                within = np.where(gone, self.middle, within)
            self.shape.write(within, out[:, : self.shape.width], unit)
        if self.marked:
            out[:, -1] = np.where(gone, unit, 0)
        return outside


@dataclass(frozen=True, repr=False)
class Dated(Numeric):
    """A column of dates, or times: a number, days since 1970, whose bounds are dates.

    Parameters are those of :class:`Numeric`; knots and steps are dates as well.

    Examples
    --------
    >>> born = Dated(("1950-01-01", "2020-12-31"))
    >>> born.bounds, born.to_dict()
    ((-7305.0, 18627.0), {'bounds': ['1950-01-01', '2020-12-31']})
    """

    counted_as = "date"
    parsed = False  # no reader of numbers knows dates

    def __post_init__(self) -> None:
        dated = False
        for name in ("bounds", "knots", "steps"):
            stated = getattr(self, name)
            if isinstance(stated, Iterable) and not isinstance(stated, str):
                values = tuple(stated)
                numbers = [value for value in values if isinstance(value, int | float)]
                dated = dated or len(numbers) < len(values)
                if dated and numbers:  # a year, as like as not, and no days since 1970
                    raise ValueError(f'{name} must be dates, and {numbers[0]!r} is a number; write one as "2020-12-31"')
                object.__setattr__(self, name, tuple(map(to_days, values)))
        if self.transform is not None:
            raise ValueError("a date has no transform; leave it out")
        if self.decimal is not None:
            raise ValueError("a date has no decimal mark; leave it out")
        super().__post_init__()
        for stated in (self.bounds, self.knots, self.steps):
            for days in stated if isinstance(stated, tuple) else ():
                require_written(days)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Dated({said})"

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, in plain values: dates as text."""
        said = super().to_dict()
        return {name: list(map(from_days, value)) if isinstance(value, list) else value for name, value in said.items()}

    @property
    def shown_knots(self) -> list[str]:
        """Knots as dates, as fine as it takes to tell them apart."""
        shown: list[str] = []
        for step in (1_000_000, 1_000, 1):
            shown = [from_days(days, step) for days in (self.shape.knots if self.shape else ())]
            if len(set(shown)) == len(shown):
                break
        return shown

    def read(self, column: Column, marks: tuple[Value, ...]) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        """Return all cells as days since 1970, which are missing, and which are no dates."""
        values, missing = column.days(Lookup([marks]))
        return values, missing, np.isnan(values) & ~missing


def with_marks(
    made: npt.NDArray[np.float64], width: int, *, drop: bool = False
) -> tuple[npt.NDArray[np.float64], bool]:
    """Return a map of a column's first columns with the others beside it, or without them; then it may be one number.

    Examples
    --------
    >>> with_marks(np.array([[-1.0, 1.0]]), 3)
    (array([[-1.,  1.,  0.],
           [ 0.,  0.,  1.]]), False)
    >>> with_marks(np.array([[-1.0, 1.0]]), 3, drop=True)
    (array([[-1.,  1.,  0.]]), True)
    """
    rows, columns = made.shape
    more = 0 if drop else width - columns
    found = np.zeros((rows + more, width))
    found[:rows, :columns] = made
    found[rows:, columns : columns + more] = np.eye(more)
    return found, len(found) == 1


@dataclass(frozen=True)
class Categorical(ColumnKind):
    """A column of categories, which become one indicator each.

    Parameters
    ----------
    categories : sequence of str, int, float or bool
        Every value that counts. Text is compared without spaces around it.
    other : bool, default=False
        Whether values that are not listed share an indicator. Otherwise they are an error, or missing.
    missing : {"indicator", "other", "zero"}, default="indicator"
        A missing value has an indicator of its own, is one of the others, or has all indicators 0.
    ordered : bool, default=False
        Whether they are listed from lowest to highest: levels of a search with much noise then see a rank, on a
        straight line or a coarse curve, and not every category by itself. Others and missing ones are no rank.

    Examples
    --------
    >>> Categorical(["Private", "State-gov"], other=True)
    Categorical(categories=('Private', 'State-gov'), other=True, missing='indicator', ordered=False)
    """

    categories: tuple[Value, ...]
    other: bool = False
    missing: Literal["indicator", "other", "zero"] = "indicator"
    ordered: bool = False

    counted_as = "category"
    boxed = False  # indicators are a block of their own

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", labels(self.categories, "categories"))
        if not self.categories:
            raise ValueError('categories must not be empty; write categories = ["one value", "another"]')
        if not isinstance(self.other, bool):
            raise ValueError("other must be true or false")
        if not isinstance(self.ordered, bool):
            raise ValueError("ordered must be true or false")
        if self.ordered and len(self.categories) < 2:
            raise ValueError("ordered = true needs two categories or more, from lowest to highest")
        _one_of(self.missing, ("indicator", "other", "zero"), "missing")
        if self.missing == "other" and not self.other:
            raise ValueError('missing = "other" needs other = true')

    def names(self, column: str) -> tuple[str, ...]:
        """Return names of the columns that a column becomes."""
        shown = [str(value).lower() if isinstance(value, bool) else str(value) for value in self.categories]
        extra = ["(other)"] * self.other + ["(missing)"] * (self.missing == "indicator")
        return tuple(f"{column}={value}" for value in [*shown, *extra])

    @property
    def bends(self) -> bool:  # type: ignore[override]
        """Whether levels with much noise see ranks."""
        return self.ordered

    def view(self, intervals: int, width: int) -> tuple[npt.NDArray[np.float64], bool]:
        """Return the map to hats of few ranks, or to the rank itself, others and missing ones at zero then."""
        if not self.ordered:
            return super().view(intervals, width)
        return with_marks(coarser(len(self.categories), intervals), width, drop=intervals == 1)

    def groups(self) -> list[Any]:
        """Return labels by their codes."""
        return [[value] for value in self.categories]

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write the indicator of each category."""
        many = len(self.categories)
        # Which indicator is set for UNKNOWN, MISSING and each category; −1 for none.
        other = many if self.other else -1
        absent = {"indicator": many + self.other, "other": other, "zero": -1}[self.missing]
        place = np.array([other if self.other else absent, absent, *range(many)])[read - UNKNOWN]
        rows = np.flatnonzero(place >= 0)
        out[...] = 0
        out[rows, place[rows]] = unit
        return 0


@dataclass(frozen=True)
class Boolean(ColumnKind):
    """A column of true and false, which becomes one number, 1 or 0.

    Parameters
    ----------
    missing : {"middle", "indicator"}, default="middle"
        A missing value is ½, or 0 and marked in a column of its own.

    Notes
    -----
    Read as true: true, t, yes, y and 1; as false: false, f, no, n and 0; in upper or lower case. Columns with other
    words are categories.
    """

    missing: Literal["middle", "indicator"] = "middle"

    counted_as = "boolean"

    def __post_init__(self) -> None:
        _one_of(self.missing, ("middle", "indicator"), "missing")

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, in plain values."""
        return {"boolean": True, **super().to_dict()}

    def groups(self) -> list[Any]:
        """Return labels by their codes."""
        return list(BOOLEAN_WORDS)

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write 0 and 1, and ½ for missing cells that are not marked."""
        marked = self.missing == "indicator"
        out[:, 0] = np.where(read == 1, unit, np.where((read < 0) & (not marked), unit // 2, 0))
        if marked:
            out[:, 1] = np.where(read < 0, unit, 0)
        return 0


@dataclass(frozen=True)
class Classes(ColumnKind):
    """The target of a classification; what is in neither class counts as the negative one."""

    pair: tuple[Value, Value]

    counted_as = "class"

    def groups(self) -> list[Any]:
        """Return labels by their codes."""
        return [[stated] for stated in self.pair]

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write −1 and 1."""
        out[:, 0] = np.where(read == 1, unit, -unit)
        return 0


Kind = Numeric | Categorical | Boolean  # and dates, which are numbers

_KINDS: dict[str, type[Any]] = {"bounds": Numeric, "categories": Categorical, "boolean": Boolean}
_WRITE = 'write { bounds = [lowest, highest] }, { categories = ["one value", "another"] } or { boolean = true }'


def kind_from_dict(stated: Any) -> Kind:
    """Make a kind of column from what a file says about it."""
    if isinstance(stated, Kind):
        return stated
    if not isinstance(stated, Mapping):
        raise ValueError(f"{type(stated).__name__} is no description of a column; {_WRITE}")
    known = sorted({*_KINDS, *(field.name for kind in _KINDS.values() for field in fields(kind))})
    for key in stated:
        if key not in known:
            raise ValueError(f"unknown option {key!r}; {suggestion(key, known)}")
    kinds = [key for key in _KINDS if key in stated]
    if len(kinds) != 1:
        raise ValueError(f"{'it has ' + ' and '.join(kinds) if kinds else 'it says nothing of its values'}; {_WRITE}")
    home = _KINDS[kinds[0]]
    if home is Numeric and _has_dates(stated["bounds"]):
        home = Dated
    options = [field.name for field in fields(home) if field.name != kinds[0]]
    for key in stated:
        if key != kinds[0] and key not in options:
            raise ValueError(f"{key} is no option beside {kinds[0]}; there it may be {' or '.join(options)}")
    given = dict(stated)
    if home is Boolean and given.pop("boolean") is not True:
        raise ValueError(f"boolean must be true; for another kind of column {_WRITE}")
    return home(**given)  # type: ignore[no-any-return]


def _has_dates(pair: Any) -> bool:
    """Whether a pair of bounds has dates in it, or text that looks like one."""
    listed = isinstance(pair, Iterable) and not isinstance(pair, str | bytes)
    return listed and any(isinstance(end, date | time) or (isinstance(end, str) and _DATE.match(end)) for end in pair)


def pair_of_numbers(stated: Any, name: str) -> tuple[float, float]:
    """Check a pair (low, high) of finite numbers."""
    example = f"{name} = [lowest, highest]"
    if isinstance(stated, str | bytes) or not isinstance(stated, Iterable):
        raise ValueError(f"{name} must be two numbers; write {example}")
    pair = list(stated)
    if _has_dates(pair):
        raise ValueError(f"{name} must be two numbers: {NO_DATES}")
    if len(pair) != 2 or any(isinstance(end, bool | str | bytes) for end in pair):
        raise ValueError(f"{name} must be two numbers; write {example}")
    try:
        low, high = float(pair[0]) + 0.0, float(pair[1]) + 0.0  # no −0, which would be written as 0
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be two numbers; write {example}") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name} must be finite: the lowest and highest value that is possible; write {example}")
    if low > high:
        raise ValueError(f"{name} must have the lower one first; write {name} = [{high:g}, {low:g}]")
    if not high / 2 - low / 2 > 0:
        raise ValueError(f"{name} must not be equal: a column of one value says nothing; leave it out")
    validation.pair(name, low, high)
    return low, high


def labels(stated: Any, name: str) -> tuple[Value, ...]:
    """Check a list of labels, each of them text, a number or a truth value, and no two the same."""
    if isinstance(stated, str | bytes) or not isinstance(stated, Iterable):
        raise ValueError(f'{name} must be a list; write {name} = ["one value", "another"]')
    plain = (value.item() if isinstance(value, np.generic) else value for value in stated)
    listed = tuple(value.strip() if isinstance(value, str) else _plain_number(value) for value in plain)
    validation.columns(len(listed), f" of {name}")
    for value in listed:
        if not isinstance(value, str | int | float) or (
            not isinstance(value, str) and not math.isfinite(validation.as_float(value))
        ):
            raise ValueError(f"{name} must hold text, finite numbers, true or false only")
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):  # half of a pair
            raise ValueError(f"{name} must hold text that can be written to a file")
    try:
        Lookup([[value] for value in listed])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return listed


def _plain_number(value: Any) -> Any:
    """Return 1 for 1.0, which are one label and should be written alike."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _one_of(value: Any, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        listed = " or ".join(f'"{text}"' for text in allowed)
        raise ValueError(f"{name} must be {listed}, not {value!r}")
