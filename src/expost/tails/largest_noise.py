"""How long noise that follows a shape (`expost.noise.blocks`) can get at all; public."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
