"""What the estimators take where nothing is stated, and what they warn of, through ``fit``.

Statistical tests are seeded; what they claim holds but for a share γ of runs, and RARE is their false-alarm rate.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    LogLoss,
    MeanSquaredError,
    RelativeExcessRisk,
    Release,
)
from expost.estimators import curator_view
from expost.exceptions import (
    AccuracyNotReached,
    LargeEpsilonWarning,
    SearchInterrupted,
    StrongRegularizationWarning,
    TargetUnreachable,
)
from expost.mechanisms.objective.chain import ChainSearch
from tests.estimators.helpers import CountingSource
from tests.helpers import at_most_by_chance

RNG = np.random.default_rng(0)
N, WEIGHTS = 6_000, np.array([2.0, -1.0, 0.5, 0.0])
X = RNG.uniform(0, 10, (N, 4))
Y = X @ WEIGHTS + 6 + RNG.normal(size=N)  # far from the middle of its bounds: a constant is needed
LABELS = np.where(Y > 16, "yes", "no")


def ridge(**given):
    return AccuracyFirstRidge(**{"bounds": (0, 10), "target_bounds": (-10, 50), "random_state": 0, **given})


def logistic(**given):
    return AccuracyFirstLogisticRegression(**{"bounds": (0, 10), "classes": ("no", "yes"), "random_state": 0, **given})


GOALS = [
    (ridge, R2(0.6), lambda model: model.score(X, Y) >= 0.6),
    (ridge, MeanSquaredError(16.0), lambda model: np.mean((model.predict(X) - Y) ** 2) <= 16.0),
    (logistic, ErrorRate(0.1), lambda model: model.score(X, LABELS) >= 0.9),
    (logistic, LogLoss(0.35), lambda model: log_loss(LABELS == "yes", model.predict_proba(X)[:, 1]) <= 0.35),
]


@pytest.mark.parametrize(("make", "goal", "met"), GOALS, ids=lambda value: type(value).__name__)
def test_goals_in_peoples_units_need_nothing_but_bounds(make, goal, met):
    """None of 15 runs refuses, and no more than γ allows misses; RARE as everywhere."""
    y = Y if make is ridge else LABELS
    models = [make(goal=goal, random_state=seed).fit(X, y) for seed in range(15)]
    assert sum(not met(model) for model in models) <= at_most_by_chance(15, 0.1)
    for model in models:
        release = model.release_
        assert release.status == "released"
        assert release.epsilon <= release.epsilon_worst_case == 2.0
        assert release.perturbation == "objective"
        assert release.promise.regularization is None
        assert release.promise.statement.startswith("with probability at least 0.9 over the noise, either no model is")
    assert np.mean([model.release_.epsilon for model in models]) < 2


def test_a_stated_regularization_is_a_gradual_release_as_before():
    """A broken default, one that ignored what is stated, would give the same release."""
    free, stated = logistic(goal=ErrorRate(0.2)), logistic(goal=ErrorRate(0.2), regularization=0.001)
    assert free.fit(X, LABELS).release_.perturbation == "objective"
    assert stated.fit(X, LABELS).release_.perturbation == "output"
    assert stated.release_.promise.regularization == 0.001
    spherical = logistic(goal=ErrorRate(0.2), noise="spherical", max_epsilon=None).fit(X, LABELS).release_
    assert (spherical.perturbation, spherical.promise.regularization) == (
        "output",
        pytest.approx(0.1 / (4 / 0.75) ** 2),
    )


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (ridge(goal=R2(0.5), regularization=0.1), Y, "shrink together"),
        (logistic(goal=LogLoss(0.5), perturbation="output"), LABELS, "shrink together"),
        (ridge(goal=LogLoss(0.5)), Y, "LogLoss is for classification"),
        (logistic(goal=R2(0.5)), LABELS, "R2 is for regression"),
        (ridge(goal=MeanSquaredError(901.0)), Y, "costs nothing"),
    ],
)
def test_mistakes_are_found_before_anything_is_drawn(model, y, message):
    source = CountingSource()
    with pytest.raises(ValueError, match=message):
        model.set_params(random_state=source).fit(X, y)
    assert source.drawn == 0


def test_predictions_keep_within_the_targets_bounds():
    model = ridge(goal=R2(0.7)).fit(X, Y)
    far = 1e6 * np.array([np.sign(model.coef_), -np.sign(model.coef_)])
    assert model.predict(far).tolist() == model.predict(np.clip(far, 0, 10)).tolist()
    model.release_ = dataclasses.replace(model.release_, hypothesis=9 * np.asarray(model.release_.hypothesis))
    low, high = (20 + 30 * end for end in model.release_.parameters["predicted_within"])
    assert -10.0 <= low < high <= 50.0
    assert model.predict(far).tolist() == pytest.approx([high, low], rel=1e-12)
    free = {name: value for name, value in model.release_.parameters.items() if name != "predicted_within"}
    model.release_ = dataclasses.replace(model.release_, parameters=free)
    assert model.predict(far).tolist() == [50.0, -10.0]


@pytest.mark.parametrize("options", [{"bounds": None, "feature_bound": 40.0}, {"feature_bound": 3.0}])
def test_rows_in_an_l1_ball(options):
    """Bounds on the ℓ₁ norm are enough, with or without bounds of columns; a row that is clipped does not spoil it."""
    model = ridge(goal=R2(0.5), **options).fit(X, Y)
    assert model.score(X, Y) > 0.5
    assert model.release_.preparation["shape"] == "l1"
    assert model.prepared(X, Y).norm == "l2"


def test_the_intercept_is_there_by_default_and_no_more_shrunk_than_a_column():
    """Without it the mean, far from the middle of the bounds, is out of reach."""
    with_it = ridge(goal=R2(0.7)).fit(X, Y).release_
    weights = with_it.preparation
    assert weights["regularization_constant"] == pytest.approx(max(weights["regularization_per_column"]) / 25)
    with pytest.raises(AccuracyNotReached):
        ridge(goal=MeanSquaredError(8.0), fit_intercept=False, max_epsilon=3.0).fit(X, Y + 20)
    assert ridge(goal=MeanSquaredError(8.0), max_epsilon=3.0).fit(X, Y + 20).release_.status == "released"


def test_probabilities_are_there_for_a_log_loss_only():
    labels, odds = logistic(goal=ErrorRate(0.1)).fit(X, LABELS), logistic(goal=LogLoss(0.35)).fit(X, LABELS)
    assert not hasattr(labels, "predict_proba")
    assert np.abs(np.log(odds.predict_proba(X)[:, 1] / odds.predict_proba(X)[:, 0])).max() <= 4 + 1e-9
    assert hasattr(logistic(goal=ErrorRate(0.1), regularization=0.01), "predict_proba")
    assert (cross_val_score(labels, X, LABELS, scoring="roc_auc", cv=2) > 0.9).all()


class TestTheBudget:
    def test_two_unless_it_is_stated_or_lifted(self):
        options = {"excess_risk": 0.1, "regularization": 0.1, "method": "above_threshold"}
        fits = {stated: ridge(**options, max_epsilon=stated) for stated in ("auto", 4.0, None, math.inf)}
        worst = {stated: model.fit(X[:1000], Y[:1000]).release_.epsilon_worst_case for stated, model in fits.items()}
        assert worst["auto"] == pytest.approx(2)
        assert worst[4.0] == pytest.approx(4)
        assert worst[None] == worst[math.inf] > 4

    def test_a_single_shot_is_never_a_default(self):
        with pytest.raises(ValueError, match="spends exactly max_epsilon; pass it"):
            ridge(method="fixed").fit(X, Y)

    @pytest.mark.parametrize(("make", "goal"), [case[:2] for case in GOALS], ids=lambda value: type(value).__name__)
    def test_what_no_data_set_could_meet_is_said_before_anything_is_spent(self, make, goal):
        source = CountingSource()
        with pytest.raises(
            TargetUnreachable,
            match=r"max_epsilon = 1e-05.*larger max_epsilon.*rows on it can be tried.*Nothing was spent",
        ):
            make(goal=goal, max_epsilon=1e-5, random_state=source).fit(X, Y if make is ridge else LABELS)
        assert source.drawn == 0

    def test_a_lifted_budget_ends_somewhere(self):
        with pytest.raises(AccuracyNotReached) as refusal:
            ridge(goal=R2(0.999), max_epsilon=None).fit(X[:500], Y[:500])
        assert refusal.value.release.epsilon <= refusal.value.release.epsilon_worst_case == 1000.0
        assert refusal.value.release.parameters["reasons"][-1] in str(refusal.value)


class TestWarnings:
    @pytest.mark.parametrize("make", [ridge, logistic])
    def test_a_large_epsilon(self, make):
        y = Y if make is ridge else LABELS
        model = make(excess_risk=0.002, regularization=0.01, method="above_threshold", max_epsilon=None)
        with pytest.warns(LargeEpsilonWarning, match="is large: odds about any row") as caught:
            model.fit(X[:1000], y[:1000])
        assert caught[0].filename == __file__

    @pytest.mark.filterwarnings("error::expost.exceptions.LargeEpsilonWarning")
    def test_no_warning_for_what_was_asked_outright_or_is_small(self):
        ridge(method="fixed", max_epsilon=5.0).fit(X, Y)
        ridge(goal=R2(0.5)).fit(X, Y)

    @pytest.mark.filterwarnings("error::expost.exceptions.LargeEpsilonWarning")
    def test_where_warnings_are_errors_the_release_that_was_paid_for_is_kept(self):
        with pytest.raises(SearchInterrupted, match="LargeEpsilonWarning") as caught:
            ridge(excess_risk=0.002, regularization=0.01, method="above_threshold", max_epsilon=None).fit(
                X[:1000], Y[:1000]
            )
        assert caught.value.release.status == "released"

    def test_a_regularization_that_leaves_a_constant(self):
        """It does: the warning is right, and what it advises is not warned of and fits better. Nothing was drawn."""
        source = CountingSource()
        with (
            pytest.warns(
                StrongRegularizationWarning, match=r"shrinks the model.*Pass regularization = 0\.004"
            ) as caught,
            pytest.raises(TargetUnreachable),
        ):
            ridge(excess_risk=0.01, regularization=0.5, max_epsilon=1e-9, method="theory", random_state=source).fit(
                X, Y
            )
        assert caught[0].filename == __file__
        assert source.drawn == 0
        shrunk = curator_view(ridge(method="fixed", max_epsilon=1.0, regularization=0.5).fit(X, Y), X, Y)
        fine = curator_view(ridge(method="fixed", max_epsilon=1.0, regularization=0.0035).fit(X, Y), X, Y)
        assert np.abs(shrunk.optimum[:-1]).max() < 0.1 * np.abs(fine.optimum[:-1]).max()

    @pytest.mark.filterwarnings("error::expost.exceptions.StrongRegularizationWarning")
    def test_no_default_is_warned_of(self):
        """Whatever the number of columns, and the paper's setting is not either."""
        shot = {"method": "fixed", "max_epsilon": 1.0}
        for options in (
            {"goal": R2(0.5), "max_epsilon": 10.0},
            shot,
            {**shot, "bounds": None, "feature_bound": 1.0, "regularization": 0.005},
        ):
            ridge(**options).fit(X / 20, Y)
        wide = ridge(**shot).fit(np.hstack([X] * 5), Y).release_
        assert wide.promise.regularization == pytest.approx(0.1 / (20 / 0.75) ** 2)


def test_a_relative_goal_is_about_the_best_constant():
    model = ridge(goal=RelativeExcessRisk(0.5), regularization=0.002, intercept_weight=0.5, max_epsilon=10.0)
    many = np.tile(X, (10, 1)), np.tile(Y, 10)
    release = model.fit(*many).release_
    truth = curator_view(model, *many)
    scaled = (many[1] - 20) / 30
    gap = truth.null_excess_risk - scaled.mean() ** 2 / 2
    assert truth.excess_risk <= 0.5 * gap
    assert release.promise.excess_risk <= 0.5 * gap < 0.3 * truth.null_excess_risk  # the null model is far easier
    assert "the best constant" in release.promise.statement


def test_there_is_no_optimum_to_compare_a_goal_in_peoples_units_with():
    with pytest.raises(ValueError, match="nothing was promised about a regularised risk"):
        curator_view(ridge(goal=R2(0.5)).fit(X, Y), X, Y)


def test_the_same_table_with_a_schema_gives_the_same_search(monkeypatch):
    """Bounds alone are a schema of numbers: the same shape, and so the same price for the same first level."""
    schema = {"target": "y", "target_bounds": [-10, 50], "columns": {f"x{j}": {"bounds": [0, 10]} for j in range(4)}}
    table = {**{f"x{j}": X[:, j] for j in range(4)}, "y": Y}
    monkeypatch.setattr(ChainSearch, "_passes", lambda *_: True)
    with_schema = AccuracyFirstModel(schema, R2(0.3), random_state=0).fit(table).release_
    bare = ridge(goal=R2(0.3)).fit(X, Y).release_
    assert with_schema.epsilon_generation == pytest.approx(bare.epsilon_generation, rel=1e-6)
    assert with_schema.epsilon_probe == bare.epsilon_probe > 0
    assert with_schema.parameters["predicted_within"] == bare.parameters["predicted_within"]


@pytest.mark.parametrize("options", [{}, {"bounds": None, "feature_bound": 40.0}, {"feature_bound": 3.0}])
@pytest.mark.parametrize(("make", "goal"), [(ridge, R2(0.5)), (logistic, ErrorRate(0.2)), (logistic, LogLoss(0.5))])
def test_a_release_says_what_its_model_says(make, goal, options):
    """From the release alone, from its JSON and from scikit-learn's parts; a ball clips rows where predict does not."""
    model = make(goal=goal, **options).fit(X, Y if make is ridge else LABELS)
    release = Release.from_json(model.release_.to_json())
    kept = X[(np.abs(X - 5).sum(axis=1) / 5 < 2.9) & (X.sum(axis=1) < 39)] if options else X
    said, known = model.predict(kept), release.predict(kept)
    assert np.mean(said == known) > 0.999 if make is logistic else np.abs(said - known).max() < 1e-3
    assert (known == release.to_sklearn().predict(kept)).mean() > 0.999 or np.abs(
        known - release.to_sklearn().predict(kept)
    ).max() < 1e-9
    if isinstance(goal, LogLoss):
        assert release.predict_proba(kept) == pytest.approx(model.predict_proba(kept), abs=1e-4)
