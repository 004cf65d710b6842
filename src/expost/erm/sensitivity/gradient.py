"""How far the gradient of L at a given θ can move when one row is replaced (theory B12).

Its own file because the proof is long.

*Claim.* Let m = ‖θ‖_∞ and ψ(s) = max(0, φ′(s, −1)), the largest slope at prediction s. For rows in the unit ℓ₁ ball,
‖∇φ(θ; d) − ∇φ(θ; d′)‖₂ ≤ S(m), where

    S(m)² = max of ψ(s)² + ψ(s′)² + 2o·ψ(s)ψ(s′)  over 0 ≤ o ≤ 1, |s|, |s′| ≤ m, s + s′ ≤ 2m(1 − o).

*Proof.* A row's gradient is φ′(xᵀθ, y)·x. Flipping (x, y) to (−x, −y) leaves it unchanged (φ is even in that sense,
as every loss here is), so write it r·w with r ≥ 0 and w = ±x. For a margin loss take w = −yx: r = φ′(wᵀθ, −1) =
ψ(wᵀθ). For a loss of the residual take the sign that makes the slope r = φ′(wᵀθ, ±y) non-negative; it is largest at
target −1, so r ≤ ψ(wᵀθ). Now ‖rw − r′w′‖² = r²‖w‖² + r′²‖w′‖² − 2rr′⟨w, w′⟩ ≤ r² + r′² + 2rr′o with o = max(0, −⟨w,
w′⟩) ≤ 1, and this increases in r and r′. With s = wᵀθ, s′ = w′ᵀθ it remains to show s + s′ ≤ 2m(1 − o). Let κ be the
sum of min(|w_j|, |w′_j|) over coordinates where w and w′ have opposite signs: there |w_j + w′_j| = |w_j| + |w′_j| −
2·min, so ‖w + w′‖₁ ≤ 2 − 2κ; and o ≤ Σ |w_j||w′_j| over the same coordinates ≤ κ, the larger factor being at most 1.
Hence s + s′ = (w + w′)ᵀθ ≤ m‖w + w′‖₁ ≤ 2m(1 − κ) ≤ 2m(1 − o). ∎

For the squared loss ψ(s) = 1 + s and the maximum is at s = m, s′ = m − 2mo (the objective is convex in (r, r′) and
the constraints are linear, so a vertex attains it). In o it is 2(1+m)² + 2(1−m²)o − 4mo², whose maximum over [0, 1]
gives the closed form below. Two consequences: ‖∇L(θ)‖₂ is a query of sensitivity S(m)/n for a released θ; and the
minimiser, over a ball or everywhere, moves by at most S(R)/(nλ) in ℓ₂, R a bound on its norm and so on ‖·‖_∞. The proof
is that of `expost.erm.sensitivity.minimiser`, with S(R)/n instead of 2G/n for two row gradients at b divided by n.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from expost.erm._rounding import round_up
from expost.erm.losses import Loss, SquaredLoss

_CELLS = 512
_STEPS_PER_UNIT = 256  # m is rounded up to a multiple of 1/256, so that the cache is hit


def gradient_sensitivity(loss: Loss, largest_coordinate: float) -> float:
    """Return S(m) for m = ‖θ‖_∞ = ``largest_coordinate``; the query ‖∇L(θ)‖₂ has sensitivity S(m)/n.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss, SquaredLoss
    >>> [round(gradient_sensitivity(SquaredLoss(), m), 3) for m in (0.0, 0.5, 1.0, 4.0)]
    [2.0, 2.187, 2.828, 7.071]
    >>> [round(gradient_sensitivity(LogisticLoss(), m), 2) for m in (0.0, 1.0, 4.0)]
    [1.0, 1.08, 1.54]
    """
    m = float(largest_coordinate)
    if not 0.0 <= m < math.inf:
        raise ValueError(f"the largest coordinate must be non-negative and finite, got {largest_coordinate}")
    if isinstance(loss, SquaredLoss):
        return round_up(_squared(m))
    everywhere = 2.0 * loss.lipschitz(m)
    if not loss.symmetric:
        return everywhere
    return min(everywhere, _by_cells(loss, math.ceil(m * _STEPS_PER_UNIT) / _STEPS_PER_UNIT))


def _squared(m: float) -> float:
    if m >= 1.0:
        return math.sqrt(2.0) * (1.0 + m)
    if m <= math.sqrt(5.0) - 2.0:  # where the best o would exceed 1
        return 2.0
    return math.sqrt(2.0 * (1.0 + m) ** 2 + (1.0 - m * m) ** 2 / (4.0 * m))


@lru_cache(maxsize=4096)
def _by_cells(loss: Loss, m: float) -> float:
    """Bound the maximum from above on a grid of (o, s) cells, each at its favourable corner (ψ increases)."""
    k = np.arange(_CELLS)
    o = (k + 1.0) / _CELLS
    first = _slope(loss, m * (2.0 * (k + 1) / _CELLS - 1.0))
    # s′ ≤ 2m(1 − o) − s at a cell's lower corner is m(3 − 2(i + j)/cells): it depends on i + j only
    partner = m * (3.0 - 2.0 * np.arange(2 * _CELLS - 1) / _CELLS)
    second = np.where(partner >= -m - 1e-12, _slope(loss, np.clip(partner, -m, m)), np.nan)
    second = second[k[:, None] + k[None, :]]
    value = first**2 + second**2 + 2.0 * o[:, None] * first * second  # NaN where no s′ is allowed
    return float(math.sqrt(np.nanmax(value))) * (1.0 + 1e-9)


def _slope(loss: Loss, s: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, loss.derivative(s, np.full_like(s, -1.0)))
