"""The search itself, on things that are not regressions: histograms, generators and rules of one's own."""

from __future__ import annotations

import dataclasses
import math
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from expost import Ledger
from expost.account import geometric_levels
from expost.account.account import Account
from expost.account.composition import add_losses
from expost.exceptions import AccuracyNotReached, BudgetExceeded
from expost.goals.measure import ErrorMeasure
from expost.noise import LevelValue, NoisePath, discrete_laplace
from expost.search import DoublingPlan, doubling_search, search_path
from expost.search.above_threshold import AboveThreshold, ThresholdTest, calibrate
from expost.search.gradual import GradualPlan, first_accepted
from tests.helpers import RARE, at_most_by_chance, outcome

EXAMPLE = Path(__file__).parents[2] / "examples" / "histogram.py"
COUNTS = np.array([523, 1012, 77, 0, 3141])


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


class TestHistogram:
    def test_the_example_runs(self):
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "--seed", "1"], capture_output=True, text=True, timeout=60, check=True
        )
        assert "released at level" in done.stdout
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == 14

    def test_no_count_is_off_by_more_than_promised(self, example, record_property):
        """200 runs; binomial, false alarm RARE. The most private hypothesis of each run would miss the target."""
        off, costs = [], []
        for seed in range(200):
            try:
                release = example["private_histogram"](COUNTS, 40, random_state=seed)
            except AccuracyNotReached:
                continue
            off.append(np.abs(np.array(release.hypothesis) - COUNTS).max())
            costs.append(release.epsilon)
            assert release.epsilon <= release.epsilon_worst_case <= 2.0
        record_property("mean_epsilon", float(np.mean(costs)))
        record_property("share_off", float(np.mean(np.array(off) > 40)))
        assert np.count_nonzero(np.array(off) > 40) <= at_most_by_chance(200, 0.05)
        assert np.mean(off) < 40
        assert len(off) >= 180
        worst = [
            np.abs(next(iter(NoisePath(COUNTS, 2, [0.0015], random_state=seed))).values - COUNTS).max()
            for seed in range(200)
        ]
        assert np.count_nonzero(np.array(worst) > 40) > at_most_by_chance(200, 0.05)

    def test_a_cheap_promise_costs_less(self, example):
        """A quarter at most in more than half of the runs, refusals included; binomial, false alarm RARE."""
        cheaper, runs = 0, 100
        for seed in range(runs):
            loose, strict = (
                outcome(example["private_histogram"], COUNTS, error, random_state=seed) for error in (400, 20)
            )
            cheaper += loose.epsilon < strict.epsilon / 4
        assert stats.binomtest(cheaper, runs, 0.5, alternative="greater").pvalue < RARE

    def test_too_much_for_the_budget(self, example):
        with pytest.raises(ValueError, match="testing alone"):
            example["private_histogram"](COUNTS, 1, max_epsilon=1.0)


class FreshNoise:
    """A generator of one's own: fresh noise at each level, so that the prefix costs the sum of what was used."""

    def __init__(self, value: int, steps: list[float], seed: int) -> None:
        self._value, self._steps, self._seed = value, steps, seed
        self.secure = False

    @property
    def levels(self) -> list[float]:
        return list(np.cumsum(self._steps))

    def __iter__(self):
        for t, step in enumerate(self._steps):
            noise = discrete_laplace(step, 1, 1, random_state=self._seed + t)
            yield LevelValue(t, self.levels[t], self._value + noise)


class FirstBelow:
    """A rule that reads nothing but what was revealed, and so costs nothing."""

    name = "first below"
    secure = True
    epsilon_stop = epsilon_never = epsilon_worst_case = 0.0

    def __init__(self, limit: float) -> None:
        self.limit, self.seen = limit, 0

    def accepts(self, hypothesis) -> bool:
        self.seen += 1
        return bool(np.all(np.asarray(hypothesis) < self.limit))


class TestOnesOwn:
    def test_a_free_rule_costs_only_the_level(self):
        path = NoisePath(COUNTS, 2, geometric_levels(0.001, 1.0, 20), random_state=3)
        values = [step.values for step in path]
        wanted = next(t for t, value in enumerate(values) if (value < 3200).all())
        rule = FirstBelow(3200)
        release = search_path(path, rule)
        assert release.level == wanted == rule.seen - 1
        assert release.method == "first below"
        assert (release.epsilon, release.epsilon_test) == (path.levels[wanted], 0.0)
        assert release.epsilon_worst_case == path.levels[-1]
        assert release.hypothesis == tuple(values[wanted].tolist())
        assert not release.secure  # the path's noise was seeded, whatever the rule's was

    def test_one_seed_anywhere_makes_it_a_simulation(self):
        measure = ErrorMeasure(lambda h: 0.0, sensitivity=1.0)
        for path_seed, rule_seed in [(None, None), (None, 1), (1, None)]:
            path = NoisePath(COUNTS, 2, [0.1, 0.2], random_state=path_seed)
            rule = AboveThreshold.with_epsilon(measure, epsilon=1.0, threshold=1e6, n_tests=2, random_state=rule_seed)
            assert search_path(path, rule).secure is (path_seed is None and rule_seed is None)

    def test_a_generator_of_ones_own(self):
        path = FreshNoise(1000, [0.01, 0.02, 0.04, 0.08, 0.16], seed=5)
        measure = ErrorMeasure(lambda h: abs(float(h) - 1000.0), sensitivity=1.0)
        rule = AboveThreshold.with_epsilon(measure, epsilon=0.5, threshold=60.0, n_tests=5, random_state=1)
        release = search_path(path, rule, lambda value: int(value[0]))
        assert release.epsilon_generation == path.levels[release.level]
        assert release.epsilon == pytest.approx(path.levels[release.level] + 0.5)

    def test_post_processing_is_what_is_tested_and_released(self):
        seen = []

        class Watching(FirstBelow):
            def accepts(self, hypothesis):
                seen.append(hypothesis)
                return len(seen) == 2

        path = NoisePath(COUNTS, 2, [0.1, 0.2, 0.3], random_state=3)
        release = search_path(path, Watching(0), lambda values: float(values.sum()))
        assert release.hypothesis == seen[1]
        assert release.level == 1

    def test_levels_are_revealed_only_until_it_stops(self):
        revealed = []

        def watch(values):
            revealed.append(values)
            return values

        path = NoisePath(COUNTS, 2, geometric_levels(0.01, 1.0, 30), random_state=3)
        release = search_path(path, FirstBelow(4000), watch)
        assert len(revealed) == release.level + 1 < 30

    def test_hypotheses_that_noise_alone_rejects_are_not_computed(self):
        """Never looked at, and the outcome is the same."""
        measure = ErrorMeasure(lambda h: abs(float(h) - 1000.0), sensitivity=1.0)
        computed, spared = 0, 0
        for seed in range(30):
            outcomes = []
            for blind in (False, True):
                path = FreshNoise(1000, [0.01] * 40, seed=100 * seed)
                rule = AboveThreshold.with_epsilon(measure, epsilon=0.05, threshold=20.0, n_tests=40, random_state=seed)
                count = 0

                def look(value):
                    nonlocal count
                    count += 1
                    return int(value[0])

                chosen = _Looking(rule) if blind else rule
                outcomes.append(outcome(search_path, path, chosen, look))
                computed, spared = (computed + count, spared) if blind else (computed, spared + count)
            assert outcomes[0] == dataclasses.replace(outcomes[1], claims=outcomes[0].claims)
        assert spared < 0.8 * computed

    def test_nothing_qualifies(self):
        path = NoisePath(COUNTS, 2, [0.1, 0.2], random_state=3)
        with pytest.raises(AccuracyNotReached) as refused:
            search_path(path, FirstBelow(-math.inf))
        account = Account("first below", 0.2, False)
        returned = first_accepted(path, FirstBelow(-math.inf), None, account)
        refusal = refused.value.release
        assert refusal == dataclasses.replace(returned, claims=refusal.claims)
        assert (returned.status, returned.hypothesis, returned.epsilon) == ("refused", None, 0.2)

    def test_a_rule_with_too_few_tests_is_refused_before_anything_is_revealed(self):
        """Running out half-way would tell that nothing passed, without a release that says what that cost."""
        measure = ErrorMeasure(lambda h: 1e9, sensitivity=1.0)
        rule = AboveThreshold.with_epsilon(measure, epsilon=1.0, threshold=1.0, n_tests=2, random_state=0)
        path = NoisePath(np.array([1]), 1, [0.1, 0.2, 0.3], random_state=0)
        with pytest.raises(ValueError, match="made for 2 hypotheses, the path has 3 levels"):
            search_path(path, rule)
        rule = AboveThreshold.with_epsilon(measure, epsilon=1.0, threshold=1.0, n_tests=3, random_state=0)
        with pytest.raises(AccuracyNotReached):
            search_path(path, rule)

    def test_a_plan_with_too_few_tests_is_refused(self):
        """The same where levels and test are settled together."""
        chosen = calibrate("tight", target=1.0, failure_probability=0.1, n_tests=2, sensitivity=0.1)
        test = ThresholdTest(chosen, 2)
        with pytest.raises(ValueError, match="3 levels are more than the 2 hypotheses"):
            GradualPlan((0.1, 0.2, 0.3), test, lambda generator: None)
        assert GradualPlan((0.1, 0.2), test, lambda generator: None).worst_case == add_losses(0.2, chosen.epsilon)


class _Looking:
    """The same rule, without the shortcut."""

    def __init__(self, rule):
        self._rule = rule

    def __getattr__(self, name):
        if name in ("rejects_next_unseen", "skip"):
            raise AttributeError(name)
        return getattr(self._rule, name)


def test_the_false_alarm_rate_is_what_it_says():
    """The limit itself: one more than it has probability at most RARE, one less than it more."""
    limit = at_most_by_chance(500, 0.1)
    assert stats.binom.sf(limit, 500, 0.1) <= RARE < stats.binom.sf(limit - 1, 500, 0.1)


class TestLedger:
    """Searches of one's own are charged as fits are."""

    @staticmethod
    def by_path(ledger):
        levels = geometric_levels(0.01, 1.0, 5)
        measure = ErrorMeasure(lambda noisy: float(np.abs(noisy - COUNTS).max()), sensitivity=1.0)
        delta = measure.effective_sensitivity
        test = calibrate("tight", target=2000.0, failure_probability=0.05, n_tests=5, sensitivity=delta)
        return search_path(NoisePath(COUNTS, 2, levels), AboveThreshold(measure, test, 2000), ledger=ledger)

    @staticmethod
    def by_doubling(ledger):
        measure = ErrorMeasure(lambda count: abs(count - 5000.0), sensitivity=1.0)
        delta = measure.effective_sensitivity
        plan = DoublingPlan.of(target=2000.0, failure_probability=0.1, sensitivity=delta, first=0.05, last=1.0)
        return doubling_search(
            lambda epsilon: 5000 + int(discrete_laplace(epsilon, 1, 1)[0]), measure, plan, ledger=ledger
        )

    @pytest.mark.parametrize("search", ["by_path", "by_doubling"])
    def test_what_it_costs_is_charged_and_the_rest_given_back(self, search, tmp_path):
        """Errors of 2000 at ε ≥ 0.01: a refusal has probability below e⁻¹⁹."""
        ledger = Ledger.create(tmp_path / "ledger.db", "counts", cap=10.0)
        release = getattr(self, search)(ledger)
        (entry,) = ledger.budget.entries
        assert (entry.id, entry.release_id, entry.loss.epsilon) == (release.id, release.id, release.epsilon)
        assert release.epsilon < release.epsilon_worst_case == entry.events[0].loss.epsilon

    @pytest.mark.parametrize("search", ["by_path", "by_doubling"])
    def test_it_does_not_begin_where_too_little_is_left(self, search, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "counts", cap=0.5)
        with pytest.raises(BudgetExceeded):
            getattr(self, search)(ledger)
        assert ledger.budget.entries == ()
