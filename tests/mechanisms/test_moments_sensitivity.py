"""How far one row moves second and first moments together: no pair of rows goes further, and some go as far."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from expost.mechanisms.moments.gaussian_moments import best_weights, moments_sensitivity

P = 3


def moved(parameters, u, v):
    """The change for two rows in the ball, read off any vector of numbers."""
    rows = []
    for part in np.split(parameters, 2):
        x = part[:P] / max(1.0, np.linalg.norm(part[:P]))
        rows.append((x, math.tanh(part[P])))
    (x, y), (other, target) = rows
    second = np.linalg.norm(np.outer(x, x) - np.outer(other, other))
    return math.hypot(u * second, v * np.linalg.norm(y * x - target * other))


def largest(u, v):
    """The largest change that a search finds from several beginnings, where targets are nearly ±1."""
    rng = np.random.default_rng(3)
    begun = [rng.normal(0.0, 2.0, 2 * (P + 1)) for _ in range(6)]
    found = [minimize(lambda t: -moved(t, u, v), start, method="BFGS", options={"maxiter": 60}) for start in begun]
    return max(-one.fun for one in found)


WEIGHTS = [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.6, 0.8), (1.0, 2.0)]


@pytest.mark.parametrize(("u", "v"), WEIGHTS)
def test_no_pair_of_rows_moves_them_further_and_some_do_so_far(u, v):
    stated = moments_sensitivity(u, v)
    assert 0.99 * stated < largest(u, v) <= stated


def test_control_rows_at_a_right_angle_are_not_the_worst():
    """2u² + 2v², what orthogonal rows move, leaves out that they may lean towards each other."""
    assert largest(1.0, 1.0) > 1.03 * math.sqrt(4.0)


def test_separate_bounds_are_larger():
    for u, v in WEIGHTS[1:4]:
        assert moments_sensitivity(u, v) ** 2 < 2 * u**2 + 4 * v**2


@pytest.mark.parametrize("norm", [0.0, 0.1, 1.0, 3.0, 30.0])
def test_weights_cost_one_and_none_are_better(norm):
    def noise(q):
        length = moments_sensitivity(1.0, math.sqrt(q))
        return length**2 * (norm**2 / 2 + 1 / q)

    u, v = best_weights(norm)
    assert 1 - 1e-9 < moments_sensitivity(u, v) <= 1.0
    assert norm**2 / (2 * u**2) + 1 / v**2 <= min(noise(q) for q in np.geomspace(1e-3, 4, 400)) * (1 + 1e-4)


def test_weights_that_are_none():
    with pytest.raises(ValueError, match="positive"):
        moments_sensitivity(0.0, 1.0)
