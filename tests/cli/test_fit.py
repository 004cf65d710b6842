"""``expost fit``: what it reads, prints and writes when all goes well, and when the search refuses."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from expost import AccuracyFirstRidge, Release
from expost.release.words import WIDTH
from expost.shown import up
from tests.cli.helpers import BOUNDS, CLASSIFICATION, COLUMNS, QUICK, REGRESSION, call, table, write

# the test is paid for and leaves almost nothing to the noise: the hypotheses are noise and are refused
HOPELESS = ["--excess-risk", "0.05", "--regularization", "1", "--method", "above_threshold"]
HOPELESS += ["--calibration", "theorem", "--n-levels", "8"]


def hopeless(capsys, path, *more):
    paid = json.loads(
        call(capsys, "fit", path, *REGRESSION, *HOPELESS, "--max-epsilon", "inf", "--seed", 1, "--json").out
    )["epsilon_test"]
    return call(capsys, "fit", path, *REGRESSION, *HOPELESS, "--max-epsilon", paid + 1e-6, "--seed", 1, *more)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "pq"])
def test_every_kind_of_file_gives_the_same_release(tmp_path, capsys, kind):
    said = call(capsys, "fit", write(tmp_path, kind), *REGRESSION, *QUICK, "--seed", 3, "--json")
    assert said.status == 0
    assert said.err == ""
    release = Release.from_json(said.out)
    data = table()
    X = np.column_stack([data["age"], data["income"]])
    model = AccuracyFirstRidge(
        excess_risk=0.45,
        regularization=1.0,
        bounds=([0, 0], [100, 2e5]),
        target_bounds=(0, 1000),
        calibration="theorem",
        n_levels=8,
        random_state=3,
    ).fit(X, np.asarray(data["spend"]))
    assert release.hypothesis == model.release_.hypothesis
    assert release.epsilon == model.release_.epsilon
    assert release.parameters["columns"] == ("age", "income")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_classification_as_json(tmp_path, capsys, kind):
    said = call(capsys, "fit", write(tmp_path, kind), *CLASSIFICATION, *QUICK, "--json")
    assert said.status == 0
    assert said.err == ""
    release = Release.from_json(said.out)
    assert release.status == "released"
    assert release.secure
    assert release.perturbation == "output"
    assert release.parameters["classes"] == ("no", "yes")
    assert release.to_json() + "\n" == said.out


def test_the_summary_says_what_a_person_wants_to_know(tmp_path, capsys):
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK[:-1], 30, "--fit-intercept", "--verbose")
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("spend from 2 columns, 300 rows  ")
    assert lines[0].endswith("  released")
    for text in (
        "ε = ",
        " at most (one row replaced)",
        "a suspicion of 1 % about one row can become at most ",
        "with probability at least 0.9",
        "clipped, rounded",
        "cryptographic source",
        "in squared target units",
        "coefficients in your units",
        "age",
        "income",
        "(constant)",
    ):
        assert text in said.out
    assert "SEEDED" not in said.out
    simulated = [*REGRESSION, *QUICK, "--seed", 1]
    assert "SEEDED" in call(capsys, "fit", write(tmp_path), *simulated, "--verbose").out
    brief = call(capsys, "fit", write(tmp_path), *simulated).out
    assert "SIMULATION" in brief  # whatever else is left out
    assert "with probability at least 0.9" in brief  # the only place that says what is promised of an excess risk
    assert "coefficients" not in brief
    assert len(brief.splitlines()) <= 14


def test_long_lines_are_folded_and_aligned(tmp_path, capsys):
    lines = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--seed", 1).out.splitlines()
    assert max(map(len, lines)) <= WIDTH
    promise = next(i for i, line in enumerate(lines) if line.startswith("  promise "))
    start = lines[promise].index("with probability")
    assert lines[promise][start - 2 : start] == "  "
    assert lines[promise + 1][:start] == " " * start  # the promise does not fit on one line
    assert lines[promise + 1][start] != " "


def test_a_long_name_is_not_broken():
    name = "column_" * 20
    release = Release(
        status="released", method="fixed", parameters={"columns": [name], "coef": [1.0], "intercept": 0.0}
    )
    assert name in str(release)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(0, 1e12))
def test_privacy_losses_are_rounded_up(value):
    assert value <= float(up(value)) <= value * (1.001 + 1e-9) + 1e-300


def test_an_unbounded_cost_is_put_into_words():
    text = str(Release(status="released", method="fixed"))
    assert "inf" not in text
    assert "had no bound" in text


def test_the_release_is_written_as_well(tmp_path, capsys):
    path, output = write(tmp_path), tmp_path / "release.json"
    output.write_text("an older one")
    kept = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--output", output)
    assert (kept.status, output.read_text()) == (2, "an older one")
    assert "--force" in kept.err
    said = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--output", output, "--force")
    assert said.status == 0
    assert f"saved to {output}" in said.out
    release = Release.from_json(output.read_text(encoding="utf-8"))
    assert release.parameters["columns"] == ("age", "income")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv", "release.json"]
    both = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--output", output, "--force", "--json")
    assert both.out == output.read_text(encoding="utf-8")


def test_the_written_file_has_ordinary_permissions(tmp_path, capsys):
    output = tmp_path / "release.json"
    before = os.umask(0o022)
    try:
        call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--seed", 1, "--output", output)
    finally:
        os.umask(before)
    assert stat.S_IMODE(output.stat().st_mode) == 0o644


def test_a_file_that_cannot_be_written_after_all_does_not_lose_the_release(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    path, output = write(tmp_path), tmp_path / "release.json"
    monkeypatch.setattr("expost.whole.os.fsync", full)
    said = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--json", "--output", output)
    assert said.status == 1  # neither "released" nor "nothing spent"
    assert Release.from_json(said.out).status == "released"
    assert "no space left" in said.err
    assert "it was paid for" in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


def test_a_refusal_exits_with_3_and_its_cost(tmp_path, capsys):
    said = hopeless(capsys, write(tmp_path))
    assert said.status == 3
    assert "expost: refused. Ask for less accuracy" in said.err
    assert "warning: epsilon" in said.err  # a dear refusal says so
    assert "refused: no level met the target" in said.out
    assert " privacy  " in said.out
    assert "coefficients" not in said.out


def test_a_refusal_as_json_and_in_a_file(tmp_path, capsys):
    output = tmp_path / "refusal.json"
    said = hopeless(capsys, write(tmp_path), "--json", "--output", output)
    assert said.status == 3
    release = Release.from_json(said.out)
    assert release.status == "refused"
    assert release.epsilon > 0
    assert release.hypothesis is None
    assert Release.from_json((tmp_path / "refusal-refused.json").read_text(encoding="utf-8")) == release
    assert not output.exists()


def test_inferred_classes_are_a_line_on_stderr_and_in_the_release(tmp_path, capsys):
    arguments = ["--target", "churn", "--task", "classification", *COLUMNS, *BOUNDS]
    said = call(capsys, "fit", write(tmp_path), *arguments, *QUICK, "--json")
    assert said.status == 0
    assert said.err.startswith("expost: warning: class labels were read off the data")
    assert said.err.count("\n") == 1
    assert any("class labels were read off" in text for text in Release.from_json(said.out).not_covered)


@pytest.mark.parametrize(
    ("target", "classes", "kept"),
    [
        ("churn", ["yes", "no"], ("yes", "no")),
        ("late", ["false", "true"], (False, True)),
        ("late", ["0", "1"], (False, True)),
        ("sign", ["-1", "1"], (-1, 1)),
    ],
)
def test_labels_take_the_type_of_the_column(tmp_path, capsys, target, classes, kept):
    arguments = ["--target", target, "--task", "classification", *COLUMNS, *BOUNDS, "--classes", *classes]
    said = call(capsys, "fit", write(tmp_path, "parquet"), *arguments, *QUICK, "--json")
    assert said.status == 0, said.err
    assert Release.from_json(said.out).parameters["classes"] == kept


def test_the_most_specific_bounds_win(tmp_path, capsys):
    file = tmp_path / "bounds.json"
    file.write_text(json.dumps({"age": [1, 99], "income": [-1e6, 1e6]}))
    arguments = [
        "--target",
        "spend",
        "--task",
        "regression",
        "--target-bound",
        "1000",
        *COLUMNS,
        "--json",
        "--seed",
        "1",
    ]
    ways = ["--bounds", "-1e7", "1e7", "--bounds-file", file, "--column-bounds", "income", "-2.5e5", "2.5e5"]
    said = call(capsys, "fit", write(tmp_path), *arguments, *QUICK, *ways)
    assert said.status == 0, said.err
    preparation = Release.from_json(said.out).preparation
    assert preparation["bounds"]["lower"] == (1.0, -2.5e5)
    assert preparation["bounds"]["upper"] == (99.0, 2.5e5)
    assert preparation["target"] == (-1000.0, 1000.0)
    everywhere = call(capsys, "fit", write(tmp_path), *arguments, *QUICK, "--bounds", "-1e7", "1e7")
    assert Release.from_json(everywhere.out).preparation["bounds"]["lower"] == (-1e7, -1e7)


def test_the_other_options_arrive(tmp_path, capsys):
    options = [
        *("--method", "doubling"),
        *("--perturbation", "output", "--noise", "spherical"),
        *("--failure-probability", "0.2"),
        *("--feature-bound", "1.5"),
        *("--radius", "0.25"),
        *("--on-invalid", "clip"),
        *("--fit-intercept", "--intercept-weight", "0.5"),
    ]
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, *options, "--json", "--seed", 0)
    assert said.status == 0, said.err
    release = Release.from_json(said.out)
    assert (release.method, release.perturbation, release.noise) == ("doubling", "output", "over the reals")
    assert release.promise.failure_probability == 0.2
    assert release.promise.radius == 0.25
    assert release.preparation["feature_bound"] == 1.5
    assert release.preparation["intercept_weight"] == 0.5
    assert release.not_covered == ()


def test_a_fixed_budget_needs_no_target(tmp_path, capsys):
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, "--method", "fixed", "--max-epsilon", "0.5", "--json")
    assert said.status == 0
    assert Release.from_json(said.out).epsilon == 0.5


def test_missing_cells_can_be_clipped(tmp_path, capsys):
    data = table()
    age = data["age"].to_pylist()
    age[3] = None
    path = write(tmp_path, "csv", data.set_column(0, "age", pa.array(age)))
    refused = call(capsys, "fit", path, *REGRESSION, *QUICK)
    assert refused.status == 2
    assert "1 of 300 rows cannot be used" in refused.err
    assert "age (1)" in refused.err
    assert call(capsys, "fit", path, *REGRESSION, *QUICK, "--on-invalid", "clip", "--seed", 1).status == 0


@pytest.mark.parametrize("more", [[], pytest.param(["--json"], marks=pytest.mark.slow)])
def test_a_terminal_without_greek_letters_still_gets_the_release(tmp_path, more):
    path = write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "expost.cli", "fit", str(path), *REGRESSION, *QUICK, "--seed", "1", *more],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    if more:
        assert Release.from_json(text).status == "released"
    else:
        assert text.startswith("spend from 2 columns, 300 rows ")
        assert re.search(r"privacy +epsilon = \d[\d.e-]* paid", text)


def test_clipping_takes_text_as_missing(tmp_path, capsys):
    """One late cell makes a column of text; with clip nothing may depend on that but its own row."""
    path = write(tmp_path)
    lines = path.read_text().splitlines()
    lines[-1] = ",".join(["oops"] * len(lines[-1].split(",")))
    path.write_text("\n".join(lines) + "\n")
    assert call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1).status == 2
    said = call(capsys, "fit", path, *REGRESSION, *QUICK, "--seed", 1, "--on-invalid", "clip", "--json")
    assert said.status == 0
    assert Release.from_json(said.out).status == "released"


def test_a_margin_can_be_stated(tmp_path, capsys):
    goal = ["--mean-squared-error", "200000", "--regularization", "1", "--seed", 1, "--json"]
    costs = [
        Release.from_json(call(capsys, "fit", write(tmp_path), *REGRESSION, *goal, "--margin", margin).out).epsilon_test
        for margin in (0.2, 0.4)
    ]
    assert costs[0] == pytest.approx(2 * costs[1], rel=1e-3)


def test_a_bounds_file_may_know_more_columns_than_are_used(tmp_path, capsys):
    file = tmp_path / "bounds.json"
    file.write_text('{"age": [0, 100], "income": [0, 200000]}')
    options = ["--bounds-file", file, "--target", "spend", "--task", "regression", "--target-bounds", 0, 1000]
    said = call(capsys, "fit", write(tmp_path), *options, *QUICK, "--columns", "age", "--seed", 1, "--json")
    assert said.status == 0
    assert Release.from_json(said.out).parameters["columns"] == ("age",)


def test_columns_that_are_called_like_negative_numbers(tmp_path, capsys):
    data = table().rename_columns(["-1", "-2", "spend", "churn", "late", "sign"])
    stated = ["--target", "spend", "--task", "regression", "--target-bounds", "0", "1000", "--bounds", "0", "2e5"]
    bounds = ["--columns", "-1", "-2", "--column-bounds", "-1", "0", "100"]
    said = call(capsys, "fit", write(tmp_path, data=data), *stated, *bounds, *QUICK, "--seed", "1", "--json")
    assert said.status == 0, said.err
    assert Release.from_json(said.out).columns == ("-1", "-2")
