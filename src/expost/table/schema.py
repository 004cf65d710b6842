"""The schema: what is publicly known about a table before anybody looks at it.

It says which column is to be predicted and what each of the others can hold. Bounds and categories come from a code
book or from common knowledge, never from the rows, so a schema can be published with the model. Columns it does not
name are not used. :func:`draft` makes one to fill in, from the names of a table's columns and their declared types; no
cell is looked at. It leaves bounds and categories blank on purpose: whatever a program read off the rows would be
neither public nor paid for.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from expost import validation
from expost.table.cells import Lookup
from expost.table.columns import suggestion
from expost.table.curves import finest_of
from expost.table.entrance import BYTES, TEXT, is_stream, type_is
from expost.table.files import found_files, open_disk
from expost.table.formats import database_in
from expost.table.kinds import (
    BOOLEAN_WORDS,
    Boolean,
    Kind,
    Numeric,
    Value,
    kind_from_dict,
    labels,
    pair_of_numbers,
)

_KEYS = (
    "target",
    "classes",
    "target_bounds",
    "target_transform",
    "missing",
    "person",
    "rows_per_person",
    "curves",
    "columns",
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"\[\s*,\s*\]")


@dataclass(frozen=True, eq=False)
class Schema:
    """The public description of a table.

    Parameters
    ----------
    target : str
        Name of the column to predict.
    columns : mapping of str to Numeric, Dated, Categorical or Boolean
        The columns to predict from, by name. Names are compared without spaces around them.
    classes : pair, optional
        The negative and the positive label, for classification.
    target_bounds : (float, float), optional
        Lowest and highest possible target, for regression.
    missing : sequence of str or numbers, default=("",)
        What stands for a missing cell, beside None and NaN.
    person : str, optional
        The column that says whose a row is, where a person has several: the guarantee is then about persons. It is
        never predicted from.
    rows_per_person : int, optional
        How many rows of each person count, stated with ``person``: the first ones of the table, repeated in turn if a
        person has fewer, so that every person counts alike. What it costs hardly depends on it.
    curves : {"auto"}, optional
        With ``"auto"`` numbers that say nothing else (``curve``, ``knots`` or ``steps``) are straight lines while noise
        is large and curves as it falls (`expost.table.curves`). By default they are straight lines.
    target_transform : {"log1p", "log"}, optional
        What is predicted, and what goals are about: log(1 + target) or its logarithm. Predictions come back in the
        target's own units.

    Examples
    --------
    >>> from expost.table import Categorical, Numeric
    >>> schema = Schema("income", {"age": Numeric((17, 90)), "sex": Categorical(["F", "M"])}, classes=["<=50K", ">50K"])
    >>> print(schema.to_toml())
    target = "income"
    classes = ["<=50K", ">50K"]
    missing = [""]
    <BLANKLINE>
    [columns]
    age = { bounds = [17, 90] }
    sex = { categories = ["F", "M"] }
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    >>> schema.task
    'classification'
    """

    target: str
    columns: Mapping[str, Kind]
    classes: tuple[Value, Value] | None = None
    target_bounds: tuple[float, float] | None = None
    missing: tuple[Value, ...] = ("",)
    person: str | None = None
    rows_per_person: int | None = None
    curves: Literal["auto"] | None = None
    target_transform: Literal["log1p", "log"] | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not isinstance(self.target, str) or not self.target.strip():
            raise ValueError('target must be the name of a column; write target = "name"')
        put(self, "target", self.target.strip())
        if (self.classes is None) == (self.target_bounds is None):
            which = "neither of them is" if self.classes is None else "both are"
            raise ValueError(
                f"{which} there: state either classes = [negative, positive] for classification or "
                f"target_bounds = [lowest, highest] for regression"
            )
        if self.target_bounds is not None:
            put(self, "target_bounds", pair_of_numbers(self.target_bounds, "target_bounds"))
        if self.classes is not None:
            pair = labels(self.classes, "classes")
            if len(pair) != 2:
                raise ValueError('classes must be two labels; write classes = ["negative label", "positive label"]')
            put(self, "classes", pair)
        self._check_transform()
        if self.curves not in (None, "auto"):
            raise ValueError(f'curves must be "auto", not {self.curves!r}; or say curve = true beside single bounds')
        put(self, "missing", labels(self.missing, "missing"))
        put(self, "columns", MappingProxyType(_named(self.columns, self.target)))
        self._check_marks()
        self._check_person()

    def with_person(self, person: str | None, rows_per_person: int | None) -> Schema:
        """Return the schema with the persons that were stated beside it; it must not say anything else itself."""
        if person is None and rows_per_person is None:
            return self
        stated = {"person": person, "rows_per_person": rows_per_person}
        for name, value in stated.items():
            said = getattr(self, name)
            if None not in (said, value) and said != value:
                raise ValueError(f"{name} is {said!r} in the schema and {value!r} beside it; state it in one place")
        return replace(self, **{name: value for name, value in stated.items() if value is not None})  # type: ignore[arg-type]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column is, with what is said of all of them: where curves are ``"auto"``, numbers bend."""
        numbers = {name: kind for name, kind in self.columns.items() if isinstance(kind, Numeric)}
        bend = {name: kind for name, kind in numbers.items() if kind.curve == "auto" or (self.curves and kind.unsaid)}
        if not bend:
            return dict(self.columns)
        finest = finest_of(len(bend))
        return {**self.columns, **{name: kind.bending(finest) for name, kind in bend.items()}}

    @property
    def target_numbers(self) -> Numeric:
        """The target as a column of numbers, for regression."""
        assert self.target_bounds is not None
        return Numeric(self.target_bounds, self.target_transform)

    @property
    def scaled_target(self) -> tuple[float, float] | None:
        """Bounds of what is predicted: of the target, after its transform; None for classes."""
        if self.target_bounds is None:
            return None
        scaled = self.target_numbers.scaled
        return float(scaled.lower[0]), float(scaled.upper[0])

    @property
    def predicted(self) -> str:
        """What is predicted, and what goals are about: the target, or a transform of it."""
        return self.target if self.target_transform is None else f"{self.target_transform}({self.target})"

    @property
    def needed(self) -> list[str]:
        """The columns that a table must have to be fitted: those to predict from, the target, whose a row is."""
        return [*self.columns, self.target, *([] if self.person is None else [self.person])]

    @property
    def task(self) -> Literal["classification", "regression"]:
        """What is to be done, as the target says it."""
        return "regression" if self.classes is None else "classification"

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Schema:
        """Make a schema from plain values.

        Examples
        --------
        >>> Schema.from_dict({"target": "price", "target_bounds": [0, 9], "columns": {"x": {"bound": [0, 1]}}})
        Traceback (most recent call last):
        ...
        ValueError: column 'x': unknown option 'bound'; did you mean 'bounds'?
        """
        if not isinstance(stated, Mapping):
            raise ValueError("a schema must be a table of names and values")
        for key in stated:
            if key not in _KEYS:
                hint = suggestion(key, _KEYS)
                if isinstance(stated[key], Mapping):
                    hint = f"columns are described below a line [columns]; {hint}"
                raise ValueError(f"unknown key {key!r} in the schema; {hint}")
        for key in ("target", "columns"):
            if key not in stated:
                write = 'target = "name of a column"' if key == "target" else "[columns] and a line for each below it"
                raise ValueError(f"the schema has no {key}; write {write}")
        return cls(**{str(key): value for key, value in stated.items()})

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"there is no schema {file}; expost init drafts one")
        text = validation.toml_text(file)
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            blank = next((i for i, line in enumerate(text.splitlines(), 1) if _BLANK.search(line.split("#")[0])), 0)
            why = f"line {blank} has a blank that is still to be filled in" if blank else f"not TOML: {error}"
            raise ValueError(f"{file}: {why}") from None
        except RecursionError:
            raise ValueError(f"{file}: not a schema: lists are nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the schema in plain values, which :meth:`from_dict` reads."""
        said: dict[str, Any] = {"target": self.target}
        if self.classes is not None:
            said["classes"] = list(self.classes)
        if self.target_bounds is not None:
            said["target_bounds"] = list(self.target_bounds)
        if self.target_transform is not None:
            said["target_transform"] = self.target_transform
        said["missing"] = list(self.missing)
        if self.person is not None:
            said["person"], said["rows_per_person"] = self.person, self.rows_per_person
        if self.curves is not None:
            said["curves"] = self.curves
        said["columns"] = {name: kind.to_dict() for name, kind in self.columns.items()}
        return said

    def to_toml(self) -> str:
        """Return the schema as the text of a TOML file."""
        said = self.to_dict()
        columns = said.pop("columns")
        lines = [f"{key} = {_toml(value)}" for key, value in said.items()]
        return "\n".join(
            [*lines, "", "[columns]", *(f"{toml_key(name)} = {_toml(kind)}" for name, kind in columns.items())]
        )

    def fingerprint(self) -> str:
        """Return the SHA-256 of the schema, in hexadecimal digits; the order of columns counts, as in a model."""
        return hashlib.sha256(self._canonical().encode()).hexdigest()

    def _canonical(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=True, separators=(",", ":"))

    def _check_transform(self) -> None:
        """Complain about a transform of the target that is none, or that its bounds do not allow."""
        stated = self.target_transform
        if stated is None:
            return
        if self.target_bounds is None:
            raise ValueError("target_transform is for numbers; classes have none")
        if stated not in ("log1p", "log"):
            raise ValueError(f'target_transform must be "log1p" or "log", not {stated!r}')
        if stated == "log" and self.target_bounds[0] <= 0:
            raise ValueError('target_transform = "log" needs a lower bound above 0; or write "log1p"')
        _ = self.target_numbers

    def _check_marks(self) -> None:
        """Complain about labels that would be read as missing."""
        for name, kind in self.columns.items():
            if isinstance(kind, Boolean):
                try:
                    Lookup([*BOOLEAN_WORDS, list(self.missing)], fold=True)
                except ValueError:
                    raise ValueError(f"column {name!r}: a mark in missing is a word for true or false") from None
        marks = Lookup([list(self.missing)])
        listed = [
            (f"column {name!r}: categories", getattr(kind, "categories", ())) for name, kind in self.columns.items()
        ]
        for where, values in [("classes", self.classes or ()), *listed]:
            for value in values:
                if marks.code(value) == 0:
                    raise ValueError(f"{where} hold {value!r}, which missing says is no value; take it out of one")

    def _check_person(self) -> None:
        """Complain about a privacy unit that is only half stated, or that would be predicted from."""
        if self.person is None:
            if self.rows_per_person is not None:
                raise ValueError("rows_per_person says nothing without person, the column that says whose a row is")
            return
        if not isinstance(self.person, str) or not self.person.strip():
            raise ValueError('person must be the name of a column; write person = "patient_id"')
        object.__setattr__(self, "person", self.person.strip())
        if self.person == self.target:
            raise ValueError(f"column {self.person!r} is the target; it cannot also say whose a row is")
        if self.person in self.columns:
            raise ValueError(f"column {self.person!r} says whose a row is; take it out of columns")
        k = self.rows_per_person
        if k is None:
            raise ValueError("rows_per_person is missing: how many rows of one person count? The first ones are kept")
        validation.count("rows_per_person", k)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return hash(self._canonical())

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.from_dict, (self.to_dict(),)


def _named(columns: Any, target: str) -> dict[str, Kind]:
    if not isinstance(columns, Mapping) or not columns:
        raise ValueError("columns must describe at least one column; write [columns] and a line for each below it")
    named: dict[str, Kind] = {}
    for key, stated in columns.items():
        if not isinstance(key, str) or not key.strip():
            raise ValueError("columns must have names, each of them text")
        name = key.strip()
        if name in named:
            raise ValueError(f"column {name!r} is described twice")
        if name == target:
            raise ValueError(f"column {name!r} is the target; take it out of columns")
        try:
            named[name] = kind_from_dict(stated)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None
    return named


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else repr(value)


def toml_line(name: str, value: Any) -> str:
    """Return a line of a schema in TOML."""
    return f"{toml_key(name)} = {_toml(value if isinstance(value, Mapping | Sequence) else value.to_dict())}"


def toml_key(name: str) -> str:
    """Return a name as TOML writes it before an equals sign."""
    return name if _BARE.fullmatch(name) else _toml(name)


_HEAD = """\
# A schema: what is publicly known about the table. Fill in the blanks from a code book or from common knowledge, not
# from the rows: whatever is read off them is not private. Take out lines of columns that are not to be used.

target = ""  # name of the column to predict; take its line out of [columns]
classes = [ , ]  # negative and positive label; for a number to predict write instead: target_bounds = [lowest, highest]
missing = [""]  # what stands for a missing cell, such as "?" or "NA"
curves = "auto"  # numbers bend where noise is small enough; take the line out for straight lines
# Has a person several rows? Then say whose a row is (and take that line out of [columns]) and how many of them count:
# person = "patient_id"
# rows_per_person = 5

[columns]
"""
_UNKNOWN = """\
# Each column is one of
#   { bounds = [0, 100] }                    a number, with the lowest and highest possible value; for amounts of very
#                                            different size add transform = "log1p" or "sqrt"
#   { bounds = ["1950-01-01", "2020-12-31"] }  a date
#   { categories = ["a", "b"] }              text or codes, with every value that can occur; other = true allows more,
#                                            ordered = true says that they are listed from lowest to highest
#   { boolean = true }                       true or false, yes or no, 1 or 0
"""
_KNOWN = '# For amounts of very different size add transform = "log1p" or "sqrt" beside bounds.\n'
_NUMBER = "{ bounds = [ , ] }  # lowest and highest possible value"
_DATE = '{ bounds = [ , ] }  # first and last possible date, as text: "1950-01-01"'
_CATEGORY = "{ categories = [] }  # every value that can occur"


def draft(
    path: Any,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    query: str | None = None,
    sheet: str | None = None,
) -> str:
    """Draft a schema for a file.

    Parameters
    ----------
    path : str or path
        What :func:`expost.table.files.open_disk` takes; of a folder or a pattern the first file is looked at. The
        first line of a CSV file has the names of its columns; nothing is known about their types.
    separator, encoding, query, sheet
        As for :func:`expost.table.files.open_disk`.

    Returns
    -------
    str
        TOML with blanks to fill in.
    """
    one = path if database_in(path) or is_stream(path) else found_files(path)[0]
    first = open_disk(one, query=query, sheet=sheet, separator=separator, encoding=encoding).files[0]
    if first.types is not None:
        fields = zip(first.names, first.types, strict=True)
        return _HEAD + _KNOWN + "".join(f"{_described(toml_key(name.strip()), kind)}\n" for name, kind in fields)
    doubtful = getattr(first.names, "doubtful", "")
    if doubtful:
        raise ValueError(f"no schema is drafted for {first.path}: {doubtful}")
    return _HEAD + _UNKNOWN + "".join(f"{toml_key(name)} = {{  }}\n" for name in first.names if name)


def _described(name: str, kind: Any) -> str:
    if type_is(kind, "integer", "floating", "decimal"):
        return f"{name} = {_NUMBER}"
    if type_is(kind, "boolean"):
        return f"{name} = {{ boolean = true }}"
    if type_is(kind, "dictionary", *TEXT, *BYTES):
        return f"{name} = {_CATEGORY}"
    if type_is(kind, "date", "timestamp"):
        return f"{name} = {_DATE}"
    return f"# {name} cannot be used: its type is {kind}"
