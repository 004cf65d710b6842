"""The doubling method: its costs by hand, the factor 2, black boxes and what their owners claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from expost import ExcessRisk, compose
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.goals.measure import ErrorMeasure
from expost.noise import SeededSource, discrete_laplace
from expost.search import DoublingPlan, doubling, doubling_search, run_search
from expost.search.doubling import CALLER_CLAIM
from expost.search.gradual import TESTED_CLAIM
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import N, at_most_by_chance, features, regression_rows

PAPER_DELTA = (0.005**-0.5 + 1) ** 2 / 100_000


def paper_plan(alpha, calibration, **settings):
    return DoublingPlan.of(
        target=alpha,
        failure_probability=0.1,
        sensitivity=PAPER_DELTA,
        first=1e-5,
        last=4 * 17.703 * 0.05 / alpha,
        calibration=calibration,
        **settings,
    )


class TestByHand:
    def test_theorem(self):
        """T = ⌈log₂(70.8/1e-5)⌉ = 23; 2Δ·ln(23/0.1)/0.05 = 0.49876 for each test."""
        plan = paper_plan(0.05, "theorem")
        assert plan.rounds == 23
        assert plan.epsilon_test == pytest.approx(2 * PAPER_DELTA * math.log(230) / 0.05)
        assert plan.epsilon_test == pytest.approx(0.4988, abs=1e-4)

    @pytest.mark.parametrize("calibration", ["published", "tight"])
    def test_one_tail(self, calibration):
        """2Δ·ln(23/0.2)/0.05 = 0.43519."""
        plan = paper_plan(0.05, calibration)
        assert (plan.rounds, plan.epsilon_test) == (23, pytest.approx(0.4352, abs=1e-4))

    def test_stopping_after_k_rounds(self):
        """k tests and (2^k − 1)·ε₁: after 14 rounds 14·0.43519 + 16383e-5 = 6.2565, e^6.2565 = 521."""
        plan = paper_plan(0.05, "published")
        for k in (1, 2, 14, 23):
            assert plan.generation_after(k) == pytest.approx((2**k - 1) * 1e-5)
            assert plan.tests_after(k) == pytest.approx(k * plan.epsilon_test)
        assert plan.epsilon_after(14) == pytest.approx(6.2565, abs=5e-4)

    def test_the_papers_495_lies_between_its_two_usual_rounds(self):
        plan = paper_plan(0.05, "published")
        assert math.exp(plan.epsilon_after(13)) < 495 < math.exp(plan.epsilon_after(14))
        plan = paper_plan(0.075, "published")
        assert math.exp(plan.epsilon_after(12)) < 56.6 < math.exp(plan.epsilon_after(14))

    def test_a_budget_cuts_rounds(self):
        plan = paper_plan(0.05, "theorem", max_epsilon=3.0)
        assert plan.rounds < 23
        assert plan.epsilon_after(plan.rounds) <= 3.0
        # one more round would not have fitted
        more = 2 * PAPER_DELTA * math.log((plan.rounds + 1) / 0.1) / 0.05
        assert (plan.rounds + 1) * more + plan.generation_after(plan.rounds + 1) > 3.0

    def test_no_round_fits(self):
        with pytest.raises(TargetUnreachable, match="Nothing was spent"):
            paper_plan(0.05, "theorem", max_epsilon=0.1)


class TestTheFactor:
    def worst_multiplier(self, factor):
        """Largest (cost of all rounds) / ε*, if the first round at ε* or more is the one that passes; tests aside."""
        plan = DoublingPlan.of(
            target=1.0, failure_probability=0.1, sensitivity=1e-9, first=1e-9, last=1e9, factor=factor
        )
        # worst where ε* lies just above a level: that level fails, and the next one is the last
        return max(plan.generation_after(k + 2) / plan.level(k) for k in range(plan.rounds - 2))

    @pytest.mark.parametrize("factor", [1.2, 1.5, 1.9, 2.0, 2.1, 3.0, 10.0])
    def test_costs_at_worst_f_squared_over_f_minus_one(self, factor):
        """1/(r(1−r)) with r = 1/f."""
        r = 1 / factor
        assert self.worst_multiplier(factor) == pytest.approx(1 / (r * (1 - r)), rel=1e-6)

    def test_two_is_optimal(self):
        factors = [1.1, 1.25, 1.5, 1.75, 1.9, 1.99, 2.0, 2.01, 2.1, 2.5, 3.0, 4.0]
        costs = {factor: self.worst_multiplier(factor) for factor in factors}
        assert min(costs, key=costs.get) == 2.0
        assert costs[2.0] == pytest.approx(4.0, rel=1e-6)


def counting_measure(count=5000.0):
    return ErrorMeasure(lambda h: abs(h - count), sensitivity=1.0)


def counting_plan(measure, **settings):
    given = {"target": 100.0, "failure_probability": 0.1, "first": 0.001, "last": 1.0, **settings}
    return DoublingPlan.of(sensitivity=measure.effective_sensitivity, **given)


class TestBlackBoxes:
    def test_levels_double_until_one_passes(self):
        asked, measure = [], counting_measure()

        def mechanism(epsilon):
            asked.append(epsilon)
            return 5000.0 if epsilon > 0.007 else 0.0

        plan = counting_plan(measure)
        release = doubling_search(mechanism, measure, plan, random_state=1)
        assert asked == [0.001, 0.002, 0.004, 0.008][: len(asked)]
        assert asked[-1] == pytest.approx(0.008)
        assert (release.level, release.n_levels, release.hypothesis) == (3, plan.rounds, 5000.0)
        assert release.epsilon_generation == pytest.approx(0.015)
        assert release.epsilon_test == pytest.approx(4 * plan.epsilon_test)
        assert release.epsilon_worst_case == plan.epsilon_after(plan.rounds)

    def test_the_callers_claim_is_recorded(self):
        measure = counting_measure()
        release = doubling_search(lambda epsilon: 5000.0, measure, counting_plan(measure), random_state=1)
        assert release.claims == (CALLER_CLAIM, TESTED_CLAIM)
        with pytest.raises(AccuracyNotReached) as refused:
            doubling_search(lambda epsilon: 0.0, measure, counting_plan(measure), random_state=1)
        assert refused.value.release.claims == (CALLER_CLAIM, TESTED_CLAIM)

    def test_our_own_mechanism_is_no_claim(self):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)
        options = {"method": "doubling", "random_state": 0}
        release = run_search(regression_rows(N), problem, ExcessRisk(0.02), **options)
        assert release.claims == ()
        with pytest.raises(AccuracyNotReached) as refused:
            run_search(regression_rows(N), problem, ExcessRisk(0.002), max_epsilon=3.0, **options)
        assert refused.value.release.claims == ()

    def test_a_refusal_costs_all_rounds(self):
        measure = counting_measure()
        plan = counting_plan(measure)
        with pytest.raises(AccuracyNotReached) as refused:
            doubling_search(lambda epsilon: 0.0, measure, plan, random_state=1)
        release = refused.value.release
        assert release.epsilon == release.epsilon_worst_case == plan.epsilon_after(plan.rounds)
        assert release.hypothesis is None
        assert compose([release]).epsilon == release.epsilon

    def test_projection_comes_before_the_test(self):
        tested = []

        def error(h):
            tested.append(h)
            return abs(h - 5000.0)

        measure = ErrorMeasure(error, sensitivity=1.0)
        release = doubling_search(
            lambda epsilon: 1e9, measure, counting_plan(measure), project=lambda h: min(h, 5000.0), random_state=1
        )
        assert release.hypothesis == 5000.0
        assert set(tested) == {5000.0}

    def test_around_a_scikit_learn_model(self):
        """Any fitted model is a hypothesis; here coefficients of a logistic regression with Laplace noise added."""
        X, y = features(2000, 3)
        labels, noise = y > 0, SeededSource(2)
        model = LogisticRegression(C=1.0).fit(X, labels)
        # the classical bound 2/(n·λ) with λ = 1/(C·n) in ℓ₂, times √3 in ℓ₁, in thousandths
        units = round(2 * math.sqrt(3) * 1000)

        def private_model(epsilon):
            noisy = LogisticRegression().fit(X, labels)
            noisy.coef_ = model.coef_ + discrete_laplace(epsilon, units, 3, random_state=noise) / 1000
            return noisy

        measure = ErrorMeasure(lambda fitted: 1 - fitted.score(X, labels), sensitivity=1 / 2000)
        plan = DoublingPlan.of(
            target=0.1,
            failure_probability=0.1,
            sensitivity=measure.effective_sensitivity,
            first=0.01,
            last=100.0,
        )
        release = doubling_search(private_model, measure, plan, random_state=noise)
        assert isinstance(release.hypothesis, LogisticRegression)
        assert release.hypothesis.score(X, labels) > 0.8
        assert not release.secure

    @pytest.mark.parametrize("factor", [1.0, 0.5, math.nan])
    def test_factors_that_do_not_grow(self, factor):
        with pytest.raises(ValueError, match="factor must exceed 1"):
            counting_plan(counting_measure(), factor=factor)

    def test_a_plan_for_a_smaller_sensitivity_is_refused(self):
        measure = counting_measure()
        plan = DoublingPlan.of(target=100.0, failure_probability=0.1, sensitivity=0.5, first=0.001, last=1.0)
        with pytest.raises(ValueError, match="effective_sensitivity"):
            doubling_search(lambda epsilon: 5000.0, measure, plan)


class TestWrongAccepts:
    """Every hypothesis just above the target. Binomial, false alarm RARE."""

    trials = 1500

    def wrong_accepts(self, calibration):
        measure, source, wrong = counting_measure(0.0), SeededSource(9), 0
        plan = counting_plan(measure, calibration=calibration)
        above = math.nextafter(100.0, 200.0)
        for _ in range(self.trials):
            try:
                doubling_search(lambda epsilon: above, measure, plan, random_state=source)
                wrong += 1
            except AccuracyNotReached:
                pass
        return wrong

    @pytest.mark.parametrize(
        ("calibration", "share"),
        [
            pytest.param("theorem", 0.05, marks=pytest.mark.slow),
            pytest.param("published", 0.1, marks=pytest.mark.slow),
            ("tight", 0.1),
        ],
    )
    def test_no_more_often_than_promised(self, calibration, share):
        """``theorem`` uses half of γ = 0.1, the others all of it."""
        wrong = self.wrong_accepts(calibration)
        assert wrong <= at_most_by_chance(self.trials, share)
        assert wrong > share * self.trials / 2

    def test_a_test_with_two_thirds_of_its_budget_is_caught(self, monkeypatch):
        def loud(epsilon, *arguments, **options):
            return discrete_laplace(epsilon / 1.5, *arguments, **options)

        monkeypatch.setattr(doubling, "discrete_laplace", loud)
        assert self.wrong_accepts("published") > at_most_by_chance(self.trials, 0.1)


def test_each_test_is_private_on_its_own(monkeypatch):
    """The noise has the scale Δ/ε_test: the Laplace mechanism, then a comparison."""
    drawn = []

    def record(epsilon, sensitivity, size, *, random_state):
        drawn.append((epsilon, sensitivity, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(doubling, "discrete_laplace", record)
    measure = counting_measure()
    plan = counting_plan(measure)
    doubling_search(lambda epsilon: 5000.0, measure, plan)
    assert drawn == [(plan.epsilon_test, measure.uniform.units, plan.rounds)]
