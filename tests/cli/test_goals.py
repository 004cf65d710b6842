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
        (REGRESSION, ["--mean-squared-error", "60"], ("mean squared error", 60 / 19**2)),
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
        assert json.loads(said.out)["promise"]["at_most_caller_units"] == pytest.approx(60)
    printed = " ".join(call(capsys, "fit", data, *task, *goal).out.split())
    assert " ".join(promise.statement.split()) in printed


def test_refused(data, capsys):
    said = call(capsys, "fit", data, *REGRESSION, "--mean-squared-error", "0.9", "--max-epsilon", "60", "--json")
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
        ([*CLASSIFICATION, "--error-rate", "0.1", "--excess-risk", "0.1"], "not allowed with"),
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
