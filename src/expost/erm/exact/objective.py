"""The gradient of L in integers, to any precision.

The same sums as in ``expost.erm.objective``, without the rounding. Rows are taken as multiples of
2⁻⁶⁰. Those of the library are multiples of 2⁻²⁰ and stay as they are; others move by half a unit an
entry, which moves the gradient by less than p·2⁻⁶¹(c‖θ‖ + |φ'|), a 250th of the rounding bound that
a certificate adds to it anyway. Everything else is exact up to a few units of 2^−bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from expost.erm._private import Private
from expost.erm._types import AnyArray, FloatArray
from expost.erm.objective import Objective
from expost.erm.units import to_floats, to_units

_ROW_BITS = 60  # |x| ≤ 1 in such units fits an int64


class ExactObjective(Private):
    """L + (ν/2)‖θ‖² over given rows, in integers. Private.

    Parameters
    ----------
    objective : Objective
        The same in floating point; its loss must provide ``derivative_in_units``.
    bits : int
        Units are 2^−bits.
    """

    def __init__(self, objective: Objective, bits: int) -> None:
        self._objective, self.bits, self.p = objective, bits, objective.p
        self._rows = np.rint(np.ldexp(objective.X, _ROW_BITS)).astype(np.int64)
        targets = np.rint(np.ldexp(objective.y, _ROW_BITS)).astype(np.int64)
        self._targets = targets.astype(object) << (bits - _ROW_BITS)
        self._counts = None if objective.counts is None else objective.counts.astype(np.int64).astype(object)
        self.lam = to_units(objective.lam, bits)

    def gradient(self, theta: AnyArray, nu: int) -> tuple[AnyArray, AnyArray]:
        """Return the predictions Xθ and the gradient ∇L(θ) + νθ.

        The gradient is off by less than c + 4 + 2√p units: a prediction is rounded down by less than one unit and moves
        φ' by c times that, φ' itself is off by at most four, and ‖x‖₂ ≤ 1; two more roundings for each entry.
        """
        bits, n = self.bits, self._objective.n
        predictions = np.concatenate([rows @ theta >> _ROW_BITS for rows in self._blocks()])
        slopes = self._counted(self._slopes(predictions))
        total: AnyArray = np.zeros(self.p, dtype=object)
        for rows, part in zip(self._blocks(), self._split(slopes), strict=True):
            total = total + part @ rows
        return predictions, total // (n << _ROW_BITS) + ((self.lam + nu) * theta >> bits)

    def along(self, step: AnyArray) -> AnyArray:
        """Return X·step."""
        return np.concatenate([rows @ step >> _ROW_BITS for rows in self._blocks()])

    def slope_along(self, theta: AnyArray, step: AnyArray, u: AnyArray, v: AnyArray, nu: int, t: float) -> int:
        """Return the derivative of L(θ + t·step) + (ν/2)‖θ + t·step‖² in t, times a constant."""
        bits, part = self.bits, to_units(t, self.bits)
        slopes = self._counted(self._slopes(u + (part * v >> bits)))
        penalty = (self.lam + nu) * int((theta + (part * step >> bits)) @ step) >> bits
        return int(slopes @ v) // self._objective.n + penalty

    def root(self, u: AnyArray, nu: int) -> FloatArray:
        """Return an upper triangular R in floating point with RᵀR close to the Hessian, XᵀDX/n + (λ + ν)I.

        By orthogonal transformation of the rows themselves, not of their products: an error of order u·‖·‖ in
        rows of length √λ and more, which is a small part of the Hessian in every direction even where λ is near u.
        """
        objective = self._objective
        weights = objective.loss.second_derivative(to_floats(u, self.bits), objective.y)
        if objective.counts is not None:
            weights = weights * objective.counts
        roots = np.sqrt(weights / objective.n)
        triangle = math.sqrt((self.lam + nu) / (1 << self.bits)) * np.eye(self.p)
        for block in objective.blocks():
            stacked = np.vstack([triangle, objective.X[block] * roots[block, None]])
            triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
        return triangle

    def rate(self, theta: AnyArray, nu: int) -> float:
        """Return θᵀH⁻¹θ/‖θ‖², H the Hessian at θ: how fast the minimiser's norm falls in ν, as a part of it."""
        largest = max(abs(value) for value in theta.tolist())
        scaled = np.array([value / largest for value in theta.tolist()])
        half, _ = lapack.dtrtrs(self.root(self.along(theta), nu), scaled, trans=1)
        return float(half @ half) / float(scaled @ scaled)

    def _slopes(self, u: AnyArray) -> AnyArray:
        return self._objective.loss.derivative_in_units(u, self._targets, self.bits)

    def _counted(self, values: AnyArray) -> AnyArray:
        return values if self._counts is None else values * self._counts

    def _blocks(self) -> Iterator[AnyArray]:
        """Yield the rows block by block: as Python integers they take many times their space."""
        for block in self._objective.blocks():
            yield self._rows[block].astype(object)

    def _split(self, values: AnyArray) -> Iterator[AnyArray]:
        for block in self._objective.blocks():
            yield values[block]
