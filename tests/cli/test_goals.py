"""Goals from the command line, end to end."""

import json

import numpy as np
import pyarrow as pa
import pytest

from expost import Release
from tests.cli.helpers import call, write


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 10, (2, 10_000))
    spend = np.round(2 * a - b + rng.normal(size=10_000), 3)
    table = pa.table({"a": a, "b": b, "spend": spend, "buys": np.where(2 * a - b > 5, "yes", "no")})
    return write(tmp_path_factory.mktemp("goals"), "parquet", table)


COMMON = ["--columns", "a", "b", "--bounds", "0", "10", "--seed", "1"]
REGRESSION = ["--target", "spend", "--task", "regression", "--target-bounds", "-14", "24", *COMMON]
CLASSIFICATION = ["--target", "buys", "--task", "classification", "--classes", "no", "yes", *COMMON]


@pytest.mark.parametrize(
    ("task", "goal", "stated"),
    [
        (REGRESSION, ["--mean-squared-error", "20"], ("mean squared error", 20 / 19**2)),
        (REGRESSION, ["--relative-excess-risk", "0.5"], ("relative excess risk", 0.5)),
        (CLASSIFICATION, ["--error-rate", "0.3"], ("error rate", 0.3)),
        (CLASSIFICATION, ["--relative-excess-risk", "0.5"], ("relative excess risk", 0.5)),
    ],
)
def test_released(data, capsys, task, goal, stated):
    said = call(capsys, "fit", data, *task, *goal, "--json")
    assert said.status == 0, said.err
    promise = Release.from_json(said.out).promise
    assert (promise.goal, promise.at_most) == (stated[0], pytest.approx(stated[1]))
    if stated[0] == "mean squared error":
        assert json.loads(said.out)["promise"]["at_most_caller_units"] == pytest.approx(20)
    printed = " ".join(call(capsys, "fit", data, *task, *goal, "--verbose").out.split())
    assert " ".join(promise.statement.split()) in printed


JOINED = [
    (["--recall", "0.7", "--precision", "0.6"], "recall and precision", {"recall": 0.7, "precision": 0.6}),
    (["--recall", "0.7", "--error-rate", "0.3"], "error rate and recall", {"error rate": 0.3, "recall": 0.7}),
    (["--f1", "0.8"], "F₁", None),
    (["--cost", "fp=1,fn=4", "--cost-at-most", "0.5"], "mean cost", None),
]


@pytest.mark.parametrize(("goal", "name", "numbers"), JOINED)
def test_outcomes_of_rows(data, capsys, goal, name, numbers):
    said = call(capsys, "fit", data, *CLASSIFICATION, *goal, "--json")
    assert said.status == 0, said.err
    promise = Release.from_json(said.out).promise
    assert (promise.goal, promise.goals) == (name, numbers)


def test_joined_goals_are_planned_number_by_number(tmp_path, capsys):
    schema = tmp_path / "buys.toml"
    schema.write_text('target = "buys"\nclasses = ["no", "yes"]\n[columns]\na = { bounds = [0, 10] }\n')
    asked = ["--recall", "0.6", "0.7", "--precision", "0.3", "--f1", "0.5", "--log-loss", "0.5"]
    said = call(capsys, "plan", schema, "--rows", "20000", *asked, "--worlds", "2", "--json")
    assert said.status == 0, said.err
    found = [(goal["value"], goal["option"]) for goal in json.loads(said.out)["goals"]]
    assert found[0] == ({"recall": 0.6, "precision": 0.3, "F₁": 0.5}, "--recall 0.6 --precision 0.3 --f1 0.5")
    assert [option for _, option in found[1:]] == ["--recall 0.7 --precision 0.3 --f1 0.5", "--log-loss 0.5"]


def test_refused(data, capsys):
    goal = ["--mean-squared-error", "0.9", "--max-epsilon", "60", "--json", "--when-short", "discard"]
    said = call(capsys, "fit", data, *REGRESSION, *goal)
    assert said.status == 3, said.err
    release = Release.from_json(said.out)
    assert release.hypothesis is None
    assert 0 < release.epsilon <= 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (REGRESSION, "how good must the model be"),
        (
            [*REGRESSION, "--error-rate", "0.1"],
            "--error-rate is for classification; for regression pass --r2 or --mean-squared-error",
        ),
        ([*CLASSIFICATION, "--mean-squared-error", "0.1"], "--mean-squared-error is for regression"),
        ([*CLASSIFICATION, "--error-rate", "5"], "--error-rate must be"),
        ([*CLASSIFICATION, "--error-rate", "0.1", "--excess-risk", "0.1"], "are no goal together"),
        ([*CLASSIFICATION, "--recall", "0.9"], "--recall alone is met by always giving one label; state --precision"),
        ([*CLASSIFICATION, "--specificity", "0.9"], "--specificity alone is met by"),
        ([*CLASSIFICATION, "--precision", "0.9", "--log-loss", "0.3"], "are no goal together"),
        ([*CLASSIFICATION, "--cost-at-most", "0.3"], "--cost-at-most and --cost go together"),
        ([*CLASSIFICATION, "--cost", "fp=1,fn=2"], "--cost-at-most and --cost go together"),
        ([*CLASSIFICATION, "--cost", "fp=1,fn=2", "--cost-at-most", "1"], "always giving one label costs no more"),
        ([*REGRESSION, "--f1", "0.3"], "--f1 is for classification"),
        ([*CLASSIFICATION, "--error-rate", "0.1", "--method", "certified"], "above_threshold"),
        ([*CLASSIFICATION, "--error-rate", "0.001", "--max-epsilon", "0.1"], "Nothing was spent"),
    ],
)
def test_mistakes(data, capsys, arguments, message):
    said = call(capsys, "fit", data, *arguments)
    assert said.status == 2
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_mean_squared_error_that_the_mean_has_is_not_searched_for(data, capsys):
    """The variance is about 43: no model is made, and what was paid is what it took to tell."""
    said = call(capsys, "fit", data, *REGRESSION, "--mean-squared-error", "60", "--json")
    release = Release.from_json(said.out)
    assert (said.status, release.status) == (3, "refused")
    assert release.epsilon == release.epsilon_probe < 0.05
    assert "Always predicting about the mean" in said.err
    assert "one label is rare" not in said.err
    assert "a constant meets the goal" in str(release)


def test_several_goals_that_are_out_of_reach_are_short(data, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = ["--recall", "0.99", "--precision", "0.99", "--max-epsilon", "0.5", "--output", "m.json"]
    said = call(capsys, "fit", data, *CLASSIFICATION, *wanted)
    assert said.status == 5, said.err
    assert "Closest: recall of at least 0." in said.err
    release = Release.from_json((tmp_path / "m-short.json").read_text("utf-8"))
    assert 0.5 < release.shown["recall"] < 0.99
    assert call(capsys, "report", "m-short.json", "--output", "r.html").status == 0
    assert "recall and precision at least 0." in (tmp_path / "r.html").read_text("utf-8")
