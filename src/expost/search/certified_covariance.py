"""Certified covariance perturbation (theory B6, first form): stop when what is released proves that it is good enough.

*Released*: Z = XᵀX + B and z = Xᵀy + b, level by level. *Neighbours*: one row replaced. *Sensitivity*: 2 each in ℓ₁;
XᵀX gets the part 1 − w of ε_t and Xᵀy the part w. *Theorem (privacy)*: gradual release of both; the rule reads only
released values, so stopping at t costs ε_t and nothing else.

*Theorem (accuracy)*: suppose ‖B_t‖_op ≤ β_B/ε_t and ‖b_t‖ ≤ β_b/ε_t at every level (probability 1 − γ,
`expost.search.noise_norms`). For any θ computed from Z and z, ĝ = (Zθ − z)/n + λθ is known and ∇L(θ) = ĝ − (Bθ −
b)/n, so

    L(θ) − min L ≤ ‖∇L(θ)‖²/(2λ) ≤ (‖ĝ‖ + (β_B‖θ‖ + β_b)/(nε_t))²/(2λ).

The θ released is the one, among candidates computed from Z and z, whose certificate is smallest; the event above
covers all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost.erm.statistics import Layout
from expost.erm.sums import Sums
from expost.noise.path import NoisePath
from expost.noise.source import WordSource
from expost.privacy.composition import add_losses
from expost.search.account import Account
from expost.search.noise_norms import PART_UNITS, SIMULATED_UP_TO, discreteness, noise_norms
from expost.search.plan import Problem
from expost.search.stationarity import gradient_target

_SPLIT = 0.4  # the part of ε that Xᵀy gets; more when θ is short, less when it is long
_RATIO = 1.3
_SHIFTS = np.concatenate([[0.0], 2.0 ** np.arange(-5.0, 7.0)])  # ridge added to λ by the candidates, in units of λ


@dataclass(frozen=True)
class CovariancePlan:
    """Levels and noise norms; public."""

    problem: Problem
    levels: tuple[float, ...]
    count: int
    failure_probability: float

    @classmethod
    def of(
        cls, problem: Problem, failure_probability: float, budget: float = math.inf, spent: float = 0.0
    ) -> CovariancePlan | None:
        """Settle levels from where nothing could be certified yet to where all is; None if the budget has no room.

        A certificate needs (β_B‖θ‖ + β_b)/(nε) ≤ √(2λα). It cannot be had while that fails for ‖θ‖ = 0, and it is had
        at the latest when it holds for ‖θ‖ = R + √(2α/λ), the norm of the noisy optimum at most.
        """
        target = gradient_target(problem.excess_risk, problem.regularization)
        rough_matrix, rough_vector = _rough_norms(problem.p)
        least = rough_vector / (problem.n * target)
        longest = problem.radius + target / problem.regularization
        most = (
            1.3 * _tail(problem.p, failure_probability) * (rough_vector + rough_matrix * longest) / (problem.n * target)
        )
        count = math.ceil(math.log(most / least) / math.log(_RATIO)) + 1
        every = (least * _RATIO**t for t in range(count))
        levels = tuple(level for level in every if add_losses(spent, charge(level)) <= budget)
        if not levels:
            return None
        return cls(problem, levels, count, failure_probability)

    def norms(self) -> tuple[float, float]:
        """Return β_B and β_b; simulated at the first call for a p, so asked for only when a certificate is needed."""
        problem = self.problem
        matrix, vector = noise_norms(problem.p, self.count, _RATIO, _SPLIT, self.failure_probability)
        extra = discreteness(problem.p, self.count, self.levels[-1])
        return matrix + extra, vector + extra

    def expected(self, norm: float = 1.0) -> float:
        """Roughly what a certificate costs for an optimum of that norm; used to choose, never to promise."""
        target = gradient_target(self.problem.excess_risk, self.problem.regularization)
        matrix, vector = _rough_norms(self.problem.p)
        return _tail(self.problem.p, self.failure_probability) * (vector + matrix * norm) / (self.problem.n * target)


def charge(level: float) -> float:
    """Return what a level costs: its two parts as they are used, rounded up."""
    return add_losses(level * (1 - _SPLIT), level * _SPLIT)


def _tail(p: int, gamma: float) -> float:
    """Return roughly how far above the typical norm the bound lies; only places levels."""
    if p > SIMULATED_UP_TO:
        rough_matrix, rough_vector = _rough_norms(p)
        matrix, vector = noise_norms(p, 24, _RATIO, _SPLIT, gamma)  # proved, hence cheap
        return max(matrix / rough_matrix, vector / rough_vector)
    return 1 + 1.5 * math.log(1 / gamma) / math.sqrt(p)


def _rough_norms(p: int) -> tuple[float, float]:
    """Return typical ε‖B‖ and ε‖b‖, only to place the levels: semicircle edge and root mean square."""
    scale_matrix, scale_vector = 2 / (1 - _SPLIT), 2 / _SPLIT
    return math.sqrt(2) * scale_matrix * (math.sqrt(p) + 0.5), math.sqrt(2 * p) * scale_vector


def certified_covariance(
    sums: Sums, plan: CovariancePlan, account: Account, source: WordSource
) -> NDArray[np.float64] | None:
    """Reveal levels until a certificate meets the target; return θ, or None. The account is charged either way."""
    problem, p = plan.problem, plan.problem.p
    layout = Layout(p)
    packed = layout.pack(sums)
    matrices = NoisePath(
        packed[: layout.size - p], PART_UNITS, [level * (1 - _SPLIT) for level in plan.levels], random_state=source
    )
    vectors = NoisePath(
        packed[layout.size - p :], PART_UNITS, [level * _SPLIT for level in plan.levels], random_state=source
    )
    beta_matrix, beta_vector = plan.norms()
    before = account.generation
    for level, matrix, vector in zip(plan.levels, matrices, vectors, strict=True):
        account.generation = add_losses(before, charge(level))
        gram, moment = layout.unpack(np.concatenate([matrix.values, vector.values]))
        theta, certificate = best_certified(
            gram / problem.n,
            moment / problem.n,
            problem.regularization,
            beta_matrix / (problem.n * level),
            beta_vector / (problem.n * level),
        )
        if certificate <= problem.excess_risk:
            account.reasons.append(f"covariance certificate {certificate:.3g} at epsilon = {level:.3g}")
            return theta
    account.reasons.append("covariance certificate: no level sufficed")
    return None


def best_certified(
    second: NDArray[np.float64], first: NDArray[np.float64], lam: float, matrix_error: float, vector_error: float
) -> tuple[NDArray[np.float64], float]:
    """Return the candidate with the smallest certificate, and the certificate.

    Candidates: ridge solutions of the noisy moments with negative eigenvalues clipped and several additional ridges,
    and θ = 0. The certificate is evaluated for the θ returned, in the noisy moments as they are.
    """
    values, vectors = np.linalg.eigh(second)
    rotated = vectors.T @ first
    denominators = np.maximum(values, 0.0)[:, None] + lam * (1 + _SHIFTS[None, :])
    candidates = np.column_stack([rotated[:, None] / denominators, np.zeros_like(rotated)])
    gradients = (values + lam)[:, None] * candidates - rotated[:, None]
    bounds = np.linalg.norm(gradients, axis=0) + matrix_error * np.linalg.norm(candidates, axis=0)
    theta = vectors @ candidates[:, int(np.argmin(bounds))]
    # evaluated afresh for the θ that leaves, so that rounding in the eigenbasis does not matter
    gradient = second @ theta + lam * theta - first
    length = float(np.linalg.norm(theta))
    norm = float(np.linalg.norm(gradient)) + matrix_error * length + vector_error
    # rounding of the products: |second| has Frobenius norm below, hence γ_{2p}·(‖second‖_F + λ)‖θ‖ and the like
    size = (float(np.linalg.norm(second)) + lam) * length + float(np.linalg.norm(first))
    rounding = (4 * len(theta) + 32) * 2.0**-52 * size
    return np.asarray(theta), (norm * (1 + 1e-9) + rounding) ** 2 / (2 * lam)
