"""Goals beside excess risk: what they promise over many runs, and what they cost.

Statistical tests are seeded, with a false-alarm rate of 10⁻³ each, and each is shown to catch a broken variant.
"""

import dataclasses
import math

import numpy as np
import pytest

from expost import ErrorRate, MeanSquaredError, RelativeExcessRisk, Release
from expost.goals.labels_and_base_rate import ErrorShare
from expost.goals.measure import MeanSquareByRows, MeanSquareBySums
from expost.goals.squared_errors import SquaredErrorMean
from expost.noise import SeededSource
from expost.numeric import to_grid
from expost.search import above_threshold, run_search
from expost.search.above_threshold import ThresholdTest
from expost.solve.losses import HuberLoss, SmoothedHingeLoss, SquaredLoss
from expost.solve.objective import Objective
from tests.goals.helpers import GAMMA, RUNS, classification, regression, too_many
from tests.helpers import outcome


def truth(rows, theta):
    """Error rate or mean squared error by plain arithmetic on the rows."""
    u, y = rows.x @ np.asarray(theta) / 2**20, rows.y / 2**20
    return float(np.mean((u - y) ** 2)), float(np.mean((u > 0) != (y > 0)))


def without_margin(monkeypatch):
    """Break the test: nothing is taken off the target for noise."""
    calibrate = above_threshold.calibrate
    monkeypatch.setattr(
        above_threshold,
        "calibrate",
        lambda name, **given: dataclasses.replace(calibrate(name, **given), threshold=given["target"]),
    )


class TestPromise:
    def assert_kept(self, generator, goal, broken):
        """Most runs release something, and what they release is broken no more often than γ allows."""
        given = (run_search, generator, generator.problem, goal)
        found = [outcome(*given, failure_probability=GAMMA, random_state=seed).hypothesis for seed in range(RUNS)]
        released = [np.asarray(theta) for theta in found if theta is not None]
        assert not too_many(sum(broken(theta) for theta in released))
        assert len(released) > 0.8 * RUNS

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_kept_in_many_runs(self, task):
        """From rows to release; too easy to catch a missing margin, which is what the next test is for."""
        generator, _, rows = classification() if task == "error rate" else regression()
        which = 1 if task == "error rate" else 0
        null = truth(rows, np.zeros(rows.p))[which]
        limit = null / 3
        goal = (ErrorRate if which else MeanSquaredError)(limit, margin=0.6)
        self.assert_kept(generator, goal, lambda theta: truth(rows, theta)[which] > limit)

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_hypotheses_just_too_bad(self, task, monkeypatch):
        """The hardest case for the test: every hypothesis is a little beyond the target, whatever its sensitivity."""
        rng = np.random.default_rng(6)
        generator, _, rows = classification() if task == "error rate" else regression()
        if task == "error rate":
            measure, typical = ErrorShare(generator.risk.objective), 1 / rows.n
            thetas = [to_grid(rng.normal(size=rows.p), 7.0) for _ in range(400)]
            thetas = sorted(thetas, key=lambda theta: generator.risk.objective.errors(theta))
            rates = [generator.risk.objective.errors(theta) / rows.n for theta in thetas]
            bad = [theta for theta, rate in zip(thetas, rates, strict=True) if rate > 0.2][:16]
            target = generator.risk.objective.errors(bad[0]) / rows.n - 1e-9
        else:
            squares = MeanSquareBySums(generator.sums)
            measure, typical, target = SquaredErrorMean(squares, rows.n), 9 / rows.n, 0.1
            bad = [self.at(squares, generator.risk.optimum, rng.normal(size=rows.p), target) for _ in range(16)]
            assert np.ptp([np.abs(theta).max() for theta in bad]) > 0.3

        def accepted():
            test = ThresholdTest.within(
                target, room=0.5 * target, typical=typical, failure_probability=GAMMA, n_tests=16
            )
            rules = (test.on(measure, SeededSource([7, seed])) for seed in range(RUNS))
            return sum(any(rule.accepts(theta) for theta in bad) for rule in rules)

        assert not too_many(accepted())
        without_margin(monkeypatch)
        assert too_many(accepted())

    @staticmethod
    def at(squares, start, direction, target):
        """Return the point along a direction where the mean square has just passed the target."""
        low, high = 0.0, 100.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if squares.value(start + middle * direction) <= target else (low, middle)
        return start + high * (1 + 1e-9) * direction

    @pytest.mark.parametrize("task", [classification, pytest.param(regression, marks=pytest.mark.slow)])
    def test_a_fraction_of_the_gap(self, task):
        generator, _, rows = task(20_000 if task is regression else 3_000)
        gap = generator.risk.excess(np.zeros(rows.p))
        goal = RelativeExcessRisk(1 / 3, baseline="null")
        self.assert_kept(generator, goal, lambda theta: generator.risk.excess(theta) > gap / 3)


class TestCosts:
    def test_the_parts_add_up(self):
        generator, problem, _ = regression(20_000)
        common = {"random_state": 3, "max_epsilon": 6.0}
        tested = run_search(generator, problem, MeanSquaredError(0.1), **common)
        assert tested.epsilon_probe == 0
        assert tested.epsilon_test > 0
        assert tested.calibration == "tight"
        relative = run_search(
            generator, problem, RelativeExcessRisk(0.5, baseline="null"), method="above_threshold", **common
        )
        assert relative.epsilon_probe > 0
        assert relative.epsilon_test > 0
        for release in (tested, relative):
            assert release.epsilon <= release.epsilon_worst_case <= 6.0
            assert any("epsilon" in reason for reason in release.parameters["reasons"])
            assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("method", ["auto", "certified", "stationarity", "above_threshold", "doubling"])
    def test_every_method_can_go_on_from_the_gap(self, method):
        generator, problem, _ = regression(20_000)
        release = run_search(
            generator, problem, RelativeExcessRisk(0.5, baseline="null"), method=method, random_state=1
        )
        assert release.method == method
        assert release.promise.goal == "relative excess risk"
        assert release.promise.at_most == 0.5
        assert generator.risk.excess(np.asarray(release.hypothesis)) <= release.promise.excess_risk
        assert math.isinf(release.epsilon_worst_case)

    def test_the_test_costs_less_with_more_rows_and_more_margin(self):
        def cost(n, margin):
            generator, problem, _ = classification(n)
            return run_search(generator, problem, ErrorRate(0.2, margin), random_state=0).epsilon_test

        assert cost(6_000, 0.5) == pytest.approx(cost(3_000, 0.5) / 2)
        assert cost(3_000, 0.25) == pytest.approx(2 * cost(3_000, 0.5))

    def test_the_budget_is_kept(self):
        generator, problem, _ = regression(20_000)
        for budget in (0.3, 1.0, 2.0):
            for goal in (MeanSquaredError(0.04, margin=0.9), RelativeExcessRisk(0.2, baseline="null")):
                options = {"max_epsilon": budget, "random_state": 5}
                release = outcome(run_search, generator, problem, goal, **options)
                assert release.epsilon <= release.epsilon_worst_case <= budget

    def test_deterministic(self):
        for task, goal in (
            (classification, ErrorRate(0.2)),
            (regression, MeanSquaredError(0.1)),
            (regression, RelativeExcessRisk(0.5, baseline="null")),
        ):
            generator, problem, rows = task(20_000)
            first = run_search(generator, problem, goal, random_state=11)
            again = run_search(rows, problem, goal, random_state=11)
            assert first == dataclasses.replace(again, claims=first.claims)  # a generator is taken as it is


def test_other_losses():
    """Huber by rows for the mean square, the smoothed hinge for the error rate."""
    for task, loss, goal, which in (
        (regression, HuberLoss(0.5), MeanSquaredError(0.1), 0),
        (classification, SmoothedHingeLoss(0.5), ErrorRate(0.25), 1),
    ):
        generator, problem, rows = task(loss=loss)
        release = run_search(generator, problem, goal, random_state=2)
        assert truth(rows, release.hypothesis)[which] <= goal.at_most


def test_a_number_in_scaled_units_is_said_without_what_rounding_added():
    assert 0.35 / 25.0 != 0.014
    assert MeanSquaredError(0.35).in_scaled_units(25.0).words == "mean squared error ≤ 0.014"


def test_by_rows_and_by_sums_agree():
    by_sums, _, rows = regression()
    by_rows = MeanSquareByRows(Objective(SquaredLoss(), rows.x / 2**20, rows.y / 2**20, 0.01))
    theta = np.array([0.3, -2.0])
    assert by_rows.value(theta) == pytest.approx(MeanSquareBySums(by_sums.sums).value(theta), abs=1e-12)


def test_a_released_hypothesis_is_on_the_grid():
    generator, problem, _ = classification()
    release = run_search(generator, problem, ErrorRate(0.2), random_state=0)
    theta = np.asarray(release.hypothesis)
    np.testing.assert_array_equal(to_grid(theta, problem.radius), theta)
