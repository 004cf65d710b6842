"""Gradients that prove risks, and the tests that ask about them: one at a time, many, and around black boxes."""

import math

import numpy as np
import pytest
from scipy import stats

from expost import (
    AccuracyNotReached,
    LogisticLoss,
    Problem,
    SeededSource,
    SquaredLoss,
    gradient_doubling,
    sums_of,
)
from expost.exceptions import TargetUnreachable
from expost.search.generators import make_generator
from expost.search.methods import _stationarity_rule
from expost.search.query import ErrorQuery
from expost.search.run import run
from expost.search.settings import Settings
from expost.search.stationarity import OneTest, gradient_target

from .tools import RARE, logistic_rows, problem_of, ridge_rows


def test_a_gradient_bounds_the_risk():
    rows = ridge_rows(500, 3, 0)
    risk = make_generator(sums_of(rows), problem_of(rows, SquaredLoss(), 0.1), "covariance").risk
    rng = np.random.default_rng(1)
    for _ in range(50):
        theta = rng.normal(size=4) * rng.choice([0.1, 1, 5])
        assert risk.excess(theta) <= risk.gradient_norm(theta) ** 2 / (2 * 0.02) * (1 + 1e-9)


def test_gradient_norms_agree():
    """Ridge by sums, the same loss by rows, and finite differences."""
    rows = ridge_rows(400, 3, 2)
    problem = problem_of(rows, SquaredLoss(), 0.1)
    by_sums, by_rows = make_generator(sums_of(rows), problem, "covariance"), make_generator(rows, problem, "output")
    theta = np.array([0.3, -1.0, 2.0, 0.1])
    steps = 1e-5 * np.eye(4)
    slopes = [(by_sums.risk.excess(theta + h) - by_sums.risk.excess(theta - h)) / 2e-5 for h in steps]
    assert by_sums.risk.gradient_norm(theta) == pytest.approx(float(np.linalg.norm(slopes)), rel=1e-6)
    assert by_sums.risk.gradient_norm(theta) == pytest.approx(by_rows.risk.gradient_norm(theta), rel=1e-10)


class TestOneTest:
    def test_cost_and_scale(self):
        test = OneTest(target=0.02, failure_probability=0.01, share=0.5)
        assert test.scale == pytest.approx(0.01 / math.log(50))
        assert test.epsilon(1e-5) == pytest.approx(1e-5 * math.log(50) / 0.01)

    @pytest.mark.parametrize(("broken", "caught"), [(1.0, False), (0.5, True)])
    def test_wrong_yes(self, broken, caught):
        """An error at the target passes with probability at most δ; one half-way to the limit passes more often."""
        delta = 0.05
        test = OneTest(target=1.0, failure_probability=delta, share=0.5)
        query = ErrorQuery(lambda _: 1.0 - 0.5 * (1 - broken), sensitivity=0.01)
        source = SeededSource(3)
        runs = 4000
        passed = sum(test.ask(query, None, source)[0] for _ in range(runs))
        assert (stats.binomtest(passed, runs, delta, alternative="greater").pvalue < RARE) == caught

    def test_bad_arguments(self):
        with pytest.raises(ValueError, match="failure_probability"):
            OneTest(1.0, 0.6, 0.5)


def test_one_test():
    """The answer costs Δ/s: a query moved by its whole sensitivity changes the odds of a yes by at most e^ε."""
    test = OneTest(target=1.0, failure_probability=0.1, share=0.5)
    delta = 0.3
    low, high = (ErrorQuery(lambda _, v=value: v, sensitivity=delta) for value in (0.4, 0.4 + delta))
    epsilon = test.epsilon(low.effective_sensitivity)
    runs, source = 6000, SeededSource(4)
    yes_low, yes_high = (sum(test.ask(q, None, source)[0] for _ in range(runs)) / runs for q in (low, high))
    slack = 6 / math.sqrt(runs * min(yes_low, yes_high))
    assert abs(math.log(yes_low / yes_high)) <= epsilon + slack
    assert abs(math.log(yes_low / yes_high)) >= 0.5 * epsilon  # and the charge is not far off


class TestStationarityRule:
    def rule(self, generator, problem, seed, n_tests=16):
        return _stationarity_rule(generator, problem, Settings(n_levels=n_tests), SeededSource(seed))

    def test_a_stated_radius_is_refused(self):
        rows = ridge_rows(200, 2, 1)
        problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=0.01, excess_risk=0.1, radius=1.0)
        with pytest.raises(ValueError, match="leave radius out"):
            run(rows, problem, method="stationarity", random_state=0)

    def test_wrong_accepts(self):
        """Hypotheses whose gradient is just too long pass in at most a γ share of runs, whatever their norms."""
        rows = ridge_rows(5_000, 3, 21)
        problem = problem_of(rows, SquaredLoss(), 0.01)
        generator = make_generator(sums_of(rows), problem, "covariance")
        target = gradient_target(problem.excess_risk, problem.regularization)
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
                rule = self.rule(generator, problem, [23, seed])
                accepted[name] += any(rule.accepts(theta) for theta in thetas)
        gamma = problem.failure_probability
        assert stats.binomtest(accepted["bad"], runs, gamma, alternative="greater").pvalue > RARE
        assert accepted["good"] > 0.9 * runs  # and it is not deaf: the same test would catch a limit too high

    def test_cost_and_promise_end_to_end(self):
        rows = logistic_rows(20_000, 3, 24)
        problem = problem_of(rows, LogisticLoss(), 0.005)
        generator = make_generator(rows, problem, "output")
        release = run(generator, problem, method="stationarity", perturbation="output", random_state=1)
        tested = run(generator, problem, method="above_threshold", perturbation="output", random_state=1)
        assert generator.risk.excess(np.asarray(release.hypothesis)) <= 0.005
        assert release.epsilon_test == self.rule(generator, problem, 1, n_tests=32).epsilon_stop
        assert release.epsilon_test < 0.5 * tested.epsilon_test

    def test_one_use_only(self):
        rows = ridge_rows(500, 3, 25)
        problem = problem_of(rows, SquaredLoss(), 0.1)
        generator = make_generator(sums_of(rows), problem, "covariance")
        rule = self.rule(generator, problem, 1, n_tests=1)
        rule.accepts(np.full(4, 50.0))
        with pytest.raises(RuntimeError, match="over"):
            rule.accepts(np.zeros(4))

    def test_unreachable(self):
        rows = ridge_rows(200, 3, 26)
        with pytest.raises(TargetUnreachable, match="rows"):
            run(rows, problem_of(rows, SquaredLoss(), 1e-4), method="stationarity", max_epsilon=0.1)


class TestGradientDoubling:
    def search(self, seed, last=4.0):
        rows = ridge_rows(20_000, 3, 27)
        problem = problem_of(rows, SquaredLoss(), 0.005)
        generator = make_generator(sums_of(rows), problem, "covariance")
        source = SeededSource([28, seed])
        calls = []

        def black_box(epsilon):
            calls.append(epsilon)
            (step,) = generator.path((epsilon,), source)
            return 1.5 * np.asarray(generator.hypothesis(step.values)) / 1.5

        release = gradient_doubling(black_box, generator.risk, problem, first=1e-3, last=last, random_state=source)
        return release, calls, generator, problem

    def test_costs_are_those_of_the_rounds(self):
        release, calls, generator, problem = self.search(0)
        assert release.epsilon_generation == pytest.approx(1e-3 * (2 ** len(calls) - 1))
        assert calls == [1e-3 * 2**i for i in range(len(calls))]
        assert release.epsilon_test > 0
        assert release.epsilon <= release.epsilon_worst_case
        assert any("ε-private" in claim for claim in release.claims)
        assert generator.risk.excess(np.zeros(4)) > 3 * problem.excess_risk

    def test_the_promise(self):
        excess = []
        for seed in range(60):
            release, _, generator, problem = self.search(seed)
            excess.append(generator.risk.excess(np.asarray(release.hypothesis)))
        above = int((np.array(excess) > problem.excess_risk).sum())
        assert stats.binomtest(above, 60, problem.failure_probability, alternative="greater").pvalue > 1e-3

    def test_refuses_when_no_round_passes(self):
        with pytest.raises(AccuracyNotReached) as caught:
            self.search(0, last=2e-3)
        assert caught.value.release.epsilon > 0
