"""Looks at a value under Gaussian noise: how often they mislead. False alarm one seed in 10⁶ (exact binomial)."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import stats

from expost.noise import SeededSource
from expost.search.noisy_test import NoisyValue, averaged

RUNS, FAILURE, TRUTH = 1000, 0.1, 0.3
VALUE = NoisyValue.of(1e-4, 0.0, gaussian=True)
FIRST, MORE = 0.001, 0.003


@cache
def looks(seed):
    source = SeededSource([41, seed])
    return VALUE.ask(TRUTH, FIRST, source), VALUE.ask(TRUTH, MORE, source)


def misled(margin_of):
    first, both = 0, 0
    for seed in range(RUNS):
        one, two = looks(seed)
        first += one + margin_of(FIRST) < TRUTH
        both += averaged(one, FIRST, two, MORE) + margin_of(FIRST + MORE) < TRUTH
    return first, both


def test_margins_fail_as_rarely_as_they_say_and_no_more_rarely():
    for count in misled(lambda rho: VALUE.margin(rho, FAILURE)):
        assert stats.binomtest(count, RUNS, FAILURE, alternative="greater").pvalue > 1e-6
        assert count > 0.05 * RUNS  # they are not wider than they have to be; missed by one seed in 10⁷


def test_control_a_margin_for_twice_the_failures():
    for count in misled(lambda rho: VALUE.margin(rho, 2 * FAILURE)):
        assert stats.binomtest(count, RUNS, FAILURE, alternative="greater").pvalue < 1e-6


def test_control_a_second_look_as_precise_as_one_likes():
    """A second look whose precision is chosen by the first one: bad noise is kept by adding hardly any more."""
    count = 0
    for seed in range(RUNS):
        one, two = looks(seed)
        more = MORE
        if one + VALUE.margin(FIRST, FAILURE) < TRUTH:  # as bad as one could wish
            more = 0.01 * FIRST
            two = VALUE.ask(TRUTH, more, SeededSource([42, seed]))
        count += averaged(one, FIRST, two, more) + VALUE.margin(FIRST + more, FAILURE) < TRUTH
    assert stats.binomtest(count, RUNS, FAILURE, alternative="greater").pvalue < 1e-5


def test_cost_is_what_the_deviation_says():
    assert np.isclose(VALUE.grid.effective_sensitivity**2 / (2 * VALUE.deviation(FIRST) ** 2), FIRST)
    assert VALUE.grid.effective_sensitivity**2 / (2 * VALUE.deviation(FIRST) ** 2) <= FIRST
