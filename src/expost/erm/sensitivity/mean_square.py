"""How far a mean squared error can move.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.
"""

from __future__ import annotations

from expost.erm._rounding import round_up
from expost.erm.sensitivity._check import check


def mean_square_sensitivity(largest_coordinate: float, n: int) -> float:
    """Return (1 + m)²/n, the sensitivity of mean (y − xᵀθ)² for a fixed θ with ‖θ‖_∞ ≤ m.

    Proof. ‖x‖₁ ≤ 1 and |y| ≤ 1 put a row's term between 0 and (1 + m)², and both are attained: x = ±e_j. ∎

    Examples
    --------
    >>> round(mean_square_sensitivity(1.0, 100), 12)
    0.04
    """
    check(n=n, radius=largest_coordinate)
    return round_up((1.0 + largest_coordinate) ** 2 / n)
