"""``expost predict``, ``export`` and ``report``: from a release to answers, without the rows it was made of."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

from expost import Release
from tests.cli.helpers import QUICK, REGRESSION, call, write
from tests.release.model_helpers import AMOUNT, LABELS, released

TEXT = "age;income;area;sector;town;heating;code;level;member;owner\n"
GOOD = "30,5;1000;20;public;Bern;gas;1;2;yes;no\n90;5;?;private;Rome;coal;7;3+;0;1\n"


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(TEXT + GOOD, encoding="utf-8")
    return path


def answers(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def frame(path) -> pd.DataFrame:
    return pd.read_csv(path, sep=";", decimal=",", dtype=object).replace({"30,5": "30.5"})


def wrong(said, *parts):
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("expost")
    assert said.err.count("\n") == 1
    for part in parts:
        assert part in said.err


def test_predictions_are_those_of_the_release(model, data, capsys):
    said = call(capsys, "predict", model, data, "--decimal", ",")
    assert (said.status, said.err) == (0, "")
    expected = released(LABELS).predict(frame(data)).tolist()
    assert [row["y"] for row in answers(said.out)] == expected
    both = call(capsys, "predict", model, data, "--decimal", ",", "--probabilities")
    chances = released(LABELS, largest_odds=4.0).predict_proba(frame(data))
    assert [float(row["P(yes)"]) for row in answers(both.out)] == chances[:, 1].tolist()
    assert list(answers(both.out)[0]) == ["y", "P(no)", "P(yes)"]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_every_kind_of_file(model, data, tmp_path, capsys, kind):
    path = tmp_path / f"other.{kind}"
    table = frame(data)
    table.to_parquet(path) if kind == "parquet" else table.to_csv(path, index=False)
    expected = call(capsys, "predict", model, data, "--decimal", ",").out
    assert call(capsys, "predict", model, path).out == expected


def test_a_file_is_written_but_not_over_another(model, data, tmp_path, capsys):
    output = tmp_path / "answers.csv"
    shown = call(capsys, "predict", model, data, "--decimal", ",").out
    said = call(capsys, "predict", model, data, "--decimal", ",", "--output", output)
    assert (said.status, said.out) == (0, f"wrote 2 predictions to {output}\n")
    assert output.read_text(encoding="utf-8") == shown
    output.write_text("mine")
    wrong(call(capsys, "predict", model, data, "--decimal", ",", "--output", output), "--force")
    assert output.read_text() == "mine"
    assert call(capsys, "predict", model, data, "--decimal", ",", "--output", output, "--force").status == 0
    assert output.read_text(encoding="utf-8") == shown


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("x;1;2;public;Bern;gas;1;1;yes;no\n", ["row 3", "'age'"]),
        ("1;1;2;elsewhere;Bern;gas;1;1;yes;no\n", ["row 3", "'sector'"]),
        ("1;1;2;public\n", ["row 3 (line 4)", "as many cells"]),
        ("\n", ["row 3 (line 4)"]),
    ],
    ids=["no number", "no category", "cells lacking", "an empty line"],
)
def test_a_row_that_cannot_be_read_is_named_or_clipped(model, data, capsys, line, parts):
    data.write_text(TEXT + GOOD + line, encoding="utf-8")
    wrong(call(capsys, "predict", model, data, "--decimal", ","), *parts, "--on-invalid clip")
    said = call(capsys, "predict", model, data, "--decimal", ",", "--on-invalid", "clip")
    assert (said.status, len(answers(said.out))) == (0, 3)


def test_what_is_read_is_not_written_over(model, data, capsys):
    before = model.read_bytes(), data.read_bytes()
    for used in (model, data):
        wrong(call(capsys, "predict", model, data, "--output", used, "--force"), "is read")
    wrong(call(capsys, "export", model, "--output", model, "--force"), "is read")
    wrong(call(capsys, "report", model, "--output", model, "--force"), "is read")
    for option in ("--output", "--report"):
        wrong(call(capsys, "fit", data, *REGRESSION, *QUICK, option, data, "--force"), "is read")
    assert (model.read_bytes(), data.read_bytes()) == before


def test_mistakes_are_one_line(model, data, tmp_path, capsys):
    wrong(call(capsys, "predict", tmp_path / "none.json", data), "there is no release")
    wrong(call(capsys, "predict", data, data), "cannot be used", "not a release")
    wrong(call(capsys, "predict", model, tmp_path / "none.csv"), "there is no file")
    refusal = tmp_path / "refusal.json"
    refusal.write_text(Release(status="refused", method="auto").to_json())
    wrong(call(capsys, "predict", refusal, data), "holds no model")
    wrong(call(capsys, "export", refusal, "--output", tmp_path / "m.joblib"), "holds no model")
    amount = tmp_path / "amount.json"
    amount.write_text(released(AMOUNT).to_json())
    wrong(call(capsys, "predict", amount, data, "--decimal", ",", "--probabilities"), "predicts numbers")
    assert not (tmp_path / "m.joblib").exists()


def test_a_model_without_a_schema(tmp_path, capsys):
    path = write(tmp_path)
    assert call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--output", tmp_path / "m.json").status == 0
    said = call(capsys, "predict", tmp_path / "m.json", path)
    predicted = np.array([float(row["spend"]) for row in answers(said.out)])
    assert predicted.shape == (300,)
    assert ((predicted >= 0) & (predicted <= 1000)).all()


def test_what_is_exported_scores_alike(model, data, tmp_path, capsys):
    output = tmp_path / "model.joblib"
    assert call(capsys, "export", model, "--output", output).status == 0
    table = frame(data)
    assert joblib.load(output).predict(table).tolist() == released(LABELS).predict(table).tolist()
    wrong(call(capsys, "export", model, "--output", output), "--force")
    assert call(capsys, "export", model, "--output", output, "--force").status == 0


def test_a_report_beside_the_release(model, capsys, tmp_path):
    said = call(capsys, "report", model)
    page = tmp_path / "model.html"
    assert (said.status, said.err) == (0, "")
    assert str(page) in said.out
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    wrong(call(capsys, "report", model), "--force")
    assert call(capsys, "report", model, "--output", tmp_path / "other.html").status == 0
    assert (tmp_path / "other.html").read_bytes() == page.read_bytes()
    wrong(call(capsys, "report", page, "--output", tmp_path / "third.html"), "not a release")


def test_fit_saves_reports_and_says_what_is_next(tmp_path, capsys, monkeypatch):
    path = write(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    first = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--report", "r.html")
    assert "saved to data-spend.json\nreport in r.html\nnext: expost predict data-spend.json DATA" in first.out
    second = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 2)
    assert "saved to data-spend-2.json" in second.out
    names = sorted(file.name for file in (tmp_path / "work").iterdir())
    assert names == ["data-spend-2.json", "data-spend.json", "r.html"]
    assert json.loads((tmp_path / "work" / "data-spend.json").read_text())["target"] == "spend"
    wrong(call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--report", "r.html"), "--report", "--force")
    same = call(capsys, "fit", path, *REGRESSION, *QUICK, "--report", "x.html", "--output", "x.html")
    wrong(same, "different files")
    call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--json")
    assert len(list((tmp_path / "work").iterdir())) == 3


def test_a_report_that_fails_does_not_lose_the_release(tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr("expost.release.page.report", broken)
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--seed", 1, "--report", tmp_path / "r.html")
    assert said.status == 1
    assert "a bug" in said.err
    assert "the release is in data-spend.json" in said.err


def test_a_fingerprint_of_the_data_only_if_asked_and_said_so(tmp_path, capsys):
    path = write(tmp_path)
    plain = Release.from_json(call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--json").out)
    asked = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--json", "--fingerprint-data")
    release = Release.from_json(asked.out)
    assert plain.data_fingerprint is None
    assert len(release.data_fingerprint) == 64
    assert any("data_fingerprint" in text for text in release.not_covered)
    assert release.with_details(data_fingerprint=None, not_covered=plain.not_covered) == plain
    said = call(capsys, "fit", tmp_path, *REGRESSION, *QUICK, "--seed", 1, "--fingerprint-data")
    wrong(said, "--fingerprint-data takes one file")


@pytest.mark.parametrize("command", ["predict", "export", "report", "fit"])
def test_help_has_an_example_and_exit_codes(capsys, command):
    said = call(capsys, command, "--help")
    text = " ".join(said.out.split())
    assert said.status == 0
    assert f"examples: expost {command}" in text
    assert "exit status: 0 " in text


def test_cells_that_are_none_are_kept_as_they_were_written(model, tmp_path, capsys):
    """A line that is no object has no cells, and nothing is written for them; a list is one in JSON."""
    data = tmp_path / "ids.jsonl"
    data.write_text('{"id": 7}\nno object\n{"id": ["a", null]}\n{"id": {"b": "\\ud800"}}\n', encoding="utf-8")
    said = call(capsys, "predict", model, data, "--on-invalid", "clip", "--keep", "id")
    assert said.status == 0, said.err
    kept = [row["id"] for row in answers(said.out)]
    assert kept == ["7", "", '["a", null]', '{"b": "\\ud800"}']


def test_columns_kept_beside_the_predictions(model, tmp_path, capsys):
    data, out = tmp_path / "ids.csv", tmp_path / "answers.csv"
    first, second = GOOD.splitlines()
    data.write_text(f"id;note;{TEXT}007;a, b;{first}\n8;;{second}\n", encoding="utf-8")
    keep = ["--decimal", ",", "--keep", "id", "note", "age"]
    said = call(capsys, "predict", model, data, *keep, "--output", out)
    assert (said.status, said.err) == (0, "")
    assert said.out == f"wrote 2 predictions to {out}\n"
    rows = answers(out.read_text(encoding="utf-8"))
    assert list(rows[0]) == ["id", "note", "age", "y"]
    assert [(row["id"], row["note"], row["age"]) for row in rows] == [("007", "a, b", "30,5"), ("8", "", "90")]
    plain = call(capsys, "predict", model, data, "--decimal", ",")
    assert [row["y"] for row in rows] == [row["y"] for row in answers(plain.out)]
    wrong(call(capsys, "predict", model, data, "--decimal", ",", "--keep", "idd"), "no column 'idd'", "mean 'id'?")
    data.write_text(f"y;{TEXT}no;{first}\n", encoding="utf-8")
    wrong(call(capsys, "predict", model, data, "--decimal", ",", "--keep", "y"), "that is a column of the predictions")
    chance = f"P({LABELS.classes[0]})"
    data.write_text(f"{chance};{TEXT}mine;{first}\n", encoding="utf-8")
    both = ["--decimal", ",", "--probabilities", "--keep", chance]
    wrong(call(capsys, "predict", model, data, *both), "that is a column of the predictions")


KILLED = """
import os, sys
from expost.cli import main

name = sys.argv.pop()
usual = getattr(os, name)
setattr(os, name, lambda *given, **named: (usual(*given, **named), os.kill(os.getpid(), 9)))
main(sys.argv[1:])
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="elsewhere a file that is being written has a name")
@pytest.mark.parametrize(("after", "force"), [("fsync", []), ("link", []), ("link", ["--force"])])
def test_a_run_that_is_killed_leaves_nothing_but_a_whole_file(model, data, tmp_path, capsys, after, force):
    out, before = tmp_path / "answers.csv", set(tmp_path.iterdir())
    predict = ["predict", str(model), str(data), "--decimal", ","]
    arguments = [*predict, "--output", str(out), *force, after]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr
    assert set(tmp_path.iterdir()) == before | ({out} if after == "link" else set())
    if after == "link":
        assert out.read_text(encoding="utf-8") == call(capsys, *predict).out


def test_a_file_that_is_written_over_leaves_nothing_beside_it(model, data, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    out.write_text("mine", encoding="utf-8")
    before = set(tmp_path.iterdir())
    said = call(capsys, "predict", model, data, "--decimal", ",", "--output", out, "--force")
    assert said.status == 0
    assert out.read_text(encoding="utf-8") != "mine"
    assert set(tmp_path.iterdir()) == before


def test_a_reader_that_has_seen_enough(model, data):
    done = unread(["predict", str(model), str(data), "--decimal", ","])
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("saved", [True, False])
def test_a_release_that_is_saved_is_not_printed_again(tmp_path, saved):
    output = ["--output", str(tmp_path / "release.json")] if saved else []
    done = unread(["fit", str(write(tmp_path)), *REGRESSION, *QUICK, "--seed", "1", "--json", *output])
    *above, last = done.stderr.decode().splitlines()  # above may be how long it took
    if saved:
        assert done.returncode == 0
        assert last == f"expost: standard output failed; the release is in {output[1]}"
        assert "{" not in "".join(above)
    else:
        assert done.returncode == 1
        assert Release.from_json("\n".join(above[above.index("{") :])).status == "released"


def unread(arguments):
    """Run a command whose output nobody reads any more, as with ``| head`` once that has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "expost.cli", *arguments]
    try:
        return subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    finally:
        os.close(writing)
