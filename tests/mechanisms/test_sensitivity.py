"""Attempts to refute what noise on a minimiser is scaled by, with brute force over neighbours.

Nothing here is left to chance (seeds are fixed and every bound is meant to hold always), so the false-alarm rate is
zero. A bound that is too small would be caught.
"""

from __future__ import annotations

import numpy as np
import pytest

from expost.solve.losses import Loss, SquaredLoss
from expost.solve.minimiser import minimise
from expost.solve.problem import Problem
from tests.helpers import LOSSES


def minimiser_moves(loss: Loss, lam: float, radius: float | None, rng: np.random.Generator) -> float:
    """Return the largest ‖θ* − θ*′‖ found, in units of the sensitivity charged."""
    worst = 0.0
    for n, p in ((1, 1), (1, 2), (2, 2), (3, 1)):
        problem = Problem.of(loss, n=n, p=p, regularization=lam, radius=radius)
        ball = problem.radius if problem.radius_stated else None
        for _ in range(12):
            x = rng.choice([-1.0, 0.0, 1.0], size=(n, p))
            x /= np.maximum(1.0, np.abs(x).sum(axis=1, keepdims=True))
            y = rng.choice([-1.0, 1.0], size=n)
            there = minimise(loss, x, y, lam, radius=ball)
            x2, y2 = x.copy(), y.copy()
            x2[0], y2[0] = (-x[0], y[0]) if rng.random() < 0.5 else (np.eye(p)[rng.integers(p)], -y[0])
            here = minimise(loss, x2, y2, lam, radius=ball)
            allowed = problem.output_l2_sensitivity + 2 * there.bounds.distance_bound
            worst = max(worst, float(np.linalg.norm(there.theta - here.theta)) / allowed)
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [None, 0.003])
def test_no_neighbours_move_the_minimiser_further(loss, radius):
    rng = np.random.default_rng(3)
    assert max(minimiser_moves(loss, lam, radius, rng) for lam in (0.01, 1.0, 100.0)) <= 1


def test_a_minimiser_comes_close_to_what_is_charged():
    assert minimiser_moves(SquaredLoss(), 100.0, None, np.random.default_rng(3)) > 0.95
