"""An error rate or a mean squared error, by AboveThreshold over gradual release (theory B9 with A3, B5).

*Released*: hypotheses up to the first whose measure passes a noisy limit. *Neighbours*: one row replaced.
*Sensitivity*: the number of misclassified rows is an exact integer for θ on a public grid and moves by at most one; the
mean squared error of a released θ moves by at most (1 + ‖θ‖_∞)²/n (`expost.erm.measures`). *Theorem*: gradual release
for the hypotheses, `expost.search.own_units` for the test. Rounding θ to the grid is post-processing, and the rounded
θ is what is tested and released.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.erm.measures import MeanSquare, MeanSquareByRows, MeanSquareBySums, errors, to_grid
from expost.erm.objective import Objective
from expost.erm.sensitivity import mean_square_sensitivity
from expost.exceptions import AccuracyNotReached
from expost.noise.source import WordSource
from expost.privacy.release import Release
from expost.search.core import PrefixPrivate, search
from expost.search.covariance import CovarianceGenerator
from expost.search.goals import ErrorRate, MeanSquaredError
from expost.search.output import OutputGenerator
from expost.search.own_units import UNITS, Measure, OwnUnitsTest, unit_of
from expost.search.plan import Noise, Perturbation, Problem, goal_levels, level_count

# levels end where a single shot typically has an excess risk of this part of the goal: a finer one would change little
_FINEST = 100
_TYPICAL_COORDINATE = 2.0  # only settles how the margin of a mean squared error is stated; any value is sound


class ErrorShare:
    """Share of misclassified rows: an exact count, so the sensitivity is 1/n and nothing is added to it."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective

    def unit(self, theta: NDArray[np.float64]) -> float:
        """Return 1/n in UNITS parts."""
        return 1.0 / (self._objective.n * UNITS)

    def units(self, theta: NDArray[np.float64], unit: float) -> int:
        """Return the number of errors, each UNITS units."""
        return errors(self._objective, theta) * UNITS

    def lower(self, theta: NDArray[np.float64]) -> float:
        """Return nothing: there is no cheaper way than to count."""
        return 0.0


class SquaredErrorMean:
    """Mean squared error; sensitivity (1 + ‖θ‖_∞)²/n."""

    def __init__(self, mean_square: MeanSquare, n: int) -> None:
        self._mean_square, self._n = mean_square, n

    def unit(self, theta: NDArray[np.float64]) -> float:
        """Return the size of one unit."""
        largest = _largest(theta)
        return unit_of(mean_square_sensitivity(largest, self._n), self._mean_square.error_bound(largest))

    def units(self, theta: NDArray[np.float64], unit: float) -> int:
        """Return the mean squared error in units, rounded up."""
        error = self._mean_square.error_bound(_largest(theta))
        return math.ceil((self._mean_square.value(theta) + error) / unit)

    def lower(self, theta: NDArray[np.float64]) -> float:
        """Return nothing: the mean square is cheap where it comes from sums."""
        return 0.0


def search_tested_goal(
    generator: CovarianceGenerator | OutputGenerator,
    problem: Problem,
    perturbation: Perturbation,
    goal: ErrorRate | MeanSquaredError,
    *,
    path: Callable[[tuple[float, ...]], PrefixPrivate],
    noise: Noise = "laplace",
    levels: Sequence[float] | None = None,
    n_levels: int | None = None,
    max_epsilon: float | None = None,
    source: WordSource,
) -> Release:
    """Search for the most private hypothesis that meets the goal; ``problem.excess_risk`` is not looked at.

    ``path`` draws the gradual release of the generator's statistic at given levels, with noise of the stated kind.
    """
    if isinstance(goal, MeanSquaredError) and goal.at_most >= 1:
        raise ValueError(
            "always predicting the middle of the target bounds has a mean squared error of at most one half-width of "
            "those bounds squared, whatever the rows: ask for less, or use that model, which costs nothing"
        )
    measure, typical, postprocess = _settle(generator, problem, goal)
    n_tests = level_count("tight", levels, n_levels)
    rule = OwnUnitsTest(
        measure,
        target=goal.at_most,
        room=goal.margin * goal.at_most,
        typical=typical,
        failure_probability=problem.failure_probability,
        n_tests=n_tests,
        random_state=source,
    )
    # the risk of regression is half the mean square
    risk = goal.at_most if isinstance(goal, ErrorRate) else goal.at_most / 2
    chosen = goal_levels(
        dataclasses.replace(problem, excess_risk=risk / _FINEST),
        perturbation,
        rule.epsilon_stop,
        n_tests,
        levels,
        max_epsilon,
        noise,
    )
    what = "error rate" if isinstance(goal, ErrorRate) else "mean squared error"
    reasons = (f"{what}: tested as it stands for epsilon = {rule.epsilon_stop:.3g}; no certificate is about it",)
    try:
        release = search(path(chosen), postprocess, rule)
    except AccuracyNotReached as refusal:
        raise AccuracyNotReached(refusal.release.with_details(parameters={"reasons": reasons})) from None
    return release.with_details(parameters={"reasons": reasons})


def _settle(
    generator: CovarianceGenerator | OutputGenerator, problem: Problem, goal: ErrorRate | MeanSquaredError
) -> tuple[Measure, float, Callable[[Any], Any]]:
    """Return the measure, its typical sensitivity, and how values become hypotheses."""
    if isinstance(goal, ErrorRate):
        assert isinstance(generator, OutputGenerator)  # losses of labels have no other
        return (
            ErrorShare(generator.risk.objective),
            1.0 / problem.n,
            lambda values: to_grid(generator.hypothesis(values), problem.radius),
        )
    mean_square: MeanSquare
    if isinstance(generator, CovarianceGenerator):
        mean_square = MeanSquareBySums(generator.sums)
    else:
        mean_square = MeanSquareByRows(generator.risk.objective)
    typical = mean_square_sensitivity(min(problem.radius, _TYPICAL_COORDINATE), problem.n)
    return SquaredErrorMean(mean_square, problem.n), typical, generator.hypothesis


def _largest(theta: NDArray[np.float64]) -> float:
    return float(np.abs(theta).max(initial=0.0))
