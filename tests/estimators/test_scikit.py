"""Life among scikit-learn's tools: pipelines, searches, frames with names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    PredictionErrorDisplay,
    RocCurveDisplay,
    get_scorer,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    ErrorRate,
    LogLoss,
    PublicBoundsScaler,
    Schema,
)
from expost.estimators import gradient_path
from expost.solve.losses import SmoothedHingeLoss
from tests.estimators.helpers import CountingSource, classification_data, loose_logistic, loose_ridge, regression_data
from tests.estimators.model_helpers import AMOUNT, LABELS as CLASSES, model as of_table, table

X, Y = regression_data()
LABELS = Y > 0
NAMES = ["age", "income", "debt"]
BOUNDS = {"income": (-1, 1), "age": (-2, 1), "debt": (-1, 3)}  # not in the order of the columns

FRAMES = {
    "pandas": lambda: pd.DataFrame(X, columns=NAMES),
    "pandas nullable": lambda: pd.DataFrame(X, columns=NAMES).astype("Float64"),
    "pandas arrow": lambda: pd.DataFrame(X, columns=NAMES).astype(pd.ArrowDtype(pa.float64())),
    "pyarrow": lambda: pa.table(dict(zip(NAMES, X.T.copy(), strict=True))),
}
BOTH = pytest.mark.parametrize(("make", "y"), [(loose_ridge, Y), (loose_logistic, LABELS)])


@BOTH
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("on_invalid", ["error", "clip"])
def test_frames_give_names_and_the_same_model(make, y, frame, on_invalid):
    model = make(bounds=BOUNDS, on_invalid=on_invalid).fit(frame(), y)
    assert list(model.feature_names_in_) == NAMES
    assert model.release_.parameters["columns"] == tuple(NAMES)
    assert model.release_.preparation["bounds"]["lower"] == (-2.0, -1.0, -1.0)
    plain = make(bounds=([-2, -1, -1], [1, 1, 3])).fit(X, y)
    assert plain.release_.hypothesis == model.release_.hypothesis
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    # not to the last bit: NumPy sums in another order where columns lie together in memory
    np.testing.assert_allclose(model.predict(frame()).astype(float), plain.predict(X).astype(float), atol=1e-12)


@pytest.mark.parametrize(
    "target",
    [pd.Series(Y), pa.array(Y), pa.chunked_array([Y]), Y.tolist(), Y.astype(object)],
    ids=lambda y: str(type(y)),
)
def test_forms_of_targets(target):
    assert loose_ridge().fit(X, target).release_.hypothesis == loose_ridge().fit(X, Y).release_.hypothesis


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        list,
        pd.Series,
        lambda text: pd.Series(text, dtype="category"),
        lambda text: pd.Series(text, dtype=object),
        lambda text: np.asarray(text, dtype=object),
        pa.array,
    ],
)
def test_forms_of_labels(form):
    labels = np.where(LABELS, "yes", "no").tolist()
    model = loose_logistic(classes=("no", "yes")).fit(X, form(labels))
    assert model.release_.hypothesis == loose_logistic().fit(X, LABELS).release_.hypothesis
    assert set(model.predict(X)) <= {"no", "yes"}


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(X, columns=NAMES)
    model = loose_ridge().fit(frame, Y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(frame.rename(columns={"age": "height"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_complaints_name_the_column():
    frame = pd.DataFrame(X.copy(), columns=NAMES)  # older versions of pandas would write to X
    frame.loc[[3, 5], "income"] = np.nan
    with pytest.raises(ValueError, match=r"2 of 400 rows.*income \(2\)"):
        loose_ridge().fit(frame, Y)


def test_a_pipeline_with_public_bounds():
    wide = X * [10, 1, 5] + [5, 0, 0]
    scaler = PublicBoundsScaler(bounds=([-5, -1, -5], [15, 1, 5]))
    pipeline = make_pipeline(scaler, loose_ridge(bounds=1.0)).fit(wide, Y)
    alone = loose_ridge(bounds=([-5, -1, -5], [15, 1, 5])).fit(wide, Y)
    np.testing.assert_allclose(pipeline.predict(wide), alone.predict(wide), atol=1e-4)
    assert pipeline[-1].release_.epsilon == alone.release_.epsilon


@BOTH
def test_parameters_can_be_read_set_and_cloned(make, y):
    model = make()
    changed = model.get_params()
    changed.update(excess_risk=20.0, bounds=2.0)
    assert model.set_params(**changed) is model
    assert model.get_params() == changed
    assert clone(model).get_params() == changed
    assert clone(model).fit(X, y).release_ == model.fit(X, y).release_
    with pytest.raises(ValueError, match="Invalid parameter 'alpha'"):
        model.set_params(alpha=1.0)


@BOTH
def test_fitting_changes_no_argument(make, y):
    model = make(bounds=[[-1, -1, -1], [1, 1, 1]])
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(X, y)
    assert {name: repr(value) for name, value in model.get_params().items()} == before


@BOTH
def test_cross_validation_and_grid_search(make, y):
    scores = cross_val_score(make(), X, y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    grid = GridSearchCV(make(), {"regularization": [0.5, 2.0], "fit_intercept": [False, True]}, cv=2).fit(X, y)
    assert set(grid.best_params_) == {"regularization", "fit_intercept"}
    assert grid.best_estimator_.release_.status == "released"
    assert grid.predict(X).shape == (400,)


def test_cross_validated_probabilities():
    X, labels = classification_data()
    found = cross_val_predict(loose_logistic(classes=(0, 1)), X, labels.astype(int), cv=3, method="predict_proba")
    assert found.shape == (400, 2)


@pytest.mark.parametrize("on_invalid", ["error", "clip"])
@pytest.mark.parametrize("outer", [BaggingClassifier, OneVsRestClassifier, VotingClassifier], ids=lambda o: o.__name__)
def test_who_passes_labels_as_numbers_is_told_to_state_them_so(outer, on_invalid):
    """By the type of the labels, which is public: before anything is spent, also where cells are clipped."""
    X, labels = classification_data()
    y, table = np.where(labels, "aye", "nay"), pd.DataFrame(X, columns=list("abcd")[: X.shape[1]])
    schema = {"target": "y", "columns": {name: {"bounds": [-1, 1]} for name in table}}

    def fit(model, rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outer([("one", model)]) if outer is VotingClassifier else outer(model)
            return found.fit(rows, y)

    def whole(classes):
        stated = {"on_invalid": on_invalid, "max_epsilon": 50.0, "random_state": 0}
        return AccuracyFirstModel(schema | {"classes": classes}, LogLoss(0.68), **stated)

    def columns(classes):
        return loose_logistic(classes=classes, on_invalid=on_invalid)

    both = [(columns, X), (whole, table)] if outer is not BaggingClassifier else [(columns, X)]
    for make, rows in both:
        with pytest.raises(ValueError, match=r"classes are \(0, 1\) then") as told:
            fit(make(("nay", "aye")), rows)
        assert "Nothing was spent" in told.value.__notes__
        assert set(fit(make((0, 1)), rows).predict(rows)) <= {"aye", "nay"}


def test_scorers_know_which_class_is_positive():
    labels = np.where(LABELS, "aye", "nay")  # alphabetically, the positive one is first
    good = {"excess_risk": 0.05, "regularization": 0.01, "failure_probability": 0.01}
    model = loose_logistic(classes=("nay", "aye"), **good).fit(X, labels)
    assert get_scorer("accuracy")(model, X, labels) > 0.7
    assert get_scorer("neg_log_loss")(clone(model).set_params(classes=("aye", "nay")).fit(X, labels), X, labels) > -1
    probability = model.predict_proba(X)
    assert model.classes_.tolist() == ["aye", "nay"]
    assert probability[labels == "aye", 0].mean() > probability[labels == "nay", 0].mean()


def test_areas_under_the_curve_are_the_same_whichever_class_is_positive():
    # scikit-learn takes the label that sorts last to be the positive one
    labels = np.where(LABELS, "high", "low")
    good = {"excess_risk": 0.05, "regularization": 0.01, "failure_probability": 0.01}
    for classes in (("low", "high"), ("high", "low")):
        model = loose_logistic(classes=classes, **good)
        assert cross_val_score(model, X, labels, scoring="roc_auc", cv=2).min() > 0.7
        assert CalibratedClassifierCV(model, cv=2).fit(X, labels).score(X, labels) > 0.7
    schema = {
        "target": "y",
        "classes": ["low", "high"],
        "columns": {"a": {"bounds": [-1, 1]}, "b": {"bounds": [-1, 1]}},
    }
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    whole = AccuracyFirstModel(schema, LogLoss(0.68), max_epsilon=10.0, random_state=0)
    assert cross_val_score(whole, table, labels, scoring="roc_auc", cv=2).min() > 0.6
    fitted = whole.fit(table, labels)
    assert fitted.classes_.tolist() == ["high", "low"]
    np.testing.assert_array_equal(fitted.predict_proba(table)[:, ::-1], fitted.release_.predict_proba(table))
    assert fitted.predict(table).tolist() == fitted.release_.predict(table).tolist()


def test_kinds_and_tags():
    assert is_regressor(loose_ridge())
    assert is_classifier(loose_logistic())
    for model in (loose_ridge(), loose_logistic()):
        tags = model.__sklearn_tags__()
        assert not tags.input_tags.sparse
        assert tags.target_tags.required
    assert not loose_logistic().__sklearn_tags__().classifier_tags.multi_class


def test_a_column_vector_as_target_warns_like_scikit_learn():
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="column-vector y"):
        loose_ridge().fit(X, Y[:, None])


def test_a_single_row_is_refused_in_words_scikit_learn_knows():
    for made, y in ((loose_ridge(), [0.5]), (loose_logistic(goal=ErrorRate(0.5), excess_risk=None), [True])):
        with pytest.raises(ValueError, match=r"1 sample\(s\)"):
            made.fit([[0.1, 0.2, 0.3]], y)
    assert loose_ridge().fit(X, Y).predict(X[:1]).shape == (1,)


class TestTables:
    """A model of a table, whose schema may be in a file."""

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "schema.toml"
        path.write_text(
            'target = "income"\nclasses = ["low", "high"]\n[columns]\nhours = { bounds = [0, 80] }\n'
            'sector = { categories = ["public", "private"] }\n'
        )
        return path

    def test_a_schema_in_a_file_says_what_kind_of_model_it_is(self, file):
        for stated in (CLASSES, Schema.from_dict(CLASSES), file, str(file)):
            assert is_classifier(of_table(stated))
            assert not is_regressor(of_table(stated))
        assert is_regressor(of_table(AMOUNT, R2(0.5)))
        fitted = of_table(file).fit(table())
        file.unlink()
        assert is_classifier(fitted)
        assert not is_classifier(clone(fitted))  # nobody knows any more; fit says so
        with pytest.raises(FileNotFoundError, match="there is no schema"):
            clone(fitted).fit(table())

    @pytest.mark.parametrize("stated", [None, 5, b"schema.toml", ["x"]], ids=repr)
    def test_what_is_no_schema(self, stated):
        source = CountingSource()
        made = AccuracyFirstModel(stated, ErrorRate(0.2), random_state=source)
        assert clone(made).get_params()["schema"] == stated
        assert not is_classifier(made)
        for use in (lambda: made.fit(table()), lambda: gradient_path(table(), stated)):
            with pytest.raises(ValueError, match=r"schema must be .* path of a TOML file.*Nothing was spent"):
                use()
        assert source.drawn == 0
        assert made.set_params(schema=CLASSES, random_state=0).fit(table()).release_.status == "released"
        assert AccuracyFirstModel().schema is None

    def test_columns_have_a_number_and_names(self):
        frame = pd.DataFrame(table())
        fitted = of_table().fit(frame[["sector", "amount", "income", "hours"]])
        assert list(fitted.feature_names_in_) == ["hours", "sector"]
        assert fitted.n_features_in_ == 2
        with pytest.raises(ValueError, match="goal"):
            fitted.set_params(goal=None).fit(frame)
        assert not hasattr(fitted, "n_features_in_")

    def test_weights_and_groups_are_refused_in_words(self):
        for what in ("sample_weight", "groups"):
            with pytest.raises(ValueError, match=what):
                of_table().fit(table(), **{what: np.ones(3000)})


class TestWhatAModelOffers:
    """Methods are there where they work, so that scikit-learn's displays take what there is."""

    def test_tables(self):
        labels, chances, numbers = of_table(), of_table(goal=LogLoss(0.65)), of_table(AMOUNT, R2(0.5))
        for fitted in (False, True):
            offered = [[hasattr(m, name) for name in ("decision_function", "predict_proba")] for m in (labels, chances)]
            assert offered == [[True, False], [True, True]]
            assert not hasattr(numbers, "decision_function")
            assert not hasattr(numbers, "predict_proba")
            if not fitted:
                for m in (labels, chances, numbers):
                    m.fit(table())
        with pytest.raises(AttributeError):
            labels.predict_proba(table())

    def test_probabilities_are_those_of_the_logistic_loss(self):
        assert hasattr(loose_logistic(), "predict_proba")
        assert not hasattr(loose_logistic(loss=SmoothedHingeLoss(0.5)), "predict_proba")

    def test_displays(self):
        pytest.importorskip("matplotlib").use("Agg")
        frame = pd.DataFrame(table())
        features, y = frame[["hours", "sector"]], frame["income"]
        hours = features[["hours"]]
        plain = AccuracyFirstLogisticRegression(
            goal=ErrorRate(0.3), bounds=(0, 80), classes=("low", "high"), random_state=0
        )
        cases = [
            (of_table().fit(features, y), features),
            (of_table(goal=LogLoss(0.65)).fit(features, y), features),
            (plain.fit(hours, y), hours),
        ]
        for fitted, rows in cases:
            assert RocCurveDisplay.from_estimator(fitted, rows, y).roc_auc > 0.9
            assert PrecisionRecallDisplay.from_estimator(fitted, rows, y).average_precision > 0.9
            right = np.trace(ConfusionMatrixDisplay.from_estimator(fitted, rows, y).confusion_matrix)
            assert right >= 0.75 * len(y)  # as asked
            assert permutation_importance(fitted, rows, y, n_repeats=2).importances_mean[0] > 0.2
        assert CalibrationDisplay.from_estimator(cases[1][0], features, y).y_prob.max() < 1
        amount = of_table(AMOUNT, R2(0.5)).fit(features, frame["amount"])
        PredictionErrorDisplay.from_estimator(amount, features, frame["amount"])
        assert partial_dependence(amount, features, ["hours"])["average"].shape[0] == 1
