"""A minimum over the ball that is worked out only if somebody asks for it.

Most levels of a covariance path are hopeless: the noisy matrix is not positive definite, so the minimum lies on the
sphere, far from any optimum that lies well inside. Seeing that takes one look at the diagonal or one Cholesky
factorisation; the minimum itself takes an eigendecomposition. All of it is post-processing of released values.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from expost.erm.ball import minimise_in_ball
from expost.erm.statistics import Layout
from expost.noise.laplace import Integers


class BallMinimum:
    """The minimiser of ½θᵀHθ − gᵀθ over ‖θ‖₂ ≤ radius, H and g from noisy statistics; an array once asked for."""

    def __init__(
        self, values: Integers | NDArray[np.float64], layout: Layout, n: int, regularization: float, radius: float
    ) -> None:
        self._values, self._layout = values, layout
        self._n, self._regularization, self._radius = n, regularization, radius

    @cached_property
    def _quadratic(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram, moment = self._layout.unpack(self._values)
        hessian = gram / self._n
        hessian[np.diag_indices_from(hessian)] += self._regularization
        return hessian, moment / self._n

    @cached_property
    def _interior(self) -> NDArray[np.float64] | None:
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
    def _minimum(self) -> NDArray[np.float64]:
        if self._interior is not None:
            return self._interior
        theta = minimise_in_ball(*self._quadratic, self._radius)
        norm = float(np.linalg.norm(theta))
        if norm < self._radius * (1 - 1e-10):
            # H is singular to working precision, and a minimum inside was found after all. Bounds rely on
            # ``on_sphere``, and any point may be the hypothesis, so it goes where it was said to be.
            theta = theta * (self._radius / norm) if norm > 0 else self._radius * np.eye(1, len(theta)).ravel()
        return theta

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        return np.array(self._minimum, dtype=dtype, copy=copy)
