"""Discrete Gaussian variables, exact and vectorised (Canonne, Kamath, Steinke 2020).

The distribution of each draw is exactly P(k) = e^(−k²/(2σ²))/Z on all the integers, σ being the binary fraction a float
is, or a rational: floats only settle comparisons that they are certain of.

*Sampling.* Draw Y discrete Laplace of scale t = ⌊σ⌋ + 1, keep it with probability e^(−(|Y| − σ²/t)²/(2σ²)), else draw
again. *Proof.* |Y|/t + (|Y| − σ²/t)²/(2σ²) = Y²/(2σ²) + σ²/(2t²), so what is kept has P(k) ∝ e^(−k²/(2σ²)). About three
of four are kept, √(π/(2e)) for large σ. ∎

*Coins of many biases.* The bias p = e^(−x) differs from draw to draw. The first 48 digits of a uniform U settle U < p
wherever float64 is certain of it; where it is not, p is computed exactly and compared digit by digit. So the
probability of heads is p itself. *How certain*: with c = σ²/t and M = (|Y| + c)²/σ², rounding |Y|, c, their difference
and its square leaves x within M·2⁻⁵⁰; if M ≤ 2⁴⁹ that moves e^(−x) by at most e^(−x)·M·2⁻⁴⁹, and it is taken as certain
to within 2⁻³⁷ if e^(−x)·M ≤ 2¹¹.

*Privacy.* For integers μ, ν and r > 1 the Rényi divergence of order r between μ + X and ν + X is at most
r(μ − ν)²/(2σ²), as for the continuous Gaussian. *Proof.* −r(x − μ)² + (r − 1)(x − ν)² = −(x − c)² + r(r − 1)(μ − ν)²
with c = rμ − (r − 1)ν, and Σ_x e^(−(x−c)²/(2σ²)) ≤ Z for every c: Poisson's formula makes it Σ_j ĝ(j)e^(2πijc) with
ĝ > 0, largest at c = 0. ∎ Coordinates are independent, so their divergences add.

*How far X gets*: public numbers. Let X be discrete Gaussian of deviation σ, N normal of the same, g(x) = e^(−x²/(2σ²)),
G(a) its integral from a on, Z the sum of g over the integers. Then 2G(0) ≤ Z ≤ 2G(0) + 1: the first by Poisson's
formula, which makes Z that integral plus positive terms, the second as g falls on either side of zero.

*Lemma.* For an integer m ≥ 1, P(X ≥ m) ≤ P(N ≥ m − 1). *Proof.* The numerator Σ_{k≥m} g(k) is at most G(m − 1). ∎

*Dominance.* N − 2 ≼ X ≼ N + 2 in stochastic order; so averages of independent X with weights that add up to one lie
between the same averages of N, less or plus 2. *Proof.* By symmetry it is enough that P(X ≥ m) ≤ P(N ≥ m − 2) for every
integer m. For m ≥ 1 the lemma says more. For m = 1 − k, k ≥ 1, it says P(X ≥ k) ≥ P(N ≥ k + 1). Now Σ_{j≥k} g(j) is at
least G(k) ≥ G(k + 1) + g(k + 1), and G(k + 1) ≤ g(k + 1)·G(0), as G/g falls and g(0) = 1. So G(k)·2G(0) is at least
G(k + 1)·(2G(0) + 2), and P(X ≥ k) ≥ G(k)/(2G(0) + 1) ≥ G(k + 1)/(2G(0)). ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from expost.noise.laplace import Integers, digit_table, laplace_draws
from expost.noise.source import WORD, WordSource, exactly, exponential_bits, flip, resolve_source

_WORDS = 3  # words of a coin that are compared in floating point
_DIGITS = _WORDS * WORD
_DOUBT = 2.0**-36  # twice what the docstring proves, and 2⁻⁴⁸ for the digits of U not yet drawn
_LARGEST = 2.0**400  # of σ: squares stay within the floats
_BATCH = 1 << 14  # draws handled at once, so that they stay in cache


def discrete_gaussian(sigma: float | Fraction, size: int, *, random_state: int | WordSource | None = None) -> Integers:
    """Draw integers k with P(k) ∝ exp(−k²/(2σ²)): Gaussian noise, exactly, on the integers.

    Parameters
    ----------
    sigma
        σ in grid units; a float stands for the binary fraction it is. Added to integers that one row moves by Δ in the
        Euclidean norm, the noise costs rΔ²/(2σ²) at every Rényi order r.
    size
        How many draws.
    random_state
        ``None`` for the secure source; an integer for simulation.

    Returns
    -------
    ndarray
        int64, or Python integers (dtype object) where a draw exceeds 62 bits.
    """
    if not 0 < sigma <= _LARGEST:
        raise ValueError(f"sigma must be positive and at most 2^400 (in grid units), got {sigma}")
    exact, source = exactly(sigma), resolve_source(random_state)
    batches = [_batch(exact, min(_BATCH, size - start), source) for start in range(0, size, _BATCH)]
    return np.concatenate(batches) if batches else np.zeros(0, dtype=np.int64)


def _batch(sigma: Fraction, size: int, source: WordSource) -> Integers:
    table = digit_table((Fraction(1, int(sigma) + 1),))
    found: list[Integers] = []
    missing = size
    while missing:
        # about as many as will be enough: three of four are kept, fewer where σ is below 1
        proposed = laplace_draws(table, None, missing + missing // 3 + 4, source)
        kept = proposed[_accepted(proposed, sigma, source)][:missing]
        found.append(kept)
        missing -= kept.size
    return np.concatenate(found)


def _accepted(proposed: Integers, sigma: Fraction, source: WordSource) -> NDArray[np.bool_]:
    """Flip the coin of each proposal."""
    center, square = sigma * sigma / (int(sigma) + 1), sigma * sigma
    distance = np.abs(proposed.astype(np.float64))
    middle, deviation = float(center), float(sigma)
    bias = np.exp(-0.5 * ((distance - middle) / deviation) ** 2)
    size = ((distance + middle) / deviation) ** 2
    # 48 digits fit a float, and so does their quotient by a power of two
    words = source.words(_WORDS * proposed.size).reshape(_WORDS, proposed.size).astype(np.int64)
    digits = (words[0] << (2 * WORD)) | (words[1] << WORD) | words[2]
    uniform = digits * 2.0**-_DIGITS
    heads: NDArray[np.bool_] = uniform < bias
    certain = (size <= 2.0**49) & (bias * size <= 2.0**11) & (np.abs(uniform - bias) > _DOUBT)
    for i in np.flatnonzero(~certain):
        exponent = (abs(int(proposed[i])) - center) ** 2 / (2 * square)
        heads[i] = _settled(int(digits[i]), exponent, source)
    return heads


def _settled(digits: int, exponent: Fraction, source: WordSource) -> bool:
    """Whether U < e^(−exponent), given the first digits of U."""
    if exponent == 0:
        return True
    bits: Callable[[int], int] = lambda count: exponential_bits(exponent, count)  # noqa: E731
    first = bits(_DIGITS)
    if digits != first:
        return digits < first
    return flip(bits, source, tied=_WORDS)


_SLACK = 1.0 + 1e-12  # ndtri is good to a few units in the last place


def reach(sigma: float, probability: float) -> int:
    """Return an integer m ≥ 1 with P(X ≥ m) at most that probability.

    Examples
    --------
    >>> reach(100.0, 0.001)
    311
    >>> reach(100.0, 0.9)
    1
    """
    return 1 + math.ceil(sigma * deviations(probability))


def deviations(probability: float) -> float:
    """Return z ≥ 0 with Φ(−z) at most that probability, rounded up.

    Examples
    --------
    >>> round(deviations(0.025), 4)
    1.96
    """
    return max(0.0, -float(ndtri(probability)) * _SLACK)
