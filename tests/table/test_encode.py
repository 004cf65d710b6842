"""Rows made by a schema: what they hold, exactly, and that every container gives the same."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, strategies as st

from expost import Schema
from expost.exceptions import InvalidRows
from expost.table.encoding import Encoding
from expost.table.kinds import Boolean, Categorical, Numeric
from expost.table.rows import ONE, by_column
from tests.helpers import read_columns, readable_cells

from .hostile import SECRET, shows

SCHEMA = Schema(
    "income",
    {
        "workclass": Categorical(["Private", "Gov", 7], other=True),
        "age": Numeric((0, 100)),
        "gain": Numeric((0, math.expm1(2)), transform="log1p", missing="indicator"),
        "member": Boolean(),
        "sex": Categorical(["F", "M"], missing="zero"),
        "vip": Boolean(missing="indicator"),
    },
    classes=("low", "high"),
    missing=("", "?", -999),
)
TABLE = {
    "age": ["100", "25", "-999", "150", "?"],
    "workclass": ["Private", " Gov ", "7.0", "Circus", "?"],
    "gain": ["0", str(math.expm1(1)), "", "99", "0"],
    "member": ["yes", "FALSE", "", "1", "t"],
    "sex": ["F", "M", "", "M", "F"],
    "vip": ["no", "Y", "?", "0", "f"],
    "income": ["low", "high", "high", " low", "high"],
}
NATURAL = {
    "(constant)": [1, 1, 1, 1, 1],
    "age": [1, -0.5, 0, 1, 0],
    "member": [1, 0, 0.5, 1, 1],
    "workclass=Private": [1, 0, 0, 0, 0],
    "workclass=Gov": [0, 1, 0, 0, 0],
    "workclass=7": [0, 0, 1, 0, 0],
    "workclass=(other)": [0, 0, 0, 1, 0],
    "workclass=(missing)": [0, 0, 0, 0, 1],
    "log1p(gain)": [-1, 0, 0, 1, -1],
    "gain=(missing)": [0, 0, 1, 0, 0],
    "sex=F": [1, 0, 0, 0, 1],
    "sex=M": [0, 1, 0, 1, 0],
    "vip": [0, 1, 0, 0, 0],
    "vip=(missing)": [0, 0, 1, 0, 0],
}


def test_names_and_shape():
    encoding = Encoding(SCHEMA)
    assert encoding.names == tuple(NATURAL)
    assert encoding.blocks == ((3, "box"), (5, "l1"), (2, "l1"), (2, "l1"), (2, "l1"))
    assert encoding.square == 7
    assert encoding.unit == math.floor(ONE / math.sqrt(7))
    assert encoding.scale == pytest.approx(math.sqrt(7), rel=1e-5)
    assert repr(encoding) == "Encoding(6 columns become 14)"


def test_values():
    encoding = Encoding(SCHEMA)
    rows = encoding.encode(TABLE)
    expected = np.array(list(NATURAL.values()), dtype=float).T
    assert rows.x / encoding.unit == pytest.approx(expected, abs=2 / encoding.unit)
    assert rows.norm == "l2"
    assert (rows.y == np.array([-1, 1, 1, -1, 1]) * ONE).all()
    whole = (expected == 0) | (expected == 1)
    assert (rows.x[whole] == expected[whole] * encoding.unit).all()
    assert (encoding.design(TABLE) == rows.x / ONE).all()


def csv(folder: Path, text: str, name: str = "t.csv", **options) -> Path:
    path = folder / name
    path.write_bytes(text.encode(**options))
    return path


def lines(table: dict, separator: str = ",", end: str = "\n") -> str:
    return (
        end.join([separator.join(table), *(separator.join(map(str, row)) for row in zip(*table.values(), strict=True))])
        + end
    )


TYPED = {
    "age": [100.0, 25.0, -999.0, 150.0, None],
    "workclass": ["Private", "Gov", "7", "Circus", None],
    "gain": [0.0, math.expm1(1), None, 99.0, 0.0],
    "member": [True, False, None, True, True],
    "sex": ["F", "M", None, "M", "F"],
    "vip": [0, 1, None, 0, 0],
    "income": ["low", "high", "high", "low", "high"],
}
FRAMES = {
    "dict": lambda folder: TYPED,
    "dict of arrays": lambda folder: {name: np.array(cells, dtype=object) for name, cells in TYPED.items()},
    "pandas": lambda folder: pd.DataFrame(TYPED),
    "pandas of text": lambda folder: pd.DataFrame(TABLE),
    "pandas, nullable": lambda folder: pd.DataFrame(TYPED).convert_dtypes(),
    "pandas, categorical": lambda folder: pd.DataFrame(TABLE).astype("category"),
    "polars": lambda folder: pl.DataFrame(TYPED),
    "polars of text": lambda folder: pl.DataFrame(TABLE),
    "arrow": lambda folder: pa.table(TYPED),
    "arrow of text": lambda folder: pa.table(TABLE),
    "arrow, dictionary": lambda folder: pa.table({name: pa.array(c).dictionary_encode() for name, c in TABLE.items()}),
    "arrow, binary": lambda folder: pa.table({name: pa.array(c, pa.binary()) for name, c in TABLE.items()}),
    "record batch": lambda folder: pa.record_batch(TYPED),
    "csv": lambda folder: csv(folder, lines(TABLE)),
    "csv with spaces": lambda folder: str(csv(folder, lines(TABLE, ", "))),
    "csv with semicolons": lambda folder: csv(folder, lines(TABLE, ";", "\r\n")),
    "csv with tabs and a mark": lambda folder: csv(folder, lines(TABLE, "\t"), encoding="utf-8-sig"),
    "csv with a decimal comma": lambda folder: read_columns(
        csv(folder, lines({**TABLE, "gain": [c.replace(".", ",") for c in TABLE["gain"]]}, ";")),
        list(TABLE),
        decimal=",",
    ),
    "csv with quotes": lambda folder: csv(
        folder, lines({f'"{n}"': [f'"{c}"' for c in cells] for n, cells in TABLE.items()}, ", ")
    ),
    "columns": lambda folder: read_columns(csv(folder, lines(TABLE)), list(TABLE)),
}


def parquet(folder, table):
    pa.parquet.write_table(pa.table(table), folder / "t.parquet")
    return folder / "t.parquet"


FRAMES["parquet"] = lambda folder: parquet(folder, TYPED)
FRAMES["parquet of text"] = lambda folder: parquet(folder, TABLE)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_containers_agree(tmp_path, frame):
    encoding = Encoding(SCHEMA)
    wanted, rows = encoding.encode(TABLE), encoding.encode(frame(tmp_path))
    assert (rows.x == wanted.x).all()
    assert (rows.y == wanted.y).all()


@pytest.mark.parametrize("decimal", [",", "."])
@pytest.mark.parametrize("name", [name for name in FRAMES if name not in ("csv", "csv with spaces", "columns")])
def test_one_column_has_another_decimal_mark(tmp_path, monkeypatch, name, decimal):
    """In every container text is read as the schema says, whatever the file has, and numbers are numbers."""
    wanted = Encoding(SCHEMA).encode(TABLE)
    columns = {**SCHEMA.to_dict()["columns"], "gain": {**SCHEMA.columns["gain"].to_dict(), "decimal": decimal}}
    encoding = Encoding(Schema.from_dict({**SCHEMA.to_dict(), "columns": columns}))
    monkeypatch.setitem(TABLE, "gain", [cell.replace(".", decimal) for cell in TABLE["gain"]])
    rows = csv(tmp_path, lines(TABLE, ";")) if name == "csv with a decimal comma" else FRAMES[name](tmp_path)
    found = encoding.encode(read_columns(rows, list(TABLE), decimal=",") if isinstance(rows, Path) else rows)
    assert (found.x == wanted.x).all()


@pytest.mark.parametrize("classes", [(0, 1), ("0", "1"), (False, True)])
@pytest.mark.parametrize("cells", [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1.0"], [False, True, True]])
def test_classes_and_categories_of_any_type(tmp_path, classes, cells):
    schema = Schema("y", {"x": Categorical(classes)}, classes=classes)
    table = {"x": cells, "y": cells}
    for frame in (table, pd.DataFrame(table), csv(tmp_path, lines(table))):
        rows = Encoding(schema).encode(frame)
        assert rows.y.tolist() == [-ONE, ONE, ONE]
        assert (rows.x[:, 1:3] > 0).tolist() == [[True, False], [False, True], [False, True]]


def test_codes_with_zeros_in_front():
    schema = Schema("y", {"x": Categorical(["1", "01"])}, target_bounds=(0, 1))
    rows = Encoding(schema).encode({"x": ["01", "1", "1.0", 1, "001"], "y": [0] * 5})
    assert np.argmax(rows.x[:, 1:], axis=1).tolist() == [1, 0, 0, 0, 0]


def test_regression_target_and_units():
    schema = Schema("y", {"x": Numeric((0, 10)), "c": Categorical(["a", "b"])}, target_bounds=(0, 4))
    encoding = Encoding(schema)
    table = {"x": [0, 10, 5, None], "c": ["a", "b", None, "a"], "y": [0, 4, 1, 9]}
    assert encoding.encode(table).y.tolist() == [-ONE, ONE, -ONE // 2, ONE]
    theta = np.array([0.3, -0.7, 0.5, 0.25, -1.0])
    coefficients, intercept = encoding.to_caller_units(theta)
    assert list(coefficients) == ["x", "c=a", "c=b", "c=(missing)"]
    by_hand = [
        intercept + coefficients["x"] * (5 if x is None else x) + coefficients[f"c={c or '(missing)'}"]
        for x, c in zip(table["x"], table["c"], strict=True)
    ]
    assert 2 + 2 * (encoding.design(table) @ theta) == pytest.approx(by_hand, abs=1e-4)
    with pytest.raises(ValueError, match="theta must have shape"):
        encoding.to_caller_units([1.0])


def test_units_of_a_transform():
    encoding = Encoding(Schema("y", {"x": Numeric((0, 100), transform="sqrt")}, classes=("a", "b")))
    coefficients, intercept = encoding.to_caller_units([0.5, 2.0])
    table = {"x": [0, 25, 81, 100, 400]}
    by_hand = [intercept + coefficients["sqrt(x)"] * math.sqrt(min(x, 100)) for x in table["x"]]
    assert encoding.design(table) @ [0.5, 2.0] == pytest.approx(by_hand, abs=1e-4)


kinds = st.one_of(
    st.sampled_from(
        [
            Numeric(bounds, transform, missing)
            for bounds in ((0, 1), (-0.5, 7), (1e-9, 1e9), (0.1, 0.3))
            for transform in (None, "log1p")
            for missing in ("middle", "indicator")
        ]
    ),
    st.builds(Categorical, st.just(("a", "b", "c")), st.booleans(), st.sampled_from(["indicator", "zero"])),
    st.builds(Boolean, st.sampled_from(["middle", "indicator"])),
)
cells = st.one_of(
    st.floats(), st.integers(), st.none(), st.sampled_from(["a", "b", "yes", "no", "?", ""]), st.text(max_size=3)
)


@given(kinds=st.lists(kinds, min_size=1, max_size=12), data=st.data())
def test_bounds_hold_exactly_in_integers(kinds, data):
    names = [f"n{j}" for j in range(len(kinds))]
    encoding = Encoding(Schema("y", dict(zip(names, kinds, strict=True)), classes=(0, 1)))
    table = {name: data.draw(st.lists(cells, min_size=3, max_size=3)) for name in [*names, "y"]}
    rows = encoding.encode(table, on_invalid="clip")
    assert encoding.square * encoding.unit**2 <= ONE**2 < encoding.square * (encoding.unit + 1) ** 2
    assert sum(size for size, _ in encoding.blocks) == len(encoding.names) == rows.p
    assert encoding.square == encoding.blocks[0][0] + len(encoding.blocks) - 1
    for row in rows.x.tolist():
        assert sum(entry * entry for entry in row) <= ONE * ONE
        place = 0
        for size, norm in encoding.blocks:
            block = [abs(entry) for entry in row[place : place + size]]
            assert (max(block) if norm == "box" else sum(block)) <= encoding.unit
            place += size
        assert row[0] == encoding.unit
    for kind, name in zip(kinds, names, strict=True):
        if isinstance(kind, Categorical) and kind.missing == "indicator":
            mine = [j for j, encoded in enumerate(encoding.names) if encoded.startswith(f"{name}=")]
            assert ((rows.x[:, mine] > 0).sum(axis=1) == 1).all()


def test_invalid_rows_are_counted_and_not_quoted():
    table = {
        **TABLE,
        "age": [SECRET + "x", "1", "2", "3", "4"],
        "sex": ["F", SECRET, SECRET, "M", "F"],
        "member": [SECRET, "1", "1", "0", "0"],
        "income": ["low", "high", SECRET, "", "low"],
    }
    with pytest.raises(InvalidRows) as caught:
        Encoding(SCHEMA).encode(table)
    said = shows(caught.value)
    assert SECRET not in said
    assert "cells that are not numbers in column(s) age (1)" in said
    assert "not among the categories in column(s) sex (2)" in said
    assert "neither true nor false in column(s) member (1)" in said
    assert "neither class in the target income (1)" in said
    assert "missing in income (1)" in said
    assert "not covered by the privacy guarantee" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"age": ["x"] * 5}, "column 'age' has almost no readable number"),
        ({"age": [None] * 5}, "every cell of column 'age' is missing; check its name and which marks are listed"),
        ({"age": ["1e4"] * 5}, "almost every number in column 'age' lies outside its bounds"),
        ({"workclass": ["private"] * 5}, "almost no value in column 'workclass' is one of its categories"),
        ({"sex": ["f"] * 5}, "column 'sex' has almost no known category"),
        ({"income": ["low"] * 5}, "the second of classes almost never occurs in 'income'"),
        ({"income": ["Low"] * 5}, "column 'income' has almost no known label"),
    ],
)
def test_what_nearly_never_fits(changes, said):
    with pytest.raises(InvalidRows, match=said):
        Encoding(SCHEMA).encode({**TABLE, **changes})
    Encoding(SCHEMA).encode({**TABLE, **changes}, on_invalid="clip")


def test_clip_treats_what_cannot_be_read_as_missing():
    encoding = Encoding(SCHEMA)
    one = encoding.encode({**TABLE, "age": ["x"] * 5, "gain": ["x"] * 5, "sex": ["x"] * 5}, on_invalid="clip")
    two = encoding.encode({**TABLE, "age": [None] * 5, "gain": [None] * 5, "sex": [None] * 5}, on_invalid="clip")
    assert (one.x == two.x).all()
    assert encoding.encode({**TABLE, "income": ["x"] * 5}, on_invalid="clip").y.tolist() == [-ONE] * 5


def test_readable_counts():
    table = {**TABLE, "age": ["x", "1", "200", "", "4"], "income": ["low", "x", "", "high", "low"]}
    counts = readable_cells(Encoding(SCHEMA), table)
    assert counts == {
        "workclass": 4, "age": 3, "gain": 4, "member": 4, "sex": 4, "vip": 4, "income=low": 2, "income=high": 1
    }  # fmt: skip
    schema = Schema("y", {"x": Boolean()}, target_bounds=(0, 1))
    assert readable_cells(Encoding(schema), {"x": [1, 2], "y": [0, "x"]}) == {"x": 1, "y": 1}


def test_unused_columns_may_be_anything():
    frame = pd.DataFrame({**TABLE, "when": pd.to_datetime(["2020-01-01"] * 5), "z": [1j] * 5})
    assert Encoding(SCHEMA).encode(frame).n == 5
    assert Encoding(SCHEMA).encode(pa.Table.from_pandas(frame.drop(columns="z"))).n == 5


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({**TABLE, "age": ["1"]}, "same length"),
        ({name: cells for name, cells in TABLE.items() if name != "age"} | {"Age": [1] * 5}, "no column 'age'.*'Age'"),
        ({**TABLE, " age": [1] * 5}, "there are 2 columns 'age'"),
        ({name: [] for name in TABLE}, "there are no rows"),
        ([[1, 2]], "columns are found by their names.*not list"),
        (np.zeros((2, 2)), "not ndarray"),
        ("none.csv", "there is no file"),
        (pd.DataFrame({**TABLE, "age": pd.to_datetime(["2020-01-01"] * 5)}), "column 'age' must hold real numbers"),
    ],
)
def test_structure(frame, said):
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        Encoding(SCHEMA).encode(frame, on_invalid="clip")


def test_structure_of_files(tmp_path):
    with pytest.raises(ValueError, match="cannot tell the type"):
        read_columns(csv(tmp_path, "a\n1\n", "t.md"), ["a"])
    with pytest.raises(ValueError, match="more than one of comma, semicolon and tab; state the separator"):
        read_columns(csv(tmp_path, "a,b;c\n1\n"), ["c"])
    assert len(read_columns(csv(tmp_path, "a,b;c\n1\n"), ["c"], separator=";")) == 1
    with pytest.raises(ValueError, match="first line is not in utf-8; state the encoding"):
        read_columns(csv(tmp_path, "größe\n1\n", encoding="latin-1"), ["größe"])
    found = read_columns(csv(tmp_path, "größe\nklein,ä\n", encoding="latin-1"), ["größe"], encoding="latin-1")
    assert found["größe"].cells() == ["klein"]
    with pytest.raises(ValueError, match="UTF-16"):
        read_columns(csv(tmp_path, "a\n1\n", encoding="utf-16"), ["a"])
    for encoding in ("utf-16", "cp037", "none", "hex"):
        with pytest.raises(ValueError, match="is unknown or not one in which ASCII is ASCII"):
            read_columns(csv(tmp_path, "a\n1\n"), ["a"], encoding=encoding)
    for separator in (",,", '"'):
        with pytest.raises(ValueError, match="separator must be one letter"):
            read_columns(csv(tmp_path, "a\n1\n"), ["a"], separator=separator)
    with pytest.raises(ValueError, match="decimal must be"):
        read_columns(csv(tmp_path, "a\n1\n"), ["a"], decimal=";")
    with pytest.raises(ValueError, match="could not be read as Parquet"):
        read_columns(csv(tmp_path, "a\n1\n", "t.parquet"), ["a"])


def test_names_that_meet():
    schema = Schema("y", {"a=b": Boolean(), "a": Categorical(["b"])}, classes=(0, 1))
    with pytest.raises(ValueError, match="two encoded columns would be called 'a=b'"):
        Encoding(schema)


def test_nothing_of_the_callers_is_changed():
    age = np.array([1.0, -999.0])
    Encoding(Schema("y", {"x": Numeric((0, 2))}, classes=(0, 1), missing=(-999,))).encode({"x": age, "y": [0, 1]})
    assert age.tolist() == [1.0, -999.0]


def test_large_tables_are_quick():
    n = 30_000
    table = {"x": ["0.25"] * n, "c": ["b"] * n, "y": ["no", "yes"] * (n // 2)}
    schema = Schema("y", {"x": Numeric((0, 1), "log1p"), "c": Categorical(["a", "b"])}, classes=("no", "yes"))
    began = time.perf_counter()
    assert Encoding(schema).encode(table).n == n
    assert time.perf_counter() - began < 2


def test_every_entry_is_written(monkeypatch):
    """Rows are made in memory that holds what it held before: no entry may stay as it was."""
    from expost.table import encoding as encode
    from expost.table.rows import room_for

    frame = {
        "age": [1.0, 2.0], "pay": [1.0, 2.0], "gap": [1.0, float("nan")], "city": ["A", "?"], "ok": ["yes", "maybe"],
        "y": [0, 1],
    }  # fmt: skip
    described = {
        "age": {"bounds": [0, 3]},
        "pay": {"bounds": [0, 3], "missing": "indicator"},
        "gap": {"bounds": [0, 3], "missing": "indicator"},
        "city": {"categories": ["A", "B"]},
        "ok": {"boolean": True, "missing": "indicator"},
    }
    encoding = Encoding(Schema.from_dict({"target": "y", "classes": [0, 1], "columns": described}))
    found = []
    for before in (7, -7):

        def used(n, p, *, columns, before=before):
            made = room_for(n, p, columns=columns)
            made[...] = before
            return made

        monkeypatch.setattr(encode, "room_for", used)
        found.append(encoding.encoded(encoding.open(frame))[0])
    assert np.array_equal(*found)
    assert by_column(found[0])


def test_batches_of_a_table_are_its_rows_column_by_column():
    rng = np.random.default_rng(0)
    frame = {"a": rng.uniform(-1, 2, 500), "b": rng.uniform(0, 1, 500), "y": rng.integers(0, 2, 500)}
    encoding = Encoding(Schema("y", {"a": Numeric((0, 1)), "b": Numeric((0, 1))}, classes=(0, 1)))
    whole, (x, y, _) = encoding.encode(frame), encoding.encoded(encoding.open(frame))
    assert by_column(x)
    assert not by_column(whole.x)  # what is worked on in floats stands as it always did
    assert np.array_equal(x, whole.x)
    assert np.array_equal(y, whole.y)
