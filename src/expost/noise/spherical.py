"""Spherical noise (theory B8): density ∝ e^(−‖b‖₂), private for ℓ₂ sensitivity. Analysed over the reals.

*Released*: v + b·Δ₂/ε. *Sensitivity*: ‖v − v′‖₂ ≤ Δ₂. *Theorem*: the density ratio is at most e^{ε‖v−v′‖₂/Δ₂}. The
norm is Gamma(p), the direction uniform. In floating point the samples are not exactly of that density and no exact
form is known to us, so a release made with it says "over the reals", and it is never the default. Its gradual release
is in `expost.noise.spherical_path`.
"""

from __future__ import annotations

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
