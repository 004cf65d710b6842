"""``expost fit DATA --schema FILE``: a table, its schema and a goal, end to end."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release
from expost.shown import up
from tests.cli.helpers import call, write
from tests.helpers import same_in_every_run

COLUMNS = '[columns]\nhours = { bounds = [0, 80] }\nsector = { categories = ["public", "private"] }\n'
LABELS = f'target = "income"\nclasses = ["low", "high"]\n{COLUMNS}'
MOVED = "targets and predictions moved into the target's bounds"
AMOUNT = f'target = "amount"\ntarget_bounds = [0, 100]\n{COLUMNS}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, n = np.random.default_rng(0), 3000
    hours, sector = np.round(rng.uniform(0, 80, n), 2), rng.choice(["public", "private"], n)
    signal = hours + 10 * (sector == "private") + rng.normal(0, 8, n)
    amount = np.round(np.clip(signal, 0, 100), 2)
    income = np.where(signal > 45, "high", "low")
    made = tmp_path_factory.mktemp("schema")
    table = pa.table({"hours": hours, "sector": sector, "income": income, "amount": amount})
    for kind in ("csv", "parquet"):
        write(made, kind, table)
    (made / "labels.toml").write_text(LABELS, encoding="utf-8")
    (made / "amount.toml").write_text(AMOUNT, encoding="utf-8")
    (made / "wrong.toml").write_text(LABELS.replace("low", "Low"), encoding="utf-8")
    return made


def fit(capsys, folder, *options, schema="labels", data="data.csv", seed=("--seed", "1")):
    return call(capsys, "fit", folder / data, "--schema", folder / f"{schema}.toml", *seed, *options)


@pytest.mark.parametrize(
    ("schema", "goal", "stated", "headline"),
    [
        ("labels", ["--error-rate", "0.25"], ("error rate", 0.25, None), "error rate at most 0.25 on these rows"),
        (
            "labels",
            ["--log-loss", "0.55"],
            ("log loss", 0.55, None),
            "log loss at most 0.55 on these rows, log odds moved into bounds",
        ),
        ("amount", ["--r2", "0.4"], ("R²", None, 0.4), f"R² at least 0.4 on these rows, {MOVED}"),
        (
            "amount",
            ["--mean-squared-error", "300"],
            ("mean squared error", pytest.approx(300 / 2500), None),
            f"mean squared error at most 300 on these rows, {MOVED}",
        ),
    ],
)
def test_released(folder, capsys, schema, goal, stated, headline):
    said = fit(capsys, folder, *goal, "--json", schema=schema)
    assert said.status == 0, said.err
    release = Release.from_json(said.out)
    assert (release.promise.goal, release.promise.at_most, release.promise.at_least) == stated
    assert list(release.parameters["columns"]) == ["hours", "sector=public", "sector=private", "sector=(missing)"]
    brief = fit(capsys, folder, *goal, schema=schema).out
    assert len([line for line in brief.splitlines() if "SIMULATION" not in line]) <= 12
    printed = " ".join(brief.split())
    assert headline in printed
    printed = " ".join(fit(capsys, folder, *goal, "--verbose", schema=schema).out.split())
    assert " ".join(release.promise.statement.split()) in printed
    assert headline in printed
    assert ("moved into" in release.promise.statement) == (release.promise.goal != "error rate")
    assert f"ε = {up(release.epsilon)} paid" in printed


def test_it_is_what_the_estimator_releases_from_any_file(folder, capsys):
    first, second = (
        same_in_every_run(fit(capsys, folder, "--error-rate", "0.25", "--json", data=name).out)
        for name in ("data.csv", "data.parquet")
    )
    assert first == second
    model = AccuracyFirstModel(folder / "labels.toml", ErrorRate(0.25), random_state=1).fit(folder / "data.csv")
    assert first == same_in_every_run(model.release_.to_json())


def test_seeds_and_their_lack(folder, capsys):
    first, again, other = (
        fit(capsys, folder, "--error-rate", "0.25", "--json", seed=("--seed", seed)).out for seed in ("1", "1", "2")
    )
    assert same_in_every_run(first) == same_in_every_run(again) != same_in_every_run(other)
    assert json.loads(first)["id"] != json.loads(again)["id"]
    assert json.loads(first)["secure"] is False
    assert json.loads(fit(capsys, folder, "--error-rate", "0.3", "--json", seed=()).out)["secure"] is True


def test_output_and_refusal(folder, capsys, tmp_path):
    asked = ["--error-rate", "0.02", "--max-epsilon", "1.5", "--when-short", "discard"]
    said = fit(capsys, folder, *asked, "--json", "--output", tmp_path / "r.json")
    assert said.status == 3, said.err
    release = Release.from_json(said.out)
    assert (release.status, release.hypothesis) == ("refused", None)
    assert 0 < release.epsilon <= 1.5
    assert "refused" in said.err
    assert Release.from_json((tmp_path / "r-refused.json").read_text(encoding="utf-8")) == release


def test_a_table_that_does_not_fit(folder, capsys):
    said = fit(capsys, folder, "--error-rate", "0.25", schema="wrong")
    assert (said.status, said.out) == (2, "")
    assert "does not fit the schema" in said.err
    clipped = fit(capsys, folder, "--error-rate", "0.25", "--on-invalid", "clip", "--json", schema="wrong")
    assert clipped.status == 3
    assert Release.from_json(clipped.out).epsilon == pytest.approx(80 / 3000)


GOAL = ["--error-rate", "0.25"]


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("labels", [*GOAL, "--margin", "0.1"], "--margin goes without a schema only"),
        ("labels", [*GOAL, "--bounds", "0", "1"], "--bounds goes without a schema only"),
        ("labels", [*GOAL, "--column-bounds", "hours", "0", "1"], "--column-bounds goes without a schema only"),
        ("labels", [*GOAL, "--target", "income"], "--target goes without a schema only"),
        ("labels", [*GOAL, "--classes", "low", "high"], "--classes goes without a schema only"),
        ("amount", ["--r2", "0.5", "--target-bounds", "0", "1"], "--target-bounds goes without a schema only"),
        ("labels", [], "how good must the model be?"),
        ("labels", ["--r2", "0.5"], "--r2 is for regression"),
        ("labels", ["--mean-squared-error", "3"], "--mean-squared-error is for regression"),
        ("amount", GOAL, "--error-rate is for classification"),
        ("amount", ["--log-loss", "0.5"], "--log-loss is for classification"),
        ("labels", ["--excess-risk", "0.1"], "goal must be"),
        ("labels", ["--error-rate", "1.5"], "--error-rate must"),
        ("labels", [*GOAL, "--max-epsilon", "1e-12"], "Nothing was spent"),
        ("missing", GOAL, "there is no schema"),
    ],
)
def test_mistakes(folder, capsys, schema, options, message):
    said = fit(capsys, folder, *options, schema=schema)
    assert (said.status, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_two_goals_are_one_too_many(folder, capsys):
    said = fit(capsys, folder, *GOAL, "--log-loss", "0.5")
    assert said.status == 2
    assert "--error-rate and --log-loss are no goal together: state one of them" in said.err


def test_without_a_schema_it_is_asked_for(folder, capsys):
    said = call(capsys, "fit", folder / "data.csv", *GOAL)
    assert said.status == 2
    assert "--schema is required" in said.err


def test_goals_in_peoples_units_need_no_schema_where_all_columns_are_numbers(folder, capsys):
    stated = ["--target", "amount", "--task", "regression", "--target-bounds", 0, 100]
    stated += ["--columns", "hours", "--bounds", 0, 80]
    released = call(capsys, "fit", folder / "data.csv", *stated, "--r2", "0.5", "--seed", "0", "--verbose")
    assert released.status == 0
    assert "R² of the bounded, rounded rows is at least 0.5" in " ".join(released.out.split())
    for wrong in (["--log-loss", "0.5"], ["--r2", "0.5", "--regularization", "0.1"]):
        said = call(capsys, "fit", folder / "data.csv", *stated, *wrong)
        assert said.status == 2
        assert said.err.startswith("expost: ")


class TestDelta:
    """``--delta``: approximate privacy."""

    def test_released(self, folder, capsys):
        said = fit(capsys, folder, "--error-rate", "0.25", "--delta", "1e-6", "--json")
        assert said.status == 0, said.err
        release = Release.from_json(said.out)
        assert (release.delta, release.perturbation) == (1e-6, "gradient descent")
        way = ("--perturbation", "descent")
        printed = " ".join(fit(capsys, folder, "--error-rate", "0.25", "--delta", "1e-6", *way).out.split())
        assert "at δ = 1e-06" in printed
        assert "to state it at δ" in printed

    @pytest.mark.parametrize(
        ("way", "said"), [("objective", "objective perturbation with Gaussian noise"), ("descent", "gradient descent")]
    )
    def test_the_way_is_stated(self, folder, capsys, way, said):
        stated = ("--error-rate", "0.25", "--delta", "1e-6", "--perturbation", way)
        release = Release.from_json(fit(capsys, folder, *stated, "--json").out)
        assert said in release.parameters["reasons"][0]

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (("--perturbation", "descent"), "--perturbation descent has Gaussian noise: pass --delta"),
            (("--perturbation", "output"), "--perturbation output goes without a schema only"),
        ],
    )
    def test_a_way_that_does_not_go_with_it(self, folder, capsys, options, complaint):
        said = fit(capsys, folder, "--error-rate", "0.25", *options)
        assert said.status == 2
        assert complaint in said.err

    def test_a_way_without_a_schema(self, folder, capsys):
        options = ("--target", "amount", "--task", "regression", "--excess-risk", "0.1", "--perturbation", "objective")
        said = call(capsys, "fit", folder / "data.csv", *options)
        assert said.status == 2
        assert "--perturbation objective goes with --schema" in said.err

    @pytest.mark.parametrize("delta", ["-1", "0.5", "nan"])
    def test_not_a_delta(self, folder, capsys, delta):
        said = fit(capsys, folder, "--error-rate", "0.25", "--delta", delta)
        assert said.status == 2
        assert "delta must be" in said.err


def test_new_rows(capsys, folder, tmp_path):
    """Which promise it is stands in what is printed, in the file and in the report."""
    options = ("--error-rate", "0.35", "--new-rows", "0.4", "--output", tmp_path / "r.json")
    said = fit(capsys, folder, *options, "--report", tmp_path / "r.html")
    assert said.status == 0, said.err
    assert "at most 0.35 on new rows drawn like these, as asked" in said.out
    release = Release.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert release.held_out == 1200
    assert release.epsilon < release.epsilon_probe + release.epsilon_generation + release.epsilon_test
    report = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "on new rows drawn like these" in report
    assert "the larger counts, not the sum" in report
    assert "drawn independently from one population" in report
