"""Attempts to refute the accuracy lemmas: noise norms along real paths, noise energy over many Σ, reach of the levels.

Statistical checks are one-sided binomial tests; each raises a false alarm with probability at most RARE = 1e-6 (seeds
are fixed, so a run that passed passes again). Each is paired with a bound that is too small and has to be caught.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from expost import SeededSource
from expost.erm.losses import SquaredLoss
from expost.erm.statistics import Layout
from expost.noise.path import NoisePath
from expost.search.certified_covariance import CovariancePlan, best_certified
from expost.search.laplace_energy import laplace_energy
from expost.search.noise_norms import PART_UNITS, shrink
from expost.search.plan import Problem
from expost.search.spherical_energy import spherical_energy
from expost.search.stationarity import gradient_target

from .tools import at_most_by_chance

GAMMA = 0.045


def covariance_plan(p: int, lam: float = 0.005, budget: float = math.inf, gamma: float = GAMMA) -> CovariancePlan:
    problem = Problem.of(SquaredLoss(), n=1000, p=p, regularization=lam, excess_risk=0.05)
    plan = CovariancePlan.of(problem, gamma, budget)
    assert plan is not None
    return plan


def suprema(plan: CovariancePlan, trials: int) -> np.ndarray:
    """Return, for real paths of noise, the suprema over levels of ‖(B, b/m)‖ in units of what is allowed there."""
    p = plan.problem.p
    layout = Layout(p)
    beta, m = plan.norm(), shrink(p, plan.failure_probability)
    found = np.zeros(trials)
    for trial in range(trials):
        source = SeededSource([77, p, trial])
        matrices = NoisePath(
            np.zeros(layout.size - p, np.int64),
            PART_UNITS,
            [level * (1 - plan.split) for level in plan.levels],
            random_state=source,
        )
        vectors = NoisePath(
            np.zeros(p, np.int64), PART_UNITS, [level * plan.split for level in plan.levels], random_state=source
        )
        for level, a, b in zip(plan.levels, matrices, vectors, strict=True):
            matrix, vector = layout.unpack(np.concatenate([a.values, b.values]))
            joint = np.column_stack([(1 - plan.split) * matrix, plan.split * vector / m])
            found[trial] = max(found[trial], level * np.linalg.norm(joint, 2) / beta)
    return found


@pytest.mark.parametrize(("p", "budget"), [(1, math.inf), (2, math.inf), (2, 2.0), (5, math.inf), (20, math.inf)])
def test_real_paths_stay_below_the_simulated_norms(p, budget):
    trials = 100
    found = suprema(covariance_plan(p, budget=budget), trials)
    assert np.count_nonzero(found > 1) <= at_most_by_chance(trials, GAMMA)
    if math.isinf(budget):  # half of the bound would be refuted
        assert np.count_nonzero(found > 0.5) > at_most_by_chance(trials, GAMMA)


@pytest.mark.slow
def test_real_paths_stay_below_the_simulated_norms_in_77_dimensions():
    found = suprema(covariance_plan(77), 1000)
    assert np.count_nonzero(found > 1) <= at_most_by_chance(1000, GAMMA)


@pytest.mark.parametrize("p", [120, 300])
def test_real_paths_stay_below_the_proved_norms(p):
    # false alarms: all paths would have to fail together, 0.045⁵ < 2e-7 (p = 120), 0.045² = 2e-3 (p = 300)
    found = suprema(covariance_plan(p), 5 if p == 120 else 2)
    assert found.min() <= 1
    assert found.max() > 0.2  # a fifth of the bound would be refuted


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


# --- noise energy --------------------------------------------------------------------------------------------------


def draws(kind: str, p: int, count: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "laplace":
        return rng.laplace(size=(count, p))
    direction = rng.standard_normal((count, p))
    return direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.gamma(p, size=(count, 1))


@pytest.mark.parametrize("kind", ["laplace", "spherical"])
@pytest.mark.parametrize("p", [1, 2, 3, 10, 38])
def test_no_second_moments_of_that_trace_give_more_energy(kind, p):
    rng = np.random.default_rng([p, 9])
    count, gamma = 20_000, 0.08
    b = draws(kind, p, count, rng)
    squares = b**2
    bound = laplace_energy if kind == "laplace" else spherical_energy
    for trace, curvature, lam in ((0.1, 0.25, 0.005), (1.0, 1.0, 0.1), (1e-3, 1.0, 0.005), (1.0, 100.0, 0.01)):
        q = bound(p, trace, curvature=curvature, regularization=lam, gamma=gamma)
        dense = rng.standard_normal((p, p))
        dense = dense @ dense.T
        unit = rng.standard_normal(p)
        forms = [
            squares[:, 0],
            squares.mean(axis=1),
            squares @ rng.dirichlet(np.full(p, 0.3)),
            (b @ (unit / np.linalg.norm(unit))) ** 2,
            b.sum(axis=1) ** 2 / p,
            np.einsum("ij,jk,ik->i", b, dense / np.trace(dense), b),
        ]
        energies = [0.5 * curvature * trace * form + 0.5 * lam * squares.sum(axis=1) for form in forms]
        exceeded = [int(np.count_nonzero(energy > q)) for energy in energies]
        assert max(exceeded) <= at_most_by_chance(count, gamma)
        broken = [int(np.count_nonzero(energy > q / 4)) for energy in energies]
        assert max(broken) > at_most_by_chance(count, gamma)


# --- reach ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "lam"), [(1, 1.0), (3, 0.05), (10, 0.005)])
def test_the_last_level_can_certify_every_optimum_in_few_dimensions(p, lam):
    plan = covariance_plan(p, lam)
    room = gradient_target(plan.problem.excess_risk, lam) * plan.problem.n * plan.levels[-1]
    assert plan.norm() * plan.lever(plan.problem.radius) <= room


# --- what once did not hold ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "gamma"), [(120, GAMMA), (300, GAMMA), (3, 0.01 * GAMMA)])
def test_the_last_level_can_certify_every_optimum(p, gamma):
    lam = 0.1
    plan = covariance_plan(p, lam, gamma=gamma)
    problem = plan.problem
    room = gradient_target(problem.excess_risk, lam) * problem.n * plan.levels[-1]
    assert plan.norm() * plan.lever(problem.radius) <= room


def test_the_parts_of_a_level_do_not_exceed_its_charge():
    for k in range(200):
        plan, level = covariance_plan(2, lam=0.9**k), 0.01 * 1.0123**k
        assert Fraction(level * (1 - plan.split)) + Fraction(level * plan.split) <= Fraction(plan.charge(level))
