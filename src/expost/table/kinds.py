"""What a column can be (a number within bounds, one of several categories, or true or false), and what it becomes.

All of it is stated, never read off the data. A column becomes one or several columns of a row: numbers in [−1, 1] or
indicators, in fixed point. What is made of a cell depends on that cell alone. The target is a column as well: one
number, or −1 and +1 for the two classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date, time
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.table.bounds import Bounds
from expost.table.cells import MISSING, UNKNOWN, Lookup
from expost.table.columns import Booleans, Column, suggestion

Transform = Literal["log1p", "sqrt"]
TRANSFORMS = {"log1p": (math.log1p, -1.0), "sqrt": (math.sqrt, 0.0)}  # and the lowest value that has one
BOOLEAN_WORDS = (("false", "f", "no", "n", 0), ("true", "t", "yes", "y", 1))

#: What to do about a column of dates.
NO_DATES = "a date cannot be a column; turn it into a number, such as days since a public day, or leave it out"
#: What numbers look like, where cells of a column of numbers are none.
PLAIN_NUMBERS = (
    "write numbers plainly: 1234.5 and not 1,234.5, 12 and not 12 %, and a date as a number, such as days since a "
    "public day"
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


@dataclass(frozen=True)
class Numeric(ColumnKind):
    """A column of numbers.

    Parameters
    ----------
    bounds : (float, float)
        Lowest and highest possible value. Values beyond them are moved to the nearest.
    transform : {"log1p", "sqrt"}, optional
        What is taken of a value before it is scaled: log(1 + v) or √v.
    missing : {"middle", "indicator"}, default="middle"
        A missing value is put in the middle of the (transformed) bounds, or there and marked in a column of its own.

    Examples
    --------
    >>> Numeric((0, 100_000), transform="log1p")
    Numeric(bounds=(0.0, 100000.0), transform='log1p', missing='middle')
    >>> Numeric((90, 17))
    Traceback (most recent call last):
    ...
    ValueError: bounds must have the lower one first; write bounds = [17, 90]
    """

    bounds: tuple[float, float]
    transform: Transform | None = None
    missing: Literal["middle", "indicator"] = "middle"

    counted_as = "number"

    def __post_init__(self) -> None:
        low, high = pair_of_numbers(self.bounds, "bounds")
        object.__setattr__(self, "bounds", (low, high))
        if self.transform is not None:
            _one_of(self.transform, tuple(TRANSFORMS), "transform")
            lowest = TRANSFORMS[self.transform][1]
            if low < lowest or (self.transform == "log1p" and low == lowest):
                limit = "above -1" if self.transform == "log1p" else "of at least 0"
                raise ValueError(f'transform = "{self.transform}" needs a lower bound {limit}, not {low:g}')
        _one_of(self.missing, ("middle", "indicator"), "missing")

    def names(self, column: str) -> tuple[str, ...]:
        """Return names of the columns that a column becomes."""
        called = column if self.transform is None else f"{self.transform}({column})"
        return called, *super().names(column)[1:]

    @property
    def scaled(self) -> Bounds:
        """Bounds of what is scaled."""
        low, high = map(self._transformed, self.bounds)
        return Bounds((low,), (high,))

    @property
    def middle_and_half(self) -> tuple[float, float]:
        """What is taken off the first of its columns, and what it is divided by then."""
        return float(self.scaled.center[0]), float(self.scaled.half_range[0])

    def _transformed(self, value: float) -> float:
        return value if self.transform is None else TRANSFORMS[self.transform][0](value)

    def read(self, column: Column, marks: tuple[Value, ...]) -> tuple[npt.NDArray[Any], Booleans, Booleans]:
        """Return all cells as numbers, which are missing, and which are no numbers."""
        values, missing = column.numbers(Lookup([marks]))
        return values, missing, np.isnan(values) & ~missing

    def write(self, read: npt.NDArray[Any], out: Units, unit: int) -> int:
        """Write numbers, in the middle of the bounds where there is none."""
        gone = np.isnan(read)
        if self.missing == "indicator":
            out[:, 1] = np.where(gone, unit, 0)
        if self.transform is None:
            return self.scaled.to_units(read, unit, out[:, 0]) - int(gone.sum())
        low, high = self.bounds
        # One by one: a vectorised logarithm may round an entry differently beside other neighbours.
        within = np.fromiter(map(self._transformed, np.clip(read, low, high).tolist()), np.float64, len(read))
        self.scaled.to_units(within, unit, out[:, 0])
        return int(((read < low) | (read > high)).sum())


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

    Examples
    --------
    >>> Categorical(["Private", "State-gov"], other=True)
    Categorical(categories=('Private', 'State-gov'), other=True, missing='indicator')
    """

    categories: tuple[Value, ...]
    other: bool = False
    missing: Literal["indicator", "other", "zero"] = "indicator"

    counted_as = "category"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", labels(self.categories, "categories"))
        if not self.categories:
            raise ValueError('categories must not be empty; write categories = ["one value", "another"]')
        if not isinstance(self.other, bool):
            raise ValueError("other must be true or false")
        _one_of(self.missing, ("indicator", "other", "zero"), "missing")
        if self.missing == "other" and not self.other:
            raise ValueError('missing = "other" needs other = true')

    def names(self, column: str) -> tuple[str, ...]:
        """Return names of the columns that a column becomes."""
        shown = [str(value).lower() if isinstance(value, bool) else str(value) for value in self.categories]
        extra = ["(other)"] * self.other + ["(missing)"] * (self.missing == "indicator")
        return tuple(f"{column}={value}" for value in [*shown, *extra])

    @property
    def boxed(self) -> bool:
        """Indicators are a block of their own."""
        return False

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


Kind = Numeric | Categorical | Boolean

_KINDS: dict[str, type[Any]] = {"bounds": Numeric, "categories": Categorical, "boolean": Boolean}
_WRITE = 'write { bounds = [lowest, highest] }, { categories = ["one value", "another"] } or { boolean = true }'


def kind_from_dict(stated: Any) -> Kind:
    """Make a kind of column from what a file says about it.

    Examples
    --------
    >>> kind_from_dict({"bounds": [17, 90]})
    Numeric(bounds=(17.0, 90.0), transform=None, missing='middle')
    >>> kind_from_dict({"bound": [17, 90]})
    Traceback (most recent call last):
    ...
    ValueError: unknown option 'bound'; did you mean 'bounds'?
    """
    if isinstance(stated, Numeric | Categorical | Boolean):
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
    options = [field.name for field in fields(home) if field.name != kinds[0]]
    for key in stated:
        if key != kinds[0] and key not in options:
            raise ValueError(f"{key} is no option beside {kinds[0]}; there it may be {' or '.join(options)}")
    given = dict(stated)
    if home is Boolean and given.pop("boolean") is not True:
        raise ValueError(f"boolean must be true; for another kind of column {_WRITE}")
    return home(**given)  # type: ignore[no-any-return]


def pair_of_numbers(stated: Any, name: str) -> tuple[float, float]:
    """Check a pair (low, high) of finite numbers."""
    example = f"{name} = [lowest, highest]"
    if isinstance(stated, str | bytes) or not isinstance(stated, Iterable):
        raise ValueError(f"{name} must be two numbers; write {example}")
    pair = list(stated)
    if any(isinstance(end, date | time) or (isinstance(end, str) and _DATE.match(end)) for end in pair):
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
