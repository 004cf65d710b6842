"""The scikit-learn face of the library."""

from expost.estimators.curator import curator_view
from expost.estimators.gradient import gradient_path
from expost.estimators.logistic import AccuracyFirstLogisticRegression
from expost.estimators.model import AccuracyFirstModel
from expost.estimators.ridge import AccuracyFirstRidge
from expost.estimators.scaler import PublicBoundsScaler

__all__ = [
    "AccuracyFirstLogisticRegression",
    "AccuracyFirstModel",
    "AccuracyFirstRidge",
    "PublicBoundsScaler",
    "curator_view",
    "gradient_path",
]
