"""A refusal says how close it came: what its looks have shown, for nothing (theory D3)."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from expost import R2, AccuracyFirstModel, ErrorRate, LogLoss, MeanSquaredError, Release
from expost.cli import main
from expost.exceptions import AccuracyNotReached
from expost.release.page import report
from expost.search import noisy_test as pure_looks
from expost.search.noisy_test import NoisyValue
from expost.table.schema import Schema
from tests.estimators.model_helpers import AMOUNT, LABELS, table, written

GAMMA, RUNS, RARE = 0.2, 40, 1e-6
#: δ and the way: the chain of pure releases, and at a δ all three.
WAYS = [(0.0, None), (1e-6, "descent"), (1e-6, "objective"), (1e-6, "covariance")]


def refusal(goal, seed=0, schema=LABELS, **options) -> Release:
    stated = {"max_epsilon": 0.5, "failure_probability": GAMMA, "random_state": seed, **options}
    with pytest.raises(AccuracyNotReached) as caught:
        AccuracyFirstModel(schema, goal, **stated).fit(table())
    assert caught.value.release.closest[1:] in str(caught.value)
    return caught.value.release


def false_bounds(monkeypatch, **options) -> int:
    """Return in how many runs no model along the way was as good as what was shown, or, released, as was asked."""
    goal, reached, false = ErrorRate(0.05), [], 0
    usual = ErrorRate.shortfall

    def noted(self, objective, theta):
        reached.append(usual(self, objective, theta) + self.at_most)
        return reached[-1] - self.at_most

    monkeypatch.setattr(ErrorRate, "shortfall", noted)
    for seed in range(RUNS):
        reached.clear()
        model = AccuracyFirstModel(
            LABELS, goal, max_epsilon=0.5, failure_probability=GAMMA, random_state=seed, **options
        )
        try:
            shown = model.fit(table()).release_.promise.at_most
        except AccuracyNotReached as refused:
            shown = refused.release.parameters["shown"]
        false += shown < min(reached)
    return false


@pytest.mark.parametrize(("delta", "way"), WAYS)
class TestBound:
    def test_it_holds(self, monkeypatch, delta, way):
        assert false_bounds(monkeypatch, delta=delta, perturbation=way) <= stats.binom.isf(RARE, RUNS, GAMMA)

    def test_without_margins_it_does_not(self, monkeypatch, delta, way):
        monkeypatch.setattr(NoisyValue, "margin", lambda *_: 0.0)
        monkeypatch.setattr(pure_looks, "laplace_deviations", lambda *_: 0.0)
        assert false_bounds(monkeypatch, delta=delta, perturbation=way) > stats.binom.isf(RARE, RUNS, GAMMA)

    def test_it_says_something(self, delta, way):
        shown = refusal(ErrorRate(0.05), delta=delta, perturbation=way).parameters["shown"]
        assert 0.05 < shown < 0.4


@pytest.mark.parametrize("goal", [LogLoss(0.2), ErrorRate(0.05)], ids=lambda goal: goal.name)
def test_in_words(goal):
    release = refusal(goal)
    assert 0.0 <= float(release.closest.split("at most ")[1].split(" was")[0]) - release.parameters["shown"] < 1e-3
    assert f"{goal.at_most:g} was asked" in release.closest
    assert release.closest in str(release)
    assert release.closest[1:] in report(release)
    assert "refused or not, at most 0.2 show what is false" in report(release)
    assert Release.from_json(release.to_json()).closest == release.closest


def test_squares_are_in_the_targets_units():
    release = refusal(MeanSquaredError(50.0), schema=AMOUNT, max_epsilon=2.0)
    assert release.parameters["shown"] < 4.0
    assert 50.0 < float(release.closest.split("at most ")[1].split(" was")[0]) < 2500.0
    assert "50 was asked" in release.closest


def test_nothing_is_shown_of_r2():
    """A bound on MSE − (1 − r)·Var(y) above zero says nothing about R² without the variance."""
    release = refusal(R2(0.95), schema=AMOUNT, max_epsilon=5.0)
    assert "shown" not in release.parameters
    assert release.closest == ""


def test_nothing_is_stated_that_is_always_true():
    goal = ErrorRate(0.05)
    assert goal.shown(0.95) == goal.shown(math.inf) == {}
    assert goal.shown(0.1) == {"shown": pytest.approx(0.15)}


def test_released_models_and_other_searches_say_nothing():
    model = AccuracyFirstModel(LABELS, ErrorRate(0.25), random_state=0).fit(table())
    assert "shown" not in model.release_.parameters
    assert model.release_.closest == ""


def test_the_command_says_it(tmp_path, capsys):
    source, schema = written("csv", tmp_path), tmp_path / "schema.toml"
    schema.write_text(Schema.from_dict(LABELS).to_toml())
    stated = ["--schema", str(schema), "--error-rate", "0.05", "--max-epsilon", "0.5", "--seed", "0"]
    assert main(["fit", str(source), *stated, "--output", str(tmp_path / "release.json")]) == 3
    assert "Closest: an error rate of at most 0." in capsys.readouterr().err
    kept = json.loads((tmp_path / "release.json").read_text())
    assert 0.05 < kept["parameters"]["shown"] < 1.0
