"""What the caller states and reads is in the caller's units; what is computed is scaled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import expit

from expost.search import compare_with_optimum, cov_nr, output_nr
from expost.solve.losses import SquaredLoss
from expost.table import Preparation
from expost.table.bounds import resolve_bounds
from tests.estimators.helpers import LOOSE, classification_data, loose_logistic, loose_ridge, regression_data

FEW = settings(max_examples=25, deadline=None, derandomize=True)
UNITS = 2.0**20  # rows are rounded to whole ones
ends = st.tuples(st.floats(-100, 100), st.floats(0.1, 100)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def scaled_rows(X, release):
    """The rows the search saw, computed from what the release says and nothing else (nothing is to be clipped)."""
    said = release.preparation
    low, high = (np.array(said["bounds"][side]) for side in ("lower", "upper"))
    weight = said["intercept_weight"]
    scaled = (X - (low + high) / 2) / ((high - low) / 2) * (1 - weight) / said["feature_bound"]
    rounded = np.trunc(scaled * UNITS) / UNITS
    return np.column_stack([rounded, np.full(len(X), weight)]) if weight else rounded


@FEW
@given(bounds=st.lists(ends, min_size=3, max_size=3), target=ends, intercept=st.booleans(), seed=st.integers(0, 99))
def test_ridge_predicts_in_the_callers_units(bounds, target, intercept, seed):
    low, high = np.array(bounds).T
    U, v = regression_data(60, seed)
    X, y = low + (U + 1) / 2 * (high - low), target[0] + (v + 1) / 2 * (target[1] - target[0])
    model = loose_ridge(bounds=(low, high), target_bounds=target, fit_intercept=intercept, random_state=seed).fit(X, y)
    middle, half = sum(target) / 2, (target[1] - target[0]) / 2
    expected = middle + half * scaled_rows(X, model.release_) @ np.array(model.release_.hypothesis)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8, atol=1e-8 * (abs(middle) + half))
    rounding = half * np.abs(model.release_.hypothesis).sum() / UNITS
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-12, atol=rounding)


@FEW
@given(bounds=st.lists(ends, min_size=3, max_size=3), intercept=st.booleans(), seed=st.integers(0, 99))
def test_logistic_decides_in_the_callers_units(bounds, intercept, seed):
    low, high = np.array(bounds).T
    U, labels = classification_data(60, seed)
    X = low + (U + 1) / 2 * (high - low)
    model = loose_logistic(bounds=(low, high), fit_intercept=intercept, random_state=seed).fit(X, labels)
    margin = scaled_rows(X, model.release_) @ np.array(model.release_.hypothesis)
    np.testing.assert_allclose(model.decision_function(X), margin, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(margin), rtol=1e-7)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    clear = np.abs(margin) > 1e-9
    np.testing.assert_array_equal(model.predict(X)[clear], (margin > 0)[clear])


@FEW
@given(
    scale=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    shift=st.lists(st.integers(-8, 8), min_size=3, max_size=3),
    target_scale=st.integers(-6, 6),
    target_shift=st.integers(-8, 8),
    perturbation=st.sampled_from(["covariance", "output"]),
    intercept=st.booleans(),
)
def test_other_units_change_nothing_but_the_units(scale, shift, target_scale, target_shift, perturbation, intercept):
    # integers and powers of two, so that the change of units is exact in floating point
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 17, size=(80, 3)).astype(float), rng.integers(-4, 5, size=80).astype(float)
    options = {"perturbation": perturbation, "fit_intercept": intercept, "random_state": 3}
    plain = loose_ridge(bounds=(0, 16), target_bounds=(-4, 4), **options).fit(X, y)
    factor, times = 2.0 ** np.array(scale), 2.0**target_scale
    X2, y2 = (X + shift) * factor, (y + target_shift) * times
    bounds = (np.array(shift) * factor, (16 + np.array(shift)) * factor)
    target = ((-4 + target_shift) * times, (4 + target_shift) * times)
    other = loose_ridge(bounds=bounds, target_bounds=target, **options).fit(X2, y2)
    assert other.release_.epsilon == plain.release_.epsilon
    assert other.release_.level == plain.release_.level
    assert other.release_.hypothesis == plain.release_.hypothesis
    np.testing.assert_allclose(other.predict(X2), (plain.predict(X) + target_shift) * times, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_excess_risk_and_penalty_are_stated_in_both_units(intercept):
    """The whole objective, written in the caller's units from the release alone, is the scaled one times half²."""
    rng = np.random.default_rng(0)
    low, high, target = np.array([0.0, -5.0]), np.array([10.0, 45.0]), (-20.0, 60.0)
    X = rng.uniform(low, high, size=(3000, 2))
    y = 3 * X[:, 0] + 0.5 * X[:, 1]
    model = loose_ridge(
        excess_risk=3.0,
        regularization=0.2,
        bounds=(low, high),
        target_bounds=target,
        fit_intercept=intercept,
        method="above_threshold",
    ).fit(X, y)
    release, half = model.release_, 40.0
    assert release.promise.excess_risk == 3.0
    assert release.promise.excess_risk_caller_units == pytest.approx(3.0 * half**2)
    assert release.promise.regularization == 0.2

    weights = np.array(release.preparation["regularization_per_column"])
    constant = release.preparation.get("regularization_constant", 0.0)
    assert (constant > 0) == intercept

    def objective(coef, bias):
        at_middle = bias + coef @ ((low + high) / 2) - sum(target) / 2
        risk = np.mean((y - X @ coef - bias) ** 2) / 2
        return risk + weights @ coef**2 / 2 + constant * at_middle**2 / 2

    recipe = Preparation(
        resolve_bounds((low, high), 2), 2.0, target, intercept_weight=0.25 if intercept else 0.0, n_columns=2
    )
    truth = compare_with_optimum(recipe.prepare_regression(X, y), release, SquaredLoss(), regularization=0.2)
    gap = objective(model.coef_, model.intercept_) - objective(*recipe.to_caller_units(truth.optimum))
    assert gap / half**2 == pytest.approx(truth.excess_risk, rel=1e-4)
    assert 0 < truth.excess_risk <= 3.0


def test_the_papers_setting_uses_rows_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.3, 0.3, size=(500, 3))  # within ‖x‖₁ ≤ 1
    y = X @ [0.5, -1.0, 0.2]
    model = loose_ridge(bounds=None, feature_bound=1.0).fit(X, y)
    rows = Preparation(None, 1.0, (-1.0, 1.0), intercept_weight=0, n_columns=3).prepare_regression(X, y)
    np.testing.assert_array_equal(rows.x, np.trunc(X * 2**20))
    direct = cov_nr(rows, **LOOSE)
    assert model.release_.hypothesis == direct.hypothesis
    assert model.release_.epsilon == direct.epsilon
    np.testing.assert_array_equal(model.coef_, direct.hypothesis)
    assert model.intercept_ == 0


def test_the_papers_setting_for_classification():
    X, labels = classification_data(500)
    model = loose_logistic(bounds=None, feature_bound=1.0).fit(X / 3, labels)
    rows = Preparation(None, 1.0, None, intercept_weight=0, n_columns=3).prepare_classification(
        X / 3, labels, (False, True)
    )
    direct = output_nr(rows, **LOOSE)
    assert model.release_.hypothesis == direct.hypothesis
    np.testing.assert_array_equal(model.coef_[0], direct.hypothesis)


def test_rows_beyond_feature_bound_are_clipped_after_bounds():
    X, y = np.array([[3.0, 1.0], [0.5, -0.25], [-2.0, 0.0]]), np.array([1.0, 0.5, -1.0])
    inside = np.array([[0.75, 0.25], [0.5, -0.25], [-1.0, 0.0]])  # divided by the norm where that exceeds 1
    wide, narrow = (loose_ridge(bounds=None, feature_bound=1.0).fit(rows, y) for rows in (X, inside))
    assert wide.release_.hypothesis == narrow.release_.hypothesis
    # with bounds (-4, 4) the same rows are a quarter as large, so a quarter of the feature bound clips the same
    scaled = loose_ridge(bounds=4.0, feature_bound=0.25).fit(X, y)
    assert scaled.release_.hypothesis == narrow.release_.hypothesis


def test_values_beyond_the_bounds_count_as_the_bound():
    X, y = regression_data(50)
    X[0, 0], y[1] = 1.0, -1.0
    beyond, far = X.copy(), y.copy()
    beyond[0, 0], far[1] = 400.0, -9.0
    assert loose_ridge().fit(beyond, far).release_.hypothesis == loose_ridge().fit(X, y).release_.hypothesis


@pytest.mark.parametrize(
    "bounds",
    [
        ([0.0, -1.0], [4.0, 1.0]),
        np.array([[0.0, -1.0], [4.0, 1.0]]),
        {0: (0, 4), 1: (-1, 1)},
    ],
)
def test_forms_of_bounds_agree(bounds):
    rng = np.random.default_rng(0)
    X, y = rng.uniform([0, -1], [4, 1], size=(50, 2)), rng.uniform(-1, 1, 50)
    said = loose_ridge(bounds=bounds).fit(X, y).release_.preparation["bounds"]
    assert said["lower"] == (0.0, -1.0)
    assert said["upper"] == (4.0, 1.0)


def test_scalar_and_pair_bounds_agree():
    X, y = regression_data(50)
    number, pair = loose_ridge(bounds=2.0).fit(X, y), loose_ridge(bounds=(-2, 2)).fit(X, y)
    assert number.release_.hypothesis == pair.release_.hypothesis


def test_the_intercept_learns_a_constant_that_the_columns_cannot():
    X, _ = regression_data(20_000)
    y = np.full(len(X), 0.5)
    tight = {"excess_risk": 0.02, "regularization": 1e-3, "failure_probability": 0.1, "radius": 3.0}
    with_, without = (loose_ridge(**tight, fit_intercept=on).fit(X, y) for on in (True, False))
    assert np.mean((with_.predict(X) - y) ** 2) < 0.1 < np.mean((without.predict(X) - y) ** 2)
