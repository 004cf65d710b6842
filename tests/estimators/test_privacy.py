"""A fitted estimator, its pickle and a refusal hold the release and nothing else about the rows."""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Mapping

import numpy as np
import pytest
from sklearn.base import clone

from expost import Release
from expost.exceptions import AccuracyNotReached
from expost.passes.sums import sums_over
from expost.search import compare_with_optimum
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.table import Preparation
from expost.table.bounds import resolve_bounds
from tests.estimators.helpers import loose_logistic, loose_ridge, regression_data

X, Y = regression_data(300)
LABELS = Y > 0
FITTED = {"coef_", "intercept_", "release_", "preparation_", "n_features_in_"}
RECIPES = {
    "regression": Preparation(resolve_bounds(1.0, 3), 3.0, (-1.0, 1.0), intercept_weight=0, n_columns=3),
    "classification": Preparation(resolve_bounds(1.0, 3), 3.0, None, intercept_weight=0, n_columns=3),
}


def walk(value, seen=None):
    """Yield every number and text reachable from an object through attributes, items and slots."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if value is None or isinstance(value, bool | int | float | str | bytes | np.generic):
        yield value.item() if isinstance(value, np.generic) else value
    elif isinstance(value, np.ndarray):
        assert value.base is None or value.base.nbytes <= 4 * max(value.nbytes, 64), "a view keeps a larger array alive"
        for item in value.ravel().tolist():
            yield from walk(item, seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk(key, seen)
            yield from walk(item, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from walk(item, seen)
    else:
        assert type(value).__module__.startswith("expost."), f"an unexpected {type(value)} is held"
        yield from walk(vars(value), seen)
        for slot in getattr(type(value), "__slots__", ()):
            yield from walk(getattr(value, slot), seen)


def numbers_in_pickle(data: bytes) -> set[float]:
    """Every number in a pickle: its own opcodes, and what its byte strings hold as doubles."""
    found = set()
    for _, argument, _ in pickletools.genops(io.BytesIO(data)):
        if isinstance(argument, int | float) and not isinstance(argument, bool):
            found.add(float(argument))
        if isinstance(argument, bytes):
            for offset in range(min(8, len(argument))):
                whole = argument[offset : offset + (len(argument) - offset) // 8 * 8]
                found |= set(np.frombuffer(whole, dtype="<f8").tolist())
    return found


def secrets(task: str) -> dict[str, np.ndarray]:
    if task == "regression":
        rows = RECIPES[task].prepare_regression(X, Y)
        optimum = compare_with_optimum(rows, None, SquaredLoss(), regularization=1.0).optimum
        sums = sums_over(rows)
        exact = {name: np.asarray(value, dtype=float) for name, value in vars(sums).items() if np.ndim(value)}
        assert exact, "sums have arrays"
    else:
        rows = RECIPES[task].prepare_classification(X, LABELS, (False, True))
        optimum = compare_with_optimum(rows, None, LogisticLoss(), regularization=1.0).optimum
        exact = {}
    coef, _ = RECIPES[task].to_caller_units(optimum)
    scaled = {name: value / 2**40 for name, value in exact.items()}
    means = {name: value / 2**40 / len(X) for name, value in exact.items()}
    return {
        "optimum": optimum,
        "optimum in the caller's units": coef,
        **exact,
        **{f"{name} as numbers": value for name, value in scaled.items()},
        **{f"{name} as means": value for name, value in means.items()},
        "cells": X,
        "prepared cells": rows.x / 2**20,
    }


MODELS = {
    "covariance": ("regression", lambda: loose_ridge()),
    "covariance, default calibration": ("regression", lambda: loose_ridge(calibration="tight", n_levels=None)),
    "output": ("regression", lambda: loose_ridge(perturbation="output")),
    "doubling": ("regression", lambda: loose_ridge(method="doubling")),
    "fixed": ("regression", lambda: loose_ridge(method="fixed", max_epsilon=1.0)),
    "theory": ("regression", lambda: loose_ridge(method="theory")),
    "logistic": ("classification", lambda: loose_logistic()),
    "logistic doubling": ("classification", lambda: loose_logistic(method="doubling")),
}
EACH = pytest.mark.parametrize(("task", "make"), MODELS.values(), ids=MODELS)


def fit(task, make):
    return make().fit(X, Y if task == "regression" else LABELS)


def close_to_any(value: float, private: np.ndarray) -> bool:
    return bool((np.abs(private - value) <= 1e-12 * np.abs(private)).any() and value != 0)


@EACH
def test_no_private_number_is_reachable_from_a_fitted_model(task, make):
    model = fit(task, make)
    held = {float(v) for v in walk(model) if isinstance(v, int | float) and not isinstance(v, bool)}
    assert set(map(float, model.release_.hypothesis)) <= held  # the walk does reach the release
    for name, private in secrets(task).items():
        leaked = [value for value in held - {1.0, -1.0} if close_to_any(value, private)]
        assert not leaked, f"{name}: {leaked}"


@EACH
def test_no_private_number_is_in_the_pickle(task, make):
    model = fit(task, make)
    data = pickle.dumps(model)
    held = numbers_in_pickle(data)
    assert set(np.ravel(model.coef_)) <= held  # the search does find the coefficients
    for name, private in secrets(task).items():
        leaked = [value for value in held - {1.0, -1.0} if np.isfinite(value) and close_to_any(value, private)]
        assert not leaked, f"{name}: {leaked}"
        for value in np.ravel(private)[:20]:
            if value not in (0.0, 1.0, -1.0):
                assert repr(float(value)).encode() not in data


@EACH
def test_every_float_of_the_pickle_is_a_public_one(task, make):
    """The path's other levels are unknown here, so account for everything that is there instead."""
    model = fit(task, make)
    release, said = model.release_, model.release_.preparation
    public = {float(v) for v in model.get_params().values() if isinstance(v, int | float)}
    public |= {release.epsilon_generation, release.epsilon_test, release.epsilon_probe, release.epsilon_worst_case}
    public |= {*release.hypothesis, *np.ravel(model.coef_), *np.ravel(model.intercept_)}
    public |= {*said["bounds"]["lower"], *said["bounds"]["upper"], *said["regularization_per_column"]}
    public |= {said["feature_bound"], said["intercept_weight"], *(said["target"] or ())}
    public |= {v for v in vars(release.promise).values() if isinstance(v, float)}
    if release.perturbation == "output":  # what noise is scaled by, and the ball: settled without a row
        request = model._request(release.parameters["n"], model._preparation(X.shape[1]))
        public |= {request.mechanism.noise_sensitivity(request.problem), request.problem.radius}
    floats = {v for v in walk(model) if isinstance(v, float)}
    assert floats <= public, f"unaccounted: {floats - public}"
    in_opcodes = {arg for op, arg, _ in pickletools.genops(pickle.dumps(model)) if op.name == "BINFLOAT"}
    assert in_opcodes <= public, f"unaccounted: {in_opcodes - public}"


@EACH
def test_a_fitted_model_has_no_other_attributes(task, make):
    model = fit(task, make)
    extra = {"classes_"} if task == "classification" else set()
    assert set(vars(model)) == set(model.get_params()) | FITTED | extra
    assert type(model.release_) is Release
    assert type(model.release_.hypothesis) is tuple
    assert len(pickle.dumps(model)) < 10_000


@EACH
def test_a_pickled_model_comes_back_the_same(task, make):
    model = fit(task, make)
    again = pickle.loads(pickle.dumps(model))
    assert again.release_ == model.release_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_clone_has_the_arguments_and_no_model():
    model = fit(*MODELS["logistic"])
    copy = clone(model)
    assert set(vars(copy)) == set(model.get_params()) | {"_family", "_repeats"}  # which clone it is
    assert copy.get_params() == model.get_params()


def test_neither_repr_nor_html_shows_more_than_the_arguments():
    model = fit(*MODELS["covariance"])
    text = repr(model) + model._repr_html_()
    for value in [*model.coef_, *secrets("regression")["optimum"]]:
        assert repr(float(value)) not in text


def test_a_refusal_holds_nothing_private():
    options = {"excess_risk": 0.05, "regularization": 1.0, "failure_probability": 0.01}
    test = loose_ridge(**options).fit(X, Y).release_.epsilon_test
    with pytest.raises(AccuracyNotReached) as caught:
        loose_ridge(**options, max_epsilon=test + 1e-5, random_state=1).fit(X, Y)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.release == caught.value.release
    held = {float(v) for v in walk(again.release) if isinstance(v, int | float) and not isinstance(v, bool)}
    for name, private in secrets("regression").items():
        assert not [v for v in held - {1.0, -1.0} if close_to_any(v, private)], name
