"""A release alone predicts: what its estimator does, for every kind of table, within the target's bounds."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from expost import AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge, Release
from expost.exceptions import InvalidRows
from expost.goals import LogLoss
from expost.goals.squared_errors import R2
from expost.table.encoding import Encoding
from tests.release.model_helpers import AMOUNT, LABELS, released, table

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (2_000, 2))
Y = X @ [2.0, -1.0]


def again(release: Release) -> Release:
    """Return what a file would give back."""
    return Release.from_json(release.to_json())


def plain() -> dict[str, list]:
    """Return columns that every kind of frame can hold."""
    return {
        "age": [10.0, 60.0, 300.0, float("nan")],
        "income": [0.0, 5e5, 2e6, 10.0],
        "area": [10.0, 20.0, None, 30.0],
        "sector": ["public", " private ", None, "public"],
        "town": ["Bern", "Rome", None, "?"],
        "heating": ["gas", "coal", None, "wood"],
        "code": [1, 2, 7, 1],
        "level": ["1", "2", "3+", None],
        "member": [True, False, True, False],
        "owner": ["yes", "no", None, "?"],
    }


@pytest.mark.parametrize("schema", [LABELS, AMOUNT], ids=["labels", "amount"])
def test_every_kind_of_table_is_predicted_alike(schema, tmp_path):
    release, columns = again(released(schema)), plain()
    rows = [list(cells) for cells in zip(*columns.values(), strict=True)]
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pa.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    kinds = [
        columns,
        frame,
        frame[list(reversed(frame.columns))].assign(further="x"),
        pl.DataFrame(columns),
        pa.table(columns),
        rows,
        np.array(rows, dtype=object),
        tmp_path / "rows.csv",
        str(tmp_path / "rows.parquet"),
    ]
    predicted = [release.predict(kind).tolist() for kind in kinds]
    assert all(answer == predicted[0] for answer in predicted)
    assert len(set(predicted[0])) > 1
    if schema is AMOUNT:
        assert min(predicted[0]) >= -20
        assert max(predicted[0]) <= 60
    else:
        assert set(predicted[0]) == {"no", "yes"}


def test_predictions_keep_within_the_bounds_of_the_target():
    release = released(AMOUNT)
    predicted = release.predict(table(), on_invalid="clip")
    scaled = 20 + 40 * (Encoding(AMOUNT).design(table()) @ np.asarray(release.hypothesis))
    assert scaled.min() < -20 < 60 < scaled.max()  # there is something to keep within
    assert np.array_equal(predicted, np.clip(scaled, -20, 60))


def test_probabilities_are_for_models_that_estimate_them():
    rows = table()
    release = released(LABELS, largest_odds=1.0)
    chances = release.predict_proba(rows, on_invalid="clip")
    assert chances.shape == (400, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert chances.min() == pytest.approx(1 / (1 + np.exp(1)))
    assert np.array_equal(chances[:, 1] > 0.5, release.predict(rows, on_invalid="clip") == "yes")
    for other, why in ((released(LABELS), "predicts labels alone"), (released(AMOUNT), "predicts numbers")):
        with pytest.raises(ValueError, match=why):
            other.predict_proba(rows, on_invalid="clip")


@pytest.mark.parametrize("goal", [LogLoss(0.65), R2(0.1)], ids=["labels", "numbers"])
def test_a_fitted_model_and_its_release_say_the_same(goal):
    labels = isinstance(goal, LogLoss)
    columns = {"a": X[:, 0], "b": X[:, 1], "y": np.where(Y > 5, "yes", "no") if labels else Y}
    stated = {"classes": ["no", "yes"]} if labels else {"target_bounds": [-10, 20]}
    schema = {"target": "y", **stated, "columns": {"a": {"bounds": [0, 10]}, "b": {"bounds": [0, 10]}}}
    model = AccuracyFirstModel(schema, goal, random_state=0).fit(columns)
    release = again(model.release_)
    assert np.array_equal(model.predict(columns), release.predict(columns))
    if labels:
        assert np.array_equal(model.predict_proba(columns), release.predict_proba(columns))
        assert release.parameters["largest_odds"] == 4.0


def ridge(**options):
    settings = {"excess_risk": 0.3, "bounds": (0, 10), "target_bounds": (-10.0, 20.0), "random_state": 0, **options}
    return AccuracyFirstRidge(**settings)


def test_a_model_of_plain_columns_agrees_with_its_estimator_within_the_bounds():
    model = ridge(fit_intercept=True).fit(X, Y)
    release = again(model.release_)
    assert release.columns == ()
    assert release.predict(X) == pytest.approx(model.predict(X), abs=1e-4)
    inside = release.predict([[10, 0], [0, 10]])
    assert release.predict([[99, -5], [-7, 1e9]]).tolist() == inside.tolist()  # moved to the nearest bound
    assert release.predict(pd.DataFrame(X, columns=["p", "q"])).tolist() == release.predict(X).tolist()


def test_named_columns_are_found_by_name():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    release = again(ridge().fit(frame, pd.Series(Y, name="height")).release_)
    assert (release.target, release.columns) == ("height", ("a", "b"))
    assert np.array_equal(release.predict(frame[["b", "a"]]), release.predict(X))
    assert np.array_equal(release.predict({"b": X[:, 1], "a": X[:, 0]}), release.predict(X))
    with pytest.raises(ValueError, match="no column 'a'"):
        release.predict({"b": X[:, 1]})


def test_labels_of_a_logistic_model_and_their_probabilities():
    labels = np.where(Y > 5, "late", "early")
    model = AccuracyFirstLogisticRegression(
        excess_risk=0.3, bounds=(0, 10), classes=("early", "late"), random_state=0
    ).fit(X, labels)
    release = again(model.release_)
    sure = np.abs(model.decision_function(X)) > 1e-4
    assert np.array_equal(release.predict(X)[sure], model.predict(X)[sure])
    assert release.predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-4)


class TestComplaints:
    def test_the_first_row_that_cannot_be_read_is_named(self):
        columns = plain()
        columns["sector"] = ["public", "x", "private", "y"]
        columns["age"] = [1, 2, "three", 4]
        with pytest.raises(InvalidRows, match=r"row 2 \(counting from 1\), column 'sector'") as caught:
            released(LABELS).predict(columns)
        assert "'x'" not in str(caught.value)
        assert len(released(LABELS).predict(columns, on_invalid="clip")) == 4
        with pytest.raises(ValueError, match="on_invalid"):
            released(LABELS).predict(columns, on_invalid="drop")

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "x"])
    def test_plain_columns(self, bad):
        release = ridge().fit(X, Y).release_
        with pytest.raises(InvalidRows, match=r"row 2 .*column 'x1'"):
            release.predict([[1.0, 2.0], [3.0, bad]])
        assert len(release.predict([[1.0, 2.0], [3.0, bad]], on_invalid="clip")) == 2

    def test_numbers_of_columns(self):
        with pytest.raises(ValueError, match="3 columns; the model is for 2"):
            ridge().fit(X, Y).release_.predict(np.zeros((2, 3)))
        with pytest.raises(ValueError, match="an array of 10 columns: age, income"):
            released(LABELS).predict(np.zeros((2, 3)))

    def test_a_refusal_holds_no_model(self):
        refused = Release(status="refused", method="auto", epsilon_test=0.1)
        for use in (refused.predict, refused.predict_proba):
            with pytest.raises(ValueError, match="refused: it holds no model"):
                use([[1.0]])
        with pytest.raises(ValueError, match="refused"):
            refused.to_sklearn()

    def test_parameters_of_rows_prepared_by_hand(self):
        with pytest.raises(ValueError, match="how rows were prepared"):
            Release(status="released", method="fixed", hypothesis=[1.0]).predict([[1.0]])


def test_a_release_of_format_1_predicts_as_well():
    raw = json.loads(released(LABELS).to_json())
    for name in ("id", "date", "target", "columns", "schema_fingerprint", "data_fingerprint"):
        del raw[name]
    old = Release.from_json(json.dumps({**raw, "format": 1}))
    assert old.predict(plain()).tolist() == released(LABELS).predict(plain()).tolist()
