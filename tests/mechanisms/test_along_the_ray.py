"""The ray inside the covariance certificate: what it saves, and what the search passes on to it."""

import dataclasses
import math

import numpy as np
import pytest

from expost.account.account import Account
from expost.goals.measure import gradient_target
from expost.mechanisms.moments import certificate as covariance
from expost.mechanisms.moments.certificate import CovariancePlan, certified_covariance
from expost.mechanisms.moments.statistics import SIMULATED_UP_TO
from expost.noise import SeededSource
from expost.passes.sums import SUM_UNIT, Sums
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem


def flat_sums(p, n, along, curvature=0.001, other=0.0):
    """Sums of rows whose second moments are flat but for ``curvature`` along the first; ‖first moments‖ = ``along``."""
    direction = np.full(p, 1 / math.sqrt(p))
    second = curvature * np.outer(direction, direction) + 1e-6 * np.eye(p)
    second[0, 0] += other
    first = along * direction
    to_units = lambda values: np.round(values * n * SUM_UNIT).astype(np.int64)  # noqa: E731
    return Sums(n, p, to_units(second), to_units(first), n * SUM_UNIT), second, first


def search(sums, problem, alpha, seed, ray=True):
    plan = CovariancePlan.of(problem, alpha, 0.08)
    if not ray:
        plan = CovariancePlan(problem, alpha, plan.levels, plan.steps, plan.split, 0.08)
    account = Account("certified", math.inf, False)
    theta = certified_covariance(sums, plan, account, SeededSource([seed]))
    return theta, account


def excess_risk(theta, second, first, lam):
    hessian = second + lam * np.eye(len(first))
    step = theta - np.linalg.solve(hessian, first)
    return 0.5 * step @ hessian @ step


class TestSearch:
    lam, n, p = 0.005, 200_000, SIMULATED_UP_TO + 10

    @property
    def problem(self):
        return Problem.of(SquaredLoss(), n=self.n, p=self.p, regularization=self.lam)

    def test_many_flat_columns_cost_less(self):
        """Where the null model misses the target fivefold, the ray ends the search at less than half the ε."""
        sums, second, first = flat_sums(self.p, self.n, 0.018)
        null = excess_risk(np.zeros(self.p), second, first, self.lam)
        theta, account = search(sums, self.problem, null / 5, 1)
        _, plain = search(sums, self.problem, null / 5, 1, ray=False)
        assert "along the first moments" in account.reasons[-1]
        assert account.generation < 0.5 * plain.generation
        assert excess_risk(theta, second, first, self.lam) <= null / 5

    def test_other_rows_are_left_to_the_norm(self):
        """θ* is far from Xᵀy: no c is accepted though the search succeeds."""
        sums, second, first = flat_sums(self.p, self.n, 0.018, other=0.05)
        theta, account = search(sums, self.problem, 0.002, 2)
        assert "along" not in account.reasons[-1]
        assert excess_risk(theta, second, first, self.lam) <= 0.002

    def test_few_columns_have_no_ray(self):
        problem = Problem.of(SquaredLoss(), n=1000, p=39, regularization=0.01)
        assert CovariancePlan.of(problem, 0.01, 0.08).ray == 0.0
        assert CovariancePlan.of(dataclasses.replace(problem, p=40), 0.01, 0.08).ray > 0
        assert CovariancePlan.of(self.problem, 0.01, 1e-5).ray == 0.0  # too many draws

    def test_what_the_search_passes_on(self, monkeypatch):
        """The target, failure probabilities that add up to the share, and scales that noise on the real path has."""
        sums, second, first = flat_sums(self.p, self.n, 0.018)
        seen, shares, norms = [], [], []

        def recorded(released, regularization, target, gamma, source):
            assert regularization == self.lam
            assert target == gradient_target(1e-4, self.lam)
            seen.append(released)
            shares.append(gamma)

        def norm(p, levels, gamma):
            norms.append(gamma)
            return 100.0

        def unsatisfied(second, first, lam, noise, lever, matrix_noise):
            assert matrix_noise == pytest.approx(noise / (1 - plan.split))
            return first, math.inf

        monkeypatch.setattr(covariance, "best_on_ray", recorded)
        monkeypatch.setattr(covariance, "best_certified", unsatisfied)
        plan = CovariancePlan.of(self.problem, 1e-4, 0.08)
        monkeypatch.setattr(covariance, "noise_norm", norm)
        assert certified_covariance(sums, plan, Account("certified", math.inf, False), SeededSource([3])) is None
        assert len(shares) == len(plan.levels)
        assert sum(shares) + norms[0] == pytest.approx(0.08)
        upper = np.triu_indices(self.p, 1)
        for level, released in zip(plan.levels, seen, strict=True):
            noise = released.second - second
            # Laplace of scale one has E|·| = 1 and variance 1; p entries: five standard errors
            for values, scale in (
                (np.diag(noise), released.matrix_scale),
                (2 * noise[upper], released.matrix_scale),
                (released.first - first, released.vector_scale),
            ):
                assert np.abs(values / scale).mean() == pytest.approx(1, abs=5 / math.sqrt(len(values)))
            norm_bound = plan.norm() / (self.n * level * (1 - plan.split))
            assert released.matrix_norm == pytest.approx(norm_bound)
            assert released.grain == 1 / (SUM_UNIT * self.n)
