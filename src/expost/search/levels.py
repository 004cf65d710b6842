"""Which privacy levels a search goes through, within its budget; public."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expost.exceptions import TargetUnreachable
from expost.noise.levels import geometric_levels
from expost.noise.path import check_levels
from expost.privacy.composition import add_losses

_DEFAULT_COUNT = {"theorem": 1000, "published": 1000, "tight": 32}


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
            f"testing alone would cost epsilon = {epsilon_test:.4g} at n = {n}, more than max_epsilon = "
            f"{max_epsilon:.4g}, whatever the data. Pass {remedy}, or about {rows:,} rows. Nothing was spent."
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
                f"every level exceeds what max_epsilon = {max_epsilon:.4g} leaves after a test of "
                f"{epsilon_test:.4g}. Nothing was spent."
            )
    while add_losses(chosen[-1], epsilon_test) > (max_epsilon or math.inf):  # the last bit of rounding
        chosen = (*chosen[:-1], math.nextafter(chosen[-1], 0))
    return chosen
