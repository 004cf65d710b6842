"""Broken variants of mechanisms that an audit must catch, each beside the attack that catches it.

Seeded. A bound from counts is false with probability 10⁻⁶ at most, so a sound mechanism would be called broken that
rarely; transcripts and exact cases have no false alarms. That the same attacks call what is shipped sound is part of
each test.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import expost.noise.laplace as laplace_module
from expost.account.account import Account
from expost.account.composition import ORDERS, Clock, Curve
from expost.account.events import Budget
from expost.account.loss import PureLoss
from expost.audit import Setting, counting, searches
from expost.mechanisms import output
from expost.mechanisms.descent import gradient_descent as descent
from expost.mechanisms.descent.clipping import Clip
from expost.mechanisms.objective.perturbation import PerturbedMinimum
from expost.noise import SeededSource, spherical as spherical_module
from expost.noise.spherical import uniforms
from expost.search import above_threshold as threshold_module, new_rows, noisy_test
from expost.search.above_threshold import AboveThreshold
from expost.solve.problem import Problem

from .helpers import found

pytestmark = pytest.mark.usefixtures("repeated")


def scaled(sampler, part):
    """A sampler with noise of so many times the scale that it is asked for."""

    def drawn(epsilon, *given, **named):
        return sampler(epsilon / part, *given, **named)

    return drawn


def one_coin(patch):
    honest = laplace_module._draw_jumps

    def shared(grid, size, source):
        at, _ = honest(grid, 1, source)
        return np.repeat(at, size), np.tile(np.arange(size), len(at))

    patch.setattr(laplace_module, "_draw_jumps", shared)


def half_laplace(patch):
    patch.setattr(counting, "discrete_laplace", scaled(counting.discrete_laplace, 0.5))


def half_geometric(patch):
    patch.setattr(counting, "geometric", scaled(counting.geometric, 0.5))


def half_gaussian(patch):
    honest = counting.discrete_gaussian
    patch.setattr(counting, "discrete_gaussian", lambda sigma, *given, **named: honest(sigma / 2, *given, **named))


def half_path(patch):
    honest = laplace_module.laplace_draws
    patch.setattr(laplace_module, "laplace_draws", lambda *given: honest(*given) // 2)


def half_spherical(patch):
    honest = counting.spherical_noise
    patch.setattr(counting, "spherical_noise", lambda *given: honest(*given) / 2)


def half_blocks(patch):
    honest = counting.block_noise
    patch.setattr(counting, "block_noise", lambda *given: honest(*given) / 2)


def half_spherical_path(patch):
    honest = spherical_module.spherical_noise
    patch.setattr(spherical_module, "spherical_noise", lambda *given: honest(*given) / 4)


def capped(patch):
    honest = counting.discrete_laplace

    def drawn(*given, **named):
        return np.clip(honest(*given, **named), -6, 6)

    patch.setattr(counting, "discrete_laplace", drawn)


def threshold_redrawn(patch):
    honest, begin, source = threshold_module.geometric, AboveThreshold.__init__, SeededSource(5)
    drawn = []

    def noted(*given, **named):
        drawn.append(honest(*given, **named))
        return drawn[-1]

    def init(self, measure, calibration, n_tests, **more):
        drawn.clear()
        begin(self, measure, calibration, n_tests, **more)
        again = honest(calibration.epsilon_threshold, 1, n_tests, random_state=source)
        self._offsets = [old + int(drawn[0][0]) - int(new) for old, new in zip(self._offsets, again, strict=True)]

    patch.setattr(threshold_module, "geometric", noted)
    patch.setattr(AboveThreshold, "__init__", init)


def seed_reused(patch):
    honest = noisy_test.NoisyValue.ask
    seeds = SeededSource(3)

    class Run:
        source, seed = None, 0

    def ask(self, value, cost, source):
        if Run.source is not source or ask.asked % 2 == 0:
            Run.source, Run.seed = source, int(seeds.words(1)[0])
        ask.asked += 1
        return honest(self, value, cost, SeededSource(Run.seed))

    ask.asked = 0
    patch.setattr(noisy_test.NoisyValue, "ask", ask)


def path_shared(patch):
    """Looks at the second model of a run have the noise of looks at the first."""
    honest, state = noisy_test.NoisePath, {"made": 0, "seed": 0}

    def path(values, units, levels, *, random_state):
        if state["made"] % 2 == 0:
            state["seed"] = [state["made"], 4]
        state["made"] += 1
        return honest(values, units, levels, random_state=SeededSource(state["seed"]))

    patch.setattr(noisy_test, "NoisePath", path)


def by_place(patch):
    patch.setattr(new_rows, "drawn", lambda n, m, source: np.arange(n) < m)


def uncounted_tests(patch):
    """Tests of rows that are held out cost twice what models do, and models alone are charged for."""
    honest = Account.free_test.fget
    patch.setattr(Account, "free_test", property(lambda self: 2.0 * honest(self)))
    patch.setattr(Account, "_together", lambda self, probe, test, generation: probe + generation)


def no_jacobian(patch):
    patch.setattr(PerturbedMinimum, "jacobian", 0.0)


def unclipped(patch):
    patch.setattr(Clip, "limits", lambda self, x, largest: np.full(x.shape[0], float(4 * largest)))


def lengths_without_noise(patch):
    """What rows are clipped to follows from how long they are, as it is."""

    def measure(self, rho, source):
        most = descent._LONGEST * self._length
        total = self._gradients.lengths_total(self._clip.frame, most)
        square = most**2 * total / (descent.PARTS * self._gradients.n)
        self._look_from(self._clip.frame, min(most, max(math.sqrt(square), self._length / descent._LONGEST)))

    patch.setattr(descent.Walk, "_measure", measure)


def lambda_from_rows(patch):
    honest = searches.run_search

    def led(rows, problem, *given, **more):
        lam = problem.regularization * (1.0 + 0.1 * float(rows.y[0] > 0))
        stated = Problem.of(problem.loss, n=problem.n, p=problem.p, regularization=lam)
        return honest(rows, stated, *given, **more)

    patch.setattr(searches, "run_search", led)


def order_after_the_fact(patch):
    """The best of all orders by the outcome, as if it had been the only one."""

    def epsilon(self, delta):
        return float(np.min(np.array(self.losses) + math.log(1.0 / delta) / (np.array(ORDERS) - 1.0)))

    patch.setattr(Curve, "epsilon", epsilon)


def clock_that_ends_where_the_run_does(patch):
    """A clock of one time, the one that the rows led to, as if it had been settled before."""
    honest = Clock.epsilon
    patch.setattr(Clock, "epsilon", lambda self, time, pure, delta: honest(Clock.of([time]), time, pure, delta))


def release_forgotten(patch):
    honest = Budget.total.func if hasattr(Budget.total, "func") else Budget.total.fget
    patch.setattr(
        Budget, "total", property(lambda self: PureLoss(honest(self).epsilon - (0.4 if len(self.entries) > 2 else 0.0)))
    )


#: What is broken, the attack that catches it, and how many runs that takes.
CONTROLS = {
    "one coin for all coordinates": (one_coin, "exact-path", 0),
    "half the noise: Laplace": (half_laplace, "discrete-laplace", 100_000),
    "half the noise: geometric": (half_geometric, "geometric", 100_000),
    "half the noise: Gaussian": (half_gaussian, "discrete-gaussian", 100_000),
    "half the noise: a path": (half_path, "path", 100_000),
    "half the noise: spherical": (half_spherical, "spherical-noise", 2_000),
    "half the noise: blocks": (half_blocks, "block-noise", 5_000),
    "a quarter of the noise: a spherical path": (half_spherical_path, "spherical-path", 2_500),
    "a capped tail": (capped, "discrete-laplace", 100_000),
    "threshold redrawn at each step": (threshold_redrawn, "above-threshold", 1_500),
    "a seed reused": (seed_reused, "two-numbers", 800),
    "looks that share a path": (path_shared, "two-tests", 700),
    "rows held out by their place": (by_place, "new-rows", 2_000),
    "tests of rows held out that are not counted": (uncounted_tests, "exact-new-rows", 0),
    "the Jacobian left out": (no_jacobian, "objective-density", 100),
    "rows that are not clipped": (unclipped, "descent", 2),
    "a clip length measured without noise": (lengths_without_noise, "fit-descent", 5),
    "a penalty chosen from the rows": (lambda_from_rows, "minimiser", 10),
    "an order chosen after the fact": (order_after_the_fact, "stopped-curve", 20_000),
    "a clock that ends where the run does": (clock_that_ends_where_the_run_does, "stopped-clock", 20_000),
    "a budget that forgets a release": (release_forgotten, "ledger", 5),
}


@pytest.mark.parametrize(("breaks", "attack", "runs"), CONTROLS.values(), ids=CONTROLS)
def test_what_is_broken_is_caught(monkeypatch, breaks, attack, runs):
    with monkeypatch.context() as patch:
        breaks(patch)
        assert found(attack, runs).broken
    output._grid.cache_clear()
    assert not found(attack, runs).broken


def test_floating_point_laplace_is_caught():
    """Mironov's low bits: 0 + noise and 1 + noise have different last digits, so some values come from one alone."""

    def noise_of(x, side):
        return x - side

    def reachable(x, side):
        """Whether side + log(u) is that double for some of the uniforms."""
        u = np.rint(np.exp(np.minimum(noise_of(x, side), 0.0)) * 2.0**24)
        tried = np.stack([np.clip(u + more, 1, 2.0**24) for more in (-1, 0, 1)])
        return ((side + np.log(tried * 2.0**-24)) == x).any(axis=0)

    def draw(side, count, source):
        u = np.clip(np.rint(uniforms(count, source) * 2.0**24), 1, 2.0**24)
        x = side + np.log(u * 2.0**-24)  # the lower half of a Laplace variable, in floating point
        return reachable(x, 1.0).astype(np.int64)

    naive = counting.counted(Setting(10_000, 1), draw, np.full(2, 1.0), directions=((0, 1),))
    assert naive.broken
    assert naive.bound > 4.0
    exact = found("low-bits", 2_000)
    assert not exact.broken
    assert exact.bound < 0.5


def test_a_search_that_goes_another_way_on_its_neighbour_is_a_finding(monkeypatch):
    """A level that follows from private values, not from released ones."""
    honest = searches.run_search

    def led(rows, problem, goal=None, *, max_epsilon, **more):
        return honest(rows, problem, goal, max_epsilon=max_epsilon * (1.0 + 0.1 * float(rows.y[0] > 0)), **more)

    monkeypatch.setattr(searches, "run_search", led)
    one = found("moments", 20)
    assert one.broken
    assert one.differs == "a path drawn in another way"


def test_bounds_from_counts_are_rarely_false():
    """Of 500 attacks on noise of a known loss at 95 %, as many bounds are above it as may be; a false alarm in 10⁶."""
    rng, loss, runs, above = np.random.default_rng(0), 1.0, 400, 0
    chances = np.array([0.5, 0.5 * math.exp(-loss)])
    for _ in range(500):
        hits = rng.binomial(runs, chances, (2, 2))
        tables = [np.stack([one, runs - one], axis=1) for one in hits]
        one = counting.strongest(*tables, (runs, runs), np.full(2, loss), 0.05)
        above += one.bound > loss
    assert above <= 51  # binomial(500, 0.05) exceeds that once in 10⁶
