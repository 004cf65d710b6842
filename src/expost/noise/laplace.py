"""Geometric and discrete Laplace variables, exact and vectorised (theory B2), and a gradual release with them.

The distribution of each draw is exactly P(G ≥ k) = e^(−k·ε/Δ), or P(k) ∝ e^(−|k|·ε/Δ), with ε the binary
fraction a float is and Δ an integer: no float enters the sampling, and the support is unbounded, as pure
privacy needs.

*Lemma (digits).* Let G be geometric, P(G ≥ k) = e^(−kr). Its binary digits are independent, and digit k is one with
probability 1/(1 + e^(2^k·r)). *Proof.* With q = e^(−r), P(G = g) = (1 − q)·q^g = (1 − q)·∏ q^(2^k·g_k), a product over
the digits g_k of g; and ∏ (1 + q^(2^k)) = 1/(1 − q) makes each factor q^(2^k·g_k)/(1 + q^(2^k)) a probability. ∎

So digits below K are drawn as coins, all at once. What lies above them, ⌊G/2^K⌋, is independent of them and geometric
of rate 2^K·r, hence drawn by repeated coins. The discrete Laplace is a sign and a geometric with (−, 0) drawn again:
every k ≠ 0 keeps one way to come up, and so does 0, so P(k) ∝ e^(−r|k|). Coins are exact (`expost.noise.source`).

Width: the array is int64 when all draws of the call fit in 62 bits, and holds Python integers otherwise.
Below a scale of about 2⁵⁷ that takes a draw 32 scales out, far beyond it nearly every draw. Nothing wraps.

**Gradual release**: one private vector, revealed with less and less noise, paying only for the last step.

*Released*: the values of an integer vector v plus discrete Laplace noise at levels ε₁ < … < ε_t, for whatever
t the search stops at. *Neighbours*: v and v' with ‖v − v'‖₁ ≤ Δ. *Guarantee* (theory A2 with B1): at every
level the coordinates are v + DLap(ε_t/Δ), independent, and every prefix up to t is a randomised function of
the value at t alone; revealing the prefix is therefore exactly ε_t-private.

*Lemma.* For rates a < b, DLap(a) is DLap(b) plus an independent J, which is 0 with probability
w = (sinh(a/2)/sinh(b/2))² and DLap(a) otherwise. *Proof.* DLap(r) has the characteristic function
ϕ_r(s) = (cosh r − 1)/(cosh r − cos s), and w = (cosh a − 1)/(cosh b − 1), because cosh r − 1 = 2 sinh²(r/2). So J has
w + (1 − w)·ϕ_a(s) = w·(cosh b − cos s)/(cosh a − cos s) = ϕ_a(s)/ϕ_b(s), which times ϕ_b(s) is ϕ_a(s). ∎

*Proof of the guarantee.* Noise is drawn at the last level, and each level before it is made of the one after it by
adding J's. So the values at levels 1 … t−1 are a randomised function of the value at t that does not look at v. That
value is ε_t-private: its probability changes by a factor of at most e^(ε_t‖v−v'‖₁/Δ) ≤ e^(ε_t). ∎ Each coordinate needs
a coin of its own: with one coin for all, the marginal at a level would not be a product and the guarantee would fail.

A coordinate jumps about 2·ln(ε_T/ε₁) times however many levels there are, so jumps are stored, not levels.

*A path that is kept* lets a later request go on where an earlier one stopped (theory B11). *Released*: its values at
levels ε₁ < … < ε_t, in several instalments; how far each goes may depend on everything revealed before. *Theorem*:
after any number of instalments the loss is ε_s, s the largest level revealed, not the sum. *Proof.* The path is a
Markov chain that runs from its last level to its first: each level is made of the next by adding noise that does not
look at the private vector (the lemma above; `expost.noise.spherical`). So, given the value at s, all levels
before it have a law that is the same for neighbours. The levels revealed in the instalments, the requests chosen in
between (functions of what was revealed, of public numbers and of independent randomness) and the decision to stop at s
are a function of the levels up to s and of randomness beside them. By the lemma on prefixes the probability of all of
it changes by a factor of at most e^(ε_s). ∎ It is essential that the *same* path goes on. Fresh noise at s, beside what
was revealed at t, would cost ε_t + ε_s: the two are independent looks.

What is kept are the values at the levels not yet revealed and at the last one that was, never the private vector. So
whoever gets hold of it has what the path's last level costs, and no more.

The text of a kept path has a length that follows from public numbers, because how many jumps a path has, or how large
its noise is, are private until they are paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.noise.source import (
    WORD,
    WordSource,
    below,
    digit_bits,
    digit_words,
    exactly,
    exponential_bits,
    flip,
    keep_bits,
    resolve_source,
)
from expost.numeric import FloatArray, Private
from expost.validation import source_claims

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


_COINS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class LevelValue:
    """What one level of a path reveals: integers from a `NoisePath`, floats from a `SphericalPath`."""

    index: int
    epsilon: float
    values: Integers | FloatArray


class Path(Private):
    """What paths have in common, whatever their noise: they hold private values and noise not yet paid for."""

    levels: tuple[float, ...]
    size: int  # number of coordinates

    def __len__(self) -> int:
        return len(self.levels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, levels={len(self.levels)})"


class NoisePath(Path):
    """The gradual release of an integer vector at an increasing list of privacy levels.

    Parameters
    ----------
    values
        The private integer vector (int64 or Python integers).
    sensitivity
        Its ℓ₁-sensitivity Δ, an integer in the same units.
    levels
        Strictly increasing privacy levels.
    random_state
        ``None`` for the secure source; an integer or a source for simulation.

    Notes
    -----
    The object holds the private vector and all of the noise; only what iteration has yielded is paid for.
    A level's values are int64 if they all fit in 62 bits and Python integers otherwise, which depends on
    nothing but those values: a width for the whole path would tell of levels not yet paid for.

    Examples
    --------
    >>> import numpy as np
    >>> path = NoisePath(np.array([1000, 2000]), 1, [0.01, 0.1, 1.0], random_state=3)
    >>> [step.epsilon for step in path]
    [0.01, 0.1, 1.0]
    """

    noise = "exact"

    def __init__(
        self,
        values: Integers,
        sensitivity: int,
        levels: Sequence[float],
        *,
        random_state: int | WordSource | None = None,
    ) -> None:
        self.levels = check_levels(levels)
        rate_of(self.levels[0], sensitivity)  # refuses a sensitivity that is not a positive integer
        self.sensitivity = int(sensitivity)
        grid = _grid(self.levels, self.sensitivity)
        values = _check_values(values)
        self.size = size = values.size
        source = resolve_source(random_state)
        self.secure, self.claims = source.secure, source_claims(source)

        at, where = _draw_jumps(grid, size, source)
        rows = np.concatenate([np.full(size, len(self.levels) - 1, dtype=np.intp), at])
        draws = laplace_draws(grid.table, rows, rows.size, source)
        last, jumps = draws[:size], draws[size:]

        if not _fits(values, last, where, jumps):
            values, last, jumps = (a.astype(object) for a in (values, last, jumps))
        else:
            values = values.astype(np.int64)
        first = values + last
        np.add.at(first, where, jumps)
        # how many jumps there are is private as well: given their number, the noise is no longer Laplace
        self._first, self._where, self._jumps = first, where, jumps
        # jumps[start[t]:start[t+1]] are those between level t+1 and level t
        self._start = np.searchsorted(at, np.arange(len(self.levels) + 1))

    def __iter__(self) -> Iterator[LevelValue]:
        """Yield the value at every level, the most private first."""
        current = self._first.copy()
        wide = current.dtype == object or self._jumps.dtype == object  # else every level was seen to fit
        for t, epsilon in enumerate(self.levels):
            if wide:  # noise shrinks from level to level: Python integers are soon not needed
                current = narrowed(current)
            yield LevelValue(t, epsilon, current.copy())
            step = slice(self._start[t], self._start[t + 1])
            jumps = narrowed(self._jumps[step]) if wide else self._jumps[step]
            if current.dtype != jumps.dtype:
                current, jumps = current.astype(object), jumps.astype(object)
            # no coordinate twice between the same two levels; two numbers of 62 bits differ by less than 63
            current[self._where[step]] -= jumps


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return the levels as floats, checking that they are positive, finite and strictly increasing."""
    checked = tuple(float(level) for level in levels)
    if not checked:
        raise ValueError("levels must contain at least one privacy level")
    if not all(0 < level < float("inf") for level in checked):
        raise ValueError("privacy levels must be positive and finite")
    if any(b <= a for a, b in pairwise(checked)):
        raise ValueError("privacy levels must be strictly increasing (the most private first)")
    return checked


def _check_values(values: Integers) -> Integers:
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"values must be one-dimensional, got shape {values.shape}")
    if values.dtype == object:  # may hold NumPy integers, which would wrap, or floats, which would round
        try:
            return np.array([index(value) for value in values], dtype=object)
        except TypeError:
            pass
    elif values.dtype.kind in "iu":
        return values
    raise ValueError("values must be integers in grid units; round them to a public grid first")


class _Grid:
    """Exact rates of a list of levels, first words of their coins, and their digit table."""

    def __init__(self, levels: tuple[float, ...], sensitivity: int) -> None:
        self.rates = tuple(rate_of(level, sensitivity) for level in levels)
        self.keep = np.array([keep_bits(a, b, 64) >> (64 - WORD) for a, b in pairwise(self.rates)], dtype=np.uint16)
        self.table = digit_table(self.rates)


# The same levels come back run after run, and their fractions are slow to hash: floats are the key.
_grid = lru_cache(maxsize=64)(_Grid)


def _draw_jumps(grid: _Grid, size: int, source: WordSource) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Flip every coordinate's coin between every two levels; return where it says jump, sorted by level."""
    rates, first = grid.rates, grid.keep
    steps = len(rates) - 1
    at: list[NDArray[np.intp]] = []
    where: list[NDArray[np.intp]] = []
    block = max(1, _COINS_AT_ONCE // max(1, size))
    for start in range(0, steps, block):
        stop = min(steps, start + block)
        uniform = source.words((stop - start) * size).reshape(stop - start, size)

        def bits_of(tie: tuple[int, ...], start: int = start) -> Callable[[int], int]:
            a, b = rates[start + tie[0]], rates[start + tie[0] + 1]
            return lambda count: keep_bits(a, b, count)

        keep = below(uniform, np.broadcast_to(first[start:stop, None], uniform.shape), bits_of, source)
        level, coordinate = np.divmod(np.flatnonzero(~keep), size)  # many times faster than nonzero in two dimensions
        at.append(level + start)
        where.append(coordinate)
    if not at:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    return np.concatenate(at), np.concatenate(where)


def _fits(values: Integers, last: Integers, where: NDArray[np.intp], jumps: Integers) -> bool:
    """Whether every partial sum along the path stays within 62 bits (floats do: the margin is twofold)."""
    if any(a.dtype == object for a in (values, last, jumps)):
        return False
    reach = np.abs(values.astype(np.float64)) + np.abs(last.astype(np.float64))
    np.add.at(reach, where, np.abs(jumps.astype(np.float64)))
    return bool(reach.max(initial=0.0) < 2.0**62)


_BYTES = 16  # of an integer: sums are below 2⁸⁰ and noise has 47 bits more
_LARGEST_KEPT = (1 << (8 * _BYTES - 1)) - 1

Values = Integers | FloatArray


@dataclass(frozen=True, repr=False)
class KeptLevels(Private):
    """Values at the levels of a path from one on; private.

    Attributes
    ----------
    first
        Index of the first level that is kept.
    values
        Integers, or floats from a spherical path, level by level.
    """

    first: int
    values: tuple[Values, ...]

    @classmethod
    def of(cls, steps: Iterable[LevelValue], first: int = 0) -> KeptLevels:
        """Keep the levels of a path."""
        return cls(first, tuple(step.values for step in steps if step.index >= first))

    def after(self, first: int) -> KeptLevels:
        """Keep only what a search that has revealed everything before ``first`` needs."""
        return KeptLevels(first, self.values[first - self.first :])

    def __getitem__(self, level: int) -> Values:
        if not self.first <= level < self.first + len(self.values):
            raise IndexError(f"level {level} is not kept")
        return self.values[level - self.first]

    def __repr__(self) -> str:
        return f"KeptLevels(levels {self.first} to {self.first + len(self.values) - 1})"

    @property
    def kind(self) -> str:
        """``"integers"`` or ``"floats"``."""
        return "floats" if self.values[0].dtype.kind == "f" else "integers"

    def to_bytes(self) -> bytes:
        """Return all values in a text whose length is public."""
        if self.kind == "floats":
            return b"".join(np.asarray(values, dtype="<f8").tobytes() for values in self.values)
        # a value beyond the width is moved to its end: next to impossible, and no reason to raise, which would tell
        return b"".join(
            max(-_LARGEST_KEPT, min(_LARGEST_KEPT, int(value))).to_bytes(_BYTES, "little", signed=True)
            for values in self.values
            for value in values.tolist()
        )

    @classmethod
    def from_bytes(cls, text: bytes, first: int, size: int, kind: str) -> KeptLevels:
        """Read what :meth:`to_bytes` returned, for paths of ``size`` coordinates."""
        each = size * (8 if kind == "floats" else _BYTES)
        if not text or len(text) % each:
            raise ValueError("not the values of such a path")
        parts = [text[i : i + each] for i in range(0, len(text), each)]
        if kind == "floats":
            return cls(first, tuple(np.frombuffer(part, dtype="<f8").astype(np.float64) for part in parts))
        return cls(first, tuple(_integers(part) for part in parts))


def _integers(part: bytes) -> Integers:
    whole = [int.from_bytes(part[i : i + _BYTES], "little", signed=True) for i in range(0, len(part), _BYTES)]
    return narrowed(np.array(whole, dtype=object))
