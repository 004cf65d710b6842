"""Covariance perturbation for ridge regression (theory A4, B3, B4): noise on XᵀX and Xᵀy, then an exact minimum.

*Released*: θ, a function of noisy XᵀX and Xᵀy. *Neighbours*: one row replaced. *Sensitivity*: 2 for each of the two
in ℓ₁, 4 together, i.e. 2⁴² units of 2⁻⁴⁰; the noise on both is DLap at rate ε_t/2⁴², which is the paper's split into
two halves of ε_t at sensitivity 2. *Theorem*: gradual release (``expost.noise.path``); the minimisation over the
ball is post-processing, also where the noisy matrix is indefinite.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from expost.erm.risk import RidgeRisk
from expost.erm.statistics import STATISTICS_SENSITIVITY, Layout
from expost.erm.sums import Sums
from expost.noise.laplace import Integers
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.search.lazy import BallMinimum
from expost.search.plan import Problem
from expost.search.query import ErrorQuery

Solve = Literal["ball", "rescaled"]

EXACT = ("rows in fixed point", "XᵀX and Xᵀy", "generation noise", "test noise and comparisons")
CHARGED = ("excess risk: rounded to a public grid, floating-point error bounded and charged to its sensitivity",)


class CovarianceGenerator:
    """Hypotheses from noisy second moments.

    Parameters
    ----------
    sums
        Exact sums of the private rows.
    problem
        The public side.
    full_matrix
        Noise on all p² entries, as in the paper, instead of the upper triangle at half the variance (theory B4).
    solve
        ``"ball"``: the minimum over the ball, as the paper's algorithm says. ``"rescaled"``: the solution of the noisy
        normal equations, minimum or not and (with ``full_matrix``) symmetric or not, rescaled into the ball, as its
        authors' code does; for reproducing their curves.
    """

    exact, charged = EXACT, CHARGED

    def __init__(self, sums: Sums, problem: Problem, *, full_matrix: bool = False, solve: Solve = "ball") -> None:
        if solve not in get_args(Solve):
            raise ValueError(f"solve must be one of {list(get_args(Solve))}, got {solve!r}")
        self._solve = solve
        self.sums, self.problem = sums, problem
        self._layout = Layout(sums.p, full_matrix)
        self.risk = RidgeRisk(sums, problem.regularization, problem.radius)

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath:
        """Draw the gradual release of the statistics."""
        return NoisePath(self._layout.pack(self.sums), STATISTICS_SENSITIVITY, levels, random_state=source)

    @property
    def size(self) -> int:
        """Number of statistics."""
        return self._layout.size

    def shot(self, noise: NDArray[np.float64]) -> BallMinimum | NDArray[np.float64]:
        """Return the hypothesis for given noise, in units of the sensitivity; for simulations, which draw their own."""
        return self.hypothesis(self._layout.pack(self.sums) + STATISTICS_SENSITIVITY * noise)

    def hypothesis(self, values: Integers | NDArray[np.float64]) -> BallMinimum | NDArray[np.float64]:
        """Minimise the noisy quadratic over the ball."""
        problem = self.problem
        if self._solve == "ball":
            return BallMinimum(values, self._layout, problem.n, problem.regularization, problem.radius)
        gram, moment = self._layout.unpack(values, symmetric=False)
        hessian = gram / problem.n + problem.regularization * np.eye(problem.p)
        return into_ball(np.asarray(np.linalg.solve(hessian, moment / problem.n)), problem.radius)

    def query(self) -> ErrorQuery:
        """Return the excess risk as a question a test may ask."""
        problem, risk = self.problem, self.risk
        # Strong convexity at the optimum of the ball: L(θ) − L(θ*) ≥ (λ/2)‖θ − θ*‖² ≥ (λ/2)(R − ‖θ*‖)² on the sphere.
        inside = float(np.linalg.norm(risk.optimum)) + risk.distance_bound
        on_sphere = 0.5 * problem.regularization * max(0.0, problem.radius * (1 - 1e-9) - inside) ** 2 * (1 - 1e-9)

        def lower(theta: BallMinimum | NDArray[np.float64]) -> float:
            return on_sphere if isinstance(theta, BallMinimum) and theta.on_sphere else 0.0

        return ErrorQuery(
            lambda theta: risk.excess(np.asarray(theta)),
            sensitivity=problem.risk_sensitivity,
            error_bound=risk.excess_error_bound(problem.radius),
            lower=lower,
        )


def into_ball(theta: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Rescale θ to the ball's surface if it lies outside.

    Examples
    --------
    >>> into_ball(np.array([3.0, 4.0]), 1.0)
    array([0.6, 0.8])
    """
    norm = math.sqrt(float(theta @ theta))  # a function call less than NumPy's norm: it is asked at every level
    return theta if norm <= radius else theta * (radius / norm)
