"""Testing stationarity instead of risk (theory B12): a small gradient proves a small excess risk.

*Lemma.* L(θ) − min L ≤ ‖∇L(θ)‖²/(2μ) for every θ, if L is μ-strongly convex; it is for μ = λ. *Proof.* L(w) ≥ L(θ) +
⟨∇L(θ), w − θ⟩ + (μ/2)‖w − θ‖² for every w. The left side is smallest at the optimum, the right side at w = θ −
∇L(θ)/μ, where it is L(θ) − ‖∇L(θ)‖²/(2μ). ∎ No optimum has to be known, no radius, and θ may come from anywhere.

*Why.* Asking whether ‖∇L(θ)‖ ≤ √(2λα) is thirty to a hundred times less sensitive than asking whether the excess risk
is at most α. *Sensitivity*: S(‖θ‖_∞)/n for a θ already released (`expost.erm.sensitivity.gradient`), plus rounding and
floating point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from expost.erm.losses import Loss
from expost.erm.risk import Risk
from expost.erm.sensitivity.gradient import gradient_sensitivity
from expost.stopping.measure import Measure


def gradient_target(excess_risk: float, regularization: float) -> float:
    """Return √(2λα), the gradient norm that proves excess risk α.

    Examples
    --------
    >>> round(gradient_target(0.05, 0.005), 6)
    0.022361
    """
    return math.sqrt(2.0 * regularization * excess_risk)


class GradientLength(Measure):
    """‖∇L(θ)‖₂ of a released θ.

    Parameters
    ----------
    risk
        What the gradient is computed by; private.
    loss, n
        What it is of.
    """

    def __init__(self, risk: Risk, loss: Loss, n: int) -> None:
        self._risk, self._loss, self._n = risk, loss, n

    def value(self, hypothesis: Any) -> float:
        """Return ‖∇L(θ)‖₂."""
        return self._risk.gradient_norm(np.asarray(hypothesis, dtype=np.float64))

    def sensitivity(self, hypothesis: Any) -> float:
        """Return S(‖θ‖_∞)/n."""
        return gradient_sensitivity(self._loss, float(np.abs(np.asarray(hypothesis)).max(initial=0.0))) / self._n

    def error_bound(self, hypothesis: Any) -> float:
        """Return the bound for ‖θ‖₂."""
        return self._risk.gradient_error_bound(float(np.linalg.norm(np.asarray(hypothesis))) * (1 + 1e-12))

    def lower(self, hypothesis: Any) -> Iterable[float]:
        """Yield a bound that needs no pass over the rows."""
        yield self._risk.gradient_lower(np.asarray(hypothesis, dtype=np.float64))
