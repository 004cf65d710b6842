"""The same cells by every door: one release, to the bit. What is not there, or no table, is said before any noise."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import expost.passes.kept
from expost import AccuracyFirstModel, DaskEngine, LocalEngine, TableOnDisk
from expost.goals import R2
from expost.table.databases_and_streams import ROW_BY_ROW, SAME_ROWS
from expost.table.files import open_disk

from .helpers import call

SCHEMA = """
target = "y"
target_bounds = [0, 10]
[columns]
age = { bounds = [0, 100] }
town = { categories = ["Bern", "Zürich", "Oslo"], other = true }
late = { boolean = true }
"""
PERSON = SCHEMA.replace("[columns]", 'person = "who"\nrows_per_person = 2\n[columns]')
QUERY = "select who, age, town, late, y from visits order by place"
N = 1200


def rows():
    rng = np.random.default_rng(0)
    towns = ["Bern", "Zürich", "Oslo", None, "Köln, Ost"]
    for i in range(N):
        age = round(float(rng.uniform(0, 104)), 2)
        late = bool(rng.integers(2))
        y = round(age / 12 + 1.5 * late + float(rng.normal(0, 0.3)), 3)
        yield f"p{i % 500}", None if i % 31 == 0 else age, towns[int(rng.integers(5))], late, y


NAMES = ["who", "age", "town", "late", "y"]


@pytest.fixture(scope="module")
def doors(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("doors")
    table = [list(column) for column in zip(*rows(), strict=True)]
    data = pa.table(dict(zip(NAMES, table, strict=True)))
    text = [[("" if cell is None else f"{cell}") for cell in row] for row in rows()]
    for name, mark in (("t.csv", ","), ("t.tsv", "\t"), ("t.txt", ";")):
        quoted = [[f'"{cell}"' if mark in cell else cell for cell in row] for row in [NAMES, *text]]
        (folder / name).write_text("".join(f"{mark.join(row)}\n" for row in quoted), encoding="utf-8")
    cells = [dict(zip(NAMES, row, strict=True)) for row in rows()]
    lines = [json.dumps({k: v for k, v in row.items() if i == 0 or v is not None}) for i, row in enumerate(cells)]
    (folder / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
    pa.parquet.write_table(data, folder / "t.parquet")
    pa.feather.write_feather(data, folder / "t.feather", chunksize=100)
    with pa.ipc.new_file(folder / "t.arrow", data.schema) as writer:
        writer.write_table(data, max_chunksize=70)
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("visits")
    for row in [NAMES, *rows()]:
        sheet.append(list(row))
    book.save(folder / "t.xlsx")
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("create table visits (place, who, age, town, late, y)")
        connection.executemany("insert into visits values (?,?,?,?,?,?)", [(i, *row) for i, row in enumerate(rows())])
    connection.close()
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        numbered = data.append_column("place", pa.array(range(N)))
        database.register("numbered", numbered)
        database.execute("create table visits as select * from numbered")
    for name, schema in (("rows.toml", SCHEMA), ("persons.toml", PERSON)):
        (folder / name).write_text(schema, encoding="utf-8")
    return folder


DOORS = {
    "t.csv": [],
    "t.tsv": [],
    "t.txt": [],
    "t.jsonl": [],
    "t.parquet": [],
    "t.feather": [],
    "t.arrow": [],
    "t.xlsx": ["--sheet", "visits"],
    "sqlite:t.db": ["--query", QUERY],
    "duckdb:t.duckdb": ["--query", QUERY],
}


def release(said):
    assert said.status == 0, said.err
    found = json.loads(said.out)
    return {key: value for key, value in found.items() if key not in ("id", "created")}


def but_for_queries(door, found):
    """A release without what is taken as given of a query, which nobody checks; one of a query has to say it."""
    claims = [claim for claim in found["claims"] if claim != ROW_BY_ROW]
    assert len(found["claims"]) - len(claims) == ("--query" in DOORS[door])
    return {**found, "claims": claims}


@pytest.mark.parametrize("schema", ["rows.toml", "persons.toml"])
def test_the_same_release_by_every_door(doors, capsys, monkeypatch, schema):
    monkeypatch.chdir(doors)
    asked = ["--schema", schema, "--r2", "0.5", "--max-epsilon", "8", "--seed", "3", "--json"]
    found = {door: release(call(capsys, "fit", door, *more, *asked)) for door, more in DOORS.items()}
    assert found["t.csv"]["status"] == "released"
    for door, other in found.items():
        assert but_for_queries(door, other) == found["t.csv"], door


def test_the_same_release_without_a_schema(doors, capsys, monkeypatch):
    monkeypatch.chdir(doors)
    asked = ["--target", "y", "--task", "regression", "--columns", "age", "--bounds", "0", "100"]
    asked += ["--target-bounds", "0", "10", "--r2", "0.5", "--max-epsilon", "20", "--seed", "3", "--json"]
    asked += ["--on-invalid", "clip", "--memory", "1"]
    found = {door: release(call(capsys, "fit", door, *more, *asked)) for door, more in DOORS.items()}
    for door, other in found.items():
        assert but_for_queries(door, other) == found["t.csv"], door


def test_the_same_predictions_and_counts(doors, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(doors)
    model = tmp_path / "model.json"
    asked = ["--schema", "rows.toml", "--r2", "0.5", "--max-epsilon", "8", "--seed", "3", "--output", model]
    assert call(capsys, "fit", "t.csv", *asked).status == 0
    answers, counts = set(), set()
    for door, more in DOORS.items():
        answers.add(call(capsys, "predict", model, door, *more, "--keep", "who").out)
        counts.add(call(capsys, "check", door, *more, "--schema", "persons.toml").out)
    assert len(answers) == len(counts) == 1
    assert answers.pop().count("\n") == N + 1


def handed_out(doors):
    table = pa.parquet.read_table(doors / "t.parquet")
    return {
        "frame": (lambda: table, ()),
        "reader": (lambda: table.to_reader(max_chunksize=100), ()),
        "relation": (lambda: duckdb.from_arrow(table), ()),
        "polars": (lambda: pl.from_arrow(table), ()),
        "query": (lambda: open_disk(f"sqlite:{doors / 't.db'}", query=QUERY), (ROW_BY_ROW,)),
        "function": (lambda: lambda: table.to_reader(max_chunksize=90), (SAME_ROWS,)),
        "function of frames": (lambda: lambda: pl.from_arrow(table), (SAME_ROWS,)),
    }


@pytest.mark.parametrize("schema", ["rows.toml", "persons.toml"])
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_the_same_release_of_what_is_handed_out(doors, monkeypatch, tmp_path, schema, kept):
    engine = LocalEngine(scratch=tmp_path, memory=0 if kept == "in a file" else 128)

    def fitted(table):
        return AccuracyFirstModel(str(doors / schema), R2(0.5), max_epsilon=8, random_state=3, engine=engine).fit(table)

    expected = fitted(doors / "t.parquet")
    for name, (made, claims) in handed_out(doors).items():
        model = fitted(made())
        assert model.release_.epsilon == expected.release_.epsilon, name
        np.testing.assert_array_equal(model.release_.hypothesis, expected.release_.hypothesis)
        assert [claim for claim in model.release_.claims if claim in (SAME_ROWS, ROW_BY_ROW)] == list(claims)
        np.testing.assert_array_equal(model.predict(made()), expected.predict(doors / "t.parquet"))
        assert model.score(made()) == expected.score(doors / "t.parquet")
    assert list(tmp_path.iterdir()) == []  # files have no names


def test_what_is_kept_in_a_file_is_encrypted(doors, monkeypatch, tmp_path):
    """A broken variant, which writes records as they are, is caught."""
    written = []
    kept = expost.passes.kept.KeptStream
    after = kept._write
    monkeypatch.setattr(
        kept, "_write", lambda self: (after(self), self._file.seek(0), written.append(self._file.read()))
    )
    table = pa.parquet.read_table(doors / "t.parquet")

    def fit():
        engine = LocalEngine(scratch=tmp_path, memory=0)
        AccuracyFirstModel(str(doors / "rows.toml"), R2(0.5), max_epsilon=8, random_state=3, engine=engine).fit(
            table.to_reader(max_chunksize=100)
        )

    fit()
    assert len(written) == 12
    assert "Zürich".encode() not in b"".join(written)
    monkeypatch.setattr(kept, "_cipher", lambda self: Plain)
    fit()
    assert "Zürich".encode() in b"".join(written)


class Plain:
    @staticmethod
    def encrypt(nonce, data, _):
        return data

    @staticmethod
    def decrypt(nonce, data, _):
        return data


@pytest.mark.usefixtures("no_noise")
def test_streams_that_cannot_be_read_again(doors):
    table = pa.parquet.read_table(doors / "t.parquet")
    model = AccuracyFirstModel(str(doors / "rows.toml"), R2(0.5), max_epsilon=8)
    used = table.to_reader()
    used.read_all()
    with pytest.raises(ValueError, match="has no rows; one that has been read before has none left"):
        model.fit(used)
    nothing = LocalEngine(memory=0, scratch=False)
    with pytest.raises(ValueError, match=r"gives its rows once.*nothing may be written: pass a function"):
        model.set_params(engine=nothing).fit(table.to_reader())
    with pytest.raises(ValueError, match="function without arguments that hands them out anew"):
        TableOnDisk(table.to_reader(), "y")
    with pytest.raises(ValueError, match="engine='local'"):
        model.set_params(engine=DaskEngine()).fit(table.to_reader())
    with pytest.raises(ValueError, match=r"must return what hands out batches of Arrow.*not dict"):
        model.set_params(engine=None).fit(lambda: {"age": [1]})
    with pytest.raises(ValueError, match="no column 'town'"):
        model.fit(table.drop(["town"]).to_reader())

    sizes = iter([5, 7])
    with pytest.raises(OSError, match="not as many rows as when it was first read"):
        model.set_params(engine=nothing).fit(lambda: table.slice(0, next(sizes, 9)))


def failing(table):
    def batches():
        yield from table.to_batches(max_chunksize=100)[:2]
        raise RuntimeError("27182818")

    return pa.RecordBatchReader.from_batches(table.schema, batches())


@pytest.mark.usefixtures("no_noise")
def test_a_stream_that_breaks_quotes_nothing(doors):
    table = pa.parquet.read_table(doors / "t.parquet")
    with pytest.raises(OSError, match="the stream could not be read to its end") as caught:
        AccuracyFirstModel(str(doors / "rows.toml"), R2(0.5)).fit(failing(table))
    assert caught.value.__context__ is None
    assert "27182818" not in f"{caught.value}"


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    ("door", "more", "said"),
    [
        ("sqlite:t.db", [], "pass --query with a select: sqlite:t.db is a database"),
        ("sqlite:none.db", ["--query", QUERY], "there is no database none.db"),
        ("sqlite:t.csv", ["--query", QUERY], "the query of sqlite:t.csv cannot be carried out: file is not a database"),
        ("sqlite:t.db", ["--query", "select nope from visits"], "no such column: nope. Nothing was spent"),
        ("sqlite:t.db", ["--query", "delete from visits"], "cannot be carried out"),
        ("sqlite:t.db", ["--query", "select 1; drop table visits"], "one statement at a time"),
        ("sqlite:t.db", ["--query", "select age from visits"], "there is no column 'town'"),
        ("sqlite:t.db", ["--query", "select * from visits where place < 0"], "has no rows"),
        ("duckdb:t.duckdb", ["--query", "select nope from visits"], 'Binder Error: Referenced column "nope"'),
        ("duckdb:t.duckdb", ["--query", "drop table visits"], "cannot be carried out"),
        ("duckdb:t.csv", ["--query", "select 1"], "cannot be carried out; is it a database of DuckDB?"),
        ("t.csv", ["--query", QUERY], "--query goes with a database"),
        ("t.csv", ["--sheet", "visits"], "--sheet goes with a workbook"),
        ("t.xlsx", ["--sheet", "none"], "has no sheet 'none'; its sheets are notes, visits"),
        ("t.xlsx", [], "the first row of the sheet in t.xlsx must have the names"),
    ],
)
def test_what_is_not_there(doors, capsys, monkeypatch, door, more, said):
    monkeypatch.chdir(doors)
    found = call(capsys, "fit", door, *more, "--schema", "rows.toml", "--r2", "0.5")
    assert (found.status, found.out) == (2, "")
    assert said in found.err
    assert found.err.count("\n") == 1
    assert (doors / "t.db").stat().st_size > 10_000


@pytest.mark.parametrize("more", [["--sheet", "none"], []])
def test_a_workbook_that_is_refused_is_closed(doors, capsys, monkeypatch, more):
    load, opened = openpyxl.load_workbook, []
    monkeypatch.setattr(
        openpyxl, "load_workbook", lambda *path, **options: opened.append(load(*path, **options)) or opened[-1]
    )
    monkeypatch.chdir(doors)
    assert call(capsys, "fit", "t.xlsx", *more, "--schema", "rows.toml", "--r2", "0.5").status == 2
    assert [book._archive.fp for book in opened] == [None]


def test_a_stray_cell_far_out_in_a_workbook_takes_no_hours(tmp_path, capsys):
    """All rows were read as wide as the sheet, 16,384 columns; the rows up to the stray cell still count."""
    book = openpyxl.Workbook()
    for row in (["a", "y"], [1, 2], [3, 4]):
        book.active.append(row)
    book.active["XFD20000"] = 1
    book.save(tmp_path / "t.xlsx")
    (tmp_path / "s.toml").write_text('target = "y"\ntarget_bounds = [0, 9]\n[columns]\na = { bounds = [0, 9] }\n')
    said = call(capsys, "check", tmp_path / "t.xlsx", "--schema", tmp_path / "s.toml")
    assert (said.status, "19,999 rows" in said.out) == (3, True)


@pytest.mark.parametrize(("package", "door"), [("duckdb", "duckdb:t.duckdb"), ("openpyxl", "t.xlsx")])
def test_what_is_not_installed(doors, capsys, monkeypatch, package, door):
    monkeypatch.chdir(doors)
    there = importlib.util.find_spec
    monkeypatch.setattr("expost.table.formats.find_spec", lambda name: None if name == package else there(name))
    said = call(capsys, "fit", door, "--query", "select 1", "--schema", "rows.toml", "--r2", "0.5")
    extra = {"duckdb": "duckdb", "openpyxl": "excel"}[package]
    assert (said.status, said.out) == (2, "")
    assert f"needs {package}: pip install 'expost[{extra}]'. Nothing was spent" in said.err


def test_a_cluster_reads_no_workbook(doors, capsys, monkeypatch):
    monkeypatch.chdir(doors)
    asked = ["--target", "y", "--task", "regression", "--columns", "age", "--bounds", "0", "100"]
    asked += ["--target-bounds", "0", "10", "--r2", "0.5"]
    for more in (["--schema", "rows.toml", "--r2", "0.5"], asked):
        said = call(capsys, "fit", "t.xlsx", "--sheet", "visits", *more, "--engine", "dask")
        assert (said.status, said.out) == (2, "")
        assert "pass --engine local: t.xlsx is read by this process, and a cluster has workers elsewhere" in said.err


def test_drafts(doors, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(doors)
    for k, (door, more) in enumerate(DOORS.items()):
        said = call(capsys, "init", door, *more, "--output", tmp_path / f"{k}.toml")
        assert said.status == 0, said.err
        text = (tmp_path / f"{k}.toml").read_text(encoding="utf-8")
        columns = [line.split(" = ")[0] for line in text.splitlines() if line]
        assert columns[-5:] == NAMES, door
        assert ("--query" in said.out, "--sheet" in said.out) == ("--query" in more, "--sheet" in more)


def test_a_database_is_not_written_over(doors, capsys, monkeypatch):
    monkeypatch.chdir(doors)
    asked = ["--schema", "rows.toml", "--r2", "0.5", "--output", "t.db", "--force"]
    said = call(capsys, "fit", "sqlite:t.db", "--query", QUERY, *asked)
    assert said.status == 2
    assert (doors / "t.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz"])
def test_a_mark_at_the_start_is_no_cell(doors, capsys, tmp_path, ending):
    """Some programs begin every text with it; the first row and the first name are there all the same."""
    plain = (doors / f"t.{ending.removesuffix('.gz')}").read_bytes()
    marked = b"\xef\xbb\xbf" + plain
    (tmp_path / f"t.{ending}").write_bytes(gzip.compress(marked) if ending.endswith("gz") else marked)
    said = [
        call(capsys, "check", folder / name, "--schema", doors / "rows.toml", "--json")
        for folder, name in ((doors, f"t.{ending.removesuffix('.gz')}"), (tmp_path, f"t.{ending}"))
    ]
    assert said[0].out == said[1].out
    assert call(capsys, "init", tmp_path / f"t.{ending}", "--output", tmp_path / "draft.toml").status == 0
    assert "\nwho = " in (tmp_path / "draft.toml").read_text(encoding="utf-8")


def test_a_damaged_dictionary_is_no_place_to_read_from(tmp_path, capsys):
    """A place that no dictionary has, in a page of Parquet, would be read beyond its memory."""
    towns = pa.table({"town": ["Bern", "Oslo", "Rome"] * 200, "y": [0.5] * 600})
    (tmp_path / "s.toml").write_text(
        'target = "y"\ntarget_bounds = [0, 1]\n[columns]\ntown = { categories = ["Bern", "Oslo", "Rome"] }\n'
    )
    for table in (towns, towns.set_column(0, "town", towns["town"].dictionary_encode())):
        pa.parquet.write_table(table, tmp_path / "t.parquet", compression="none")
        whole = (tmp_path / "t.parquet").read_bytes()
        places = whole.index(b"\x24\x49\x92" * 4)  # 0, 1, 2, 0, 1, ... in two bits each
        (tmp_path / "t.parquet").write_bytes(whole[:places] + b"\xff" + whole[places + 1 :])  # 3 is none of them
        said = call(capsys, "fit", tmp_path / "t.parquet", "--schema", tmp_path / "s.toml", "--r2", "0.5", "--json")
        assert (said.status, said.out) == (2, "")
        assert "row group(s) 0 are damaged or out of reach. Nothing was spent" in said.err
        plain = ["--target", "y", "--task", "regression", "--bounds", "0", "1", "--target-bounds", "0", "1"]
        said = call(capsys, "fit", tmp_path / "t.parquet", *plain, "--excess-risk", "0.1", "--on-invalid", "clip")
        assert (said.status, "could not be read as Parquet" in said.err) == (2, True)


def test_folders_of_two_types_and_links(doors, capsys, tmp_path):
    for name in ("a.jsonl", "b.tsv"):
        (tmp_path / name).write_bytes((doors / f"t.{name.split('.')[1]}").read_bytes())
    asked = ["--schema", doors / "rows.toml"]
    assert "holds both TSV and JSON lines files" in call(capsys, "check", tmp_path, *asked).err
    (tmp_path / "b.tsv").unlink()
    (tmp_path / "notes.txt").write_text("not a table")
    assert call(capsys, "check", tmp_path, *asked).err == ""
    (tmp_path / "c.jsonl").symlink_to(tmp_path / "a.jsonl")
    assert "are one file, whose rows would count twice" in call(capsys, "check", tmp_path, *asked).err
