"""Accuracy-first differential privacy.

You state how accurate a model must be; expost finds the most private ridge or logistic regression that meets it and
reports the ex-post privacy loss actually paid.

What most people need is here. The pieces, each usable alone, are in `expost.noise` (exact noise, gradual release),
`expost.stopping` (measures, tests), `expost.search` (searches over any gradual release), `expost.mechanisms` and
`expost.erm` (losses, sums, sensitivities).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.data import Bounds, Preparation, Schema
    from expost.data.files import read_table
    from expost.data.on_disk import TableOnDisk
    from expost.engines.dask import DaskEngine
    from expost.engines.local import LocalEngine
    from expost.estimators import (
        AccuracyFirstLogisticRegression,
        AccuracyFirstModel,
        AccuracyFirstRidge,
        PublicBoundsScaler,
        curator_view,
        gradient_path,
    )
    from expost.exceptions import (
        AccuracyNotReached,
        BudgetExceeded,
        InferredClassesWarning,
        InvalidRows,
        LargeDeltaWarning,
        LargeEpsilonWarning,
        LedgerRefused,
        LedgerUnavailable,
        LedgerWarning,
        NotPrivateWarning,
        SearchInterrupted,
        StrongRegularizationWarning,
        TargetUnreachable,
    )
    from expost.goals import R2, ErrorRate, ExcessRisk, LogLoss, MeanSquaredError, RelativeExcessRisk
    from expost.planning import PricePlan, plan
    from expost.privacy import Composition, Ledger, Promise, Release, budget, compose
    from expost.search import KeepPath, cov_nr, output_nr, refine, refit

# Where each public name lives. Imported when asked for: the command line starts without NumPy and scikit-learn.
_HOMES = {
    "R2": "goals",
    "AccuracyFirstLogisticRegression": "estimators",
    "AccuracyFirstModel": "estimators",
    "AccuracyFirstRidge": "estimators",
    "AccuracyNotReached": "exceptions",
    "Bounds": "data",
    "BudgetExceeded": "exceptions",
    "Composition": "privacy",
    "DaskEngine": "engines.dask",
    "ErrorRate": "goals",
    "ExcessRisk": "goals",
    "InferredClassesWarning": "exceptions",
    "InvalidRows": "exceptions",
    "KeepPath": "search",
    "LargeDeltaWarning": "exceptions",
    "LargeEpsilonWarning": "exceptions",
    "Ledger": "privacy",
    "LedgerRefused": "exceptions",
    "LedgerUnavailable": "exceptions",
    "LedgerWarning": "exceptions",
    "LocalEngine": "engines.local",
    "LogLoss": "goals",
    "MeanSquaredError": "goals",
    "NotPrivateWarning": "exceptions",
    "Preparation": "data",
    "PricePlan": "planning",
    "Promise": "privacy",
    "PublicBoundsScaler": "estimators",
    "RelativeExcessRisk": "goals",
    "Release": "privacy",
    "Schema": "data",
    "SearchInterrupted": "exceptions",
    "StrongRegularizationWarning": "exceptions",
    "TableOnDisk": "data.on_disk",
    "TargetUnreachable": "exceptions",
    "budget": "privacy",
    "compose": "privacy",
    "cov_nr": "search",
    "curator_view": "estimators",
    "gradient_path": "estimators",
    "output_nr": "search",
    "plan": "planning",
    "read_table": "data.files",
    "refine": "search",
    "refit": "search",
}

__all__ = [
    "R2",
    "AccuracyFirstLogisticRegression",
    "AccuracyFirstModel",
    "AccuracyFirstRidge",
    "AccuracyNotReached",
    "Bounds",
    "BudgetExceeded",
    "Composition",
    "DaskEngine",
    "ErrorRate",
    "ExcessRisk",
    "InferredClassesWarning",
    "InvalidRows",
    "KeepPath",
    "LargeDeltaWarning",
    "LargeEpsilonWarning",
    "Ledger",
    "LedgerRefused",
    "LedgerUnavailable",
    "LedgerWarning",
    "LocalEngine",
    "LogLoss",
    "MeanSquaredError",
    "NotPrivateWarning",
    "Preparation",
    "PricePlan",
    "Promise",
    "PublicBoundsScaler",
    "RelativeExcessRisk",
    "Release",
    "Schema",
    "SearchInterrupted",
    "StrongRegularizationWarning",
    "TableOnDisk",
    "TargetUnreachable",
    "budget",
    "compose",
    "cov_nr",
    "curator_view",
    "gradient_path",
    "output_nr",
    "plan",
    "read_table",
    "refine",
    "refit",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("expost")
    if name not in _HOMES:
        raise AttributeError(f"module 'expost' has no attribute {name!r}")
    value = getattr(import_module(f"expost.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
