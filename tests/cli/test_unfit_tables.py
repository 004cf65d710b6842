"""Tables that do not fit: what is wrong, what to do and what clipping would do, before anything is spent."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release
from expost.exceptions import InvalidRows
from tests.cli.helpers import call

WARDS = ["Chirurgie", "Innere", "Orthopädie"]
LABELS = """
target = "back"
classes = ["no", "yes"]
[columns]
age = { bounds = [0, 110] }
crp = { bounds = [0, 5] }
ward = { categories = ["Chirurgie", "Innere", "Orthopädie"], other = true }
"""
NUMBER = LABELS.replace('"back"', '"crp"').replace('classes = ["no", "yes"]', "target_bounds = [0, 5]")
NUMBER = NUMBER.replace("crp = { bounds = [0, 5] }\n", "")


def written(folder, *, encoding="utf-8", decimal=".", third=False):
    """Return a table of 2,000 stays, and leave schemas beside it."""
    rng = np.random.default_rng(0)
    age, ward, crp = rng.integers(18, 95, 2000), rng.integers(0, 3, 2000), rng.uniform(0, 5, 2000)
    back = np.where(age + 20 * ward + rng.normal(0, 8, 2000) > 75, "yes", "no").astype(object)
    if third:
        back[::50] = "unknown"
    lines = [
        f"{i};{age[i]};{WARDS[ward[i]]};{f'{crp[i]:.2f}'.replace('.', decimal)};{back[i]}" for i in range(len(age))
    ]
    path = folder / "stays.csv"
    path.write_bytes("\n".join(["stay;age;ward;crp;back", *lines, ""]).encode(encoding))
    (folder / "labels.toml").write_text(LABELS, encoding="utf-8")
    (folder / "number.toml").write_text(NUMBER, encoding="utf-8")
    return path


def fit(capsys, data, *options, schema="labels"):
    goal = ["--error-rate", "0.25"] if schema == "labels" else ["--r2", "0.1"]
    return call(capsys, "fit", data, "--schema", data.parent / f"{schema}.toml", *goal, *options)


def test_another_encoding_is_refused_before_anything_is_spent(tmp_path, capsys, no_noise):
    data = written(tmp_path, encoding="latin-1")
    said = fit(capsys, data)
    assert (said.status, said.out) == (2, "")
    assert "bytes that are not in the encoding the file is read with in column(s) ward (" in said.err
    assert "Read the file with --encoding latin-1" in said.err
    assert "clip" not in said.err  # which would make the ward another one, and say nothing
    with pytest.raises(InvalidRows, match="encoding='latin-1'"):
        AccuracyFirstModel(tmp_path / "labels.toml", ErrorRate(0.25)).fit(data)


def test_the_same_rows_in_either_encoding(tmp_path, capsys):
    found = []
    for encoding in ("utf-8", "latin-1"):
        said = fit(capsys, written(tmp_path, encoding=encoding), "--encoding", encoding, "--seed", "1", "--json")
        assert said.status == 0, said.err
        found.append(Release.from_json(said.out).hypothesis)
    assert found[0] == found[1]


def test_predictions_of_another_encoding(tmp_path, capsys):
    fit(capsys, written(tmp_path), "--seed", "1", "--output", tmp_path / "model.json")
    data = written(tmp_path, encoding="latin-1")
    said = call(capsys, "predict", tmp_path / "model.json", data)
    assert (said.status, said.out) == (2, "")
    assert "--encoding latin-1" in said.err
    assert call(capsys, "predict", tmp_path / "model.json", data, "--encoding", "latin-1").status == 0


def test_a_third_label_is_not_called_missing(tmp_path, capsys, no_noise):
    said = fit(capsys, written(tmp_path, third=True))
    assert said.status == 2
    assert "labels that are neither class in the target back (40)" in said.err
    assert "Remove these rows, or merge labels until two are left and state those as classes" in said.err
    assert "--on-invalid clip would count rows with another label, or none, as the first class" in said.err
    assert "as missing" not in said.err


@pytest.mark.parametrize("third", [False, True])
def test_what_clipping_does_to_labels_is_said_whatever_they_are(tmp_path, capsys, third):
    sentence = "labels outside the classes, and missing ones, count as the first class"
    said = fit(capsys, written(tmp_path, third=third), "--on-invalid", "clip", "--seed", "1", "--output", "r.json")
    assert said.status == 0, said.err
    assert sentence in " ".join(said.out.split())
    assert sentence in Release.from_json(Path("r.json").read_text(encoding="utf-8")).claims
    plain = fit(capsys, written(tmp_path), "--seed", "1")
    assert sentence not in " ".join(plain.out.split())


@pytest.mark.parametrize("schema", ["labels", "number"])
def test_decimal_commas(tmp_path, capsys, schema):
    data = written(tmp_path, decimal=",")
    said = fit(capsys, data, schema=schema)
    assert said.status == 2
    assert "Pass --decimal , if numbers have a decimal comma" in said.err
    assert said.err.index("--decimal ,") < said.err.index("--on-invalid clip")
    if schema == "labels":
        assert fit(capsys, data, "--decimal", ",", "--seed", "1", "--output", "m.json").status == 0
        said = call(capsys, "predict", "m.json", data)
        assert (said.status, said.out) == (2, "")
        assert said.err.index("--decimal ,") < said.err.index("--on-invalid clip")


def test_one_column_with_decimal_commas(tmp_path, capsys):
    """What check says to type gives the release of the same numbers with points, and other columns stay as they are."""
    plain, commas = written(tmp_path).rename(tmp_path / "plain.csv"), tmp_path / "commas.csv"
    lines = plain.read_text(encoding="utf-8").replace("\n", ";0.5\n").replace("back;0.5", "back;y", 1)
    plain.write_text(lines, encoding="utf-8")
    commas.write_text(re.sub(r"\.(?=\d\d;)", ",", lines), encoding="utf-8")
    text = LABELS + "y = { bounds = [0, 1] }\n"
    (tmp_path / "labels.toml").write_text(text, encoding="utf-8")
    said = call(capsys, "check", commas, "--schema", tmp_path / "labels.toml")
    line = 'crp = { bounds = [0, 5], decimal = "," }'
    assert f"if that is a decimal comma, {line}; or" in said.out
    wanted = fit(capsys, plain, "--seed", "1", "--output", "plain.json")
    assert wanted.status == 0, wanted.err
    (tmp_path / "labels.toml").write_text(text.replace("crp = { bounds = [0, 5] }", line), encoding="utf-8")
    assert call(capsys, "check", commas, "--schema", tmp_path / "labels.toml").status == 0
    assert fit(capsys, commas, "--seed", "1", "--output", "commas.json").status == 0
    first, second = (
        Release.from_json(Path(f"{name}.json").read_text(encoding="utf-8")) for name in ("plain", "commas")
    )
    assert first.hypothesis == second.hypothesis
    assert first.preparation["schema"] != second.preparation["schema"]
    assert call(capsys, "predict", "commas.json", commas).out == call(capsys, "predict", "plain.json", plain).out
    # read with commas throughout, it is the other columns that differ
    (tmp_path / "labels.toml").write_text(text, encoding="utf-8")
    said = call(capsys, "check", commas, "--schema", tmp_path / "labels.toml", "--decimal", ",")
    assert 'if that is a decimal point, y = { bounds = [0, 1], decimal = "." }' in said.out


def test_decimal_commas_without_a_schema(tmp_path, capsys):
    """A small file is read as stated too, and its release is that of the same numbers with points."""
    target = ["--target", "crp", "--task", "regression", "--target-bounds", "0", "5"]
    plain = [*target, "--columns", "age", "--bounds", "0", "110", "--excess-risk", "0.4", "--seed", "1"]
    found = []
    for decimal in (".", ","):
        data = written(tmp_path, decimal=decimal)
        options = [
            "--separator",
            ";",
            "--decimal",
            decimal,
            "--json",
            "--output",
            f"{ord(decimal)}",
        ]
        said = call(capsys, "fit", data, *plain, *options)
        assert said.status == 0, said.err
        found.append(Release.from_json(said.out).hypothesis)
    assert found[0] == found[1]
    rows = tmp_path / "rows.csv"
    rows.write_text("age;x\n31,5;1\n", encoding="utf-8")
    said = call(capsys, "predict", f"{ord('.')}", rows)
    assert (said.status, said.out) == (2, "")
    assert said.err.index("pass --decimal ,") < said.err.index("--on-invalid clip")
    assert call(capsys, "predict", f"{ord('.')}", rows, "--decimal", ",").status == 0


WRITTEN = {"a date": "2020-01-31", "a per cent": "12 %", "thousands": '"1,234.5"'}


@pytest.mark.parametrize("cell", WRITTEN.values(), ids=WRITTEN)
def test_numbers_that_are_not_written_as_such_get_a_hint(tmp_path, capsys, cell):
    """The same words whatever the cell is, which is shown to the curator by check and quoted nowhere else."""
    path, schema = tmp_path / "t.csv", tmp_path / "t.toml"
    path.write_text("x,y\n" + f"{cell},1\n0.5,0\n" * 30, encoding="utf-8")
    schema.write_text('target = "y"\nclasses = [0, 1]\n[columns]\nx = { bounds = [0, 1] }\n', encoding="utf-8")
    array = ("--target", "y", "--task", "classification", "--classes", 0, 1, "--bounds", 0, 1, "--excess-risk", 0.5)
    checked = call(capsys, "check", path, "--schema", schema)
    fitted = call(capsys, "fit", path, "--schema", schema, "--error-rate", 0.3)
    plain = call(capsys, "fit", path, *array)
    assert (checked.status, fitted.status, plain.status) == (3, 2, 2)
    for said in (checked.out, fitted.err, plain.err):
        assert "1234.5 and not 1,234.5, 12 and not 12 %; for a column of dates state bounds" in said
        assert (cell.strip('"') in said.replace("1,234.5, 12 and not 12 %", "")) == (said is checked.out)
    assert "expost init drafts one" in plain.err
