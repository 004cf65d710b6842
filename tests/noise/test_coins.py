"""Exact coins: every first word enumerated, ties forced at several depths."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from expost.noise import SeededSource
from expost.noise.source import below, exactly, flip
from tests.noise.helpers import RARE, ScriptedSource

BIASES = [Fraction(1, 3), Fraction(0.1), Fraction(1, 2**16), Fraction(1, 2**40), 1 - Fraction(1, 7**9)]


def bits_of(p):
    return lambda count: (p.numerator << count) // p.denominator


def coins(p, size, source):
    """Coins of one bias below one, as samplers flip theirs: all first words at once."""
    bits = bits_of(exactly(p))
    return below(source.words(size), np.broadcast_to(np.uint16(bits(16)), size), lambda _: bits, source)


@pytest.mark.parametrize("p", BIASES)
@pytest.mark.parametrize("tie_wins", [True, False])
def test_all_first_words(p, tie_wins):
    """Of the 65536 first words exactly ⌊p·2¹⁶⌋ are heads at once, and one is a tie for the next words to decide."""
    second = bits_of(p)(32) & 0xFFFF
    third = bits_of(p)(48) & 0xFFFF
    if tie_wins:  # the first deeper word that can lie below p's does; p = k·2⁻¹⁶ has none, so its tie is tails
        script = [second - 1] if second else [0, third - 1] if third else [1]
    else:
        script = [second + 1] if second < 0xFFFF else [second, third + 1]
    source = ScriptedSource([*range(2**16), *script])
    heads = coins(p, 2**16, source)
    possible = second > 0 or third > 0
    assert heads.sum() == bits_of(p)(16) + (tie_wins and possible)
    assert source.left == 0


@pytest.mark.parametrize("p", BIASES)
def test_all_second_words(p):
    """After a tie, exactly ⌊p·2³²⌋ mod 2¹⁶ second words are heads."""
    digits = bits_of(p)
    tie = digits(32) & 0xFFFF
    heads = sum(flip(digits, ScriptedSource([word]), tied=1) for word in range(2**16) if word != tie)
    assert heads == tie


def test_rounding_the_bias_would_be_seen():
    """The control: a coin that stops at sixteen digits has no tie to resolve, and misses by up to 2⁻¹⁶."""
    p = Fraction(1, 3)
    rounded = sum(word < bits_of(p)(16) for word in range(2**16))
    assert Fraction(rounded, 2**16) != p
    # the exact coin: heads at once, plus the tie at every depth, a geometric series that sums to p
    series = sum(Fraction(bits_of(p)(16 * d) & 0xFFFF, 2 ** (16 * d)) for d in range(1, 12))
    assert 0 < p - series < Fraction(1, 2**170)


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(0.1) / 3, 1 - Fraction(1, 10**30)])
def test_ties_go_to_the_next_word(p, depth):
    words = [bits_of(p)(16 * d) & 0xFFFF for d in range(1, depth + 2)]
    *tied, decisive = words
    if decisive > 0:
        source = ScriptedSource([*tied, decisive - 1])
        assert coins(p, 1, source)[0]
        assert source.left == 0
    if decisive < 0xFFFF:
        source = ScriptedSource([*tied, decisive + 1])
        assert not coins(p, 1, source)[0]
        assert source.left == 0


def test_ties_of_an_array_are_settled_in_order():
    p = Fraction(1, 3)
    tie = bits_of(p)(16)
    source = ScriptedSource([tie, 0, tie, 2**16 - 1, tie, 0xFFFF, 0, 0xFFFF])
    assert coins(p, 5, source).tolist() == [False, True, True, False, False]
    assert source.left == 0


def test_below_broadcasts():
    words = np.array([[5, 10], [10, 15]], dtype=np.uint16)
    thresholds = np.array([10, 12], dtype=np.uint16)
    asked = []

    def which(index):
        asked.append(index)
        return bits_of(Fraction(10, 2**16))

    heads = below(words, thresholds, which, ScriptedSource([7]))
    assert heads.tolist() == [[True, True], [False, False]]  # 7 is not below the zeros that follow 10·2⁻¹⁶
    assert asked == [(1, 0)]


def test_certain_coins():
    assert not coins(0.0, 200_000, SeededSource(0)).any()  # a few first words tie with zero
    assert coins(Fraction(1, 2), 0, SeededSource(0)).shape == (0,)


def binomial_p(heads, n, p):
    return stats.binomtest(int(heads), n, p).pvalue


@pytest.mark.parametrize("p", [0.5, 1 / 3, 0.9, 1e-3])
def test_frequency(p):
    """False alarm: one seed in 10⁶. The control: a coin twenty standard deviations off."""
    n = 1_000_000
    assert binomial_p(coins(p, n, SeededSource([1, 2])).sum(), n, p) > RARE
    wrong = p + 20 * np.sqrt(p * (1 - p) / n)
    assert binomial_p(coins(wrong, n, SeededSource([1, 3])).sum(), n, p) < RARE


def test_a_float_is_the_binary_fraction_it_is():
    for p in (np.float32(0.1), np.float64(0.1)):
        exact = Fraction(float(p))
        tie = bits_of(exact)(16)
        second = bits_of(exact)(32) & 0xFFFF
        assert coins(p, 1, ScriptedSource([tie, second - 1]))[0]
        assert not coins(p, 1, ScriptedSource([tie, second + 1]))[0]
