"""Every digit of every probability, against integer interval arithmetic."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction
from math import exp, floor, sinh

import pytest
from hypothesis import given, settings, strategies as st

from expost.noise.laplace import rate_of
from expost.noise.source import certain_floor, digit_bits, digit_words, exponential_bits, keep_bits
from tests.noise.helpers import digit_floor, exponential_floor, keep_floor

GRID = 2**41
RATES = [
    pytest.param(rate_of(epsilon, sensitivity), id=f"epsilon={epsilon}-sensitivity={sensitivity}")
    for epsilon, sensitivity in [
        (1e-5, GRID),
        (1e-7, GRID),
        (1e-7, 1),
        (0.1, GRID),
        (0.1, 1),
        (1.0, 1),
        (3.0, 1),
        (40.0, 1),
        (700.0, 1),
    ]
]


@pytest.mark.parametrize("rate", RATES)
def test_digit_words_are_the_true_digits(rate):
    count = 0
    while rate * 2**count < 32:
        count += 1
    words = digit_words(rate, count)
    assert words[:-1] == tuple(digit_floor(rate * 2**k, 64) for k in range(count))
    assert words[-1] == exponential_floor(rate * 2**count, 64)


def test_digit_words_far_beyond_the_scale_are_zero():
    # A table shared by several rates asks the largest rate for digits that are hardly ever one.
    words = digit_words(Fraction(1), 80)
    assert words[:6] == tuple(digit_floor(Fraction(2**k), 64) for k in range(6))
    assert set(words[6:]) == {0}  # 1/(1 + e^64) < 2^−64
    assert digit_floor(Fraction(64), 64) == 0


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("bits", [16, 32, 64, 80, 160, 400])
def test_later_digits(rate, bits):
    for digit in (0, 1, 5, 20):
        if rate * 2**digit < 800:
            assert digit_bits(rate, digit, bits) == digit_floor(rate * 2**digit, bits)
            assert exponential_bits(rate * 2**digit, bits) == exponential_floor(rate * 2**digit, bits)


@pytest.mark.parametrize("bits", [16, 64, 80, 160, 400])
@pytest.mark.parametrize(
    ("low", "high", "sensitivity"),
    [
        (1e-5, 2e-5, GRID),
        (1e-7, 1.0000001e-7, GRID),
        (1e-7, 4.0, GRID),
        (1e-7, 1.0, 1),
        (0.1, 0.10000000000000002, 1),
        (0.5, 1.0, 1),
        (1.0, 3.0, 1),
        (30.0, 60.0, 1),
    ],
)
def test_keep_probability(low, high, sensitivity, bits):
    a, b = rate_of(low, sensitivity), rate_of(high, sensitivity)
    assert keep_bits(a, b, bits) == keep_floor(a, b, bits)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    epsilon=st.floats(1e-9, 50, allow_nan=False),
    factor=st.floats(1 + 1e-9, 100),
    sensitivity=st.integers(1, 2**45),
    bits=st.integers(1, 200),
)
def test_any_parameters(epsilon, factor, sensitivity, bits):
    a, b = rate_of(epsilon, sensitivity), rate_of(epsilon * factor, sensitivity)
    assert keep_bits(a, b, bits) == keep_floor(a, b, bits)
    assert digit_bits(a, 3, bits) == digit_floor(a * 8, bits)
    assert exponential_bits(b, bits) == exponential_floor(b, bits)


def test_floats_would_not_do():
    """The control: the same formulas in double precision give other digits, so the comparison above has teeth."""
    a, b = rate_of(1e-5, GRID), rate_of(2e-5, GRID)
    naive = ((1 - exp(-float(a))) / (1 - exp(-float(b)))) ** 2 if 1 - exp(-float(b)) else 0.0
    assert floor(naive * 2**16) != keep_floor(a, b, 16)
    careful = (sinh(float(a) / 2) / sinh(float(b) / 2)) ** 2
    assert floor(careful * 2**64) != keep_floor(a, b, 64)
    assert floor(2**64 / (1 + exp(0.1))) != digit_floor(Fraction(0.1), 64)


class TestCertainFloor:
    """Doubt is settled by more digits, never by rounding."""

    @staticmethod
    def rational(p, asked):
        def evaluate(unit):
            asked.append(getcontext().prec)
            return Decimal(p.numerator) / Decimal(p.denominator), unit

        return evaluate

    @pytest.mark.parametrize("side", [1, -1])
    @pytest.mark.parametrize("distance", [10, 30, 100, 300])
    def test_just_beside_a_binary_fraction(self, side, distance):
        target = 0x1234_5678_9ABC_DEF0
        p = (Fraction(target) + Fraction(side, 10**distance)) / 2**64
        asked = []
        assert certain_floor(self.rational(p, asked), 64, 25) == target - (side < 0)
        assert asked[-1] > 20 + distance
        assert asked == [25 * 2**i for i in range(len(asked))]

    def test_an_error_of_a_half_decides_nothing(self):
        # Cancellation can leave a computed zero; its relative error times zero must not look certain.
        calls = []

        def evaluate(unit):
            calls.append(unit)
            return (Decimal(0), Decimal(1)) if len(calls) < 3 else (Decimal("0.3"), unit)

        assert certain_floor(evaluate, 16, 10) == int(0.3 * 2**16)
        assert len(calls) == 3

    def test_starting_precision_is_only_a_guess(self, monkeypatch):
        a, b, rate = rate_of(1e-7, GRID), rate_of(1e-5, GRID), rate_of(1e-7, GRID)
        monkeypatch.setattr("expost.noise.source._digits_for", lambda *_: 3)
        assert keep_bits.__wrapped__(a, b, 64) == keep_floor(a, b, 64)
        assert digit_bits(rate, 10, 64) == digit_floor(rate * 2**10, 64)
        assert exponential_bits(Fraction(35), 64) == exponential_floor(Fraction(35), 64)
        words = digit_words.__wrapped__(rate, 70)
        assert words == (
            *(digit_floor(rate * 2**k, 64) for k in range(70)),
            exponential_floor(rate * 2**70, 64),
        )


def test_extremes_terminate():
    assert exponential_bits(Fraction(1e308), 128) == 0
    assert digit_bits(Fraction(1e308), 0, 128) == 0
    assert keep_bits(Fraction(1), Fraction(1e308), 128) == 0
    assert digit_words(Fraction(1e308), 0) == (0,)
    tiny = rate_of(5e-324, GRID)
    assert digit_bits(tiny, 0, 64) == 2**63 - 1  # just below one half
    assert keep_bits(tiny, 2 * tiny, 64) == 2**62 - 1  # just below a quarter
