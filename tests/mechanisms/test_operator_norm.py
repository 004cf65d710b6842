"""Norms of covariance noise: bounds on all levels of a path at once, against real paths, simulated and proved.

Statistical checks are one-sided binomial tests; each raises a false alarm with probability at most RARE = 1e-6 unless
another rate is stated (seeds are fixed, so a run that passed passes again). Each is paired with a bound that is too
small and has to be caught.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from expost.mechanisms.moments.certificate import CovariancePlan
from expost.mechanisms.moments.statistics import PART_SENSITIVITY, Layout, _below, _norm, noise_norm, shrink
from expost.noise import NoisePath, SeededSource
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import RARE, at_most_by_chance

ALPHA, GAMMA = 0.05, 0.045


def joint_norm(matrix, vector):
    return float(np.linalg.norm(np.column_stack([matrix, vector]), 2))


@pytest.mark.parametrize("p", [1, 4, 15])
def test_noise_norms_hold_along_real_paths(p):
    """Fresh exact paths exceed the bound at most as often as allowed; a bound half as large is exceeded more often."""
    gamma, split = 0.1, 0.4
    levels = [0.05 * 1.3**t for t in range(6)]
    beta, m = noise_norm(p, tuple(levels), gamma), shrink(p, gamma)
    rows, columns = np.triu_indices(p)
    weight = np.where(rows == columns, 1.0, 0.5)
    exceeded = exceeded_small = 0
    runs = 300
    for run_ in range(runs):
        source = SeededSource([9, p, run_])
        matrix = NoisePath(
            np.zeros(rows.size, int), PART_SENSITIVITY, [(1 - split) * e for e in levels], random_state=source
        )
        vector = NoisePath(np.zeros(p, int), PART_SENSITIVITY, [split * e for e in levels], random_state=source)
        seen = 0.0
        for level, a, b in zip(levels, matrix, vector, strict=True):
            B = np.zeros((p, p))
            B[rows, columns] = B[columns, rows] = a.values / 2.0**40 * weight
            seen = max(seen, joint_norm((1 - split) * B, split / m * b.values / 2.0**40) * level / beta)
        exceeded += seen > 1
        exceeded_small += seen > 1 / 2
    assert stats.binomtest(exceeded, runs, gamma, alternative="greater").pvalue > RARE
    assert stats.binomtest(exceeded_small, runs, gamma, alternative="greater").pvalue < RARE


@pytest.mark.parametrize("p", [1, 2, 9])
def test_a_norm_is_compared_without_computing_it(p):
    rng = np.random.default_rng(p)
    for _ in range(50):
        matrix, vector = rng.laplace(size=(p, p)), rng.laplace(size=p) * rng.choice([0, 1, 10])
        upper, size = np.triu(matrix), joint_norm(np.triu(matrix) + np.triu(matrix, 1).T, vector)
        assert _norm(upper, vector) == pytest.approx(size, rel=1e-9)
        assert _below(upper, vector, size * (1 + 1e-6))
        assert not any(_below(upper, vector, limit) for limit in (size * (1 - 1e-6), size / 2, 0.0))


def test_one_more_column_hardly_moves_the_norm():
    """What makes one norm cheaper than two: β for (B, b/m) is within 7 % of the same quantile for B alone."""
    p, rng = 40, np.random.default_rng(8)
    alone = []
    for _ in range(200):
        B = np.triu(rng.laplace(size=(p, p)), 1)
        alone.append(np.linalg.norm(B + B.T + np.diag(rng.laplace(scale=2, size=p)), 2))
    assert noise_norm(p, (1.0,), 0.1) < 1.07 * np.quantile(alone, 0.9)


@pytest.mark.parametrize("p", [220, 300])
def test_proved_norms_hold(p):
    """Matrix Bernstein is far from tight: a single level stays well below it in 40 draws."""
    beta, m = noise_norm(p, (1.0,), 0.1), shrink(p, 0.1)
    rng = np.random.default_rng(p)
    for _ in range(40):
        B = rng.laplace(size=(p, p))
        B = np.triu(B, 1) + np.triu(B, 1).T + np.diag(rng.laplace(scale=2, size=p))
        assert joint_norm(B, rng.laplace(scale=2 / m, size=p)) < beta


# --- as the covariance certificate uses them --------------------------------------------------------------------------


def covariance_plan(p: int, lam: float = 0.005, budget: float = math.inf, gamma: float = GAMMA) -> CovariancePlan:
    problem = Problem.of(SquaredLoss(), n=1000, p=p, regularization=lam)
    plan = CovariancePlan.of(problem, ALPHA, gamma).within(budget, lambda charge: charge)
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
            PART_SENSITIVITY,
            [level * (1 - plan.split) for level in plan.levels],
            random_state=source,
        )
        vectors = NoisePath(
            np.zeros(p, np.int64), PART_SENSITIVITY, [level * plan.split for level in plan.levels], random_state=source
        )
        for level, a, b in zip(plan.levels, matrices, vectors, strict=True):
            matrix, vector = layout.unpack(np.concatenate([a.values, b.values]))
            joint = np.column_stack([(1 - plan.split) * matrix, plan.split * vector / m])
            found[trial] = max(found[trial], level * np.linalg.norm(joint, 2) / beta)
    return found


@pytest.mark.parametrize(
    ("p", "budget"),
    [(1, math.inf), (2, math.inf), (2, 2.0), (5, math.inf), pytest.param(20, math.inf, marks=pytest.mark.slow)],
)
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


@pytest.mark.parametrize("p", [pytest.param(120, marks=pytest.mark.slow), 300])
def test_real_paths_stay_below_the_proved_norms(p):
    # false alarms: all paths would have to fail together, 0.045⁵ < 2e-7 (p = 120), 0.045² = 2e-3 (p = 300)
    found = suprema(covariance_plan(p), 5 if p == 120 else 2)
    assert found.min() <= 1
    assert found.max() > 0.2  # a fifth of the bound would be refuted
