"""How large Gaussian noise on second and first moments gets: public numbers, proved.

Let B be symmetric of size p with independent entries on and above the diagonal, N(0, σ²) on it and N(0, σ²/2) off it,
and b have p independent entries N(0, τ²).

*Lemma (the matrix).* P(‖B‖_op > σ(√(2p) + z)) ≤ 2Φ(−z). *Proof.* X_w = wᵀBw over unit vectors has E(X_w − X_w′)² =
σ²‖wwᵀ − w′w′ᵀ‖² = 2σ²(1 − c²) ≤ 4σ²(1 − c) = 2σ²‖w − w′‖², c = ⟨w, w′⟩ (the inequality is (1 − c)² ≥ 0). That is
what √2σ⟨w, g⟩ has, g standard normal, so Sudakov and Fernique's comparison gives E λ_max(B) ≤ √2σ·E‖g‖ ≤ σ√(2p). As a
function of σ⁻¹ times the entries in isometric coordinates (off the diagonal by √2), which are standard normal, λ_max is
convex and σ-Lipschitz: a Gaussian half-space bounds its excess over the median (Borell 1975; Tsirelson, Ibragimov,
Sudakov 1976), P(λ_max > median + zσ) ≤ Φ(−z), and its median is at most its mean (Kwapień 1994: it is convex). The same
holds for −B. ∎ For few columns the Frobenius norm, which is not smaller and σ·χ with p(p + 1)/2 degrees of freedom, has
the smaller quantile; the better of the two is taken.

*The vector* has ‖b‖ = τ·χ with p degrees of freedom, whose quantile is known.

*Exact noise, averaged.* Releases are f plus independent discrete Gaussians of deviations σ_s, averaged with weights
w_s ≥ 0 that add up to one. Each discrete Gaussian can be coupled with a normal one within two units (dominance in
`expost.tails.discrete_gaussian`), hence so can the average, with a normal of variance Σ w_s²σ_s², which is 1/Σσ_s⁻² for
weights ∝ 1/σ_s². So the norms above hold with 2p units more for B (a matrix of entries within 2 has norm at most 2p)
and 2√p for b. The number of releases does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import chdtri

from expost.tails.discrete_gaussian import deviations

_SLACK = 1.0 + 1e-9  # quantiles of χ² are good to ten digits
_UNITS = 2.0  # how far an exact draw is from a normal one


def matrix_norm(p: int, probability: float) -> float:
    """Return c with P(‖B‖_op > cσ) at most that probability.

    Examples
    --------
    >>> round(matrix_norm(100, 0.01), 2), round(matrix_norm(1, 0.01), 2)
    (16.72, 2.58)
    """
    by_comparison = math.sqrt(2.0 * p) + deviations(0.5 * probability)
    by_entries = math.sqrt(float(chdtri(p * (p + 1) / 2, probability)))
    return min(by_comparison, by_entries) * _SLACK


def vector_norm(p: int, probability: float) -> float:
    """Return c with P(‖b‖ > cτ) at most that probability.

    Examples
    --------
    >>> round(vector_norm(100, 0.01), 2)
    11.65
    """
    return math.sqrt(float(chdtri(p, probability))) * _SLACK


@dataclass(frozen=True)
class NoiseBound:
    """‖Bθ − b‖ ≤ matrix·‖θ‖ + vector for every θ at once; public.

    Attributes
    ----------
    matrix, vector
        Bounds on ‖B‖_op and ‖b‖.
    """

    matrix: float
    vector: float

    @classmethod
    def of(cls, p: int, sigma: float, tau: float, unit: float, probability: float) -> NoiseBound:
        """Settle it for averages of exact draws on a grid of that unit; fails with at most that probability."""
        matrix = sigma * matrix_norm(p, 0.5 * probability) + _UNITS * p * unit
        return cls(matrix, tau * vector_norm(p, 0.5 * probability) + _UNITS * math.sqrt(p) * unit * _SLACK)

    def lever(self, norm: float) -> float:
        """Return the bound for that ‖θ‖."""
        return (self.matrix * norm + self.vector) * _SLACK
