"""The covariance certificate: its lemmas on small cases, its split, and where its levels begin and end.

Where chance is involved, tests are seeded with a false-alarm rate of RARE; each is paired with something broken.
"""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from expost.account.account import Account
from expost.account.composition import add_losses
from expost.goals.measure import gradient_target
from expost.mechanisms.moments.certificate import CovariancePlan, best_certified, best_split
from expost.mechanisms.moments.statistics import noise_norm, shrink
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import RARE

ALPHA, GAMMA = 0.05, 0.045


def lever(kappa):
    return lambda norm: math.hypot(norm, kappa)


class TestCertificate:
    def test_the_certificate_holds_on_its_event(self):
        """For noise of exactly the assumed size in random directions, the certificate bounds the true excess risk."""
        rng = np.random.default_rng(5)
        lam = 0.05
        for _ in range(200):
            p = int(rng.integers(1, 6))
            root = rng.normal(size=(p, p)) * rng.choice([0.02, 0.3])
            second, first = root @ root.T, rng.normal(size=p) * 0.1
            noise = rng.normal(size=(p, p))
            noise = (noise + noise.T) / 2
            size_b, size_v = rng.choice([1e-4, 1e-2, 0.1], 2)
            noise *= size_b / np.linalg.norm(noise, 2)
            vector = rng.normal(size=p)
            vector *= size_v / np.linalg.norm(vector)
            kappa = float(rng.choice([0.1, 1.0, 10.0]))
            joint = float(np.linalg.norm(np.column_stack([noise, vector / kappa]), 2))
            theta, certificate = best_certified(second + noise, first + vector, lam, joint, lever(kappa), size_b)
            best = np.linalg.solve(second + lam * np.eye(p), first)
            step = theta - best
            assert 0.5 * step @ (second + lam * np.eye(p)) @ step <= certificate

    def test_a_smaller_claimed_noise_is_caught(self):
        """With a tenth of the noise admitted to, certificates are violated: the test above can fail."""
        rng = np.random.default_rng(6)
        lam, violated = 0.05, 0
        for _ in range(200):
            noise = rng.normal(size=(3, 3))
            noise = (noise + noise.T) / 2
            noise *= 0.1 / np.linalg.norm(noise, 2)
            vector = rng.normal(size=3)
            vector *= 0.1 / np.linalg.norm(vector)
            theta, certificate = best_certified(np.eye(3) * 0.1 + noise, vector, lam, 0.01, lever(1.0), 0.01)
            violated += 0.5 * 0.15 * theta @ theta > certificate  # the optimum is zero
        assert violated > 20

    def test_no_other_theta_has_a_certificate_much_smaller(self):
        """Against a general minimiser started from several points; the candidates are points of the best curve."""
        rng, lam = np.random.default_rng(7), 0.05
        for _ in range(20):
            p, noise = int(rng.integers(2, 6)), float(rng.choice([1e-3, 0.02, 0.1]))
            root = rng.normal(size=(p, p)) * 0.2
            second, first = root @ root.T - 0.04 * np.eye(p), rng.normal(size=p) * 0.1

            def bound(theta, second=second, first=first, noise=noise):
                gradient = second @ theta + lam * theta - first
                return np.linalg.norm(gradient) + noise * math.hypot(np.linalg.norm(theta), 1.0)

            starts = [np.zeros(p), np.linalg.solve(second + lam * np.eye(p), first), rng.normal(size=p)]
            found = min(optimize.minimize(bound, start, method="Powell").fun for start in starts)
            theta, certificate = best_certified(second, first, lam, noise, lever(1.0), math.inf)
            assert certificate == pytest.approx(bound(theta) ** 2 / (2 * lam), rel=1e-6)
            assert math.sqrt(2 * lam * certificate) <= 1.02 * found

    def test_curvature_in_every_direction_makes_it_smaller(self):
        """By (λ + λ_min − noise)/λ, and it still bounds the risk; counting no noise against the curvature is caught."""
        rng, lam, violated = np.random.default_rng(8), 0.01, 0
        for _ in range(300):
            noise = rng.normal(size=(2, 2))
            noise = (noise + noise.T) / 2
            noise *= 0.2 / np.linalg.norm(noise, 2)
            second, first = np.eye(2) * 0.25, rng.normal(size=2) * 0.01
            shared = (second + noise, first, lam, 0.2, lambda norm: norm)
            (theta, plain), (_, sharp) = best_certified(*shared, math.inf), best_certified(*shared, 0.2)
            lowest = np.linalg.eigvalsh(second + noise)[0]
            assert sharp == pytest.approx(plain * lam / (lam + max(0.0, lowest - 0.2)), rel=1e-6)
            hessian = second + lam * np.eye(2)
            gradient = hessian @ theta - first
            risk = 0.5 * gradient @ np.linalg.solve(hessian, gradient)
            assert risk <= sharp
            exact = np.linalg.norm(gradient) ** 2 / 2  # what a certificate with no slack in ‖∇L(θ)‖ would divide
            violated += risk > exact / (lam + lowest)
        assert violated > 20

    @pytest.mark.parametrize("parallel", [True, False])
    def test_certificates_hold_under_fresh_noise(self, parallel):
        """Where gradients bound risks exactly (no curvature), or θ* is far from Xᵀy; a fourth of β is caught.

        With one strong direction and first moments elsewhere too, θ* is not parallel to them.
        """
        p, lam, gamma, split, size, runs = 6, 1.0, 0.1, 0.4, 0.02, 1500
        beta, m = noise_norm(p, (1.0,), gamma), shrink(p, gamma)
        second = np.diag([0.0 if parallel else 5.0] + [0.0] * (p - 1))
        first = np.full(p, 0.8)
        best = np.linalg.solve(second + lam * np.eye(p), first)
        rng = np.random.default_rng([10, parallel])
        violated = {1.0: 0, 0.25: 0}
        for _ in range(runs):
            B = np.triu(rng.laplace(size=(p, p)), 1)
            B = (B + B.T + np.diag(rng.laplace(scale=2, size=p))) * size / (1 - split)
            b = rng.laplace(scale=2, size=p) * size / split
            for part in violated:
                theta, certificate = best_certified(
                    second + B,
                    first + b,
                    lam,
                    part * size * beta,
                    lambda r: math.hypot(r / (1 - split), m / split),
                    part * size * beta / (1 - split),
                )
                step = theta - best
                violated[part] += 0.5 * step @ (second + lam * np.eye(p)) @ step > certificate
        assert stats.binomtest(violated[1.0], runs, gamma, alternative="greater").pvalue > RARE
        assert stats.binomtest(violated[0.25], runs, gamma, alternative="greater").pvalue < RARE


def test_a_certificate_holds_whenever_the_noise_is_as_small_as_stated():
    # no chance involved: noise is scaled to exactly the norms stated
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p, n, lam = int(rng.integers(1, 6)), 50, float(10 ** rng.uniform(-4, 0))
        x = rng.standard_normal((n, p)) / p
        x /= np.maximum(1, np.abs(x).sum(axis=1, keepdims=True))
        y = rng.uniform(-1, 1, n)
        noise = rng.standard_normal((p, p))
        noise = (noise + noise.T) / 2
        size, shift = 10 ** rng.uniform(-4, 1, 2)
        noise *= size / np.abs(np.linalg.eigvalsh(noise)).max()
        vector = rng.standard_normal(p)
        vector *= shift / np.linalg.norm(vector)
        gram, moment = x.T @ x / n, x.T @ y / n
        kappa = float(10 ** rng.uniform(-1, 1))
        joint = float(np.linalg.norm(np.column_stack([noise, vector / kappa]), 2))
        theta, certificate = best_certified(
            gram + noise, moment + vector, lam, joint, lambda norm, kappa=kappa: math.hypot(norm, kappa), size
        )
        hessian = gram + lam * np.eye(p)
        step = theta - np.linalg.solve(hessian, moment)
        assert 0.5 * step @ hessian @ step <= certificate


# --- split and levels -------------------------------------------------------------------------------------------------


def test_the_split_is_the_best_for_its_norm():
    for norm in (0.1, 1.0, 7.0):
        split = best_split(norm, 1.3)
        cost = [math.hypot(norm / (1 - w), 1.3 / w) for w in (split * 0.98, split, split * 1.02)]
        assert cost[1] == min(cost)


def covariance_plan(p: int, lam: float = 0.005, gamma: float = GAMMA) -> CovariancePlan:
    return CovariancePlan.of(Problem.of(SquaredLoss(), n=1000, p=p, regularization=lam), ALPHA, gamma)


def test_a_budget_is_kept_to_the_last_bit():
    """Losses are rounded up one after another; what is checked beforehand is rounded as it will be charged."""
    problem = Problem.of(SquaredLoss(), n=200, p=2, regularization=1.0)
    free = CovariancePlan.of(problem, 0.01, 0.08)
    rng, apart, top = np.random.default_rng(29), 0, free.charge(free.levels[3])
    for _ in range(200):
        account = Account("certified", math.inf, True, *(top * 10 ** rng.uniform(-3, 0, 3)).tolist())
        for budget in (account.after(top), add_losses(account.total, top)):  # a level that only just fits
            plan = free.within(budget, account.after)
            after = dataclasses.replace(
                account, generation=add_losses(account.generation, plan.charge(plan.levels[-1]))
            )
            assert after.total <= budget
        apart += account.after(top) > add_losses(account.total, top)
    assert apart > 5  # the check by totals would have let some through


@pytest.mark.parametrize(("p", "gamma", "lam"), [(1, 0.0045, 1.0), (3, 0.045, 0.01)])
def test_levels_reach_where_a_certificate_must_come(p, gamma, lam):
    problem = Problem.of(SquaredLoss(), n=1000, p=p, regularization=lam)
    plan = CovariancePlan.of(problem, 0.01, gamma)
    target = gradient_target(0.01, lam)
    needed = plan.norm() * plan.lever(SquaredLoss().radius(lam) + target / lam) / (1000 * target)
    assert needed <= plan.levels[-1] < 3 * needed


@pytest.mark.parametrize(("p", "lam"), [(1, 1.0), (3, 0.05), (10, 0.005)])
def test_the_last_level_can_certify_every_optimum_in_few_dimensions(p, lam):
    plan = covariance_plan(p, lam)
    room = gradient_target(plan.excess_risk, lam) * plan.problem.n * plan.levels[-1]
    assert plan.norm() * plan.lever(plan.problem.radius) <= room


@pytest.mark.parametrize(("p", "gamma"), [(120, GAMMA), (300, GAMMA), (3, 0.01 * GAMMA)])
def test_the_last_level_can_certify_every_optimum(p, gamma):
    lam = 0.1
    plan = covariance_plan(p, lam, gamma=gamma)
    problem = plan.problem
    room = gradient_target(plan.excess_risk, lam) * problem.n * plan.levels[-1]
    assert plan.norm() * plan.lever(problem.radius) <= room


def test_the_parts_of_a_level_do_not_exceed_its_charge():
    for k in range(200):
        plan, level = covariance_plan(2, lam=0.9**k), 0.01 * 1.0123**k
        assert Fraction(level * (1 - plan.split)) + Fraction(level * plan.split) <= Fraction(plan.charge(level))
