"""Small problems the estimator tests share. ``theorem`` with few levels: its plan costs nothing to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, ErrorRate, MeanSquaredError
from expost.noise.source import SeededSource

# so loose that a refusal is not to be expected before the universe ends
LOOSE: dict[str, Any] = {
    "excess_risk": 50.0,
    "regularization": 1.0,
    "failure_probability": 1e-9,
    "method": "above_threshold",
    "calibration": "theorem",
    "n_levels": 8,
    "max_epsilon": None,
    "random_state": 0,
}


def loose_ridge(**changes: Any) -> AccuracyFirstRidge:
    target = {} if {"target_bound", "target_bounds"} & set(changes) else {"target_bound": 1.0}
    return AccuracyFirstRidge(**{**LOOSE, "bounds": 1.0, "fit_intercept": False, **target, **changes})


def loose_logistic(**changes: Any) -> AccuracyFirstLogisticRegression:
    return AccuracyFirstLogisticRegression(
        **{**LOOSE, "bounds": 1.0, "fit_intercept": False, "classes": (False, True), **changes}
    )


def regression_data(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, np.clip(X @ [0.5, -0.3, 0.1] + rng.normal(0, 0.05, n), -1, 1)


def classification_data(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = regression_data(n, seed)
    return X, y > 0


class CountingSource(SeededSource):
    """A source that knows whether anything was drawn from it: nothing drawn, nothing spent."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.drawn = 0

    def words(self, count: int) -> Any:
        self.drawn += count
        return super().words(count)


class Loose(ErrorRate):
    """A goal that any rows meet, by a constant too: searched for all the same."""

    idle = ""


class LooseSquares(MeanSquaredError):
    """The same of squared errors."""

    idle = ""
