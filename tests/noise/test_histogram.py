"""How far sums over noisy cells are off: bounds on tails hold, and are not far from what is true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from expost.exceptions import TargetUnreachable
from expost.noise.histogram import chernoff, epsilon_for, is_kept, quantile, tail
from expost.noise.laplace import discrete_laplace
from expost.release.evaluation import sets_of
from tests.helpers import RARE, at_most_by_chance


def test_two_cells_in_closed_form():
    """Half the difference of two Laplace variables has the tail (1 + q)·e^(−2q)."""
    for q in (0.5, 2.0, 8.0):
        assert tail(2, 1, q) == pytest.approx((1 + q) * math.exp(-2 * q), abs=1e-8)


@pytest.mark.parametrize(("cells", "size"), [(64, 1), (64, 32), (64, 40), (256, 128)])
def test_tails_are_those_of_draws(cells, size):
    """Two-sided at level RARE each; a tail at 0.9 of the place is told from it."""
    draws, share = np.random.default_rng(0).laplace(size=(40_000, cells)), size / cells
    sums = np.abs((1 - share) * draws[:, :size].sum(axis=1) - share * draws[:, size:].sum(axis=1))
    q = float(np.quantile(sums, 0.95))
    seen = int((sums > q).sum())
    low, high = stats.binom.ppf([RARE, 1 - RARE], 40_000, tail(cells, size, q))
    assert low <= seen <= high
    assert not low <= int((sums > 0.9 * q).sum()) <= high


def errors(noise: np.ndarray) -> np.ndarray:
    """Return how far the worst of the sums is off that an evaluation of classes states, in each draw of noise."""
    noise = noise - noise.mean(axis=(1, 2), keepdims=True)
    negative, positive = noise[:, 0], noise[:, 1]
    above = [np.cumsum(part[:, ::-1], axis=1)[:, ::-1] for part in (negative, positive)]
    below = [part.sum(axis=1, keepdims=True) - rest for part, rest in zip((negative, positive), above, strict=True)]
    sums = (*above, *below, above[0] + above[1], above[0] + below[1])
    return np.max([np.abs(some).max(axis=1) for some in sums], axis=0)


def test_a_margin_is_kept_by_noise_on_integers():
    """In at least 1 − γ of draws; with noise of twice the scale it is not, so a margin of half the size would not be.

    Chance of a false alarm: RARE.
    """
    n, margin, gamma, trials = 3000, 0.06, 0.2, 600
    epsilon = epsilon_for(margin, n, 64, sets_of((2, 32), "classification"), gamma, 2.0)
    missed = [
        int((errors(discrete_laplace(at, 2, trials * 64, random_state=0).reshape(trials, 2, 32)) > margin * n).sum())
        for at in (epsilon, epsilon / 2)
    ]
    assert missed[0] <= at_most_by_chance(trials, gamma) < missed[1]


def test_the_union_costs_a_fifth():
    q = quantile(64, sets_of((2, 32), "classification"), 0.08)
    needed = np.quantile(errors(np.random.default_rng(1).laplace(size=(20_000, 2, 32))), 0.92)
    assert 1.0 <= q / needed < 1.25


def test_a_chance_too_small_for_what_is_known_of_tails_comes_to_an_end():
    with pytest.raises(ValueError, match="too small"):
        quantile(4, ((2, 1),), 1e-12)


@pytest.mark.parametrize("shape", [(2, 4), (2, 32), (2, 100)])
@pytest.mark.parametrize("gamma", [1e-6, 0.1])
def test_what_is_enough_is_what_was_found_to_be(shape, gamma):
    sets, cells = sets_of(shape, "classification"), shape[0] * shape[1]
    epsilon = epsilon_for(0.02, 100_000, cells, sets, gamma, 0.5)
    assert is_kept(0.02, 100_000, cells, sets, gamma, epsilon)
    assert not is_kept(0.02, 100_000, cells, sets, gamma, 0.95 * epsilon)


def test_of_many_cells_as_well():
    """Where the bound is furthest off."""
    sets = sets_of((34, 34), "regression")
    epsilon = epsilon_for(0.05, 10**6, 34 * 34, sets, 0.99, 2.0)
    assert is_kept(0.05, 10**6, 34 * 34, sets, 0.99, epsilon)
    assert not is_kept(0.05, 10**6, 34 * 34, sets, 0.99, epsilon / 2)


def test_numbers_of_others_take_no_time():
    """Tails at such places, or of so many cells, would take all memory."""
    assert is_kept(1.0, 1 << 53, 64, ((32, 1),), 0.1, 1.0)
    sets = sets_of((256, 256), "regression")
    assert is_kept(0.1, 1 << 20, 65536, sets, 0.1, 1.0)
    assert not is_kept(0.1, 1 << 20, 65536, sets, 0.1, 0.005)


def test_weighted_sums():
    """Bounded in nearly all draws, and not by far: half of it is exceeded. Chance of a false alarm: RARE."""
    weights, gamma = np.linspace(-1, 2, 40) ** 2, 0.05
    sums = np.random.default_rng(2).laplace(size=(5000, 40)) @ (weights - weights.mean())
    bound = chernoff(weights, 1.0, gamma)
    assert int((sums > bound).sum()) <= at_most_by_chance(5000, gamma) < int((sums > bound / 2).sum())
    assert chernoff(np.ones(5), 1.0, gamma) == 0.0


def test_a_margin_that_costs_too_much_says_what_would_do():
    sets = sets_of((2, 32), "classification")
    with pytest.raises(TargetUnreachable, match="Nothing was spent") as caught:
        epsilon_for(0.02, 500, 64, sets, 0.1, 2.0)
    enough = int(str(caught.value).split("on about ")[1].split(" rows")[0].replace(",", ""))
    assert epsilon_for(0.02, enough, 64, sets, 0.1, 2.0) <= 2.0
    with pytest.raises(TargetUnreachable):
        epsilon_for(0.02, enough - 2, 64, sets, 0.1, 2.0)
