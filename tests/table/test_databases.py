"""Cells of SQLite have types of their own each: whatever stands in one, nothing is said, and no other row changes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from expost import Schema
from expost.passes.kept import kept
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.kinds import Boolean, Categorical, Dated, Numeric
from expost.table.streamed import EncodedSource

from .hostile import SECRET, shows, silence

COLUMNS = {
    "age": Numeric((0, 100)),
    "job": Categorical(["a", "b", 3], other=True),
    "vip": Boolean(),
    "born": Dated(("1950-01-01", "2020-12-31")),
}
SCHEMA = Schema("y", COLUMNS, target_bounds=(0, 1), missing=("", "?", -999))
NAMES = [*COLUMNS, "y"]
GOOD = [(31.5, "a", 1, "1970-01-01", 0), ("47", 3, "no", None, "0.5"), (None, "z", "?", "x", 1.0)]
# SQLite itself makes a missing cell of NaN
CELL = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.binary(max_size=8),
    st.sampled_from([b"\xff\xfe", b"31", SECRET, "9" * 100_000, float("inf"), 1e308, "\x00a", b"\x80" * 1000]),
)


def encoded(folder, rows, text=()):
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"create table t ({', '.join(NAMES)})")
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", rows)
        for name in text:  # text that is not in UTF-8, which SQLite stores all the same
            connection.execute(f"update t set {name} = cast({name} as text) where typeof({name}) = 'blob'")
    with silence():
        disk = kept(open_disk(f"sqlite:{path}", query="select * from t order by rowid"), SCHEMA.needed)
        source = EncodedSource(disk, Encoding(SCHEMA))
        batches = [batch for _ in range(2) for part in source.parts() for batch in source.read(part)]
    assert len(batches) == 2
    np.testing.assert_array_equal(batches[0].x, batches[1].x)
    return np.hstack([batches[0].x, batches[0].y[:, None]])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=st.tuples(*[CELL] * 5), place=st.integers(0, 3), text=st.sampled_from([(), NAMES]))
def test_a_row_replaced_by_anything_leaves_the_others_alone(tmp_path, one, place, text):
    alone = encoded(tmp_path, GOOD, text)
    found = encoded(tmp_path, [*GOOD[:place], one, *GOOD[place:]], text)
    np.testing.assert_array_equal(np.delete(found, place, axis=0), alone)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=9))
def test_cells_are_kept_as_they_came(tmp_path, rows):
    path = tmp_path / "t.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (a, b)")
        connection.executemany("insert into t values (?, ?)", rows)
        came = connection.execute("select a, b from t order by rowid").fetchall()
    disk = kept(open_disk(f"sqlite:{path}", query="select a, b from t order by rowid"), ["a", "b"])
    [piece] = disk.pieces()
    [columns] = disk.read(piece, ["a", "b"], frozenset(), 99)
    found = list(zip(columns["a"].cells(), columns["b"].cells(), strict=True))
    assert [[(type(cell), cell) for cell in row] for row in found] == [[(type(c), c) for c in row] for row in came]


def test_a_query_that_fails_on_a_row_quotes_nothing(tmp_path):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table t (age, y)")
        connection.executemany("insert into t values (?, 1)", [("{}",)] * 20_000 + [(SECRET + "{",)])
    query = "select json_extract(age, '$.a') as age, y from t"
    disk = open_disk(f"sqlite:{path}", query=query)
    with pytest.raises(OSError, match="could not be read to its end") as caught:
        kept(disk, ["age", "y"])
    assert SECRET not in shows(caught.value)
    first = f"{query} order by rowid desc"
    with pytest.raises(ValueError, match="cannot be carried out while rows are read") as caught:
        open_disk(f"sqlite:{path}", query=first)
    assert SECRET not in shows(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "attach '{folder}/o.db' as o",
        "vacuum into '{folder}/o.db'",
        "pragma table_info(t)",
        "insert into t values (1)",
        "select 1; select 2",
    ],
)
def test_a_query_reads_and_does_nothing_else(tmp_path, query):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("create table t (a)")
    with pytest.raises(ValueError, match="cannot be carried out"):
        open_disk(f"sqlite:{tmp_path / 't.db'}", query=query.format(folder=tmp_path)).files[0].names  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


@pytest.mark.parametrize(
    "query",
    [
        "copy t to '{folder}/o.csv'",
        "export database '{folder}/o'",
        "select * from t; copy t to '{folder}/o.csv'",
        "copy t to '{folder}/o.csv'; select * from t",
    ],
)
def test_a_query_of_duckdb_is_one_select(tmp_path, query):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute("create table t (a int); insert into t values (7)")
    with pytest.raises(ValueError, match="cannot be carried out"):
        open_disk(f"duckdb:{tmp_path / 't.db'}", query=query.format(folder=tmp_path)).files[0].names  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]
    found = open_disk(f"duckdb:{tmp_path / 't.db'}", query="with s as (select a from t) select a from s order by a")
    assert list(found.files[0].names) == ["a"]
