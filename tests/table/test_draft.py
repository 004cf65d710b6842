"""A schema to fill in comes from names and types alone."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet
import pytest

from expost import Schema
from expost.table.schema import draft


def write(folder, data, name="t.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_csv_says_names_only(tmp_path, name):
    said = draft(write(tmp_path, b'age; "home town";\n31;Bern;7\n\xff', name))
    assert said.splitlines()[-2:] == ["age = {  }", '"home town" = {  }']
    assert draft(write(tmp_path, b'age; "home town";\n', name)) == said


def test_parquet_says_types(tmp_path):
    table = pa.table(
        {
            "age": pa.array([31], pa.int8()),
            "weight": pa.array([70.5]),
            "town": pa.array(["Bern"]),
            "code": pa.array(["7"]).dictionary_encode(),
            "member": pa.array([True]),
            "when": pa.array([0], pa.timestamp("ms")),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    said = draft(tmp_path / "t.parquet")
    assert said.split("[columns]\n", 2)[-1].splitlines() == [
        '# For amounts of very different size add transform = "log1p" or "sqrt" beside bounds.',
        "age = { bounds = [ , ] }  # lowest and highest possible value",
        "weight = { bounds = [ , ] }  # lowest and highest possible value",
        "town = { categories = [] }  # every value that can occur",
        "code = { categories = [] }  # every value that can occur",
        "member = { boolean = true }",
        'when = { bounds = [ , ] }  # first and last possible date, as text: "1950-01-01"',
    ]
    assert "Bern" not in said


def test_filled_in_it_is_a_schema(tmp_path):
    said = draft(write(tmp_path, b"age,town,price\n"))
    filled = (
        said.replace('target = ""', 'target = "price"')
        .replace("classes = [ , ]", "target_bounds = [0, 10]")
        .replace("age = {  }", "age = { bounds = [0, 120] }")
        .replace("town = {  }", "town = { categories = ['Bern'], other = true }")
        .replace("price = {  }", "")
    )
    (tmp_path / "schema.toml").write_text(filled, encoding="utf-8")
    assert list(Schema.from_toml(tmp_path / "schema.toml").columns) == ["age", "town"]


@pytest.mark.parametrize("done", range(3))
def test_blanks_are_named(tmp_path, done):
    said = draft(write(tmp_path, b"age,price\n"))
    steps = [("classes = [ , ]", "classes = [0, 1]"), ('target = ""', 'target = "price"'), ("price = {  }", "")]
    for blank, filled in steps[:done]:
        said = said.replace(blank, filled)
    (tmp_path / "schema.toml").write_text(said, encoding="utf-8")
    complaint = ["line 5 has a blank", "target must be the name of a column", "column 'age': it says nothing"][done]
    with pytest.raises(ValueError, match=complaint):
        Schema.from_toml(tmp_path / "schema.toml")


def test_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        draft(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="cannot tell the type"):
        draft(write(tmp_path, b"a\n", "t.md"))
    with pytest.raises(ValueError, match="could not be read as CSV"):
        draft(write(tmp_path, b"\n1\n"))
    with pytest.raises(ValueError, match="could not be read as Parquet"):
        draft(write(tmp_path, b"a\n", "t.parquet"))
