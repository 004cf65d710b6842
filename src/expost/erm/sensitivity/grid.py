"""What rounding a statistic to a grid adds to its sensitivity.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.
"""

from __future__ import annotations

import math
from fractions import Fraction

from expost.erm.sensitivity._check import check


def grid_sensitivity(delta: float | Fraction, grid: float | Fraction, coordinates: int) -> int:
    """Return ⌊Δ/g⌋ + coordinates, the ℓ₁-sensitivity in grid steps of a vector rounded to multiples of g.

    Proof. Rounding to the nearest multiple moves a coordinate by half a step at most, so two rounded
    vectors differ by at most Δ/g + coordinates steps in ℓ₁; their difference is an integer, so the floor of
    that bound holds too. The same holds for rounding down or towards zero, which never widens a difference
    by a whole step. ∎

    Computed in exact rational arithmetic: a float is the rational number it stands for.

    Examples
    --------
    >>> grid_sensitivity(1.0, 2**-20, 3) == 2**20 + 3
    True
    """
    check(p=coordinates)
    exact_delta, exact_grid = Fraction(delta), Fraction(grid)
    if exact_delta < 0 or exact_grid <= 0:
        raise ValueError("delta must be non-negative and grid positive")
    return math.floor(exact_delta / exact_grid) + coordinates
