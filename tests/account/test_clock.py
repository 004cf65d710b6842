"""Losses by a clock: exact where one step is taken, kept by runs that stop at a good moment, broken without shares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from expost.account import composition as module
from expost.account.account import Account
from expost.account.composition import NOTHING, Clock, Curve

DELTA = 0.02
TIMES = tuple(0.02 * 3.0**k for k in range(6))


def hockey_stick(mu, epsilon):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4])
def test_one_step_in_the_usual_sense_is_the_exact_gaussian_at_its_share(rho, delta):
    stated = Clock.of([rho]).usual_epsilon(rho, 0.0, delta)
    mu = math.sqrt(2 * rho)
    assert hockey_stick(mu, stated) <= delta / 2
    assert hockey_stick(mu, 0.99 * stated - 1e-6) > delta / 2


def test_beside_dp_accounting():
    mu = 0.05
    found = privacy_loss_distribution.from_gaussian_mechanism(1 / mu).get_epsilon_for_delta(5e-7)
    assert Clock.of([mu**2 / 2]).usual_epsilon(mu**2 / 2, 0.0, 1e-6) == pytest.approx(found, rel=2e-3)


def test_it_is_sharper_than_the_curve_and_orders_the_senses():
    clock = Clock.of([1e-5, 3e-5, 9e-5])
    for rho in clock.times:
        curve = Curve.gaussian(rho)
        strict, usual = clock.epsilon(rho, 0.0, 1e-6), clock.usual_epsilon(rho, 0.0, 1e-6)
        assert usual < curve.usual_epsilon(1e-6)
        assert strict < curve.epsilon(1e-6)
        assert usual < strict


def test_pure_losses_add_and_times_round_up():
    clock = Clock.of([1e-4, 2e-4])
    assert clock.epsilon(0.0, 0.3, 1e-6) == 0.3
    assert clock.epsilon(1.5e-4, 0.3, 1e-6) == pytest.approx(0.3 + clock.epsilon(2e-4, 0.0, 1e-6), rel=1e-6)
    assert clock.epsilon(2.1e-4, 0.0, 1e-6) == math.inf


class Stopped:
    """The best of all stopping rules, by going backwards on a grid of losses: what a run can reach at most.

    One Gaussian step from each time to the next; after it the run may end and show all it released, or go on. Losses on
    a fine grid, so what is found is too small by less than a hundredth.
    """

    LOSSES = np.linspace(-4.0, 6.0, 4001)

    def reached(self, stated, gain):
        """Return the largest mean of the gain of a loss over the ε stated at the time it ends."""
        future = np.zeros_like(self.LOSSES)
        width = self.LOSSES[1] - self.LOSSES[0]
        before = [0.0, *TIMES[:-1]]
        for time, last in reversed(list(zip(TIMES, before, strict=True))):
            best = np.maximum(gain(self.LOSSES - stated(time)), future)
            step = 2.0 * (time - last)  # a loss N(step/2, step)
            offsets = np.arange(-600, 601) * width
            weights = stats.norm.pdf(offsets, step / 2, math.sqrt(step)) * width
            padded = np.concatenate([np.full(600, best[0]), best, np.full(600, best[-1])])
            future = np.convolve(padded, weights[::-1], mode="valid")
        return float(np.interp(0.0, self.LOSSES, future))

    def usual(self, stated):
        return self.reached(stated, lambda over: np.maximum(0.0, -np.expm1(-over)))

    def strict(self, stated):
        return self.reached(stated, lambda over: (over > 0.0).astype(float))


def test_no_stopping_rule_exceeds_delta():
    clock = Clock.of(TIMES)
    assert 0.3 * DELTA < Stopped().usual(lambda time: clock.usual_epsilon(time, 0.0, DELTA)) <= DELTA
    assert 0.2 * DELTA < Stopped().strict(lambda time: clock.epsilon(time, 0.0, DELTA)) <= DELTA


def test_control_without_shares_a_good_moment_breaks_both():
    def usual(time):
        return module._hockey_stick(math.sqrt(2 * time), DELTA)

    def strict(time):
        return float(time + math.sqrt(2 * time) * stats.norm.isf(DELTA))  # the tail of one step of that size

    assert Stopped().usual(usual) > 1.2 * DELTA
    assert Stopped().strict(strict) > 1.5 * DELTA


class TestWhatIsShown:
    """A run that shows only in which stage it ended: it merges outcomes, and their losses."""

    @staticmethod
    def ended(m, stated):
        """P[ended here] of the largest merged outcome whose loss is above what is stated; one step of size m."""
        low, high = 1e-12, 0.5
        for _ in range(200):
            middle = 0.5 * (low + high)
            loss = math.log(middle / stats.norm.cdf(stats.norm.ppf(middle) - m))
            low, high = (middle, high) if loss > stated else (low, middle)
        return low

    @pytest.mark.parametrize("m", [0.01, 0.2, 1.0])
    def test_it_is_covered(self, m):
        clock = Clock.of([m * m / 2])
        assert self.ended(m, clock.epsilon(m * m / 2, 0.0, DELTA)) <= DELTA / 2

    def test_control_the_tail_of_the_loss_is_not_enough(self):
        m, share = 0.2, DELTA / 2
        tail = m * m / 2 + m * stats.norm.isf(share)
        assert self.ended(m, tail) > 1.3 * share


def test_an_account_states_and_fits_by_its_clock():
    account = Account("by hand", 0.2, False, delta=1e-6, clock=Clock.of([1e-4, 1e-3]))
    account.book("generation", Curve.gaussian(9e-5))
    account.book("test", Curve.ex_post(0.05))
    release = account.released([1.0])
    assert release.epsilon == pytest.approx(account.clock.epsilon(1e-4, 0.05, 1e-6), rel=1e-9)
    assert release.epsilon_usual == pytest.approx(account.clock.usual_epsilon(1e-4, 0.05, 1e-6), rel=1e-9)
    assert type(release).from_json(release.to_json()) == release
    assert not account.fits(Curve.gaussian(1e-4))  # the next time would be beyond the budget
    tampered = release.to_json().replace(f'"rho": {release.curve["rho"]}', '"rho": 5e-4')
    assert tampered != release.to_json()
    with pytest.raises(ValueError, match="not a release"):
        type(release).from_json(tampered)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.3])
def test_parts_are_never_more_than_the_whole(delta):
    """At a large δ one order states more than the clock does; what was seen to fit must not be refused then."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        times = Clock.of(10.0 ** rng.uniform(-4, 1, 3))
        account = Account("by hand", 10.0 ** rng.uniform(-1, 2), False, delta=delta, clock=times)
        for step in (Curve.gaussian(10.0 ** rng.uniform(-5, 1)), Curve.ex_post(10.0 ** rng.uniform(-3, 1))):
            if account.fits(step):
                account.book("generation", step)
        assert account.released([1.0]).epsilon <= account.limit
    assert NOTHING.split == (0.0, 0.0)
