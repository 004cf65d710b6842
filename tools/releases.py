"""Make one release of every kind from fixed seeds, to see whether a change of the code changed a result.

``python tools/releases.py FILE`` writes them; ``tests/search/test_same_releases.py`` compares the code with the file
that is kept beside it. Write that file anew only where a result is meant to change, and say so in the changelog.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import expost
from expost import (
    R2,
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    LogLoss,
    MeanSquaredError,
    Precision,
    Recall,
    RelativeExcessRisk,
)
from expost.exceptions import AccuracyNotReached
from expost.search import output_nr
from expost.solve.losses import HuberLoss, Loss, SmoothedHingeLoss
from expost.table import Preparation

# stated, so that releases stay what they are whatever estimators take where nothing is stated
STATED: dict[str, Any] = {"fit_intercept": False, "max_epsilon": None}
# and these are the defaults, but for the cap
DEFAULTS: dict[str, Any] = {"fit_intercept": True, "max_epsilon": 10.0, "regularization": "auto"}
METHODS = ("auto", "certified", "stationarity", "above_threshold", "doubling", "theory")
UNSTABLE = ("versions", "id", "date")  # fields that differ between machines and from run to run


def _columns(n: int, p: int) -> np.ndarray:
    return np.random.default_rng(p).uniform(-1, 1, size=(n, p))


def ridge(n: int = 20_000, p: int = 4, seed: int = 1, **options: Any) -> Any:
    """Return a ridge release, or the refusal."""
    X = _columns(n, p)
    y = X @ np.linspace(1, -0.5, p) + 0.1 * np.random.default_rng(7).normal(size=n)
    settings = {**STATED, "bounds": 1.0, "target_bound": 2.0, "regularization": 0.02, "random_state": seed, **options}
    return _outcome(AccuracyFirstRidge(**settings), X, y)


def logistic(n: int = 20_000, p: int = 4, seed: int = 1, **options: Any) -> Any:
    """Return a logistic release, or the refusal."""
    X = _columns(n, p)
    y = X @ np.linspace(4, -2, p) + np.random.default_rng(7).logistic(size=n) / 2 > 0
    settings = {
        **STATED,
        "bounds": 1.0,
        "classes": (False, True),
        "regularization": 0.01,
        "random_state": seed,
        **options,
    }
    return _outcome(AccuracyFirstLogisticRegression(**settings), X, y)


def other_loss(loss: Loss, seed: int = 1, **options: Any) -> Any:
    """Return a release of output perturbation for another loss."""
    X = _columns(10_000, 3)
    signal = X @ [1.0, -0.5, 0.25]
    target = None if loss.labels == "binary" else (-1.0, 1.0)
    recipe = Preparation(None, 3.0, target=target, intercept_weight=0, n_columns=3)
    rows = (
        recipe.prepare_classification(X, signal > 0, (False, True))
        if loss.labels == "binary"
        else recipe.prepare_regression(X, 0.5 * signal)
    )
    settings: dict[str, Any] = {"excess_risk": 0.02, "regularization": 0.05, "random_state": seed, **options}
    try:
        return output_nr(rows, loss=loss, **settings)
    except AccuracyNotReached as refusal:
        return refusal.release


def table(n: int = 4000, seed: int = 1, **options: Any) -> Any:
    """Return a release of a table with a schema, at a δ unless options say 0, or the refusal."""
    rng = np.random.default_rng(3)
    hours, sector = rng.uniform(0, 80, n), rng.choice(["public", "private"], n)
    signal = hours + 10 * (sector == "private") + rng.normal(0, 8, n)
    columns = {"hours": {"bounds": [0, 80]}, "sector": {"categories": ["public", "private"]}}
    goal = options.pop("goal")
    labels = not isinstance(goal, R2)
    asked = {"classes": ["low", "high"]} if labels else {"target_bounds": [0, 100]}
    schema = {"target": "income", "columns": columns, **asked}
    income = np.where(signal > 45, "high", "low") if labels else np.clip(signal, 0, 100)
    rows = {"hours": hours, "sector": sector, "income": income}
    model = AccuracyFirstModel(schema, goal, random_state=seed, **{"max_epsilon": 10.0, "delta": 1e-6, **options})
    return _outcome(model, rows, None)


def _outcome(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(X, y).release_
        except AccuracyNotReached as refusal:
            return refusal.release


def cases() -> dict[str, Callable[[], Any]]:
    """Return what is made, by name."""
    made: dict[str, Callable[[], Any]] = {}
    for method in METHODS:
        for perturbation in ("covariance", "output"):
            made[f"ridge {method} {perturbation}"] = partial(
                ridge, excess_risk=0.02, method=method, perturbation=perturbation
            )
        for noise in ("laplace", "spherical"):
            made[f"logistic {method} {noise}"] = partial(logistic, excess_risk=0.05, method=method, noise=noise)
    for calibration in ("theorem", "published"):
        for method in ("above_threshold", "doubling"):
            made[f"ridge {method} {calibration}"] = partial(
                ridge, excess_risk=0.2, method=method, calibration=calibration
            )
            made[f"logistic {method} {calibration}"] = partial(
                logistic, excess_risk=0.2, method=method, calibration=calibration
            )
    made |= {
        "ridge fixed": partial(ridge, method="fixed", max_epsilon=1.0),
        "ridge output fixed": partial(ridge, method="fixed", max_epsilon=1.0, perturbation="output", noise="spherical"),
        "logistic fixed": partial(logistic, method="fixed", max_epsilon=1.0),
        "ridge null model": partial(ridge, excess_risk=0.45),
        "ridge full matrix": partial(ridge, excess_risk=0.05, method="above_threshold", full_matrix=True),
        "ridge stated radius": partial(ridge, excess_risk=0.05, method="above_threshold", radius=1.0),
        "ridge auto radius": partial(ridge, excess_risk=0.05, radius=1.0),
        "logistic auto radius": partial(logistic, excess_risk=0.1, radius=2.0),
        "ridge many columns": partial(ridge, n=20_000, p=50, excess_risk=0.002, regularization=0.1),
        "ridge refused": partial(ridge, n=500, excess_risk=0.01, max_epsilon=1.5),
        "ridge tested, refused": partial(
            ridge, n=3000, excess_risk=0.05, max_epsilon=3.0, seed=2, method="above_threshold"
        ),
        "ridge doubling, refused": partial(ridge, n=3000, excess_risk=0.05, max_epsilon=4.0, method="doubling"),
        "ridge tested, unreachable": partial(
            ridge, n=3000, excess_risk=0.05, max_epsilon=2.0, method="above_threshold"
        ),
        "ridge doubling, unreachable": partial(ridge, n=900, excess_risk=0.05, max_epsilon=1.0, method="doubling"),
        "ridge theory, unreachable": partial(ridge, excess_risk=0.05, max_epsilon=0.1, method="theory"),
        "ridge auto, unreachable": partial(ridge, n=200, excess_risk=0.01, max_epsilon=0.1),
        "relative, unreachable": partial(ridge, n=200, goal=RelativeExcessRisk(0.1, baseline="null"), max_epsilon=0.1),
        "error rate, unreachable": partial(logistic, n=500, goal=ErrorRate(0.1), max_epsilon=0.1),
        "logistic refused": partial(logistic, perturbation="output", n=1000, excess_risk=0.02, max_epsilon=1.0),
        "ridge intercept": partial(ridge, excess_risk=0.02, fit_intercept=True),
        "ridge optimum": partial(ridge, n=500, excess_risk=0.01, max_epsilon=1.5, on_failure="release_optimum"),
        "error rate": partial(logistic, goal=ErrorRate(0.2)),
        "error rate spherical": partial(logistic, goal=ErrorRate(0.2), noise="spherical"),
        "error rate refused": partial(logistic, goal=ErrorRate(0.06), max_epsilon=1.0),
        "error rate levels": partial(logistic, goal=ErrorRate(0.25, margin=0.1), n_levels=8, method="above_threshold"),
        "mean squared error": partial(ridge, goal=MeanSquaredError(0.5)),
        "mean squared error output": partial(ridge, goal=MeanSquaredError(0.5), perturbation="output"),
        "relative": partial(ridge, goal=RelativeExcessRisk(0.3, baseline="null")),
        "relative logistic": partial(logistic, goal=RelativeExcessRisk(0.3, baseline="null"), max_epsilon=5.0),
        "relative tested": partial(
            logistic, goal=RelativeExcessRisk(0.5, baseline="null"), method="above_threshold", max_epsilon=20.0
        ),
        "relative refused": partial(ridge, n=2000, goal=RelativeExcessRisk(0.05, baseline="null"), max_epsilon=1.0),
        "relative constant": partial(ridge, goal=RelativeExcessRisk(0.3), max_epsilon=8.0, fit_intercept=True),
        "error rate auto": partial(logistic, goal=ErrorRate(0.2), **DEFAULTS),
        "log loss auto": partial(logistic, goal=LogLoss(0.4), **DEFAULTS),
        "mean squared error auto": partial(ridge, goal=MeanSquaredError(0.3), **DEFAULTS),
        "R2 auto": partial(ridge, goal=R2(0.7), **DEFAULTS),
        "R2 auto, short": partial(ridge, goal=R2(0.99), **DEFAULTS),
        "R2 auto in an l1 ball": partial(ridge, goal=R2(0.7), **{**DEFAULTS, "bounds": None, "feature_bound": 4.0}),
        "excess risk, all defaults": partial(ridge, excess_risk=0.01, **DEFAULTS),
        "error rate at a delta": partial(table, goal=ErrorRate(0.25)),
        "error rate by descent": partial(table, goal=ErrorRate(0.25), perturbation="descent"),
        "error rate by objective": partial(table, goal=ErrorRate(0.25), perturbation="objective"),
        "R2 at a delta": partial(table, goal=R2(0.5)),
        "R2 by descent": partial(table, goal=R2(0.5), perturbation="descent"),
        "recall and precision": partial(table, goal=Recall(0.8) & Precision(0.7)),
        "recall and precision, short": partial(table, goal=Recall(0.99) & Precision(0.99), max_epsilon=2.0),
        "R2 by objective, short": partial(table, goal=R2(0.97), perturbation="objective", max_epsilon=4.0),
        "new rows": partial(table, goal=ErrorRate(0.25), holdout=0.25, delta=0.0),
        "new rows at a delta": partial(table, goal=ErrorRate(0.25), holdout=0.25),
        "huber": partial(other_loss, HuberLoss(0.5), calibration="tight"),
        "huber theorem": partial(other_loss, HuberLoss(0.5), excess_risk=0.3),
        "smoothed hinge": partial(other_loss, SmoothedHingeLoss(0.5), calibration="tight", excess_risk=0.1),
    }
    return made


def releases(*names: str) -> dict[str, Any]:
    """Return the releases named, or all, as plain values, without what differs between machines or runs."""
    made = {}
    for name, make in cases().items():
        if names and name not in names:
            continue
        try:
            plain = make().to_dict()
        except (
            expost.exceptions.TargetUnreachable
        ) as error:  # settled before a row is looked at: the message is the outcome
            plain = {"unreachable": str(error)}
        made[name] = {key: value for key, value in plain.items() if key not in UNSTABLE}
    return made


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(releases(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
