"""A fraction of what the null model leaves on the table: the private measurement of that gap, and what it leaves over.

Statistical tests are seeded, with a false-alarm rate of 10⁻³ each, and each is shown to catch a broken variant.
"""

import dataclasses
import math

import numpy as np
import pytest

from expost import RelativeExcessRisk, Release
from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import AccuracyNotReached, NotPrivateWarning, TargetUnreachable
from expost.goals.relative_excess_risk import GapPlan, RelativePlan, constant_gain, probe_gap
from expost.mechanisms import Covariance, Output
from expost.noise import SeededSource
from expost.search import METHODS, Request, run_search
from expost.solve.losses import HuberLoss, LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.table.bounds_encoding import Preparation
from tests.goals.helpers import GAMMA, RUNS, neighbours, regression, settle, too_many
from tests.helpers import CountingSource


def test_lower_bounds_of_the_gap():
    """They hold but for a tenth of γ; without their margin half of them would not."""
    generator, problem, rows = regression(20_000)
    gap = generator.risk.excess(np.zeros(rows.p))
    plan = GapPlan.of(problem, GAMMA, generator.mechanism.errors(problem), None)
    wrong = broken = 0
    for seed in range(RUNS):
        found = probe_gap(generator.risk, problem.loss, rows.p, plan, SeededSource(seed))
        assert found.lower is not None
        assert found.lower >= 0.69 * found.noisy
        wrong += found.lower > gap
        broken += found.noisy > gap
    assert not too_many(wrong, gamma=0.1 * GAMMA)
    assert too_many(broken, gamma=0.1 * GAMMA)


def test_heights_of_the_gap():
    rng = np.random.default_rng(13)
    for _ in range(60):
        heights = []
        for rows in neighbours(rng, 200, labels=False):
            generator, problem, _ = settle(rows, SquaredLoss(), 0.05)
            plan = GapPlan.of(problem, GAMMA, generator.mechanism.errors(problem), max_epsilon=10.0)
            gap = generator.risk.excess(np.zeros(2))
            heights.append(math.floor(plan.scale.height(gap) / plan.grid.unit))
        assert abs(heights[0] - heights[1]) <= plan.grid.units


class TestAfterTheProbe:
    @pytest.mark.parametrize("on_failure", ["refuse", "release_optimum"])
    def test_the_null_model_is_the_optimum(self, on_failure):
        recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
        rows = recipe.prepare_regression(np.random.default_rng(9).uniform(-0.5, 0.5, (500, 2)), np.zeros(500))
        generator, problem, _ = settle(rows, SquaredLoss(), 0.05)
        given = (generator, problem, RelativeExcessRisk(0.1, baseline="null"))
        if on_failure == "release_optimum":
            with pytest.warns(NotPrivateWarning):
                release = run_search(*given, on_failure=on_failure, random_state=0)
            assert math.isinf(release.epsilon)
            return
        with pytest.raises(AccuracyNotReached) as refusal:
            run_search(*given, random_state=0)
        release = refusal.value.release
        assert release.epsilon == release.epsilon_probe == 1.0
        assert "null model is the optimum" in release.parameters["reasons"][0]
        assert release.promise.excess_risk is None

    def test_what_the_probe_leaves_is_too_little(self):
        """A refusal and not "nothing was spent": the probe was."""
        generator, problem, _ = regression(20_000)
        options = {"method": "stationarity", "max_epsilon": 0.4, "random_state": 0}
        with pytest.raises(AccuracyNotReached) as refusal:
            run_search(generator, problem, RelativeExcessRisk(0.01, baseline="null"), **options)
        release = refusal.value.release
        assert release.epsilon_probe > 0
        assert "what is left of the budget" in release.parameters["reasons"][0]

    def test_a_budget_spent_to_the_last_bit(self):
        """The probe joins the method's own, and what that rounds up to must not break the budget after the fact."""
        rng = np.random.default_rng(13)
        problem = Problem.of(SquaredLoss(), n=1000, p=2, regularization=0.01)
        for _ in range(300):
            budget = 10 ** rng.uniform(-3, 2)
            spent = budget * rng.uniform(0.001, 0.5)
            goal = RelativeExcessRisk(0.5, baseline="null")
            request = Request(problem, goal, METHODS["certified"], Covariance(), max_epsilon=budget)
            left = RelativePlan(goal, request, probe=None).reduced(0.5, spent).max_epsilon
            probe, test = left * rng.uniform(0, 0.3, 2)
            generation = left - probe - test
            while add_losses(generation, test, probe) > left:
                generation = math.nextafter(generation, 0)
            found = Release(
                status="refused",
                method="certified",
                epsilon_generation=generation,
                epsilon_test=test,
                epsilon_probe=probe,
                epsilon_worst_case=left,
            )
            joined = Account("certified", budget, secure=True, probe=spent).conclude(found)
            assert budget * (1 - 1e-11) < joined.epsilon <= joined.epsilon_worst_case == budget

    def test_what_is_left_for_the_method(self):
        """The fraction of the gap, nine tenths of γ, and the budget less the probe; no more than that."""
        problem, goal = (
            Problem.of(SquaredLoss(), n=1000, p=2, regularization=0.01),
            RelativeExcessRisk(0.25, baseline="null"),
        )
        request = Request(
            problem, goal, METHODS["certified"], Covariance(), 0.2, max_epsilon=3.0, on_failure="release_optimum"
        )
        left = RelativePlan(goal, request, probe=None).reduced(0.4, 1.0)
        assert left.goal.at_most == pytest.approx(0.1, rel=1e-11)
        assert left.goal.at_most < 0.25 * 0.4
        assert left.failure_probability == pytest.approx(0.18)
        assert (left.max_epsilon, left.on_failure) == (pytest.approx(2.0, rel=1e-11), "refuse")
        assert left.max_epsilon < 2.0
        assert (left.method, left.mechanism, left.problem) == (request.method, request.mechanism, problem)


class TestBeforeTheProbe:
    @pytest.mark.parametrize("max_epsilon", [None, 5.0])
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"method": "above_threshold", "levels": [0.1, 0.2], "n_levels": 2}, "not both"),
            ({"method": "above_threshold", "levels": [0.2, 0.1]}, "increasing"),
            ({"method": "above_threshold", "n_levels": 0}, "n_levels"),
            ({"method": "above_threshold", "calibration": "loose"}, "calibration"),
            ({"method": "doubling", "calibration": "loose"}, "calibration"),
            ({"method": "doubling", "factor": 1.0}, "factor"),
            ({"method": "stationarity", "n_levels": 2.5}, "n_levels"),
            ({"method": "certified"}, "leave radius out"),
        ],
    )
    def test_mistakes_are_found_before_the_gap_is_measured(self, given, message, max_epsilon):
        generator, problem, rows = regression(20_000, loss=HuberLoss(0.5))
        if given["method"] == "certified":
            problem = dataclasses.replace(problem, radius=1.0, radius_stated=True)
            generator = Output().on(rows, problem)
        source = CountingSource()
        options = {"max_epsilon": max_epsilon, "random_state": source}
        with pytest.raises(ValueError, match=message):
            run_search(generator, problem, RelativeExcessRisk(0.5, baseline="null"), **options, **given)
        assert source.drawn == 0

    @pytest.mark.parametrize("method", ["stationarity", "doubling", "above_threshold"])
    def test_hopeless_budgets_are_found_before_the_gap_is_measured(self, method):
        generator, problem, _ = regression(20_000)
        source = CountingSource()
        options = {"max_epsilon": 0.1, "random_state": source}
        with pytest.raises(TargetUnreachable, match="Nothing was spent"):
            run_search(generator, problem, RelativeExcessRisk(0.003, baseline="null"), method=method, **options)
        assert source.drawn == 0


class TestAgainstTheBestConstant:
    """The mean, or the share of labels, is what people compare with; the middle of the bounds is easier to beat."""

    @staticmethod
    def task(labels):
        """Return a task whose targets are far from the middle: the null model leaves much more than the constant."""
        rng = np.random.default_rng(3)
        n = 20_000 if labels else 100_000
        X = rng.uniform(-1, 1, (n, 2)) / 2
        recipe = Preparation(None, 1.0, None if labels else (-1.0, 1.0), intercept_weight=0.5, n_columns=2)
        if labels:
            positive = X @ [2.0, -1.0] + 0.8 - rng.logistic(size=n) / 9 > 0
            return settle(recipe.prepare_classification(X, positive, (False, True)), LogisticLoss(), 0.002)
        return settle(recipe.prepare_regression(X, np.clip(0.5 + X @ [0.8, -0.8], -1, 1)), SquaredLoss(), 0.002)

    @pytest.mark.parametrize("labels", [False, True])
    def test_lower_bounds_of_the_gap(self, labels):
        """They hold but for a tenth of γ; without their margin half of them would not, and those of the null model
        are far above."""
        generator, problem, rows = self.task(labels)
        gap = generator.risk.excess(np.zeros(rows.p)) - constant_gain(generator.risk, problem.loss)
        assert gap > 0
        bounds = generator.mechanism.errors(problem)
        plan = GapPlan.of(problem, GAMMA, bounds, None, "constant")
        wrong = broken = 0
        for seed in range(RUNS):
            found = probe_gap(generator.risk, problem.loss, rows.p, plan, SeededSource(seed))
            wrong += found.lower is not None and found.lower > gap
            broken += found.noisy > gap
        assert not too_many(wrong, gamma=0.1 * GAMMA)
        assert too_many(broken, gamma=0.1 * GAMMA)
        null = GapPlan.of(problem, GAMMA, bounds, None, "null")
        assert probe_gap(generator.risk, problem.loss, rows.p, null, SeededSource(0)).lower > 2 * gap

    def test_the_promise_is_kept_and_says_against_what(self):
        generator, problem, rows = self.task(labels=False)
        release = run_search(generator, problem, RelativeExcessRisk(0.3), max_epsilon=10.0, random_state=0)
        gap = generator.risk.excess(np.zeros(rows.p)) - constant_gain(generator.risk, problem.loss)
        assert generator.risk.excess(release.hypothesis) <= 0.3 * gap
        assert "0.3 of what the best constant" in release.promise.statement
        assert "gap of the best constant probed" in release.parameters["reasons"][0]

    def test_no_model_is_better_at_a_large_regularization(self):
        """The probe costs 2 at most, whatever the budget, and the refusal says what to change."""
        generator, problem, _ = settle(self.task(labels=False)[2], SquaredLoss(), 5.0)
        with pytest.raises(AccuracyNotReached) as refusal:
            run_search(generator, problem, RelativeExcessRisk(0.5), max_epsilon=10.0, random_state=0)
        release = refusal.value.release
        assert release.epsilon == release.epsilon_probe == 2.0
        assert "a smaller one may help" in release.parameters["reasons"][0]

    def test_only_losses_whose_best_constant_is_known(self):
        generator, problem, _ = regression(2_000, loss=HuberLoss(0.5))
        with pytest.raises(ValueError, match="baseline='null'"):
            run_search(generator, problem, RelativeExcessRisk(0.5))
        with pytest.raises(ValueError, match="baseline must be one of"):
            RelativeExcessRisk(0.5, baseline="mean")
