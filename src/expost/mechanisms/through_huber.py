"""Objective perturbation for the squared loss, through Huber's (theory C2).

What is released, and why it costs what it does, is in `expost.mechanisms.objective`; why the model is good enough for
the *squared* loss in `expost.stopping.certificates.through_huber`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.data.fixed_point import ONE
from expost.data.rows import Rows
from expost.erm.distinct import distinct
from expost.erm.error_bounds import RidgeErrors
from expost.erm.geometry import Geometry, l1_ball
from expost.erm.losses import Loss, SquaredLoss
from expost.erm.measures import mean_beyond
from expost.erm.objective import Objective
from expost.erm.perturbed import PerturbedObjective
from expost.erm.problem import Problem
from expost.erm.sums import Sums
from expost.mechanisms.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.objective import CERTIFIED, ObjectivePerturbation, Shot, require_shape
from expost.stopping.certificates.ridge import RidgeCertificate
from expost.stopping.certificates.through_huber import HuberCertificate, through_huber

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

_CLEARLY_LESS = 0.75


class ThroughHuberGenerator:
    """The private side: distinct rows, and their second moments once they are asked for."""

    def __init__(self, mechanism: ThroughHuber, rows: Rows, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        self._rows = rows
        kinds, targets, self._counts = distinct(rows)
        self._x, self._y = kinds.astype(np.float64) / ONE, targets.astype(np.float64) / ONE

    def perturbed(self, loss: Loss) -> PerturbedObjective:
        """Return what is minimised with another loss."""
        return PerturbedObjective(Objective(loss, self._x, self._y, 1.0, self._counts, "l2"))

    def mean_beyond(self, theta: NDArray[np.float64], limit: float) -> float:
        """Return q(θ)."""
        return mean_beyond(Objective(SquaredLoss(), self._x, self._y, 1.0, self._counts, "l2"), theta, limit)

    @cached_property
    def by_moments(self) -> CovarianceGenerator:
        """The generator of the certificate from second moments."""
        return Covariance().on(self._rows, self.problem)


@dataclass(frozen=True)
class ThroughHuber(ObjectivePerturbation):
    """Noise on the gradient of Huber's loss, in the place of the squared one."""

    def require(self, problem: Problem) -> None:
        """Raise unless the loss is squared."""
        if problem.loss.name != "squared":
            raise ValueError(f"Huber's loss stands for the squared one here, not for the {problem.loss.name} loss")

    def errors(self, problem: Problem) -> RidgeErrors:  # type: ignore[override]
        """Return the errors of the certificate from second moments."""
        return RidgeErrors(problem.p, problem.regularization, problem.radius)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return what second moments need; Huber's slope depends on what is asked."""
        return Covariance().theory_epsilon(problem, excess_risk)

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return the same for gradients."""
        return Covariance().gradient_epsilon(problem, excess_risk)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Settle the tries."""
        plan = settled(request.problem, excess_risk, request.failure_probability, self.geometry, budget=request.budget)
        if plan is None:
            raise ValueError("Huber's loss cannot stand for the squared one here; pass perturbation='covariance'")
        return plan

    def on(self, rows: Rows | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        return ThroughHuberGenerator(self, require_shape(rows, self.geometry), problem)


def settled(
    problem: Problem, excess_risk: float, failure_probability: float, geometry: Geometry, *, budget: float = math.inf
) -> HuberCertificate | None:
    """Settle the tries and the certificate from second moments that follows them, which is for ℓ₁ rows."""
    errors = RidgeErrors(problem.p, problem.regularization, problem.radius)
    return through_huber(
        problem,
        excess_risk,
        failure_probability,
        geometry,
        lambda huber, epsilon: Shot(
            huber.loss, geometry, huber.n, epsilon, huber.regularization, solver_part=CERTIFIED
        ),
        lambda gamma, left: RidgeCertificate.of(problem, excess_risk, gamma, errors, budget=left),
        budget=budget,
    )


def cheaper_than_moments(
    problem: Problem, excess_risk: float, failure_probability: float, max_epsilon: float | None = None
) -> bool:
    """Whether this way is predicted to cost clearly less than second moments, from public numbers alone.

    Clearly, because second moments may show curvature that no public number knows of, and then cost half of it.

    Examples
    --------
    >>> wide, narrow = (Problem.of(SquaredLoss(), n=100_000, p=p, regularization=0.001) for p in (77, 5))
    >>> cheaper_than_moments(wide, 0.05, 0.1), cheaper_than_moments(narrow, 0.05, 0.1)
    (True, False)
    """
    budget = math.inf if max_epsilon is None else max_epsilon
    plan = settled(problem, excess_risk, failure_probability, l1_ball(problem.p), budget=budget)
    if plan is None:
        return False
    errors = RidgeErrors(problem.p, problem.regularization, problem.radius)
    moments = RidgeCertificate.of(problem, excess_risk, failure_probability, errors)
    return plan.expected <= _CLEARLY_LESS * moments.expected
