"""The squared loss through Huber's (theory C2): the certificate of objective perturbation for ridge regression.

The squared loss has no bounded slope, Huber's has: H_C(r) = ½r² up to |r| = C and a straight line beyond. *Released*:
θ̂ by objective perturbation for H_C, then a noisy mean of what H_C leaves out. *Neighbours*: one row replaced.

*Theorem (accuracy)*. Write L for the ridge objective, L_H for the one with H_C in place of the squared loss, and
q(θ) = mean ½(|y − xᵀθ| − C)₊². Then L = L_H + q ≥ L_H, hence min L ≥ min L_H and, for every θ,

    L(θ) − min L ≤ [L_H(θ) − min L_H] + q(θ).

The bracket is at most βα by the certificate (`expost.mechanisms.objective.perturbation`), but for γ₁. q is tested: its
noisy value and a margin that noise exceeds with probability γ₂ must fit into (1 − β)α. So L(θ̂) − min L ≤ α, but for
γ₁ + γ₂. Where no row can have a residual beyond C, as |xᵀθ̂| ≤ m ≤ C − 1 with m read off θ̂, q = 0 and nothing is
asked. ∎

*Theorem (privacy)*. θ̂ costs what objective perturbation does. Given θ̂, one row moves q by ½(1 + m − C)₊²/n at most
(`expost.solve.losses.HuberLoss`); the noise is made for that, so the test's ε follows from what is released. It is
asked only if that is no more than a public limit.

The null model is asked about first: with C ≥ 1 and |y| ≤ 1 Huber's gradient at θ = 0 is the squared loss's, and one
pass over the rows finds it. A try that does not pass is followed by one with a larger C, then by the certificate from
second moments. Order, C, β and the shares of γ follow from n, p, λ, α and γ; failure probabilities add up to γ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.account import Account, add_losses
from expost.exceptions import TargetUnreachable
from expost.goals.measure import gradient_target, mean_left_out, mean_left_out_error
from expost.mechanisms.mechanism import Mechanism, NullQuestion
from expost.mechanisms.moments.covariance import Covariance, CovarianceGenerator, RidgeCertificate
from expost.mechanisms.objective.perturbation import (
    COVERED,
    NULL,
    ObjectivePerturbation,
    Shot,
    noise_quantile,
    sufficient,
    too_steep,
)
from expost.noise.source import WordSource
from expost.numeric import FloatArray
from expost.passes.sums import Sums
from expost.release.release import Release
from expost.search.noisy_test import NoisyValue
from expost.shown import up
from expost.solve import HuberLoss, Loss, Passes, Problem, RidgeErrors, RidgeRisk
from expost.solve.perturbed import PerturbedObjective
from expost.solve.row_sums import PassErrors, PassGradients
from expost.table.rows import Rows, RowSource
from expost.table.shape import Geometry

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


_SHARES = (0.85, 0.08)  # of what the null model leaves of γ, for the two tries; second moments get the rest
_WIDER = 1.5  # C of the second try, in units of the first's
_SLOPES = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)  # C to choose from; below 1 targets alone leave a residual beyond it
_CERTIFIED_PARTS = (0.5, 0.6, 0.7, 0.8, 0.9)  # β to choose from
_TEST_PARTS = (0.01, 0.03, 0.1, 0.3)  # of a try's γ, for its test
_SURE_TO_PASS = (
    3.0  # a q of nothing passes but for a chance of ½e^(−3), a fortieth; a second try costs more than the room
)
_OPTIMUM = 0.5  # guess of the largest coordinate of θ*; sound whatever it is


@dataclass(frozen=True)
class HuberTry:
    """One release and its test; public.

    Attributes
    ----------
    shot
        The release.
    loss
        Huber's, of slope C.
    certified, excess_risk
        βα and α.
    test_probability
        γ₂.
    """

    shot: Shot
    loss: HuberLoss
    certified: float
    excess_risk: float
    test_probability: float

    @property
    def dearest_test(self) -> float:
        """What a test may cost at most; a dearer one is not asked."""
        return self.shot.epsilon

    @property
    def dearest(self) -> float:
        """What the try costs at most."""
        return add_losses(self.shot.epsilon, self.dearest_test)

    def test_cost(self, sensitivity: float) -> float:
        """Return the ε at which noise on q of that sensitivity leaves room."""
        room = self.excess_risk - self.certified
        return sensitivity * (math.log(1 / (2 * self.test_probability)) + _SURE_TO_PASS) / room

    def largest_prediction(self, theta: FloatArray) -> float:
        """Return m ≥ |xᵀθ| for every row there can be; a sum's rounding included."""
        (block,) = self.shot.geometry.blocks
        length = np.abs(theta).max(initial=0.0) if block.norm == "l1" else np.linalg.norm(theta)
        return float(length) * block.radius * (1.0 + 1e-9)

    def passes(self, rows: Any, theta: FloatArray, account: Account, source: WordSource) -> bool:
        """Say whether θ is good enough, booking the test if one is needed; ``rows`` are private."""
        largest = self.largest_prediction(theta)
        sensitivity = self.loss.left_out_sensitivity(largest, self.shot.n)
        if 1.0 + largest <= self.loss.delta:
            account.reasons.append(f"no residual can exceed C = {self.loss.delta:g}: nothing to test")
            return True
        length = float(np.linalg.norm(theta))
        error = mean_left_out_error(self.shot.n, self.shot.geometry.columns, largest, length, self.loss.delta)
        epsilon = self.test_cost(sensitivity)
        if epsilon > self.dearest_test:
            account.reasons.append(f"a test at C = {self.loss.delta:g} would cost epsilon = {up(epsilon)}: not asked")
            return False
        test = NoisyValue.of(sensitivity, error)
        account.test = add_losses(account.test, epsilon)
        noisy = test.ask(rows.left_out(theta, self.loss, largest), epsilon, source)
        passed = self.certified + noisy + test.margin(epsilon, self.test_probability) <= self.excess_risk
        account.reasons.append(
            f"residuals beyond C = {self.loss.delta:g} tested for epsilon = {up(epsilon)}: "
            + ("they leave the promise standing" if passed else "not shown to be few enough")
        )
        return passed


@dataclass(frozen=True)
class HuberCertificate:
    """The null model, the tries, and what follows if none passes; public.

    Attributes
    ----------
    problem
        With the squared loss.
    null
        The first question; None: it is not asked.
    tries
        In this order.
    otherwise
        The certificate from second moments, for what is left of γ and of the budget; None if the budget has no room.
    """

    problem: Problem
    null: NullQuestion | None
    tries: tuple[HuberTry, ...]
    otherwise: RidgeCertificate | None

    @property
    def expected(self) -> float:
        """Roughly what is paid where the null model does not quite do; used to choose, never to promise."""
        first = _expected(self.tries[0], noise_quantile(self.tries[0].shot.geometry, 0.1))
        return first if self.null is None else add_losses(self.null.cost, first)

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        rest = 0.0 if self.otherwise is None else self.otherwise.worst_case
        # one sum for each part of the account, as they are booked
        generation = add_losses(*(each.shot.epsilon for each in self.tries))
        tests = add_losses(0.0 if self.null is None else self.null.cost, *(each.dearest_test for each in self.tries))
        return add_losses(generation, tests, rest) * (1 + 1e-12)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Ask about the null model, take the tries, then second moments."""
        if self.null is not None and self.null.ask(generator.at_zero, account, source):
            return account.released(np.zeros(self.problem.p))
        for index, each in enumerate(self.tries):
            theta = each.shot.draw(generator.perturbed(each.loss), np.zeros(self.problem.p), source)
            account.generation = add_losses(account.generation, each.shot.epsilon)
            account.reasons.append(
                f"objective perturbation with slope C = {each.loss.delta:g}: {up(each.shot.epsilon)}"
            )
            if each.passes(generator, theta, account, source):
                return account.released(theta, level=index, n_levels=len(self.tries), perturbation=ThroughHuber.name)
        if self.otherwise is None:
            account.reasons.append("second moments: no room left in the budget")
            return account.refused(n_levels=len(self.tries), perturbation=ThroughHuber.name)
        inner = Account(account.method, self.otherwise.worst_case, account.secure)
        release = self.otherwise.search(generator.by_moments, inner, source)
        return account.conclude(release, perturbation=ThroughHuber.name)


def _best(
    problem: Problem,
    alpha: float,
    gamma: float,
    geometry: Geometry,
    slopes: tuple[float, ...],
    typical: float,
) -> HuberTry | None:
    """Return the try that is predicted to be cheapest, from public numbers."""
    best: HuberTry | None = None
    for slope in slopes:
        loss = HuberLoss(slope)
        huber = Problem.of(loss, n=problem.n, p=problem.p, regularization=problem.regularization)
        for part in _CERTIFIED_PARTS:
            for test in _TEST_PARTS:
                spared = gamma * (1 - test - COVERED)
                try:
                    shot = sufficient(huber, part * alpha, spared, COVERED * gamma, geometry)
                except TargetUnreachable:
                    continue
                each = HuberTry(shot, loss, part * alpha, alpha, test * gamma)
                if best is None or _expected(each, typical) < _expected(best, typical):
                    best = each
    return best


def _expected(each: HuberTry, typical: float) -> float:
    """Roughly what a try costs: noise moves the flat directions, and its largest coordinate is what residuals see."""
    shot = each.shot
    coordinate = gradient_target(each.certified, shot.lam) / typical / shot.lam
    largest = _OPTIMUM + coordinate * math.log(shot.geometry.columns / 0.69)
    sensitivity = each.loss.left_out_sensitivity(largest, shot.n)
    cost = each.test_cost(sensitivity) if 1 + largest > each.loss.delta else 0.0
    return add_losses(shot.epsilon, cost) if cost <= each.dearest_test else 2.0 * each.dearest


class ThroughHuberGenerator:
    """The private side: passes over rows, and their second moments once they are asked for."""

    def __init__(self, mechanism: ThroughHuber, rows: Rows | RowSource, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        self._rows = rows
        self._passes = Passes.over(HuberLoss(1.0), rows)

    def perturbed(self, loss: Loss) -> PerturbedObjective:
        """Return what is minimised with another loss."""
        return PerturbedObjective(self._passes.with_loss(loss))

    def left_out(self, theta: FloatArray, huber: HuberLoss, largest_prediction: float) -> float:
        """Return q(θ), no prediction being larger than that."""
        return mean_left_out(self._passes, theta, huber, largest_prediction)

    @property
    def at_zero(self) -> PassGradients:
        """The gradient at θ = 0, where Huber's is that of the squared loss."""
        return PassGradients(self._passes, self.problem.regularization)

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

    risks = True  # generators know them by second moments

    def require_declared(self, rows: Rows | RowSource | Sums) -> None:
        """Raise unless rows declare what the shape needs, and what second moments do."""
        super().require_declared(rows)
        Covariance().require_declared(rows)

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
        """Settle the null model and the tries, or second moments where those are predicted to cost less."""
        problem, gamma = request.problem, request.failure_probability
        alone = RidgeCertificate.of(problem, excess_risk, gamma, request.errors, budget=request.budget)
        tried = None if excess_risk >= problem.loss.null_value else self.tries(request, excess_risk)
        return alone if tried is None or tried.expected > alone.expected else tried

    def tries(self, request: Request, excess_risk: float) -> HuberCertificate | None:
        """Settle the tries, whatever else there is; None if the budget has no room for the first."""
        problem, geometry = request.problem, self.geometry
        errors = PassErrors(HuberLoss(1.0), problem.p, problem.regularization)
        null = NullQuestion.of(problem, excess_risk, NULL * request.failure_probability, errors)
        gamma, left = (1 - NULL) * request.failure_probability, (request.budget - null.cost) * (1 - 1e-9)
        typical = noise_quantile(geometry, 0.1)
        tries: list[HuberTry] = []
        for number, share in enumerate(_SHARES):
            slopes = _SLOPES if number == 0 else (tries[0].loss.delta * _WIDER,)
            each = _best(problem, excess_risk, share * gamma, geometry, slopes, typical)
            if each is None or each.dearest > left:
                break
            tries.append(each)
            left -= each.dearest * (1 + 1e-9)
        if not tries:
            return None
        rest = None  # a refusal then, within the budget
        if left > 0:
            gamma *= 1 - sum(_SHARES)
            rest = RidgeCertificate.of(problem, excess_risk, gamma, request.errors, budget=left, asked=True)
        return HuberCertificate(problem, null, tuple(tries), rest)

    def behind(self, release: Release) -> Mechanism:
        """Return second moments where nothing else was tried."""
        return self if release.perturbation == self.name else Covariance()

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> Any:
        """Return the generator for private rows."""
        self.require_rows(rows, problem)
        assert not isinstance(rows, Sums)
        return ThroughHuberGenerator(self, rows, problem)
