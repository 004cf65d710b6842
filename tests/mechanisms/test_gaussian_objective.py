"""Objective perturbation with Gaussian noise: true Rényi divergences of tiny problems, by quadrature, below the curve.

b and θ̂ determine each other, so in one dimension the density of θ̂ is known and nothing is sampled. Variants without the
Jacobian, with half of the sensitivity or for one sign where slopes have two are caught.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.special import logsumexp

from expost.account.composition import ORDERS, STEPS
from expost.mechanisms.objective.gaussian_objective import GaussianShot, largest_moved
from expost.mechanisms.objective.perturbation import ObjectiveRows
from expost.noise import SeededSource
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, SmoothedHingeLoss, WeightedLoss
from expost.table.rows import ONE, Rows
from expost.table.shape import Block, Geometry, gaussian_deviations, gaussian_size, l1_ball, l2_ball
from tests.helpers import RARE
from tests.mechanisms.test_objective import extreme_row

LOSSES = [
    CappedLogisticLoss(0.5),
    CappedLogisticLoss(0.3),
    LogisticLoss(),
    SmoothedHingeLoss(0.5),
    HuberLoss(0.25),
    WeightedLoss(CappedLogisticLoss(0.5), 0.2, 1.0),
]
PLACES = [0, 4, 8]  # orders 1.7, 3.8 and 12.3
SOME = np.array(STEPS)[PLACES]


def log_densities(shot: GaussianShot, x, y, theta, center):
    """ln of the density of θ̂ in one dimension."""
    (sigma,) = shot.deviations
    u = np.multiply.outer(theta, x)
    b = -(shot.loss.derivative(u, y) @ x + shot.n * shot.lam * (theta - center))
    bent = shot.loss.second_derivative(u, y) @ x**2 + shot.n * shot.lam
    return stats.norm.logpdf(b, scale=sigma) + np.log(bent)


def divergences(shot: GaussianShot, one, two, center: float) -> np.ndarray:
    """The true Rényi divergences between two data sets of numbers, at every order of the grid."""
    (sigma,) = shot.deviations
    wide = (40.0 * sigma + 2.0 * shot.slope * shot.n) / (shot.n * shot.lam)
    # close together near 0, where kinks are, and out to where nothing is left
    far = np.geomspace(1e-5, wide + abs(center) + 3, 3_000)
    theta = np.unique(np.concatenate([-far, far, np.linspace(center - wide, center + wide, 6_000)]))
    steps = np.log(np.gradient(theta))
    first, second = (log_densities(shot, *rows, theta, center) for rows in (one, two))
    assert abs(logsumexp(first + steps)) < 5e-3
    assert abs(logsumexp(second + steps)) < 5e-3
    return np.array([logsumexp(first + step * (first - second) + steps) / step for step in SOME])


def curve(shot: GaussianShot) -> np.ndarray:
    return np.array(shot.curve.losses)[PLACES]


def moved(shot: GaussianShot, mu: float, one_sided: bool | None = None) -> np.ndarray:
    """The part of the curve that noise makes, for some μ."""
    return np.array([largest_moved(mu, step, shot.loss.one_sided if one_sided is None else one_sided) for step in SOME])


def worst_divergence(shot: GaussianShot, replaced: int = 1, tries: int = 12) -> np.ndarray:
    """The largest true divergence over neighbours in one dimension, at some orders."""
    rng, worst = np.random.default_rng(0), np.zeros(len(SOME))
    for _ in range(tries):
        x = rng.choice([-1.0, 1.0, 0.3], shot.n)
        y = rng.choice([-1.0, 1.0], shot.n)
        x2, y2 = x.copy(), y.copy()
        x2[:replaced] = x[:replaced] if rng.random() < 0.7 else rng.choice([-1.0, 1.0, 0.0], replaced)
        y2[:replaced] = -y[:replaced]
        center = rng.choice([0.0, 1e-3, -0.1, 0.5, -1.0, 3.0])
        worst = np.maximum(worst, divergences(shot, (x, y), (x2, y2), center))
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_true_divergences_are_below_the_curve(loss):
    for n, rho, lam, rows in ((1, 0.05, 0.05, 1), (2, 0.5, 1e-3, 1), (1, 2.0, 20.0, 1), (3, 0.3, 0.02, 2)):
        shot = GaussianShot(loss, l1_ball(1), n, rho, lam, rows=rows)
        worst = worst_divergence(shot, rows)
        assert (worst <= curve(shot) + 1e-2).all()  # what the quadrature may be off by
        assert worst[-1] > 0.1 * curve(shot)[-1]


def test_without_the_jacobian_it_is_caught():
    """Noise so large that it costs next to nothing, and λ so small that rows can be seen by how they bend."""
    shot = GaussianShot(CappedLogisticLoss(0.5), l1_ball(1), 1, 0.005, 1e-3)
    worst = worst_divergence(shot)
    assert worst[-1] > moved(shot, math.sqrt(2 * shot.rho))[-1] + 3.0
    assert (worst <= curve(shot) + 1e-2).all()


@pytest.mark.parametrize("loss", [CappedLogisticLoss(0.5), HuberLoss(0.25)], ids=repr)
def test_with_half_the_sensitivity_it_is_caught(loss):
    """With much λ both rows stay where they are steepest, and the sum moves by 2κ."""
    shot = GaussianShot(loss, l1_ball(1), 1, 0.5, 1e4)
    worst, whole = worst_divergence(shot), math.sqrt(2 * shot.rho)
    assert shot.jacobian < 1e-3
    assert worst[-1] > 0.95 * ORDERS[PLACES[-1]] * shot.rho  # the Gaussian mechanism of sensitivity 2κ is attained
    assert worst[-1] > 3 * (moved(shot, whole / 2)[-1] + shot.jacobian)
    several = dataclasses.replace(shot, n=2)  # two rows of one person, charged as if they were one
    two = worst_divergence(several, replaced=2)
    assert two[-1] > 2 * curve(several)[-1]
    assert (worst_divergence(dataclasses.replace(several, rows=2), 2) <= curve(several)).all()


def expected_maximum(vectors, one_sided: bool, step: float) -> float:
    """ln E max of e^{(r−1)(g·w + ‖w‖²/2)} over all ends of slopes in the plane, by Gauss–Hermite points; over r − 1."""
    points, weights = hermegauss(80)
    g = np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2)
    mass = np.log(np.outer(weights, weights).ravel()) - math.log(2 * math.pi)
    ends = (0.0, 1.0) if one_sided else (-1.0, 1.0)
    w = np.array([np.array(s) @ vectors for s in itertools.product(ends, repeat=len(vectors))])
    worst = (g @ w.T + 0.5 * (w**2).sum(axis=1)).max(axis=1)
    return float(logsumexp(mass + step * worst)) / step


@pytest.mark.parametrize("one_sided", [True, False])
def test_no_two_directions_are_worse_than_one(one_sided):
    """All ends of the slopes, rows at any angle and length: what the proof bounds, and its bound is attained."""
    rng = np.random.default_rng(1)
    for step in (STEPS[0], STEPS[3], STEPS[6]):
        for mu in (0.05, 0.6):
            bound = largest_moved(mu, step, one_sided)
            worst = 0.0
            for k in range(14):
                count = 2 if k < 11 else 4
                angles = rng.uniform(0, 2 * math.pi, count) if k else np.zeros(count)
                lengths = (rng.uniform(0.5, 1, count) if k % 2 else np.ones(count)) * mu / count
                vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1) * lengths[:, None]
                worst = max(worst, expected_maximum(vectors, one_sided, step))
            assert 0.97 * bound < worst <= bound * 1.01  # Gauss–Hermite points and a kink
            assert worst > 1.5 * largest_moved(mu / 2, step, one_sided)
    if not one_sided:  # Huber's slopes have two signs: the bound for one is too small
        assert worst > 1.05 * largest_moved(mu, step, True)


def test_the_bound_is_the_gaussian_mechanisms_where_it_counts():
    for mu in (1e-3, 0.02, 0.5):
        for step in STEPS:
            gaussian = (1 + step) * mu**2 / 2
            for one_sided in (True, False):
                cost = largest_moved(mu, step, one_sided)
                assert gaussian <= cost * (1 + 1e-9)
                assert cost <= (gaussian + math.log(2) / step) * (1 + 1e-9) + 2e-14
                assert step * mu < 5 or cost <= gaussian * (1 + 1e-9 if one_sided else 1.06) + 1e-7


def test_noise_follows_the_shape_and_moves_by_what_is_charged():
    shape = Geometry((Block(3, "box", 0.4), Block(5, "l1", 0.5), Block(4, "l2", 0.5)), 1.0, "blocks")
    rng, rho, slope = np.random.default_rng(0), 0.02, 0.5
    deviations = np.repeat(gaussian_deviations(shape, slope, rho), [3, 5, 4])
    most = max(float(np.linalg.norm(2 * slope * extreme_row(rng, shape) / deviations)) for _ in range(2000))
    assert 0.98 * math.sqrt(2 * rho) < most <= math.sqrt(2 * rho)
    shot = GaussianShot(LogisticLoss(), shape, 100, rho, 0.1)
    root = math.sqrt(float((gaussian_deviations_of(shot) ** 2).sum()))
    assert math.isclose(root, 2 * gaussian_size(shape) / math.sqrt(2 * rho), rel_tol=1e-9)
    assert math.isclose(shot.typical, root / 100, rel_tol=1e-9)
    drawn = np.array([shot.law.draw(SeededSource([3, k]))[:12] for k in range(4000)]) / gaussian_deviations_of(shot)
    # χ² of each coordinate's variance and a mean, Bonferroni: RARE
    spread = (drawn**2).sum(axis=0)
    assert stats.chi2(4000).sf(spread.max()) > RARE / 24
    assert stats.chi2(4000).cdf(spread.min()) > RARE / 24
    assert np.linalg.norm(drawn * gaussian_deviations_of(shot), axis=1).max() / 100 <= shot.longest


def gaussian_deviations_of(shot: GaussianShot) -> np.ndarray:
    return np.repeat(shot.deviations, [block.size for block in shot.geometry.blocks])


def test_costs_add_up():
    """Noise, Jacobian and solver, rounded up."""
    for rho in np.geomspace(1e-9, 1.0, 12):
        shot = GaussianShot(HuberLoss(0.25), l2_ball(5), 5000, float(rho), 0.01, rows=3)
        for step, loss in zip(STEPS, shot.curve.losses, strict=True):
            parts = largest_moved(math.sqrt(2 * rho), step, False) + 3 * math.log1p(1 / 50)
            assert parts + shot.epsilon_solver * (step + 0.5) / step <= loss <= parts * 1.001 + 2 * shot.epsilon_solver
        assert shot.epsilon_solver < 0.02 * math.sqrt(rho)


def test_models_settle_with_little_noise():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 3)) / math.sqrt(3)
    y = np.where(x @ [1.0, 2.0, 3.0] > 0, ONE, -ONE).astype(np.int32)
    rows = ObjectiveRows(Rows(np.trunc(x * ONE).astype(np.int32), y, norm="l2"), LogisticLoss())
    shot = GaussianShot(LogisticLoss(), l2_ball(3), 400, 0.5, 0.05)
    drawn = [shot.draw(rows.perturbed, np.zeros(3), SeededSource(seed)) for seed in range(4)]
    quiet = dataclasses.replace(shot, rho=1e9)
    calm = [quiet.draw(rows.perturbed, np.zeros(3), SeededSource(seed)) for seed in range(2)]
    np.testing.assert_allclose(calm[0], calm[1], atol=1e-3)
    assert np.ptp([theta[0] for theta in drawn]) > 0.02
