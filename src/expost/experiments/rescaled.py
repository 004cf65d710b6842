"""Covariance perturbation as the paper's authors coded it; only for reproducing their curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.data.batches import RowSource
from expost.data.rows import Rows
from expost.erm.ball import into_ball
from expost.erm.problem import Problem
from expost.erm.sums import Sums, sums_of
from expost.mechanisms import Covariance, CovarianceGenerator
from expost.noise.laplace import Integers


@dataclass(frozen=True)
class RescaledCovariance(Covariance):
    """Noise on the second moments, whose normal equations are solved and the result rescaled into the ball.

    The solution of noisy normal equations need not be a minimum, and with ``full_matrix`` they are not symmetric; the
    paper's listing takes the minimum over the ball instead.
    """

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> RescaledGenerator:
        """Return the generator for private rows, or for their exact sums."""
        self.require_rows(rows, problem)
        return RescaledGenerator(self, rows if isinstance(rows, Sums) else sums_of(rows), problem)


class RescaledGenerator(CovarianceGenerator):
    """Hypotheses from noisy normal equations."""

    def hypothesis(self, values: Integers | NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve the noisy normal equations as they are, and rescale."""
        problem = self.problem
        gram, moment = self.layout.unpack(values, symmetric=False)
        hessian = gram / problem.n + problem.regularization * np.eye(problem.p)
        return into_ball(np.asarray(np.linalg.solve(hessian, moment / problem.n)), problem.radius)
