"""Looks with Laplace noise on an account at δ: how often they mislead, and what they book. False alarm one in 10⁶."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from expost.account.account import Account
from expost.account.composition import ORDERS, Curve
from expost.noise import SeededSource
from expost.search import noisy_test as pure_looks
from expost.search.noisy_test import FURTHER, LEVELS, RATIO, GradualTest, laplace_deviations as deviations

RUNS, GAMMA, MOVED = 2000, 0.2, 1e-4
FIRST = 0.05  # of the first level
LAST = FIRST * RATIO ** (LEVELS - 1)
MOST = LAST / FURTHER  # while nothing says that it would pass


def looked(truth: float, seed: int, budget: float = 10.0) -> tuple[bool, GradualTest]:
    looks = GradualTest(Account("looks", budget, False, delta=1e-6), SeededSource([43, seed]))
    return looks.pass_at(truth, MOVED, 0.0, MOST, GAMMA), looks


def wrong(truth: float = 1e-9) -> int:
    """How often a value that is just above zero passes."""
    return sum(looked(truth, seed)[0] for seed in range(RUNS))


@pytest.mark.parametrize("levels", [1, 3, LEVELS])
@pytest.mark.parametrize("gamma", [0.2, 0.02])
def test_the_margin_is_what_a_path_of_noise_needs(levels, gamma):
    """Whole paths, by simulation, none given up: misled as often as promised, and nearly that. False alarm 10⁻⁶."""
    rng, runs, c = np.random.default_rng(7), 200_000, deviations(gamma, levels)
    scales = RATIO ** -np.arange(levels)
    noise = rng.laplace(0, scales[-1], runs)
    misled = noise <= -c * scales[-1]
    for scale in scales[-2::-1]:
        jumps = rng.random(runs) > RATIO**-2
        noise = np.where(jumps, noise + rng.laplace(0, scale, runs), noise)
        misled |= noise <= -c * scale
    count = int(misled.sum())
    assert stats.binomtest(count, runs, gamma, alternative="greater").pvalue > 1e-6
    assert count > 0.85 * gamma * runs


def test_a_wrong_yes_is_as_rare_as_promised(monkeypatch):
    monkeypatch.setattr(pure_looks, "_SURELY", 1e9)  # nothing is given up
    count = wrong()
    assert stats.binomtest(count, RUNS, GAMMA, alternative="greater").pvalue > 1e-6
    assert count > 0.7 * GAMMA * RUNS


def test_control_the_margin_of_one_level(monkeypatch):
    """Each level by itself fails with γ then, and there are several."""
    monkeypatch.setattr(pure_looks, "_SURELY", 1e9)
    monkeypatch.setattr(pure_looks, "laplace_deviations", lambda gamma, levels: np.log(1 / (2 * gamma)))
    assert stats.binomtest(wrong(), RUNS, GAMMA, alternative="greater").pvalue < 1e-6


def test_a_look_costs_its_last_level_alone():
    seen = set()
    for seed in range(60):
        passed, looks = looked(-0.004, seed)
        assert np.isclose(looks.account.curve.most, FIRST * RATIO ** (looks.count - 1), rtol=1e-9)
        assert looks.account.curve.split[1] >= FIRST * RATIO ** (looks.count - 1)
        assert looks.scale == pytest.approx(MOVED / (FIRST * RATIO ** (looks.count - 1)), rel=1e-4)
        seen.add((looks.count, passed))
    assert (1, True) in seen
    assert len({count for count, _ in seen}) > 1


def test_a_level_that_does_not_fit_is_not_looked_at():
    counts = [looked(-0.003, seed, budget=1.01 * FIRST)[1].count for seed in range(30)]
    assert set(counts) == {1}
    assert len({looked(-0.003, seed)[1].count for seed in range(30)}) > 1


class Careless(Account):
    """A broken one: sums are rounded to the nearest number, not up."""

    def after(self, generation=0.0, test=0.0):
        return self.probe + (self.test + test) + (self.generation + generation)


@pytest.mark.parametrize("kind", [Account, Careless])
def test_a_level_that_fits_but_for_rounding_is_not_looked_at(kind):
    """Budgets that some level just uses up, and the numbers beside them; without a δ."""
    exceeded = 0
    for seed in range(40):
        before = {"generation": 0.1 * (seed + 1), "probe": 0.7 / (seed + 1)}

        def spent(budget, kind=kind, before=before, seed=seed):
            tests = GradualTest(kind("looks", budget, False, **before), SeededSource([43, seed]))
            tests.pass_at(-0.0005, MOVED, 0.0, MOST, GAMMA)
            return tests.account.total

        levels = [FIRST * RATIO**k for k in range(LEVELS)]
        for level in levels:
            near = sum(before.values()) + level
            for budget in (math.nextafter(near, 0.0), near, math.nextafter(near, math.inf)):
                exceeded += spent(budget) > budget
    assert bool(exceeded) == (kind is Careless)


def test_a_pure_loss_counts_once_whatever_the_order():
    """What makes them cheap: where orders are high a loss ε adds ε, not rε²/2."""
    losses = np.array(Curve.pure(0.05).losses)
    assert (losses <= 0.05).all()
    assert np.isclose(losses[-1], 0.05)
    assert losses[0] < 0.05 * ORDERS[0] * 0.05


@pytest.mark.parametrize("truth", [0.03, 0.1])
def test_a_value_far_above_is_looked_at_once(truth):
    assert {looked(truth, seed)[1].count for seed in range(20)} == {1}


def test_a_value_that_the_last_level_shows_is_not_given_up():
    """It lies three scales beyond what it may usually cost to show: nine in ten pass, few of them at once."""
    truth = -(deviations(GAMMA) + 3.0) * MOVED / MOST
    found = [looked(truth, seed) for seed in range(300)]
    assert np.mean([passed for passed, _ in found]) > 0.85
    assert np.median([looks.count for _, looks in found]) >= 5


def test_control_a_search_that_gives_up_early_is_noticed(monkeypatch):
    monkeypatch.setattr(pure_looks, "_SURELY", 0.0)
    truth = -(deviations(GAMMA) + 3.0) * MOVED / MOST
    assert np.mean([looked(truth, seed)[0] for seed in range(300)]) < 0.7
