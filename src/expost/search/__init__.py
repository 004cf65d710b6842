"""From hypotheses to a release: levels, tests, and the methods that join them."""

from expost.search.above_threshold import AboveThreshold
from expost.search.calibration import Calibration, above_threshold_accuracy, calibrate
from expost.search.core import PrefixPrivate, StoppingRule, search
from expost.search.curator import CuratorView, curator_view
from expost.search.doubling import DoublingPlan, doubling_method
from expost.search.goals import ErrorRate, Goal, MeanSquaredError, RelativeExcessRisk
from expost.search.gradient_doubling import gradient_doubling
from expost.search.levels import doubling_rounds, geometric_levels
from expost.search.plan import Problem, TestPlan, plan_test
from expost.search.query import ErrorQuery, Query, QueryGrid
from expost.search.run import cov_nr, output_nr, run

__all__ = [
    "AboveThreshold",
    "Calibration",
    "CuratorView",
    "DoublingPlan",
    "ErrorQuery",
    "ErrorRate",
    "Goal",
    "MeanSquaredError",
    "PrefixPrivate",
    "Problem",
    "Query",
    "QueryGrid",
    "RelativeExcessRisk",
    "StoppingRule",
    "TestPlan",
    "above_threshold_accuracy",
    "calibrate",
    "cov_nr",
    "curator_view",
    "doubling_method",
    "doubling_rounds",
    "geometric_levels",
    "gradient_doubling",
    "output_nr",
    "plan_test",
    "run",
    "search",
]
