"""Objective perturbation: the density of what is released, exactly, on neighbouring data sets.

b and θ̂ determine each other, so the density of θ̂ is that of b = −G(θ̂) times |det ∂G(θ̂)|: no sampling is needed to try
to refute the theorem, and each way to get it wrong is caught.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from experiments.methods import RescaledCovariance
from expost import ExcessRisk
from expost.exceptions import TargetUnreachable
from expost.mechanisms import Covariance, ObjectivePerturbation, Output, ThroughHuber, mechanism_for
from expost.mechanisms.descent.gradient_descent import GradientDescent
from expost.mechanisms.moments.gaussian_moments import GaussianMoments
from expost.mechanisms.objective.perturbation import ObjectiveRows, Shot, noise_quantile
from expost.noise import SeededSource
from expost.search import METHODS, run_search
from expost.search.request import Request
from expost.solve.losses import (
    CappedLogisticLoss,
    HuberLoss,
    LogisticLoss,
    SmoothedHingeLoss,
    SquaredLoss,
    WeightedLoss,
)
from expost.solve.problem import Problem
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import Block, Geometry, l1_ball, l2_ball
from tests.helpers import RARE, logistic_rows

ORDERS = {"box": np.inf, "l1": 1, "l2": 2}
LOSSES = [
    CappedLogisticLoss(0.5),
    CappedLogisticLoss(0.3),
    LogisticLoss(),
    HuberLoss(0.25),
    SmoothedHingeLoss(0.5),
    WeightedLoss(CappedLogisticLoss(0.5), 0.2, 1.0),
]
HALF = 1 / math.sqrt(2)
SHAPES = {
    1: [l1_ball(1)],
    2: [
        l1_ball(2),
        l2_ball(2),
        Geometry((Block(2, "box", HALF),), 1.0, "box"),
        Geometry((Block(1, "box", HALF), Block(1, "l1", HALF)), 1.0, "blocks"),
    ],
}


def log_density(shot: Shot, weights, x, y, theta, center) -> float:
    """ln of the density of θ̂ at a point, up to a constant that no data set changes."""
    u = x @ theta
    b = -(shot.loss.derivative(u, y) @ x + shot.n * shot.lam * (theta - center))
    jacobian = (x.T * shot.loss.second_derivative(u, y)) @ x + shot.n * shot.lam * np.eye(theta.size)
    total, place = float(np.linalg.slogdet(jacobian)[1]), 0
    for block, weight in zip(shot.geometry.blocks, weights, strict=True):
        total -= weight * float(np.linalg.norm(b[place : place + block.size], ord=ORDERS[block.norm]))
        place += block.size
    return total


def extreme_row(rng, geometry: Geometry) -> np.ndarray:
    """A row as long as the shape allows, in a random or an extreme direction."""
    parts = []
    for block in geometry.blocks:
        v = rng.normal(size=block.size) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], block.size)
        v = np.eye(block.size)[rng.integers(block.size)] if rng.random() < 0.3 else v
        parts.append(v * (block.radius / np.linalg.norm(v, ord=ORDERS[block.norm])))
    row = np.concatenate(parts)
    return row / max(1.0, float(np.linalg.norm(row)))


def worst_ratio(shot: Shot, weights=None, other: Shot | None = None, tries: int = 400, seed: int = 0) -> float:
    """The largest log ratio of densities over random and extreme neighbours and points."""
    rng, p, worst = np.random.default_rng(seed), shot.geometry.columns, 0.0
    weights = shot.geometry.weights(shot.epsilon_noise, shot.slope) if weights is None else weights
    for _ in range(tries):
        x = np.array([extreme_row(rng, shot.geometry) * rng.choice([0.0, 1.0]) for _ in range(shot.n)])
        x[0] = extreme_row(rng, shot.geometry)
        y = rng.choice([-1.0, 1.0], shot.n)
        x2, y2 = x.copy(), y.copy()
        x2[0] = rng.choice([-1.0, 1.0]) * x[0] if rng.random() < 0.6 else extreme_row(rng, shot.geometry)
        y2[0] = rng.choice([-1.0, 1.0])
        theta = rng.normal(size=p) * 10.0 ** rng.uniform(-6, 1)
        if rng.random() < 0.5:  # just beside a kink
            theta += x[0] * (y[0] * (1 + 1e-9) - theta @ x[0]) / (x[0] @ x[0]) * rng.choice([1.0, 1.0 - shot.slope])
        center = theta + rng.normal(size=p) * 10.0 ** rng.uniform(-2, 3)
        one = log_density(shot, weights, x, y, theta, center)
        two = log_density(other or shot, weights, x2, y2, theta, center)
        worst = max(worst, abs(one - two))
    return worst


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("p", [1, 2])
def test_the_density_moves_by_noise_and_jacobian_at_most(loss, p):
    for k, geometry in enumerate(SHAPES[p]):
        for n, epsilon, lam in ((1, 0.5, 0.05), (3, 0.1, 0.3), (2, 2.0, 1e-4)):
            shot = Shot(loss, geometry, n, epsilon, lam)
            worst = worst_ratio(shot, tries=150, seed=k)
            bound = Fraction(epsilon) + Fraction(shot.jacobian)
            assert worst <= float(bound) * (1 + 1e-9)
            assert worst > 0.4 * epsilon


def at_the_corner(shot: Shot, weights=None) -> float:
    """The pair that uses up the whole bound: the same row with the other label, one of them bent and one straight."""
    weights = shot.geometry.weights(shot.epsilon_noise, shot.slope) if weights is None else weights
    x, theta, center = np.ones((1, 1)), np.array([1e-9]), np.array([-1e6])
    one = log_density(shot, weights, x, np.array([1.0]), theta, center)
    return one - log_density(shot, weights, x, np.array([-1.0]), theta, center)


def test_the_bound_is_attained_and_every_part_of_it_is_needed():
    shot = Shot(CappedLogisticLoss(0.5), l1_ball(1), 1, 0.4, 0.05)
    assert at_the_corner(shot) == pytest.approx(0.4 + shot.jacobian, rel=1e-6)
    assert at_the_corner(shot) > 1.5 * shot.epsilon_noise  # the Jacobian forgotten
    halved = shot.geometry.weights(shot.epsilon_noise, shot.slope / 2)
    assert at_the_corner(shot, halved) > 1.1 * (0.4 + shot.jacobian)  # the slope halved
    bent = dataclasses.replace(shot, lam=shot.lam * 2)
    assert worst_ratio(shot, other=bent) > 2 * (0.4 + shot.jacobian)  # λ read off the data
    other_center = worst_ratio(dataclasses.replace(shot, n=3), tries=100)
    assert other_center <= 0.4 + shot.jacobian


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_without_the_jacobian_the_ratio_exceeds_the_noise(loss):
    shot = Shot(loss, l2_ball(2), 1, 0.05, 1e-3)
    assert worst_ratio(shot) > 1.5 * shot.epsilon_noise
    assert shot.jacobian >= math.log1p(loss.curvature / 1e-3)


class Rough(Shot):
    """A shot whose solver is off by a twentieth, so that what covers it can be seen."""

    distance = 0.05


def solver_ratio(shot: Shot, epsilon_solver: float) -> float:
    """The largest log ratio of what is released, in one dimension, by an adversary who moves every minimiser by d."""
    theta = np.linspace(-6, 6, 6001)
    weights, center = shot.geometry.weights(shot.epsilon_noise, shot.slope), np.zeros(1)
    grid, _ = shot._solver
    d = shot.distance
    places, laws = np.arange(-60, 61) / 4.0 / grid.unit, []
    for label, moved in ((1.0, d), (-1.0, -d)):
        rows = np.ones((shot.n, 1)), np.array([label, *[1.0] * (shot.n - 1)])
        mass = np.exp([log_density(shot, weights, *rows, np.array([t]), center) for t in theta[::10]])
        mass = np.interp(theta, theta[::10], mass)
        found = np.rint((theta + moved) / grid.unit)
        rate = epsilon_solver / grid.units
        laws.append([float(mass @ np.exp(-rate * np.abs(o - found))) / mass.sum() for o in np.rint(places)])
    return float(np.abs(np.log(laws[0]) - np.log(laws[1])).max())


def test_the_solver_is_covered_by_its_noise():
    shot = Rough(LogisticLoss(), l1_ball(1), 4, 0.3, 2.0, solver_part=0.1)
    grid, epsilon = shot._solver
    assert grid.effective_sensitivity >= 2 * 0.05
    assert epsilon > shot.epsilon_noise + shot.jacobian  # so that it is what counts
    assert 0.5 * epsilon < solver_ratio(shot, epsilon) <= shot.epsilon
    assert solver_ratio(shot, 2.5 * epsilon) > shot.epsilon  # noise too small for what it covers


@pytest.mark.parametrize("p", [1, 2, 30])
@pytest.mark.parametrize("lam", [1e-6, 1.0, 1e6])
def test_the_grid_covers_two_moves_and_two_roundings(p, lam):
    """From the point found to the exact minimiser, which is on no grid, and back: real numbers, so nothing is whole."""
    for n in (10, 10**6):
        for epsilon in (1e-12, 1e-9, 1e-4, 10.0):
            for part in (1e-3, 1.5e-4):
                shot = Shot(HuberLoss(0.25), l1_ball(p), n, epsilon, lam, 3.0, part)
                grid, cost = shot._solver
                unit = Fraction(grid.unit)
                moves = 2 * Fraction(math.sqrt(p)) * Fraction(shot.errors.tolerance) / Fraction(lam)
                assert moves + p * unit <= grid.units * unit
                assert math.frexp(grid.unit)[0] == 0.5
                assert cost > 0


def test_costs_add_up():
    for epsilon in np.geomspace(1e-6, 10, 40):
        shot = Shot(CappedLogisticLoss(0.5), l2_ball(5), 5000, float(epsilon), 0.01)
        exact = sum(map(Fraction, (shot.epsilon_noise, shot.jacobian, shot.epsilon_solver)))
        assert exact <= Fraction(shot.epsilon) <= exact * (1 + Fraction(1, 2**50))
        assert Fraction(shot.jacobian) >= Fraction(math.log1p(0.25 / (5000 * 0.01)))


def small_rows(n=400, p=3, seed=0) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, p)) / math.sqrt(p)
    y = np.where(x @ np.arange(1, p + 1) + 0.1 * rng.normal(size=n) > 0, ONE, -ONE).astype(np.int32)
    return Rows(np.trunc(x * ONE).astype(np.int32), y, norm="l2")


def test_the_release_is_a_multiple_of_the_public_unit_and_settles_with_little_noise():
    rows = ObjectiveRows(small_rows(), LogisticLoss())
    shot = Shot(LogisticLoss(), l2_ball(3), 400, 1.0, 0.05)
    unit = shot._solver[0].unit
    drawn = [shot.draw(rows.perturbed, np.zeros(3), SeededSource(seed)) for seed in range(5)]
    for theta in drawn:
        assert all((Fraction(value) / Fraction(unit)).denominator == 1 for value in theta.tolist())
    assert np.ptp([theta[0] for theta in drawn]) > 0.01
    quiet = dataclasses.replace(shot, epsilon_noise=1e6)
    calm = [quiet.draw(rows.perturbed, np.zeros(3), SeededSource(seed)) for seed in range(3)]
    np.testing.assert_allclose(calm[0], calm[1], atol=1e-4)
    assert np.linalg.norm(calm[0]) > 0.5


def test_a_certificate_keeps_its_promise():
    rows = logistic_rows(2000, 3, 5)
    problem = Problem.of(LogisticLoss(), n=2000, p=3, regularization=0.05)
    alpha, gamma, runs = 0.002, 0.2, 300
    plan = ObjectivePerturbation(l1_ball(3)).certificate(
        SimpleNamespace(problem=problem, failure_probability=gamma, budget=math.inf), alpha, automatic=True
    )
    prepared = ObjectiveRows(rows, problem.loss)

    def missed(shot: Shot) -> int:
        source, count = SeededSource(11), 0
        for _ in range(runs):
            theta = shot.draw(prepared.perturbed, np.zeros(3), source)
            gradient = prepared.passes.slopes(theta).gradient + 0.05 * theta
            count += float(gradient @ gradient) > 2 * 0.05 * alpha
        return count

    worst = stats.binom.isf(RARE, runs, gamma)  # a false alarm in a million
    assert missed(plan.shot) <= worst
    assert missed(dataclasses.replace(plan.shot, epsilon_noise=plan.shot.epsilon_noise / 2)) > worst
    release = run_search(rows, problem, ExcessRisk(alpha), failure_probability=gamma, random_state=0)
    assert release.epsilon_generation == plan.shot.epsilon < release.epsilon <= plan.worst_case
    asked = {"failure_probability": gamma, "random_state": 0}
    alone = run_search(rows, problem, ExcessRisk(alpha), max_epsilon=plan.shot.epsilon, **asked)
    assert alone.epsilon == plan.shot.epsilon  # no room to ask about the null model first
    with pytest.raises(TargetUnreachable, match="Nothing was spent"):
        run_search(rows, problem, ExcessRisk(alpha), max_epsilon=plan.shot.epsilon * 0.99, **asked)


def test_which_mechanism():
    problem = Problem.of(LogisticLoss(), n=1000, p=3, regularization=0.01)
    assert mechanism_for(None, problem, shape=l1_ball(3)).name == "objective"
    assert mechanism_for(None, problem).name == mechanism_for("output", problem, shape=l1_ball(3)).name == "output"
    stated = Problem.of(LogisticLoss(), n=1000, p=3, regularization=0.01, radius=1.0)
    assert mechanism_for(None, stated, shape=l1_ball(3)).name == "output"
    assert mechanism_for(None, problem, shape=l1_ball(3), noise="spherical").name == "output"
    with pytest.raises(ValueError, match="bounded slope"):
        ObjectivePerturbation(l1_ball(3)).require(Problem.of(SquaredLoss(), n=9, p=3, regularization=0.1))


def test_rows_of_another_shape_are_refused():
    """Noise for an ℓ₁ ball would not hide rows that are only within a Euclidean one."""
    rows = dataclasses.replace(small_rows(p=4), shape=((4, "box", ONE // 2),))
    problem = Problem.of(LogisticLoss(), n=400, p=4, regularization=0.05)
    assert np.abs(rows.x).sum(axis=1, dtype=np.int64).max() > 1.2 * ONE
    box = Geometry((Block(4, "box", 0.5),), 1.0, "box")
    for geometry, fits in ((l2_ball(4), True), (box, True), (l1_ball(4), False), (l2_ball(3), False)):
        mechanism = ObjectivePerturbation(geometry)
        if fits:
            assert mechanism.on(rows, problem).rows.n == 400
        else:
            with pytest.raises(ValueError, match="do not declare the shape"):
                mechanism.on(rows, problem)
    with pytest.raises(ValueError, match="do not declare the shape"):
        ObjectivePerturbation(Geometry((Block(4, "box", 0.4),), 1.0, "box")).on(rows, problem)
    corner = dataclasses.replace(rows, x=np.full((400, 4), ONE // 2, dtype=np.int32))
    assert ObjectivePerturbation(box).on(corner, problem).rows.p == 4
    v = np.full(4, 0.5)  # such a row with the other label: a shift of 2κ·‖x‖₁ = 4 where 2 was planned for
    weight = l1_ball(4).weights(0.5, 1.0)[0]
    assert weight * np.abs(2 * v).sum() > 1.9 * 0.5


@pytest.mark.parametrize("perturbation", ["output", "covariance"])
def test_the_norm_is_refused_by_what_rows_declare_not_by_what_they_hold(perturbation):
    """Rows of zeros would fit: a refusal that came from their lengths would tell of single rows."""
    loss = SquaredLoss() if perturbation == "covariance" else LogisticLoss()
    rows = Rows(np.zeros((50, 3), dtype=np.int32), np.full(50, ONE, dtype=np.int32), "l2")
    problem = Problem.of(loss, n=50, p=3, regularization=0.1)
    with pytest.raises(ValueError, match="needs rows in the ℓ₁ ball"):
        run_search(rows, problem, ExcessRisk(0.3), perturbation=perturbation, random_state=0)


@pytest.mark.parametrize("value", [0, ONE // 2])
@pytest.mark.parametrize(
    "mechanism",
    [
        Output(),
        Output("spherical"),
        Covariance(),
        RescaledCovariance(),
        ObjectivePerturbation(l1_ball(4)),
        ThroughHuber(l1_ball(4)),
        GaussianMoments(l2_ball(4)),
        ObjectivePerturbation(Geometry((Block(4, "box", 0.5),), 1.0, "box")),
        ObjectivePerturbation(l2_ball(4, 0.9)),
        GradientDescent(Geometry((Block(4, "box", 0.5),), 1.0, "box", constant=0)),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_generator_for_a_search_is_refused_by_what_rows_declare(mechanism, value):
    """Rows of zeros would fit every shape; whether there is an answer must not tell them from others."""
    x = np.zeros((50, 4), dtype=np.int32)
    x[0] = value
    rows = Rows(x, np.full(50, ONE, dtype=np.int32), "l2")
    squared = isinstance(mechanism, Covariance | ThroughHuber | GaussianMoments)
    problem = Problem.of(SquaredLoss() if squared else LogisticLoss(), n=50, p=4, regularization=0.1)
    for given in (rows, MemorySource(rows)):
        with pytest.raises(ValueError, match=r"ℓ₁ ball|do not declare"):
            run_search(mechanism.on(given, problem), problem, ExcessRisk(0.3), random_state=0)


@pytest.mark.parametrize(
    "said",
    [{"shape": ((3, "box", 9),)}, {"shape": ((2, "l1", 9), (1, "box", 8))}, {"longest": 1e-6}, {"constant": (2, 8)}],
)
def test_rows_are_what_they_declare(said):
    y = np.zeros(2, dtype=np.int32)
    Rows(np.array([[0, 0, 8], [1, 0, 8]], dtype=np.int32), y, "l2", **{**said, "longest": 8.1 / ONE})
    with pytest.raises(ValueError, match="declared"):
        Rows(np.array([[0, 0, 8], [6, -4, 10]], dtype=np.int32), y, "l2", **said)
    with pytest.raises(ValueError, match="3 columns"):
        Rows(np.zeros((2, 3), dtype=np.int32), y, "l2", shape=((2, "box", 9),))


@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(0.5), HuberLoss(0.25)], ids=lambda loss: loss.name)
def test_euclidean_rows_are_certified_with_spherical_noise(loss):
    """Rows that say they are in the Euclidean ball get its noise; α is exceeded in at most γ of 100 runs (RARE)."""
    rows = small_rows(p=4)
    problem = Problem.of(loss, n=400, p=4, regularization=0.05)
    alpha, gamma = 0.05, 0.2
    mechanism = mechanism_for(None, problem, shape=l2_ball(4))
    assert [block.norm for block in mechanism.geometry.blocks] == ["l2"]
    generator = mechanism.on(rows, problem)
    x, y = rows.x / ONE, rows.y / ONE

    def risk(theta):
        return float(np.mean(loss.value(x @ theta, y))) + 0.025 * float(theta @ theta)

    best = min(
        minimize(risk, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).fun,
        risk(np.zeros(4)),
    )
    releases = [
        run_search(generator, problem, ExcessRisk(alpha), failure_probability=gamma, random_state=seed)
        for seed in range(100)
    ]
    assert len({release.epsilon_generation for release in releases} - {0.0}) == 1  # but where the null model does
    directly = run_search(rows, problem, ExcessRisk(alpha), failure_probability=gamma, random_state=0)
    assert directly == dataclasses.replace(releases[0], claims=())
    over = sum(risk(np.asarray(release.hypothesis)) > best + alpha for release in releases)
    assert stats.binom.sf(over - 1, 100, gamma) > RARE
    # a third of the ε that suffices, three times the noise: the promise breaks far more often than γ allows
    request = Request(problem, ExcessRisk(alpha), METHODS["certified"], mechanism, gamma)
    noisier = mechanism.certificate(request, 9 * alpha, automatic=False).shot
    thetas = (noisier.draw(generator.rows.perturbed, np.zeros(4), SeededSource(seed)) for seed in range(100))
    broken = sum(risk(theta) > best + alpha for theta in thetas)
    assert stats.binom.sf(broken - 1, 100, gamma) < RARE


@pytest.mark.parametrize("p", [1, 4, 60])
def test_quantile_of_spherical_noise(p):
    """Lengths are Gamma(p): beyond the quantile in γ of 20,000 draws, beyond 0.9 of it in more (RARE each)."""
    rng = np.random.default_rng(p)
    lengths = rng.gamma(p, size=20_000)
    q = noise_quantile(l2_ball(p), 0.1)
    assert stats.binomtest(int(np.sum(lengths > q)), 20_000, 0.1).pvalue > RARE
    assert stats.binomtest(int(np.sum(lengths > 0.9 * q)), 20_000, 0.1, alternative="greater").pvalue < RARE
    with pytest.raises(ValueError, match="Euclidean ball"):
        noise_quantile(Geometry((Block(4, "box", 0.4),), 1.0, "box"), 0.1)


def test_a_penalty_for_which_descent_would_hardly_end_is_refused_beforehand():
    """The last resort takes some 300·(c + λ)/λ passes: such a λ is not chosen, and refused where it is stated."""
    steep, usual = (Problem.of(LogisticLoss(), n=1000, p=3, regularization=lam) for lam in (1e-9, 1e-7))
    assert not ObjectivePerturbation.applies(steep, noise="laplace")
    assert ObjectivePerturbation.applies(usual, noise="laplace")
    with pytest.raises(ValueError, match=r"regularization = 1e-09 is too small for objective perturbation"):
        ObjectivePerturbation(l2_ball(3)).require(steep)
