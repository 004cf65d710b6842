"""Noise that perturbs an objective: in blocks of a shape, or normal; drawn as exact integers, up to a public remainder.

How noise is drawn, and how long it gets. Its scale, which rows' shapes settle, is said in `expost.table.shape`.

*Noise in blocks* has density ∝ exp(−Σ_j w_j‖b_j‖) in the norm of each block: a box's (the largest entry), ℓ₁ or
Euclidean. *Normal noise* is N(0, σ_j²) in every coordinate of block j. No float is exactly of such a law. What is
needed is less (theory D5): that a *real* vector b is of the law, and that what is computed is close to it.

*Theorem (coupling).* On the probability space of the words that are drawn and of remainders that are not, there is a
vector b of exactly the stated law, and for every outcome, tails included, what is computed, b̃, has

    ‖b − b̃‖₂ ≤ ρ + η‖b̃‖₂,   ρ the ``remainder`` of :class:`BlockNoise` or :class:`NormalNoise`, η of :func:`rounding`.

Words are the digits of independent uniform numbers, and coins are exact (`expost.noise.source`). u = 2⁻⁵³.

*Lemma (exponential).* Let K be geometric, P(K ≥ k) = e^(−kg), and R in [0, g) of density ∝ e^(−r), *independent of
K*. Then gK + R is exponential. *Proof.* e^(−(gk + r)) = e^(−gk)·e^(−r): the density on [gk, gk + g) is a product. ∎
K is drawn (`expost.noise.laplace`), R is not. Signs, directions and uniforms below are drawn apart from K and R, so
all of them are independent.

*ℓ₁*: ±(gK + R) is Laplace, and ±gK is within g of it. Nothing is drawn again at ±0: R tells the two apart.

*Box*: a point U of the cube [−1, 1]^d, uniform, times G ~ Gamma(d + 1). The density at b, ‖b‖_∞ = r, is the integral of
(2x)^(−d)·x^d e^(−x)/d! over x ≥ r, e^(−r)/(2^d d!). G = g(K + ρ), K the sum of d + 1 geometric variables and 0 ≤ ρ <
d + 1. U is known to its first k digits, |U − Ũ| ≤ 2^(−k), and k is chosen, K known, with 2^k > K: further digits are
uniform whatever k is. So |GU − gKŨ| ≤ g(d + 1) + gK·2^(−k) < g(d + 2), and rounding down to a multiple of g makes it
less than g(d + 3) a coordinate.

*Euclidean*: a direction v times G ~ Gamma(d), G = g(K + ρ), 0 ≤ ρ < d. (d = 1 is Laplace.) The direction needs no
division, so nothing in it is large where a length is small:
- Of a uniform v in 2m dimensions, pairs of coordinates have squared lengths that are the m spacings of m − 1 uniform
  numbers in [0, 1], and independent uniform angles. *Proof.* For z normal, half the squared lengths of pairs are
  independent exponentials E_i, and E_i/ΣE are such spacings; v = z/‖z‖. ∎
- In 2m + 1 dimensions the first coordinate x has density ∝ (1 − x²)^(m−1), so (1 + x)/2 is Beta(m, m), the m-th of
  2m − 1 uniform numbers in order; what is left is √(1 − x²) times a uniform direction in 2m dimensions.
Uniform numbers are known to 112 digits. Order is kept by rounding down, so a spacing is off by 2⁻¹¹² at most, its root
by 2⁻⁵⁶; that of 1 − x² by 2⁻⁵⁵ and x by 2⁻¹¹¹. Angles have 64 digits. Roots and quotients of integers are rounded
within 2u. An angle is within 2π(3u + 2⁻⁶⁴), its cosine and sine are computed within 8u: the pair within 32u. So
‖v − ṽ‖ ≤ 60u + √d·2⁻⁵⁶, and ‖Gv − gKṽ‖ ≤ gd + gK‖v − ṽ‖, where gK is ‖b̃‖ up to rounding.

*Normal*: pairs (Box, Muller 1958) √(2E)·(cos A, sin A), A a uniform angle. E = f(K + ρ), 0 ≤ ρ < 1, and √(2E) − √(2fK)
≤ √(2f) even at K = 0, which is why f = 2⁻¹⁰⁴ is so small. Of a pair all but √(2f) is in relation to the pair's length.
So each block has an even number of deviates: of an odd one the last is drawn *beside* the noise and handed over behind
it, and ‖b̃‖ and ‖b‖ in the theorem are of both together. (`expost.mechanisms.objective.perturbation` says why it may be
looked at.)

*Sums.* Products and quotients by weights, deviations and n are rounded within u each. Parts of blocks add up by
Minkowski's inequality. ∎

What the remainders leave in doubt is charged by whoever draws; nothing is capped and nothing is drawn again.

*Theorem (Cantelli: how long noise in blocks is).* P(‖b‖² > m + s√(1/δ − 1)) ≤ δ, m and s² the mean and variance of
‖b‖² = Σ_j ‖b_j‖²/w_j². Blocks are independent, so both are sums. Of noise of density ∝ e^{−‖b‖} on d columns, ‖b‖₂² has
the moments (box: G²‖U‖², G ~ Gamma(d + 1), U uniform in the cube; ℓ₁: d squares of Laplace variables; Euclidean:
Gamma(d)²)

| | E‖b‖₂² | E‖b‖₂⁴ |
|---|---|---|
| box | (d+1)(d+2)·d/3 | (d+1)(d+2)(d+3)(d+4)·(d/5 + d(d−1)/9) |
| ℓ₁ | 2d | 24d + 4d(d−1) |
| Euclidean | d(d+1) | d(d+1)(d+2)(d+3) |

*Theorem (how far it scatters a function).* If f has slopes of at most 1 (‖∇f‖₂ ≤ 1 almost everywhere), then f of noise
in blocks has a variance of at most M + Q. M is the largest of C_j over the blocks that are no boxes, Q the sum of C_j
over the boxes. C_j·w_j² is 4 for an ℓ₁ ball; d(d+1)/(d−1) for a Euclidean one, 4 if d = 1; for a box it is
(d+1)·(4(d+2)/π² + d/3).
*Proof.* Blocks are independent, so Var f ≤ Σ_j E Var_j f, Var_j over block j alone. Where it is no box, Var_j f ≤
C_j·E‖∇_j f‖² is Poincaré's inequality: Laplace variables of scale 1 have the constant 4, and so has their product; a
spherical log-concave law has at most E‖b‖²/(d−1) (Bonnefont, Joulin, Ma 2016). These add up to at most M, as Σ_j‖∇_j
f‖² ≤ 1. In a box b = g·U. Given g, U is uniform on a cube of constant 4/π², which gives (4/π²)·E g²; the mean over U is
a function of g of slope at most E‖U‖₂ ≤ √(d/3), and Var g = d + 1. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import gammainccinv

from expost.noise.laplace import Integers, geometric
from expost.noise.source import WORD, WordSource
from expost.numeric import UNIT, FloatArray

_STEP = 2.0**-48  # g
_FINE = 2.0**-104  # f
_PLACES = 7  # words of a uniform number whose spacings are used
_TURN = 4  # words of an angle


def block_noise(blocks: Sequence[tuple[int, str]], weights: Sequence[float], source: WordSource) -> FloatArray:
    """Draw one vector b̃.

    Parameters
    ----------
    blocks
        (number of columns, norm) of each block; norms are ``"box"``, ``"l1"`` and ``"l2"``.
    weights
        w_j, how fast the density falls in block j.
    source
        Where random words come from.
    """
    counts = [size + 1 if norm == "box" else size for size, norm in blocks]
    drawn = _exponentials(counts, _STEP, source)
    parts = zip(blocks, weights, drawn, strict=True)
    return np.concatenate([_DRAW[norm](lengths, source) / weight for (_, norm), weight, lengths in parts])


def rounding(columns: int) -> float:
    """Return η; division by a number of rows is included."""
    return 80.0 * UNIT + math.sqrt(columns) * 2.0**-56


def _whole(count: int, words: int, source: WordSource) -> list[int]:
    """Draw integers of so many words."""
    drawn = source.words(count * words).reshape(count, words)
    return [int.from_bytes(row.tobytes(), "little") for row in drawn]


def _exponentials(counts: Sequence[int], step: float, source: WordSource) -> list[Integers]:
    """Draw exponentials for each block, rounded down to a multiple of the step; in steps."""
    drawn = geometric(1.0, round(1 / step), sum(counts), random_state=source)
    return np.split(drawn, np.cumsum(counts)[:-1])


def _laplace(drawn: Integers, source: WordSource) -> FloatArray:
    lengths = drawn.astype(np.float64) * _STEP
    signs = np.unpackbits(source.words((drawn.size + WORD - 1) // WORD).view(np.uint8), count=drawn.size)
    return np.where(signs, -lengths, lengths)


def _box(drawn: Integers, source: WordSource) -> FloatArray:
    reach = sum(drawn.tolist())
    words = max(1, -(-reach.bit_length() // WORD))  # as many digits as the radius asks for
    digits = words * WORD
    firsts = _whole(drawn.size - 1, words, source)
    return np.array([float((reach * (2 * first + 1 - (1 << digits))) >> digits) for first in firsts]) * _STEP


def _euclidean(drawn: Integers, source: WordSource) -> FloatArray:
    if drawn.size == 1:
        return _laplace(drawn, source)
    return _direction(drawn.size, source) * (float(sum(drawn.tolist())) * _STEP)


def _direction(size: int, source: WordSource) -> FloatArray:
    """Draw a uniform direction in two dimensions or more."""
    one, pairs = 1 << (_PLACES * WORD), size // 2
    first, left = [], 1.0
    if size % 2:
        middle = sorted(_whole(2 * pairs - 1, _PLACES, source))[pairs - 1]
        first, left = [(2 * middle - one) / one], math.sqrt(4 * middle * (one - middle) / one**2)
    cuts = [0, *sorted(_whole(pairs - 1, _PLACES, source)), one]
    lengths = np.array([math.sqrt((after - before) / one) for before, after in pairwise(cuts)])
    return np.concatenate([first, _pairs(left * lengths, source)])


def _normals(drawn: Integers, source: WordSource) -> FloatArray:
    """Return two standard normal variables for each exponential."""
    return _pairs(np.sqrt(drawn.astype(np.float64) * (2.0 * _FINE)), source)


def _pairs(lengths: FloatArray, source: WordSource) -> FloatArray:
    """Return a vector of that length in the plane for each, in a uniform direction."""
    angles = source.words(_TURN * lengths.size).view(np.uint64).astype(np.float64) * (2.0 * math.pi * 2.0**-64)
    return np.stack([np.cos(angles) * lengths, np.sin(angles) * lengths], axis=1).ravel()


_DRAW = {"box": _box, "l1": _laplace, "l2": _euclidean}

_UP = 1.0 + 1e-12
_RARE = 2.0**-64


def _long(d: int, norm: str) -> float:
    if norm == "box":
        return math.sqrt(d) * float(gammainccinv(d + 1, _RARE))
    length = float(gammainccinv(d, _RARE))  # of ‖b‖₁ as well
    return length if norm == "l2" else min(length, math.sqrt(d) * math.log(d / _RARE))


_ENTRY: dict[str, Callable[[int], float]] = {
    "box": lambda d: (d + 1) * (d + 2) / 3.0,
    "l1": lambda d: 2.0,
    "l2": lambda d: d + 1.0,
}


_POINCARE: dict[str, Callable[[int], float]] = {
    "box": lambda d: (d + 1) * (4.0 * (d + 2) / math.pi**2 + d / 3.0),
    "l1": lambda d: 4.0,
    "l2": lambda d: 4.0 if d == 1 else d * (d + 1.0) / (d - 1.0),
}


def _moments(d: int, norm: str) -> tuple[float, float]:
    if norm == "box":
        rising = (d + 1.0) * (d + 2)
        return rising * d / 3, rising * (d + 3) * (d + 4) * (d / 5 + d * (d - 1) / 9)
    if norm == "l1":
        return 2.0 * d, 24.0 * d + 4.0 * d * (d - 1)
    return d * (d + 1.0), d * (d + 1.0) * (d + 2) * (d + 3)


@dataclass(frozen=True)
class BlockNoise:
    """Noise in blocks, (number of columns, norm) each, whose density falls by w_j in block j: ``weights``.

    Examples
    --------
    >>> noise = BlockNoise([(9, "l1"), (1, "box")], [0.5, 1.0])
    >>> [round(deviation, 3) for deviation in noise.deviations], 44 < BlockNoise([(1, "l1")], [1.0]).longest < 45
    ([2.828, 1.414], True)
    """

    blocks: Sequence[tuple[int, str]]
    weights: Sequence[float]

    @property
    def _each(self) -> Iterator[tuple[int, str, float]]:
        return ((size, norm, weight) for (size, norm), weight in zip(self.blocks, self.weights, strict=True))

    def draw(self, source: WordSource) -> FloatArray:
        """Draw b̃."""
        return block_noise(self.blocks, self.weights, source)

    @property
    def remainder(self) -> float:
        """ρ."""
        steps = {"box": lambda d: (d + 3) * math.sqrt(d), "l1": math.sqrt, "l2": float}
        return _STEP * math.sqrt(math.fsum((steps[norm](size) / w) ** 2 for size, norm, w in self._each)) * _UP

    @property
    def longest(self) -> float:
        """What ‖b‖₂ exceeds with a probability of at most 2⁻⁶⁴ for each block."""
        return math.sqrt(math.fsum((_long(size, norm) / w) ** 2 for size, norm, w in self._each))

    @property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of each entry, block by block; entries of all blocks are uncorrelated.

        It is the mean square of the length of a block (the table above), divided among its entries, which are alike.
        """
        return tuple(math.sqrt(_ENTRY[norm](size)) / w for size, norm, w in self._each)

    @property
    def spread(self) -> float:
        """A bound on the standard deviation of a function of the noise, for slopes of at most 1."""
        found = [(norm == "box", _POINCARE[norm](size) / w**2) for size, norm, w in self._each]
        boxes = math.fsum(value for boxed, value in found if boxed)
        others = max((value for boxed, value in found if not boxed), default=0.0)
        return math.sqrt(boxes + others)

    def norm(self, failure_probability: float) -> float:
        """Return what ‖b‖₂ exceeds with at most that probability."""
        mean, variance = 0.0, 0.0
        for size, norm, weight in self._each:
            square, fourth = _moments(size, norm)
            mean += square / weight**2
            variance += (fourth - square**2) / weight**4
        return math.sqrt(mean + math.sqrt(variance * (1.0 / failure_probability - 1.0))) * _UP


@dataclass(frozen=True)
class NormalNoise:
    """Normal noise in blocks, (number of columns, σ) each."""

    blocks: Sequence[tuple[int, float]]

    def draw(self, source: WordSource) -> FloatArray:
        """Draw b̃; behind it what was drawn beside it."""
        drawn = _exponentials([(size + 1) // 2 for size, _ in self.blocks], _FINE, source)
        each = zip(self.blocks, drawn, strict=True)
        parts = [(_normals(energies, source) * sigma, size) for (size, sigma), energies in each]
        return np.concatenate([*(part[:size] for part, size in parts), *(part[size:] for part, size in parts)])

    @property
    def remainder(self) -> float:
        """ρ."""
        return math.sqrt(2.0 * _FINE * math.fsum((size + 1) // 2 * sigma**2 for size, sigma in self.blocks)) * _UP

    @property
    def longest(self) -> float:
        """What its length exceeds with a probability of at most 2⁻⁶⁴ for each block."""
        squares = (2.0 * float(gammainccinv(size / 2, _RARE)) * sigma**2 for size, sigma in self.blocks)
        return math.sqrt(math.fsum(squares))

    @property
    def deviations(self) -> tuple[float, ...]:
        """σ of each block."""
        return tuple(sigma for _, sigma in self.blocks)

    @property
    def spread(self) -> float:
        """A bound on the standard deviation of a function of the noise, for slopes of at most 1."""
        return max(self.deviations)
