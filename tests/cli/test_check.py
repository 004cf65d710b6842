"""``expost check``: counts for the curator, and a status."""

from __future__ import annotations

import pytest

from tests.data.hostile import SECRET

from .helpers import call, write

SCHEMA = """
target = "churn"
classes = ["no", "yes"]
[columns]
age = { bounds = [0, 100] }
income = { bounds = [0, 150000], transform = "log1p" }
late = { boolean = true }
sign = { categories = [-1, 1] }
"""


def schema(folder, text=SCHEMA):
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return path


def numbers(out, name):
    line = next(line for line in out.splitlines() if line.startswith(name))
    return [int(text.replace(",", "")) for text in line.split()[2:]]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_what_fits(tmp_path, capsys, kind):
    said = call(capsys, "check", write(tmp_path, kind), "--schema", schema(tmp_path))
    assert said.err == ""
    assert said.status == 0
    first, *_, last = said.out.splitlines()
    assert first.startswith("For the curator alone")
    assert last == "The table fits the schema."
    assert numbers(said.out, "age") == [300, 0, 0, 0, 0]
    assert numbers(said.out, "income")[3] > 0  # outside its bounds
    assert numbers(said.out, "sign") == [300, 0, 0, 0, 0]
    assert "classes of churn: no 150, yes 150" in said.out
    assert "300 rows; 4 columns become 7" in said.out


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"yes"', '"Yes"', "the second of classes almost never occurs"),
        ("[0, 100]", "[0, 0.1]", "almost every number in column 'age' lies outside"),
        ("[-1, 1]", '["minus", "plus"]', "column 'sign' has almost no known category"),
        ("late = { boolean = true }", "churn2 = { boolean = true }", "there is no column 'churn2'"),
    ],
)
def test_what_nearly_never_fits(tmp_path, capsys, old, new, reason):
    said = call(capsys, "check", write(tmp_path), "--schema", schema(tmp_path, SCHEMA.replace(old, new)))
    assert said.status == 2
    assert reason in said.out + said.err
    assert "The table fits" not in said.out


def csv(folder, *lines, encoding="utf-8"):
    path = folder / "t.csv"
    path.write_bytes("\n".join(["age;town;y", *lines, ""]).encode(encoding))
    return path


SMALL = """
target = "y"
target_bounds = [0, 1]
[columns]
age = { bounds = [0, 100] }
town = { categories = ["Bern", "Zürich"], other = true }
"""


def test_counts_without_quoting(tmp_path, capsys):
    data = csv(tmp_path, "1,5;Bern;0", f"{SECRET}x;{SECRET};1", "200;;", "3;Bern;0,5")
    said = call(capsys, "check", data, "--schema", schema(tmp_path, SMALL), "--decimal", ",")
    assert said.status == 0
    assert SECRET not in said.out + said.err
    assert numbers(said.out, "age") == [3, 0, 1, 1, 0]
    assert numbers(said.out, "town") == [3, 1, 0, 0, 1]
    assert numbers(said.out, "y") == [3, 1, 0, 0, 0]
    assert (
        "Refused by expost fit without --on-invalid clip: cells that are not numbers in column(s) age (1)" in said.out
    )
    assert "The table fits" not in said.out


def test_encoding(tmp_path, capsys):
    data = csv(tmp_path, "1;Zürich;0", "2;Bern;1", encoding="latin-1")
    said = call(capsys, "check", data, "--schema", schema(tmp_path, SMALL))
    assert "1 cells hold bytes that are not in utf-8; state the --encoding" in said.out
    said = call(capsys, "check", data, "--schema", schema(tmp_path, SMALL), "--encoding", "latin-1")
    assert "--encoding" not in said.out
    assert numbers(said.out, "town") == [2, 0, 0, 0, 0]


def test_no_rows_and_no_schema(tmp_path, capsys):
    assert "has no rows" in call(capsys, "check", csv(tmp_path), "--schema", schema(tmp_path, SMALL)).err
    said = call(capsys, "check", csv(tmp_path), "--schema", tmp_path / "none.toml")
    assert (said.status, said.out) == (2, "")
