"""The ridge minimiser from exact sums, by elimination in integers."""

from __future__ import annotations

import math

import numpy as np

from expost.erm._types import AnyArray, FloatArray
from expost.erm.exact.multiplier import on_ball
from expost.erm.sums import SUM_UNIT, Sums
from expost.erm.units import to_floats, to_units


def exact_ridge(sums: Sums, lam: float, radius: float) -> FloatArray:
    """Return the float64 vector nearest to the minimiser of ½θᵀ(XᵀX/n + λI)θ − θᵀXᵀy/n over the ball.

    Elimination of a positive definite matrix needs no pivots, and none falls below λ. Entries are off by a unit of
    2^−bits each time they are touched, p² units in all, which moves θ by a part of p²·2^−bits/λ: less than 2⁻⁶⁴.

    Examples
    --------
    >>> one = Sums(1, 1, np.array([[2**40]]), np.array([2**40]), 2**40)  # L(θ) = ½(θ − 1)² + ½θ²
    >>> exact_ridge(one, 1.0, np.inf)
    array([0.5])
    """
    p = sums.p
    spread = math.log2(1.0 / lam + 1.0) + abs(math.log2(min(radius, 1.0 / math.sqrt(lam))))
    bits = 256 + 4 * math.ceil(spread + math.log2(p + 1))
    scale = sums.n * SUM_UNIT
    matrix = (sums.gram.astype(object) << bits) // scale
    moment = (sums.moment.astype(object) << bits) // scale

    def against(vector: AnyArray, nu: int) -> AnyArray:
        shifted = matrix.copy()
        shifted[np.diag_indices(p)] += to_units(lam, bits) + nu
        return eliminate(shifted, vector, bits)

    def solve(nu: int) -> AnyArray:
        return against(moment, nu)

    def rate(theta: AnyArray, nu: int) -> float:
        return int(theta @ against(theta, nu)) / int(theta @ theta)

    if math.isinf(radius):
        return to_floats(solve(0), bits)
    most = to_units((1.0 + 1e-9) / radius, bits) + 1  # ν·radius ≤ ‖Xᵀy/n‖ ≤ 1
    return to_floats(on_ball(solve, rate, to_units(radius, bits), most, to_units(lam, bits), bits), bits)


def eliminate(matrix: AnyArray, vector: AnyArray, bits: int) -> AnyArray:
    """Solve a positive definite system in units of 2^−bits.

    Examples
    --------
    >>> one = 1 << 64
    >>> eliminate(np.array([[2 * one, one], [one, one]]), np.array([3 * one, 2 * one]), 64) // one
    array([1, 1], dtype=object)
    """
    p = len(vector)
    table = np.concatenate([matrix, vector[:, None]], axis=1)
    for k in range(p):
        parts = (table[k + 1 :, k] << bits) // table[k, k]
        table[k + 1 :, k + 1 :] -= parts[:, None] * table[k, k + 1 :] >> bits
    solution: AnyArray = np.zeros(p, dtype=object)
    for k in reversed(range(p)):
        rest = table[k, p] - (int(table[k, k + 1 : p] @ solution[k + 1 :]) >> bits)
        solution[k] = (rest << bits) // table[k, k]
    return solution
