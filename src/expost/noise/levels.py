"""Grids of privacy levels, all public: they depend on n, p, the target and the budget, never on a row."""

from __future__ import annotations

import math

from expost.noise.path import check_levels


def geometric_levels(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return ``count`` levels from ``first`` to ``last``, each the same factor above the one before.

    Examples
    --------
    >>> geometric_levels(0.25, 4.0, 3)
    (0.25, 1.0, 4.0)
    """
    if count < 1:
        raise ValueError(f"n_levels must be at least 1, got {count}")
    if not 0 < first <= last < math.inf:
        raise ValueError(f"levels need 0 < first <= last < inf, got {first} and {last}")
    if count == 1 or first == last:
        return (float(last),)
    step = math.log(last / first) / (count - 1)
    inner = [first * math.exp(step * t) for t in range(1, count - 1)]
    return check_levels([first, *inner, last])


def doubling_rounds(first: float, last: float, factor: float = 2.0) -> int:
    """Return how many rounds reach ``last`` from ``first``: T = ⌈log_factor(last/first)⌉ (theory A6).

    Examples
    --------
    >>> doubling_rounds(1e-5, 70.8)
    23
    """
    if not factor > 1:
        raise ValueError(f"factor must exceed 1, got {factor}")
    if not 0 < first < math.inf or not 0 < last < math.inf:
        raise ValueError("first and last must be positive and finite")
    # log(2²⁹)/log 2 comes out as 29.000000000000004, which is 29 rounds and not 30
    return max(1, math.ceil(math.log(last / first) / math.log(factor) - 1e-12))
