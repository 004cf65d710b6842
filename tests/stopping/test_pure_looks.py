"""Looks with Laplace noise on an account at δ: how often they mislead, and what they book. False alarm one in 10⁶."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from expost.noise import SeededSource
from expost.privacy.renyi import ORDERS, Curve
from expost.privacy.renyi_account import RenyiAccount
from expost.stopping.noisy_value import ValueTest
from expost.stopping.pure_looks import PureLooks

RUNS, GAMMA, MOVED = 1500, 0.2, 1e-4


def looked(truth: float, seed: int, epsilon: float = 0.05, first: float = 0.5) -> tuple[bool, PureLooks]:
    looks = PureLooks(RenyiAccount("looks", 5.0, False, delta=1e-6), SeededSource([43, seed]), first)
    return looks.pass_at(truth, MOVED, 0.0, epsilon, 3 * epsilon, GAMMA), looks


def wrong(truth: float = 1e-9) -> int:
    """How often a value that is just above zero passes."""
    return sum(looked(truth, seed)[0] for seed in range(RUNS))


def test_a_wrong_yes_is_as_rare_as_promised():
    count = wrong()
    assert stats.binomtest(count, RUNS, GAMMA, alternative="greater").pvalue > 1e-6
    assert count > 0.1 * RUNS  # the first look's half of γ is used up


def test_control_a_second_look_without_its_margin(monkeypatch):
    """Both looks fail with a half if nothing is kept back."""
    monkeypatch.setattr(ValueTest, "margin", lambda self, failure, error: 0.0)
    assert stats.binomtest(wrong(), RUNS, GAMMA, alternative="greater").pvalue < 1e-6


def test_looks_are_booked_and_a_second_is_as_precise_as_the_first_suggests():
    counts = set()
    for seed in range(30):
        passed, looks = looked(-0.004, seed)
        counts.add((looks.count, passed))
        booked = looks.account.curve
        least = Curve.pure(0.05)
        assert booked.losses >= least.losses
        assert booked.most <= 0.05 + 0.15 + 1e-12
        assert (looks.count == 1) == (booked.most < 0.05 + 1e-12)
    assert (1, True) in counts
    assert (2, True) in counts


def test_a_pure_loss_counts_once_whatever_the_order():
    """What makes them cheap: where orders are high a loss ε adds ε, not rε²/2."""
    losses = np.array(Curve.pure(0.05).losses)
    assert (losses <= 0.05).all()
    assert np.isclose(losses[-1], 0.05)
    assert losses[0] < 0.05 * ORDERS[0] * 0.05


@pytest.mark.parametrize("truth", [0.01, 0.1])
def test_a_value_far_above_is_looked_at_once(truth):
    assert {looked(truth, seed)[1].count for seed in range(20)} == {1}
