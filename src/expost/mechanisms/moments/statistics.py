"""Exact sums as one integer vector for release, how far one row moves it, and what is read off it once it is noisy.

Default layout (theory B4): ``(A_ii; 2·A_ij for i < j; moment)``, A = XᵀX, of length p(p+1)/2 + p. Doubling
the off-diagonals keeps the sensitivity and makes the noise in A_ij half of what the vector carries. With
``full_matrix=True`` all p² entries of A come first, then the moment; the two noisy copies of A_ij are
averaged.

The minimum over the ball is worked out only if somebody asks for it. Most levels of a covariance path are hopeless: the
noisy matrix is not positive definite, so the minimum lies on the sphere, far from any optimum that lies well inside.
Seeing that takes one look at the diagonal or one Cholesky factorisation; the minimum itself takes an
eigendecomposition. All of it is post-processing of released values.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, cast

import numpy as np
from scipy.linalg import lapack

from expost.numeric import AnyArray, FloatArray, IntegerArray
from expost.passes.sums import SUM_UNIT, Sums
from expost.solve.ball import minimise_in_ball


class Layout:
    """The release layout for p features, with its index arrays worked out once.

    Parameters
    ----------
    p : int
        Number of features.
    full_matrix : bool
        Lay out all p² entries of XᵀX instead of the diagonal and the doubled upper triangle.

    Attributes
    ----------
    size : int
        Length of the vector.

    Examples
    --------
    >>> import numpy as np
    >>> sums = Sums(1, 2, np.array([[4, 3], [3, 9]]), np.array([5, 6]), 1)
    >>> Layout(2).pack(sums)
    array([4, 9, 6, 5, 6])
    >>> gram, moment = Layout(2).unpack(Layout(2).pack(sums))
    >>> gram * 2**40
    array([[4., 3.],
           [3., 9.]])
    """

    def __init__(self, p: int, full_matrix: bool = False) -> None:
        if p < 1:
            raise ValueError("p must be at least 1")
        self.p = p
        self.full_matrix = full_matrix
        self._upper = np.triu_indices(p, 1)
        self._pairs = p * p if full_matrix else p * (p + 1) // 2
        self.size = self._pairs + p

    def __repr__(self) -> str:
        return f"Layout(p={self.p}, full_matrix={self.full_matrix})"

    def pack(self, sums: Sums) -> IntegerArray:
        """Return the sums as one integer vector in units of 2⁻⁴⁰ (int64, or object dtype if the sums are)."""
        if sums.p != self.p:
            raise ValueError(f"sums over {sums.p} features do not fit a layout for {self.p}")
        if self.full_matrix:
            parts = [sums.gram.ravel(), sums.moment]
        else:
            # No overflow: |x_i·x_j| ≤ 1/4 off the diagonal, so the doubled entries are below n·2³⁹.
            parts = [sums.gram.diagonal(), 2 * sums.gram[self._upper], sums.moment]
        return cast(IntegerArray, np.concatenate(parts))

    def diagonal_allows(self, values: AnyArray, floor: float) -> bool:
        """Whether every diagonal entry of the matrix in ``values`` exceeds ``floor``; no matrix is built."""
        diagonal = values[: self.p] if not self.full_matrix else values[: self._pairs : self.p + 1]
        return bool((diagonal.astype(np.float64) > floor * SUM_UNIT).all())

    def unpack(self, values: AnyArray, *, symmetric: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return a (noisy) vector as a symmetric matrix and a moment: sums over rows, in float64.

        Parameters
        ----------
        values : array of shape (size,)
            Integers in units of 2⁻⁴⁰.
        symmetric : bool, default=True
            False leaves a noisy full matrix as it is; the triangle is symmetric either way.

        Returns
        -------
        gram : array of shape (p, p)
            Symmetric unless told otherwise; an estimate of the sum of x·xᵀ over rows (not their mean).
        moment : array of shape (p,)
            An estimate of the sum of y·x.
        """
        if values.shape != (self.size,):
            raise ValueError(f"expected {self.size} values, got shape {values.shape}")
        scaled = values.astype(np.float64)
        scaled /= SUM_UNIT  # a power of two: no rounding
        pairs, moment = scaled[: self._pairs], scaled[self._pairs :]
        if self.full_matrix:
            square = pairs.reshape(self.p, self.p)
            return ((square + square.T) / 2.0 if symmetric else square), moment
        gram = np.zeros((self.p, self.p))
        gram[self._upper] = pairs[self.p :] / 2.0
        gram += gram.T
        np.fill_diagonal(gram, pairs[: self.p])
        return gram, moment


STATISTICS_SENSITIVITY: Final = 2**42
"""ℓ₁-sensitivity of either layout to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds the vector (x_i²; 2x_i x_j, i < j; y·x_i), whose ℓ₁ norm is Σ x_i² + Σ_{i<j} 2|x_i||x_j|
+ |y|Σ|x_i| = ‖x‖₁² + |y|·‖x‖₁ ≤ 2. In the full layout the off-diagonal entries x_i x_j and x_j x_i appear
once each instead of doubled, with the same total. Replacing a row subtracts one such vector and adds
another: at most 4, which is 4·2⁴⁰ units. The rows (e₁, 1) and (e₂, 1) attain it. ∎
"""

TRACE_SENSITIVITY: Final = 2**40
"""Sensitivity of the trace of XᵀX to the replacement of one row, in units of 2⁻⁴⁰.

Proof. One row adds ‖x‖₂², between 0 and 1. ∎
"""

PART_SENSITIVITY: Final = 2**41
"""ℓ₁-sensitivity of XᵀX alone (off-diagonals doubled), and of Xᵀy alone, in units of 2⁻⁴⁰: each moves by at most 2."""


class BallMinimum:
    """The minimiser of ½θᵀHθ − gᵀθ over ‖θ‖₂ ≤ radius, H and g from noisy statistics; an array once asked for."""

    def __init__(self, values: AnyArray, layout: Layout, n: int, regularization: float, radius: float) -> None:
        self._values, self._layout = values, layout
        self._n, self._regularization, self._radius = n, regularization, radius

    @cached_property
    def _quadratic(self) -> tuple[FloatArray, FloatArray]:
        gram, moment = self._layout.unpack(self._values)
        hessian = gram / self._n
        hessian[np.diag_indices_from(hessian)] += self._regularization
        return hessian, moment / self._n

    @cached_property
    def _interior(self) -> FloatArray | None:
        """The unconstrained minimiser if it exists and lies inside."""
        if not self._layout.diagonal_allows(self._values, -self._regularization * self._n):
            return None  # a diagonal entry of H is not positive, so H is not positive definite
        _, solution, failed = lapack.dposv(*self._quadratic)
        inside = not failed and np.linalg.norm(solution) <= self._radius
        return np.asarray(solution) if inside else None

    @property
    def on_sphere(self) -> bool:
        """Whether the hypothesis has norm ``radius`` (to ten digits)."""
        return self._interior is None

    @cached_property
    def _minimum(self) -> FloatArray:
        if self._interior is not None:
            return self._interior
        theta = minimise_in_ball(*self._quadratic, self._radius)
        norm = float(np.linalg.norm(theta))
        if norm < self._radius * (1 - 1e-10):
            # H is singular to working precision, and a minimum inside was found after all. Bounds rely on
            # ``on_sphere``, and any point may be the hypothesis, so it goes where it was said to be.
            theta = theta * (self._radius / norm) if norm > 0 else self._radius * np.eye(1, len(theta)).ravel()
        return theta

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self._minimum, dtype=dtype, copy=copy)
