"""What is left of noise beyond its digits: b put together from every word drawn and remainders that do their worst.

b is computed anew in longer arithmetic from what was drawn, completed by remainders; what the library computes has to
be as close to it as it says, for words and tails of our choosing. And completed as the lemma says it is of its law.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from expost.mechanisms.objective import draws as drawn_noise
from expost.mechanisms.objective.draws import BlockNoise, NormalNoise, block_noise, rounding
from expost.noise import SeededSource
from tests.noise.helpers import RARE

Long = np.longdouble
PI = Long("3.14159265358979323846264338327950288")
needs_long = pytest.mark.skipif(np.finfo(Long).eps > 2e-19, reason="long double is no longer than double here")


class Begun:
    """Hands out a word again and again, so many times, and then goes on at random."""

    secure = False

    def __init__(self, word: int | None, count: int, seed: int) -> None:
        self._word, self._left, self._rest = word, 0 if word is None else count, SeededSource(seed)

    def words(self, count: int) -> np.ndarray:
        first = min(count, self._left)
        self._left -= first
        return np.concatenate([np.full(first, self._word or 0, np.uint16), self._rest.words(count - first)])


class Drawn:
    """Everything that was drawn, in order; geometric variables may be made as large as we like."""

    secure = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch, source: Any, longer: int = 0) -> None:
        self.lengths: list[list[int]] = []
        self.whole: list[tuple[list[int], int]] = []
        self.last = np.zeros(0, np.uint16)  # signs of Laplace variables, or angles
        geometric, whole = drawn_noise.geometric, drawn_noise._whole

        def kept(*given: Any, **options: Any) -> Any:
            drawn = geometric(*given, **options)
            drawn = drawn.astype(object) + longer * (1 + np.arange(drawn.size).astype(object) % 3)
            self.lengths.append([int(k) for k in drawn])
            return drawn

        def held(count: int, words: int, given: Any) -> list[int]:
            drawn = whole(count, words, given)
            self.whole.append((drawn, 16 * words))
            return drawn

        monkeypatch.setattr(drawn_noise, "geometric", kept)
        monkeypatch.setattr(drawn_noise, "_whole", held)
        self._source = source

    def words(self, count: int) -> np.ndarray:
        self.last = self._source.words(count)
        return self.last


def at(values: list[int], unit: Any, rest: Any) -> np.ndarray:
    """(K + rest)·unit in long double; integers are split, so that none is rounded but once."""
    return np.array([(Long(float(k >> 60)) * Long(2) ** 60 + Long(k & ((1 << 60) - 1)) + rest) * unit for k in values])


def turned(lengths: np.ndarray, words: np.ndarray, rest: Any) -> np.ndarray:
    angles = (words.view(np.uint64).astype(Long) + rest) * (2 * PI / Long(2) ** 64)
    return np.stack([np.cos(angles) * lengths, np.sin(angles) * lengths], axis=1).ravel()


def completed(norm: str, size: int, drawn: Drawn, exponential: Any, uniform: Any, step: float, fine: float) -> Any:
    """b of one block of weight one, given what remainders are: parts of a step."""
    if norm == "normal":
        energy = at(drawn.lengths[0], Long(fine), exponential)
        return turned(np.sqrt(2 * energy), drawn.last, uniform)
    if norm == "l1" or (size == 1 and norm == "l2"):
        signs = np.unpackbits(drawn.last.view(np.uint8), count=size)
        return at(drawn.lengths[0], Long(step), exponential) * np.where(signs, -1, 1)
    reach = at(drawn.lengths[0], Long(step), exponential).sum()
    if norm == "box":
        ((first, digits),) = drawn.whole
        return reach * (2 * at(first, Long(2) ** -digits, uniform) - 1)
    direction, left = [], Long(1)
    if size % 2:
        (middle, digits) = drawn.whole.pop(0)
        u = at(sorted(middle), Long(2) ** -digits, uniform)[size // 2 - 1]
        direction, left = [2 * u - 1], np.sqrt(4 * u * (1 - u))
    ((cuts, digits),) = drawn.whole
    ends = np.concatenate([[Long(0)], at(sorted(cuts), Long(2) ** -digits, uniform), [Long(1)]])
    return reach * np.concatenate([direction, turned(left * np.sqrt(np.diff(ends)), drawn.last, uniform)])


CASES = [("normal", 4), ("l1", 5), ("l2", 1), ("l2", 2), ("l2", 3), ("l2", 6), ("l2", 9), ("box", 1), ("box", 6)]


def worst(monkeypatch: pytest.MonkeyPatch, norm: str, size: int, source: Any, longer: int = 0) -> float:
    """The largest ‖b − b̃‖ over remainders, in units of what is stated."""
    with monkeypatch.context() as patch:
        drawn = Drawn(patch, source, longer)
        if norm == "normal":
            law: Any = NormalNoise([(size, 1.0)])
        else:
            law = BlockNoise([(size, norm)], [1.0])
        b, stated = law.draw(drawn), law.remainder
    most = stated + rounding(size) * float(np.linalg.norm(b))
    largest, all_whole = 0.0, list(drawn.whole)
    for exponential in (Long(0), Long(0.5), 1 - Long(2) ** -60):
        for uniform in (Long(0), Long(0.5), 1 - Long(2) ** -60):
            drawn.whole = list(all_whole)
            exact = completed(norm, size, drawn, exponential, uniform, 2.0**-48, 2.0**-104)
            largest = max(largest, float(np.sqrt(((exact - b) ** 2).sum())) / most)
    return largest


@needs_long
@pytest.mark.parametrize(("norm", "size"), CASES)
def test_no_outcome_leaves_more_than_stated(norm, size, monkeypatch):
    """Ordinary words, zeros, ones, and tails as long as e^(−2²⁰) and e^(−2³⁰⁰) make them."""
    found = []
    for seed in range(6):
        for word, count in ((None, 0), (0, 40), (0xFFFF, 10**6)):
            source = Begun(word, count, seed)
            found.append(worst(monkeypatch, norm, size, source))
        for longer in (1 << 68, 1 << 140, 1 << 348):
            found.append(worst(monkeypatch, norm, size, Begun(None, 0, seed), longer))
    assert max(found) <= 1.0
    assert max(found) > 0.01  # the bound is not idle


@needs_long
def test_controls_what_would_leave_more(monkeypatch):
    long_tail = 1 << 140
    with monkeypatch.context() as patch:  # a tail cut off where uniforms of 52 bits would cut it
        geometric = drawn_noise.geometric
        patch.setattr(drawn_noise, "geometric", lambda *a, **o: np.minimum(geometric(*a, **o), 37 << 48))
        drawn = Drawn(patch, SeededSource(0), long_tail)
        b = np.minimum(np.abs(block_noise([(3, "l1")], [1.0], drawn)), 37.0)
        exact = completed("l1", 3, drawn, Long(0), Long(0), 2.0**-48, 2.0**-104)
        assert float(np.abs(exact).max()) - b.max() > 1e6
    near = lambda count, words, source: [(1 << (16 * words - 1)) + 12345] * count  # noqa: E731
    cut = lambda count, words, source: [1 << (16 * words - 1)] * count  # noqa: E731
    for whole, fits in ((near, True), (cut, False)):  # digits of a uniform that end before the radius allows it
        with monkeypatch.context() as patch:
            patch.setattr(drawn_noise, "_whole", whole)
            drawn = Drawn(patch, SeededSource(0), long_tail)
            b = block_noise([(1, "box")], [1.0], drawn)[0]
        real = sum(drawn.lengths[0]) * (2 * 12345) / 2.0 ** drawn.whole[0][1] * 2.0**-48
        most = BlockNoise([(1, "box")], [1.0]).remainder + rounding(1) * abs(b)
        assert (abs(real - b) <= most) == fits
    with monkeypatch.context() as patch:  # normals with the step of the others: a root is steep at zero
        patch.setattr(drawn_noise, "_FINE", 2.0**-48)
        normals = NormalNoise([(2, 1.0)]).remainder
    assert normals > 1e6 * NormalNoise([(2, 1.0)]).remainder


@pytest.mark.parametrize("size", [1, 2])
def test_normals_are_normal(size):
    """Each coordinate, and the one drawn beside; squares of a pair and their signs are independent. RARE each."""
    source = SeededSource(1)
    sample = np.array([NormalNoise([(size, 2.0)]).draw(source) for _ in range(4000)]) / 2.0
    assert sample.shape == (4000, 2)
    for column in sample.T:
        assert stats.kstest(column, stats.norm.cdf).pvalue > RARE
        assert stats.kstest(column * math.sqrt(2), stats.norm.cdf).pvalue < RARE  # √E for √(2E)
    assert stats.spearmanr(*(sample**2).T).pvalue > RARE
    assert stats.binomtest(int((sample[:, 0] * sample[:, 1] > 0).sum()), 4000).pvalue > RARE
    together = np.array([NormalNoise([(3, 1.0), (1, 5.0)]).draw(source) for _ in range(2000)])
    for column, sigma in zip(together.T, (1, 1, 1, 5, 1, 5), strict=True):  # noise first, what was beside it behind
        assert stats.kstest(column / sigma, stats.norm.cdf).pvalue > RARE


def exponential(rest: Any, monkeypatch: pytest.MonkeyPatch) -> float:
    """p-value of Laplace noise in steps as coarse as its scale, completed by a remainder given K and a uniform."""
    count = 20_000
    monkeypatch.setattr(drawn_noise, "_STEP", 1.0)
    b = block_noise([(count, "l1")], [1.0], SeededSource(2))
    k = np.abs(b)
    real = k + rest(k, np.random.default_rng(0).random(count))
    return float(stats.kstest(real, stats.expon.cdf).pvalue)


def cut(u: np.ndarray) -> np.ndarray:
    """Of density ∝ e^(−r) on [0, 1)."""
    return -np.log1p(-u * (1 - math.exp(-1)))


def test_an_independent_remainder_makes_it_exponential(monkeypatch):
    """And nothing else does: a remainder that K has a say in, none at all, or one that is uniform. RARE."""
    assert exponential(lambda k, u: cut(u), monkeypatch) > RARE
    for broken in (
        lambda k, u: cut(np.where(k % 2 == 1, u / 2, (1 + u) / 2)),  # R not independent of K
        lambda k, u: 0.0 * u,
        lambda k, u: u,
    ):
        assert exponential(broken, monkeypatch) < RARE
