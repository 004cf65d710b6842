"""Gradual release: marginals at every level, joint laws, memory, widths, and two wrong paths that must be caught."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import log

import numpy as np
import pytest

from expost.noise import NoisePath, SecureSource, SeededSource, laplace as path
from expost.noise.laplace import rate_of
from tests.noise.helpers import RARE, ScriptedSource, chi_square, keep_floor, laplace_pmf, laplace_table, word_of

LEVELS = [0.3, 0.5, 1.0, 2.0, 3.0]
SIZE = 150_000


def keep_probability(a, b):
    return float((np.sinh(a / 2) / np.sinh(b / 2)) ** 2)


@pytest.fixture(autouse=True)
def fresh_grids():
    """Levels are cached with their coins, which some tests replace."""
    path._grid.cache_clear()
    yield
    path._grid.cache_clear()


def continuous_coin(a, b, bits):
    """⌊2^bits·(ε_t/ε_{t+1})²⌋: right for Laplace noise on the reals, wrong on the integers."""
    return int((a / b) ** 2 * 2**bits)


def one_coin_for_all(draw):
    """A broken ``_draw_jumps``: all coordinates of a path jump together."""

    def shared(rates, size, source):
        at, _ = draw(rates, 1, source)
        return np.repeat(at, size), np.tile(np.arange(size), at.size)

    return shared


class TestAlgebra:
    """B1 in exact rationals: with q = e^(−rate) rational, everything is."""

    @staticmethod
    def pmf(q, k):
        return (1 - q) / (1 + q) * q ** abs(k)

    @staticmethod
    def convolution(p, q, k):
        """Σ_j p^|j|·q^|k−j| in closed form, with both normalised."""
        k = abs(k)
        ends = p * q / (1 - p * q) * (p**k + q**k)
        middle = (q ** (k + 1) - p ** (k + 1)) / (q - p)
        return (1 - p) / (1 + p) * (1 - q) / (1 + q) * (ends + middle)

    def test_closed_form_is_the_sum(self):
        p, q = Fraction(1, 3), Fraction(1, 2)
        for k in range(4):
            brute = sum(self.pmf(p, j) * self.pmf(q, k - j) for j in range(-200, 201))
            assert 0 < self.convolution(p, q, k) - brute < Fraction(1, 2**150)

    @pytest.mark.parametrize(
        ("q_less", "q_more"),  # less noise has the smaller q
        [(Fraction(1, 3), Fraction(1, 2)), (Fraction(1, 100), Fraction(99, 100)), (Fraction(6, 7), Fraction(7, 8))],
    )
    def test_less_noise_plus_jump_is_more_noise(self, q_less, q_more):
        # (sinh(a/2)/sinh(b/2))² with e^(−a) = q_more, e^(−b) = q_less
        w = q_less / q_more * ((1 - q_more) / (1 - q_less)) ** 2
        for k in range(-30, 31):
            mixture = w * self.pmf(q_less, k) + (1 - w) * self.convolution(q_less, q_more, k)
            assert mixture == self.pmf(q_more, k)

    def test_another_coin_does_not_fit(self):
        p, q = Fraction(1, 3), Fraction(1, 2)
        w = Fraction(log(2) / log(3)) ** 2  # the continuous coin
        assert w * self.pmf(p, 0) + (1 - w) * self.convolution(p, q, 0) != self.pmf(q, 0)


class TestLaw:
    """False alarm of each test: one seed in 10⁶, over all its tables together."""

    @staticmethod
    def marginal_test(levels, sensitivity, seed):
        """Smallest p-value over the levels, times their number; coordinates of one path are the sample."""
        steps = list(NoisePath(np.zeros(SIZE, dtype=np.int64), sensitivity, levels, random_state=SeededSource(seed)))
        assert [step.epsilon for step in steps] == levels
        tests = [chi_square(*laplace_table(step.values, step.epsilon / sensitivity)) for step in steps]
        return min(tests) * len(tests)

    @pytest.mark.parametrize(
        ("levels", "sensitivity"),
        [(LEVELS, 1), ([1.0, 4.0], 1), ([1.0, 2.0, 8.0, 30.0], 4), (list(np.geomspace(0.1, 3, 40)), 1)],
    )
    def test_marginals(self, levels, sensitivity):
        levels = [float(level) for level in levels]
        assert self.marginal_test(levels, sensitivity, [21, 1]) > RARE

    @pytest.mark.parametrize(("levels", "sensitivity"), [(LEVELS, 1), ([1.0, 4.0], 1), ([1.0, 2.0, 8.0, 30.0], 4)])
    def test_control_continuous_coin(self, levels, sensitivity, monkeypatch):
        monkeypatch.setattr(path, "keep_bits", continuous_coin)
        path._grid.cache_clear()
        assert self.marginal_test(levels, sensitivity, [21, 2]) < RARE

    @staticmethod
    def joint_probability(x, y, a, b):
        """P(value at the more private level = x, at the less private = y), v = 0."""
        w = keep_probability(a, b)
        return laplace_pmf(y, b) * (w * (x == y) + (1 - w) * laplace_pmf(x - y, a))

    def joint_table(self, a, b, reach, far=60):
        """The joint law on {−reach, …, reach}², with everything further out pooled into the edges."""
        grid = np.arange(-far, far + 1)
        table = self.joint_probability(grid[:, None], grid[None, :], a, b)
        cell = np.clip(grid, -reach, reach) + reach
        pooled = np.zeros((2 * reach + 1, 2 * reach + 1))
        np.add.at(pooled, (cell[:, None], cell[None, :]), table)
        return pooled

    @pytest.mark.parametrize(("s", "t"), [(1, 2), (2, 3), (1, 4), (2, 4)])
    def test_joint_of_two_levels(self, s, t, monkeypatch):
        """Neighbouring levels and distant ones: a path through levels between follows the same law."""
        reach = 3
        expected = self.joint_table(LEVELS[s], LEVELS[t], reach)

        def run(seed):
            values = [
                step.values for step in NoisePath(np.zeros(SIZE, int), 1, LEVELS, random_state=SeededSource(seed))
            ]
            x, y = (np.clip(values[i], -reach, reach) + reach for i in (s, t))
            counts = np.bincount(x * (2 * reach + 1) + y, minlength=expected.size)
            common = SIZE * expected.ravel() >= 8
            cell = np.cumsum(common) * common  # the rare cells are pooled into cell 0, left out if there are none
            pooled, law = (np.bincount(cell, weights=x) for x in (counts, expected.ravel()))
            return chi_square(pooled[law > 0], law[law > 0])

        assert run([22, s, t]) > RARE
        monkeypatch.setattr(path, "keep_bits", continuous_coin)
        path._grid.cache_clear()
        assert run([23, s, t]) < RARE

    @pytest.mark.parametrize("broken", [False, True])
    def test_coordinates_are_independent_across_levels(self, broken, monkeypatch):
        """Two coordinates at two levels, 6000 paths, signs: an 81-cell table against the product of joint laws.

        The control, one coin for all coordinates, has all the right marginals and is caught here alone.
        """
        if broken:
            monkeypatch.setattr(path, "_draw_jumps", one_coin_for_all(path._draw_jumps))
        source = SeededSource([24, broken])
        paths = 6_000
        drawn = np.array(
            [
                [step.values for step in NoisePath(np.zeros(2, dtype=np.int64), 1, [0.5, 1.0], random_state=source)]
                for _ in range(paths)
            ]
        )  # path, level, coordinate
        sign = np.sign(drawn) + 1
        cells = ((sign[:, 0, 0] * 3 + sign[:, 1, 0]) * 3 + sign[:, 0, 1]) * 3 + sign[:, 1, 1]
        one = self.joint_table(0.5, 1.0, 1)
        signs = np.bincount(cells, minlength=81)
        assert (chi_square(signs, np.outer(one, one)) < RARE) == broken
        for level, epsilon in enumerate((0.5, 1.0)):
            for coordinate in range(2):  # the control's single coordinates show nothing
                assert chi_square(*laplace_table(drawn[:, level, coordinate], epsilon)) > RARE

    def test_values_are_added(self):
        values = np.array([5, -7, 10**12])
        zero = NoisePath(np.zeros(3, dtype=np.int64), 1, LEVELS, random_state=9)
        moved = NoisePath(values, 1, LEVELS, random_state=9)
        for a, b in zip(zero, moved, strict=True):
            assert (b.values - a.values == values).all()
            assert (b.index, b.epsilon) == (a.index, a.epsilon)

    def test_two_passes_show_the_same(self):
        steps = NoisePath(np.zeros(50, dtype=np.int64), 1, LEVELS)
        first, second = list(steps), list(steps)
        first[0].values[:] = -1  # what a caller does to one level harms no other
        assert all((a.values == b.values).all() for a, b in zip(first[1:], second[1:], strict=True))
        assert (second[0].values != -1).any()


class TestCoin:
    """The coin between two levels ties and is settled by further words, as all coins are."""

    @pytest.mark.parametrize("depth", [1, 2, 3, 4, 6])
    @pytest.mark.parametrize("levels", [(0.5, 1.3), (1e-5, 1.1e-5)])
    @pytest.mark.parametrize("offset", [-1, 1])
    def test_ties(self, levels, depth, offset):
        rates = tuple(rate_of(level, 2**20) for level in levels)
        bits = 16 * (depth + 1)
        floor = keep_floor(*rates, bits)
        words = [word_of(floor, bits, d) for d in range(1, depth + 2)]
        words[-1] += offset
        assert 0 <= words[-1] <= 0xFFFF
        source = ScriptedSource([words[0], 0xFFFF, *words[1:]])  # the second coordinate jumps anyway
        at, where = path._draw_jumps(path._Grid(levels, 2**20), 2, source)
        assert where.tolist() == ([1] if offset < 0 else [0, 1])
        assert at.tolist() == [0] * where.size
        assert source.left == 0

    def test_blocks_of_coins(self, monkeypatch):
        """Cutting the coins into blocks changes neither their levels nor their words."""
        grid = path._Grid(tuple(np.geomspace(0.01, 10, 30).tolist()), 1)
        whole = path._draw_jumps(grid, 1000, SeededSource(5))
        monkeypatch.setattr(path, "_COINS_AT_ONCE", 4 * 1000)
        blocks = path._draw_jumps(grid, 1000, SeededSource(5))
        assert (np.diff(blocks[0]) >= 0).all()
        for at, where in (whole, blocks):
            assert len(set(zip(at.tolist(), where.tolist(), strict=True))) == at.size
            jumps = np.bincount(at, minlength=29)
            expected = np.array([1000 * (1 - keep_probability(float(a), float(b))) for a, b in pairwise(grid.rates)])
            assert (np.abs(jumps - expected) < 6.5 * np.sqrt(expected)).all()


class TestMemory:
    """Jumps are stored, not levels."""

    @pytest.mark.parametrize("count", [100, 1000])
    def test_stored_jumps(self, count):
        """Within six standard deviations (false alarm 2·10⁻⁹) of the exact mean, itself within 10 % of 2·ln."""
        size, low, high = 3000, 1e-2, 4.0
        levels = np.geomspace(low, high, count)
        stored = NoisePath(np.zeros(size, dtype=np.int64), 2**41, levels, random_state=3)._jumps.size
        jump = np.array([1 - (a / b) ** 2 for a, b in pairwise(levels)])  # the discrete coin to 10⁻²⁴ here
        mean, deviation = size * jump.sum(), np.sqrt(size * (jump * (1 - jump)).sum())
        assert abs(stored - mean) < 6 * deviation
        rule = size * 2 * log(high / low)
        assert 0.9 * rule < mean < rule
        assert 0.9 * rule - 6 * deviation < stored < rule + 6 * deviation

    def test_footprint_does_not_grow_with_levels(self):
        def held(count):
            kept = NoisePath(np.zeros(2000, dtype=np.int64), 2**41, np.geomspace(1e-2, 4.0, count), random_state=3)
            return sum(a.nbytes for a in vars(kept).values() if isinstance(a, np.ndarray))

        assert held(1000) < 1.2 * held(100)
        assert held(1000) < 2000 * 1000 * 8 / 25  # what copies of every level would take


class TestWidths:
    """No sum wraps, and the width of a level depends on that level alone."""

    def test_extreme_levels(self):
        steps = list(NoisePath(np.arange(200), 2**41, list(np.geomspace(1e-7, 1.0, 50)), random_state=4))
        assert steps[0].values.dtype == object
        assert all(type(value) is int for value in steps[0].values)
        assert max(abs(value) for value in steps[0].values) > 2**63
        assert steps[-1].values.dtype == np.int64
        assert np.abs(steps[-1].values).max() < 2**41 * 40

    @pytest.mark.parametrize("shift", [2**40, 2**61, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**80, -(2**63), -(2**90)])
    @pytest.mark.parametrize("low", [1e-5, 1e-2])
    def test_shifted_values_give_shifted_paths(self, shift, low):
        """The same seed draws the same noise: exact Python arithmetic must explain every level."""
        levels = np.geomspace(low, 1.0, 30)
        base = np.arange(40)
        wide = [shift + int(value) for value in base]
        plain = NoisePath(base, 2**41, levels, random_state=6)
        moved = NoisePath(np.array(wide, dtype=object), 2**41, levels, random_state=6)
        for a, b in zip(plain, moved, strict=True):
            assert [int(y) for y in b.values] == [int(x) + shift for x in a.values]
            fits = all(abs(int(y)) < 2**62 for y in b.values)
            assert b.values.dtype == (np.int64 if fits else object)

    def test_native_integers_near_the_edge(self):
        for values in (np.array([2**63 - 1, -(2**63)]), np.array([2**64 - 1, 0], dtype=np.uint64)):
            exact = [int(value) for value in values]
            zero = NoisePath(np.zeros(2, dtype=np.int64), 2**41, [0.01, 1.0], random_state=6)
            for a, b in zip(zero, NoisePath(values, 2**41, [0.01, 1.0], random_state=6), strict=True):
                assert [int(y) for y in b.values] == [int(x) + v for x, v in zip(a.values, exact, strict=True)]
        small = NoisePath(np.array([200, 100], dtype=np.uint8), 1, [0.01, 1.0], random_state=6)
        assert all(step.values.dtype == np.int64 for step in small)

    def test_numpy_integers_in_an_object_array(self):
        values = np.array([np.int64(2**62), np.int64(5)], dtype=object)
        for step in NoisePath(values, 2**57, [0.1, 1.0], random_state=1):
            assert all(type(value) is int for value in step.values.tolist())

    def test_width_tells_nothing_about_the_future(self):
        """Prefixes equal in value are equal in type, however wide the levels after them or the sums behind."""
        first = NoisePath(np.array([0]), 2**41, [1e-2, 1.0], random_state=2)
        seen = [step.values.dtype for step in first]
        # 2^62 − small: the sum of sizes exceeds 62 bits, the values themselves do not
        top = next(iter(first)).values[0]
        shift = 2**62 - 1 - max(int(step.values[0]) for step in first)
        near = NoisePath(np.array([shift]), 2**41, [1e-2, 1.0], random_state=2)
        assert near._first.dtype == object  # so promotion did happen inside
        assert [step.values.dtype for step in near] == seen
        assert next(iter(near)).values[0] == shift + int(top)


class TestInterface:
    """Arguments, and what the object gives away."""

    def test_basics(self):
        steps = NoisePath([1, 2, 3], 2, (0.1, 0.2))
        assert len(steps) == 2
        assert steps.size == 3
        assert steps.secure
        assert not NoisePath([1], 1, [1.0], random_state=0).secure
        assert repr(steps) == "NoisePath(size=3, levels=2)"
        assert NoisePath([1], 1, [1.0], random_state=SecureSource()).secure

    def test_empty_and_single(self):
        empty = list(NoisePath(np.zeros(0, dtype=np.int64), 1, [0.5, 1.0]))
        assert [step.values.size for step in empty] == [0, 0]
        (single,) = NoisePath(np.zeros(4, dtype=np.int64), 1, [0.5])
        assert single.values.shape == (4,)

    @pytest.mark.parametrize("levels", [[1.0, 1.0], [2.0, 1.0], [0.1, 0.3, 0.2]])
    def test_levels_not_increasing(self, levels):
        with pytest.raises(ValueError, match="strictly increasing"):
            NoisePath([1], 1, levels)

    @pytest.mark.parametrize("level", [0.0, -1.0, float("nan"), float("inf")])
    def test_level_out_of_range(self, level):
        with pytest.raises(ValueError, match="positive and finite"):
            NoisePath([1], 1, [level, 2.0])

    def test_no_level(self):
        with pytest.raises(ValueError, match="at least one"):
            NoisePath([1], 1, [])

    @pytest.mark.parametrize("sensitivity", [0, -1, 0.5, 1.9, float("nan"), float("inf")])
    def test_sensitivity(self, sensitivity):
        with pytest.raises(ValueError, match="sensitivity must be a positive integer"):
            NoisePath([1], sensitivity, [1.0])

    @pytest.mark.parametrize(
        "values", [[1.5], np.array([1.0]), np.array([1, 2.5], dtype=object), np.array([True]), ["1"]]
    )
    def test_values_must_be_integers(self, values):
        with pytest.raises(ValueError, match="integers in grid units"):
            NoisePath(values, 1, [1.0])

    def test_values_must_be_flat(self):
        with pytest.raises(ValueError, match="one-dimensional"):
            NoisePath(np.zeros((2, 2), dtype=np.int64), 1, [1.0])


class TestMixedWidths:
    """A path that begins in Python integers and goes on in int64 yields what Python integers throughout would."""

    @pytest.mark.parametrize("scale", [2**44, 2**47])
    def test_every_level_equals_the_sum_of_its_jumps(self, scale):
        values = np.array([2**61, -(2**61), 0, 12345])
        levels = np.geomspace(1e-6, 1.0, 60)
        steps = NoisePath(values, scale, levels, random_state=SeededSource([31, 1]))
        exact = [int(v) for v in steps._first]
        seen = set()
        for t, step in enumerate(steps):
            assert [int(v) for v in step.values] == exact
            fits = all(abs(v) < 2**62 for v in exact)
            assert (step.values.dtype == np.int64) == fits
            seen.add(step.values.dtype)
            for k in range(steps._start[t], steps._start[t + 1]):
                exact[steps._where[k]] -= int(steps._jumps[k])
        assert len(seen) == 2  # both widths occur, or the test would show nothing
