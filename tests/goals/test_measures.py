"""Measures that goals are tested on: how far one row moves them, and one question asked about them."""

import math

import numpy as np
import pytest

from expost.goals.labels_and_base_rate import ErrorShare
from expost.goals.measure import MeanSquareBySums
from expost.goals.squared_errors import SquaredErrorMean
from expost.noise import SeededSource
from expost.numeric import UNITS, to_grid
from expost.passes.sums import sums_over
from expost.search.noisy_test import OneTest
from expost.solve.losses import LogisticLoss
from expost.solve.objective import Objective
from tests.goals.helpers import classification, neighbours, regression, too_many
from tests.helpers import smallest_limit


def test_measures_move_no_further_than_charged():
    """What the noise is scaled to: integers, as they are computed, on neighbours at random and at corners."""
    rng = np.random.default_rng(12)
    moved = {True: 0, False: 0}
    for trial in range(300):
        labels = trial % 2 == 0
        theta = to_grid(rng.normal(size=2) * rng.choice([0.1, 1.0, 3.0]), 15.0)
        found = []
        for rows in neighbours(rng, 25, labels):
            if labels:
                objective = Objective(LogisticLoss(), rows.x / 2**20, rows.y / 2**20, 0.01)
                measure = ErrorShare(objective)
            else:
                measure = SquaredErrorMean(MeanSquareBySums(sums_over(rows)), rows.n)
            assert measure.grid(theta).units == UNITS
            found.append(smallest_limit(measure, theta))
        moved[labels] = max(moved[labels], abs(found[0] - found[1]))
    assert moved[True] == UNITS
    assert 0.9 * UNITS < moved[False] <= UNITS


@pytest.mark.parametrize("n", [1_100, 2_000, 4_096])
def test_one_question_about_an_error_rate(n):
    """A share just above the target passes as rarely as promised, whatever n is, and one well below it often."""
    generator, _, _ = classification(n)
    measure, theta = ErrorShare(generator.risk.objective), to_grid(np.array([-1.0, 0.5, 0.1]), 5.0)
    share, delta = measure.value(theta), 0.05
    assert share * n == pytest.approx(round(share * n))
    yes = {
        target: sum(OneTest(target, delta, 0.3).ask(measure, theta, SeededSource([3, seed]))[0] for seed in range(300))
        for target in (share * (1 - 1e-9), 2 * share)
    }
    assert not too_many(yes[share * (1 - 1e-9)], 300, delta)
    assert yes[2 * share] > 240


def test_one_question_about_a_mean_square():
    generator, _, rows = regression()
    measure, theta = SquaredErrorMean(MeanSquareBySums(generator.sums), rows.n), np.array([0.3, -2.0])
    value, delta = measure.value(theta), 0.05
    yes = {
        target: sum(OneTest(target, delta, 0.3).ask(measure, theta, SeededSource([4, seed]))[0] for seed in range(300))
        for target in (value * (1 - 1e-9), 2 * value)
    }
    assert not too_many(yes[value * (1 - 1e-9)], 300, delta)
    assert yes[2 * value] > 240


def test_grids_of_an_error_rate_are_those_of_counts():
    """A limit of k counts and a bit passes k errors and not one more; the charge is one count, with nothing added."""
    generator, _, _ = classification(1_100)
    measure, theta = ErrorShare(generator.risk.objective), to_grid(np.array([-1.0, 0.5, 0.1]), 5.0)
    count = round(measure.value(theta) * 1_100)
    for grid in (measure.grid(theta), measure.fine_grid(theta)):
        assert grid.units * grid.unit == pytest.approx(1 / 1_100, rel=1e-12)
        assert smallest_limit(measure, theta, grid.unit) == count * grid.units
    assert math.isclose(measure.sensitivity(), 1 / 1_100)
