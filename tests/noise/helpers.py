"""Independent mathematics for the tests of the noise room: nothing here is shared with what it checks.

Probabilities to any depth come from integer interval arithmetic on Taylor series (the library uses ``decimal``),
and statistics from SciPy. A scripted source hands out words of our choosing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from scipy import stats

RARE = 1e-6  # each statistical test is meant to fail for one seed in a million


class ScriptedSource:
    """Hands out the given words in order and complains when they run out."""

    secure = False

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array(list(words), dtype=np.uint16)
        self.used = 0

    def words(self, count: int) -> np.ndarray:
        if self.used + count > self._words.size:
            raise AssertionError("the script is too short: more words were asked for than expected")
        self.used += count
        return self._words[self.used - count : self.used]

    @property
    def left(self) -> int:
        return self._words.size - self.used


Interval = tuple[int, int]  # [low, high], both over 2^PRECISION
PRECISION = 1400


def exp_interval(x: Fraction) -> Interval:
    """e^x for x ≥ 0: Taylor at x/2^m, rounded outwards, squared m times."""
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 8)
    y = x / (1 << halvings)
    low = high = term_low = term_high = 1 << PRECISION
    k = 0
    while term_high > 1:
        k += 1
        term_low = term_low * y.numerator // (y.denominator * k)
        term_high = -(-term_high * y.numerator // (y.denominator * k))
        low, high = low + term_low, high + term_high
    high += 2  # y < 1/2, so what is left is below the last term, which is at most one
    for _ in range(halvings):
        low, high = low * low >> PRECISION, -(-high * high >> PRECISION)
    return low, high


def cosh_minus_one(x: Fraction) -> Interval:
    """Σ x^(2k)/(2k)! from k = 1: no cancellation, whatever x."""
    square = x * x
    low = high = 0
    term_low = term_high = 1 << PRECISION
    k = 0
    while term_high > 1 or (2 * k) ** 2 <= 2 * square:
        k += 1
        term_low = term_low * square.numerator // (square.denominator * (2 * k) * (2 * k - 1))
        term_high = -(-term_high * square.numerator // (square.denominator * (2 * k) * (2 * k - 1)))
        low, high = low + term_low, high + term_high
    return low, high + 2


def _agreed(low: int, high: int) -> int:
    assert low == high, "the test's own precision does not suffice"
    return low


def digit_floor(exponent: Fraction, bits: int) -> int:
    """⌊2^bits/(1 + e^exponent)⌋."""
    low, high = exp_interval(exponent)
    one = 1 << PRECISION
    return _agreed((one << bits) // (one + high), (one << bits) // (one + low))


def exponential_floor(exponent: Fraction, bits: int) -> int:
    """⌊2^bits·e^(−exponent)⌋."""
    low, high = exp_interval(exponent)
    one = 1 << PRECISION
    return _agreed((one << bits) // high, (one << bits) // low)


def keep_floor(a: Fraction, b: Fraction, bits: int) -> int:
    """⌊2^bits·(cosh a − 1)/(cosh b − 1)⌋, another form of the squared quotient of hyperbolic sines."""
    top, bottom = cosh_minus_one(a), cosh_minus_one(b)
    return _agreed((top[0] << bits) // bottom[1], (top[1] << bits) // bottom[0])


def word_of(floor: int, bits: int, depth: int) -> int:
    """The ``depth``-th 16-bit word (from 1) of an expansion known to ``bits`` digits."""
    return (floor >> (bits - 16 * depth)) & 0xFFFF


def laplace_pmf(k: np.ndarray, rate: float) -> np.ndarray:
    """P(k) = tanh(rate/2)·e^(−|k|·rate)."""
    return np.tanh(rate / 2) * np.exp(-np.abs(k) * rate)


def laplace_table(draws: np.ndarray, rate: float, least: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Counts and probabilities of −K, …, K with both tails pooled, each cell expecting at least ``least``."""
    q = np.exp(-rate)
    n = draws.size
    last = 0
    while n * q ** (last + 1) / (1 + q) >= least:  # P(k > last)
        last += 1
    centre = np.arange(-last, last + 1)
    probabilities = laplace_pmf(centre, rate)
    probabilities[[0, -1]] = q**last / (1 + q)  # P(k ≥ last)
    if last == 0:
        probabilities[:] = 1.0
    counts = np.bincount(np.clip(draws, -last, last).astype(np.int64) + last, minlength=2 * last + 1)
    return counts, probabilities


def geometric_table(draws: np.ndarray, rate: float, least: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Counts and probabilities of 0, …, K with the tail pooled."""
    q = np.exp(-rate)
    last = 0
    while draws.size * q ** (last + 1) >= least:
        last += 1
    probabilities = (1 - q) * q ** np.arange(last + 1.0)
    probabilities[-1] = q**last
    counts = np.bincount(np.minimum(draws, last).astype(np.int64), minlength=last + 1)
    return counts, probabilities


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """p-value of Pearson's test against fully specified probabilities."""
    counts, probabilities = np.ravel(counts), np.ravel(probabilities)
    assert abs(probabilities.sum() - 1) < 1e-9
    return float(stats.chisquare(counts, probabilities / probabilities.sum() * counts.sum()).pvalue)


def two_sample(counts: np.ndarray, others: np.ndarray, least: int = 10) -> float:
    """p-value of the χ² test that two rows of counts come from one distribution."""
    table = np.array([counts, others])
    table = table[:, table.sum(axis=0) >= least]
    return float(stats.chi2_contingency(table, correction=False).pvalue)
