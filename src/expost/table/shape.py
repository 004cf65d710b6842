"""What is publicly known about the shape of a row: blocks of columns, each with a norm that no row exceeds.

Noise on a gradient has to hide how far one row can move it, and that is a matter of shape. A row of numbers in [−1, 1]
lies in a box, the indicators of one category in an ℓ₁ ball (one of them is 1), any row within a Euclidean ball. Noise
that follows the shape is smaller than noise made for a ball around it.

*Noise of a shape.* Let a row's part in block j have norm ‖x_j‖ ≤ r_j, and let b have density ∝ exp(−Σ_j w_j‖b_j‖) in
the same norms. A gradient moves by v = a·x − a′·x′ with |a|, |a′| ≤ κ, so ‖v_j‖ ≤ 2κr_j, and the log density of b moves
by at most Σ_j w_j·2κr_j = ε if w_j = u_j·ε/(2κr_j) with shares u_j ≥ 0, Σ u_j = 1.

*Shares.* With E‖b_j‖₂² = A_j/w_j² the noise has E‖b‖₂² = (2κ/ε)²·Σ A_j r_j²/u_j², which is smallest for u_j ∝
(A_j r_j²)^⅓, and then (2κN/ε)², N = (Σ (A_j r_j²)^⅓)^{3/2}. A_j is d(d+1)(d+2)/3 for a box of d columns, 2d for an ℓ₁
ball and d(d+1) for a Euclidean one.

*Gaussian noise* on a sum of gradients follows the shape as well. In block b it has deviation σ_b in every coordinate.
Let A be the largest Σ_j x_j²/σ_j² of a row: a box of d columns within r adds d·r²/σ_b², an ℓ₁ or Euclidean block within
r adds r²/σ_b². A sum that moves by v = s·x − s′·x′ with |s|, |s′| ≤ S then moves by √(Σ_j v_j²/σ_j²) ≤ 2S·√A =: μ
deviations, by the triangle inequality; k rows that are replaced together move it by k times that.

*Shape of the noise.* Of all σ_b with one A, Σ_j σ_j² is least for σ_b² ∝ r_b·√(k_b/d_b), d_b columns and k_b = d_b for
a box, 1 otherwise; then √Σσ_j² = N/√A with N = Σ_b r_b√(k_b·d_b). That is never more than for one Euclidean ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from expost.table.rows import ONE

BlockNorm = Literal["box", "l1", "l2"]


@dataclass(frozen=True)
class Block:
    """Columns that share a norm, ``"box"`` (the largest entry), ``"l1"`` or ``"l2"``, which in no row exceeds r."""

    size: int
    norm: BlockNorm
    radius: float

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.radius < math.inf or self.norm not in ("box", "l1", "l2"):
            raise ValueError("a block needs columns, a norm ('box', 'l1' or 'l2') and a positive radius")

    @property
    def square(self) -> float:
        """A, the mean of ‖b‖₂² for noise of density ∝ e^(−‖b‖) in this norm."""
        d = self.size
        return {"box": d * (d + 1) * (d + 2) / 3, "l1": 2.0 * d, "l2": d * (d + 1.0)}[self.norm]

    @property
    def full(self) -> int:
        """k, how many entries may be as large as r together: every one of a box, one of a ball."""
        return self.size if self.norm == "box" else 1


@dataclass(frozen=True)
class Geometry:
    """Blocks of columns, in order, and the Euclidean radius of whole rows.

    Attributes
    ----------
    blocks
        Together they are all columns.
    radius
        Bound on ‖x‖₂.
    name, reason
        What the release calls the shape, and why it was chosen.
    scale
        What rows of the table were divided by; constants of a search are stated in the table's units.
    constant
        Which column is as large as its block's radius in every row; None if there is none.
    view
        How rows are seen that have this shape (`expost.table.views`); None if as they are.
    coarser
        Shapes of coarser views of the same rows, the coarsest first.

    Examples
    --------
    >>> table = Geometry((Block(3, "box", 1.0), Block(7, "l1", 1.0)), radius=2.0, name="blocks")
    >>> ball = Geometry((Block(10, "l2", 2.0),), radius=2.0, name="ball")
    >>> table.columns, round(table.noise, 2), round(ball.noise, 2)
    (10, 11.6, 20.98)
    """

    blocks: tuple[Block, ...]
    radius: float
    name: str
    reason: str = ""
    scale: float = 1.0
    constant: int | None = None
    view: Any = field(default=None, compare=False, repr=False)
    coarser: tuple[Geometry, ...] = field(default=(), compare=False, repr=False)

    @property
    def coarsest(self) -> Geometry:
        """What a search starts with."""
        return self.coarser[0] if self.coarser else self

    @property
    def columns(self) -> int:
        """Number of columns."""
        return sum(block.size for block in self.blocks)

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """u_j, which add up to one."""
        roots = [math.cbrt(block.square * block.radius**2) for block in self.blocks]
        return tuple(root / math.fsum(roots) for root in roots)

    @cached_property
    def noise(self) -> float:
        """N: noise for slope κ at ε has root mean square 2κN/ε."""
        return float(math.fsum(math.cbrt(block.square * block.radius**2) for block in self.blocks) ** 1.5)

    def weights(self, epsilon: float, slope: float) -> tuple[float, ...]:
        """Return w_j, which make the noise ε-private for slopes up to κ; their sum is rounded down."""
        return tuple(
            share * epsilon / (2.0 * slope * block.radius) * (1.0 - 1e-12)
            for share, block in zip(self.shares, self.blocks, strict=True)
        )


def ball(norm: Literal["l1", "l2"], p: int) -> Geometry:
    """Return the shape of rows in the unit ball of a norm."""
    return l1_ball(p) if norm == "l1" else l2_ball(p)


def l1_ball(p: int) -> Geometry:
    """Return the shape of rows with ‖x‖₁ ≤ 1."""
    return Geometry((Block(p, "l1", 1.0),), 1.0, "ℓ₁ ball")


def l2_ball(p: int, radius: float = 1.0) -> Geometry:
    """Return the shape of rows with ‖x‖₂ ≤ 1, or within a smaller radius."""
    return Geometry((Block(p, "l2", radius),), 1.0, "Euclidean ball")


_UP = 1.0 + 1e-12  # rounding of a few products


def gaussian_size(geometry: Geometry) -> float:
    """Return N: noise of which a row moves a sum by μ deviations has root mean square 2S·N/μ."""
    return math.fsum(block.radius * math.sqrt(block.full * block.size) for block in geometry.blocks)


def gaussian_deviations(geometry: Geometry, largest: float, rho: float) -> tuple[float, ...]:
    """Return σ_b of each block, rounded up: slopes of at most S cost ρ = μ²/2."""
    shares = [block.radius * math.sqrt(block.full / block.size) for block in geometry.blocks]
    length = math.fsum(b.full * b.radius**2 / share for b, share in zip(geometry.blocks, shares, strict=True))
    # (2S)²·Σ k_b r_b²/(κ·share_b)/2 = ρ
    kappa = (2.0 * largest) ** 2 * length / (2.0 * rho) * _UP
    return tuple(math.sqrt(kappa * share) * _UP for share in shares)


class BlockRows:
    """What says of rows, before there are any, that they have B parts of norm at most 1, and which.

    Every number of a box is a part, and so is every ℓ₁ block. In fixed point 1 is written as c = ⌊2²⁰/√B⌋: a number v
    becomes v·c truncated toward zero, an indicator or constant c itself.

    *Claim.* ‖x‖₂ ≤ 1, exactly, in integers, for every row whatever is in it. *Proof.* Entries of a box are at most c
    in size, and those of an ℓ₁ block add up to at most c, so their squares to at most c². B parts have ‖x‖₂² ≤ B·c² ≤
    2⁴⁰ in units of 2⁻⁴⁰. ∎

    Attributes
    ----------
    blocks : tuple of (int, "box" or "l1")
        Number of columns and norm of each block, in order.
    square : int
        B: the largest squared length of a row before it is scaled.
    constant_column : int or None
        Which column is the constant, if there is one.
    """

    blocks: tuple[tuple[int, Literal["box", "l1"]], ...]
    square: int
    constant_column: int | None

    @property
    def unit(self) -> int:
        """c: what 1 is in fixed point, and the largest norm of every block, in units of 2⁻²⁰."""
        return math.isqrt(ONE * ONE // self.square)

    @property
    def scale(self) -> float:
        """s = 2²⁰/c, which rows are divided by: √B or a little more."""
        return ONE / self.unit

    @property
    def declares(self) -> dict[str, Any]:
        """What holds of every row that is made so (:class:`~expost.table.rows.Rows`)."""
        shape = tuple((size, norm, self.unit) for size, norm in self.blocks)
        constant = None if self.constant_column is None else (self.constant_column, self.unit)
        return {"norm": "l2", "shape": shape, "constant": constant}


def block_geometry(rows: BlockRows, steering: float | None = None) -> Geometry:
    """Return the shape of rows block by block, as they are made."""
    blocks = tuple(Block(size, norm, 1.0 / rows.scale) for size, norm in rows.blocks)
    divided = rows.scale if steering is None else steering
    return Geometry(blocks, 1.0, "blocks", scale=divided, constant=rows.constant_column)


def cheapest_geometry(rows: BlockRows, steering: float | None = None) -> Geometry:
    """Return the shape of rows whose noise is smallest: blocks, a Euclidean or an ℓ₁ ball.

    ``steering`` is what rows were divided by in units that people think in; it only steers a search.
    """
    p, s = sum(size for size, _ in rows.blocks), rows.scale if steering is None else steering
    shapes = [
        block_geometry(rows, s),
        Geometry((Block(p, "l2", 1.0),), 1.0, "Euclidean ball", scale=s),
        Geometry((Block(p, "l1", rows.square / rows.scale),), 1.0, "ℓ₁ ball", scale=s),
    ]
    best = min(shapes, key=lambda shape: shape.noise)
    others = ", ".join(f"{shape.name} {shape.noise / best.noise:.2g} times" for shape in shapes if shape is not best)
    return replace(best, reason=f"the least noise ({others} as much)", constant=None)
