"""Goals beside excess risk: what they promise over many runs, and what they cost.

Statistical tests are seeded, with a false-alarm rate of 10⁻³ each, and each is shown to catch a broken variant.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from expost import (
    ErrorRate,
    HuberLoss,
    LogisticLoss,
    MeanSquaredError,
    RelativeExcessRisk,
    Release,
    Rows,
    SeededSource,
    SmoothedHingeLoss,
    SquaredLoss,
    run,
    sums_of,
)
from expost.erm.measures import MeanSquareByRows, MeanSquareBySums, errors, to_grid
from expost.erm.objective import Objective
from expost.search import own_units
from expost.search.gap_probe import GapPlan, probe_gap
from expost.search.own_units import UNITS, OwnUnitsTest
from expost.search.tested_goal import ErrorShare, SquaredErrorMean

from .goal_tasks import GAMMA, classification, outcome, regression, settle

RARE, RUNS = 1e-3, 200


def truth(rows, theta):
    """Error rate or mean squared error by plain arithmetic on the rows."""
    u, y = rows.x @ np.asarray(theta) / 2**20, rows.y / 2**20
    return float(np.mean((u - y) ** 2)), float(np.mean((u > 0) != (y > 0)))


def too_many(bad, runs=RUNS, gamma=GAMMA):
    return stats.binomtest(bad, runs, gamma, alternative="greater").pvalue < RARE


def without_margin(monkeypatch):
    """Break the test: nothing is taken off the target for noise."""
    calibrate = own_units.calibrate
    monkeypatch.setattr(
        own_units,
        "calibrate",
        lambda name, **given: dataclasses.replace(calibrate(name, **given), threshold=given["target"]),
    )


class TestPromise:
    def assert_kept(self, generator, problem, kind, goal, broken):
        """Most runs release something, and what they release is broken no more often than γ allows."""
        options = {"method": "auto", "perturbation": kind, "goal": goal}
        found = [outcome(generator, problem, random_state=seed, **options).hypothesis for seed in range(RUNS)]
        released = [np.asarray(theta) for theta in found if theta is not None]
        assert not too_many(sum(broken(theta) for theta in released))
        assert len(released) > 0.8 * RUNS

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_kept_in_many_runs(self, task):
        """From rows to release; too easy to catch a missing margin, which is what the next test is for."""
        generator, problem, kind, rows = classification() if task == "error rate" else regression()
        which = 1 if task == "error rate" else 0
        null = truth(rows, np.zeros(rows.p))[which]
        limit = null / 3
        goal = (ErrorRate if which else MeanSquaredError)(limit, margin=0.6)
        self.assert_kept(generator, problem, kind, goal, lambda theta: truth(rows, theta)[which] > limit)

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_hypotheses_just_too_bad(self, task, monkeypatch):
        """The hardest case for the test: every hypothesis is a little beyond the target, whatever its sensitivity."""
        rng = np.random.default_rng(6)
        generator, _, _, rows = classification() if task == "error rate" else regression()
        if task == "error rate":
            measure, typical = ErrorShare(generator.risk.objective), 1 / rows.n
            thetas = [to_grid(rng.normal(size=rows.p), 7.0) for _ in range(400)]
            thetas = sorted(thetas, key=lambda theta: errors(generator.risk.objective, theta))
            rates = [errors(generator.risk.objective, theta) / rows.n for theta in thetas]
            bad = [theta for theta, rate in zip(thetas, rates, strict=True) if rate > 0.2][:16]
            target = errors(generator.risk.objective, bad[0]) / rows.n - 1e-9
        else:
            squares = MeanSquareBySums(generator.sums)
            measure, typical, target = SquaredErrorMean(squares, rows.n), 9 / rows.n, 0.1
            bad = [self.at(squares, generator.risk.optimum, rng.normal(size=rows.p), target) for _ in range(16)]
            assert np.ptp([np.abs(theta).max() for theta in bad]) > 0.3

        def accepted():
            rules = (
                OwnUnitsTest(
                    measure,
                    target=target,
                    room=0.5 * target,
                    typical=typical,
                    failure_probability=GAMMA,
                    n_tests=16,
                    random_state=SeededSource([7, seed]),
                )
                for seed in range(RUNS)
            )
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

    @pytest.mark.parametrize("task", [classification, regression])
    def test_a_fraction_of_the_gap(self, task):
        generator, problem, kind, rows = task(20_000 if task is regression else 3_000)
        gap = generator.risk.excess(np.zeros(rows.p))
        goal = RelativeExcessRisk(1 / 3)
        self.assert_kept(generator, problem, kind, goal, lambda theta: generator.risk.excess(theta) > gap / 3)

    def test_lower_bounds_of_the_gap(self):
        """They hold but for a tenth of γ; without their margin half of them would not."""
        generator, problem, _, rows = regression(20_000)
        gap = generator.risk.excess(np.zeros(rows.p))
        plan = GapPlan.of(problem, generator.risk, None)
        wrong = broken = 0
        for seed in range(RUNS):
            found = probe_gap(generator.risk, rows.p, plan, SeededSource(seed))
            assert found.lower is not None
            assert found.lower >= 0.69 * found.noisy
            wrong += found.lower > gap
            broken += found.noisy > gap
        assert not too_many(wrong, gamma=0.1 * GAMMA)
        assert too_many(broken, gamma=0.1 * GAMMA)


class TestWholeUnits:
    """What the noise is scaled to: integers, as they are computed, on neighbours at random and at corners."""

    @staticmethod
    def neighbours(rng, n, labels):
        x = rng.integers(-(2**19), 2**19 + 1, (n, 2)).astype(np.int32)
        y = (rng.choice([-(2**20), 2**20], n) if labels else rng.integers(-(2**20), 2**20 + 1, n)).astype(np.int32)
        for _ in range(2):
            x, y = x.copy(), y.copy()
            x[0] = np.eye(2, dtype=np.int32)[rng.integers(2)] * rng.choice([-(2**20), 2**20])
            y[0] = rng.choice([-(2**20), 2**20])
            yield Rows(x, y)

    def test_measures(self):
        rng = np.random.default_rng(12)
        moved = {True: 0, False: 0}
        for trial in range(300):
            labels = trial % 2 == 0
            theta = to_grid(rng.normal(size=2) * rng.choice([0.1, 1.0, 3.0]), 15.0)
            found = []
            for rows in self.neighbours(rng, 25, labels):
                if labels:
                    objective = Objective(LogisticLoss(), rows.x / 2**20, rows.y / 2**20, 0.01)
                    measure = ErrorShare(objective)
                else:
                    measure = SquaredErrorMean(MeanSquareBySums(sums_of(rows)), rows.n)
                found.append(measure.units(theta, measure.unit(theta)))
            moved[labels] = max(moved[labels], abs(found[0] - found[1]))
        assert moved[True] == UNITS
        assert 0.9 * UNITS < moved[False] <= UNITS

    def test_heights_of_the_gap(self):
        rng = np.random.default_rng(13)
        for _ in range(60):
            heights = []
            for rows in self.neighbours(rng, 200, labels=False):
                generator, problem, _, _ = settle(rows, SquaredLoss(), 0.05)
                plan = GapPlan.of(problem, generator.risk, max_epsilon=10.0)
                gap = generator.risk.excess(np.zeros(2))
                heights.append(math.floor(plan.scale.height(gap) / plan.grid.grid))
            assert abs(heights[0] - heights[1]) <= plan.grid.units


class TestCosts:
    def test_the_parts_add_up(self):
        generator, problem, kind, _ = regression(20_000)
        common = {"perturbation": kind, "random_state": 3, "max_epsilon": 6.0}
        tested = run(generator, problem, method="auto", goal=MeanSquaredError(0.1), **common)
        assert tested.epsilon_probe == 0
        assert tested.epsilon_test > 0
        assert tested.calibration == "tight"
        relative = run(generator, problem, method="above_threshold", goal=RelativeExcessRisk(0.5), **common)
        assert relative.epsilon_probe > 0
        assert relative.epsilon_test > 0
        for release in (tested, relative):
            assert release.epsilon <= release.epsilon_worst_case <= 6.0
            assert any("epsilon" in reason for reason in release.parameters["reasons"])
            assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("method", ["auto", "certified", "stationarity", "above_threshold", "doubling"])
    def test_every_method_can_go_on_from_the_gap(self, method):
        generator, problem, kind, _ = regression(20_000)
        release = run(
            generator, problem, perturbation=kind, method=method, goal=RelativeExcessRisk(0.5), random_state=1
        )
        assert release.method == method
        assert release.promise.goal == "relative excess risk"
        assert release.promise.at_most == 0.5
        assert generator.risk.excess(np.asarray(release.hypothesis)) <= release.promise.excess_risk
        assert math.isinf(release.epsilon_worst_case)

    def test_the_test_costs_less_with_more_rows_and_more_margin(self):
        def cost(n, margin):
            generator, problem, kind, _ = classification(n)
            release = run(
                generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.2, margin), random_state=0
            )
            return release.epsilon_test

        assert cost(6_000, 0.5) == pytest.approx(cost(3_000, 0.5) / 2)
        assert cost(3_000, 0.25) == pytest.approx(2 * cost(3_000, 0.5))

    def test_the_budget_is_kept(self):
        generator, problem, kind, _ = regression(20_000)
        for budget in (0.3, 1.0, 2.0):
            for goal in (MeanSquaredError(0.04, margin=0.9), RelativeExcessRisk(0.2)):
                common = {"method": "auto", "perturbation": kind, "goal": goal, "max_epsilon": budget}
                release = outcome(generator, problem, random_state=5, **common)
                assert release.epsilon <= release.epsilon_worst_case <= budget

    def test_deterministic(self):
        for task, goal in (
            (classification, ErrorRate(0.2)),
            (regression, MeanSquaredError(0.1)),
            (regression, RelativeExcessRisk(0.5)),
        ):
            generator, problem, kind, rows = task(20_000)
            first = run(generator, problem, method="auto", perturbation=kind, goal=goal, random_state=11)
            again = run(rows, problem, method="auto", perturbation=kind, goal=goal, random_state=11)
            assert first == again


def test_other_losses():
    """Huber by rows for the mean square, the smoothed hinge for the error rate."""
    for task, loss, goal, which in (
        (regression, HuberLoss(0.5), MeanSquaredError(0.1), 0),
        (classification, SmoothedHingeLoss(0.5), ErrorRate(0.25), 1),
    ):
        generator, problem, kind, rows = task(loss=loss)
        release = run(generator, problem, method="auto", perturbation=kind, goal=goal, random_state=2)
        assert truth(rows, release.hypothesis)[which] <= goal.at_most


def test_by_rows_and_by_sums_agree():
    by_sums, _, _, rows = regression()
    by_rows = MeanSquareByRows(Objective(SquaredLoss(), rows.x / 2**20, rows.y / 2**20, 0.01))
    theta = np.array([0.3, -2.0])
    assert by_rows.value(theta) == pytest.approx(MeanSquareBySums(by_sums.sums).value(theta), abs=1e-12)


def test_a_released_hypothesis_is_on_the_grid():
    generator, problem, kind, _ = classification()
    release = run(generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.2), random_state=0)
    theta = np.asarray(release.hypothesis)
    np.testing.assert_array_equal(to_grid(theta, problem.radius), theta)
