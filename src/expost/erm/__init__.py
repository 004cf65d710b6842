"""What is minimised: losses with their constants, exact sums, certified solvers, true risks, sensitivities.

Everything here except constants and public bounds is private: sums, minimisers and risks refuse to be
pickled and print no values. Private values leave through a release, never from this room.
"""

from expost.erm.ball import minimise_in_ball
from expost.erm.error_bounds import ErrorBounds, GeneralErrors, RidgeErrors
from expost.erm.exceptions import ConvergenceError
from expost.erm.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss
from expost.erm.minimisation import Minimum, default_tolerance, distance_bound, minimise, radius_tolerance
from expost.erm.problem import Problem
from expost.erm.risk import GeneralRisk, RidgeRisk, Risk
from expost.erm.sensitivity import (
    STATISTICS_SENSITIVITY,
    excess_risk_sensitivity,
    gradient_sensitivity,
    grid_sensitivity,
    mean_square_sensitivity,
    minimiser_l1_sensitivity,
    minimiser_l2_sensitivity,
    paper_ridge_output_sensitivity,
)
from expost.erm.statistics import Layout, from_vector, to_vector
from expost.erm.sums import MAX_CHUNK, ROW_UNIT, SUM_UNIT, FixedPointRows, Sums, sums_of

__all__ = [
    "MAX_CHUNK",
    "ROW_UNIT",
    "STATISTICS_SENSITIVITY",
    "SUM_UNIT",
    "ConvergenceError",
    "ErrorBounds",
    "FixedPointRows",
    "GeneralErrors",
    "GeneralRisk",
    "HuberLoss",
    "Layout",
    "LogisticLoss",
    "Loss",
    "Minimum",
    "Problem",
    "RidgeErrors",
    "RidgeRisk",
    "Risk",
    "SmoothedHingeLoss",
    "SquaredLoss",
    "Sums",
    "default_tolerance",
    "distance_bound",
    "excess_risk_sensitivity",
    "from_vector",
    "gradient_sensitivity",
    "grid_sensitivity",
    "mean_square_sensitivity",
    "minimise",
    "minimise_in_ball",
    "minimiser_l1_sensitivity",
    "minimiser_l2_sensitivity",
    "paper_ridge_output_sensitivity",
    "radius_tolerance",
    "sums_of",
    "to_vector",
]
