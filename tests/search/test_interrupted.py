"""Searches that do not come to their end: what is raised carries a release that charges for the dearest outcome."""

from __future__ import annotations

import math

import numpy as np
import pytest

from expost import ErrorRate, ExcessRisk, MeanSquaredError, RelativeExcessRisk
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.goals.measure import ErrorMeasure, GradientLength, gradient_target
from expost.mechanisms import Covariance, CovarianceGenerator, Output
from expost.mechanisms.output import OutputGenerator
from expost.noise import NoisePath
from expost.search import METHODS, DoublingPlan, doubling_search, run_search, search_path
from expost.search.above_threshold import AboveThreshold
from expost.search.noisy_test import OneTest
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import gradient_sensitivity
from tests.helpers import CountingSource, logistic_rows, plan_of, problem_of, ridge_rows

SECRET = "the income of row 17 is 123456"
ROWS = ridge_rows(3_000, 3, 5)
PROBLEM = problem_of(ROWS, SquaredLoss())


class Broken(Exception):
    """Raised where nothing should be."""


def broken(*arguments, **options):
    raise Broken(SECRET)


def caught(search, *given, **options) -> SearchInterrupted:
    with pytest.raises(SearchInterrupted) as raised:
        search(*given, **options)
    error = raised.value
    assert error.by in ("Broken", "KeyboardInterrupt", "ValueError")
    assert "123456" not in f"{error} {error.release.to_json()}"
    assert (error.release.status, error.release.hypothesis) == ("refused", None)
    assert error.release.epsilon == error.release.epsilon_worst_case
    assert "did not come to its end" in error.release.parameters["reasons"][-1]
    return error


@pytest.fixture(autouse=True)
def every_model_is_made(monkeypatch):
    """Noise may reject models unseen, all of them in about γ of the runs: then nothing would be reached that breaks."""
    monkeypatch.setattr(AboveThreshold, "rejects_next_unseen", False)


class TestRunSearch:
    @pytest.mark.parametrize("method", sorted(METHODS))
    @pytest.mark.parametrize("mechanism", [Covariance(), Output(), Output("spherical")], ids=repr)
    def test_every_method_charges_its_worst_case(self, method, mechanism, monkeypatch):
        """Broken where hypotheses are drawn, or where the first question is asked."""
        options = {"method": method, "max_epsilon": 40.0}
        expected = plan_of(PROBLEM, ExcessRisk(0.05), mechanism=mechanism, **options).worst_case
        for kind in (CovarianceGenerator, OutputGenerator):
            monkeypatch.setattr(kind, "path", broken)
        monkeypatch.setattr(OneTest, "ask_gradually", broken)
        generator = mechanism.on(ROWS, PROBLEM)
        error = caught(run_search, generator, PROBLEM, ExcessRisk(0.05), **options, random_state=0)
        assert error.release.epsilon == expected <= 40.0

    def test_it_says_what_was_asked_for(self, monkeypatch):
        monkeypatch.setattr(CovarianceGenerator, "hypothesis", broken)
        options = {"method": "above_threshold", "failure_probability": 0.2, "random_state": 0}
        release = caught(run_search, ROWS, PROBLEM, ExcessRisk(0.05), **options).release
        assert (release.method, release.perturbation, release.secure) == ("above_threshold", "covariance", False)
        assert (release.promise.excess_risk, release.promise.failure_probability) == (0.05, 0.2)
        assert release.parameters["n"] == ROWS.n

    def test_secure_noise_too(self, monkeypatch):
        monkeypatch.setattr(CovarianceGenerator, "hypothesis", broken)
        assert caught(run_search, ROWS, PROBLEM, ExcessRisk(0.05), method="above_threshold").release.secure

    def test_by_the_user(self, monkeypatch):
        def interrupt(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(CovarianceGenerator, "hypothesis", interrupt)
        options = {"method": "above_threshold", "random_state": 0}
        assert caught(run_search, ROWS, PROBLEM, ExcessRisk(0.05), **options).by == "KeyboardInterrupt"

    @pytest.mark.parametrize("max_epsilon", [None, 30.0])
    def test_after_the_gap_was_probed(self, max_epsilon, monkeypatch):
        """Without a budget there is no bound, so the charge has none."""
        monkeypatch.setattr(CovarianceGenerator, "hypothesis", broken)
        options = {"method": "above_threshold", "max_epsilon": max_epsilon, "random_state": 0}
        error = caught(run_search, ROWS, PROBLEM, RelativeExcessRisk(0.5, baseline="null"), **options)
        assert error.release.epsilon == (math.inf if max_epsilon is None else max_epsilon)

    @pytest.mark.parametrize(
        ("rows", "loss", "goal"),
        [
            (ROWS, SquaredLoss(), MeanSquaredError(0.1)),
            (logistic_rows(3_000, 3, 5), LogisticLoss(), ErrorRate(0.3)),
        ],
        ids=["mean squared error", "error rate"],
    )
    def test_goals_that_are_tested(self, rows, loss, goal, monkeypatch):
        problem = problem_of(rows, loss)
        expected = plan_of(problem, goal).worst_case
        for kind in (CovarianceGenerator, OutputGenerator):
            monkeypatch.setattr(kind, "hypothesis", broken)
        assert caught(run_search, rows, problem, goal, random_state=0).release.epsilon == expected

    def test_what_goes_wrong_before_noise_is_drawn_passes_as_it_is(self, monkeypatch):
        """Making hypotheses of rows may fail; nothing was spent, and nothing has to be charged."""
        monkeypatch.setattr(Covariance, "on", broken)
        source = CountingSource()
        with pytest.raises(Broken):
            run_search(ROWS, PROBLEM, ExcessRisk(0.05), perturbation="covariance", random_state=source)
        assert source.drawn == 0

    def test_a_refusal_charges_what_it_cost(self):
        with pytest.raises(AccuracyNotReached) as refused:
            run_search(ROWS, PROBLEM, ExcessRisk(0.05), method="above_threshold", levels=[1e-6, 2e-6], random_state=0)
        assert refused.value.release.epsilon < refused.value.release.epsilon_worst_case


class TestPathsOfOnesOwn:
    def search(self, postprocess=None, error=lambda h: 1e9):
        measure = ErrorMeasure(error, sensitivity=1.0)
        rule = AboveThreshold.with_epsilon(measure, epsilon=1.0, threshold=20.0, n_tests=3, random_state=0)
        path = NoisePath(np.array([1000]), 1, [0.1, 0.2, 0.3], random_state=0)
        return search_path(path, rule, postprocess)

    @pytest.mark.parametrize("where", ["postprocess", "error"])
    def test_broken(self, where):
        release = caught(self.search, **{where: broken}).release
        assert release.epsilon == pytest.approx(1.3)
        assert release.method == "above_threshold"

    def test_a_path_that_breaks_off(self):
        class Short:
            levels, secure = (0.1, 0.2, 0.3), True

            def __iter__(self):
                raise Broken(SECRET)

        rule = AboveThreshold.with_epsilon(ErrorMeasure(float, sensitivity=1.0), epsilon=1.0, threshold=20.0, n_tests=3)
        release = caught(search_path, Short(), rule).release
        assert release.epsilon == pytest.approx(1.3)
        assert release.secure


class TestBlackBoxes:
    def test_a_black_box_that_fails_in_a_later_round(self):
        """All rounds are charged: that this one failed may tell something about the rows."""
        measure, asked = ErrorMeasure(lambda h: abs(h - 5000.0), sensitivity=1.0), []

        def mechanism(epsilon):
            asked.append(epsilon)
            return broken() if len(asked) == 3 else 0.0

        delta = measure.effective_sensitivity
        plan = DoublingPlan.of(target=100.0, failure_probability=0.1, sensitivity=delta, first=0.001, last=1.0)
        release = caught(doubling_search, mechanism, measure, plan, random_state=1).release
        assert len(asked) == 3 < plan.rounds
        assert (release.epsilon, release.method) == (plan.worst_case, "doubling")

    def test_a_plan_for_too_small_a_sensitivity_asks_nothing(self):
        """Each hypothesis has a sensitivity of its own; one beyond the plan's would cost more than is charged."""
        generator = Covariance().on(ROWS, PROBLEM)
        measure, theta = GradientLength(generator.risk, PROBLEM.loss, ROWS.n), np.full(4, 50.0)
        asked, given = [], {"failure_probability": 0.1, "first": 1e-3, "last": 1.0, "calibration": "tight"}

        class Watching(GradientLength):
            def at_most(self, hypothesis, limit, unit):
                asked.append(limit)
                return super().at_most(hypothesis, limit, unit)

        watching = Watching(generator.risk, PROBLEM.loss, ROWS.n)
        target = gradient_target(0.05, PROBLEM.regularization)
        small = DoublingPlan.of(target=target, sensitivity=gradient_sensitivity(PROBLEM.loss, 1.0) / ROWS.n, **given)
        error = caught(doubling_search, lambda epsilon: theta, watching, small, random_state=0)
        assert (error.by, error.release.epsilon, asked) == ("ValueError", small.worst_case, [])

        enough = DoublingPlan.of(target=target, sensitivity=measure.fine_grid(theta).effective_sensitivity, **given)
        with pytest.raises(AccuracyNotReached) as refused:
            doubling_search(lambda epsilon: theta, watching, enough, random_state=0)
        assert len(asked) == enough.rounds
        assert refused.value.release.epsilon == pytest.approx(enough.worst_case)
        assert refused.value.release.epsilon_test > 1.5 * small.tests_after(small.rounds)
