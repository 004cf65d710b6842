"""Rows for noise that follows their shape: features in a box or an ℓ₁ ball, and a constant as large as any of them.

A :class:`~expost.data.preparation.Preparation` puts features and constant into one ℓ₁ ball, where a constant takes room
from the features and k dense columns keep 1/k of their signal. Objective perturbation asks for less: ‖x‖₂ ≤ 1 and a
bound on each block of columns (`expost.erm.geometry`). So here a block is as long as the constant, c = 2⁻²⁰·⌊2²⁰/√B⌋.

- *Box* (columns with bounds): every column lies in [−c, c]. B is the number of columns, the constant among them.
- *ℓ₁ ball* (rows with a stated bound F on their ℓ₁ norm): features are divided by F and clipped to ℓ₁ norm c in
  integers. B is 2, or 1 without a constant.

*Claim.* ‖x‖₂ ≤ 1, exactly. *Proof.* B blocks of at most c each (in a box every column is one; ‖·‖₂ ≤ ‖·‖₁ for the
ball) have ‖x‖₂² ≤ B·c² ≤ 1, as (2²⁰c)² ≤ 2⁴⁰/B. ∎ Each row is prepared from that row alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from expost.data.fixed_point import ONE, clip_l1
from expost.data.parts import unit_for
from expost.data.preparation import Preparation
from expost.data.rows import Norm

__all__ = ["BlockPreparation"]


@dataclass(frozen=True)
class BlockPreparation(Preparation):
    """How raw columns become rows of blocks: public, and computed without looking at any row.

    Parameters
    ----------
    bounds, feature_bound, target, n_columns
        As in :class:`~expost.data.preparation.Preparation`; ``feature_bound`` is 1 for a box.
    intercept_weight : float
        0 for no constant column; otherwise there is one, as long as any block whatever the number.
    shape : {"box", "l1"}
        Whether each feature is bounded by itself, which takes bounds, or their ℓ₁ norm is.

    Examples
    --------
    >>> from expost.data.bounds import Bounds
    >>> recipe = BlockPreparation(Bounds((0.0,), (10.0,)), 1.0, target=(0.0, 4.0), intercept_weight=1, n_columns=1)
    >>> rows = recipe.prepare_regression([[10.0], [5.0]], [4.0, 1.0])
    >>> (rows.x / ONE).round(3).tolist(), rows.norm
    ([[0.707, 0.707], [0.0, 0.707]], 'l2')
    >>> recipe.to_caller_units([recipe.divisor, 0.0])[0]  # 0 at x = 0 and 4 at x = 10
    array([0.4])
    """

    shape: Literal["box", "l1"] = "box"

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept_weight", 0.5 if self.intercept_weight else 0.0)
        super().__post_init__()
        if self.shape == "box" and (self.bounds is None or self.feature_bound != 1.0):
            raise ValueError("a box is made of bounds, with feature_bound=1")
        object.__setattr__(self, "intercept_weight", self.constant / ONE)

    @property
    def norm(self) -> Norm:
        """Prepared rows lie in the Euclidean ball; those of a single ℓ₁ block lie in the unit ℓ₁ ball."""
        return "l1" if self.shape == "l1" and not self.has_intercept else "l2"

    @property
    def declares(self) -> dict[str, Any]:
        """What holds of every row that it makes (:class:`~expost.data.rows.Rows`)."""
        shape = tuple((size, norm, self.unit) for size, norm in self.blocks)
        constant = (self.constant_column, self.unit) if self.has_intercept else None
        return {"norm": self.norm, "shape": shape, "constant": constant}

    @property
    def square(self) -> int:
        """B, the number of blocks that are each at most c long."""
        return (self.n_columns if self.shape == "box" else 1) + int(self.has_intercept)

    @property
    def unit(self) -> int:
        """c in fixed-point units: the largest norm of a block, and the constant."""
        return unit_for(self.square)

    @property
    def blocks(self) -> tuple[tuple[int, Literal["box", "l1"]], ...]:
        """Number of columns and norm of each block, in order."""
        if self.shape == "box":
            return ((self.n_parameters, "box"),)
        constant: tuple[tuple[int, Literal["box", "l1"]], ...] = ((1, "box"),) if self.has_intercept else ()
        return ((self.n_columns, "l1"), *constant)

    @property
    def typical_divisor(self) -> float:
        """How far rows were shrunk, for numbers that only steer a search (any value is sound).

        With bounds, columns of [−1, 1] are what people think in. Without, F may be the size of one entry or the sum of
        k equal ones: the geometric middle.
        """
        root = ONE / self.unit
        if self.bounds is not None:
            return root * self.feature_bound
        return root * math.sqrt(self.n_columns)

    @property
    def constant(self) -> int:
        """Value of the constant column in fixed-point units, 0 if there is none."""
        return self.unit if self.has_intercept else 0

    @property
    def constant_column(self) -> int | None:
        """Which column is the constant, if there is one."""
        return self.n_parameters - 1 if self.has_intercept else None

    @property
    def feature_limit(self) -> int:
        """Largest norm of the features in their shape, in fixed-point units."""
        return self.unit

    def describe(self) -> dict[str, Any]:
        """Say everything about the recipe in plain values that JSON can hold."""
        return {**super().describe(), "shape": self.shape}

    @property
    def factor(self) -> float:
        """What columns, scaled to their bounds if there are any, are multiplied by for a prepared row."""
        return self.unit / ONE / self.feature_bound

    def _within(self, units: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self.shape == "l1":
            return clip_l1(units, self.feature_limit)
        return np.clip(units, -self.unit, self.unit)
