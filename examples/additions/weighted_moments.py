"""Covariance perturbation that spends more of ε on Xᵀy: its entries are released k times as large.

*Released*: θ, a function of noisy XᵀX and k·Xᵀy. *Neighbours*: one row replaced. *Sensitivity*: a row adds at most
‖x‖₁² + k|y|‖x‖₁ ≤ 1 + k in ℓ₁, so 2(1 + k) for a replacement. *Theorem*: gradual release (`expost.noise.laplace`);
dividing by k and minimising over the ball is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from expost.mechanisms.moments.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.moments.statistics import BallMinimum
from expost.noise.laplace import Integers, NoisePath
from expost.noise.source import WordSource
from expost.passes.sums import SUM_UNIT, Sums, sums_over
from expost.solve.problem import Problem
from expost.table.rows import Rows

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

_WEIGHT = 4  # k


@dataclass(frozen=True)
class WeightedMoments(Covariance):
    """Noise on the second moments, and k times less of it on Xᵀy beside them."""

    name = "weighted_moments"

    def can_certify(self, problem: Problem) -> bool:
        """Return False, so that ``auto`` tests the risk: the ridge certificate splits ε in a way of its own."""
        return False

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Refuse."""
        raise ValueError("perturbation='weighted_moments' has no certificate; pass another method")

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε as covariance perturbation does, with scales 2(1 + k)/ε on XᵀX and that over k on Xᵀy."""
        p, radius = problem.p, problem.radius
        length = p * radius**2 + 2 * math.sqrt(p) * radius / _WEIGHT
        return 2 * (1 + _WEIGHT) * math.sqrt(2) * length / (problem.n * excess_risk)

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return that of covariance perturbation for the larger of the two scales."""
        return (1 + _WEIGHT) / 2 * super().gradient_epsilon(problem, excess_risk)

    def on(self, rows: Rows | Sums, problem: Problem) -> WeightedGenerator:
        """Return the generator for private rows, or for their exact sums."""
        self.require_rows(rows, problem)
        return WeightedGenerator(self, rows if isinstance(rows, Sums) else sums_over(rows), problem)


class WeightedGenerator(CovarianceGenerator):
    """Hypotheses from noisy XᵀX and k·Xᵀy."""

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath:
        """Draw the gradual release of the weighted statistics."""
        values = self.layout.pack(self.sums).astype(object)  # Python integers: k times a sum may exceed 64 bits
        values[-self.problem.p :] *= _WEIGHT
        return NoisePath(values, 2 * (1 + _WEIGHT) * SUM_UNIT, levels, random_state=source)

    def hypothesis(self, values: Integers | NDArray[np.float64]) -> BallMinimum | NDArray[np.float64]:
        """Take the weights off again, and minimise the noisy quadratic over the ball."""
        plain = values.astype(np.float64)
        plain[-self.problem.p :] /= _WEIGHT
        return super().hypothesis(plain)
