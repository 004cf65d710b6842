"""The scikit-learn face: models fitted with an accuracy goal, and a scaler that reads nothing off the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.estimators.base import curator_view as curator_view
    from expost.estimators.gradient import gradient_path as gradient_path
    from expost.estimators.logistic import AccuracyFirstLogisticRegression as AccuracyFirstLogisticRegression
    from expost.estimators.model import AccuracyFirstModel as AccuracyFirstModel
    from expost.estimators.pipeline import PublicBoundsScaler as PublicBoundsScaler
    from expost.estimators.ridge import AccuracyFirstRidge as AccuracyFirstRidge

__getattr__, __all__ = public_names(__name__)
