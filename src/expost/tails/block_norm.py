"""How long noise that follows a shape (`expost.noise.blocks`) is, but for a small probability; public.

*Theorem (Cantelli).* P(‖b‖² > m + s√(1/δ − 1)) ≤ δ, m and s² the mean and variance of ‖b‖² = Σ_j ‖b_j‖²/w_j². Blocks
are independent, so both are sums. Of noise of density ∝ e^{−‖b‖} on d columns, ‖b‖₂² has the moments
(box: G²‖U‖², G ~ Gamma(d + 1), U uniform in the cube; ℓ₁: d squares of Laplace variables; Euclidean: Gamma(d)²)

| | E‖b‖₂² | E‖b‖₂⁴ |
|---|---|---|
| box | (d+1)(d+2)·d/3 | (d+1)(d+2)(d+3)(d+4)·(d/5 + d(d−1)/9) |
| ℓ₁ | 2d | 24d + 4d(d−1) |
| Euclidean | d(d+1) | d(d+1)(d+2)(d+3) |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
