"""Whose a row is: told apart exactly, whatever is in the cell, and nobody's slots depend on others."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from expost.exceptions import InvalidRows
from expost.table.encoding import Encoding
from expost.table.persons import UNREADABLE, count_persons, person_of, slots
from expost.table.schema import Schema
from tests.table.hostile import HOSTILE, silence

PLAIN = {"target": "y", "target_bounds": [0, 1], "columns": {"x": {"bounds": [0, 1]}}}
BIG = 2**53


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("p1", " p1 ", True),
        ("7", 7, True),
        (7, 7.0, True),
        (np.int64(7), Decimal("7.00"), True),
        (b"7", "7", True),
        ("007", "7", False),
        ("7.0", "7", False),  # text is text
        (BIG, BIG + 1, False),
        (str(BIG), str(BIG + 1), False),
        (Decimal(BIG), Decimal(BIG + 1), False),
        (Decimal("1e999999"), Decimal("1e999998"), False),
        (-1, 1, False),
        (Decimal(-10), 10, False),
        ("a", "A", False),
    ],
)
def test_persons_are_told_apart_exactly(one, two, same):
    assert (person_of(one) == person_of(two)) is same
    assert slots([one, two], 1)[1] == (1 if same else 2)


def test_integers_may_be_longer_than_python_writes():
    assert slots([10**5000, 10**5000 + 1, 10**5000], 1)[1] == 2


@pytest.mark.parametrize("cell", [None, float("nan"), "", "  ", pd.NA, pd.NaT, Decimal("nan"), "?"])
def test_a_row_without_a_person_is_one_of_its_own(cell):
    places, persons = slots([cell, "a", cell], 2, marks=("?", ""))
    assert persons == 3
    assert places.tolist() == [0, 0, 1, 1, 2, 2]


def test_who_cannot_be_told_apart_is_protected_together():
    odd = [(), {}, 2j, object()]
    assert {person_of(cell) for cell in odd} == {UNREADABLE}
    assert slots([*odd, "a"], 2)[0].tolist() == [0, 1, 4, 4]
    assert slots(["neither text nor a number", *odd], 1)[1] == 2
    assert count_persons([*odd, None, "a", "a", "a"], 2).left_out == 3


@pytest.mark.parametrize("name", HOSTILE, ids=str)
def test_no_cell_raises_or_is_called(name):
    cell = HOSTILE[name]
    with silence():
        places, _ = slots(["a", cell, "b", "a"], 2)
    assert places.tolist()[:2] == [0, 3]
    assert 2 in places.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: {"id": ids},
        lambda ids: pd.DataFrame({"id": ids}),
        lambda ids: pa.table({"id": pa.array(ids)}),
        lambda ids: pa.table({"id": pa.array(ids, pa.decimal128(38, 0))}),
        lambda ids: {"id": [str(cell) for cell in ids]},
    ],
    ids=["mapping", "pandas", "arrow", "decimals", "text"],
)
def test_ids_beyond_floating_point_survive_every_container(make):
    ids = [BIG + 1, BIG, BIG + 1, BIG + 2]
    frame = make(ids)
    n = len(ids)
    more = {"x": [0.0, 0.25, 0.5, 1.0], "y": [0.0] * n}
    if isinstance(frame, dict):
        frame = {**frame, **more}
    elif isinstance(frame, pd.DataFrame):
        frame = frame.assign(**more)
    else:
        frame = pa.table({"id": frame["id"], **more})
    encoding = Encoding(Schema.from_dict({**PLAIN, "person": "id", "rows_per_person": 2}))
    rows = encoding.encode(frame)
    shown = (rows.x[:, 1] / encoding.unit / 2 + 0.5).round(2)
    assert shown.tolist() == [0.0, 0.5, 0.25, 0.25, 1.0, 1.0]
    assert rows.n == 6


def test_a_missing_id_leaves_integers_what_they_were():
    """pandas makes floats of integers where one is missing; the persons stay the same."""
    whole = pd.DataFrame({"id": [5, 6, 5, 7]})["id"]
    holed = pd.DataFrame({"id": [5, None, 5, 7]})["id"]
    assert holed.dtype == np.float64
    assert slots(whole.tolist(), 2)[0].tolist() == slots(holed.tolist(), 2)[0].tolist()


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"person": "id"}, "rows_per_person is missing"),
        ({"rows_per_person": 3}, "says nothing without person"),
        ({"person": "x", "rows_per_person": 3}, "take it out of columns"),
        ({"person": "y", "rows_per_person": 3}, "is the target"),
        ({"person": "", "rows_per_person": 3}, "person must be the name"),
        ({"person": "id", "rows_per_person": 0}, "at least 1"),
        ({"person": "id", "rows_per_person": True}, "at least 1"),
        ({"person": "id", "rows_per_person": 2.0}, "at least 1"),
    ],
)
def test_half_a_unit_is_none(stated, said):
    with pytest.raises(ValueError, match=said):
        Schema.from_dict({**PLAIN, **stated})


def test_a_schema_keeps_its_unit():
    plain = Schema.from_dict(PLAIN)
    schema = plain.with_person(" id ", 3)
    assert Schema.from_dict(schema.to_dict()) == schema
    assert "person = " in schema.to_toml()
    assert schema.fingerprint() != plain.fingerprint()
    assert "person" not in plain.to_dict()  # what was published before keeps its fingerprint
    assert schema.with_person("id", 3) == schema.with_person(None, 3) == schema
    with pytest.raises(ValueError, match="in the schema and 4 beside it"):
        schema.with_person("id", 4)


def test_ids_that_cannot_be_read_are_an_error_for_the_curator():
    encoding = Encoding(Schema.from_dict({**PLAIN, "person": "id", "rows_per_person": 2}))
    table = {"id": [{}, "a"], "x": [0, 1], "y": [0, 1]}
    with pytest.raises(InvalidRows, match=r"neither text nor numbers in id \(1\)"):
        encoding.encode(table)
    assert encoding.encode(table, on_invalid="clip").n == 4
