"""S(m) against neighbours: never exceeded, and nearly attained."""

import math

import numpy as np
import pytest

from expost.solve.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss, WeightedLoss
from expost.solve.problem import gradient_sensitivity

LOSSES = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(0.3),
    SmoothedHingeLoss(0.5),
    WeightedLoss(LogisticLoss(), 0.25, 1.0),
]


def largest_difference(loss, m, rng, thetas=80, rows=240):
    """Search rows at vertices, on edges and inside the ball for the largest distance of two gradients."""
    best = 0.0
    for _ in range(thetas):
        p = int(rng.integers(1, 5))
        theta = rng.uniform(-m, m, p)
        theta[0] = m * rng.choice([-1, 1])
        x = rng.dirichlet(np.full(p, 0.3), rows) * rng.choice([-1, 1], (rows, p))
        vertices = np.eye(p)[rng.integers(0, p, rows // 2)] * rng.choice([-1, 1], (rows // 2, 1))
        x[: rows // 2] = vertices
        y = rng.choice([-1.0, 1.0], rows)
        if loss.labels == "real":
            y[::3] = rng.uniform(-1, 1, y[::3].size)
        gradients = loss.derivative(x @ theta, y)[:, None] * x
        best = max(best, float(np.linalg.norm(gradients[:, None] - gradients[None], axis=2).max()))
    return best


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("m", [0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0])
def test_no_neighbour_exceeds_it(loss, m):
    assert largest_difference(loss, m, np.random.default_rng([7, int(10 * m)])) <= gradient_sensitivity(loss, m)


@pytest.mark.parametrize("m", [0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0])
def test_the_squared_loss_nearly_attains_it(m):
    found = largest_difference(SquaredLoss(), m, np.random.default_rng([8, int(10 * m)]))
    assert found >= 0.97 * gradient_sensitivity(SquaredLoss(), m)


def test_smaller_than_twice_the_slope():
    """The naive bound 2·max|φ′| is what the lemma improves on; equality would mean it does nothing."""
    assert gradient_sensitivity(SquaredLoss(), 4.0) == pytest.approx(math.sqrt(2) * 5)
    assert gradient_sensitivity(LogisticLoss(), 1.0) < 1.1 < 2 * LogisticLoss().lipschitz(1.0)


def test_grid_against_closed_form():
    """The cells that bound other losses, given the squared loss's slope, agree with its closed form from above."""
    from expost.solve.problem import _by_cells

    class Renamed(SquaredLoss):
        name = "squared by cells"

    for m in (0.25, 0.5, 1.0, 3.0):
        exact = gradient_sensitivity(SquaredLoss(), m)
        assert exact <= _by_cells(Renamed(), m) <= 1.02 * exact


def test_a_loss_of_unknown_symmetry_gets_the_safe_bound():
    class Lopsided(LogisticLoss):
        symmetric = False
        name = "lopsided"

    assert gradient_sensitivity(Lopsided(), 2.0) == 2 * Lopsided().lipschitz(2.0)
    assert Loss.symmetric is False


def test_bad_argument():
    with pytest.raises(ValueError, match="non-negative"):
        gradient_sensitivity(SquaredLoss(), -1.0)
