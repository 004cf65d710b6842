"""Covariance perturbation for ridge regression (theory A4, B3, B4): noise on XᵀX and Xᵀy, then an exact minimum.

*Released*: θ, a function of noisy XᵀX and Xᵀy. *Neighbours*: one row replaced. *Sensitivity*: 2 for each of the two
in ℓ₁, 4 together, i.e. 2⁴² units of 2⁻⁴⁰; the noise on both is DLap at rate ε_t/2⁴², which is the paper's split into
two halves of ε_t at sensitivity 2. *Theorem*: gradual release (``expost.noise.path``); the minimisation over the
ball is post-processing, also where the noisy matrix is indefinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.erm.ball import minimise_in_ball
from expost.erm.risk import RidgeRisk, Risk
from expost.erm.statistics import STATISTICS_SENSITIVITY, Layout
from expost.erm.sums import Sums
from expost.noise.laplace import Integers
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.search.plan import Problem
from expost.search.query import ErrorQuery

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
    """

    exact, charged = EXACT, CHARGED

    def __init__(self, sums: Sums, problem: Problem, *, full_matrix: bool = False) -> None:
        self._sums, self._problem = sums, problem
        self._layout = Layout(sums.p, full_matrix)
        self.risk = RidgeRisk(sums, problem.regularization, problem.radius)

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath:
        """Draw the gradual release of the statistics."""
        return NoisePath(self._layout.pack(self._sums), STATISTICS_SENSITIVITY, levels, random_state=source)

    def hypothesis(self, values: Integers) -> NDArray[np.float64]:
        """Minimise the noisy quadratic over the ball."""
        gram, moment = self._layout.unpack(values)
        problem = self._problem
        hessian = gram / problem.n
        hessian[np.diag_indices_from(hessian)] += problem.regularization
        return minimise_in_ball(hessian, moment / problem.n, problem.radius)

    def query(self) -> ErrorQuery:
        """Return the excess risk as a question a test may ask."""
        return risk_query(self.risk, self._problem)


def risk_query(risk: Risk, problem: Problem) -> ErrorQuery:
    """Return the excess risk of a hypothesis in the ball as a query, with its cheap bounds."""
    return ErrorQuery(
        risk.excess,
        sensitivity=problem.risk_sensitivity,
        error_bound=risk.excess_error_bound(problem.radius),
        lower=risk.lower,
        upper=risk.upper,
    )
