"""Noise that follows the shape of a row: density ∝ exp(−Σ_j w_j‖b_j‖) over blocks. Analysed over the reals.

*Released*: nothing by itself; it perturbs an objective (`expost.mechanisms.objective`). In a box the noise is a point
of the cube [−1, 1]^d, uniform, times Gamma(d + 1): its density at a point with ‖b‖_∞ = r is the integral of
(2g)^{−d}·g^d e^{−g}/d! over g ≥ r, which is e^{−r}/(2^d d!). In an ℓ₁ ball it is d independent Laplace variables, in a
Euclidean one spherical noise. In floating point none of them is exactly of its density, and a release made with them
says "over the reals".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expost.noise.source import WordSource
from expost.noise.spherical import spherical_noise, uniforms


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
