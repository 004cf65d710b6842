"""Every sensitivity, each with its proof: how far a statistic can move when one row is replaced.

`excess_risk`, `minimiser`, `mean_square` and `statistics` are short; `gradient` and `gap` have longer proofs; `grid`
says what rounding adds to any of them.
"""

from expost.erm.sensitivity.excess_risk import excess_risk_sensitivity
from expost.erm.sensitivity.gap import GapScale
from expost.erm.sensitivity.gradient import gradient_sensitivity
from expost.erm.sensitivity.grid import Grid, grid_sensitivity
from expost.erm.sensitivity.mean_square import mean_square_sensitivity
from expost.erm.sensitivity.minimiser import (
    minimiser_l1_sensitivity,
    minimiser_l2_sensitivity,
    paper_ridge_output_sensitivity,
)
from expost.erm.sensitivity.statistics import PART_SENSITIVITY, STATISTICS_SENSITIVITY, TRACE_SENSITIVITY

__all__ = [
    "PART_SENSITIVITY",
    "STATISTICS_SENSITIVITY",
    "TRACE_SENSITIVITY",
    "GapScale",
    "Grid",
    "excess_risk_sensitivity",
    "gradient_sensitivity",
    "grid_sensitivity",
    "mean_square_sensitivity",
    "minimiser_l1_sensitivity",
    "minimiser_l2_sensitivity",
    "paper_ridge_output_sensitivity",
]
