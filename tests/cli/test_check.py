"""``expost check``: counts for the curator, and a status."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
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
    assert last == "The table fits the schema, and expost fit takes it; what is said above is worth a look first."
    assert numbers(said.out, "age") == [300, 0, 0, 0, 0]
    assert 0 < numbers(said.out, "income")[3] < 15  # outside its bounds, but few
    assert numbers(said.out, "sign") == [300, 0, 0, 0, 0]
    assert "classes of churn: no 150, yes 150; recall and precision are of yes\n" in said.out
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


def test_a_positive_label_that_is_the_more_frequent_one(tmp_path, capsys):
    text = SMALL.replace("target_bounds = [0, 1]", 'classes = ["no", "yes"]')
    data = csv(tmp_path, *(f"{i};Bern;{'no' if i % 5 == 0 else 'yes'}" for i in range(20)))
    said = call(capsys, "check", data, "--schema", schema(tmp_path, text))
    assert said.status == 0
    assert "recall and precision are of yes, though no is rarer: to look for that, list it last in classes" in said.out


def test_a_column_without_values(tmp_path, capsys):
    said = call(capsys, "check", csv(tmp_path, *[";Bern;1"] * 20), "--schema", schema(tmp_path, SMALL))
    assert said.status == 3
    assert "every cell of column 'age' is missing; check its name and which marks are listed as missing" in said.out


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


def test_counts_for_the_curator_alone(tmp_path, capsys):
    """Spellings are shown here, and nowhere in what a fit says."""
    data = csv(tmp_path, "1,5;Bern;0", f"{SECRET}x;{SECRET};1", "200;;", "3;Bern;0,5")
    said = call(capsys, "check", data, "--schema", schema(tmp_path, SMALL), "--decimal", ",")
    assert said.status == 3
    assert said.out.splitlines()[0].startswith("For the curator alone")
    assert f'1 cell is no number: "{SECRET}x" (1)' in said.out
    assert f'1 value came under other, 1 different: "{SECRET}" (1)' in said.out
    refused = call(capsys, "fit", data, "--schema", schema(tmp_path, SMALL), "--decimal", ",", "--r2", "0.5")
    assert refused.status == 2
    assert SECRET not in refused.out + refused.err
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


LOOKED = """
target = "y"
classes = ["no", "yes"]
[columns]
age = { bounds = [0, 100] }
income = { bounds = [0, 1000000] }
town = { categories = ["Bern", "Oslo", "Chur"], other = true }
late = { boolean = true }
score = { bounds = [0, 20] }
"""


def visits(folder, **changed):
    """Return a table in which something is to be said about every column, unless it is changed."""
    rng = np.random.default_rng(0)
    n = 2000
    y = rng.random(n) < 0.3
    columns = {
        "patient_id": np.arange(n) // 2,
        "age": rng.choice(["31", "47.5", "62", "?", "n/a"], n, p=[0.3, 0.3, 0.3, 0.07, 0.03]),
        "income": rng.uniform(0, 900, n),
        "town": rng.choice(["Bern", "Oslo", "Köln", "a\x1b[2J"], n, p=[0.5, 0.4, 0.07, 0.03]),
        "late": rng.choice(["ja", "nein"], n),
        "score": y * 10 + rng.uniform(0, 4, n),
        "y": np.where(y, "yes", "no"),
    }
    return write(folder, "csv", pa.table(columns | changed))


def below(out, said):
    """Return the line below one of the findings."""
    lines = out.splitlines()
    return lines[next(k for k, line in enumerate(lines) if line.startswith(f"  {said}")) + 1].strip()


def test_what_to_look_at_and_what_to_type(tmp_path, capsys):
    data = visits(tmp_path)
    out = call(capsys, "check", data, "--schema", schema(tmp_path, LOOKED)).out
    marks = below(out, 'age: 177 cells are no number: "?" (119), "n/a" (58)')
    assert marks == 'if they stand for no value, missing = ["", "?", "n/a"]'
    assert "\x1b" not in out
    others = below(out, 'town: 214 values came under other, 2 different: "Köln" (148), "a\\u001b[2J" (66)')
    assert others.startswith('if the code book lists them, town = { categories = ["Bern", "Oslo", "Chur", "Köln"')
    assert "take out the line" not in below(out, "income: 100.0% of its numbers lie within a hundredth of its bounds")
    assert 'transform = "log1p"' in below(out, "income")
    rare = below(out, 'town: 1 of 3 categories are nearly empty: "Chur" (0)')
    assert rare == 'if they are publicly known to be rare, town = { categories = ["Bern", "Oslo"], other = true }'
    assert below(out, "late: 2,000 cells are neither") == (
        'if these are its words, late = { categories = ["ja", "nein"] }'
    )
    assert below(out, "score: it repeats the target y") == "if not, take out the line score = { bounds = [0, 20] }"
    assert below(out, "patient_id: by its name") == (
        "if a person has several rows, --person patient_id --rows-per-person K"
    )
    # what was said to be typed is taken, and nothing is said about it then
    mended = LOOKED.replace("[columns]", 'missing = ["", "?", "n/a"]\n[columns]').replace(', "Chur"', "")
    mended = mended.replace("late = { boolean = true }", 'late = { categories = ["nein", "ja"] }')
    mended = mended.replace("score = { bounds = [0, 20] }\n", "").replace("[0, 1000000]", "[0, 1000]")
    asked = ["--person", "patient_id", "--rows-per-person", "2"]
    said = call(capsys, "check", data, "--schema", schema(tmp_path, mended), *asked)
    assert said.status == 0
    assert [line for line in said.out.splitlines() if line.startswith("  ") and ":" in line] == [
        '  town: 214 values came under other, 2 different: "Köln" (148), "a\\u001b[2J" (66)'
    ]
    assert said.out.splitlines()[-1].endswith("and expost fit takes it; what is said above is worth a look first.")


def test_as_json(tmp_path, capsys):
    said = call(capsys, "check", visits(tmp_path), "--schema", schema(tmp_path, LOOKED), "--json")
    found = json.loads(said.out)
    assert (said.status, found["fits"], found["rows"]) == (3, False, 2000)
    assert found["columns"][0]["unreadable"] == 177
    assert sum(found["target"]["classes"].values()) == 2000
    about = [(finding["about"], finding["column"]) for finding in found["findings"]]
    assert about == [
        ("unreadable", "age"),
        ("other", "town"),
        ("unreadable", "late"),
        ("bounds", "income"),
        ("categories", "town"),
        ("target", "score"),
        ("person", "patient_id"),
    ]


def test_columns_that_say_much_of_the_target_do_not_repeat_it(tmp_path, capsys):
    """Of numbers and of classes; one that repeats it but for a few rows in a thousand is found."""
    rng = np.random.default_rng(1)
    y = rng.uniform(0, 10, 4000)
    text = 'target = "y"\ntarget_bounds = [0, 10]\n[columns]\n'
    text += "near = { bounds = [0, 10] }\nsame = { bounds = [0, 20] }\ncode = { bounds = [0, 1] }\n"
    data = pa.table({"near": y + rng.normal(0, 1, 4000), "same": 20 - 2 * y, "code": rng.random(4000), "y": y})
    out = call(capsys, "check", write(tmp_path, "csv", data), "--schema", schema(tmp_path, text)).out
    assert [line.split(":")[0] for line in out.splitlines() if "repeats the target" in line] == ["  same"]
    labels = rng.integers(0, 2, 4000)
    wrong = {"few": 2, "many": 40}
    columns = {name: np.where(np.arange(4000) < k, 1 - labels, labels) for name, k in wrong.items()}
    text = 'target = "y"\nclasses = [0, 1]\n[columns]\nfew = { categories = [0, 1] }\nmany = { boolean = true }\n'
    data = write(tmp_path, "csv", pa.table({**columns, "y": labels}))
    out = call(capsys, "check", data, "--schema", schema(tmp_path, text)).out
    assert [line.split(":")[0] for line in out.splitlines() if "repeats the target" in line] == ["  few"]


def test_a_repeated_target_on_another_scale(tmp_path, capsys):
    """A tax that follows from a salary but for a thousandth of its spread, by logarithms of either and of none."""
    rng = np.random.default_rng(2)
    salary = np.exp(rng.normal(10.6, 0.45, 8000)).clip(3000, 300_000)
    tax, merit = 0.3 * salary + rng.normal(0, 50, 8000), salary * rng.normal(0.3, 0.03, 8000)
    data = write(tmp_path, "csv", pa.table({"tax": tax, "merit": merit, "salary": salary}))
    for scale in ("", 'target_transform = "log"\n'):
        for transform in ("", ', transform = "log1p"'):
            text = f'target = "salary"\ntarget_bounds = [3000, 300000]\n{scale}[columns]\n'
            text += "".join(f"{name} = {{ bounds = [0, 200000]{transform} }}\n" for name in ("tax", "merit"))
            out = call(capsys, "check", data, "--schema", schema(tmp_path, text)).out
            assert [line.split(":")[0] for line in out.splitlines() if "repeats the target" in line] == ["  tax"]


@pytest.mark.parametrize("mark", [",", "."])
def test_marks_between_thousands(tmp_path, capsys, mark):
    """Neither is read as a fraction without a word; fractions among large numbers are left alone."""
    salary = np.random.default_rng(3).integers(20_000, 90_000, 400)
    cells = [f"{value:,}".replace(",", mark) if i % 20 == 0 else f"{value}" for i, value in enumerate(salary)]
    data = csv(
        tmp_path,
        *(f"{i % 100};{value % 700}{mark}5;{cell}" for i, (value, cell) in enumerate(zip(salary, cells, strict=True))),
    )
    text = 'target = "y"\ntarget_bounds = [0, 100000]\n[columns]\nage = { bounds = [0, 100] }\n'
    text += "town = { bounds = [0, 1000] }\n"
    said = call(capsys, "check", data, "--schema", schema(tmp_path, text), "--decimal", mark)
    assert below(said.out, "y: 20 numbers are below a thousand").startswith("if that mark parts thousands")
    assert "town:" not in said.out
    other = ",.".replace(mark, "")
    said = call(capsys, "check", data, "--schema", schema(tmp_path, text), "--decimal", other)
    if mark == ",":
        assert below(said.out, "y: 20 cells are no number").startswith("if commas part thousands, write these cells")
    assert "if that is a decimal comma, --decimal" not in said.out


def test_misspelt_categories(tmp_path, capsys):
    towns = np.array(["Bern", "Oslo", "Oslo "])[np.arange(2000) % 3].astype(object)
    towns[::200], towns[1::200] = "bern ", "Osslo"
    for other, said in (("", "20 cells are not among"), (", other = true", "20 values came under other")):
        text = LOOKED.replace(', "Chur"], other = true', f"]{other}")
        out = call(capsys, "check", visits(tmp_path, town=towns), "--schema", schema(tmp_path, text)).out
        assert below(out, f"town: {said}") == (
            '"Osslo": did you mean "Oslo"? Then mend these cells; "bern": did you mean "Bern"? Then mend these cells'
        )


def test_few_spellings_are_told_apart(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("expost.table.findings.MOST", 10)
    data = visits(tmp_path, town=np.arange(2000).astype(str))
    out = call(capsys, "check", data, "--schema", schema(tmp_path, LOOKED)).out
    assert "2,000 values came under other, 10 or more different" in out
    assert "and 5 or more others" in out


@pytest.mark.parametrize("persons", [True, False])
def test_fit_says_which_column_is_a_persons(tmp_path, capsys, persons):
    """By the names of columns alone: rows of persons that are none change nothing."""
    asked = ["--schema", schema(tmp_path, LOOKED), "--error-rate", "0.4", "--seed", "1", "--on-invalid", "clip"]
    asked += ["--output", tmp_path / "model.json", "--force"]
    more = ["--person", "patient_id", "--rows-per-person", "2"] if persons else []
    said = call(capsys, "fit", visits(tmp_path), *asked, *more)
    assert ("expost: column patient_id: by its name it says whose a row is" in said.err) == (not persons)
    if not persons:
        other = call(capsys, "fit", visits(tmp_path, patient_id=np.arange(2000)), *asked)
        assert [line for line in other.err.splitlines() if "patient_id" in line] == [
            line for line in said.err.splitlines() if "patient_id" in line
        ]
