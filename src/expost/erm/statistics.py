"""How exact sums are laid out as one integer vector for release, and read back after noise was added.

Default layout (theory B4): ``(A_ii; 2·A_ij for i < j; moment)``, A = XᵀX, of length p(p+1)/2 + p. Doubling
the off-diagonals keeps the sensitivity and makes the noise in A_ij half of what the vector carries. With
``full_matrix=True`` all p² entries of A come first, then the moment; the two noisy copies of A_ij are
averaged.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from expost.erm._types import AnyArray, FloatArray, IntegerArray
from expost.erm.sums import SUM_UNIT, Sums


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


def to_vector(sums: Sums, *, full_matrix: bool = False) -> IntegerArray:
    """Return ``Layout(sums.p, full_matrix).pack(sums)``.

    Examples
    --------
    >>> import numpy as np
    >>> to_vector(Sums(1, 1, np.array([[4]]), np.array([-2]), 1))
    array([ 4, -2])
    """
    return Layout(sums.p, full_matrix).pack(sums)


def from_vector(values: AnyArray, p: int, full_matrix: bool = False) -> tuple[FloatArray, FloatArray]:
    """Return ``Layout(p, full_matrix).unpack(values)``; keep a :class:`Layout` to do this many times.

    Examples
    --------
    >>> import numpy as np
    >>> from_vector(np.array([2**40, 2**39]), 1)
    (array([[1.]]), array([0.5]))
    """
    return Layout(p, full_matrix).unpack(values)
