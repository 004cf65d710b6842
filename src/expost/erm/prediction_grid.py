"""Hypotheses on grids on which predictions are exact in float64, whatever the order of summation.

Rows are multiples of 2⁻²⁰ with ‖x‖₁ ≤ 1. Let θ be a multiple of a power of two g with ‖θ‖_∞ ≤ 2³³·g. Then every product
and every partial sum of xᵀθ is a multiple of 2⁻²⁰g of at most 2⁵³ such units: float64 holds it exactly, in any order
and with or without fused multiply-add. Under ‖x‖₂ ≤ 1 it takes ‖θ‖_∞ ≤ 2ᵇ·g, b = 33 − ⌈½log₂ p⌉, as ‖x‖₁ ≤ √p.

*Any θ* is the sum of two such vectors, the second on a grid finer by 2⁻ᵇ, and a rest of at most 2⁻²ᵇ‖θ‖_∞ a
coordinate. So xᵀθ is computed as the sum of two exact numbers, rounded once: the same bits on every machine, off by
(2⁻⁵³ + √p·2⁻²ᵇ)·‖θ‖₂ at most (:func:`prediction_rounding`).
"""

from __future__ import annotations

import math

import numpy as np

from expost.data.rows import Norm
from expost.erm._rounding import INFLATION, UNIT
from expost.erm._types import FloatArray

_STEPS_BITS = 33  # 2²⁰ units of a row times 2³³ steps of θ is 2⁵³


def exact_bits(p: int, norm: Norm) -> int:
    """Return how many binary digits θ may have for predictions to be exact.

    Examples
    --------
    >>> exact_bits(100, "l1"), exact_bits(100, "l2"), exact_bits(5000, "l2")
    (33, 29, 26)
    """
    return _STEPS_BITS - (math.ceil(math.log2(max(1, p)) / 2) if norm == "l2" else 0)


def to_grid(theta: FloatArray, radius: float, *, norm: Norm = "l1") -> FloatArray:
    """Round θ with ‖θ‖_∞ ≤ radius to the public grid on which predictions are exact; a finer θ is never needed.

    Examples
    --------
    >>> import numpy as np
    >>> float(np.abs(to_grid(np.array([0.1, -2.0]), 7.0) - [0.1, -2.0]).max()) < 1e-9
    True
    """
    bits = exact_bits(np.size(theta), norm)
    step = math.ldexp(1.0, math.frexp(radius * (1.0 + 1e-6))[1] - bits)
    steps = np.clip(np.rint(np.asarray(theta) / step), -(2.0**bits), 2.0**bits)
    return np.asarray(steps * step)


def exact_parts(theta: FloatArray) -> FloatArray:
    """Return θ as one or two columns, predictions of which are exact for rows with ‖x‖₂ ≤ 1.

    Examples
    --------
    >>> exact_parts(np.array([0.1, 0.5])).sum(axis=1).tolist()
    [0.1, 0.5]
    >>> exact_parts(np.array([0.25, 0.5])).shape
    (2, 1)
    """
    largest = float(np.abs(theta).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return np.asarray(theta, dtype=np.float64)[:, None]
    coarse = to_grid(theta, largest, norm="l2")
    rest = theta - coarse  # exact: what a number is rounded by has no more digits than the number
    if not rest.any():
        return coarse[:, None]
    step = math.ldexp(1.0, math.frexp(largest * (1.0 + 1e-6))[1] - exact_bits(theta.size, "l2"))
    return np.column_stack([coarse, to_grid(rest, 0.5 * step, norm="l2")])


def prediction_rounding(p: int) -> float:
    """Return r such that computed predictions are off by at most r·‖θ‖₂ for rows with ‖x‖₂ ≤ 1; p below 2²⁰.

    Examples
    --------
    >>> prediction_rounding(50) < 2e-16, prediction_rounding(5000) < 1e-13
    (True, True)
    """
    # |xᵀrest| ≤ ‖rest‖₂ ≤ √p·2^−2b·‖θ‖_∞, twice that for steps that are clipped at the end of the grid
    return INFLATION * (UNIT + 2.0 * math.sqrt(p) * 2.0 ** (-2 * exact_bits(p, "l2")))
