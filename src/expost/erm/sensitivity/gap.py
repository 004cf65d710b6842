"""How far G = L(0) − min L, what the null model leaves on the table, can move when one row is replaced.

Its own file because the proof is long.

*Claim.* Let a(u, y) = φ(0, y) − φ(u, y) and ω(r) = max a − min a over |u| ≤ r and admissible y (``loss.gap_range``).
If G ≤ G′ then G′ − G ≤ ω(ρ(G′))/n, ρ(g) = min(R, √(2g/λ)), R a bound on the minimiser's norm.

*Proof.* Let w′ minimise L′, everywhere or over a ball around 0, with d the row that is replaced by d′. G ≥ L(0) −
L(w′), so G′ − G ≤ [L′(0) − L′(w′)] − [L(0) − L(w′)] = (a(x′ᵀw′, y′) − a(xᵀw′, y))/n: all other rows and the penalty
cancel. Both predictions are at most ‖w′‖ in size. ‖w′‖ ≤ R; and strong convexity with optimality, ⟨∇L′(w′), 0 − w′⟩
≥ 0, gives G′ = L′(0) − L′(w′) ≥ (λ/2)‖w′‖². The other direction is the same with the names exchanged. ∎

So the sensitivity is ω(R)/n everywhere (½(R + 1)²/n squared for R ≥ 1, R/n logistic), and smaller where G is small.
That is put to use by releasing h(G) instead, h increasing with slope at most 1/ω(ρ(g)): where G is uncertain by much, h
is flat. h is piecewise linear with slopes 1/Ω_k, Ω_k = ω at the right end of cell k.

*Claim.* |h(G′) − h(G)| ≤ max over k of h(v) − h(max(0, v − Ω_k/n)), v = g_k and v = min(g_{k+1}, Ω_k/n) if v ≥ g_k.
*Proof.* For the larger value G′ = v in cell k the smaller one is at least v − Ω_k/n. h(v) − h(v − Ω_k/n) decreases in
v within a cell, h being concave; while v < Ω_k/n the second term is h(0) = 0 and the difference increases. ∎
About 1/n if ω changes little from cell to cell, and the first cell is wide enough to hold a change of its Ω.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from expost.erm._rounding import UNIT, round_up
from expost.erm._types import FloatArray
from expost.erm.losses import Loss

_CELLS = 512
_FIRST_CHANGES = 20  # the first cell holds this many changes of one row


@dataclass(frozen=True, eq=False)
class GapScale:
    """The public scale h on which a gap is released.

    Attributes
    ----------
    gaps, heights
        Corners of h.
    sensitivity
        Bound on |h(G′) − h(G)|, the error of a computed G included.

    Examples
    --------
    >>> from expost.erm.losses import LogisticLoss
    >>> scale = GapScale.of(LogisticLoss(), 100_000, 0.005, radius=7.5)
    >>> 1.0 <= scale.sensitivity * 100_000 < 1.1
    True
    >>> round(scale.gap(scale.height(0.3)), 12)
    0.3
    """

    gaps: FloatArray
    heights: FloatArray
    sensitivity: float

    @classmethod
    @lru_cache(maxsize=64)  # the same for every run of an experiment
    def of(cls, loss: Loss, n: int, lam: float, *, radius: float, error_bound: float = 0.0) -> GapScale:
        """Settle the scale from public numbers; ``error_bound`` is that of a computed G."""
        top = loss.null_value  # φ ≥ 0, so no gap is larger

        def omega(gap: float) -> float:
            return round_up(loss.gap_range(min(radius, math.sqrt(2.0 * (gap + error_bound) / lam) * (1.0 + 1e-12))))

        low, high = 0.0, top
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if omega(middle) * _FIRST_CHANGES <= n * middle else (middle, high)
        gaps = np.concatenate([[0.0], np.geomspace(min(high, top / 2), top, _CELLS)])
        ranges = np.array([omega(float(gap)) for gap in gaps[1:]])
        ranges = np.maximum.accumulate(ranges)  # ω increases; so must its bounds, to the last bit
        heights = np.concatenate([[0.0], np.cumsum(np.diff(gaps) / ranges)])
        change = ranges / n + 2.0 * error_bound
        inner = np.minimum(gaps[1:], change)
        corners = np.concatenate([gaps[:-1], np.where(inner >= gaps[:-1], inner, gaps[:-1])])
        moved = np.interp(corners, gaps, heights) - np.interp(
            np.maximum(0.0, corners - np.tile(change, 2)), gaps, heights
        )
        for array in (gaps, heights):
            array.setflags(write=False)
        rounding = 4.0 * (_CELLS + 16) * UNIT * float(heights[-1])
        return cls(gaps, heights, round_up(float(moved.max()) + rounding))

    def height(self, gap: float) -> float:
        """Return h, for a gap moved into its range."""
        return float(np.interp(gap, self.gaps, self.heights))

    def gap(self, height: float) -> float:
        """Return the gap of a height; beyond the ends, that of the nearest one."""
        return float(np.interp(height, self.heights, self.gaps))
