"""Goals as the estimators take them: units, promises, mistakes, and what scikit-learn asks of a parameter."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from expost import (
    AccuracyFirstLogisticRegression,
    AccuracyFirstRidge,
    ErrorRate,
    MeanSquaredError,
    RelativeExcessRisk,
    Release,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (20_000, 2))
Y = X @ [2.0, -1.0] + RNG.normal(size=20_000)
LABELS = np.where(X @ [2.0, -1.0] > 5, "yes", "no")


def ridge(**given):
    return AccuracyFirstRidge(**{"bounds": (0, 10), "target_bounds": (-12.0, 22.0), "random_state": 0, **given})


def logistic(**given):
    return AccuracyFirstLogisticRegression(
        **{"bounds": (0, 10), "classes": ("no", "yes"), "random_state": 0, "regularization": 0.002, **given}
    )


def test_mean_squared_error_is_in_the_callers_units():
    model = ridge(goal=MeanSquaredError(20.0, margin=0.5)).fit(X, Y)
    assert np.mean((model.predict(X) - Y) ** 2) <= 20.0
    promise = model.release_.promise
    assert promise.goal == "mean squared error"
    assert promise.at_most == pytest.approx(20.0 / 17.0**2)
    assert promise.at_most_caller_units == pytest.approx(20.0)
    assert promise.excess_risk is None
    assert "20 in squared units of the target" in str(model.release_).replace("\n", " ").replace("  ", "")


def test_error_rate_is_that_of_predict():
    model = logistic(goal=ErrorRate(0.15), fit_intercept=True).fit(X, LABELS)
    assert 1 - model.score(X, LABELS) <= 0.15
    assert "misclassified is at most 0.15" in " ".join(str(model.release_).split())
    assert "misclassified rows" in model.release_.exact[-1]


def test_ties_are_predicted_as_they_were_counted():
    """A row in the middle of its bounds has log odds of zero; in the caller's units rounding would give them a sign."""
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 11, (5_000, 5)).astype(float)
    cells[:2_000] = 5.0
    labels = np.where((cells - 5) @ [1, -1, 0.5, 0.3, -0.2] > 0, "yes", "no")
    signs = set()
    for seed in range(20):
        model = logistic(goal=ErrorRate(0.25, margin=0.6), fit_intercept=False, random_state=seed).fit(cells, labels)
        signs |= set(np.sign(cells @ model.coef_[0] + model.intercept_[0])[:2_000])
        assert not model.decision_function(cells[:2_000]).any()
        assert 1 - model.score(cells, labels) <= 0.25
    assert 1.0 in signs  # plain arithmetic gets some of them wrong
    assert model.decision_function(cells[2_000:]).all()


@pytest.mark.parametrize(("make", "y"), [(ridge, Y), (logistic, LABELS)])
def test_relative_excess_risk(make, y):
    model = make(goal=RelativeExcessRisk(0.3, baseline="null"), max_epsilon=3.0).fit(X, y)
    release = model.release_
    assert release.epsilon_probe > 0
    assert release.epsilon <= release.epsilon_worst_case == 3.0
    assert "0.3 of that of the null model" in release.promise.statement
    assert Release.from_json(release.to_json()) == release


def test_promises_survive_json():
    for model, y in (
        (ridge(goal=MeanSquaredError(20.0, margin=0.5)), Y),
        (logistic(goal=ErrorRate(0.2)), LABELS),
    ):
        release = model.fit(X, y).release_
        again = Release.from_json(release.to_json())
        assert again == release
        assert again.promise == release.promise
        assert str(again) == str(release)


def test_a_goal_is_a_parameter_like_any_other():
    goal = ErrorRate(0.1)
    model = logistic(goal=goal)
    assert model.get_params()["goal"] is goal
    assert clone(model).get_params()["goal"] == goal
    assert "goal=ErrorRate(at_most=0.1" in repr(model)
    assert model.set_params(goal=RelativeExcessRisk(0.2, baseline="null")).goal == RelativeExcessRisk(
        0.2, baseline="null"
    )
    assert pickle.loads(pickle.dumps(goal)) == goal
    assert len({goal, ErrorRate(0.1), ErrorRate(0.2)}) == 2


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (ridge(), Y, "goal="),
        (ridge(excess_risk=0.1, goal=MeanSquaredError(1.0)), Y, "one of them"),
        (ridge(goal=ErrorRate(0.1)), Y, "MeanSquaredError"),
        (logistic(goal=MeanSquaredError(0.1)), LABELS, "ErrorRate"),
        (logistic(goal=0.1), LABELS, "excess_risk"),
        (logistic(goal=ErrorRate(0.1), method="fixed", max_epsilon=1.0), LABELS, "fixed"),
        (logistic(goal=RelativeExcessRisk(0.1, baseline="null"), method="theory"), LABELS, "theory"),
        (ridge(goal=MeanSquaredError(1.0), method="certified"), Y, "certified"),
        (ridge(goal=MeanSquaredError(1.0), on_failure="release_optimum"), Y, "optimum"),
    ],
)
def test_mistakes(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "release_")
