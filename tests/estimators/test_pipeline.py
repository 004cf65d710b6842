"""Pipelines: what learned from the rows in front of a model is found by types alone, recorded, and warned about."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from expost import (
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    PublicBoundsScaler,
    Release,
)
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.estimators.pipeline import learned_in
from expost.exceptions import NotPrivateWarning
from expost.noise.source import SecureSource, SeededSource

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(400, 3))
y = X @ [2.0, -1.0, 0.5]


def ridge(**changes):
    settings = {"method": "fixed", "max_epsilon": 1.0, "bounds": (-10, 10), "target_bounds": (-15, 30)}
    return AccuracyFirstRidge(**{**settings, "random_state": 0, **changes})


def learned(release):
    return [text for text in release.not_covered if "fitted to the same rows" in text]


class Mine(TransformerMixin, BaseEstimator):
    """A transformer nobody knows anything about."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.asarray(X)


LEARN = {
    "a scaler": (StandardScaler(), ["'x' (StandardScaler)"]),
    "extremes": (MinMaxScaler(), ["'x' (MinMaxScaler)"]),
    "a projection": (PCA(2), ["'x' (PCA)"]),
    "one of somebody's own": (Mine(), ["'x' (Mine)"]),
    "means for missing cells": (SimpleImputer(), ["'x' (SimpleImputer)"]),
    "a pipeline in a pipeline": (
        make_pipeline(Normalizer(), StandardScaler()),
        ["'x.standardscaler' (StandardScaler)"],
    ),
    "a union": (FeatureUnion([("a", Normalizer()), ("b", PCA(2))]), ["'x.b' (PCA)"]),
    "columns": (
        ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])], remainder=MinMaxScaler()),
        ["'x.a' (StandardScaler)", "'x.remainder' (MinMaxScaler)"],
    ),
}
LEARN_NOTHING = {
    "public bounds": PublicBoundsScaler(bounds=(0, 10)),
    "each row by itself": Normalizer(),
    "nothing": "passthrough",
    "constants for missing cells": SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
    "columns": ColumnTransformer([("a", PublicBoundsScaler(bounds=(0, 10)), [0, 1]), ("b", "drop", [2])]),
}


@pytest.mark.parametrize("kind", LEARN)
def test_what_has_learned_is_recorded_and_warned_about(kind):
    step, names = LEARN[kind]
    with pytest.warns(NotPrivateWarning, match="not paid for.*Use PublicBoundsScaler") as noted:
        model = Pipeline([("x", step), ("model", ridge())]).fit(X, y)[-1]
    assert len(noted) == 1
    assert learned(model.release_) == [
        f"step {name} in front of the model was fitted to the same rows: what it learned from them is not paid for"
        for name in names
    ]
    assert Release.from_json(model.release_.to_json()).not_covered == model.release_.not_covered


@pytest.mark.parametrize("kind", LEARN_NOTHING)
def test_what_learns_nothing_is_not_complained_about(kind):
    model = Pipeline([("x", LEARN_NOTHING[kind]), ("model", ridge())]).fit(X, y)[-1]
    assert learned(model.release_) == []
    assert model.release_.claims == ridge().fit(X, y).release_.claims


def test_categories_that_are_stated_are_public_and_those_found_in_the_rows_are_not():
    stated = [["own", "rent"]]
    assert learned_in("x", OneHotEncoder(categories=stated)) == learned_in("x", OrdinalEncoder(categories=stated)) == []
    assert learned_in("x", OneHotEncoder()) == ["'x' (OneHotEncoder)"]
    assert learned_in("x", OneHotEncoder(categories=stated, min_frequency=5)) == ["'x' (OneHotEncoder)"]
    assert learned_in("x", OneHotEncoder(categories=stated, max_categories=2)) == ["'x' (OneHotEncoder)"]
    assert learned_in("x", object()) == ["'x' (object)"]


def test_a_function_is_a_claim():
    """Whether it looks at one row at a time cannot be told from its type."""
    model = Pipeline([("logs", FunctionTransformer(np.log1p)), ("model", ridge())]).fit(X, y)[-1]
    assert model.release_.claims[-1] == "the function of step 'logs' in front of the model works on each row by itself"
    assert learned(model.release_) == []


def test_a_target_s_transformer():
    with pytest.warns(NotPrivateWarning, match="transformer of the target"):
        scaled = TransformedTargetRegressor(ridge(target_bounds=(-5, 5)), transformer=StandardScaler()).fit(X, y)
    assert len(learned(scaled.regressor_.release_)) == 1


def test_a_pipeline_around_something_that_copies_the_model():
    labels = np.where(y > 7, "yes", "no")
    inner = AccuracyFirstLogisticRegression(
        method="fixed", perturbation="output", max_epsilon=1.0, bounds=(-10, 10), classes=(0, 1), random_state=0
    )
    with pytest.warns(NotPrivateWarning, match="standardscaler"):
        outer = make_pipeline(StandardScaler(), OneVsRestClassifier(inner)).fit(X, labels)
    assert len(learned(outer[-1].estimators_[0].release_)) == 1


def test_a_search_over_parameters():
    search = GridSearchCV(ridge(), {"regularization": [0.1, 1.0]}, cv=2).fit(X, y)
    assert any("parameters were chosen by GridSearchCV" in text for text in search.best_estimator_.release_.not_covered)
    alone = ridge().fit(X, y).release_
    assert not any("GridSearchCV" in text for text in alone.not_covered)
    # what was found about one fit is not found about the next
    assert learned(alone) == []


def test_a_table_with_a_schema_behind_a_pipeline():
    frame = pd.DataFrame(make_survey(3000))
    numbers = ColumnTransformer(
        [("scaled", StandardScaler(), ["floor_area"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(0.25), on_invalid="clip", random_state=0)
    with pytest.warns(NotPrivateWarning, match="'columns.scaled'"):
        fitted = Pipeline([("columns", numbers), ("model", model)]).fit(frame)[-1]
    assert len(learned(fitted.release_)) == 1


def test_the_warning_comes_before_anything_is_spent(monkeypatch):
    drawn = []
    for source in (SecureSource, SeededSource):
        monkeypatch.setattr(source, "words", lambda *_: drawn.append(True))
    with pytest.raises(NotPrivateWarning):  # warnings are errors here
        make_pipeline(StandardScaler(), ridge()).fit(X, y)
    assert drawn == []


def test_rows_scaled_by_hand_look_like_any_others():
    """The limit of what can be found, so that nobody believes in more."""
    assert learned(ridge().fit(StandardScaler().fit_transform(X), y).release_) == []


def test_columns_are_chosen_by_declared_types_which_are_public():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    chosen = ColumnTransformer([("all", PublicBoundsScaler(bounds=(0, 10)), make_column_selector(dtype_include=float))])
    assert learned(make_pipeline(chosen, ridge()).fit(frame, y)[-1].release_) == []
