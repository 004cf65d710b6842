"""Accuracy-first differential privacy.

You state how accurate a model must be; expost finds the most private ridge or logistic regression that meets it and
reports the ex-post privacy loss actually paid.
"""

from importlib import metadata

from expost.data import Bounds, Preparation, PublicBoundsScaler, Rows, read_table
from expost.erm import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss, Sums, sums_of
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstRidge
from expost.exceptions import (
    AccuracyNotReached,
    InferredClassesWarning,
    InvalidRows,
    NotPrivateWarning,
    TargetUnreachable,
)
from expost.noise import (
    NoisePath,
    SecureSource,
    SeededSource,
    SphericalPath,
    bernoulli,
    discrete_laplace,
    geometric,
)
from expost.privacy import Composition, Promise, Release, compose
from expost.search import (
    AboveThreshold,
    Calibration,
    DoublingPlan,
    ErrorQuery,
    ErrorRate,
    MeanSquaredError,
    Problem,
    RelativeExcessRisk,
    above_threshold_accuracy,
    calibrate,
    cov_nr,
    curator_view,
    doubling_method,
    geometric_levels,
    gradient_doubling,
    output_nr,
    run,
    search,
)

__version__ = metadata.version("expost")

__all__ = [
    "AboveThreshold",
    "AccuracyFirstLogisticRegression",
    "AccuracyFirstRidge",
    "AccuracyNotReached",
    "Bounds",
    "Calibration",
    "Composition",
    "DoublingPlan",
    "ErrorQuery",
    "ErrorRate",
    "HuberLoss",
    "InferredClassesWarning",
    "InvalidRows",
    "LogisticLoss",
    "Loss",
    "MeanSquaredError",
    "NoisePath",
    "NotPrivateWarning",
    "Preparation",
    "Problem",
    "Promise",
    "PublicBoundsScaler",
    "RelativeExcessRisk",
    "Release",
    "Rows",
    "SecureSource",
    "SeededSource",
    "SmoothedHingeLoss",
    "SphericalPath",
    "SquaredLoss",
    "Sums",
    "TargetUnreachable",
    "above_threshold_accuracy",
    "bernoulli",
    "calibrate",
    "compose",
    "cov_nr",
    "curator_view",
    "discrete_laplace",
    "doubling_method",
    "geometric",
    "geometric_levels",
    "gradient_doubling",
    "output_nr",
    "read_table",
    "run",
    "search",
    "sums_of",
]
