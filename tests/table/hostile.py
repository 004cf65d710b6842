"""Cells and rows that do their worst when anything of theirs is called, and a watch that notices."""

from __future__ import annotations

import contextlib
import datetime
import io
import sys
import traceback
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

SECRET = "27182818"
CALLS: list[str] = []  # every method of a hostile object that was called


def _shout(name: str) -> Any:
    def method(*_: Any, **__: Any) -> Any:
        CALLS.append(name)
        print(SECRET)
        print(SECRET, file=sys.stderr)
        warnings.warn(SECRET, stacklevel=2)
        raise RuntimeError(SECRET)

    return method


METHODS = """
    float int index complex str repr format bytes eq ne lt le gt ge hash bool len iter next getitem contains array
    array_ufunc array_function dataframe arrow_c_array add radd sub mul rmul truediv abs neg round trunc floor ceil
    getattr reduce reduce_ex copy deepcopy sizeof dir call instancecheck fspath
"""
PROPERTIES = "__array_interface__ __array_struct__ __class__ dtype shape ndim real imag tolist"
WORST = {
    **{f"__{name}__": _shout(name) for name in METHODS.split()},
    **{name: property(_shout(name)) for name in PROPERTIES.split()},
}


class Meta(type):
    """Types of hostile objects are hostile as well."""

    __hash__ = _shout("Meta.__hash__")
    __eq__ = _shout("Meta.__eq__")
    __instancecheck__ = _shout("Meta.__instancecheck__")
    __subclasscheck__ = _shout("Meta.__subclasscheck__")
    __repr__ = _shout("Meta.__repr__")
    __getattr__ = _shout("Meta.__getattr__")


def _subclass(*bases: type) -> Any:
    return Meta("Hostile", bases, dict(WORST))


def _made(base: type, *arguments: Any) -> Any:
    return base.__new__(_subclass(base), *arguments)


class Returns:
    """Methods that answer with something they must not."""

    def __float__(self) -> Any:
        CALLS.append("__float__")
        return "no float"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        CALLS.append("__array__")
        return np.ones(3)

    def __len__(self) -> int:
        CALLS.append("__len__")
        return -1


def _hostile_list() -> Any:
    made = _made(list)
    list.extend(made, [0.25, 0.5])
    return made


def _fraction_of(part: Any) -> Fraction:
    fraction = Fraction(1, 3)
    fraction._numerator = part  # type: ignore[attr-defined]
    return fraction


def _itself() -> np.ndarray:
    array = np.empty((), dtype=object)
    array[()] = array
    return array


def _object_array(cell: Any) -> np.ndarray:
    array = np.empty((), dtype=object)
    array[()] = cell
    return array


def _hostile() -> dict[str, Any]:
    worst = _subclass(object)()
    return {
        "object": worst,
        "type": type(worst),
        "float": _made(float, 0.75),
        "int": _made(int, 1),
        "str": _made(str, "0.5"),
        "bytes": _made(bytes, b"0.5"),
        "complex": _made(complex, 1j),
        "dict": _made(dict),
        "list": _hostile_list(),
        "tuple": _made(tuple, (0.25, 0.5)),
        "array": _made(np.ndarray, (2,)),
        "returns": Returns(),
        "in a list": [worst, worst],
        "in a tuple": (worst,),
        "in an array": _object_array(worst),
        "in a fraction": _fraction_of(worst),
        "an array of itself": _itself(),
    }


# By name, because hypothesis shows what it draws, and these must not be shown.
HOSTILE = _hostile()
MAKERS = {
    "complex128": lambda: np.complex128(3 + 4j),
    "complex64": lambda: np.complex64(1j),
    "long double": lambda: np.longdouble("1e4000"),
    "void": lambda: np.zeros(1, dtype=[("a", float)])[0],
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(5, "D"),
    "NaT": lambda: pd.NaT,
    "NA": lambda: pd.NA,
    "Timestamp": lambda: pd.Timestamp("2020-01-01"),
    "masked": lambda: np.ma.masked,
    "arrow scalar": lambda: pa.scalar(0.5),
    "signalling NaN": lambda: Decimal("sNaN"),
    "huge decimal": lambda: Decimal("1e999999"),
    "huge integer": lambda: 10**400,
    "huge fraction": lambda: Fraction(-(10**400), 3),
    "array": lambda: np.ones(2),
    "array without dimensions": lambda: np.array(0.5),
    "complex array": lambda: np.array([1j, 2j]),
    "three dimensions": lambda: [[[1.0]], [[2.0]]],
    "Series": lambda: pd.Series([0.5, 0.25]),
    "frame": lambda: pd.DataFrame({"a": [1.0]}),
    "record": lambda: {"a": 0.5, "b": 0.25},
    "generator": lambda: (x for x in (0.5, 0.25)),
    "numpy text": lambda: np.str_("0.5"),
    "lone surrogate": lambda: "\ud800",
    "text with zeros": lambda: "0.5\0",
    "long text": lambda: "9" * 200_000,
}

plain_cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.fractions(),
    st.floats(width=32).map(np.float32),
    st.integers(-128, 127).map(np.int8),
    st.floats().map(repr),
    st.sets(st.integers(), max_size=2),
    st.just(datetime.timedelta(1)),
)
nested_cells = st.recursive(plain_cells, lambda cells: st.lists(cells, max_size=4), max_leaves=6)


class Named:
    """A cell that is shown by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def cell(self) -> Any:
        return HOSTILE[self.name] if self.name in HOSTILE else MAKERS[self.name.removeprefix("made ")]()


class Plain:
    """A cell that can be shown."""

    def __init__(self, cell: Any) -> None:
        self.cell = cell

    def __repr__(self) -> str:
        return repr(self.cell)


named_cells = st.sampled_from([*HOSTILE, *(f"made {name}" for name in MAKERS)]).map(Named)
any_cell = st.one_of(named_cells, nested_cells.map(Plain))


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Fail if anything is printed or warned of, or if a hostile object's method is called."""
    CALLS.clear()
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as noted,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        yield
    assert CALLS == []
    assert [str(warning.message) for warning in noted] == []
    assert out.getvalue() == ""
    assert err.getvalue() == ""


def shows(error: BaseException) -> str:
    """Return all that a traceback would print of an error but the lines of code."""
    said = []
    seen: BaseException | None = error
    while seen is not None:
        said += traceback.format_exception_only(seen)
        seen = seen.__cause__ or seen.__context__
    return "".join(said)
