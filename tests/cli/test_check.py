"""``expost check``: counts for the curator, and a status."""

from __future__ import annotations

import pytest

from tests.table.hostile import SECRET

from .helpers import call, write

SCHEMA = """
target = "churn"
classes = ["no", "yes"]
[columns]
age = { bounds = [0, 100] }
income = { bounds = [0, 195000], transform = "log1p" }
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
    assert 0 < numbers(said.out, "income")[3] < 15  # outside its bounds, but few
    assert numbers(said.out, "sign") == [300, 0, 0, 0, 0]
    assert "classes of churn: no 150, yes 150" in said.out
    assert "300 rows; 4 columns become 7" in said.out


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"yes"', '"Yes"', "the second of classes almost never occurs"),
        ("[0, 100]", "[0, 0.1]", "almost every number in column 'age' lies outside"),
        ("[-1, 1]", '["minus", "plus"]', "column 'sign' has almost no known category"),
    ],
)
def test_what_nearly_never_fits(tmp_path, capsys, old, new, reason):
    said = call(capsys, "check", write(tmp_path), "--schema", schema(tmp_path, SCHEMA.replace(old, new)))
    assert said.status == 3
    assert reason in said.out
    assert said.out.splitlines()[-1] == "The table does not fit the schema: expost fit refuses it."


def test_a_column_that_is_not_there(tmp_path, capsys):
    text = SCHEMA.replace("late = { boolean = true }", "churn2 = { boolean = true }")
    said = call(capsys, "check", write(tmp_path), "--schema", schema(tmp_path, text))
    assert (said.status, said.out) == (2, "")
    assert "there is no column 'churn2'" in said.err


TARGET = 'target = "spend"\ntarget_bounds = [0, 200]\n[columns]\nage = { bounds = [0, 100] }\n'


@pytest.mark.parametrize(
    ("text", "column"),
    [(SCHEMA.replace("[0, 100]", "[0, 60]"), "age"), (TARGET, "spend")],
)
def test_bounds_that_cut_off_much(tmp_path, capsys, text, column):
    said = call(capsys, "check", write(tmp_path), "--schema", schema(tmp_path, text))
    assert said.status == 3
    outside = numbers(said.out, column)[3]
    assert 15 < outside < 285
    assert f"{outside} of 300 numbers in column '{column}' lie outside its bounds" in said.out
    assert "state wider bounds from what is publicly known, not from these rows" in said.out
    assert said.out.splitlines()[-1].startswith("The table fits the schema badly: expost fit takes it")


@pytest.mark.parametrize("label", ["maybe", ""])
def test_targets_in_neither_class(tmp_path, capsys, label):
    lines = [f"{i};Bern;{('no', 'yes')[i % 2]}" for i in range(20)]
    text = SMALL.replace("target_bounds = [0, 1]", 'classes = ["no", "yes"]')
    said = call(capsys, "check", csv(tmp_path, *lines, f"3;Bern;{label}"), "--schema", schema(tmp_path, text))
    assert said.status == 3
    assert "Remove these rows, or merge labels until two are left and state those as classes" in said.out
    assert "--on-invalid clip would count rows with another label, or none, as the first class" in said.out
    assert said.out.splitlines()[-1] == "The table does not fit the schema: expost fit refuses it."


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
    assert said.status == 3
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
    assert said.status == 3
    assert "bytes that are not in the encoding the file is read with in column(s) town (1)" in said.out
    assert "Read the file with --encoding latin-1, or whichever it is in" in said.out
    assert "The table fits" not in said.out
    said = call(capsys, "check", data, "--schema", schema(tmp_path, SMALL), "--encoding", "latin-1")
    assert "--encoding" not in said.out
    assert (said.status, said.out.splitlines()[-1]) == (0, "The table fits the schema.")
    assert numbers(said.out, "town") == [2, 0, 0, 0, 0]


def test_encoding_of_persons(tmp_path, capsys):
    text = SMALL.replace("[columns]", 'person = "name"\nrows_per_person = 1\n[columns]')
    data = tmp_path / "t.csv"
    data.write_bytes("age;town;y;name\n1;Bern;0;Jörg\n2;Bern;1;Jürg\n".encode("latin-1"))
    said = call(capsys, "check", data, "--schema", schema(tmp_path, text))
    assert said.status == 3
    assert "2 cells of name hold bytes that are not in the encoding" in said.out
    said = call(capsys, "fit", data, "--schema", schema(tmp_path, text), "--r2", "0.5")
    assert (said.status, said.out) == (2, "")
    assert "in name (2), so persons may be taken for one another" in said.err


def test_no_rows_and_no_schema(tmp_path, capsys):
    assert "has no rows" in call(capsys, "check", csv(tmp_path), "--schema", schema(tmp_path, SMALL)).err
    said = call(capsys, "check", csv(tmp_path), "--schema", tmp_path / "none.toml")
    assert (said.status, said.out) == (2, "")
