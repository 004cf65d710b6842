"""The best constant, which people compare a model with: always the mean, or always the same probability. Private.

C = min over u of mean φ(u, y), without a penalty: ½Var(y) for the squared loss (u = ȳ), the entropy H(q) = −q ln q −
(1 − q) ln(1 − q) of the share q of positive labels for the logistic loss. What it leaves on the table is G = C − min L.
It may be negative: min L pays a penalty, the constant does not.

*Claim.* One row replaced moves C by at most 2(n − 1)/n² (squared, |y| ≤ 1), or H(1/n) (logistic).
*Proof.* With m the mean of the other targets, Var(y) = const + ((n − 1)/n²)(y − m)², and (y − m)² is between 0 and 4:
4(n − 1)/n² for Var, half of that for C. H(k/n) is concave in k, which moves by at most one: no step is larger than the
first, H(1/n) − H(0). ∎ Both are attained: all targets at −1 and one replaced by 1; all labels equal and one replaced.

*Claim.* It moves min L by at most ω(R)/n, ω(R) the spread of φ over predictions of size at most R, R a bound on the
minimiser's norm. *Proof.* min L ≤ L(w′), w′ the neighbour's minimiser, and L(w′) − L′(w′) is (φ(xᵀw′, y) − φ(x′ᵀw′,
y′))/n, all other rows and the penalty being the same. Exchange the names. ∎ So G moves by at most their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expost.erm._rounding import INFLATION, gamma, round_up, summation_length
from expost.erm.losses import Loss

__all__ = ["ConstantScale", "constant_gain", "constant_gain_error", "constant_sensitivity", "has_constant"]


def has_constant(loss: Loss) -> bool:
    """Whether the best constant of a loss is known here in closed form."""
    return loss.name in ("squared", "logistic")


def constant_sensitivity(loss: Loss, n: int) -> float:
    """Return how far one row can move the loss of the best constant, rounded up.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss, SquaredLoss
    >>> round(constant_sensitivity(SquaredLoss(), 1000) * 1000, 3)
    1.998
    >>> round(constant_sensitivity(LogisticLoss(), 1000) * 1000, 3)
    7.907
    """
    if loss.name == "squared":
        return round_up(2.0 * (n - 1) / n / n)
    return round_up(_entropy(1, n) * (1 + 1e-12))


def constant_gain(risk: Any, loss: Loss) -> float:
    """Return L(0) − C, what the best constant gains over predicting zero, from a risk that holds the rows; private."""
    if loss.name == "squared":
        mean = risk.target_mean
        if mean is None:
            raise ValueError("these sums say nothing of Σy, which the best constant needs; make them with sums_of")
        return 0.5 * float(mean) ** 2
    objective = risk.objective
    return math.log(2.0) - _entropy(objective.count(objective.y > 0.0), objective.n)


def constant_gain_error(n: int) -> float:
    """Return a bound on the rounding error of :func:`constant_gain`: a mean of numbers of size 1, a few logarithms."""
    return INFLATION * 4.0 * gamma(summation_length(n) + 16)


def _entropy(positive: int, n: int) -> float:
    shares = (positive / n, (n - positive) / n)
    return math.fsum(-share * math.log(share) for share in shares if share > 0.0)


@dataclass(frozen=True)
class ConstantScale:
    """The scale on which the gap of the best constant is released: as it is. Public.

    Attributes
    ----------
    sensitivity
        How far one row can move the gap, the error of its computation included.
    """

    sensitivity: float

    @classmethod
    def of(cls, loss: Loss, n: int, *, radius: float, error_bound: float) -> ConstantScale:
        """Settle it from public numbers."""
        return cls(round_up(constant_sensitivity(loss, n) + round_up(loss.spread(radius)) / n + 2.0 * error_bound))

    def height(self, gap: float) -> float:
        """Return the gap."""
        return gap

    def gap(self, height: float) -> float:
        """Return the height."""
        return height
