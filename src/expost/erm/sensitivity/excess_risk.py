"""How far the excess risk of a fixed hypothesis can move.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.
"""

from __future__ import annotations

from expost.erm._rounding import round_up
from expost.erm.losses import Loss
from expost.erm.sensitivity._check import check


def excess_risk_sensitivity(loss: Loss, radius: float, n: int, *, value_error: float = 0.0) -> float:
    """Return 2·spread(R)/n (+ 2·value_error), the sensitivity of L(θ) − min L for a fixed θ.

    Squared loss: (R + 1)²/n. Logistic loss: 2R/n.

    Proof. Let θ and the set the minimum is taken over lie in ‖θ‖₂ ≤ R. (An unconstrained minimum is one
    over that ball if R ≥ ``loss.radius(lam)``.) Replacing d by d' changes L(θ) by (φ(θ, d') − φ(θ, d))/n,
    at most spread(R)/n either way, for every such θ. A minimum changes by no more than its function does.
    The two changes may add up: (R + 1)²/(2n) is *not* a sensitivity for the squared loss. ∎

    Parameters
    ----------
    loss : Loss
    radius : float
        R, bound on ‖θ‖₂ for hypotheses and for the minimiser.
    n : int
        Number of rows.
    value_error : float
        Bound on the error of the computed excess risk (``excess_error_bound``). The computed values on two
        neighbours may be off in opposite directions, so it is charged twice.

    Examples
    --------
    >>> from expost.erm.losses import SquaredLoss
    >>> round(excess_risk_sensitivity(SquaredLoss(), 1.0, 100), 12)
    0.04
    """
    check(n=n, radius=radius)
    return round_up(2.0 * loss.spread(radius) / n + 2.0 * value_error)
