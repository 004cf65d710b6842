"""Covariance perturbation for ridge regression (theory A4, B3, B4): noise on XᵀX and Xᵀy, then an exact minimum.

*Released*: θ, a function of noisy XᵀX and Xᵀy. *Neighbours*: one row replaced. *Sensitivity*: 2 for each of the two
in ℓ₁, 4 together, i.e. 2⁴² units of 2⁻⁴⁰; the noise on both is DLap at rate ε_t/2⁴², which is the paper's split into
two halves of ε_t at sensitivity 2. *Theorem*: gradual release (``expost.noise.laplace``); the minimisation over the
ball is post-processing, also where the noisy matrix is indefinite.

**The certified search** (theory B6) makes the same promise without paying for tests of the risk. It asks, in this order
and always with the same budgets,

1. whether the null model is good enough (a few thousandths);
2. if few statistics are expected to cost clearly less than second moments: up to four attempts with them, each ended
   by a gradient test;
3. the covariance certificate, level by level.

The order is settled by n, p, λ, α and γ; the data enter only through what is released and paid for. Failure
probabilities add up to γ: each step fails with at most its share.

**Few statistics and a few cheap tests** (theory B6): ridge regression from Xᵀy and a small Krylov space.

*Why.* Second moments are p² numbers and their noise is what covariance perturbation pays for. Where θ* lies near a
space spanned by a few vectors that can be computed from Xᵀy, p numbers and a small matrix are enough, and a gradient
test says whether they were.

First the trace of XᵀX/n is asked for (a mean of ‖x‖₂² ∈ [0, 1]: sensitivity 1/n) with noise of scale λ/2. Only if it
comes out at most 2λ, so that curvature hardly bends θ* away from Xᵀy, are attempts worth their price. Then attempt j
= 1, 2, … at level ε_j:

1. reveal z = Xᵀy + noise at ε_j, a gradual release: only the last level counts. ‖xy − x′y′‖₁ ≤ 2: sensitivity 2.
2. from the second attempt on, reveal w = XᵀX·d + noise for the last direction d. A row adds x(xᵀd), whose ℓ₁ norm is at
   most ‖d‖_∞: sensitivity 2‖d‖_∞.
3. D = an orthonormal basis of z and the w's; reveal M = DᵀXᵀXD/n + noise. A row's part is vvᵀ with v = Dᵀx, ‖v‖₁ ≤ δ
   := max_j Σ_i |D_ji|; with off-diagonal entries doubled its ℓ₁ norm is ‖v‖₁² ≤ δ², so the sensitivity is 2δ²/n (δ²/n
   for one direction: both squares are non-negative).
4. θ = D(M₊ + λI)⁻¹Dᵀz·κ/n, κ = max(0, 1 − E‖noise‖²/‖z‖²) a shrinkage known from what is released.
5. ask whether ‖∇L(θ)‖ ≤ √(2λα) (`expost.goals.measure`); a yes ends the search.

*Theorem (privacy)*: directions are functions of what was released before, so this is adaptive composition; the path of
z costs its last level, each further step its own ε. *Theorem (accuracy)*: the test's alone, which fails with its share
of γ at each attempt; nothing else here has to be right for the promise to hold. All constants come from n, p, λ, α and
γ by the formulas below. They decide what an attempt costs, never what is promised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.account import Account, add_losses
from expost.goals.measure import ErrorMeasure, GradientLength, MeanSquareBySums, gradient_target
from expost.mechanisms.mechanism import Mechanism, NullQuestion
from expost.mechanisms.moments.certificate import (
    CovariancePlan,
    certified_covariance,
    certify_from,
    split_path,
    typical_norm,
)
from expost.mechanisms.moments.statistics import (
    PART_SENSITIVITY,
    STATISTICS_SENSITIVITY,
    TRACE_SENSITIVITY,
    BallMinimum,
    Layout,
)
from expost.noise import KeptLevels, NoisePath, WordSource, discrete_laplace
from expost.numeric import AnyArray, FloatArray
from expost.passes.sums import SUM_UNIT, Sums, sums_over
from expost.release.release import Release
from expost.search.noisy_test import OneTest, best_share, noisy_values
from expost.shown import up
from expost.solve import ErrorBounds, Problem, RidgeErrors, RidgeRisk, gradient_sensitivity
from expost.solve.ball import into_ball
from expost.table.rows import Rows, RowSource

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


_ATTEMPTS = 4
_GROWTH = 1.35  # from one attempt's level to the next
_PROBE = 1 / 8  # scale of the noise on M, as a part of λ
_FLAT = 2.0  # attempts are made if the trace is at most this many times λ
_ROUNDINGS = 1 + 1e-12  # an attempt's losses are booked one by one, and each sum is rounded up
_TYPICAL = 1.0  # ‖θ‖_∞ that budgets are balanced for; any value is sound


@dataclass(frozen=True)
class FewPlan:
    """Levels and budgets of the attempts; public.

    Attributes
    ----------
    levels
        Privacy levels of z.
    test
        The question asked after each attempt.
    gradient_error
        Bound on the floating-point error of a gradient in the ball.
    """

    problem: Problem
    levels: tuple[float, ...]
    test: OneTest
    gradient_error: float

    @classmethod
    def of(cls, problem: Problem, excess_risk: float, failure_probability: float, errors: ErrorBounds) -> FewPlan:
        """Balance noise on z against noise on the test: the expected gradient noise is 2√(2p)/(nε)."""
        target = gradient_target(excess_risk, problem.regularization)
        each = failure_probability / _ATTEMPTS
        generating = 2 * math.sqrt(2 * problem.p) / problem.n / target
        testing = gradient_sensitivity(problem.loss, _TYPICAL) / problem.n * math.log(1 / (2 * each)) / target
        share = best_share(testing, generating)
        first = generating / (1 - share)
        return cls(
            problem,
            tuple(first * _GROWTH**attempt for attempt in range(_ATTEMPTS)),
            OneTest(target, each, share),
            errors.gradient_error_bound(problem.optimum_radius * (1 + 1e-9)),
        )

    @property
    def expected(self) -> float:
        """Roughly what a first attempt costs; used to choose between methods, never to promise anything."""
        sensitivity = gradient_sensitivity(self.problem.loss, _TYPICAL) / self.problem.n
        probes = add_losses(self.trace_epsilon, self.probe_epsilon(0.3, 1))
        return add_losses(self.levels[0], self.test.epsilon(sensitivity), probes)

    @property
    def most(self) -> float:
        """Bound on what all attempts together can cost."""
        return add_losses(self.trace_epsilon, *(self.next_attempt(attempt) for attempt in range(_ATTEMPTS)))

    @property
    def trace_epsilon(self) -> float:
        """ε for the trace at noise scale λ/2."""
        return 2 / (self.problem.n * self.problem.regularization)

    def next_attempt(self, attempt: int) -> float:
        """Bound on what an attempt adds: M over k directions has overlap at most √k, ‖θ‖_∞ ≤ ‖θ‖₂ ≤ R."""
        problem, k = self.problem, attempt + 1
        sensitivity = gradient_sensitivity(problem.loss, problem.optimum_radius * (1 + 1e-9)) / problem.n
        direction = self.direction_epsilon(1 + 1e-9) if attempt else 0.0
        probe = self.probe_epsilon(math.sqrt(k) * (1 + 1e-9), k)
        return add_losses(self.levels[attempt], self.test.cost(sensitivity, self.gradient_error), probe, direction)

    def probe_epsilon(self, overlap: float, directions: int) -> float:
        """Return ε for M at noise scale λ/8: its sensitivity over that scale."""
        sensitivity = (1 if directions == 1 else 2) * overlap**2 / self.problem.n
        return sensitivity / (_PROBE * self.problem.regularization)

    def direction_epsilon(self, largest: float) -> float:
        """Return ε for w: noise of expected norm λ‖·‖/2 beside XᵀXd/n of norm up to 1."""
        noise = 2 * largest * math.sqrt(2 * self.problem.p) / self.problem.n
        return noise / (0.5 * self.problem.regularization)


def few_statistics(
    sums: Sums, risk: RidgeRisk, plan: FewPlan, account: Account, budget: float, source: WordSource
) -> FloatArray | None:
    """Try the attempts in turn; return the first θ that passes, or None. The account is charged either way."""
    problem = plan.problem
    gram = sums.as_floats()[0]
    if not _worth_trying(sums, plan, account, budget, source):
        return None
    path = NoisePath(sums.moment, PART_SENSITIVITY, plan.levels, random_state=source)
    measure = GradientLength(risk, problem.loss, problem.n)
    before = account.generation
    further: list[FloatArray] = []
    for step in path:
        if add_losses(account.total, plan.next_attempt(step.index)) * _ROUNDINGS > budget:
            account.reasons.append("few statistics: the next attempt could exceed the budget")
            break
        account.generation = add_losses(before, step.epsilon)
        z = step.values.astype(np.float64) / SUM_UNIT
        if step.index > 0:
            further.append(_direction(gram, _basis(z, further)[:, -1], plan, account, source))
        basis = _basis(z, further)
        moments = _projected(gram, basis, plan, account, source)
        # the optimum lies in this ball, so moving into it never hurts, and it bounds what the test can cost
        theta = into_ball(_solve(z, basis, moments, plan, step.epsilon), problem.optimum_radius)
        accepted, epsilon = plan.test.ask(measure, theta, source)
        account.test = add_losses(account.test, epsilon)
        if accepted:
            account.reasons.append(
                f"few statistics: {basis.shape[1]} direction(s) at epsilon = {up(step.epsilon)} passed the test"
            )
            return theta
    account.reasons.append("few statistics: no attempt passed the gradient test")
    return None


def _worth_trying(sums: Sums, plan: FewPlan, account: Account, budget: float, source: WordSource) -> bool:
    """Reveal the trace and compare it with λ; the account is charged."""
    epsilon, n, lam = plan.trace_epsilon, plan.problem.n, plan.problem.regularization
    if add_losses(account.total, epsilon) > budget:
        account.reasons.append("few statistics: not even the trace fits the budget")
        return False
    noise = int(discrete_laplace(epsilon, TRACE_SENSITIVITY, 1, random_state=source)[0])
    trace = (sum(int(value) for value in sums.gram.diagonal()) + noise) / (n * SUM_UNIT)
    account.probe = add_losses(account.probe, epsilon)
    worth = trace <= _FLAT * lam
    account.reasons.append(
        f"few statistics: noisy trace of the second moments {trace:.3g}, "
        + ("below" if worth else "above")
        + f" {_FLAT:g} times the regularization"
    )
    return worth


def _revealed(
    values: FloatArray, sensitivity: float, error_bound: float, epsilon: float, account: Account, source: WordSource
) -> FloatArray:
    """Reveal values at ε, and book it."""
    account.probe = add_losses(account.probe, epsilon)
    return np.array(
        noisy_values(values.tolist(), sensitivity=sensitivity, error_bound=error_bound, epsilon=epsilon, source=source)
    )


def _direction(gram: FloatArray, d: FloatArray, plan: FewPlan, account: Account, source: WordSource) -> FloatArray:
    """Reveal XᵀXd/n."""
    largest, n, p = float(np.abs(d).max()), plan.problem.n, plan.problem.p
    return _revealed(gram @ d, 2 * largest / n, _product_error(p), plan.direction_epsilon(largest), account, source)


def _projected(gram: FloatArray, basis: FloatArray, plan: FewPlan, account: Account, source: WordSource) -> FloatArray:
    """Reveal DᵀXᵀXD/n, off-diagonal entries doubled for the release."""
    k, n, p = basis.shape[1], plan.problem.n, plan.problem.p
    overlap = float(np.abs(basis).sum(axis=1).max()) * (1 + 1e-12)
    exact = basis.T @ (gram @ basis)
    rows, columns = np.triu_indices(k)
    doubled = np.where(rows == columns, 1.0, 2.0)
    sensitivity, epsilon = (1 if k == 1 else 2) * overlap**2 / n, plan.probe_epsilon(overlap, k)
    values = _revealed(exact[rows, columns] * doubled, sensitivity, 2 * _product_error(p), epsilon, account, source)
    noisy = np.zeros((k, k))
    noisy[rows, columns] = values / doubled
    return np.asarray(np.triu(noisy) + np.triu(noisy, 1).T)


def _solve(z: FloatArray, basis: FloatArray, moments: FloatArray, plan: FewPlan, epsilon: float) -> FloatArray:
    problem = plan.problem
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 0.0)
    noise = 8 * problem.p / epsilon**2  # E‖noise‖² of p Laplace variables of scale 2/ε
    shrinkage = max(0.0, 1 - noise / max(float(z @ z), 1e-300))
    inner = vectors @ ((vectors.T @ (basis.T @ z)) / (values + problem.regularization))
    return np.asarray(basis @ inner * (shrinkage / problem.n))


def _basis(z: FloatArray, further: list[FloatArray]) -> FloatArray:
    """Return an orthonormal basis of z and the vectors revealed since."""
    q, r = np.linalg.qr(np.column_stack([z, *further]))
    independent = np.abs(np.diag(r)) > 1e-12 * max(1e-300, float(np.abs(np.diag(r)).max()))
    return np.asarray(q[:, independent] if independent.any() else np.eye(len(z))[:, :1])


def _product_error(p: int) -> float:
    """Bound the floating-point error of entries of XᵀXd/n and dᵀXᵀXd/n for ‖d‖₂ ≤ 1: |XᵀX|/n has Frobenius norm ≤ 1."""
    return (4 * p + 32) * 2.0**-52


# How the failure probability is shared out; without few statistics, the certificate gets their share too.
_NULL, _FEW, _COVARIANCE = 0.2, 0.35, 0.45
_SPREAD = 0.2  # guessed variance of a column, in units of 1/p²: uniform in ±1/p, a constant taking a quarter of rows
_CLEARLY_LESS = 0.75  # few statistics are tried if expected to cost at most this part of second moments


@dataclass(frozen=True)
class RidgeCertificate:
    """The steps of the search, settled; public.

    Attributes
    ----------
    null, few, full
        The first question (None: it was asked before), the attempts with few statistics (None: not tried), the
        covariance certificate.
    budget
        No outcome may cost more.
    """

    null: NullQuestion | None
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
        asked: bool = False,
    ) -> RidgeCertificate:
        """Settle the steps, or say that not even the first fits the budget.

        ``few`` says whether to try few statistics; None decides by expected cost, which is public. With
        ``keep_statistics`` they are not tried: no other λ or columns could be fitted from them. ``asked``: the null
        model was asked about before, and its share of γ is not in ``failure_probability``.
        """
        gamma, null = failure_probability, None
        if asked:
            gamma /= 1 - _NULL
        else:
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
        """Roughly what is paid where the null model does not quite do; used to choose, never to promise.

        Of few statistics the first attempt is counted, and of second moments the level at which columns that are spread
        evenly within their bounds, each a p-th part of a row, would be certified.
        """
        problem = self.full.problem
        full = self.full.charge(self.full.predicted(typical_norm(problem), _SPREAD / problem.p**2))
        first = full if self.few is None else min(full, self.few.expected)
        return first if self.null is None else add_losses(self.null.cost, first)

    @property
    def worst_case(self) -> float:
        """No outcome costs more."""
        most = add_losses(
            0.0 if self.null is None else self.null.cost,
            self.full.charge(self.full.levels[-1]),
            self.few.most if self.few is not None else 0.0,
        )
        return min(self.budget, most)

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Take the steps, on the sums of a covariance generator."""
        if self.null is not None and self.null.ask(generator.risk, account, source):
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
        gamma = request.failure_probability
        null = NullQuestion.of(request.problem, excess_risk, _NULL * gamma, request.errors)
        null.require_affordable(request.budget)
        plan, last = CovariancePlan.refinable(request.problem, excess_risk, later[-1], (1 - _NULL) * gamma)
        plan = replace(plan, keep_statistics=request.keep_statistics)
        return RefinableCovariance(null, plan, last, request.budget)

    def on(self, rows: Rows | RowSource | Sums, problem: Problem) -> CovarianceGenerator:
        """Return the generator for private rows, or for their exact sums."""
        self.require_rows(rows, problem)
        return CovarianceGenerator(self, rows if isinstance(rows, Sums) else sums_over(rows), problem)


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
