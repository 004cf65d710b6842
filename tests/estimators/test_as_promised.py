"""What a fitted estimator says of rows is what its release says of them, and so what the promise is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import log_loss, mean_squared_error, r2_score

from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstRidge,
    ErrorRate,
    LogLoss,
    MeanSquaredError,
    RelativeExcessRisk,
    Release,
)
from expost.estimators import gradient_path
from expost.exceptions import InvalidRows
from expost.release.scoring import scorer_of
from expost.solve.losses import HuberLoss, SmoothedHingeLoss
from tests.cli.helpers import call
from tests.estimators.helpers import Loose, LooseSquares

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 3, (20_000, 2))  # half of each column beyond its bounds, and three quarters of the rows
SIGNAL = np.clip(X, -1, 1) @ [1.0, -0.5]
LABELS = np.where(SIGNAL > 0, "yes", "no")
Y = SIGNAL + RNG.normal(0, 0.05, len(X))
GIVEN = {"bounds": 1.0, "max_epsilon": 10.0, "random_state": 0}


def logistic(**options: Any) -> AccuracyFirstLogisticRegression:
    return AccuracyFirstLogisticRegression(**{**GIVEN, "classes": ("no", "yes"), **options})


def ridge(**options: Any) -> AccuracyFirstRidge:
    return AccuracyFirstRidge(**{**GIVEN, "target_bound": 1.6, **options})


CLASSIFIERS = [
    {"goal": ErrorRate(0.1)},
    {"goal": ErrorRate(0.2), "delta": 1e-6},
    {"goal": ErrorRate(0.2), "regularization": 0.01},
    {"goal": ErrorRate(0.2), "feature_bound": 1.0},
    {"goal": LogLoss(0.4)},
    {"goal": LogLoss(0.5), "delta": 1e-6, "perturbation": "descent"},
    {"goal": RelativeExcessRisk(0.5)},
    {"excess_risk": 0.1},
    {"excess_risk": 0.1, "perturbation": "output", "fit_intercept": False},
    {"excess_risk": 0.1, "loss": SmoothedHingeLoss(0.5)},
]
REGRESSORS = [
    {"goal": R2(0.7)},
    {"goal": R2(0.7), "delta": 1e-6},
    {"goal": R2(0.3), "bounds": None, "feature_bound": 1.0},
    {"goal": MeanSquaredError(0.1)},
    {"goal": MeanSquaredError(0.2), "regularization": 0.01},
    {"goal": RelativeExcessRisk(0.5)},
    {"excess_risk": 0.05},
    {"excess_risk": 0.05, "loss": HuberLoss(0.5)},
]


@pytest.mark.parametrize("options", CLASSIFIERS, ids=str)
def test_labels_are_those_of_the_release(options):
    model = logistic(**options).fit(X, LABELS)
    release = Release.from_json(model.release_.to_json())
    assert np.array_equal(model.predict(X), release.predict(X))
    assert np.array_equal(model.decision_function(X), scorer_of(release).margins(X))
    assert model.score(X, LABELS) == np.mean(model.predict(X) == LABELS)
    if hasattr(model, "predict_proba"):
        assert np.array_equal(model.predict_proba(X), release.predict_proba(X))
    else:
        with pytest.raises(ValueError, match="predicts labels alone"):
            release.predict_proba(X)
    goal = options.get("goal")
    if isinstance(goal, ErrorRate):
        assert np.mean(model.predict(X) != LABELS) <= goal.at_most
    if isinstance(goal, LogLoss):
        assert log_loss(LABELS == "yes", model.predict_proba(X)[:, 1]) <= goal.at_most


@pytest.mark.parametrize("options", REGRESSORS, ids=str)
def test_numbers_are_those_of_the_release(options):
    model = ridge(**options).fit(X, Y)
    assert np.array_equal(model.predict(X), Release.from_json(model.release_.to_json()).predict(X))
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)), abs=1e-5)  # targets are rounded
    goal = options.get("goal")
    if isinstance(goal, R2):
        assert r2_score(Y, model.predict(X)) >= goal.at_least
    if isinstance(goal, MeanSquaredError):
        assert mean_squared_error(Y, model.predict(X)) <= goal.at_most


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 4),
    bounded=st.booleans(),
    feature_bound=st.sampled_from([None, 0.3, 1.0, 7.0]),
    intercept=st.booleans(),
    labels=st.booleans(),
    chained=st.booleans(),
    on_invalid=st.sampled_from(["error", "clip"]),
)
def test_any_rows_and_any_bounds(seed, width, bounded, feature_bound, intercept, labels, chained, on_invalid):
    rng = np.random.default_rng(seed)
    low = rng.normal(0, 10, width)
    bounds = (low, low + 10.0 ** rng.uniform(-3, 3, width)) if bounded else None
    rows = np.mean(bounds, axis=0) + np.ptp(bounds, axis=0) * rng.normal(0, 1, (50, width)) if bounded else None
    rows = rng.normal(0, 2, (50, width)) if rows is None else rows
    if on_invalid == "clip":
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[rng.random(rows.shape) < 0.1] = np.inf
    goal = {"goal": (Loose(0.99) if labels else LooseSquares(95.0)), "max_epsilon": None}
    options = {
        "bounds": bounds,
        "feature_bound": feature_bound or (None if bounded else 2.0),
        "fit_intercept": intercept,
        "on_invalid": on_invalid,
        "random_state": seed,
        **(goal if chained else {"method": "fixed", "max_epsilon": 5.0}),
    }
    y = rng.integers(0, 2, 50) if labels else rng.normal(0, 20, 50)
    model = logistic(**options, classes=(0, 1)) if labels else ridge(**{**options, "target_bound": 10.0})
    model.fit(rows, y)
    said = model.release_.predict(rows, on_invalid=on_invalid)
    assert np.array_equal(model.predict(rows), said)
    bounded_rows = model.prepared(rows, np.zeros(50, dtype=int)).x / 2.0**20
    margins = bounded_rows @ np.asarray(model.release_.hypothesis)
    within = model.release_.parameters.get("predicted_within", (-1.0, 1.0))
    assert np.array_equal(margins > 0, said == 1) if labels else np.allclose(np.clip(margins, *within) * 10, said)
    exported = model.release_.to_sklearn()
    if labels:
        sure = np.abs(margins) > 1e-9
        assert np.array_equal(exported.predict(rows)[sure], said[sure])
        assert exported.decision_function(rows) == pytest.approx(margins, abs=1e-9)
    else:
        assert exported.predict(rows) == pytest.approx(said, abs=1e-8)


def test_a_row_is_rounded_whatever_the_others_are():
    """One cell that is missing sends all rows through another branch of the same arithmetic."""
    release = ridge(excess_risk=0.05).fit(X, Y).release_
    beside = np.vstack([X, [[np.nan, 0.0]]])
    assert np.array_equal(release.predict(X), release.predict(beside, on_invalid="clip")[:-1])


class TestWhateverHoldsTheRows:
    def test_frames_lists_and_dask(self):
        da = pytest.importorskip("dask.array")
        model = logistic(goal=ErrorRate(0.1)).fit(X, LABELS)
        expected = model.release_.predict(X)
        for rows in (X.tolist(), X.astype(object), np.asfortranarray(X), da.from_array(X, chunks=(7_000, 1))):
            assert np.array_equal(model.predict(rows), expected)
        chunks = da.from_array(X, chunks=(5_000, 2))
        assert logistic(goal=ErrorRate(0.1)).fit(chunks, da.from_array(LABELS, chunks=5_000)).score(X, LABELS) >= 0.9

    def test_a_frame_and_the_command_line(self, tmp_path, capsys):
        frame = pd.DataFrame(X, columns=["a", "b"])
        model = ridge(goal=R2(0.7)).fit(frame, pd.Series(Y, name="y"))
        frame[:200].to_csv(tmp_path / "rows.csv", index=False)
        (tmp_path / "m.json").write_text(model.release_.to_json())
        lines = call(capsys, "predict", tmp_path / "m.json", tmp_path / "rows.csv").out.split()
        assert lines[0] == "y"
        assert [float(line) for line in lines[1:]] == model.predict(frame[:200]).tolist()


class TestInvalidRows:
    ROWS = ([[0.5, float("nan")], [float("-inf"), 0.5]], [[0.5, 0.0], [-1.0, 0.5]])

    def test_clipped_ones_are_predicted_as_they_were_fitted(self):
        for model in (
            logistic(goal=ErrorRate(0.1), on_invalid="clip").fit(X, LABELS),
            ridge(goal=R2(0.7), on_invalid="clip").fit(X, Y),
        ):
            bad, mended = (model.predict(rows).tolist() for rows in self.ROWS)
            assert bad == mended
            assert model.predict([["?", 0.1], [0.3], "no row"]).shape == (3,)

    def test_others_raise_and_show_nothing(self):
        model = ridge(goal=R2(0.7)).fit(X, Y)
        with pytest.raises(InvalidRows, match=r"row 1.*missing, infinite or no number"):
            model.predict(self.ROWS[0])

    def test_targets_are_scored_as_they_were_fitted(self):
        model = ridge(goal=R2(0.7)).fit(X, Y)
        far = np.where(Y > 1, 1e6, Y)
        assert model.score(X, far) == model.score(X, np.minimum(far, 1.6)) > 0.7
        classifier = logistic(goal=ErrorRate(0.1), on_invalid="clip").fit(X, LABELS)
        unknown = np.where(LABELS == "no", "?", LABELS)
        assert classifier.score(X, unknown) == classifier.score(X, LABELS) >= 0.9
        half = np.arange(len(X)) % 2
        assert classifier.score(X, LABELS, half) == classifier.score(X[1::2], LABELS[1::2])


def test_a_path_of_models_predicts_in_the_tables_units():
    table = {"x": X[:, 0], "y": 50 + 10 * np.clip(X[:, 0], -1, 1), "late": LABELS}
    columns = {"columns": {"x": {"bounds": [-1, 1]}}}
    numbers = {"target": "y", "target_bounds": [30, 70], **columns}
    *_, last = gradient_path(table, numbers, random_state=0)
    assert np.abs(last.predict({"x": [-1.0, 0.0, 9.0]}) - [40, 50, 60]).max() < 3
    classes = {"target": "late", "classes": ["no", "yes"], **columns}
    *_, last = gradient_path(table, classes, probabilities=True, random_state=0)
    chances = last.predict_proba({"x": [-1.0, 1.0]})
    assert chances[0, 1] < 0.3 < 0.7 < chances[1, 1]
    *_, last = gradient_path(table, classes, random_state=0)
    with pytest.raises(ValueError, match="predicts labels alone"):
        last.predict_proba({"x": [0.0]})
