"""Mistakes: one line on stderr, exit status 2, no noise drawn, no file touched."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from expost.noise.source import SecureSource
from tests.cli.helpers import BOUNDS, CLASSIFICATION, COLUMNS, QUICK, REGRESSION, call, table, write

PLAIN = ["--target", "spend", "--task", "regression", *COLUMNS]
CLASSES = ["--target", "churn", "--task", "classification", *COLUMNS, *BOUNDS]
TARGET = ["--target-bounds", "0", "1000"]

WRONG = {
    "no such column": (["--target", "price", "--task", "regression", *QUICK], "no target column 'price'"),
    "unknown feature": (
        ["--target", "spend", "--task", "regression", *QUICK, "--columns", "height"],
        "there are no column.*height",
    ),
    "no target risk": ([*REGRESSION], "how good must the model be"),
    "zero excess risk": ([*REGRESSION, "--excess-risk", "0"], "--excess-risk must be a positive"),
    "negative excess risk": ([*REGRESSION, "--excess-risk", "-1e-3"], "--excess-risk must be a positive"),
    "not a number": ([*REGRESSION, "--excess-risk", "small"], "--excess-risk: invalid float value: 'small'"),
    "unknown task": (["--target", "spend", "--task", "guess", *QUICK], "--task: invalid choice: 'guess'"),
    "unknown method": ([*REGRESSION, *QUICK, "--method", "guess"], "--method: invalid choice"),
    "unknown option": ([*REGRESSION, *QUICK, "--epsilon", "1"], "unrecognized arguments: --epsilon"),
    "abbreviated option": ([*REGRESSION, "--excess", "1"], "unrecognized arguments: --excess"),
    "no target": (["--task", "regression", *QUICK], "--schema is required, or --target and --task"),
    "no bounds": ([*PLAIN, *TARGET, *QUICK], "--bounds must be given"),
    "no target bounds": ([*PLAIN, *BOUNDS, *QUICK], "exactly one of --target-bound B .* and --target-bounds"),
    "bounds the wrong way": ([*PLAIN, *TARGET, *QUICK, "--bounds", "1", "-1e3"], "strictly below"),
    "a column without bounds": (
        [*PLAIN, *TARGET, *QUICK, "--column-bounds", "age", "0", "100"],
        "leave out column.*income",
    ),
    "bounds for an unknown column": (
        [*REGRESSION, *QUICK, "--column-bounds", "height", "0", "3"],
        "unknown column.*height",
    ),
    "bounds that are no numbers": (
        [*REGRESSION, *QUICK, "--column-bounds", "age", "young", "old"],
        "--column-bounds age young old",
    ),
    "bounds of a column twice": ([*REGRESSION, *QUICK, "--column-bounds", "age", "0", "6"], "age is stated more than"),
    "bounds twice": ([*PLAIN, *TARGET, *QUICK, "--bounds", "0", "1", "--bounds", "0", "7"], "--bounds is stated more"),
    "a goal twice": ([*REGRESSION, *QUICK, "--excess-risk=0.4"], "--excess-risk is stated more than once"),
    "with a constant and without": (
        [*REGRESSION, *QUICK, "--fit-intercept", "--no-fit-intercept"],
        "--fit-intercept or --no-fit-intercept is stated more than once",
    ),
    "no such bounds file": ([*PLAIN, *TARGET, *QUICK, "--bounds-file", "nowhere.json"], "nowhere.json"),
    "text as target": (["--target", "churn", "--task", "regression", *QUICK, *COLUMNS], "'churn' is not numeric"),
    "text as feature": (
        ["--target", "spend", "--task", "regression", *QUICK],
        "churn are not numeric",
    ),
    "a continuous target": (
        ["--target", "spend", "--task", "classification", *COLUMNS, *BOUNDS, *QUICK],
        "Unknown label type: continuous",
    ),
    "labels of another type": (
        ["--target", "sign", "--task", "classification", *COLUMNS, *BOUNDS, *QUICK, "--classes", "no", "yes"],
        "--classes no yes: the target column holds int64",
    ),
    "labels nobody has": ([*CLASSES, *QUICK, "--classes", "left", "stayed"], "in neither class"),
    "classes for regression": ([*REGRESSION, *QUICK, "--classes", "a", "b"], "--classes is for"),
    "target bounds for classes": ([*CLASSIFICATION, *QUICK, "--target-bound", "1"], "are for --task regression"),
    "covariance for classes": ([*CLASSIFICATION, *QUICK, "--perturbation", "covariance"], "use --perturbation output"),
    "spherical on moments": ([*REGRESSION, *QUICK, "--noise", "spherical"], "is for --perturbation output"),
    "out of reach": (
        [*REGRESSION, "--excess-risk", "1e-6", "--max-epsilon", "0.1"],
        "--max-epsilon = 0.1.*Nothing was spent",
    ),
    "fixed without a budget": ([*REGRESSION, "--method", "fixed"], "pass it"),
    "negative seed": ([*REGRESSION, *QUICK, "--seed", "-1"], "--seed must be a whole number, at least 0"),
}


@pytest.fixture
def no_noise(monkeypatch):
    """Whoever draws noise is stopped, which no mistake may come to: nothing may be spent."""
    drawn = []

    def draw(*_):
        drawn.append(True)
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(SecureSource, "words", draw)
    return drawn


def wrong(said, match):
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("expost")
    assert said.err.count("\n") == 1, said.err
    assert said.err.endswith("\n")
    assert re.search(match, said.err), said.err


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("arguments", "match"), WRONG.values(), ids=WRONG)
def test_mistakes_are_one_line_and_change_nothing(tmp_path, capsys, arguments, match):
    path, output = write(tmp_path), tmp_path / "release.json"
    output.write_text("an older one")
    wrong(call(capsys, "fit", path, *arguments, "--output", output, "--force"), match)
    assert output.read_text() == "an older one"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv", "release.json"]


def test_noise_is_drawn_where_nothing_is_wrong(tmp_path, capsys, no_noise):
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK)
    assert no_noise == [True]
    assert said.status == 3  # not what a mistake ends with
    assert "stopped (AssertionError)" in said.err


@pytest.mark.usefixtures("no_noise")
def test_files_that_cannot_be_read(tmp_path, capsys):
    wrong(call(capsys, "fit", tmp_path / "none.csv", *REGRESSION, *QUICK), "there is no file")
    wrong(call(capsys, "fit", tmp_path, *REGRESSION, *QUICK), "there is no file ending in .csv")
    text = tmp_path / "data.md"
    text.write_text("age\n1\n")
    wrong(call(capsys, "fit", text, *REGRESSION, *QUICK), "cannot tell the type")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and then nothing")
    wrong(call(capsys, "fit", broken, *REGRESSION, *QUICK), "could not be read as Parquet")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("age,income,spend\n1,2,3\n4,5\n")
    wrong(call(capsys, "fit", ragged, *REGRESSION, *QUICK), "could not be read as CSV")
    empty = tmp_path / "empty.csv"
    empty.write_text("age,income,spend\n")
    wrong(call(capsys, "fit", empty, *REGRESSION, *QUICK), "has no rows")
    named = Path(os.fsdecode(b"n\xff.csv"))
    named.write_bytes(write(tmp_path).read_bytes())
    for place in (named, Path("n*"), Path()):
        wrong(call(capsys, "fit", place, *REGRESSION, *QUICK), r"the name of n\\udcff.csv is not in UTF-8; rename it")
    wrong(call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--bounds-file", "."), "is a folder, not a file of")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    "text",
    [
        '{"age": "01", "income": [0, 1]}',
        '{"age": [0, 1], "age": [0, 9], "income": [0, 1]}',
        '{"age": [0, 1], "income": [false, true]}',
        '{"age": {"0": 1, "1": 2}, "income": [0, 1]}',
        '"age"',
        "not json",
        "[1, 2]",
        '{"age": 3}',
        '{"age": [0]}',
        '{"age": [0, "old"]}',
        '{"age": [0, 1, 2]}',
    ],
)
def test_bounds_files_of_another_form(tmp_path, capsys, text):
    file = tmp_path / "bounds.json"
    file.write_text(text)
    said = call(capsys, "fit", write(tmp_path), *PLAIN, *TARGET, *QUICK, "--bounds-file", file)
    wrong(said, r'bounds.json must hold \{"column": \[lower, upper\]')


@pytest.mark.usefixtures("no_noise")
def test_an_output_that_cannot_be_written_is_found_out_before_anything_is_spent(tmp_path, capsys):
    path = write(tmp_path)
    wrong(call(capsys, "fit", path, *REGRESSION, *QUICK, "--output", tmp_path / "no" / "x.json"), "does not exist")
    wrong(call(capsys, "fit", path, *REGRESSION, *QUICK, "--output", tmp_path), "is a folder")


@pytest.mark.usefixtures("no_noise")
def test_a_folder_without_permission(tmp_path, capsys, monkeypatch):
    # root, who may run this, can write anywhere
    monkeypatch.setattr("expost.cli.options.os.access", lambda _, mode: not mode & os.W_OK)
    wrong(
        call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--output", tmp_path / "x.json"), "cannot be written"
    )


def test_errors_do_not_quote_cells(tmp_path, capsys):
    data = table()
    spend = np.asarray(data["spend"]).astype(object)
    spend[7] = "12 Elm Street"
    path = write(tmp_path, "csv", data.set_column(2, "spend", pa.array([str(value) for value in spend])))
    said = call(capsys, "fit", path, *REGRESSION, *QUICK)
    assert said.status == 2
    assert "Elm" not in said.err


def test_no_command_and_an_unknown_one(capsys):
    wrong(call(capsys), "COMMAND")
    wrong(call(capsys, "guess"), "there is no command 'guess'")


def test_an_interrupted_run_says_so(tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.table.files.read_table", interrupt)
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK)
    assert said.status == 130
    assert said.err == "expost: interrupted; nothing was spent\n"
