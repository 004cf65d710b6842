"""Continuous noise: spherical, normal, and of a density that follows the shape of a row. Analysed over the reals.

*Spherical noise* (theory B8) has density ∝ e^(−‖b‖₂). *Released*: v + b·Δ₂/ε. *Sensitivity*: ‖v − v′‖₂ ≤ Δ₂.
*Theorem*: the density ratio is at most e^{ε‖v−v′‖₂/Δ₂}. The norm is Gamma(p), the direction uniform. Its gradual
release is in `expost.noise.spherical_path`.

*Noise in blocks* has density ∝ exp(−Σ_j w_j‖b_j‖) and perturbs an objective (`expost.mechanisms.objective.mechanism`).
In a box it is a point of the cube [−1, 1]^d, uniform, times Gamma(d + 1): its density at a point with ‖b‖_∞ = r is the
integral of (2g)^{−d}·g^d e^{−g}/d! over g ≥ r, which is e^{−r}/(2^d d!). In an ℓ₁ ball it is d independent Laplace
variables, in a Euclidean one spherical noise. *Normal variables* do so at a δ (`expost.mechanisms.objective.gaussian`).

In floating point none of these is exactly of its density (numbers of 52 bits are put through the inverse of a
distribution function) and no exact form is known to us, so a release made with them says "over the reals", and they are
never the default. For noise on integers there are exact draws (`expost.noise.laplace`, `expost.noise.gaussian`).

*Theorem (Cantelli: how long noise in blocks is).* P(‖b‖² > m + s√(1/δ − 1)) ≤ δ, m and s² the mean and variance of
‖b‖² = Σ_j ‖b_j‖²/w_j². Blocks are independent, so both are sums. Of noise of density ∝ e^{−‖b‖} on d columns, ‖b‖₂² has
the moments (box: G²‖U‖², G ~ Gamma(d + 1), U uniform in the cube; ℓ₁: d squares of Laplace variables; Euclidean:
Gamma(d)²)

| | E‖b‖₂² | E‖b‖₂⁴ |
|---|---|---|
| box | (d+1)(d+2)·d/3 | (d+1)(d+2)(d+3)(d+4)·(d/5 + d(d−1)/9) |
| ℓ₁ | 2d | 24d + 4d(d−1) |
| Euclidean | d(d+1) | d(d+1)(d+2)(d+3) |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from expost.noise.source import WordSource


def uniforms(count: int, source: WordSource) -> NDArray[np.float64]:
    """Return numbers in (0, 1), of 52 bits each; never 0 or 1 (with 53 the largest would round to 1)."""
    words = source.words(4 * count).view(np.uint64)
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def spherical_noise(p: int, source: WordSource) -> NDArray[np.float64]:
    """Draw one vector of density ∝ e^(−‖b‖₂) in p dimensions.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> spherical_noise(3, SeededSource(0)).shape
    (3,)
    """
    direction = special.ndtri(uniforms(p, source))
    norm = -np.log(uniforms(p, source)).sum()  # Gamma(p): a sum of p exponentials
    return np.asarray(direction * (norm / np.linalg.norm(direction)))


#: No draw is larger: the smallest uniform is 2⁻⁵³, whose quantile is −8.21.
LARGEST = 8.3


def normals(count: int, source: WordSource) -> NDArray[np.float64]:
    """Draw standard normal variables.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> draws = normals(10_000, SeededSource(0))
    >>> bool(abs(draws.mean()) < 0.05), bool(0.95 < draws.std() < 1.05)
    (True, True)
    """
    return np.asarray(special.ndtri(uniforms(count, source)))


def block_noise(blocks: Sequence[tuple[int, str]], weights: Sequence[float], source: WordSource) -> NDArray[np.float64]:
    """Draw one vector.

    Parameters
    ----------
    blocks
        (number of columns, norm) of each block; norms are ``"box"``, ``"l1"`` and ``"l2"``.
    weights
        w_j, how fast the density falls in block j.
    source
        Where random words come from.

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> block_noise([(2, "box"), (3, "l1")], [1.0, 10.0], SeededSource(0)).shape
    (5,)
    """
    parts = [_DRAW[norm](size, source) / weight for (size, norm), weight in zip(blocks, weights, strict=True)]
    return np.concatenate(parts)


def _box(size: int, source: WordSource) -> NDArray[np.float64]:
    reach = -np.log(uniforms(size + 1, source)).sum()  # Gamma(d + 1)
    return np.asarray(reach * (2.0 * uniforms(size, source) - 1.0))


def _laplace(size: int, source: WordSource) -> NDArray[np.float64]:
    first, second = np.log(uniforms(size, source)), np.log(uniforms(size, source))
    return np.asarray(first - second)


_DRAW = {"box": _box, "l1": _laplace, "l2": spherical_noise}


_UP = 1.0 + 1e-12


def block_norm(blocks: Sequence[tuple[int, str]], weights: Sequence[float], failure_probability: float) -> float:
    """Return what ‖b‖₂ exceeds with at most that probability.

    Examples
    --------
    >>> round(block_norm([(27, "l2")], [1.0], 0.05) / 27, 2)
    1.67
    """
    mean, variance = 0.0, 0.0
    for (size, norm), weight in zip(blocks, weights, strict=True):
        square, fourth = _moments(size, norm)
        mean += square / weight**2
        variance += (fourth - square**2) / weight**4
    return math.sqrt(mean + math.sqrt(variance * (1.0 / failure_probability - 1.0))) * _UP


def _moments(d: int, norm: str) -> tuple[float, float]:
    if norm == "box":
        rising = (d + 1.0) * (d + 2)
        return rising * d / 3, rising * (d + 3) * (d + 4) * (d / 5 + d * (d - 1) / 9)
    if norm == "l1":
        return 2.0 * d, 24.0 * d + 4.0 * d * (d - 1)
    return d * (d + 1.0), d * (d + 1.0) * (d + 2) * (d + 3)


_LARGEST_LOG = 37.0  # −ln 2⁻⁵³ is 36.7


def largest_noise(blocks: Sequence[tuple[int, str]], weights: Sequence[float]) -> float:
    """Return a bound on ‖b‖₂ that no draw exceeds: uniforms of 52 bits have logarithms of at most 37.

    Examples
    --------
    >>> largest_noise([(1, "l1")], [1.0])
    37.0
    """
    squares = []
    for (size, norm), weight in zip(blocks, weights, strict=True):
        reach = {"box": (size + 1) * math.sqrt(size), "l1": math.sqrt(size), "l2": float(size)}[norm]
        squares.append((_LARGEST_LOG * reach / weight) ** 2)
    return math.sqrt(math.fsum(squares))
