"""One strange cell in ``fit`` and ``predict``: other rows are as they were, and no cell is shown."""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from expost import AccuracyFirstRidge
from expost.estimators.base import COUNTED_WIDTH
from expost.exceptions import InferredClassesWarning, InvalidRows
from tests.estimators.helpers import classification_data, loose_logistic, loose_ridge, regression_data

N = 2000
SIGNS = [1.0 if i % 2 else -1.0 for i in range(N)]


def clip_ridge(**changes):
    return AccuracyFirstRidge(
        **{
            "excess_risk": 0.05,
            "regularization": 0.1,
            "bounds": (0, 1),
            "target_bound": 1.0,
            "on_invalid": "clip",
            "max_epsilon": 0.5,
            "perturbation": "covariance",
            "random_state": 0,
            **changes,
        }
    )


def with_first(values, cell):
    return [cell, *values[1:]]


def test_a_text_cell_does_not_make_text_of_booleans():
    X = [[bool(i % 2)] for i in range(N)]
    plain, spoilt, none = (clip_ridge().fit(rows, SIGNS) for rows in (X, with_first(X, ["x"]), with_first(X, [None])))
    assert plain.release_.epsilon == spoilt.release_.epsilon
    assert spoilt.release_.hypothesis == none.release_.hypothesis
    assert spoilt.coef_ == pytest.approx(plain.coef_, abs=0.01)
    assert spoilt.coef_[0] > 0.5


def test_a_text_cell_does_not_make_text_of_a_boolean_target():
    X = np.array(SIGNS)[:, None]
    y = [sign > 0 for sign in SIGNS]
    options = {"bounds": 1.0, "target_bound": None, "target_bounds": (0, 1)}
    plain, spoilt = (clip_ridge(**options).fit(X, target) for target in (y, with_first(y, "x")))
    assert spoilt.coef_ == pytest.approx(plain.coef_, abs=0.01)


@pytest.mark.parametrize(
    ("labels", "cell"),
    [
        ((0, 1), "x"),
        ((0, 1), [1]),
        ((False, True), "x"),
        (("no\0", "yes"), None),
        (("no", "yes"), 7),
        ((0.5, 1.5), 2j),
    ],
    ids=repr,
)
def test_a_strange_label_leaves_others_alone(labels, cell):
    X, truth = classification_data(N)
    y = [labels[int(positive)] for positive in truth]
    model = loose_logistic(classes=labels, on_invalid="clip")
    like = model.fit(X, with_first(y, labels[int(cell == [1])])).release_
    assert model.fit(X, with_first(y, cell)).release_ == like
    assert set(model.predict(X)) <= set(labels)


def test_a_list_in_a_cell_is_missing():
    X = [[0.5, 0.25] for _ in range(N)]
    model = clip_ridge(method="fixed")
    assert model.fit(with_first(X, [0.5, 0.5]), SIGNS).release_ != model.fit(X, SIGNS).release_  # one cell does show
    like = model.fit(with_first(X, [0.5, None]), SIGNS).release_
    assert model.fit(with_first(X, [0.5, [0.25]]), SIGNS).release_ == like
    assert model.fit(with_first(X, [0.5]), SIGNS).release_ == like
    assert model.fit(with_first(X, [0.5, np.ones(2), 7.0]), SIGNS).release_ == like


def test_text_beside_float32_leaves_their_precision_alone():
    X = [[np.float32(0.6814728)] for _ in range(N)]  # 0.68147277832…, which as a row is one unit less than 0.6814728
    model = clip_ridge(bounds=(0, 3), method="fixed")
    like = model.fit(with_first(X, [0.5]), SIGNS).release_
    assert model.fit(with_first(X, ["0.5"]), SIGNS).release_ == like
    typed = np.array([[0.5], *X[1:]], dtype=np.float32)
    assert model.fit(typed, SIGNS).release_.hypothesis == like.hypothesis


def shown(error):
    return "".join(traceback.format_exception_only(error)) + repr(error.__context__) + repr(error.__cause__)


@pytest.mark.parametrize("cell", [3 + 4j, np.complex128(3 + 4j), "Ms Smith", {"a": 31415.5}, [31415.5]], ids=repr)
@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize("container", ["list", "array", "pandas"])
def test_no_error_quotes_a_cell(cell, where, container):
    X = np.full((20, 2), 0.27182, dtype=object)
    y = np.full(20, 0.27182, dtype=object)
    if where == "X":
        X[3, 1] = cell
    else:
        y[3] = cell
    if container == "list":
        X, y = X.tolist(), y.tolist()
    elif container == "pandas":
        X, y = pd.DataFrame(X, columns=["a", "b"]), pd.Series(y)
    with pytest.raises(InvalidRows, match="1 of 20 rows cannot be used") as caught:
        loose_ridge().fit(X, y)
    for secret in ("27182", "Smith", "31415", "3+4j"):
        assert secret not in shown(caught.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose_ridge(on_invalid="clip").fit(X, y)


def test_predict_shows_no_cell_and_warns_of_none():
    X, y = regression_data()
    for model in (loose_ridge().fit(X, y), loose_logistic().fit(X, y > 0)):
        for cell in (3 + 4j, np.complex128(3 + 4j), "Ms Smith", None, np.nan):
            rows = [[0.27182, 0.5, 0.5], [0.5, cell, 0.5]]
            for form in (rows, np.array(rows, dtype=object)):
                with pytest.raises(ValueError, match=r"row 2 .* is missing, infinite or no number") as caught:
                    model.predict(form)
                for secret in ("27182", "Smith", "3+4j"):
                    assert secret not in shown(caught.value)
        with pytest.raises(ValueError, match="rows differ in length"):
            model.predict([[0.5, 0.5, 0.5], [0.5]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(model.predict([[1e308, 1e308, 1e308], ["0.5", True, 0]])) == 2


def test_the_width_of_a_list_is_stated_or_that_of_most_rows():
    X, y = regression_data(20)
    rows = X.tolist()
    like = loose_ridge(on_invalid="clip").fit(X, y).release_
    counted = loose_ridge(on_invalid="clip").fit(rows, y).release_
    assert counted.hypothesis == like.hypothesis
    assert counted.claims == (*like.claims, COUNTED_WIDTH)
    assert COUNTED_WIDTH not in like.claims
    stated = loose_ridge(on_invalid="clip", bounds=([-1] * 3, [1] * 3)).fit(rows, y).release_
    assert stated == like
    assert loose_ridge().fit(rows, y).release_.claims == ()  # rows of another length would have been an error
    halves = [row[: 1 + i % 2] for i, row in enumerate(rows)]
    with pytest.raises(ValueError, match="state the number of columns by bounds"):
        loose_ridge(on_invalid="clip").fit(halves, y)
    loose_ridge(on_invalid="clip", bounds=([-1] * 2, [1] * 2)).fit(halves, y)


def test_labels_of_several_kinds_cannot_be_inferred():
    X, _ = regression_data(20)
    y = ["Ms Smith", 31415.5] * 10
    for mode in ("error", "clip"):
        with pytest.raises(ValueError, match="labels of several kinds") as caught:
            loose_logistic(classes=None, on_invalid=mode).fit(X, y)
        assert "Smith" not in shown(caught.value)
        assert "31415" not in shown(caught.value)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([False, True], "b"), ([0, 1], "i"), ([0.0, 1.0], "f"), (["no", "yes"], "U"), ([b"n", b"y"], "S")],
)
def test_inferred_classes_keep_their_type(labels, kind):
    X, _ = regression_data(20)
    for form in (list, np.array, lambda cells: np.array(cells, dtype=object), pd.Series, pa.array, pl.Series):
        with pytest.warns(InferredClassesWarning):
            model = loose_logistic(classes=None).fit(X, form(labels * 10))
        assert model.classes_.tolist() == labels
        assert model.classes_.dtype.kind == kind


def test_a_list_of_columns_of_one_cell_as_target():
    X, y = regression_data(20)
    like = loose_ridge(on_invalid="clip").fit(X, y).release_
    assert loose_ridge(on_invalid="clip").fit(X, [[cell] for cell in y]).release_ == like


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_polars_and_arrow_frames(make):
    X, y = regression_data()
    target = y if make is loose_ridge else y > 0
    like = make().fit(X, target)
    for frame in (
        pl.DataFrame(X, schema=["a", "b", "c"]),
        pa.RecordBatch.from_pandas(pd.DataFrame(X, columns=list("abc"))),
    ):
        for mode in ("error", "clip"):
            model = make(on_invalid=mode).fit(frame, pl.Series(target))
            assert model.release_.hypothesis == like.release_.hypothesis
            assert list(model.feature_names_in_) == ["a", "b", "c"]
            assert np.allclose(model.predict(frame).astype(float), like.predict(X).astype(float))
