"""How far an exact discrete Gaussian gets: public numbers.

*Lemma.* For X discrete Gaussian of deviation σ and an integer m ≥ 1, P(X ≥ m) ≤ P(N(0, σ²) ≥ m − 1). *Proof.* With
g(x) = e^(−x²/(2σ²)), P(X ≥ m) = Σ_{k≥m} g(k)/Σ_k g(k). The numerator is at most the integral of g from m − 1 on, as g
falls there; the denominator is at least √(2πσ²), the integral of g over the line: by Poisson's formula it is that
integral plus positive terms. ∎ By symmetry the same holds for −X.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

_SLACK = 1.0 + 1e-12  # ndtri is good to a few units in the last place


def reach(sigma: float, probability: float) -> int:
    """Return an integer m ≥ 1 with P(X ≥ m) at most that probability.

    Examples
    --------
    >>> reach(100.0, 0.001)
    311
    >>> reach(100.0, 0.9)
    1
    """
    return 1 + math.ceil(sigma * deviations(probability))


def deviations(probability: float) -> float:
    """Return z ≥ 0 with Φ(−z) at most that probability, rounded up.

    Examples
    --------
    >>> round(deviations(0.025), 4)
    1.96
    """
    return max(0.0, -float(ndtri(probability)) * _SLACK)
