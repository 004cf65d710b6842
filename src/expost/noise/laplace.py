"""Geometric and discrete Laplace variables, exact and vectorised (theory B2).

The distribution of each draw is exactly P(G ≥ k) = e^(−k·ε/Δ), or P(k) ∝ e^(−|k|·ε/Δ), with ε the binary
fraction a float is and Δ an integer: no float enters the sampling, and the support is unbounded, as pure
privacy needs.

*Lemma (digits).* Let G be geometric, P(G ≥ k) = e^(−kr). Its binary digits are independent, and digit k is one with
probability 1/(1 + e^(2^k·r)). *Proof.* With q = e^(−r), P(G = g) = (1 − q)·q^g = (1 − q)·∏ q^(2^k·g_k), a product over
the digits g_k of g; and ∏ (1 + q^(2^k)) = 1/(1 − q) makes each factor q^(2^k·g_k)/(1 + q^(2^k)) a probability. ∎

So digits below K are drawn as coins, all at once. What lies above them, ⌊G/2^K⌋, is independent of them and geometric
of rate 2^K·r, hence drawn by repeated coins. The discrete Laplace is a sign and a geometric with (−, 0) drawn again:
every k ≠ 0 keeps one way to come up, and so does 0, so P(k) ∝ e^(−r|k|). Coins are exact (`expost.noise.coins`).

Width: the array is int64 when all draws of the call fit in 62 bits, and holds Python integers otherwise.
Below a scale of about 2⁵⁷ that takes a draw 32 scales out, far beyond it nearly every draw. Nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.noise.coins import WORD, below, digit_bits, digit_words, exactly, exponential_bits, flip
from expost.noise.source import WordSource, resolve_source

Integers = NDArray[Any]  # int64, or object holding Python integers when 62 bits do not suffice

_PLAIN = 62  # digits that fit an int64 together with a sign and one addition
_TOP = 32  # digits reach up to where e^(−2^K·rate) < e^(−32): a further geometric is then almost never needed
_BLOCK = 1 << 14  # draws handled at once, so that the words of a block stay in cache


def rate_of(epsilon: float, sensitivity: int) -> Fraction:
    """Return ε/Δ exactly, checking both."""
    if not 0 < epsilon < float("inf"):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
    if not 1 <= sensitivity < float("inf") or int(sensitivity) != sensitivity:
        raise ValueError(f"sensitivity must be a positive integer (in grid units), got {sensitivity}")
    return exactly(epsilon) / int(sensitivity)


class DigitTable:
    """First words of all digit probabilities of several rates, and the way to their later digits."""

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates
        self.count = 0
        while min(rates) * (1 << self.count) < _TOP:
            self.count += 1
        words = np.array([digit_words(rate, self.count) for rate in rates], dtype=np.uint64)
        self.first = (words >> np.uint64(64 - WORD)).astype(np.uint16)
        self._words = words

    def bits(self, row: int, column: int) -> Callable[[int], int]:
        """Return ``count -> ⌊p·2^count⌋`` for a digit, or in the last column for the coin above them all."""

        def expand(count: int) -> int:
            if count <= 64:
                return int(self._words[row, column]) >> (64 - count)
            if column == self.count:
                return exponential_bits(self.rates[row] * (1 << self.count), count)
            return digit_bits(self.rates[row], column, count)

        return expand


# Levels grids come back run after run, and a table costs as much as tens of thousands of draws.
digit_table = lru_cache(maxsize=64)(DigitTable)


def _geometric(table: DigitTable, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> Integers:
    """Draw ``size`` geometric variables, the i-th with rate ``table.rates[rows[i]]``."""
    blocks = [
        _geometric_block(table, None if rows is None else rows[start : start + _BLOCK], length, source)
        for start in range(0, size, _BLOCK)
        for length in [min(_BLOCK, size - start)]
    ]
    if not blocks:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate(blocks)  # promotes to Python integers if any block needed them


def _geometric_block(table: DigitTable, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> Integers:
    columns = table.count + 1
    words = source.words(size * columns).reshape(size, columns)
    thresholds = table.first[0] if rows is None else table.first[rows]

    def bits_of(index: tuple[int, ...]) -> Callable[[int], int]:
        return table.bits(0 if rows is None else int(rows[index[0]]), index[1])

    digits = below(words, np.broadcast_to(thresholds, words.shape), bits_of, source)
    over = np.flatnonzero(digits[:, table.count])
    if table.count <= _PLAIN and over.size == 0:
        return _pack(digits[:, : table.count])
    low = _pack(digits[:, : min(table.count, _PLAIN)]).astype(object)
    for start in range(_PLAIN, table.count, _PLAIN):
        low += _pack(digits[:, start : min(table.count, start + _PLAIN)]).astype(object) << start
    for i in over:  # heads before the first tails of an exact coin: the geometric above the last digit
        above, heads = table.bits(0 if rows is None else int(rows[i]), table.count), 1
        while flip(above, source):
            heads += 1
        low[i] += heads << table.count
    return narrowed(low)


def narrowed(values: Integers) -> Integers:
    """Return int64 if every value fits in 62 bits and a sign, Python integers otherwise."""
    try:
        narrow = values.astype(np.int64, copy=False)
    except OverflowError:
        return values
    fits = not narrow.size or (narrow.min() > -(1 << _PLAIN) and narrow.max() < 1 << _PLAIN)
    return narrow if fits else values.astype(object)


def _pack(digits: NDArray[np.bool_]) -> NDArray[np.int64]:
    padded = np.zeros((digits.shape[0], 64), dtype=np.bool_)
    padded[:, : digits.shape[1]] = digits
    return np.packbits(padded, axis=1, bitorder="little").view("<i8").ravel().astype(np.int64, copy=False)


def laplace_draws(table: DigitTable, rows: NDArray[np.intp] | None, size: int, source: WordSource) -> Integers:
    """Draw discrete Laplace variables: a sign and a geometric size, with (−, 0) drawn again.

    Without that, zero would be counted under both signs. Half the words that G − G' takes.
    """
    result: Integers = np.zeros(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        magnitude = _geometric(table, None if rows is None else rows[todo], todo.size, source)
        signs = source.words((todo.size + WORD - 1) // WORD)
        negative = np.unpackbits(signs.view(np.uint8), count=todo.size).astype(np.bool_)
        accepted = ~(negative & (magnitude == 0))
        if magnitude.dtype == object and result.dtype != object:
            result = result.astype(object)
        result[todo[accepted]] = np.where(negative, -magnitude, magnitude)[accepted]
        todo = todo[~accepted]
    return result


def discrete_laplace(
    epsilon: float, sensitivity: int, size: int, *, random_state: int | WordSource | None = None
) -> Integers:
    """Draw integers k with P(k) ∝ exp(−|k|·ε/Δ): the noise that makes an integer of sensitivity Δ ε-private.

    Parameters
    ----------
    epsilon
        Privacy level; the float stands for the binary fraction it is.
    sensitivity
        ℓ₁-sensitivity Δ in grid units.
    size
        How many draws.
    random_state
        ``None`` for the secure source; an integer for simulation.

    Returns
    -------
    ndarray
        int64, or Python integers (dtype object) where a draw exceeds 62 bits.

    Examples
    --------
    >>> discrete_laplace(1.0, 1, 4, random_state=1).dtype
    dtype('int64')
    >>> abs(int(discrete_laplace(1e-7, 2**41, 1, random_state=1)[0])) > 2**55  # wider than int64 can promise
    True
    """
    source = resolve_source(random_state)
    return laplace_draws(digit_table((rate_of(epsilon, sensitivity),)), None, size, source)


def geometric(epsilon: float, sensitivity: int, size: int, *, random_state: int | WordSource | None = None) -> Integers:
    """Draw integers k ≥ 0 with P(k ≥ j) = exp(−j·ε/Δ): exponential noise, exactly, on the integers.

    Takes and returns what :func:`discrete_laplace` does.

    Examples
    --------
    >>> bool((geometric(0.5, 1, 100, random_state=1) >= 0).all())
    True
    """
    source = resolve_source(random_state)
    return _geometric(digit_table((rate_of(epsilon, sensitivity),)), None, size, source)
