"""Few statistics: how far one row moves each of them, by brute force, and what the attempts cost.

Nothing here is left to chance (seeds are fixed and every bound is meant to hold always).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from expost.account.account import Account
from expost.goals.measure import gradient_target
from expost.mechanisms import Covariance
from expost.mechanisms.moments import covariance as few_statistics
from expost.mechanisms.moments.covariance import FewPlan
from expost.noise import SeededSource
from expost.numeric import Grid
from expost.passes.sums import sums_over
from expost.search import noisy_test as noisy_value
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem, gradient_sensitivity
from tests.helpers import fixed_rows


def few_plan(alpha: float, gamma: float, **numbers) -> FewPlan:
    problem = Problem.of(SquaredLoss(), **numbers)
    return FewPlan.of(problem, alpha, gamma, Covariance().errors(problem))


def test_levels_by_hand():
    plan = few_plan(0.05, 0.035, n=100_000, p=77, regularization=0.005)
    target = gradient_target(0.05, 0.005)
    generating = 2 * math.sqrt(154) / 1e5 / target
    testing = gradient_sensitivity(SquaredLoss(), 1.0) / 1e5 * math.log(1 / (2 * 0.035 / 4)) / target
    share = math.sqrt(testing) / (math.sqrt(testing) + math.sqrt(generating))
    assert plan.levels[0] == pytest.approx(generating / (1 - share))
    assert plan.levels[1] / plan.levels[0] == pytest.approx(1.35)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sensitivities(k):
    """Neighbours move M, doubled off the diagonal, by at most 2δ² (δ² for one direction), and w by at most 2‖d‖_∞."""
    rng = np.random.default_rng(k)
    worst_m = worst_w = 0.0
    for _ in range(300):
        p = int(rng.integers(k, 6))
        D = np.linalg.qr(rng.normal(size=(p, k)))[0]
        delta = np.abs(D).sum(axis=1).max()
        rows = rng.dirichlet(np.full(p, 0.2), 60) * rng.choice([-1, 1], (60, p))
        v = rows @ D
        weights = 2.0 - np.eye(k)
        parts = (v[:, :, None] * v[:, None, :] * np.where(np.triu(np.ones((k, k))) > 0, weights, 0)).reshape(60, -1)
        worst_m = max(worst_m, np.abs(parts[:, None] - parts[None]).sum(axis=2).max() / delta**2)
        w = rows * (rows @ D[:, :1])
        worst_w = max(worst_w, np.abs(w[:, None] - w[None]).sum(axis=2).max() / (2 * np.abs(D[:, 0]).max()))
    assert worst_m <= (1 if k == 1 else 2) + 1e-12
    assert worst_m > 0.5
    assert worst_w <= 1 + 1e-12


def captured_units(monkeypatch, reveal, *arguments) -> tuple[np.ndarray, int]:
    """Return the integers a release adds noise to and the sensitivity charged for them."""
    seen: dict[str, int] = {}

    def planted(epsilon, sensitivity, size, *, random_state):
        seen.update(units=sensitivity)
        return np.zeros(size, dtype=np.int64)

    grids: list[float] = []
    original = Grid.of

    def watched(sensitivity, *, error_bound=0.0):
        found = original(sensitivity, error_bound=error_bound)
        grids.append(found.unit)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(noisy_value, "discrete_laplace", planted)
        patch.setattr(noisy_value.Grid, "of", staticmethod(watched))
        values = np.asarray(reveal(*arguments))
    if values.ndim == 2:  # undo what comes after the release
        rows, columns = np.triu_indices(len(values))
        values = values[rows, columns] * np.where(rows == columns, 1.0, 2.0)
    return np.rint(values / grids[-1]), seen["units"]


def shares_of_sensitivity(monkeypatch) -> dict[str, float]:
    """Return, for each statistic, the largest ℓ₁ change found over what is charged."""
    worst = {"w": 0.0, "M1": 0.0, "M2": 0.0, "M3": 0.0}
    rng = np.random.default_rng(5)
    for trial in range(60):
        p, n = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        plan = few_plan(0.1, 0.03, n=n, p=p, regularization=0.1)
        basis = np.linalg.qr(rng.standard_normal((p, p)))[0]
        if trial % 3 == 0:
            basis = np.eye(p)
        x = rng.choice([-1.0, 0.0, 1.0], size=(n, p)) + (trial % 2) * rng.standard_normal((n, p))
        other = x.copy()
        # the rows that move most: along the largest entry, against none or against another corner
        other[0] = 0.0 if trial % 4 < 2 else np.eye(p)[rng.integers(p)]
        x[0] = np.eye(p)[int(np.abs(basis[:, 0]).argmax())]
        grams = [sums_over(fixed_rows(rows, np.ones(n))).as_floats()[0] for rows in (x, other)]
        for name, k in (("w", 1), ("M1", 1), ("M2", 2), ("M3", 3)):
            if k > p:
                continue
            reveal = few_statistics._direction if name == "w" else few_statistics._projected
            along = basis[:, 0] if name == "w" else basis[:, :k]
            rest = (along, plan, Account("test", math.inf, False), SeededSource(0))
            pair = [captured_units(monkeypatch, reveal, gram, *rest) for gram in grams]
            worst[name] = max(worst[name], float(np.abs(pair[0][0] - pair[1][0]).sum()) / pair[0][1])
    return worst


def test_few_statistics_move_no_further_than_charged(monkeypatch):
    found = shares_of_sensitivity(monkeypatch)
    assert max(found.values()) <= 1
    # and not much less, so that half of the charge would be refuted
    assert min(found["w"], found["M1"], found["M2"]) > 0.51
