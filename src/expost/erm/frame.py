"""Coordinates in which rows are short, so that clipping their gradients by length costs little.

Rows as they are encoded are long for two reasons that say nothing about a model: a number that fills a small part of
its bounds adds nearly the same to every row, and so does an indicator that most rows have. In a frame a row is x̃ =
ω·x − m: columns times whole weights ω, minus a centre m that was released before (zero for the constant, which stays).
The more a number is stretched, the less noise its coefficient gets.

*Linear.* Every row has the same constant c in one column, so Σ s·x̃ = ω·Σ s·x − m·Σ s, and Σ s = (Σ s·x_c)/c: sums over
rows as they are encoded are enough, and all of it is whole. A model ψ in the frame predicts x̃ᵀψ = xᵀθ with θ = ω·ψ, and
θ_c = ψ_c − mᵀψ/c for the constant.

*Exact.* With |m_j| ≤ ω_j·c and ω ≤ 4 the sums Σ ω²x² and Σ ω·m·x over a row are whole numbers below 2⁴⁵, partial sums
included (Σ x² ≤ 2⁴⁰; blocks of norm c, of which c²·B ≤ 2⁴⁰): float64 adds them exactly in any order. So a row's length
is a function of that row and the frame alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.data.fixed_point import ONE
from expost.erm._types import FloatArray
from expost.erm.geometry import Geometry

Whole = NDArray[np.int64]

# what a column or block is guessed to add to a row's squared length, in squares of its bound: steers, and any is sound
_SPREAD, _NUMBER = 0.04, 0.25  # a number, before it is stretched: around its centre, and around zero
_MIXED, _BALL = 0.7, 0.5  # a category around its centre; a block that is bounded as a whole


@dataclass(frozen=True, eq=False)
class Frame:
    """Where rows are looked at from; public, or released.

    Attributes
    ----------
    weights
        ω.
    centre
        m, in units of 2⁻²⁰.
    constant, value
        Which column is the same in every row, and its value in units of 2⁻²⁰; None and 0 if there is none.
    """

    weights: Whole
    centre: Whole
    constant: int | None
    value: int

    @classmethod
    def of(cls, geometry: Geometry, stretch: int = 1) -> Frame:
        """Return the frame to start with: numbers stretched by at most that, and centred at zero.

        Examples
        --------
        >>> from expost.erm.geometry import Block
        >>> shape = Geometry((Block(3, "box", 0.5), Block(2, "l1", 0.5)), 1.0, "blocks", constant=0)
        >>> Frame.of(shape, stretch=3).weights.tolist()
        [1, 3, 3, 1, 1]
        """
        constant, p = geometry.constant, geometry.columns
        if constant is None:
            return cls(np.ones(p, dtype=np.int64), np.zeros(p, dtype=np.int64), None, 0)
        times = _stretch(geometry, stretch)
        weights = np.concatenate([np.full(b.size, times if b.norm == "box" else 1) for b in geometry.blocks])
        weights[constant] = 1
        return cls(weights.astype(np.int64), np.zeros(p, dtype=np.int64), constant, round(_block_of(geometry) * ONE))

    @property
    def movable(self) -> bool:
        """Whether it can be centred elsewhere."""
        return self.constant is not None

    def moved(self, mean: FloatArray) -> Frame:
        """Return the frame centred at a released mean of ω·x, in units of 1, as far as rows can reach."""
        most = self.weights * self.value
        centre = np.clip(np.rint(np.asarray(mean) * ONE), -most, most).astype(np.int64)
        centre[self.constant] = 0
        return Frame(self.weights, centre, self.constant, self.value)

    def lengths(self, x: Any) -> FloatArray:
        """Return ‖x̃‖ of rows in units of 2⁻²⁰, in the same units."""
        weights, centre = self.weights.astype(np.float64), self.centre.astype(np.float64)
        squares = x * x if isinstance(x, np.ndarray) else x.multiply(x)
        found = np.asarray(squares @ (weights * weights)).ravel()
        if self.centre.any():
            found = (found - 2.0 * np.asarray(x @ (weights * centre)).ravel()) + float(centre @ centre)
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def coordinates(self, total: Any) -> list[int]:
        """Return Σ s·x̃ of Σ s·x: whole numbers."""
        sums = [int(value) for value in total]
        slopes = 0 if self.constant is None else sums[self.constant] // self.value
        weights, centre = self.weights.tolist(), self.centre.tolist()
        return [w * value - m * slopes for w, value, m in zip(weights, sums, centre, strict=True)]

    def hypothesis(self, psi: FloatArray) -> FloatArray:
        """Return θ of ψ."""
        theta = self.weights * psi
        if self.constant is not None:
            theta[self.constant] -= float(self.centre @ psi) / self.value
        return np.asarray(theta)


def _block_of(geometry: Geometry) -> float:
    """Return the radius of the block that the constant is in."""
    assert geometry.constant is not None
    place = 0
    for block in geometry.blocks:
        place += block.size
        if geometry.constant < place:
            return block.radius
    raise ValueError("the constant is in no block")


def _parts(geometry: Geometry) -> tuple[int, float, float]:
    """Return how many numbers there are, and what the constant and all other blocks are guessed to add, centred."""
    boxed = sum(block.size for block in geometry.blocks if block.norm == "box")
    radius = _block_of(geometry)
    return boxed - 1, radius**2, math.fsum(_MIXED * b.radius**2 for b in geometry.blocks if b.norm != "box")


def _stretch(geometry: Geometry, most: int) -> int:
    """Return ω of numbers: together they are not to be longer than everything else, where they are many."""
    numbers, constant, others = _parts(geometry)
    if not numbers:
        return 1
    return max(1, min(most, round(math.sqrt((constant + others) / (numbers * constant * _SPREAD)))))


def typical_length(geometry: Geometry, stretch: int = 1, *, centred: bool) -> float:
    """Return how long rows are guessed to be in their frame, before it is centred or after; public.

    Examples
    --------
    >>> from expost.erm.geometry import l2_ball
    >>> round(typical_length(l2_ball(9), centred=False), 3)
    0.707
    """
    if geometry.constant is None:
        return math.sqrt(_BALL) * geometry.radius
    numbers, constant, others = _parts(geometry)
    each = constant * _stretch(geometry, stretch) ** 2 * (_SPREAD if centred else _NUMBER)
    return math.sqrt(constant + numbers * each + (others if centred else others / _MIXED))
