"""An error that comes before anything was spent says so, whatever it is about: at the command line and at ``fit``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    ExcessRisk,
    Ledger,
    MeanSquaredError,
    Release,
    refine,
)
from expost.cli.command import COMMANDS
from expost.estimators import gradient_path
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.search import run_search
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from tests.cli.helpers import CLASSIFICATION, QUICK, REGRESSION, call, write
from tests.cli.test_interrupted import interrupt

SPENT = "nothing was spent"
SCHEMA = 'target = "spend"\ntarget_bounds = [0, 1000]\n[columns]\nage = { bounds = [0, 100] }\n'
FIXED = ["--method", "fixed", "--regularization", "1", "--max-epsilon", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "broken.toml").write_text("target = ", encoding="utf-8")
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "header.csv").write_text("age,income,spend\n", encoding="utf-8")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "text.csv").write_text("age,income,spend\n1,2,3\nold,2,3\n", encoding="utf-8")
    (tmp_path / "release.json").write_text("{}", encoding="utf-8")
    (tmp_path / "list.json").write_text(json.dumps([1, 2]), encoding="utf-8")
    return tmp_path


FIT = [
    [],  # options and words that are wrong
    ["--epsilon", "1"],
    ["--target"],
    ["--method", "magic"],
    ["--seed", "x"],
    ["--max-epsilon", "-1", *FIXED[:4]],
    [*QUICK, "--max-epsilon", "nan"],
    ["--excess-risk", "0"],
    ["--excess-risk", "0.1", "--r2", "0.3"],
    ["--excess-risk", "0.1", "--failure-probability", "2"],
    ["--excess-risk", "0.1", "--regularization", "-1"],
    ["--excess-risk", "0.1", "--feature-bound", "0"],
    ["--excess-risk", "0.1", "--calibration", "loose"],
    ["--excess-risk", "0.1", "--keep-path", "p"],
    ["--error-rate", "0.2"],
    ["--r2", "0.2", "--delta", "0.9"],
    ["--excess-risk", "1e-9", "--regularization", "1", "--max-epsilon", "0.01"],
    [*QUICK, "--columns", "nowhere"],
    [*QUICK, "--output", "nowhere/release.json"],
    [*QUICK, "--report", "data.csv"],
    [*QUICK, "--ledger", "nowhere.db", "--dataset", "d"],
    [*QUICK, "--ledger", "data.csv", "--dataset", "d"],
    [*QUICK, "--dataset", "d"],
]
FILES = [
    ["nowhere.csv", *REGRESSION, *FIXED],
    ["empty.csv", *REGRESSION, *FIXED],
    ["header.csv", *REGRESSION, *FIXED],
    ["damaged.parquet", *REGRESSION, *FIXED],
    ["text.csv", *REGRESSION, *FIXED],
    ["data.csv", *CLASSIFICATION, "--classes", "a", "b", *FIXED],
    ["data.csv", "--schema", "nowhere.toml", "--r2", "0.2"],
    ["data.csv", "--schema", "broken.toml", "--r2", "0.2"],
    ["data.csv", "--schema", "schema.toml"],
    ["data.csv", "--schema", "schema.toml", "--error-rate", "0.2"],
    ["data.csv", "--schema", "schema.toml", "--r2", "0.2", "--method", "fixed"],
    ["text.csv", "--schema", "schema.toml", "--r2", "0.2"],
    ["data.csv", "--schema", "schema.toml", "--r2", "0.999999", "--max-epsilon", "0.0001"],
    ["."],
    [],
]
REFINE = [
    [],
    ["release.json"],
    ["nowhere.json", "--path", "p", "--key", "k", "--excess-risk", "0.1"],
    ["release.json", "--path", "p", "--key", "k", "--excess-risk", "0.1"],
    ["list.json", "--path", "data.csv", "--key", "data.csv", "--excess-risk", "0.1"],
    ["release.json", "--path", "data.csv", "--key", "data.csv", "--excess-risk", "0.1"],
    ["release.json", "--path", "p", "--key", "k", "--excess-risk", "-1"],
    ["release.json", "--path", "p", "--key", "k", "--excess-risk", "much"],
]
MISTAKES = [
    *(["fit", "data.csv", *REGRESSION, *options] for options in FIT),
    *(["fit", *arguments] for arguments in FILES),
    *(["refine", *arguments] for arguments in REFINE),
]


@pytest.mark.parametrize("arguments", MISTAKES, ids=lambda arguments: " ".join(arguments)[-60:])
def test_at_the_command_line(folder, capsys, arguments):
    said = call(capsys, *arguments)
    assert said.status == 2, said.err
    assert said.err.lower().count(SPENT) == 1, said.err
    assert said.out == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_only_commands_that_could_have_spent_say_so(folder, capsys, command):
    """``expost ledger`` books what was spent elsewhere: of that it could not be said."""
    said, shown = call(capsys, command, "--no-such-option").err, call(capsys, command, "--help").out
    assert (SPENT in said.lower()) == (SPENT in shown) == (command in ("fit", "refine", "evaluate"))


def test_what_was_spent_is_not_denied(folder, capsys, monkeypatch):
    def full(*_):
        raise ValueError("something else went wrong")

    monkeypatch.setattr("expost.cli.fit.deliver", full)
    said = call(capsys, "fit", "data.csv", *REGRESSION, *FIXED, "--seed", "1")
    assert (said.status, "unexpected ValueError" in said.err) == (3, True)
    assert Release.from_json(said.err[: said.err.rindex("}\n") + 1]).status == "released"
    assert "keep the release above, it was paid for" in said.err
    assert SPENT not in said.err.lower()


X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
Y = X @ [1.0, -0.5]
LABELS = np.where(Y > 0, "yes", "no")
TABLE = {"age": 50 + 50 * X[:, 0], "spend": 500 + 300 * Y}
ENDLESS = "y" * 100_001
BOUNDED = {"bounds": [0, 100]}
LONG = {"target": "spend", "columns": {"age": BOUNDED}}
STATED = {"target": "spend", "target_bounds": [0, 1000], "columns": {"age": BOUNDED}}


def ridge(X=X, y=Y, **options):
    return AccuracyFirstRidge(**{"bounds": 1.0, "target_bound": 2.0, "excess_risk": 0.1, **options}).fit(X, y)


def logistic(X=X, y=LABELS, **options):
    settings = {"bounds": 1.0, "classes": ("no", "yes"), "excess_risk": 0.1, **options}
    return AccuracyFirstLogisticRegression(**settings).fit(X, y)


def model(table=TABLE, schema=STATED, goal=R2(0.1), **options):  # noqa: B008
    return AccuracyFirstModel(schema, goal, **options).fit(table)


def sealed(folder):
    return refine(ridge(random_state=1, max_epsilon=10.0).release_, folder / "nowhere", folder / "key", excess_risk=0.1)


def searched(folder):
    return run_search(None, Problem.of(SquaredLoss(), n=9, p=2, regularization=0.1), ExcessRisk(0.1), method="magic")


FITS = {
    "text": lambda _: ridge(X=[["a", "b"]] * 300),
    "missing": lambda _: ridge(X=np.where(X > 0.9, np.nan, X)),
    "lengths": lambda _: ridge(y=Y[:10]),
    "no rows": lambda _: ridge(X=X[:0], y=Y[:0]),
    "one dimension": lambda _: ridge(X=X[:, 0]),
    "labels": lambda _: logistic(y=np.where(Y > 0, "ja", "nein")),
    "bounds": lambda _: ridge(bounds=(1, 0)),
    "no goal": lambda _: ridge(excess_risk=None),
    "two goals": lambda _: ridge(goal=R2(0.5)),
    "a goal that is none": lambda _: ridge(goal=0.5, excess_risk=None),
    "another goal": lambda _: logistic(goal=MeanSquaredError(0.5), excess_risk=None),
    "method": lambda _: ridge(method="magic"),
    "noise": lambda _: ridge(noise="pink"),
    "budget": lambda _: ridge(max_epsilon=-1),
    "delta": lambda _: ridge(delta=2),
    "seed": lambda _: ridge(random_state="x"),
    "ledger": lambda _: ridge(ledger="budget.db"),
    "no ledger": lambda folder: ridge(ledger=Ledger(folder / "nowhere.db", "d")),
    "half a letter in a label": lambda _: logistic(y=np.where(Y > 0, "j\ud800", "nein"), classes=("nein", "j\ud800")),
    "a label without end": lambda _: model(
        {**TABLE, "spend": np.where(Y > 0, ENDLESS, "no")}, {**LONG, "classes": ["no", ENDLESS]}, ErrorRate(0.3)
    ),
    "half a letter in a name": lambda _: model(TABLE | {"a\ud800": Y}, {**STATED, "columns": {"a\ud800": BOUNDED}}),
    "out of reach": lambda _: ridge(excess_risk=1e-9, regularization=0.1, max_epsilon=1e-3),
    "no path": sealed,
    "a search": searched,
    "no schema": lambda folder: model(schema=folder / "nowhere.toml"),
    "no file": lambda folder: model(folder / "nowhere.csv"),
    "a column is missing": lambda _: model({"age": TABLE["age"]}),
    "a cell is text": lambda _: model({**TABLE, "age": ["old", *TABLE["age"][1:]]}),
    "labels asked for": lambda _: model(goal=ErrorRate(0.2)),
    "invalid": lambda _: model(on_invalid="guess"),
    "few rows": lambda _: model(max_epsilon=1e-6),
    "a descent without a delta": lambda _: gradient_path(TABLE, STATED, delta=0),
    "a descent on text": lambda _: next(gradient_path({**TABLE, "age": ["old", *TABLE["age"][1:]]}, STATED)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_at_fit(tmp_path, name):
    with pytest.raises((ValueError, TypeError, OSError)) as raised:
        FITS[name](tmp_path)
    error = raised.value
    assert "\n".join([str(error), *getattr(error, "__notes__", ())]).lower().count(SPENT) == 1


@pytest.mark.filterwarnings("ignore")
def test_refusals_and_interruptions_say_what_they_cost_instead(monkeypatch):
    unrelated = {"age": np.arange(20_000) % 100, "spend": np.arange(20_000) // 20}
    with pytest.raises(AccuracyNotReached) as refused:
        model(unrelated, goal=R2(0.5), random_state=1)
    interrupt(monkeypatch, ValueError(), after=1)
    with pytest.raises(SearchInterrupted) as stopped:
        ridge(random_state=1)
    for raised in (refused, stopped):
        said = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
        assert raised.value.release.epsilon > 0
        assert SPENT not in said.lower()
