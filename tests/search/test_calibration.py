"""Calibrations: their budgets by hand, and the chance of a wrong accept by simulation and by integration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from expost.goals.measure import ErrorMeasure
from expost.noise import SeededSource
from expost.search.above_threshold import _SLACK, AboveThreshold, calibrate, exponential_failure
from tests.helpers import at_most_by_chance
from tests.search.threshold_helpers import NoisyTest

NAMES = ["theorem", "published", "tight"]
GAMMA = 0.1

# The paper's ridge experiment: n = 100,000, λ = 0.005, radius 1/√λ.
PAPER_DELTA = (0.005**-0.5 + 1) ** 2 / 100_000


def paper(name, alpha, n_tests=1000):
    return calibrate(name, target=alpha, failure_probability=GAMMA, n_tests=n_tests, sensitivity=PAPER_DELTA)


def laplace_failure(chosen, target, n_tests):
    """P(any of T errors at the target is accepted), continuous Laplace noise, integrated over the threshold's."""
    b1, b2 = chosen.sensitivity / chosen.epsilon_threshold, chosen.sensitivity / chosen.epsilon_query
    margin = target - chosen.threshold

    def given(rho):
        x = (margin - rho) / b2
        tail = 0.5 * math.exp(-x) if x >= 0 else 1 - 0.5 * math.exp(x)
        return math.exp(-abs(rho) / b1) / (2 * b1) * -math.expm1(n_tests * math.log1p(-tail))

    return integrate.quad(given, -30 * b1, 30 * b1, points=[0, margin], limit=500)[0]


class TestByHand:
    @pytest.mark.parametrize(("alpha", "epsilon"), [(0.05, 2.22), (0.075, 1.48)])
    def test_published_is_the_papers_headline(self, alpha, epsilon):
        assert paper("published", alpha).epsilon == pytest.approx(epsilon, abs=0.005)

    def test_published_parts(self):
        """b = 0.05/(4·ln(1.5^¾·√1000/0.1)) = 0.0020627; e₁ = Δ/b, e₂ = Δ/2b; threshold 0.0060067."""
        chosen = paper("published", 0.05)
        b = 0.0020626
        assert chosen.kind == "laplace"
        assert chosen.epsilon_threshold == pytest.approx(PAPER_DELTA / b, rel=1e-3)
        assert chosen.epsilon_query == pytest.approx(PAPER_DELTA / (2 * b), rel=1e-3)
        assert chosen.threshold == pytest.approx(0.0125 + 0.75 * b * math.log(1.5) - 0.5 * b * math.log(1000), rel=1e-3)

    def test_theorem(self):
        """16·Δ·ln(2·1000/0.1)/0.05 with Δ = 0.0022928: 7.266, half on the threshold and a quarter on a query."""
        chosen = paper("theorem", 0.05)
        assert chosen.epsilon == pytest.approx(7.2663, abs=1e-3)
        assert chosen.epsilon == pytest.approx(16 * PAPER_DELTA * math.log(20_000) / 0.05)
        assert chosen.epsilon_never == pytest.approx(chosen.epsilon / 2)
        assert chosen.threshold == 0.025

    def test_tight_is_the_smallest_of_the_three(self):
        theorem, published, tight = (paper(name, 0.05).epsilon for name in NAMES)
        assert tight < published < theorem
        assert tight == pytest.approx(1.426, abs=0.005)

    def test_tight_accepts_a_perfect_hypothesis_at_all_but_gamma(self):
        """Its threshold exceeds the noise on it with probability 1 − γ: w = b₁·ln(1/γ)."""
        chosen = paper("tight", 0.05)
        b1 = PAPER_DELTA / chosen.epsilon_threshold
        assert chosen.threshold == pytest.approx(b1 * math.log(1 / GAMMA))

    @pytest.mark.parametrize("name", NAMES)
    def test_everything_scales_with_sensitivity_over_target(self, name):
        once, twice = paper(name, 0.05), paper(name, 0.1)
        assert once.epsilon == pytest.approx(2 * twice.epsilon)
        assert twice.threshold == pytest.approx(2 * once.threshold)

    @pytest.mark.parametrize("name", NAMES)
    def test_epsilon_is_not_below_its_parts(self, name):
        chosen = paper(name, 0.0313)
        assert chosen.epsilon >= chosen.epsilon_threshold + 2 * chosen.epsilon_query
        assert chosen.epsilon == pytest.approx(chosen.epsilon_threshold + 2 * chosen.epsilon_query)


class TestFailureBounds:
    @pytest.mark.parametrize("gamma", [0.01, 0.1, 0.5])
    @pytest.mark.parametrize("n_tests", [1, 32, 1000])
    def test_published_fails_less_than_its_bound(self, gamma, n_tests):
        chosen = calibrate("published", target=1.0, failure_probability=gamma, n_tests=n_tests, sensitivity=0.1)
        failure = laplace_failure(chosen, 1.0, n_tests)
        assert 0.8 * 1.5**-1.75 * gamma**1.5 < failure <= 1.5**-1.75 * gamma**1.5 < gamma

    @pytest.mark.parametrize("gamma", [0.01, 0.1, 0.5])
    @pytest.mark.parametrize("n_tests", [1, 32, 1000])
    def test_theorem_fails_less_than_gamma(self, gamma, n_tests):
        chosen = calibrate("theorem", target=1.0, failure_probability=gamma, n_tests=n_tests, sensitivity=0.1)
        assert laplace_failure(chosen, 1.0, n_tests) <= gamma / 4

    @pytest.mark.parametrize("gamma", [0.001, 0.1, 0.5, 0.95])
    @pytest.mark.parametrize("n_tests", [1, 32, 1000, 10**6])
    def test_tight_bound_is_above_the_integral_and_below_gamma(self, gamma, n_tests):
        chosen = calibrate("tight", target=1.0, failure_probability=gamma, n_tests=n_tests, sensitivity=0.1)
        b1, b2 = 0.1 / chosen.epsilon_threshold, 0.1 / chosen.epsilon_query
        margin = 1 - chosen.threshold

        def given(rho):
            return math.exp(-rho) * -math.expm1(n_tests * math.log1p(-math.exp(-(margin + b1 * rho) / b2)))

        true = integrate.quad(given, 0, 50, limit=500)[0]
        bound = exponential_failure(margin, b1, b2, n_tests)
        assert true <= bound <= gamma * (1 + 1e-9)
        assert true >= 0.95 * gamma  # and hardly anything is given away

    def test_the_bound_is_one_for_a_single_query(self):
        """Closed form: e^(−m/b₂)·b₂/(b₁+b₂)."""
        exact = math.exp(-0.7 / 0.2) * 0.2 / 0.5
        assert exact <= exponential_failure(0.7, 0.3, 0.2, 1) <= exact * 1.002


class TestWrongAccepts:
    """All errors just above the target, T = 1000: the worst case. Binomial, false alarm RARE for each test."""

    trials, n_tests, target = 500, 1000, 0.05

    def wrong_accepts(self, chosen):
        measure = ErrorMeasure(lambda error: error, sensitivity=PAPER_DELTA)
        source = SeededSource(3)
        above = math.nextafter(self.target, 1.0)
        wrong = 0
        for _ in range(self.trials):
            rule = AboveThreshold(measure, chosen, self.n_tests, random_state=source)
            wrong += any(rule.accepts(above) for _ in range(self.n_tests))
        return wrong

    def calibrated(self, name):
        delta = ErrorMeasure(float, sensitivity=PAPER_DELTA).effective_sensitivity
        return calibrate(name, target=self.target, failure_probability=GAMMA, n_tests=self.n_tests, sensitivity=delta)

    @pytest.mark.parametrize("name", NAMES)
    def test_no_more_often_than_gamma(self, name, record_property):
        wrong = self.wrong_accepts(self.calibrated(name))
        record_property("share_of_wrong_accepts", float(wrong / self.trials))
        assert wrong <= at_most_by_chance(self.trials, GAMMA)
        if name == "tight":  # which uses up its γ
            assert self.trials - wrong <= at_most_by_chance(self.trials, 1 - 0.98 * GAMMA)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_threshold_at_nine_tenths_of_the_target_is_caught(self, name):
        chosen = replace(self.calibrated(name), threshold=0.9 * self.target)
        assert self.wrong_accepts(chosen) > at_most_by_chance(self.trials, GAMMA)

    @pytest.mark.parametrize("name", ["published", "tight"])
    def test_twice_the_noise_is_caught(self, name):
        chosen = self.calibrated(name)
        loud = replace(chosen, epsilon_threshold=chosen.epsilon_threshold / 2, epsilon_query=chosen.epsilon_query / 2)
        assert self.wrong_accepts(loud) > at_most_by_chance(self.trials, GAMMA)


class TestDiscretisation:
    """The grid against the reals, where the grid is coarse enough to see: sensitivity of one unit."""

    @pytest.mark.parametrize("kind", ["laplace", "exponential"])
    def test_the_slack_covers_the_grid(self, kind):
        """P(ρ + ν ≥ m + slack) on the grid is at most P(ρ + ν ≥ m) on the reals, for every margin; both exact."""
        for e1, e2 in [(0.05, 0.05), (0.7, 0.4), (2.5, 1.5), (6.0, 9.0)]:
            law = NoisyTest(0, kind, 1, e1, e2, -1 if kind == "exponential" else 1)
            for margin in (0.0, 0.5, 1.0, 2.25, 7.5, 30.0):
                on_grid = law.stopping(np.array([[math.ceil(margin + _SLACK)]]))[0, 0]
                assert on_grid <= continuous_tail(kind, margin, 1 / e1, 1 / e2) * (1 + 1e-9)


def continuous_tail(kind, margin, b1, b2):
    """P(ν + ρ ≥ margin), ν and ρ Laplace; or P(ν − ρ ≥ margin), both exponential."""
    if kind == "exponential":
        return math.exp(-margin / b2) * b2 / (b1 + b2)
    if math.isclose(b1, b2):
        return 0.5 * math.exp(-margin / b1) * (1 + margin / (2 * b1))
    return (b1**2 * math.exp(-margin / b1) - b2**2 * math.exp(-margin / b2)) / (2 * (b1**2 - b2**2))
