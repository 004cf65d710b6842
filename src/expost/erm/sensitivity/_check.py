"""Arguments for which a formula would return a number that means nothing."""

from __future__ import annotations

import math


def check(*, n: int | None = None, radius: float | None = None, lam: float | None = None, p: int | None = None) -> None:
    """Reject arguments for which a formula would return a number that means nothing."""
    if n is not None and n < 1:
        raise ValueError("n must be at least 1")
    if p is not None and p < 1:
        raise ValueError("the number of coordinates must be at least 1")
    if radius is not None and not radius >= 0.0:
        raise ValueError("radius must be non-negative")
    if lam is not None and not 0.0 < lam < math.inf:
        raise ValueError("lam must be positive and finite")
