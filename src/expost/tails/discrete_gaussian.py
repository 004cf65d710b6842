"""How far an exact discrete Gaussian gets: public numbers.

Let X be discrete Gaussian of deviation σ, N normal of the same, g(x) = e^(−x²/(2σ²)), G(a) its integral from a on, Z
the sum of g over the integers. Then 2G(0) ≤ Z ≤ 2G(0) + 1: the first by Poisson's formula, which makes Z that integral
plus positive terms, the second as g falls on either side of zero.

*Lemma.* For an integer m ≥ 1, P(X ≥ m) ≤ P(N ≥ m − 1). *Proof.* The numerator Σ_{k≥m} g(k) is at most G(m − 1). ∎

*Dominance.* N − 2 ≼ X ≼ N + 2 in stochastic order; so averages of independent X with weights that add up to one lie
between the same averages of N, less or plus 2. *Proof.* By symmetry it is enough that P(X ≥ m) ≤ P(N ≥ m − 2) for every
integer m. For m ≥ 1 the lemma says more. For m = 1 − k, k ≥ 1, it says P(X ≥ k) ≥ P(N ≥ k + 1). Now Σ_{j≥k} g(j) is at
least G(k) ≥ G(k + 1) + g(k + 1), and G(k + 1) ≤ g(k + 1)·G(0), as G/g falls and g(0) = 1. So G(k)·2G(0) is at least
G(k + 1)·(2G(0) + 2), and P(X ≥ k) ≥ G(k)/(2G(0) + 1) ≥ G(k + 1)/(2G(0)). ∎
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
