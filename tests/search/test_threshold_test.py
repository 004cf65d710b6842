"""A test in which every hypothesis is measured in units of its own sensitivity: settled publicly; its exact law."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from expost import numeric as grid
from expost.goals.measure import ErrorMeasure, Measure
from expost.noise import SeededSource
from expost.numeric import UNITS
from expost.search import above_threshold
from expost.search.above_threshold import _SLACK, AboveThreshold, ThresholdTest, calibrate
from tests.helpers import RARE, CountingSource
from tests.search.threshold_helpers import OwnUnitMeasure, calibration, law_of, losses_between, worst_losses

KINDS = ["laplace", "exponential"]
E1, E2, FEW = 0.5, 0.35, 3
SLIP = 1e-9  # what summation in floating point may hide
GAMMA = 0.1
SETTLED = {"room": 0.5, "typical": 0.01, "failure_probability": GAMMA, "n_tests": 8}


class Sized(Measure):
    """Hypotheses (value, sensitivity)."""

    def value(self, hypothesis):
        return hypothesis[0]

    def sensitivity(self, hypothesis):
        return hypothesis[1]


class TestSettling:
    def test_by_hand(self):
        """The calibration is the tight one for as much of the target as is given to noise, at a typical sensitivity."""
        test = ThresholdTest.within(2.0, **SETTLED, name="mine")
        tight = calibrate("tight", target=0.5, failure_probability=GAMMA, n_tests=8, sensitivity=0.01)
        assert test == ThresholdTest(tight, 8, 2.0, 0.5, "mine")
        assert test.epsilon == tight.epsilon
        assert ThresholdTest.within(2.0, **SETTLED).name == "above_threshold"

    def test_costs_grow_as_room_shrinks(self):
        half = ThresholdTest.within(2.0, **{**SETTLED, "room": 0.25})
        assert half.epsilon == pytest.approx(2 * ThresholdTest.within(2.0, **SETTLED).epsilon)

    def test_noise_is_drawn_only_for_a_measure(self):
        test, source = ThresholdTest.within(2.0, **SETTLED), CountingSource()
        rule = test.on(Sized(), source)
        assert source.drawn > 0
        assert (rule.name, rule.n_tests, rule.secure) == ("above_threshold", 8, False)
        assert rule.epsilon_stop == rule.epsilon_worst_case == test.epsilon
        assert rule.epsilon_never == test.calibration.epsilon_never
        assert test.on(Sized()).secure

    def test_without_a_target_of_its_own_it_is_the_calibrations(self):
        """The test of the risk: the same decisions as those of the rule by itself."""
        measure = ErrorMeasure(float, sensitivity=0.01)
        chosen = calibrate(
            "tight", target=1.0, failure_probability=GAMMA, n_tests=8, sensitivity=measure.effective_sensitivity
        )
        stopped = set()
        for seed in range(60):
            rules = (ThresholdTest(chosen, 8).on(measure, seed), AboveThreshold(measure, chosen, 8, random_state=seed))
            found = [next((t for t in range(8) if rule.accepts(0.9 - 0.1 * t)), None) for rule in rules]
            assert found[0] == found[1]
            stopped.add(found[0])
        assert len(stopped) > 3

    def test_one_sensitivity_for_all_is_needed_where_no_target_is_stated(self):
        chosen = calibration("laplace", E1, E2, threshold=1.0)
        with pytest.raises(ValueError, match="needs a target and room"):
            AboveThreshold(Sized(), chosen, 3, random_state=0)
        with pytest.raises(ValueError, match="needs a target and room"):
            ThresholdTest(chosen, 3).on(Sized(), 0)
        with pytest.raises(ValueError, match="one sensitivity for all"):
            AboveThreshold.with_epsilon(Sized(), epsilon=1.0, threshold=1.0, n_tests=3)


def build(kind, *, n_tests=3, threshold=100.0, room=400.0):
    def make(measure):
        chosen = calibration(kind, E1, E2, threshold=threshold)
        return ThresholdTest(chosen, n_tests, target=900.0, room=room).on(measure, 0)

    return make


@pytest.mark.parametrize("kind", KINDS)
class TestPrivacy:
    """As for one sensitivity: outcome probabilities on neighbours, summed exactly; a sensitivity has FEW units here."""

    @pytest.fixture(autouse=True)
    def few_units(self, monkeypatch):
        monkeypatch.setattr(grid, "UNITS", FEW)
        monkeypatch.setattr(above_threshold, "UNITS", FEW)

    def law(self, monkeypatch, kind, n_tests=3):
        return law_of(monkeypatch, build(kind, n_tests=n_tests), FEW, n_tests, OwnUnitMeasure)

    def test_stopping_costs_e1_plus_2e2_and_never_stopping_e1(self, kind, monkeypatch):
        law, rule = self.law(monkeypatch, kind)
        stop, never = worst_losses(law)
        assert stop <= rule.epsilon_stop + SLIP
        assert never <= rule.epsilon_never + SLIP
        assert rule.epsilon_stop == rule.epsilon_worst_case == pytest.approx(E1 + 2 * E2)

    def test_both_costs_are_attained(self, kind, monkeypatch):
        law, rule = self.law(monkeypatch, kind, n_tests=6)
        stop, _ = losses_between(law, [-300] * 5 + [-240], [-1] * 5 + [1])
        _, never = losses_between(law, [-300] * 6, [-1] * 6)
        assert stop >= rule.epsilon_stop - 1e-3
        assert never >= rule.epsilon_never - 1e-3

    def test_query_noise_at_half_the_scale_is_caught(self, kind, monkeypatch):
        law, rule = self.law(monkeypatch, kind)
        stop, _ = losses_between(law.with_query_rate(2.0), [-40, -40, 0], [-1, -1, 1])
        assert stop > rule.epsilon_stop + 0.1

    def test_noise_and_limit_by_hand(self, kind, monkeypatch):
        """Rates are those of one sensitivity; what is taken off the target is (room − threshold)/Δ and the slack."""
        law, _ = self.law(monkeypatch, kind)
        assert (law.threshold_rate, law.query_rate) == (pytest.approx(E1 / FEW), pytest.approx(E2 / FEW))
        assert law.base == 900 - 300 * FEW - _SLACK


class TestWrongAccepts:
    """Values just above the target, sensitivities a thousand times above and below the typical one.

    Binomial, 400 runs, false alarm RARE. Nothing taken off the target for noise is caught.
    """

    runs = 400
    hypotheses = tuple((math.nextafter(2.0, 3.0), 0.01 * size) for size in (1e-3, 1.0, 1e3, 0.1, 30.0, 0.01, 1.0, 5.0))

    def accepted(self, test, hypotheses):
        found = [any(map(test.on(Sized(), SeededSource([5, seed])).accepts, hypotheses)) for seed in range(self.runs)]
        return sum(found)

    @pytest.mark.parametrize("order", [1, -1])
    def test_no_more_often_than_gamma(self, order):
        test = ThresholdTest.within(2.0, **SETTLED)
        wrong = self.accepted(test, self.hypotheses[::order])
        assert stats.binomtest(wrong, self.runs, GAMMA, alternative="greater").pvalue > RARE
        # and nine tenths of γ at least are used up where sensitivities are alike
        alike = self.accepted(test, [(math.nextafter(2.0, 3.0), 0.01)] * 8)
        assert stats.binomtest(alike, self.runs, 0.9 * GAMMA, alternative="less").pvalue > RARE

    def test_without_a_margin_it_is_caught(self):
        test = ThresholdTest.within(2.0, **SETTLED)
        careless = dataclasses.replace(test, room=test.calibration.threshold)
        wrong = self.accepted(careless, self.hypotheses)
        assert stats.binomtest(wrong, self.runs, GAMMA, alternative="greater").pvalue < RARE

    def test_it_is_not_deaf(self):
        """Values below the target by the room, for the typical sensitivity, pass but for about γ; perfect ones too."""
        test = ThresholdTest.within(2.0, **SETTLED)
        assert self.accepted(test, [(1.5, 0.01)] * 8) > 0.8 * self.runs
        assert self.accepted(test, [(0.0, 0.01)] * 8) > 0.8 * self.runs


def test_limits_are_a_target_in_own_units_and_one_offset():
    """Which noise a hypothesis meets does not depend on its sensitivity, only how much that is in real units."""
    seen = []

    class Watching(Sized):
        def at_most(self, hypothesis, limit, unit):
            seen.append(limit - math.floor(2.0 / unit))
            assert unit == hypothesis[1] / (UNITS - 1)
            return False

    test = ThresholdTest.within(2.0, **SETTLED)
    for size in (0.01, 1e-6, 40.0):
        rule = test.on(Watching(), SeededSource(3))
        assert not rule.rejects_next_unseen  # each has to be looked at: limits are known only with its sensitivity
        for _ in range(8):
            rule.accepts((1.0, size))
    assert np.array_equal(seen[:8], seen[8:16])
    assert np.array_equal(seen[:8], seen[16:])
    assert len(set(seen)) == 8
