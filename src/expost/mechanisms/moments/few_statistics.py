"""Few statistics and a few cheap tests (theory B6): ridge regression from Xᵀy and a small Krylov space.

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
from dataclasses import dataclass

import numpy as np

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.goals.measure import GradientLength, gradient_target
from expost.mechanisms.moments.statistics import PART_SENSITIVITY, TRACE_SENSITIVITY
from expost.noise.laplace import discrete_laplace
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.numeric import FloatArray
from expost.passes.sums import SUM_UNIT, Sums
from expost.search.noisy_test import OneTest, best_share, noisy_values
from expost.shown import up
from expost.solve.ball import into_ball
from expost.solve.error_bounds import ErrorBounds
from expost.solve.problem import Problem, gradient_sensitivity
from expost.solve.risk import RidgeRisk

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
