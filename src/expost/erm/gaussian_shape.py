"""How Gaussian noise on a sum of gradients follows the shape of a row; public.

Noise in block b of the rows' shape (`expost.erm.geometry`) has deviation σ_b in every coordinate. Let A be the largest
Σ_j x_j²/σ_j² of a row: a box of d columns within r adds d·r²/σ_b², an ℓ₁ or Euclidean block within r adds r²/σ_b². A
sum that moves by v = s·x − s′·x′ with |s|, |s′| ≤ S then moves by √(Σ_j v_j²/σ_j²) ≤ 2S·√A =: μ deviations, by the
triangle inequality; k rows that are replaced together move it by k times that.

*Shape of the noise.* Of all σ_b with one A, Σ_j σ_j² is least for σ_b² ∝ r_b·√(k_b/d_b), d_b columns and k_b = d_b for
a box, 1 otherwise; then √Σσ_j² = N/√A with N = Σ_b r_b√(k_b·d_b). That is never more than for one Euclidean ball.
"""

from __future__ import annotations

import math

from expost.erm.geometry import Block, Geometry

_UP = 1.0 + 1e-12  # rounding of a few products


def gaussian_size(geometry: Geometry) -> float:
    """Return N: noise of which a row moves a sum by μ deviations has root mean square 2S·N/μ.

    Examples
    --------
    >>> from expost.erm.geometry import l2_ball
    >>> gaussian_size(l2_ball(9))
    3.0
    """
    return math.fsum(block.radius * math.sqrt(_count(block) * block.size) for block in geometry.blocks)


def gaussian_deviations(geometry: Geometry, largest: float, rho: float) -> tuple[float, ...]:
    """Return σ_b of each block, rounded up: slopes of at most S cost ρ = μ²/2."""
    shares = [block.radius * math.sqrt(_count(block) / block.size) for block in geometry.blocks]
    length = math.fsum(_count(b) * b.radius**2 / share for b, share in zip(geometry.blocks, shares, strict=True))
    # (2S)²·Σ k_b r_b²/(κ·share_b)/2 = ρ
    kappa = (2.0 * largest) ** 2 * length / (2.0 * rho) * _UP
    return tuple(math.sqrt(kappa * share) * _UP for share in shares)


def _count(block: Block) -> int:
    return block.size if block.norm == "box" else 1
