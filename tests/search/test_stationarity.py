"""Gradual release stopped by a private test of the gradient."""

import numpy as np
import pytest
from scipy import stats

from expost import ExcessRisk
from expost.exceptions import TargetUnreachable
from expost.goals.measure import gradient_target
from expost.mechanisms import Covariance, Output
from expost.noise import SeededSource
from expost.search import run_search
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import RARE, at_most_by_chance, logistic_rows, outcome, plan_of, problem_of, ridge_rows

GAMMA = 0.1


class TestStationarityRule:
    def rule(self, generator, alpha, seed, n_tests=16):
        plan = plan_of(generator.problem, ExcessRisk(alpha), "stationarity", generator.mechanism, n_levels=n_tests)
        return plan.test.on(plan.measure(generator), SeededSource(seed))

    def test_a_stated_radius_is_refused(self):
        rows = ridge_rows(200, 2, 1)
        problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.01, radius=1.0)
        with pytest.raises(ValueError, match="leave radius out"):
            run_search(rows, problem, ExcessRisk(0.1), method="stationarity", random_state=0)

    def test_wrong_accepts(self):
        """Hypotheses whose gradient is just too long pass in at most a γ share of runs, whatever their norms."""
        rows = ridge_rows(5_000, 3, 21)
        problem, alpha = problem_of(rows, SquaredLoss()), 0.01
        generator = Covariance().on(rows, problem)
        target = gradient_target(alpha, problem.regularization)
        rng = np.random.default_rng(22)
        bad, good = [], []
        for _ in range(16):
            direction = rng.normal(size=rows.p)
            low, high = 0.0, 100.0
            for _ in range(60):
                middle = (low + high) / 2
                short = generator.risk.gradient_norm(generator.risk.optimum + middle * direction) <= target * (1 + 1e-6)
                low, high = (middle, high) if short else (low, middle)
            bad.append(generator.risk.optimum + high * direction)
            good.append(generator.risk.optimum + 0.05 * high * direction)
        runs = 600
        accepted = {"bad": 0, "good": 0}
        for seed in range(runs):
            for name, thetas in (("bad", bad), ("good", good)):
                rule = self.rule(generator, alpha, [23, seed])
                accepted[name] += any(rule.accepts(theta) for theta in thetas)
        assert stats.binomtest(accepted["bad"], runs, GAMMA, alternative="greater").pvalue > RARE
        assert accepted["good"] > 0.9 * runs  # and it is not deaf: the same test would catch a limit too high

    def test_cost_and_promise_end_to_end(self):
        rows = logistic_rows(20_000, 3, 24)
        problem, goal = problem_of(rows, LogisticLoss()), ExcessRisk(0.005)
        generator = Output().on(rows, problem)
        made = [
            outcome(run_search, generator, problem, goal, method="stationarity", random_state=seed)
            for seed in range(30)
        ]
        released = [release for release in made if release.status == "released"]
        above = sum(generator.risk.excess(np.asarray(release.hypothesis)) > 0.005 for release in released)
        assert above <= at_most_by_chance(len(made), GAMMA)  # false alarm RARE
        stop = self.rule(generator, 0.005, 1, n_tests=32).epsilon_stop
        assert {release.epsilon_test for release in released} == {stop}
        assert stop < 0.5 * plan_of(problem, goal, "above_threshold", Output()).test.epsilon

    def test_one_use_only(self):
        rows = ridge_rows(500, 3, 25)
        rule = self.rule(Covariance().on(rows, problem_of(rows, SquaredLoss())), 0.1, 1, n_tests=1)
        assert not rule.accepts(np.full(4, 50.0))
        with pytest.raises(RuntimeError, match="all were used"):
            rule.accepts(np.zeros(4))

    def test_unreachable(self):
        rows = ridge_rows(200, 3, 26)
        with pytest.raises(TargetUnreachable, match="rows"):
            run_search(rows, problem_of(rows, SquaredLoss()), ExcessRisk(1e-4), method="stationarity", max_epsilon=0.1)
