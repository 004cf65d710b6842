"""When to stop: measures of a hypothesis, noisy tests of them, and proofs that need no test."""

from expost.erm.sensitivity.grid import Grid
from expost.stopping.above_threshold import AboveThreshold
from expost.stopping.calibration import Calibration, above_threshold_accuracy, calibrate
from expost.stopping.gradient import GradientLength, gradient_target
from expost.stopping.measure import ErrorMeasure, Measure
from expost.stopping.one_test import OneTest
from expost.stopping.rule import StoppingRule

__all__ = [
    "AboveThreshold",
    "Calibration",
    "ErrorMeasure",
    "GradientLength",
    "Grid",
    "Measure",
    "OneTest",
    "StoppingRule",
    "above_threshold_accuracy",
    "calibrate",
    "gradient_target",
]
