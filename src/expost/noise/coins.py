"""Exact coins, many at a time: a 16-bit word decides almost always, a tie asks for the next one.

A coin of bias p is heads when a uniform real U in [0, 1) lies below p. The words of the stream are U's binary
digits, sixteen at a time; they are compared with p's, which :mod:`expost.noise.probability` gives to any
depth. The probability of heads is therefore p itself, not p rounded to some number of bits.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import NDArray

from expost.noise.source import WordSource, resolve_source

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


def bernoulli(p: float | Fraction, size: int, *, random_state: int | WordSource | None = None) -> NDArray[np.bool_]:
    """Flip ``size`` coins that come up True with probability exactly ``p``.

    Parameters
    ----------
    p
        A probability; a float stands for the binary fraction it is.
    size
        How many.
    random_state
        ``None`` for the secure source; an integer for simulation.

    Examples
    --------
    >>> bernoulli(Fraction(1, 3), 6, random_state=0).shape
    (6,)
    >>> bool(bernoulli(1.0, 100).all())
    True
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie between 0 and 1, got {p}")
    probability = exactly(p)
    if probability == 1:  # its expansion would need a digit before the point
        return np.ones(size, dtype=bool)
    source = resolve_source(random_state)

    def bits(count: int) -> int:
        return (probability.numerator << count) // probability.denominator

    first = np.uint16(bits(WORD))
    return below(source.words(size), np.broadcast_to(first, size), lambda _: bits, source)
