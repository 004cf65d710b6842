"""``check``, ``predict`` and ``init`` of tables in several files and pieces: as of one file that is read whole."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from expost.exceptions import InvalidRows
from expost.table.csv_lines import CsvFile
from expost.table.files import open_disk
from tests.cli.helpers import call
from tests.release.model_helpers import AMOUNT, LABELS, released

HEADER = "id,age,income,area,sector,town,heating,code,level,member,owner,y"
GOOD = ["30.5,1000,20,public,Bern,gas,1,2,yes,no,no", "90,5,?,private,Rome,coal,7,3+,0,1,yes"]
N = 60


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """Cut files into parts of two or three lines each."""
    monkeypatch.setattr(CsvFile, "part_bytes", 100)


def lines(start=0, stop=N):
    return [f"{i:03},{GOOD[i % 2] if i % 7 else GOOD[1]}" for i in range(start, stop)]


def put(path, rows, header=HEADER):
    text = "\n".join([header, *rows, ""]).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def tables(tmp_path):
    """The same rows in one file, a folder and a pattern; in two types."""
    put(tmp_path / "whole.csv", lines())
    put(tmp_path / "packed.csv.gz", lines())
    for name in ("parts", "columns"):
        (tmp_path / name).mkdir()
    for k, name in enumerate(("a", "b", "c")):
        put(tmp_path / "parts" / f"{name}.csv", lines(20 * k, 20 * k + 20))
        read = pa.csv.ConvertOptions(column_types={cell: pa.string() for cell in HEADER.split(",")})
        part = pa.csv.read_csv(tmp_path / "parts" / f"{name}.csv", convert_options=read)
        pa.parquet.write_table(part, tmp_path / "columns" / f"{name}.parquet", row_group_size=3)
    put(tmp_path / "parts" / "_old.csv", ["1"])  # no part of the table
    return [tmp_path / "packed.csv.gz", tmp_path / "parts", tmp_path / "parts" / "[abc].csv", tmp_path / "columns"]


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(LABELS.to_toml(), encoding="utf-8")
    return path


def test_check_says_the_same(tables, schema, tmp_path, capsys):
    whole = call(capsys, "check", tmp_path / "whole.csv", "--schema", schema)
    assert (whole.status, whole.err) == (0, "")
    assert f"{N} rows" in whole.out
    for table in tables:
        assert call(capsys, "check", table, "--schema", schema) == whole


def test_check_counts_persons_over_files(tables, schema, tmp_path, capsys):
    for k, name in enumerate(("a", "b", "c")):
        put(
            tmp_path / "parts" / f"{name}.csv",
            [f"p{i % 4}{row[3:]}" for i, row in enumerate(lines(20 * k, 20 * k + 20))],
        )
    said = call(capsys, "check", tmp_path / "parts", "--schema", schema, "--person", "id", "--rows-per-person", 5)
    assert "4 persons by id; 4 have more than 5 rows, of which 40 rows are left out" in said.out


@pytest.mark.parametrize(("many", "status"), [(1, 0), (3, 0), (4, 3)])
def test_check_counts_lines_with_another_number_of_cells(schema, tmp_path, capsys, many, status):
    rows = lines()
    for i in range(many):
        rows[5 * i] += ",further,cells"
    put(tmp_path / "t.csv", rows)
    said = call(capsys, "check", tmp_path / "t.csv", "--schema", schema)
    assert said.status == status
    assert f"Check: {many} of {N} lines {'has' if many == 1 else 'have'} another number of cells" in said.out
    badly = "The table fits the schema badly: expost fit takes it, but many lines have too few cells or too many."
    fits = "The table fits the schema, and expost fit takes it; what is said above is worth a look first."
    assert said.out.splitlines()[-1] == (badly if status else fits)
    assert "further" not in said.out.replace("further ones are left out", "")


def test_a_short_line_is_counted_too(schema, tmp_path, capsys):
    put(tmp_path / "t.csv", [*lines(), "", "061,3"])
    said = call(capsys, "check", tmp_path / "t.csv", "--schema", schema)
    assert f"Check: 2 of {N + 2} lines have another number of cells" in said.out
    assert said.status == 3  # as their targets are missing


def test_predictions_are_in_the_order_of_files_and_lines(tables, model, tmp_path, capsys):
    given = ["--keep", "id", "age", "--probabilities"]
    whole = call(capsys, "predict", model, tmp_path / "whole.csv", *given)
    assert [line[:3] for line in whole.out.splitlines()[1:]] == [f"{i:03}" for i in range(N)]
    assert {line.split(",")[2] for line in whole.out.splitlines()[1:]} == {"no", "yes"}
    for k, table in enumerate(tables):
        assert call(capsys, "predict", model, table, *given) == whole
        out = tmp_path / f"answers{k}.csv"
        assert call(capsys, "predict", model, table, *given, "--output", out).out == f"wrote 60 predictions to {out}\n"
        assert out.read_text() == whole.out


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("047,x,1,2,public,Bern,gas,1,1,yes,no,no", ["age (2)", "row 8 (counting from 1) of ", "c.csv, column 'age'"]),
        ("047,1,2", ["row 8 (line 9) of ", "c.csv has not as many cells"]),
    ],
)
def test_a_row_that_cannot_be_read_is_found_in_its_file_and_nothing_is_written(
    tables, model, tmp_path, capsys, line, parts
):
    rows = lines(40, N)
    rows[7] = line
    rows[15] = "055,z,1,2,public,Bern,gas,1,1,yes,no,no"
    put(tmp_path / "parts" / "c.csv", rows)
    before = sorted(tmp_path.iterdir())
    said = call(capsys, "predict", model, tmp_path / "parts", "--output", tmp_path / "answers.csv")
    assert (said.status, said.out) == (2, "")
    assert all(part in said.err for part in parts)
    assert sorted(tmp_path.iterdir()) == before
    assert call(capsys, "predict", model, tmp_path / "parts").out == ""
    assert call(capsys, "predict", model, tmp_path / "parts", "--on-invalid", "clip").out.count("\n") == N + 1
    with pytest.raises(InvalidRows, match=r"c\.csv"):
        released(LABELS).predict(tmp_path / "parts")


def test_a_file_of_the_folder_is_not_written_over(tables, model, tmp_path, capsys):
    used = tmp_path / "parts" / "b.csv"
    before = used.read_bytes()
    said = call(capsys, "predict", model, tmp_path / "parts", "--output", used, "--force")
    assert "is read, so it is not written over" in said.err
    assert used.read_bytes() == before


@pytest.mark.parametrize("schema", [LABELS, AMOUNT], ids=["labels", "amount"])
def test_python_predicts_what_it_predicts_for_one_file(schema, tables, tmp_path):
    release = released(schema, largest_odds=4.0)
    whole = release.predict(pa.parquet.ParquetDataset(tmp_path / "columns").read())
    assert len(whole) == N
    for table in (tmp_path / "whole.csv", str(tables[0]), *tables[1:], open_disk(tables[1])):
        found = release.predict(table)
        assert np.allclose(found, whole, rtol=1e-12) if schema is AMOUNT else found.tolist() == whole.tolist()


@pytest.mark.parametrize("kind", ["parts", "columns"])
def test_init_looks_at_the_first_file(tables, tmp_path, capsys, kind):
    first = next(path for path in sorted((tmp_path / kind).iterdir()) if not path.name.startswith("_"))
    assert call(capsys, "init", first, "--output", tmp_path / "one.toml").status == 0
    said = call(capsys, "init", tmp_path / kind, "--output", tmp_path / "all.toml")
    assert f"expost check {tmp_path / kind} --schema" in said.out
    assert (tmp_path / "all.toml").read_text() == (tmp_path / "one.toml").read_text()
