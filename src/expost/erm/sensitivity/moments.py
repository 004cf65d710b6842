"""How far one row can move second and first moments together, in the Euclidean norm (theory C1).

*Claim.* Let rows have ‖x‖₂ ≤ 1 and |y| ≤ 1, and let (u·xxᵀ, v·yx) be what a row adds, xxᵀ in the Frobenius norm. Then
replacing a row moves the sum by at most Δ with

    Δ² = 2u² + 2v² + v⁴/(2u²) = (2u² + v²)²/(2u²)  if v² ≤ 2u²,   and   Δ² = 4v²  otherwise,

and some pair of rows moves it that far. *Proof.* With a = ‖x‖², a′ = ‖x′‖² and c = ⟨x, x′⟩ the square of the change is

    u²(a² + a′² − 2c²) + v²(y²a + y′²a′ − 2yy′c).

It is convex in (y, y′), so largest where both are ±1, and then −2yy′c ≤ 2|c|; it increases in a and a′ for given c. So
it is at most 2u²(1 − c²) + 2v²(1 + |c|), and unit vectors at that angle with y = −y′ attain it. In |c| ≤ 1 this is a
parabola with its top at |c| = v²/(2u²), or at 1 if that is beyond. ∎ Bounding the parts by themselves would give
2u² + 4v².

*On the integers* nothing is multiplied by √2: an entry off the diagonal stands for two of the Frobenius norm, so its
noise has half the variance of the diagonal's, and Σ_j Δ_j²/σ_j² over the entries on and above the diagonal is
‖xxᵀ − x′x′ᵀ‖²/σ² (`expost.mechanisms.gaussian_moments`).

*Other shapes.* If columns are divided by d_j and rows of the shape have Σ_j (x_j/d_j)² ≤ Z², then z = x/(d·Z) is in the
unit ball, and noise of deviation σd_id_jZ² (off the diagonal by √2 less) and τd_jZ does for them what σ and τ do there.

*Best weights.* Noise of deviations 1/u and 1/v makes ‖Bθ − b‖² about p(r²/(2u²) + 1/v²) at ‖θ‖ = r. With q = v²/u² ≤ 2
and Δ = 1, u² = 2/(2 + q)², so that is p(2 + q)²(r²/2 + 1/q)/2, whose derivative is zero where r²q² + q = 2: q = (√(1 +
8r²) − 1)/(2r²), between 0 and 2. Beyond q = 2 more noise on XᵀX buys nothing.
"""

from __future__ import annotations

import math

from expost.erm._rounding import round_up


def moments_sensitivity(second: float, first: float) -> float:
    """Return Δ for weights u on XᵀX and v on Xᵀy.

    Parameters
    ----------
    second, first
        u > 0 and v ≥ 0.

    Examples
    --------
    >>> round(moments_sensitivity(1.0, 0.0) ** 2, 9), round(moments_sensitivity(1.0, 1.0) ** 2, 9)
    (2.0, 4.5)
    >>> round(moments_sensitivity(1.0, 2.0) ** 2, 9)
    16.0
    """
    if not (second > 0.0 and first >= 0.0):
        raise ValueError("weights must be positive, that of the first moments zero at least")
    if first * first <= 2.0 * second * second:
        return round_up((2.0 * second * second + first * first) / (math.sqrt(2.0) * second))
    return round_up(2.0 * first)


def best_weights(norm: float) -> tuple[float, float]:
    """Return u and v with Δ = 1, rounded down, that are best for a θ of that norm; public, and any are sound.

    Examples
    --------
    >>> [round(weight, 4) for weight in best_weights(1.0)]
    [0.4714, 0.4714]
    """
    square = max(norm, 1e-3) ** 2
    ratio = min(2.0, (math.sqrt(1.0 + 8.0 * square) - 1.0) / (2.0 * square))
    length = moments_sensitivity(1.0, math.sqrt(ratio)) * (1.0 + 1e-12)
    return 1.0 / length, math.sqrt(ratio) / length
