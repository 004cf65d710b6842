"""Which privacy levels a search goes through, within its budget; public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from expost.account.composition import add_losses
from expost.exceptions import TargetUnreachable
from expost.noise.path import check_levels
from expost.shown import down, up

_DEFAULT_COUNT = {"theorem": 1000, "published": 1000, "tight": 32}


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
    levels = (float(first), *inner, float(last))
    if any(lower >= upper for lower, upper in pairwise(levels)):
        raise ValueError(f"{count} levels between {first} and {last} are more than floating point can tell apart")
    return levels


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


def level_count(calibration: str, levels: Sequence[float] | None, n_levels: int | None) -> int:
    """Return how many levels are searched: those given, as many as asked for, or the default."""
    if levels is not None:
        if n_levels is not None:
            raise ValueError("pass levels or n_levels, not both")
        return len(check_levels(levels))
    return _DEFAULT_COUNT[calibration] if n_levels is None else n_levels


def left_after(n: int, epsilon_test: float, max_epsilon: float | None, remedy: str) -> float:
    """Return what a test leaves of the budget, or say that not even the test fits it."""
    if max_epsilon is None:
        return math.inf
    if epsilon_test >= max_epsilon:
        rows = math.ceil(n * epsilon_test / max_epsilon * 1.1)
        raise TargetUnreachable(
            f"testing alone would cost epsilon = {up(epsilon_test)} at n = {n}, more than max_epsilon = "
            f"{down(max_epsilon)}, whatever the data. Pass {remedy}, or about {rows:,} rows. Nothing was spent."
        )
    return max_epsilon - epsilon_test


def levels_within(
    budget: float,
    levels: Sequence[float] | None,
    first: float,
    last: float,
    n_levels: int,
    epsilon_test: float,
    max_epsilon: float | None,
) -> tuple[float, ...]:
    """Return the stated levels, or geometric ones, as far as they fit the budget beside the test."""
    if levels is None:
        last = min(last, budget)
        chosen = geometric_levels(min(first, last / 4), last, n_levels)
    else:
        chosen = tuple(level for level in check_levels(levels) if level <= budget)
        if not chosen:
            raise TargetUnreachable(
                f"every level exceeds what max_epsilon = {down(max_epsilon or math.inf)} leaves after a test of "
                f"{up(epsilon_test)}. Nothing was spent."
            )
    while add_losses(chosen[-1], epsilon_test) > (max_epsilon or math.inf):  # the last bit of rounding
        chosen = (*chosen[:-1], math.nextafter(chosen[-1], 0))
    return chosen
