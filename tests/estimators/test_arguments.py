"""Wrong arguments: an error that says what to pass, and nothing drawn from the noise source, so nothing spent."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from expost import R2, AccuracyFirstModel, AccuracyFirstRidge
from expost.exceptions import InferredClassesWarning, LargeEpsilonWarning, TargetUnreachable
from tests.estimators.helpers import CountingSource, classification_data, loose_logistic, loose_ridge, regression_data

X, Y = regression_data(200)
LABELS = Y > 0


def fails(model, match, X=X, y=None, error=ValueError):
    """Assert that fitting fails before anything was spent, leaving no model."""
    source = CountingSource()
    model.set_params(random_state=source)
    with pytest.raises(error, match=match):
        model.fit(X, (LABELS if hasattr(model, "classes") else Y) if y is None else y)
    assert source.drawn == 0
    with pytest.raises(NotFittedError):
        model.predict(X)


WRONG = [
    ({"excess_risk": None}, "excess_risk must be given"),
    ({"excess_risk": 0.0}, "excess_risk must be a positive"),
    ({"excess_risk": -1}, "excess_risk must be a positive"),
    ({"excess_risk": float("nan")}, "excess_risk must be a number"),
    ({"excess_risk": float("inf")}, "excess_risk must be a positive finite"),
    ({"excess_risk": "0.1"}, "excess_risk must be a number"),
    ({"excess_risk": True}, "excess_risk must be a number"),
    ({"regularization": 0}, "regularization must be a positive"),
    ({"regularization": -0.1}, "regularization must be a positive"),
    ({"failure_probability": 0}, "failure_probability must lie strictly between 0 and 1"),
    ({"failure_probability": 1.0}, "failure_probability must lie strictly between 0 and 1"),
    ({"bounds": None}, "bounds must be given.*never read off the data"),
    ({"bounds": 0}, "finite and positive"),
    ({"bounds": -2.0}, "finite and positive"),
    ({"bounds": (1.0, -1.0)}, "strictly below"),
    ({"bounds": (1.0, 1.0)}, "strictly below"),
    ({"bounds": (0.0, np.inf)}, "finite"),
    ({"bounds": (0.0, [1.0, 2.0])}, "shape .2,., but there are 3 columns"),
    ({"bounds": [(0, 1), (0, 1), (0, 1)]}, "not a pair"),
    ({"bounds": "wide"}, "numbers"),
    ({"bounds": {0: (0, 1), 1: (0, 1)}}, "leave out column.s. 2"),
    ({"bounds": {"age": (0, 1)}}, "unknown column.s. age; columns are 0 to 2"),
    ({"bounds": None, "feature_bound": 0.0}, "feature_bound must be a positive finite number"),
    ({"feature_bound": -1.0}, "feature_bound must be a positive finite number"),
    ({"feature_bound": 1e-300}, "feature_bound must lie between 1e-50 and 1e[+]50, got 1e-300"),
    ({"bounds": 1e300}, "bounds must lie between -1e[+]50 and 1e[+]50"),
    ({"bounds": 1e-300}, "half the width of bounds must lie between 1e-50 and 1e[+]50"),
    ({"bounds": 10**400}, "bounds must be made of numbers"),
    ({"max_epsilon": 5e-324}, "max_epsilon must lie between 1e-50 and 1e[+]50"),
    ({"n_levels": 10**30}, "n_levels must be a whole number, at most 100,000"),
    ({"feature_bound": "1"}, "feature_bound must be a number"),
    ({"perturbation": "input"}, "perturbation must be one of"),
    ({"method": "guess"}, "method must be one of"),
    ({"method": "fixed"}, "spends exactly max_epsilon; pass it"),
    ({"method": "fixed", "max_epsilon": 0.0}, "max_epsilon must be a positive finite number"),
    ({"max_epsilon": -1.0}, "max_epsilon must be a positive finite number"),
    ({"max_epsilon": float("nan")}, "max_epsilon must be a positive finite number"),
    ({"regularization": "none"}, "regularization must be a number or 'auto'"),
    ({"max_epsilon": "1"}, "max_epsilon must be a positive finite number"),
    ({"calibration": "loose"}, "calibration must be one of"),
    ({"calibration": "loose", "method": "fixed", "max_epsilon": 1.0}, "calibration must be one of"),
    ({"noise": "gaussian"}, "noise must be one of"),
    ({"radius": 0.0}, "radius must be a positive"),
    ({"n_levels": 0}, "n_levels must be a whole number"),
    ({"n_levels": 2.5}, "n_levels must be a whole number"),
    ({"n_levels": "8"}, "n_levels must be a whole number"),
    ({"fit_intercept": "yes"}, "fit_intercept must be True or False"),
    ({"fit_intercept": True, "intercept_weight": 0}, "intercept_weight must be positive"),
    ({"fit_intercept": True, "intercept_weight": 1.0}, "intercept_weight"),
    ({"on_failure": "shrug"}, "on_failure must be one of"),
    ({"on_invalid": "drop"}, "on_invalid must be one of"),
]


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
@pytest.mark.parametrize(("changes", "match"), WRONG, ids=[str(changes) for changes, _ in WRONG])
def test_wrong_arguments(make, changes, match):
    fails(make(**changes), match)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"target_bound": None}, "exactly one of target_bound"),
        ({"target_bound": 1.0, "target_bounds": (0, 1)}, "exactly one of target_bound"),
        ({"target_bound": 0.0}, "target_bound must be one finite positive"),
        ({"target_bound": -1.0}, "target_bound must be one finite positive"),
        ({"target_bounds": (1.0, 0.0)}, "low < high"),
        ({"target_bounds": (0.0, 1.0, 2.0)}, "pair"),
        ({"target_bounds": (0.0, np.nan)}, "finite"),
        ({"target_bound": 1e-300}, "target_bound must lie between 1e-50"),
        ({"target_bounds": (0.0, 1e300)}, "target_bounds must lie between -1e[+]50 and 1e[+]50"),
        ({"target_bound": 10**400}, "target_bound must be made of numbers"),
    ],
)
def test_wrong_target_bounds(changes, match):
    fails(loose_ridge(**changes), match)


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        (("a",), "two different labels"),
        (("a", "b", "c"), "two different labels"),
        ((1, 1), "two different labels"),
        (("a", 1), "same kind"),
        (("a", "b"), "classes cannot match"),
    ],
)
def test_wrong_classes(classes, match):
    fails(loose_logistic(classes=classes), match)


def test_logistic_regression_has_no_covariance_perturbation():
    fails(loose_logistic(perturbation="covariance"), "use perturbation='output'")


@pytest.mark.parametrize("state", [np.random.default_rng(0), "secure", -1, 1.5])
def test_wrong_random_states(state):
    with pytest.raises(ValueError, match="random_state must be"):
        loose_ridge(random_state=state).fit(X, Y)


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_wrong_shapes(make):
    fails(make(), "inconsistent numbers of samples", y=LABELS[:-1])
    fails(make(), "Found array with dim 3", X=X[:, :, None])
    fails(make(), r"1d array, got an array of shape \(200, 3\)", y=X)
    fails(make(), "Found array with 0 sample", X=X[:0], y=LABELS[:0])
    fails(make(), r"0 feature\(s\)", X=X[:, :0])


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_errors_about_shape_do_not_quote_the_rows(make):
    private = np.full(20, 0.8125)
    for call in (lambda: make().fit(private, LABELS[:20]), lambda: make().fit(X, LABELS).predict(private)):
        with pytest.raises(ValueError, match="Reshape your data") as caught:
            call()
        assert "0.8125" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None  # a traceback would print the original with its cells


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_errors_about_cells_do_not_quote_them(make):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).astype(object)
    frame.loc[3, "b"] = "Ms Smith"
    with pytest.raises(ValueError, match="cells that are not numbers") as caught:
        make().fit(frame, LABELS)
    assert "Smith" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_sparse_input_is_refused_clearly(make):
    fails(make(), "dense data is required", X=sp.csr_matrix(X), error=TypeError)
    with pytest.raises(TypeError, match="dense data is required"):
        make().fit(X, LABELS).predict(sp.csr_array(X))


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_groups_are_for_tables_with_a_schema(make):
    with pytest.raises(ValueError, match=r"protects single rows.*AccuracyFirstModel\(schema, goal, person="):
        make().fit(X, LABELS, groups=np.ones(len(X)))


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_sample_weight_is_refused_clearly(make):
    with pytest.raises(ValueError, match=r"does not take sample_weight.*more than one row"):
        make().fit(X, LABELS, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match=r"unexpected keyword argument.*'weights'"):
        make().fit(X, LABELS, weights=1)


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_y_is_required(make):
    with pytest.raises(ValueError, match="requires y to be passed"):
        make().fit(X, None)


def test_unknown_and_missing_names_in_dict_bounds():
    frame = pd.DataFrame(X, columns=["age", "income", "debt"])
    every = {"age": (-1, 1), "income": (-1, 1), "debt": (-1, 1)}
    fails(
        loose_ridge(bounds={**every, "height": (0, 1)}), "unknown column.s. height; known columns: age, income", frame
    )
    fails(loose_ridge(bounds={"age": (-1, 1)}), "leave out column.s. income, debt", frame)
    fails(loose_ridge(bounds={**every, "debt": (1, 0)}), "strictly below", frame)
    fails(loose_ridge(bounds={**every, "debt": 3}), "'debt'.*pair", frame)


@pytest.mark.parametrize("method", ["above_threshold", "doubling", "theory"])
@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_a_target_out_of_reach_is_refused_before_anything_is_spent(make, method):
    model = make(excess_risk=1e-6, max_epsilon=0.1, method=method)
    fails(model, r"max_epsilon = 0\.1.*Nothing was spent", error=TargetUnreachable)


def test_predicting_before_fitting():
    for model in (loose_ridge(), loose_logistic()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            model.predict(X)


@pytest.mark.parametrize("make", [loose_ridge, loose_logistic])
def test_a_failed_refit_leaves_no_stale_model(make):
    model = make().fit(X, LABELS)
    model.set_params(excess_risk=-1.0)
    with pytest.raises(ValueError, match="excess_risk"):
        model.fit(X, LABELS)
    assert not {"coef_", "intercept_", "classes_", "release_"} & set(vars(model))
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_single_and_many_classes_cannot_be_inferred():
    for labels, match in [
        (np.ones(200), "only one class.*pass classes"),
        (np.arange(200) % 3, "Only binary classification is supported.*3 different"),
        (Y, "Unknown label type: continuous"),
        (np.where(np.arange(200) == 7, np.nan, LABELS), "missing labels"),
        (np.where(LABELS, np.inf, 0.0), "missing labels"),
    ]:
        fails(loose_logistic(classes=None), match, y=labels)


def test_predict_refuses_nan_and_other_columns():
    model = loose_ridge().fit(X, Y)
    with pytest.raises(ValueError, match="missing, infinite or no number"):
        model.predict([[np.nan, 0, 0]])
    with pytest.raises(ValueError, match="X has 2 features, but AccuracyFirstRidge is expecting 3"):
        model.predict(X[:, :2])


def test_arguments_are_keyword_only():
    for make in (type(loose_ridge()), type(loose_logistic())):
        with pytest.raises(TypeError, match="positional"):
            make(0.1)


def test_inferred_classes_warn_at_the_callers_line():
    X, labels = classification_data()
    with pytest.warns(InferredClassesWarning, match="read off the data") as caught:
        loose_logistic(classes=None).fit(X, labels)
    assert caught[0].filename == __file__


SCHEMA = {"target": "y", "target_bounds": [0, 1], "columns": {"x": {"bounds": [0, 1]}}}
ARRAYS = {
    AccuracyFirstModel: ("perturbation", "max_epsilon", "delta", "engine", "on_invalid"),
    AccuracyFirstRidge: ("perturbation", "method", "calibration", "noise", "max_epsilon", "delta", "regularization"),
}
FLAGS = {AccuracyFirstRidge: ("fit_intercept", "keep_statistics", "full_matrix")}


def fitted(kind, **given):
    x = np.linspace(0, 1, 400)
    if kind is AccuracyFirstModel:
        return kind(SCHEMA, R2(0.3), random_state=0, **given).fit({"x": x, "y": x})
    stated = {"excess_risk": 0.4, "bounds": (0, 1), "target_bounds": (0, 1), "random_state": 0}
    return kind(**stated | given).fit(x[:, None], x)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in ARRAYS.items() for name in names])
def test_an_array_in_the_place_of_one_value_is_named(kind, name):
    with pytest.raises(ValueError, match=f"^{name} must be one value, got a ndarray") as refused:
        fitted(kind, **{name: np.array([0.5, 0.25])})
    assert "Nothing was spent" in "".join([str(refused.value), *getattr(refused.value, "__notes__", ())])


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FLAGS.items() for name in names])
@pytest.mark.parametrize("value", ["no", 2, None, np.array([True, False])], ids=str)
def test_a_flag_is_a_truth_value(kind, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be True or False, got"):
        fitted(kind, **{name: value})


def test_inf_lifts_the_budget_with_a_schema_as_without():
    """As the help says; what was paid is stated as ever."""
    x = np.linspace(0, 1, 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        model = AccuracyFirstModel(SCHEMA, R2(0.3), max_epsilon=math.inf, random_state=0)
        release = model.fit({"x": x, "y": x}).release_
    assert release.status == "released"
    assert release.epsilon < 100 < release.epsilon_worst_case


def test_names_that_are_there_twice_are_named():
    frame = pd.DataFrame(X[:, :2], columns=["age", "age"])
    fails(loose_ridge(), r"column name\(s\) age appear more than once in the table; rename them", X=frame)
