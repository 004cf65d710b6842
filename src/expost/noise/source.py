"""Where random words come from, the operating system's entropy or a seed, and exact coins made of them.

Entropy is for protection, a seed for simulation. Every sampler in this package consumes 16-bit words and nothing else,
so the whole of its randomness is either cryptographic or reproducible, never a mixture.

**Exact coins**, many at a time: a 16-bit word decides almost always, a tie asks for the next one.

A coin of bias p is heads when a uniform real U in [0, 1) lies below p. The words of the stream are U's binary
digits, sixteen at a time; they are compared with p's, to any depth. The probability of heads is therefore p itself, not
p rounded to some number of bits.

The digits of the few probabilities that samplers need come from :mod:`decimal`, whose ``exp`` is correctly rounded at
any precision: a value is evaluated together with an error s, and evaluated again with twice the digits whenever s
leaves the digit asked for in doubt. No floating point takes part, except in guessing how many digits to start with.

What s means: true value / computed value lies in [1 − s, 1/(1 − s)]. Such intervals make the bookkeeping
plain addition: errors add in products, quotients and powers because Π(1 − sᵢ) ≥ 1 − Σsᵢ; a sum of positive
terms has the larger of their errors; a rounded operation adds one unit; an exponent x known to one unit
multiplies e^x by e^(±unit·x), an error of unit·x; an absolute error d on a true value of at least m is an
error of d/m.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, log10
from numbers import Rational
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

_BUFFER_BYTES = 1 << 15
_LARGEST_BLOCK = 1 << 26  # bytes under one key: far below the 2^38 at which a 32-bit block counter would wrap


@runtime_checkable
class WordSource(Protocol):
    """A stream of independent, uniform 16-bit words."""

    @property
    def secure(self) -> bool:
        """Whether the words may protect anyone."""

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words."""


class SecureSource:
    """ChaCha20 keyed by the operating system; the only source whose noise protects anyone.

    After every block the key is replaced by the first 32 bytes of its own stream ("fast key erasure"), so a
    key found in memory tells nothing about the blocks before it. A forked child draws a key of its own: two
    processes sharing a stream would add the same noise twice. The object refuses to be copied or pickled for
    that reason.

    Examples
    --------
    >>> SecureSource().words(3).shape
    (3,)
    """

    secure = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rekey()
        _alive.add(self)

    def _rekey(self) -> None:
        self._key = os.urandom(32)
        self._buffer = np.empty(0, dtype=np.uint16)
        self._position = 0

    def _block(self, n_bytes: int) -> NDArray[np.uint16]:
        encryptor = Cipher(ChaCha20(self._key, bytes(16)), mode=None).encryptor()
        stream = encryptor.update(bytes(32 + n_bytes))
        self._key = stream[:32]
        return np.frombuffer(stream, dtype=np.uint16, offset=32)

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words of the stream, each handed out once; do not write to them."""
        if count < 0:  # would move the position back, over words already used
            raise ValueError(f"the number of words must not be negative, got {count}")
        with self._lock:
            if count * 2 > _LARGEST_BLOCK:
                parts = [
                    self._block(min(_LARGEST_BLOCK, 2 * count - start)) for start in range(0, 2 * count, _LARGEST_BLOCK)
                ]
                return np.concatenate(parts)
            if count * 2 > _BUFFER_BYTES:
                return self._block(2 * count)
            if self._position + count > self._buffer.size:
                self._buffer, self._position = self._block(_BUFFER_BYTES), 0
            taken = self._buffer[self._position : self._position + count]
            self._position += count
            return taken

    def __reduce__(self) -> str:
        raise TypeError("a secure noise source cannot be copied or pickled: its noise would be used twice")

    def __repr__(self) -> str:
        return "SecureSource()"


_alive: weakref.WeakSet[SecureSource] = weakref.WeakSet()


def _rekey_all() -> None:
    for source in list(_alive):
        source._lock = threading.Lock()  # the parent may have forked while another thread held the old one
        source._rekey()


os.register_at_fork(after_in_child=_rekey_all)


class SeededSource:
    """A reproducible source for simulation and tests. Its noise protects nobody, and releases say so.

    Parameters
    ----------
    seed
        Anything :class:`numpy.random.SeedSequence` takes.

    Examples
    --------
    >>> bool((SeededSource(7).words(5) == SeededSource(7).words(5)).all())
    True
    """

    secure = False

    def __init__(self, seed: int | list[int] | np.random.SeedSequence) -> None:
        self._bits = np.random.SFC64(seed)

    def words(self, count: int) -> NDArray[np.uint16]:
        """Return the next ``count`` words."""
        if count < 0:
            raise ValueError(f"the number of words must not be negative, got {count}")
        raw: NDArray[np.uint64] = self._bits.random_raw((count + 3) // 4)
        return raw.view(np.uint16)[:count]

    def __repr__(self) -> str:
        return "SeededSource()"


def resolve_source(random_state: int | np.random.RandomState | WordSource | None) -> WordSource:
    """Return the source a ``random_state`` argument asks for; ``None`` is the secure one."""
    if random_state is None:
        return SecureSource()
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state}")
        return SeededSource(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        # scikit-learn hands these round; drawing from it keeps "same state, same result"
        return SeededSource([int(word) for word in random_state.randint(0, 2**31 - 1, size=4)])
    # the two of this package first: to look at a protocol takes as long as a draw
    if isinstance(random_state, SecureSource | SeededSource | WordSource):
        return random_state
    raise ValueError(
        "random_state must be None (secure noise), a non-negative integer or a numpy RandomState "
        f"(simulation), or a noise source; got {type(random_state).__name__}"
    )


WORD = 16
_MASK = (1 << WORD) - 1


def exactly(x: float | Fraction) -> Fraction:
    """Return the number a float (NumPy's included) or a rational stands for."""
    return Fraction(x if isinstance(x, Rational) else float(x))


def below(
    words: NDArray[np.uint16],
    thresholds: NDArray[np.uint16],
    bits_of: Callable[[tuple[int, ...]], Callable[[int], int]],
    source: WordSource,
) -> NDArray[np.bool_]:
    """Decide ``U < p`` elementwise, given the first word of each U and of each p.

    Parameters
    ----------
    words, thresholds
        First sixteen digits of U and of p; they broadcast against each other.
    bits_of
        Maps the index of a tied element to the function ``count -> ⌊p·2^count⌋`` of its p.
    source
        Where further words come from.
    """
    heads: NDArray[np.bool_] = words < thresholds
    ties = np.flatnonzero(words == thresholds)  # many times faster than argwhere in two dimensions
    for tie in ties:
        index = tuple(int(i) for i in np.unravel_index(tie, heads.shape))
        heads[index] = flip(bits_of(index), source, tied=1)
    return heads


def flip(bits: Callable[[int], int], source: WordSource, *, tied: int = 0) -> bool:
    """Flip one coin given ``bits(count) = ⌊p·2^count⌋``; its first ``tied`` words were equal to p's."""
    depth = (tied + 1) * WORD
    while True:
        word, digit = int(source.words(1)[0]), bits(depth) & _MASK
        if word != digit:
            return word < digit
        depth += WORD


_NEGLIGIBLE = 1 << 66  # 1/(1 + power) is below 2⁻⁶⁴ from here on, whatever an error below ½ hides
_HALF = Decimal("0.5")

# evaluate(unit) -> (approximation, its error s), called inside a context whose rounding unit that is
Evaluator = Callable[[Decimal], tuple[Decimal, Decimal]]


def _context(digits: int) -> Context:
    # Untrapped, e^(10^19) is infinite and e^(−10^19) zero: right to the first 10^18 digits of a probability.
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _unit() -> Decimal:
    """Error of one correctly rounded operation (to the nearest, hence half of this; we use a whole one)."""
    return Decimal(10) ** (1 - getcontext().prec)


def _floor_if_certain(value: Decimal, error: Decimal, bits: int) -> int | None:
    # One unit for the product; 1/(1 − s) ≤ 1 + 2s for s ≤ ½; the other three pay for the roundings below.
    error = error + 4 * _unit()
    if error > _HALF:
        return None
    scaled = value * (1 << bits)
    slack = 2 * error * scaled
    low = (scaled - slack).to_integral_value(ROUND_FLOOR)
    high = (scaled + slack).to_integral_value(ROUND_FLOOR)
    return int(low) if low == high else None


def certain_floor(evaluate: Evaluator, bits: int, digits: int) -> int:
    """Return ⌊p·2^bits⌋ for the p that ``evaluate`` approximates, starting at ``digits`` of precision."""
    while True:
        with localcontext(_context(digits)):
            found = _floor_if_certain(*evaluate(_unit()), bits)
        if found is not None:
            return found
        digits *= 2  # ends: none of the probabilities used here is a binary fraction (Lindemann–Weierstrass)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _digits_for(bits: int, *extra: float) -> int:
    return ceil(bits * log10(2)) + ceil(sum(extra)) + 12


def _log10(x: Fraction) -> float:
    # numerator and denominator may each lie outside the floats
    return (x.numerator.bit_length() - x.denominator.bit_length()) * log10(2)


@lru_cache(maxsize=1 << 14)
def digit_words(rate: Fraction, count: int) -> tuple[int, ...]:
    """Return ⌊2⁶⁴·P(digit k = 1)⌋ for k < ``count``, and last ⌊2⁶⁴·e^(−2^count·rate)⌋ (theory B2).

    A geometric G with P(G ≥ j) = e^(−j·rate) has independent binary digits, digit k being one with
    probability 1/(1 + e^(2^k·rate)); what lies above them is again geometric, of ratio e^(−2^count·rate).
    All come from one exponential by repeated squaring; each squaring doubles the error, so the precision
    carries ``count`` bits more than the result.
    """
    growth = max(0.0, _log10(rate)) + count * log10(2)
    digits = _digits_for(64, growth)
    while True:
        with localcontext(_context(digits)):
            unit = _unit()
            power = _decimal(rate).exp()
            error = unit * (1 + _decimal(rate))
            words: list[int] = []
            for _ in range(count):
                if power > _NEGLIGIBLE and error < _HALF:
                    return (*words, *[0] * (count + 1 - len(words)))
                word = _floor_if_certain(1 / (1 + power), error + 2 * unit, 64)
                if word is None:
                    break
                words.append(word)
                power, error = power * power, 2 * error + unit
            else:
                last = _floor_if_certain(1 / power, error + unit, 64)
                if last is not None:
                    return (*words, last)
        digits *= 2


def digit_bits(rate: Fraction, digit: int, bits: int) -> int:
    """Return ⌊2^bits / (1 + e^(2^digit·rate))⌋."""
    exponent = rate * (1 << digit)

    def evaluate(unit: Decimal) -> tuple[Decimal, Decimal]:
        power = _decimal(exponent).exp()
        return 1 / (1 + power), unit * (3 + _decimal(exponent))

    return certain_floor(evaluate, bits, _digits_for(bits, max(0.0, _log10(exponent))))


def exponential_bits(exponent: Fraction, bits: int) -> int:
    """Return ⌊2^bits · e^(−exponent)⌋ for a positive exponent."""

    def evaluate(unit: Decimal) -> tuple[Decimal, Decimal]:
        return (-_decimal(exponent)).exp(), unit * (1 + _decimal(exponent))

    return certain_floor(evaluate, bits, _digits_for(bits, max(0.0, _log10(exponent))))


@lru_cache(maxsize=1 << 14)
def keep_bits(more_private: Fraction, less_private: Fraction, bits: int) -> int:
    """Return ⌊2^bits · (sinh(a/2)/sinh(b/2))²⌋ for rates a < b (theory B1).

    Written with r = e^(a−b)·((1 − e^(−a))/(1 − e^(−b)))², the same number; 1 − e^(−a) loses as many digits as
    a has leading zeros (a can be 10⁻²⁰), so that many more are carried.
    """
    a, b = more_private, less_private
    lost = max(0.0, -_log10(a))

    def evaluate(unit: Decimal) -> tuple[Decimal, Decimal]:
        above, below = 1 - (-_decimal(a)).exp(), 1 - (-_decimal(b)).exp()
        ratio = above / below
        value = _decimal(a - b).exp() * ratio * ratio
        # For x = a as for x = b > a, e^(−x) is off by at most two units (one as x·e^(−x) < 1, one to round)
        # and 1 − e^(−x) ≥ min(1, x)/2; each difference counts twice. Then the plain roundings: differences
        # and quotient, each twice, two products, and e^(a−b) with its exponent.
        smallest = min(Decimal(1), _decimal(a)) / 2
        return value, 4 * (2 * unit / smallest) + unit * (9 + _decimal(b))

    return certain_floor(evaluate, bits, _digits_for(bits, lost, max(0.0, _log10(b))))
