"""A table, a schema and a goal: what comes out, in every format, for every kind of row."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_score

from expost import AccuracyFirstModel, ErrorRate, ExcessRisk, MeanSquaredError
from expost.exceptions import AccuracyNotReached, InvalidRows, LargeEpsilonWarning, SearchInterrupted, TargetUnreachable
from expost.goals import LogLoss
from expost.goals.squared_errors import R2
from expost.solve.perturbed import PerturbedObjective
from expost.table.schema import Schema
from tests.estimators.model_helpers import AMOUNT, LABELS, N, model, table, written
from tests.helpers import CountingSource, same_in_every_run
from tests.table.hostile import HOSTILE, MAKERS, silence

KINDS = ["mapping", "pandas", "categorical pandas", "polars", "arrow", "csv", "parquet"]
REGRESSION = {"schema": AMOUNT, "goal": R2(0.5)}


@pytest.mark.parametrize("options", [{}, REGRESSION], ids=["labels", "numbers"])
def test_every_kind_of_table_gives_the_same_bits(options, tmp_path):
    releases = [model(**options).fit(written(kind, tmp_path)).release_ for kind in KINDS]
    assert len({json.dumps(same_in_every_run(release.to_json())) for release in releases}) == 1
    other = model(**options, random_state=1).fit(table()).release_
    assert other.hypothesis != releases[0].hypothesis


def test_what_is_released_meets_the_goal_and_says_what_it_is():
    fitted = model().fit(table())
    release = fitted.release_
    wrong = np.mean(fitted.predict(table()) != np.array(table()["income"]))
    assert wrong <= 0.25
    assert (release.status, release.noise, release.perturbation) == ("released", "exact", "objective")
    assert release.promise.at_most == 0.25
    assert release.schema_fingerprint == Schema.from_dict(LABELS).fingerprint()
    assert 0 < release.epsilon < 2 == release.epsilon_worst_case
    assert any("single rows" in part for part in release.not_covered)  # on_invalid="error" is the curator's
    assert not any("single rows" in part for part in model(on_invalid="clip").fit(table()).release_.not_covered)


def test_predictions_are_the_coefficients_times_the_columns():
    for options in ({}, REGRESSION):
        fitted, plain = model(**options).fit(table()), table(200)
        by_hand = fitted.intercept_ + fitted.coef_["hours"] * np.array(plain["hours"])
        by_hand += [fitted.coef_[f"sector={name}"] for name in plain["sector"]]
        if options:
            within = [50 + 50 * end for end in fitted.release_.parameters["predicted_within"]]
            np.testing.assert_allclose(fitted.predict(plain), np.clip(by_hand, *within), atol=1e-3)
        else:
            assert fitted.classes_.tolist() == ["high", "low"]  # sorted, as scikit-learn expects; "high" is positive
            np.testing.assert_allclose(fitted.decision_function(plain), -by_hand, atol=1e-5)
            assert set(fitted.predict(plain)) == {"low", "high"}


def test_new_rows_may_hold_anything():
    new = {"hours": [40, 1e9, None, "many"], "sector": ["charity", "public", None, 7]}
    with pytest.raises(InvalidRows, match=r"hours \(1\).*sector \(2\)"):
        model().fit(table()).predict(new)
    fitted = model(on_invalid="clip").fit(table())
    with silence():
        said = fitted.predict(new)
    assert set(said) <= {"low", "high"}
    assert said[1] == "high"
    regression = model(on_invalid="clip", **REGRESSION).fit(table())
    far = regression.predict({"hours": [-1e300, 1e300, np.nan], "sector": ["public", "private", "charity"]})
    assert (far >= 0).all()
    assert (far <= 100).all()
    ends = regression.predict({"hours": [0, 80], "sector": ["public", "private"]})
    assert ends[0] < ends[1]


@pytest.mark.parametrize("goal", [LogLoss(0.55), MeanSquaredError(300.0)], ids=repr)
def test_other_goals(goal):
    schema = LABELS if isinstance(goal, LogLoss) else AMOUNT
    fitted = model(schema, goal).fit(table())
    if isinstance(goal, MeanSquaredError):
        off = fitted.predict(table()) - np.array(table()["amount"])
        assert np.mean(off**2) <= 300.0
        assert fitted.release_.promise.at_most_caller_units == pytest.approx(300.0)
    else:
        odds = np.clip(fitted.decision_function(table()), -4, 4) * np.where(
            np.array(table()["income"]) == fitted.classes_[1], 1, -1
        )
        assert np.mean(np.log1p(np.exp(-odds))) <= 0.55


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": R2(0.5)}, "R2 is for regression"),
        ({"schema": AMOUNT, "goal": ErrorRate(0.2)}, "ErrorRate is for classification"),
        ({"schema": AMOUNT, "goal": LogLoss(0.2)}, "LogLoss is for classification"),
        ({"goal": ExcessRisk(0.1)}, "goal must be ErrorRate"),
        ({"goal": 0.1}, "goal must be ErrorRate"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"failure_probability": 1.5}, "failure_probability"),
        ({"failure_probability": 0, "delta": 1e-6}, "failure_probability must lie strictly between 0 and 1"),
        ({"rows_per_person": 10**7, "person": "p"}, "rows_per_person must be a whole number, at most 10,000"),
        ({"max_epsilon": -1.0}, "max_epsilon"),
        ({"max_epsilon": 1e-12}, "Nothing was spent"),
    ],
)
def test_mistakes_are_named_before_anything_is_drawn(options, message):
    source = CountingSource()
    with pytest.raises(ValueError, match=message):
        model(**{**options, "random_state": source}).fit(table())
    assert source.drawn == 0


def test_targets_may_come_by_themselves():
    """As scikit-learn's tools pass them; the release is the same, and so is the score."""
    frame = pd.DataFrame(table())
    features, target = frame.drop(columns="income"), frame["income"]
    whole, apart = model().fit(frame), model().fit(features, target)
    assert whole.release_ == apart.release_
    assert whole.score(frame) == apart.score(features, target) == np.mean(whole.predict(frame) == target)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[3000, 2999\]"):
        model().fit(features, target[1:])
    with pytest.raises(ValueError, match="income"):
        model().fit(features)


@pytest.mark.parametrize("schema", [LABELS, AMOUNT])
def test_cross_validation(schema):
    """With the target in the table or apart; an amount is scored by R² within its bounds."""
    frame = pd.DataFrame(table())
    goal = ErrorRate(0.35) if "classes" in schema else R2(0.3)
    estimator = AccuracyFirstModel(schema, goal, random_state=0)
    name = schema["target"]
    scores = cross_val_score(estimator, frame, cv=KFold(2))
    assert (scores > (0.65 if "classes" in schema else 0.3)).all()
    assert (scores == cross_val_score(estimator, frame.drop(columns=name), frame[name], cv=KFold(2))).all()
    judged = cross_val_score(
        estimator,
        frame.drop(columns=name),
        frame[name],
        cv=KFold(2),
        scoring="accuracy" if "classes" in schema else "r2",
    )
    assert judged == pytest.approx(scores, abs=1e-4)
    assert is_classifier(estimator) == ("classes" in schema)


def test_predicting_before_fitting():
    with pytest.raises(NotFittedError):
        model().predict(table())


MISFITS = {
    "misspelt classes": ({**LABELS, "classes": ["Low", "High"]}, table()),
    "text column given bounds": ({**LABELS, "columns": {"sector": {"bounds": [0, 1]}}}, table()),
    "misspelt categories": ({**LABELS, "columns": {"sector": {"categories": ["Public", "Private"]}}}, table()),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_table_that_does_not_fit(name):
    schema, frame = MISFITS[name]
    source = CountingSource()
    with pytest.raises(InvalidRows, match="does not fit"):
        model(schema, random_state=source).fit(frame)
    assert source.drawn == 0
    with pytest.raises(AccuracyNotReached) as caught:
        model(schema, on_invalid="clip").fit(frame)
    release = caught.value.release
    assert release.epsilon == release.epsilon_probe == pytest.approx(80 / N)
    assert "expost check" in release.parameters["reasons"][-1]


def test_looking_may_cost_too_much():
    with pytest.raises(TargetUnreachable, match=r"fits its schema|no model could be shown"):
        model(goal=ErrorRate(0.4), on_invalid="clip", max_epsilon=79 / N * 0.9 + 1e-3).fit(table())


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_hostile_row_tells_nothing(first):
    """The first row is replaced by cells that do their worst: nothing is raised, printed, warned of or called."""
    options = {"on_invalid": "clip", "goal": ErrorRate(0.3)}
    n, names = 800, [*HOSTILE, *(f"made {name}" for name in MAKERS)]

    def replaced(cell):
        plain = table(n)
        for name in ("hours", "sector", "income"):
            plain[name][0] = cell
        return plain

    for name in names[first::3]:
        cell = HOSTILE[name] if name in HOSTILE else MAKERS[name.removeprefix("made ")]()
        with silence():
            release = model(**options).fit(replaced(cell)).release_
        assert release.status == "released"


# --- objects ----------------------------------------------------------------------------------------------------------


def test_pickling_and_cloning():
    fitted = model().fit(table())
    again = pickle.loads(pickle.dumps(fitted))
    assert again.release_ == fitted.release_
    assert np.array_equal(again.predict(table()), fitted.predict(table()))
    assert len(pickle.dumps(fitted)) < 20_000  # no rows in there
    fresh = clone(fitted)
    assert not hasattr(fresh, "release_")
    assert fresh.get_params() == fitted.get_params()
    assert copy.deepcopy(fitted).coef_ == fitted.coef_


def test_a_failed_fit_leaves_no_old_model():
    fitted = model().fit(table())
    fitted.set_params(goal=R2(0.5))
    with pytest.raises(ValueError, match="regression"):
        fitted.fit(table())
    assert not hasattr(fitted, "coef_")


def test_an_interruption_carries_a_release(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(PerturbedObjective, "minimiser", interrupt)
    with pytest.raises(SearchInterrupted, match="KeyboardInterrupt") as caught:
        model(max_epsilon=3.0).fit(table())
    release = caught.value.release
    assert release.epsilon == release.epsilon_worst_case == 3.0
    assert release.schema_fingerprint == Schema.from_dict(LABELS).fingerprint()
    assert (release.target, release.columns) == ("income", ("hours", "sector"))
    assert (release.noise, release.perturbation) == ("exact", "objective")  # as it would have been


def test_a_large_epsilon_is_warned_of():
    with pytest.warns(LargeEpsilonWarning, match="is large") as said:
        model(goal=ErrorRate(0.1), max_epsilon=40.0).fit(table(200))
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(table())


@pytest.mark.parametrize("fitted", [False, True])
def test_what_a_model_lacks_it_says_in_the_words_of_its_release(fitted):
    """And to scikit-learn it is not there."""
    found = model(LABELS, ErrorRate(0.25))
    if fitted:
        found.fit(table())
        with pytest.raises(ValueError, match="predicts labels alone; models for a log loss estimate probabilities"):
            found.release_.predict_proba(table())
    assert not hasattr(found, "predict_proba")
    with pytest.raises(AttributeError, match="predicts labels alone; models for a log loss estimate probabilities"):
        found.predict_proba(table())
    with pytest.raises(AttributeError, match="this model predicts numbers"):
        model(AMOUNT, R2(0.5)).decision_function(table())
    assert "log loss" in type(found).predict_proba.__doc__
