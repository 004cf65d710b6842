"""Covariance perturbation for ridge regression (theory A4, B3, B4): noise on XᵀX and Xᵀy, then an exact minimum.

*Released*: θ, a function of noisy XᵀX and Xᵀy. *Neighbours*: one row replaced. *Sensitivity*: 2 for each of the two
in ℓ₁, 4 together, i.e. 2⁴² units of 2⁻⁴⁰; the noise on both is DLap at rate ε_t/2⁴², which is the paper's split into
two halves of ε_t at sensitivity 2. *Theorem*: gradual release (``expost.noise.path``); the minimisation over the
ball is post-processing, also where the noisy matrix is indefinite.

**The certified search** (theory B6) makes the same promise without paying for tests of the risk. It asks, in this order
and always with the same budgets,

1. whether the null model is good enough (a few thousandths);
2. if few statistics are expected to cost clearly less than second moments: up to four attempts with them, each ended
   by a gradient test;
3. the covariance certificate, level by level.

The order is settled by n, p, λ, α and γ; the data enter only through what is released and paid for. Failure
probabilities add up to γ: each step fails with at most its share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.goals.measure import ErrorMeasure, MeanSquareBySums, gradient_target
from expost.mechanisms.mechanism import Mechanism
from expost.mechanisms.moments.certificate import CovariancePlan, certified_covariance, certify_from, split_path
from expost.mechanisms.moments.few_statistics import FewPlan, few_statistics
from expost.mechanisms.moments.statistics import STATISTICS_SENSITIVITY, BallMinimum, Layout
from expost.mechanisms.null_model import NullQuestion
from expost.noise.path import KeptLevels, NoisePath
from expost.noise.source import WordSource
from expost.numeric import AnyArray, FloatArray
from expost.passes.sums import Sums, sums_of
from expost.release.release import Release
from expost.shown import up
from expost.solve.error_bounds import ErrorBounds, RidgeErrors
from expost.solve.problem import Problem
from expost.solve.risk import RidgeRisk
from expost.table.rows import Rows, RowSource

if TYPE_CHECKING:
    from expost.search.request import Plan, Request

# How the failure probability is shared out; without few statistics, the certificate gets their share too.
_NULL, _FEW, _COVARIANCE = 0.2, 0.35, 0.45
_CLEARLY_LESS = 0.75  # few statistics are tried if expected to cost at most this part of second moments


@dataclass(frozen=True)
class RidgeCertificate:
    """The steps of the search, settled; public.

    Attributes
    ----------
    null, few, full
        The first question, the attempts with few statistics (None: not tried), the covariance certificate.
    budget
        No outcome may cost more.
    """

    null: NullQuestion
    few: FewPlan | None
    full: CovariancePlan
    budget: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        excess_risk: float,
        failure_probability: float,
        errors: ErrorBounds,
        *,
        budget: float = math.inf,
        few: bool | None = None,
        keep_statistics: bool = False,
    ) -> RidgeCertificate:
        """Settle the steps, or say that not even the first fits the budget.

        ``few`` says whether to try few statistics; None decides by expected cost, which is public. With
        ``keep_statistics`` they are not tried: no other λ or columns could be fitted from them.
        """
        gamma = failure_probability
        null = NullQuestion.of(problem, excess_risk, _NULL * gamma, errors)
        null.require_affordable(budget)
        attempts = FewPlan.of(problem, excess_risk, _FEW * gamma, errors)
        full = CovariancePlan.of(problem, excess_risk, _COVARIANCE * gamma)
        if few is None:
            few = not keep_statistics and attempts.expected <= _CLEARLY_LESS * full.expected()
        if few:
            return cls(null, attempts, full, budget)
        alone = CovariancePlan.of(problem, excess_risk, (_FEW + _COVARIANCE) * gamma, keep_statistics=keep_statistics)
        return cls(null, None, alone, budget)

    @property
    def expected(self) -> float:
        """Roughly what is paid where the null model does not do; used to choose, never to promise."""
        full = self.full.expected()
        return add_losses(self.null.cost, full if self.few is None else min(full, self.few.expected))

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        most = add_losses(
            self.null.cost,
            self.full.charge(self.full.levels[-1]),
            self.few.most if self.few is not None else 0.0,
        )
        return min(self.budget, most)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Take the steps, on the sums of a covariance generator."""
        if self.null.ask(generator.risk, account, source):
            return account.released(np.zeros(self.full.problem.p))
        if self.few is not None:
            account.reasons.append(
                f"few statistics first: expected epsilon = {up(self.few.expected)} against {up(self.full.expected())}"
            )
            theta = few_statistics(generator.sums, generator.risk, self.few, account, self.budget, source)
            if theta is not None:
                return account.released(theta)
        rest = self.full.within(self.budget, account.after)
        if rest is None:
            account.reasons.append("covariance certificate: no room left in the budget")
            return account.refused()
        theta = certified_covariance(generator.sums, rest, account, source)
        return account.refused() if theta is None else account.released(theta)


@dataclass
class RefinableCovariance:
    """Null model, then levels of second moments until one is certified.

    Attributes
    ----------
    null, plan
        The first question, and the levels, which go on beyond what this search needs.
    last
        The last level that this search may reveal.
    budget
        No outcome may cost more.
    kept
        What is left of the path once the search has run; private.
    """

    null: NullQuestion
    plan: CovariancePlan
    last: int
    budget: float
    kept: KeptLevels | None = None

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        return min(self.budget, add_losses(self.null.cost, self.plan.charge(self.plan.levels[self.last])))

    @property
    def said(self) -> dict[str, Any]:
        """What has to be known about the path later on; public."""
        plan = self.plan
        return {
            "kind": "covariance",
            "levels": list(plan.levels),
            "charges": [plan.charge(level) for level in plan.levels],
            "steps": list(plan.steps),
            "split": plan.split,
            "path_failure_probability": plan.failure_probability,
        }

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Ask about the null model, draw the whole path, and reveal as much of it as is needed."""
        good_enough = self.null.ask(generator.risk, account, source)
        self.kept = KeptLevels.of(split_path(generator.sums, self.plan, source))
        if good_enough:
            return account.released(np.zeros(self.plan.problem.p))
        return certify_from(None, self.last, self.kept, self.plan, account, self.budget)


@dataclass(frozen=True)
class Covariance(Mechanism):
    """Noise on the second moments; for the squared loss.

    Parameters
    ----------
    full_matrix
        Noise on all p² entries, as in the paper, instead of the upper triangle at half the variance (theory B4).
    """

    full_matrix: bool = False

    name = "covariance"
    exact = ("rows in fixed point", "XᵀX and Xᵀy", "generation noise", "test noise and comparisons")
    charged = ()

    @classmethod
    def of(cls, *, noise: str = "laplace", full_matrix: bool = False) -> Covariance:
        """Return the mechanism; there is no other noise than Laplace."""
        if cls.checked(noise) != "laplace":
            raise ValueError("spherical noise is for perturbation='output'; noise on the second moments is Laplace")
        return cls(full_matrix)

    def require(self, problem: Problem) -> None:
        """Raise unless the loss is squared."""
        if problem.loss.name != "squared":
            raise ValueError(
                f"covariance perturbation needs the squared loss, not {problem.loss.name!r}; use perturbation='output'"
            )

    def errors(self, problem: Problem) -> RidgeErrors:
        """Return the errors of risks that come from exact sums."""
        return RidgeErrors(problem.p, problem.regularization, problem.radius)

    def theory_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε with 4√2·(2√p·R + p·R²)/(n·ε) ≤ α, R the radius (the paper's is 1/√λ).

        Proof. The noisy quadratic is off by at most (½R²‖B‖_F + R‖b‖)/n in the ball, B and b the noise on XᵀX and Xᵀy;
        twice that bounds the excess risk of its minimum. Entries are Laplace of scale 4/ε (off the diagonal less), so
        E‖B‖_F ≤ 4√2·p/ε and E‖b‖ ≤ 4√2·√p/ε. ∎

        Examples
        --------
        >>> from expost.solve import Problem, SquaredLoss
        >>> paper = Problem.of(SquaredLoss(), n=100_000, p=77, regularization=0.005, paper_constants=True)
        >>> round(Covariance().theory_epsilon(paper, 0.05), 2)
        17.7
        """
        p, radius = problem.p, problem.radius
        return 4 * math.sqrt(2) * (2 * math.sqrt(p) * radius + p * radius**2) / (problem.n * excess_risk)

    def gradient_epsilon(self, problem: Problem, excess_risk: float) -> float:
        """Return ε from the typical length of the noise in (XᵀX)θ − Xᵀy at the radius."""
        root = math.sqrt(problem.p)
        length = 4 * math.sqrt(2) * (root + (root + 0.5) * problem.radius) / problem.n
        return length / gradient_target(excess_risk, problem.regularization)

    def certificate(self, request: Request, excess_risk: float, *, automatic: bool) -> Plan:
        """Settle the certified search for ridge regression; few statistics only where it may choose."""
        return RidgeCertificate.of(
            request.problem,
            excess_risk,
            request.failure_probability,
            request.errors,
            budget=request.budget,
            few=None if automatic else False,
            keep_statistics=request.keep_statistics,
        )

    def refinable(self, request: Request, excess_risk: float, later: tuple[float, ...]) -> RefinableCovariance:
        """Settle the certified search for ridge regression, without few statistics, on a path that is kept."""
        if not self.can_certify(request.problem):
            super().refinable(request, excess_risk, later)
        gamma = request.failure_probability
        null = NullQuestion.of(request.problem, excess_risk, _NULL * gamma, request.errors)
        null.require_affordable(request.budget)
        plan, last = CovariancePlan.refinable(request.problem, excess_risk, later[-1], (1 - _NULL) * gamma)
        plan = replace(plan, keep_statistics=request.keep_statistics)
        return RefinableCovariance(null, plan, last, request.budget)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> CovarianceGenerator:
        """Return the generator for private rows, or for their exact sums."""
        self.require_rows(rows, problem)
        return CovarianceGenerator(self, rows if isinstance(rows, Sums) else sums_of(rows), problem)


class CovarianceGenerator:
    """Hypotheses from noisy second moments.

    Parameters
    ----------
    mechanism
        What it is made by.
    sums
        Exact sums of the private rows.
    problem
        The public side.
    """

    def __init__(self, mechanism: Covariance, sums: Sums, problem: Problem) -> None:
        self.mechanism, self.sums, self.problem = mechanism, sums, problem
        self.layout = Layout(sums.p, mechanism.full_matrix)
        self.risk = RidgeRisk(sums, problem.regularization, problem.radius)

    def path(self, levels: tuple[float, ...], source: WordSource) -> NoisePath:
        """Draw the gradual release of the statistics."""
        return NoisePath(self.layout.pack(self.sums), STATISTICS_SENSITIVITY, levels, random_state=source)

    @property
    def size(self) -> int:
        """Number of statistics."""
        return self.layout.size

    def shot(self, noise: FloatArray) -> BallMinimum | FloatArray:
        """Return the hypothesis for given noise, in units of the sensitivity; for simulations, which draw their own."""
        return self.hypothesis(self.layout.pack(self.sums) + STATISTICS_SENSITIVITY * noise)

    def hypothesis(self, values: AnyArray) -> BallMinimum | FloatArray:
        """Minimise the noisy quadratic over the ball."""
        problem = self.problem
        return BallMinimum(values, self.layout, problem.n, problem.regularization, problem.radius)

    def unrescaled(self, values: AnyArray) -> BallMinimum | FloatArray:
        """Return the same: the utility theorem is about the minimum over the ball."""
        return self.hypothesis(values)

    def excess_risk(self) -> ErrorMeasure:
        """Return the excess risk as a measure."""
        problem, risk = self.problem, self.risk
        # Strong convexity at the optimum of the ball: L(θ) − L(θ*) ≥ (λ/2)‖θ − θ*‖² ≥ (λ/2)(R − ‖θ*‖)² on the sphere.
        inside = float(np.linalg.norm(risk.optimum)) + risk.distance_bound
        on_sphere = 0.5 * problem.regularization * max(0.0, problem.radius * (1 - 1e-9) - inside) ** 2 * (1 - 1e-9)

        def lower(theta: BallMinimum | FloatArray) -> float:
            return on_sphere if isinstance(theta, BallMinimum) and theta.on_sphere else 0.0

        return ErrorMeasure(
            lambda theta: risk.excess(np.asarray(theta)),
            sensitivity=problem.risk_sensitivity,
            error_bound=risk.excess_error_bound(problem.radius),
            lower=lower,
        )

    def mean_square(self) -> MeanSquareBySums:
        """Return the mean squared error, without a pass over the rows."""
        return MeanSquareBySums(self.sums)
