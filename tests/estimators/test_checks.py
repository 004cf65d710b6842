"""scikit-learn's own checks, and that only its public modules are used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import expost.estimators
from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge
from tests.estimators.helpers import Loose, LooseSquares

# Bounds that hold for the data of every check, and a target so loose that no run is refused. The default calibration
# takes longer to plan than these fits take, so one instance of each estimator has it and the others do without.
LOOSE = {
    "excess_risk": 100.0,
    "regularization": 1.0,
    "failure_probability": 1e-9,
    "bounds": 20.0,
    "max_epsilon": None,
}
QUICK = {**LOOSE, "method": "above_threshold", "calibration": "theorem", "n_levels": 8}

INSTANCES = [
    AccuracyFirstRidge(**LOOSE, target_bound=200.0),
    AccuracyFirstRidge(**QUICK, target_bounds=(-100.0, 200.0), fit_intercept=True),
    AccuracyFirstRidge(**QUICK, target_bound=200.0, perturbation="output", on_invalid="error"),
    AccuracyFirstRidge(**QUICK, target_bound=200.0, perturbation="output", fit_intercept=True),
    AccuracyFirstRidge(**{**QUICK, "bounds": None}, feature_bound=20.0, target_bound=200.0),
    AccuracyFirstRidge(**LOOSE, target_bound=200.0, method="doubling"),
    AccuracyFirstRidge(**{**LOOSE, "max_epsilon": 1.0}, target_bound=200.0, method="fixed"),
    AccuracyFirstLogisticRegression(**LOOSE),
    AccuracyFirstLogisticRegression(**QUICK, fit_intercept=True),
    AccuracyFirstLogisticRegression(**LOOSE, method="theory", fit_intercept=True),
    AccuracyFirstLogisticRegression(goal=Loose(0.9), bounds=20.0, max_epsilon=100.0),
    AccuracyFirstLogisticRegression(goal=Loose(0.9), bounds=20.0, delta=1e-6, max_epsilon=100.0),
    AccuracyFirstRidge(goal=LooseSquares(39_000.0), bounds=20.0, target_bound=200.0, max_epsilon=None),
    AccuracyFirstLogisticRegression(**LOOSE, on_invalid="clip"),
    AccuracyFirstRidge(**LOOSE, target_bound=200.0, on_invalid="clip"),
]


def expected(estimator):
    """What is meant to be otherwise.

    A target that cannot be read is in the middle of its bounds, by request; labels that have weights are stated.
    """
    if isinstance(estimator, AccuracyFirstLogisticRegression):
        return {"check_class_weight_classifiers": "weights of labels go with classes=..., which the check leaves out"}
    clips = isinstance(estimator, AccuracyFirstRidge) and estimator.on_invalid == "clip"
    return {"check_supervised_y_no_nan": "no target can raise with on_invalid='clip'"} if clips else {}


@pytest.mark.filterwarnings("ignore::expost.exceptions.InferredClassesWarning")  # the checks choose their labels
@parametrize_with_checks(INSTANCES, expected_failed_checks=expected)
def test_passes_scikit_learns_checks(estimator, check):
    check(estimator)


def test_only_public_scikit_learn_is_used():
    seen = 0
    for file in Path(expost.estimators.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
                seen += 1
                parts = [*node.module.split("."), *(name.name for name in node.names)]
                assert not [part for part in parts if part.startswith("_")], f"{file.name} imports {parts}"
    assert seen  # the walk does find the imports
