"""Objective perturbation for the squared loss, through Huber's (theory C2).

What is released, and why it costs what it does, is in `expost.mechanisms.objective`; why the model is good enough for
the *squared* loss in `expost.stopping.certificates.through_huber`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost.data.batches import RowSource
from expost.data.rows import Rows
from expost.erm.error_bounds import RidgeErrors
from expost.erm.geometry import Geometry
from expost.erm.losses import HuberLoss, Loss
from expost.erm.measures import mean_left_out
from expost.erm.passes import Passes
from expost.erm.perturbed import PerturbedObjective
from expost.erm.problem import Problem
from expost.erm.risk import RidgeRisk
from expost.erm.sums import Sums
from expost.mechanisms.covariance import Covariance, CovarianceGenerator
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.objective import CERTIFIED, ObjectivePerturbation, Shot, too_steep
from expost.privacy.release import Release
from expost.stopping.certificates.ridge import RidgeCertificate
from expost.stopping.certificates.through_huber import through_huber

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


class ThroughHuberGenerator:
    """The private side: passes over rows, and their second moments once they are asked for."""

    def __init__(self, mechanism: ThroughHuber, rows: Rows | RowSource, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        self._rows = rows
        self._passes = Passes.over(HuberLoss(1.0), rows)

    def perturbed(self, loss: Loss) -> PerturbedObjective:
        """Return what is minimised with another loss."""
        return PerturbedObjective(self._passes.with_loss(loss))

    def left_out(self, theta: NDArray[np.float64], huber: HuberLoss, largest_prediction: float) -> float:
        """Return q(θ), no prediction being larger than that."""
        return mean_left_out(self._passes, theta, huber, largest_prediction)

    @property
    def sums(self) -> Sums:
        """Exact sums, where second moments are all that is used."""
        return self.by_moments.sums

    @property
    def risk(self) -> RidgeRisk:
        """True risks of the squared loss; private."""
        return self.by_moments.risk

    @cached_property
    def by_moments(self) -> CovarianceGenerator:
        """The generator of the certificate from second moments."""
        return Covariance().on(self._rows, self.problem)


@dataclass(frozen=True)
class ThroughHuber(ObjectivePerturbation):
    """Noise on the gradient of Huber's loss, in the place of the squared one."""

    @staticmethod
    def stands_for(problem: Problem, shape: Geometry) -> bool:
        """Whether it can: second moments, which it falls back to, are for the squared loss and the ℓ₁ ball."""
        return problem.loss.name == "squared" and shape.blocks[0].norm == "l1" and not too_steep(problem)

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
        """Settle the tries, or second moments alone where they are not predicted to cost clearly more."""
        problem, errors = request.problem, request.errors
        return through_huber(
            problem,
            excess_risk,
            request.failure_probability,
            self.geometry,
            lambda huber, epsilon: Shot(
                huber.loss, self.geometry, huber.n, epsilon, huber.regularization, solver_part=CERTIFIED
            ),
            lambda gamma, left: RidgeCertificate.of(problem, excess_risk, gamma, errors, budget=left),
            budget=request.budget,
        )

    def behind(self, release: Release) -> Mechanism:
        """Return second moments where nothing else was tried: nothing of the release is then over the reals."""
        return self if release.noise == "over the reals" else Covariance()

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        assert not isinstance(rows, Sums)
        return ThroughHuberGenerator(self, rows, problem)
