"""What each kind of cell is, by itself."""

from __future__ import annotations

import datetime
import enum
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from expost.table.cells import label, number, numbers, resolve_classes, signs

from .hostile import HOSTILE, MAKERS, any_cell, silence


class Grade(enum.IntEnum):
    GOOD = 3


NUMBERS = [
    (True, 1.0),
    (2, 2.0),
    (0.1, 0.1),
    (Grade.GOOD, 3.0),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.float16(0.5), 0.5),
    (np.longdouble("0.1"), float(np.longdouble("0.1"))),
    (np.uint64(2**64 - 1), float(2**64 - 1)),
    (np.bool_(True), 1.0),
    (Decimal("0.1"), 0.1),
    (Fraction(1, 3), 1 / 3),
    (Fraction(np.int64(1), 2), 0.5),
    (" 1_000.5 ", 1000.5),
    ("-inf", -math.inf),
    (np.str_("0.5"), 0.5),
    (b"0.125", 0.125),
    (np.bytes_(b"0.5"), 0.5),
    (np.array(0.5), 0.5),
    (np.array("0.5"), 0.5),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    ("1e999", math.inf),
    (Decimal("-1e999999"), -math.inf),
    (Fraction(10**400), math.inf),
]


@pytest.mark.parametrize(("cell", "value"), NUMBERS, ids=lambda cell: repr(cell)[:40])
def test_cells_that_are_numbers(cell, value):
    assert number(cell) == value
    assert numbers([cell]).tolist() == [value]


@pytest.mark.parametrize("cell", [None, math.nan, "nan", Decimal("NaN"), Decimal("sNaN"), np.float32("nan")], ids=repr)
def test_missing_cells(cell):
    assert math.isnan(number(cell))


NO_NUMBERS = [
    "",
    "x",
    "1,5",
    "true",
    "0x10",
    b"\xff",
    b"1\0",
    1j,
    np.complex128(1),
    np.complex64(1),
    [1.0],
    (1.0,),
    {"a": 1.0},
    np.ones(1),
    np.array(1j),
    np.datetime64("2020"),
    np.timedelta64(5),
    datetime.date(2020, 1, 1),
    datetime.timedelta(1),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2020"),
    bytearray(b"1"),
    object(),
    float,
    np.ma.masked,
]


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=lambda cell: type(cell).__name__)
def test_cells_that_are_not_numbers(cell):
    assert number(cell) is None
    assert np.isnan(numbers([cell, 1.0])).tolist() == [True, False]


@given(st.lists(any_cell, max_size=6))
def test_a_cell_is_read_the_same_in_any_company(drawn):
    cells = [one.cell for one in drawn]
    with silence():
        together, alone = numbers(cells), [numbers([cell])[0] for cell in cells]
    assert np.array_equal(together, np.array(alone), equal_nan=True)


def test_no_method_of_an_unknown_type_is_called():
    with silence():
        for cell in [*HOSTILE.values(), *(make() for make in MAKERS.values())]:
            number(cell)
            label(cell)
            signs([cell], ("no", 1))


def test_subclasses_are_what_they_inherit_from():
    assert [number(HOSTILE[kind]) for kind in ("float", "int", "str", "bytes")] == [0.75, 1.0, 0.5, 0.5]
    assert [type(label(HOSTILE[kind])) for kind in ("float", "int", "str", "bytes")] == [float, int, str, bytes]


@pytest.mark.parametrize(
    ("cell", "equal", "other"),
    [
        (1, [True, 1.0, np.int8(1), np.float32(1), Decimal(1), Fraction(1), np.array(1)], ["1", b"1", 2, None, [1]]),
        ("yes", [np.str_("yes"), np.array("yes")], [b"yes", "yes\0", "Yes", ["yes"]]),
        (b"yes", [np.bytes_(b"yes")], ["yes", b"yes\0", bytearray(b"yes")]),
        (2**53 + 1, [np.int64(2**53 + 1)], [2**53, float(2**53)]),
    ],
)
def test_labels_are_equal_by_value_and_kind(cell, equal, other):
    classes = resolve_classes((-1, cell))
    assert signs([cell, *equal], classes)[0].all()
    positive, unknown = signs(other, classes)
    assert not positive.any()
    assert unknown.all()


@pytest.mark.parametrize("classes", [(0,), (0, 0), (1, True), (0, 1, 2), (0, math.nan), (None, 1), ("a", object()), ()])
def test_classes_are_two_labels(classes):
    with pytest.raises(ValueError, match="classes must be a pair"):
        resolve_classes(classes)
