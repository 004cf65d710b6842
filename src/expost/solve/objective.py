"""L(θ) = mean φ(xᵀθ, y) + (λ/2)‖θ‖² over float64 rows, and its gradient with a rigorous rounding bound.

Sums over rows run in blocks of 8192 whose results are added, so that the error bounds grow like 8192 + n/8192
instead of n, whatever order the BLAS sums in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.numeric import BLOCK, INFLATION, ROW_SLACK, FloatArray, Private, check, gamma
from expost.solve.error_bounds import gradient_rounding
from expost.solve.losses import Loss
from expost.table.rows import Norm


class Gradient(NamedTuple):
    """A computed gradient and a bound on the ℓ₂ norm of its rounding error."""

    vector: FloatArray
    rounding: float

    def certificate(
        self, theta: FloatArray, radius: float, rho: float, *, careful: bool = False
    ) -> tuple[float, float]:
        """Return the multiplier ν and a certified bound on ‖∇L(θ) + νθ‖₂, this being the gradient at θ.

        Any ν ≥ 0 is admissible on the sphere; the one that makes the residual shortest is taken. Inside, ν = 0.

        Parameters
        ----------
        theta
            The point.
        radius, rho
            Of the ball (``inf`` for none), and how far off ‖θ‖ may be for θ to count as on the sphere.
        careful
            Sum the products in ν exactly, so that ν has all its digits whatever p is.
        """
        square = float(theta @ theta)
        norm = math.sqrt(square)
        # The computed norm is within γ(p+2) of the true one, so half of ρ here certifies all of it.
        on_sphere = square > 0.0 and abs(norm - radius) <= 0.5 * rho
        along = math.fsum((self.vector * theta).tolist()) if careful else float(self.vector @ theta)
        nu = max(0.0, -along / square) if on_sphere else 0.0
        bound = float(np.linalg.norm(self.vector + nu * theta)) * (1.0 + gamma(theta.size + 4))
        return nu, INFLATION * (bound + self.rounding + gamma(3) * nu * norm)


def check_shapes(X: FloatArray, y: FloatArray) -> None:
    """Raise unless there are n rows of p columns and n targets."""
    if np.ndim(X) != 2 or np.shape(y) != np.shape(X)[:1] or min(np.shape(X)) < 1:
        raise ValueError("X must have shape (n, p) and y shape (n,), with n, p >= 1")


class Objective(Private):
    """The objective over given rows. Private.

    Parameters
    ----------
    loss : Loss
    X : array of shape (n, p)
        Rows with ‖x‖₁ ≤ 1.
    y : array of shape (n,)
        Targets in [−1, 1], or ±1 for a binary loss.
    lam : float
        λ > 0.
    counts : array of shape (n,), optional
        How many rows each given one stands for, whole numbers (``expost.passes.engine``); one if not given. Products
        with them are rounded once more, which ``summation_length`` allows for.
    norm : {"l1", "l2"}
        Which norm of a row is at most 1. Bounds of true risks (``expost.solve.minimiser``) need ``"l1"``.
    """

    def __init__(
        self,
        loss: Loss,
        X: FloatArray,
        y: FloatArray,
        lam: float,
        counts: FloatArray | None = None,
        norm: Norm = "l1",
    ) -> None:
        X = np.ascontiguousarray(X, dtype=np.float64)
        y = np.ascontiguousarray(y, dtype=np.float64)
        check_shapes(X, y)
        check(lam=lam)
        self.loss, self.X, self.y, self.lam = loss, X, y, lam
        self.n: int = X.shape[0] if counts is None else int(counts.sum())
        self.counts = counts
        self.p: int = X.shape[1]
        # Written so that NaN fails: every bound in this room rests on these.
        order = 1 if norm == "l1" else 2
        if not all((np.linalg.norm(X[block], ord=order, axis=1) <= 1.0 + ROW_SLACK).all() for block in self.blocks()):
            raise ValueError(f"every row of X must have {norm} norm at most 1")
        if loss.labels == "binary" and not (np.abs(y) == 1.0).all():
            raise ValueError(f"the {loss.name} loss needs targets -1 and 1")
        if not (np.abs(y) <= 1.0).all():
            raise ValueError("every target must lie in [-1, 1]")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(loss={self.loss!r}, n={self.n}, p={self.p}, lam={self.lam})"

    def blocks(self) -> Iterator[slice]:
        """Yield the blocks of rows that are summed in one go."""
        for start in range(0, len(self.y), BLOCK):
            yield slice(start, min(len(self.y), start + BLOCK))

    def mean(self, values: FloatArray) -> float:
        """Return the mean over rows, summed in blocks."""
        counted = self._counted(values)
        return math.fsum(float(counted[block].sum()) for block in self.blocks()) / self.n

    def _counted(self, values: FloatArray) -> FloatArray:
        return values if self.counts is None else values * self.counts

    def count(self, rows: NDArray[np.bool_]) -> int:
        """Return how many rows are meant, exactly."""
        return int(np.count_nonzero(rows)) if self.counts is None else int(self.counts[rows].sum())

    def predictions(self, theta: FloatArray) -> FloatArray:
        """Return Xθ."""
        return np.asarray(self.X @ theta)

    def outcomes(self, theta: FloatArray) -> tuple[int, int, int, int]:
        """Return how many hits, false alarms, misses and others there are, as :meth:`errors` counts."""
        alarm, positive = self.predictions(theta) > 0.0, self.y > 0.0
        kinds = (alarm & positive, alarm & ~positive, ~alarm & positive, ~alarm & ~positive)
        hits, false_alarms, misses, quiet = (self.count(kind) for kind in kinds)
        return hits, false_alarms, misses, quiet

    def errors(self, theta: FloatArray) -> int:
        """Return how many rows θ misclassifies, exactly if it is on the grid of `expost.numeric.to_grid`."""
        return self.count((self.predictions(theta) > 0.0) != (self.y > 0.0))

    def mean_of(
        self, term: Callable[[FloatArray, FloatArray], FloatArray], theta: FloatArray, most: float = math.inf
    ) -> float:
        """Return the mean of a term of predictions and targets."""
        return self.mean(term(self.predictions(theta), self.y))

    def target_mean(self) -> float:
        """Return ȳ."""
        return self.mean(self.y)

    def target_variance(self) -> float:
        """Return the mean of (y − ȳ)²."""
        return self.mean((self.y - self.target_mean()) ** 2)

    def gradient(self, theta: FloatArray, u: FloatArray) -> Gradient:
        """Return ∇L(θ) and its rounding bound; ``u`` must be freshly computed predictions of θ."""
        slopes = self.loss.derivative(u, self.y)
        total = self._sum_of_rows(slopes)
        mean_slope = self.mean(np.abs(slopes))
        norm = float(np.linalg.norm(theta))
        rounding = gradient_rounding(self.loss, self.n, self.p, self.lam, norm, mean_slope)
        return Gradient(total / self.n + self.lam * theta, rounding)

    def mean_gradient(self, u: FloatArray) -> FloatArray:
        """Return mean φ'·x at predictions ``u``: the gradient without the penalty."""
        return self._sum_of_rows(self.loss.derivative(u, self.y)) / self.n

    def _sum_of_rows(self, weights: FloatArray) -> FloatArray:
        """Return Σ weight·x, in blocks."""
        total = np.zeros(self.p)
        counted = self._counted(weights)
        for block in self.blocks():
            total += counted[block] @ self.X[block]
        return total

    def curvature_at(self, u: FloatArray) -> FloatArray:
        """Return XᵀDX/n, D the second derivatives at predictions ``u``."""
        return self._weighted_gram(np.sqrt(self.loss.second_derivative(u, self.y)))

    def covariance(self) -> FloatArray:
        """Return Σ = XᵀX/n."""
        return self._weighted_gram(None)

    def _weighted_gram(self, roots: FloatArray | None) -> FloatArray:
        if self.counts is not None:
            roots = np.sqrt(self.counts) if roots is None else roots * np.sqrt(self.counts)
        total = np.zeros((self.p, self.p))
        for block in self.blocks():
            rows = self.X[block] if roots is None else self.X[block] * roots[block, None]
            total += rows.T @ rows
        return np.asarray(total / self.n)

    def slope_along(self, theta: FloatArray, step: FloatArray, u: FloatArray, v: FloatArray, t: float) -> float:
        """Return the derivative of L(θ + t·step) in t, from predictions u = Xθ and v = X·step."""
        data = self.mean(self.loss.derivative(u + t * v, self.y) * v)
        return data + self.lam * float((theta + t * step) @ step)
