"""Eigenvalues of a symmetric matrix, without an error that depends on the matrix.

LAPACK's iteration is allowed to give up. It has not been seen to; if it does, the cyclic Jacobi
method takes its place, which converges for every symmetric matrix (Forsythe and Henrici 1960:
angles of at most π/4, as here).
"""

from __future__ import annotations

import math

import numpy as np

from expost.erm._rounding import UNIT
from expost.erm._types import FloatArray

_SWEEPS = 100  # about ten suffice; after that rounding has the last word


def symmetric_eigen(H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, ascending, and orthonormal eigenvectors (columns) of a finite symmetric matrix."""
    try:
        values, vectors = np.linalg.eigh(H)
    except np.linalg.LinAlgError:
        return _jacobi(H)
    return values, vectors


def _jacobi(H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same by plane rotations."""
    A, Q = H.copy(), np.eye(len(H))
    small = UNIT * float(np.abs(A).max(initial=0.0))
    for _ in range(_SWEEPS):
        if not (np.abs(A - np.diag(np.diag(A))) > small).any():
            break
        for i in range(len(A)):
            for j in range(i + 1, len(A)):
                if abs(A[i, j]) > small:
                    angle = 0.5 * math.atan2(2.0 * A[i, j], A[j, j] - A[i, i])
                    angle -= math.copysign(math.pi / 2.0, angle) if abs(angle) > math.pi / 4.0 else 0.0
                    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
                    A[:, [i, j]] = A[:, [i, j]] @ turn
                    A[[i, j], :] = turn.T @ A[[i, j], :]
                    Q[:, [i, j]] = Q[:, [i, j]] @ turn
    order = np.argsort(np.diag(A))
    return np.diag(A)[order], Q[:, order]
