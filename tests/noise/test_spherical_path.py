"""Gradual release with spherical noise: laws, independence, a privacy audit, and wrong paths that must be caught."""

from __future__ import annotations

import copy
import pickle
import time
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from expost.noise import NoisePath, SeededSource, SphericalPath, spherical
from expost.noise.laplace import LevelValue
from expost.noise.spherical import spherical_noise
from tests.noise.helpers import RARE

LEVELS = [0.3, 0.6, 3.0]
DELTA = 2.0
PATHS = 1800


class FreshPath:
    """A broken path: the right law at every level, but each drawn anew."""

    def __init__(self, values, sensitivity, levels, *, random_state):
        self.levels, self._values = levels, values
        self._noise = [spherical_noise(values.size, random_state)[0] * (sensitivity / level) for level in levels]

    def __iter__(self):
        for t, level in enumerate(self.levels):
            yield LevelValue(t, level, self._values + self._noise[t])


def too_few_jumps(p):
    """A broken ``_intensity``: p instead of p + 1."""
    return p


def drawn(p, seed, levels=LEVELS, paths=PATHS, kind=SphericalPath, at=None):
    """Return values indexed by path, level, coordinate."""
    source = SeededSource(seed)
    values = np.zeros(p) if at is None else at
    return np.array([[step.values for step in kind(values, DELTA, levels, random_state=source)] for _ in range(paths)])


def projection(p):
    """CDF of one direction of noise at unit scale, characteristic function (1 + s²)^(−(p+1)/2), for p = 1 and 3."""

    def upper(x):  # P(> x), x ≥ 0
        return np.exp(-x) / 2 if p == 1 else (2 + x) * np.exp(-x) / 4

    return lambda x: np.where(x < 0, upper(np.abs(x)), 1 - upper(np.abs(x)))


def marginal_test(p, seed):
    """Smallest p-value of norm and projection over the levels, times their number."""
    values = drawn(p, seed)
    direction = np.arange(1.0, p + 1) / np.linalg.norm(np.arange(1.0, p + 1))
    tests = []
    for t, level in enumerate(LEVELS):
        unit = values[:, t] * (level / DELTA)
        tests.append(stats.kstest(np.linalg.norm(unit, axis=1), stats.gamma(p).cdf).pvalue)
        if p in (1, 3):
            tests.append(stats.kstest(unit @ direction, projection(p)).pvalue)
    return min(tests) * len(tests)


class TestLaw:
    """False alarm of each test: one seed in 10⁶."""

    @pytest.mark.parametrize("p", [1, 3, 7])
    @pytest.mark.parametrize("broken", [False, True])
    def test_marginals(self, p, broken, monkeypatch):
        """Norm Gamma(p) and one direction, as a single draw has them, at every level."""
        if broken:
            monkeypatch.setattr(spherical, "_intensity", too_few_jumps)
        assert (marginal_test(p, [31, p, broken]) < RARE) == broken

    @staticmethod
    def step_test(p, seed, kind=SphericalPath):
        """What is added between the first two levels: its law, and that the less noisy value says nothing about it."""
        values = drawn(p, seed, kind=kind)
        added, kept = values[:, 0] - values[:, 1], values[:, 1]
        r = LEVELS[0] / LEVELS[1]
        tests = [stats.binomtest(int((added == 0).all(axis=1).sum()), PATHS, r ** (p + 1)).pvalue]
        for size in (0.1, 0.3, 1.0):  # the real part of the characteristic function; the imaginary one is zero
            u = (size * DELTA / LEVELS[0]) ** 2
            seen = np.cos(added[:, 0] * size)
            z = (seen.mean() - ((1 + u * r * r) / (1 + u)) ** ((p + 1) / 2)) / (seen.std() / sqrt(PATHS))
            tests.append(2 * stats.norm.sf(abs(z)))
        tests.append(stats.spearmanr(added[:, 0], kept[:, 0]).pvalue)
        tests.append(stats.spearmanr(np.linalg.norm(added, axis=1), np.linalg.norm(kept, axis=1)).pvalue)
        return min(tests) * len(tests)

    def test_steps_are_independent_of_the_less_noisy_value(self, monkeypatch):
        assert self.step_test(2, [32, 0]) > RARE
        assert self.step_test(2, [32, 1], kind=FreshPath) < RARE
        monkeypatch.setattr(spherical, "_intensity", too_few_jumps)
        assert self.step_test(2, [32, 2]) < RARE

    def test_values_are_added(self):
        values = np.array([5.0, -7.25, 1e3])
        zero = SphericalPath(np.zeros(3), 1.0, LEVELS, random_state=9)
        moved = SphericalPath(values, 1.0, LEVELS, random_state=9)
        for a, b in zip(zero, moved, strict=True):
            np.testing.assert_allclose(b.values - a.values, values, rtol=1e-12)
            assert (b.index, b.epsilon) == (a.index, a.epsilon)

    def test_one_level_is_a_single_draw(self):
        (step,) = SphericalPath([1.0, 2.0], 0.5, [0.25], random_state=4)
        assert (step.values == np.array([1.0, 2.0]) + spherical_noise(2, SeededSource(4))[0] * (0.5 / 0.25)).all()

    def test_one_level_is_a_path_at_every_level(self):
        """Logarithms of the same level may differ by the routine that takes them: nothing is before the first level."""
        for epsilon in np.random.default_rng(5).uniform(0, 20, 5_000):
            (step,) = SphericalPath([0.0], 1.0, [epsilon], random_state=6)
            assert np.isfinite(step.values).all()

    def test_jumps_beyond_the_first_block(self, monkeypatch):
        """With every exponential 0.1 the first block of gaps ends early; the sums can be worked out by hand."""
        monkeypatch.setattr(spherical, "_exponentials", lambda count, source: np.full(count, 0.1))
        (spread,) = spherical._draw_spreads((0.01, 0.1, 1.0), 2, SeededSource(0), 1)
        at, edge = 0.1 * np.arange(1, 139), 3 * log(10)
        assert at[-1] < 2 * edge < at[-1] + 0.1
        assert len(spread) == 2
        assert spread[0] == pytest.approx(0.1 * np.exp(-2 * at[at <= edge] / 3).sum())
        assert spread[1] == pytest.approx(0.1 * np.exp(-2 * (at[at > edge] - edge) / 3).sum())


def violation(own, other, epsilon, alarm):
    """Whether an event's probabilities differ by more than e^ε beyond Clopper-Pearson bounds; the largest log ratio.

    Events: where the two values lie along the direction in which the vectors differ, and whether they are equal.
    """

    def events(values):
        cuts = np.array([0.0, DELTA])
        first, second = (np.searchsorted(cuts, values[:, t, 0]) for t in (0, 1))
        cell = first * 3 + second + 9 * (values[:, 0] == values[:, 1]).all(axis=1)
        counts = [int((cell == k).sum()) for k in range(18)]
        return [*counts, int((values[:, :, 0] < 0).all(axis=1).sum()), int((values[:, :, 0] > DELTA).all(axis=1).sum())]

    n, a, b = len(own), events(own), events(other)
    worst, seen = False, 0.0
    for x, y in [*zip(a, b, strict=True), *zip(b, a, strict=True)]:
        low = stats.beta.ppf(alarm / (4 * len(a)), x, n - x + 1) if x else 0.0
        high = stats.beta.isf(alarm / (4 * len(a)), y + 1, n - y) if y < n else 1.0
        worst |= bool(low > exp(epsilon) * high)
        seen = max(seen, log(max(low, 1e-12) / high))
    return worst, seen


class TestPrivacy:
    """The pair of two levels, between vectors Δ apart in two dimensions. False alarm: one seed in 10⁶."""

    @pytest.mark.parametrize("kind", [SphericalPath, FreshPath])
    def test_audit(self, kind):
        levels, moved = [1.8, 2.0], np.array([DELTA, 0.0])
        own = drawn(2, [34, 1], levels, 4000, kind)
        other = drawn(2, [34, 2], levels, 4000, kind, at=moved)
        violated, seen = violation(own, other, levels[-1], RARE)
        assert violated == (kind is FreshPath)  # which costs the sum of the levels
        assert seen > 0.55 * levels[-1]  # the audit is not blind


class TestInterface:
    """Arguments, memory, speed, and what the object gives away."""

    def test_basics(self):
        path = SphericalPath([1, 2, 3], 2, (0.1, 0.2))
        assert (len(path), path.size, path.levels) == (2, 3, (0.1, 0.2))
        assert path.secure
        assert not SphericalPath([1.0], 1, [1.0], random_state=0).secure
        assert (path.noise, NoisePath.noise) == ("over the reals", "exact")
        assert repr(path) == "SphericalPath(size=3, levels=2)"
        assert all(step.values.dtype == np.float64 for step in path)
        for spread in (pickle.dumps, copy.deepcopy, copy.copy):
            with pytest.raises(TypeError, match="cannot be pickled"):
                spread(path)

    def test_two_passes_show_the_same(self):
        path = SphericalPath(np.zeros(5), 1.0, LEVELS)
        first, second = list(path), list(path)
        first[0].values[:] = -1.0  # what a caller does to one level harms no other
        assert all((a.values == b.values).all() for a, b in zip(first[1:], second[1:], strict=True))
        assert (second[0].values != -1.0).all()

    @pytest.mark.parametrize(
        ("values", "sensitivity", "levels", "message"),
        [
            ([[1.0]], 1.0, [1.0], "one-dimensional"),
            ([], 1.0, [1.0], "not empty"),
            ([1.0, np.nan], 1.0, [1.0], "finite"),
            ([1.0, np.inf], 1.0, [1.0], "finite"),
            (["a"], 1.0, [1.0], "real numbers"),
            ([1j], 1.0, [1.0], "real numbers"),
            ([1.0], 0.0, [1.0], "sensitivity"),
            ([1.0], -1.0, [1.0], "sensitivity"),
            ([1.0], np.inf, [1.0], "sensitivity"),
            ([1.0], np.nan, [1.0], "sensitivity"),
            ([1.0], 1.0, [1e-200], "too large"),
            ([1.0], 1.0, [], "at least one"),
            ([1.0], 1.0, [1.0, 1.0], "increasing"),
            ([1.0], 1.0, [0.0, 1.0], "positive"),
        ],
    )
    def test_bad_arguments(self, values, sensitivity, levels, message):
        with pytest.raises(ValueError, match=message):
            SphericalPath(values, sensitivity, levels, random_state=0)

    def test_levels_far_apart_and_close_together(self):
        far = [step.values for step in SphericalPath([0.0, 1.0], 1.0, [1e-140, 1e-3, 1e140], random_state=0)]
        assert np.isfinite(far).all()
        assert np.abs(far[0]).min() > 1e130
        assert far[2] == pytest.approx([0.0, 1.0], abs=1e-100)
        close = SphericalPath([0.0], 1.0, [1.0, np.nextafter(1.0, 2), 1.0 + 1e-12], random_state=0)
        assert len({step.values[0] for step in close}) == 1

    def test_memory_and_speed_do_not_depend_on_the_number_of_levels(self):
        """Rows kept: at most one a jump, of which there are Poisson((p+1)·ln) many; six deviations, 10⁻⁹."""
        p, low, high = 38, 1e-5, 10.0
        jumps = (p + 1) * log(high / low)
        times = []
        for seed in range(5):
            start = time.perf_counter()
            path = SphericalPath(np.zeros(p), 1.0, np.geomspace(low, high, 1000), random_state=seed)
            times.append(time.perf_counter() - start)
            assert path._values.shape[0] < 1 + jumps + 6 * sqrt(jumps)
        assert min(times) < 0.1
        many = SphericalPath(np.zeros(p), 1.0, np.geomspace(low, high, 100_000), random_state=0)
        assert many._values.shape[0] < 1 + jumps + 6 * sqrt(jumps)
