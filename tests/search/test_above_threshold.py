"""The noisy test: its privacy computed exactly on a grid, its law against the samplers, its accuracy theorem."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

from expost.goals.measure import ErrorMeasure
from expost.noise import SeededSource
from expost.search.above_threshold import AboveThreshold
from tests.helpers import RARE, at_most_by_chance
from tests.search.threshold_helpers import UnitMeasure, calibration, law_of, losses_between, worst_losses

KINDS = ["laplace", "exponential"]
E1, E2, DELTA = 0.5, 0.35, 3
SLIP = 1e-9  # what summation in floating point may hide


def build(kind, *, e1=E1, e2=E2, threshold=500.0, n_tests=3, random_state=0):
    def make(measure):
        chosen = calibration(kind, e1, e2, threshold=threshold, sensitivity=measure.uniform.units)
        return AboveThreshold(measure, chosen, n_tests, random_state=random_state)

    return make


@pytest.mark.parametrize("kind", KINDS)
class TestPrivacy:
    """Outcome probabilities on neighbouring query sequences, summed exactly over the discrete noise."""

    def test_stopping_costs_e1_plus_2e2_and_never_stopping_e1(self, kind, monkeypatch):
        law, rule = law_of(monkeypatch, build(kind), DELTA)
        stop, never = worst_losses(law)
        assert stop <= rule.epsilon_stop + SLIP
        assert never <= rule.epsilon_never + SLIP
        assert rule.epsilon_stop == rule.epsilon_worst_case == pytest.approx(E1 + 2 * E2)
        assert rule.epsilon_never == E1

    def test_both_costs_are_attained(self, kind, monkeypatch):
        """Nothing smaller could be charged: five queries that all but force the threshold down, then one to pass."""
        law, rule = law_of(monkeypatch, build(kind, n_tests=6), DELTA, n_tests=6)
        stop, _ = losses_between(law, [-300] * 5 + [-240], [-1] * 5 + [1])
        _, never = losses_between(law, [-300] * 6, [-1] * 6)
        assert stop >= rule.epsilon_stop - 1e-3
        assert never >= rule.epsilon_never - 1e-3

    def test_query_noise_at_half_the_scale_is_caught(self, kind, monkeypatch):
        law, rule = law_of(monkeypatch, build(kind), DELTA)
        stop, _ = losses_between(law.with_query_rate(2.0), [-40, -40, 0], [-1, -1, 1])
        assert stop > rule.epsilon_stop + 0.1

    def test_a_threshold_without_noise_is_caught(self, kind, monkeypatch):
        law, rule = law_of(monkeypatch, build(kind, n_tests=6), DELTA, n_tests=6)
        errors, change = [4] * 6, [-1] * 5 + [1]
        stop, _ = losses_between(law, errors, change)
        _, never = losses_between(law, errors, [-1] * 6)
        assert stop < rule.epsilon_stop
        assert never < rule.epsilon_never
        stop, _ = losses_between(law.without_threshold_noise(), errors, change)
        _, never = losses_between(law.without_threshold_noise(), errors, [-1] * 6)
        assert stop > rule.epsilon_stop + 0.1
        assert never > rule.epsilon_never + 0.1

    def test_noise_is_drawn_at_the_rates_paid_for(self, kind, monkeypatch):
        law, _ = law_of(monkeypatch, build(kind), DELTA)
        assert law.kind == kind
        assert law.threshold_rate == pytest.approx(E1 / DELTA)
        assert law.query_rate == pytest.approx(E2 / DELTA)
        assert law.threshold_sign == (-1 if kind == "exponential" else 1)

    def test_outcomes_of_the_real_samplers_follow_the_exact_law(self, kind, monkeypatch):
        """χ² over 5,000 runs; false alarm RARE. A law with query noise half as wide is refuted by the same test."""
        make, trials = build(kind, threshold=20.0), 5_000
        law, _ = law_of(monkeypatch, make, DELTA)
        errors = np.array([[law.base + 4, law.base + 1, law.base + 6]])
        source, counts = SeededSource(11), np.zeros(4)
        run = build(kind, threshold=20.0, random_state=source)
        for _ in range(trials):
            rule = run(UnitMeasure(DELTA))
            counts[next((t for t, error in enumerate(errors[0]) if rule.accepts(int(error))), 3)] += 1
        assert stats.chisquare(counts, trials * law.stopping(errors)[0]).pvalue > RARE
        assert stats.chisquare(counts, trials * law.with_query_rate(2.0).stopping(errors)[0]).pvalue < RARE


class TestThePapersAlgorithm:
    def test_with_epsilon_splits_it_as_the_paper_does(self, monkeypatch):
        """Lap(2Δ/ε) on the threshold, Lap(4Δ/ε) on each query."""

        def make(measure):
            return AboveThreshold.with_epsilon(measure, epsilon=0.8, threshold=500.0, n_tests=3, random_state=0)

        law, rule = law_of(monkeypatch, make, DELTA)
        assert law.threshold_rate == pytest.approx(0.8 / (2 * DELTA))
        assert law.query_rate == pytest.approx(0.8 / (4 * DELTA))
        assert rule.epsilon_stop == pytest.approx(0.8)
        assert rule.epsilon_never == pytest.approx(0.4)

    def share_accepted(self, margin_share, trials=400, n_tests=200, gamma=0.2, epsilon=1.0, delta=1000):
        """Share of runs that accept anything though all errors lie above threshold + share · a, the paper's margin."""
        a = 8 * delta * np.log(n_tests * 2 / gamma) / epsilon
        error, source = int(5000 + margin_share * a) + 1, SeededSource(5)
        wrong = 0
        for _ in range(trials):
            rule = AboveThreshold.with_epsilon(
                UnitMeasure(delta), epsilon=epsilon, threshold=5000.0, n_tests=n_tests, random_state=source
            )
            wrong += any(rule.accepts(error) for _ in range(n_tests))
        return wrong, at_most_by_chance(trials, gamma)

    def test_accuracy_theorem_holds(self):
        """Binomial, false alarm RARE."""
        wrong, limit = self.share_accepted(1.0)
        assert wrong <= limit

    def test_a_quarter_of_the_theorems_margin_is_refuted(self):
        wrong, limit = self.share_accepted(0.25)
        assert wrong > limit


class TestOneSearchEach:
    def test_negative_limits_reject_whatever_the_hypothesis(self):
        """With a threshold of 0 the noise alone rejects many; skipping those changes no decision."""
        skipped = 0
        for seed in range(200):
            make = build("exponential", threshold=0.0, n_tests=8, random_state=seed)
            rule, other = make(UnitMeasure(DELTA)), make(UnitMeasure(DELTA))
            for _ in range(8):
                if other.rejects_next_unseen:
                    skipped += 1
                    other.skip()
                    assert not rule.accepts(0)
                elif rule.accepts(0):
                    assert other.accepts(0)
                    break
                else:
                    assert not other.accepts(0)
        assert skipped > 200

    def test_skipping_a_hypothesis_that_could_pass_is_refused(self):
        rule = build("laplace", threshold=10_000.0)(UnitMeasure(DELTA))
        assert not rule.rejects_next_unseen
        with pytest.raises(RuntimeError, match="has to be tested"):
            rule.skip()

    def test_a_test_that_has_stopped_stays_stopped(self):
        rule = build("laplace", threshold=10_000.0)(UnitMeasure(DELTA))
        assert rule.accepts(0)
        with pytest.raises(RuntimeError, match="already stopped"):
            rule.accepts(0)

    def test_no_more_tests_than_were_promised(self):
        rule = build("laplace")(UnitMeasure(DELTA))
        for _ in range(3):
            assert not rule.accepts(10**9)
        with pytest.raises(RuntimeError, match="3 hypotheses"):
            rule.accepts(10**9)

    def test_it_cannot_be_pickled(self):
        rule = build("laplace")(UnitMeasure(DELTA))
        with pytest.raises(TypeError, match="unrevealed noise"):
            pickle.dumps(rule)
        with pytest.raises(TypeError, match="private data"):
            pickle.dumps(ErrorMeasure(float, sensitivity=1.0))

    def test_a_test_calibrated_for_less_than_the_measure_moves_is_refused(self):
        measure = ErrorMeasure(float, sensitivity=1.0)
        too_small = calibration("laplace", E1, E2, threshold=1.0, sensitivity=1)
        with pytest.raises(ValueError, match="effective_sensitivity"):
            AboveThreshold(measure, too_small, 3, random_state=0)
