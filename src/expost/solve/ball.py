"""The smallest value of a quadratic over a ball, found globally even when the quadratic is not convex.

A noisy covariance is often indefinite, so "solve and rescale" is not the minimum over the ball. The
minimiser θ of ½θᵀHθ − gᵀθ over ‖θ‖₂ ≤ R is characterised by (Moré and Sorensen 1983): for some μ ≥ 0, (H +
μI)θ = g, H + μI ⪰ 0 and μ(R − ‖θ‖) = 0. With H = QWQᵀ the multiplier solves one scalar equation.

Matrices may be private, so eigenvalues may not raise an error that depends on them. LAPACK's iteration is allowed to
give up. It has not been seen to; if it does, the cyclic Jacobi method takes its place, which converges for every
symmetric matrix (Forsythe and Henrici 1960: angles of at most π/4, as here).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from expost.numeric import UNIT, FloatArray

_SWEEPS = 100  # of Jacobi's method: about ten suffice; after that rounding has the last word
_MAX_ITERATIONS = 200  # of Newton's for the multiplier, which converges quadratically


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


def minimise_in_ball(H: FloatArray, g: FloatArray, radius: float) -> FloatArray:
    """Return a global minimiser of ½θᵀHθ − gᵀθ over ‖θ‖₂ ≤ radius.

    Parameters
    ----------
    H : array of shape (p, p)
        Symmetric, possibly indefinite (its symmetric part is used).
    g : array of shape (p,)
    radius : float
        At least 0; ``inf`` is allowed if H is positive definite.

    Returns
    -------
    array of shape (p,)
        The minimiser; its norm exceeds the radius by rounding at most. Where the minimiser is not unique (g
        orthogonal to the lowest eigenspace of an indefinite H) one of them, chosen deterministically.

    Examples
    --------
    >>> import numpy as np
    >>> minimise_in_ball(np.eye(2), np.array([3.0, 4.0]), 1.0).round(12)
    array([0.6, 0.8])
    >>> minimise_in_ball(np.diag([4.0, 2.0]), np.array([2.0, 1.0]), 1.0)
    array([0.5, 0.5])
    """
    H, g = np.asarray(H, dtype=np.float64), np.asarray(g, dtype=np.float64)
    p = g.shape[0]
    if H.shape != (p, p):
        raise ValueError("H must have shape (p, p) and g shape (p,)")
    if math.isnan(radius) or radius < 0.0:
        raise ValueError("radius must be non-negative")
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        raise ValueError("H and g must be finite")
    minimum = minimum_in_ball(H, g, radius)
    if minimum is None:
        raise ValueError("without a radius the minimum exists only if H is positive definite")
    return minimum


def minimum_in_ball(H: FloatArray, g: FloatArray, radius: float) -> FloatArray | None:
    """Return the same, or None where :func:`minimise_in_ball` has an error: the matrix may be private."""
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return None
    H = 0.5 * (H + H.T)
    if radius == 0.0:
        return np.zeros(len(g))
    _, inside, failed = lapack.dposv(H, g)  # fails where H is not positive definite
    if not failed and np.isfinite(inside).all() and float(np.linalg.norm(inside)) <= radius:
        return np.asarray(inside)
    if math.isinf(radius):
        return None
    values, vectors = symmetric_eigen(H)
    return np.asarray(vectors @ _minimise_diagonal(values, vectors.T @ g, radius))


def into_ball(theta: FloatArray, radius: float) -> FloatArray:
    """Rescale θ to the ball's surface if it lies outside."""
    norm = math.sqrt(float(theta @ theta))  # a function call less than NumPy's norm: it is asked at every level
    return theta if norm <= radius else theta * (radius / norm)


def _minimise_diagonal(values: FloatArray, c: FloatArray, radius: float) -> FloatArray:
    """Solve the problem in eigenvector coordinates; ``values`` ascending.

    The multiplier is written μ = max(0, −values[0]) + δ with δ ≥ 0, so that denominators a + δ are formed
    from eigenvalue *gaps*: near the hard case δ is far below the rounding error of μ, and only this form
    resolves it.
    """
    indefinite = values[0] < 0.0
    a = values - min(0.0, float(values[0]))
    singular = a == 0.0
    if not np.any(c[singular]):
        # At δ = 0 the equation has a finite solution on the other coordinates.
        with np.errstate(over="ignore"):
            theta = np.divide(c, a, out=np.zeros_like(c), where=~singular)
        length = float(np.linalg.norm(theta)) if np.isfinite(theta).all() else math.inf
        if length <= radius:
            if indefinite:
                # Hard case: the rest of the radius goes along the lowest eigenvector, in either direction.
                theta[0] += math.sqrt((radius - length) * (radius + length))
            return theta
    delta = _secular_root(a, c / radius)
    theta = np.divide(c, a + delta, out=np.zeros_like(c), where=c != 0.0)
    return np.asarray(theta * (radius / np.linalg.norm(theta)))


def _secular_root(a: FloatArray, c: FloatArray) -> float:
    """Return δ > 0 with ‖c/(a + δ)‖ = 1, given a ≥ 0 and ‖c/a‖ > 1.

    Newton on 1/‖c/(a + δ)‖, which is increasing and concave in δ (Conn, Gould, Toint, *Trust-Region
    Methods*, §7.3): started left of the root it increases towards it, never past it but for rounding, and
    converges quadratically.
    """
    used = c != 0.0
    a, c = a[used], np.abs(c[used])
    # Each coordinate alone puts the root at c − a or further right; the smallest denominator bounds it above.
    delta = max(0.0, float(np.max(c - a)))
    highest = max(delta, float(np.linalg.norm(c)) - float(np.min(a)))
    for _ in range(_MAX_ITERATIONS):
        ratios = c / (a + delta)
        length = float(np.linalg.norm(ratios))
        if length <= 1.0 + 1e-15:
            break
        step = (length - 1.0) * length * length / float(np.sum(ratios * ratios / (a + delta)))
        proposal = min(delta + step, highest)
        if proposal == delta:
            break
        delta = proposal
    return delta
