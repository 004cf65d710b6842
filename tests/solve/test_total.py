"""No rows keep a minimiser from being found: hostile rows, forced detours, and what is refused from public numbers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from expost.exceptions import ConvergenceError
from expost.passes.sums import Sums, sums_over
from expost.solve import exact as solution, minimiser as module
from expost.solve.error_bounds import DescentBounds, GeneralErrors, default_tolerance
from expost.solve.exact import ExactObjective, ellipsoid_steps, exact_minimiser, precision
from expost.solve.losses import LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss
from expost.solve.minimiser import RidgeRisk, descend, minimise
from expost.solve.objective import Objective
from tests.solve.helpers import LOSSES, Floats, hostile_problem, random_problem, random_rows

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


class OneSided(Loss):
    """A loss of one's own, known in floating point only: steeper above the target than below."""

    labels = "real"
    name, curvature, null_value, pull = "one-sided", 1.0, 0.5, 0.25

    def value(self, u: Floats, y: Floats) -> Floats:
        return 0.5 * np.where(u > y, 1.0, 0.1) * (u - y) ** 2

    def derivative(self, u: Floats, y: Floats) -> Floats:
        return np.where(u > y, 1.0, 0.1) * (u - y)

    def second_derivative(self, u: Floats, y: Floats) -> Floats:
        return np.where(u > y, 1.0, 0.1)

    def lipschitz(self, radius: float) -> float:
        return 1.0 + radius

    def spread(self, radius: float) -> float:
        return 0.5 * (1.0 + radius) ** 2


@pytest.fixture
def detours(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often floating point is not enough."""
    taken: Counter[str] = Counter()
    exact, ellipsoid = module.exact_minimiser, solution.ellipsoid

    def counted(*args, **options):
        taken["exact"] += 1
        return exact(*args, **options)

    def counted_too(*args, **options):
        taken["ellipsoid"] += 1
        return ellipsoid(*args, **options)

    monkeypatch.setattr(module, "exact_minimiser", counted)
    monkeypatch.setattr(solution, "ellipsoid", counted_too)
    return taken


def assert_hostile_rows_are_minimised(seed: int, sets: int, low: float, high: float, ball: bool) -> None:
    rng = np.random.default_rng(seed)
    for index in range(sets):
        loss = LOSSES[index % len(LOSSES)]
        kinds, p = int(rng.integers(1, 13)), int(rng.integers(1, 11))
        n = kinds + int(10.0 ** rng.uniform(0.0, 5.0))
        x, y, counts = hostile_problem(rng, loss, kinds, p, n)
        lam = 10.0 ** rng.uniform(low, high)
        radius = loss.radius(lam) * 10.0 ** rng.uniform(-4.0, 0.0) if ball else None
        minimum = minimise(loss, x, y, lam, radius=radius, counts=counts)
        assert minimum.gradient_bound <= minimum.bounds.tolerance == default_tolerance(loss, n, p, lam, radius)


@pytest.mark.parametrize(("low", "high"), [(-15.0, -13.0), (-13.0, -11.0), (-11.0, -9.0), (-9.0, -5.0)])
def test_nearly_collinear_rows(low: float, high: float, detours: Counter[str]) -> None:
    assert_hostile_rows_are_minimised(0, 500, low, high, ball=False)
    if high <= -11.0:
        assert detours["exact"] >= 1  # the rows are hostile enough to show something
    assert detours["ellipsoid"] == 0  # which is there for the proof


def test_nearly_collinear_rows_in_a_ball() -> None:
    assert_hostile_rows_are_minimised(1, 200, -15.0, -5.0, ball=True)


@pytest.mark.slow
@pytest.mark.parametrize("ball", [False, True])
def test_many_nearly_collinear_rows(ball: bool) -> None:
    for seed in range(2, 7):
        assert_hostile_rows_are_minimised(seed, 10_000, -15.0, -5.0, ball)


def test_neighbours_are_minimised_alike(detours: Counter[str]) -> None:
    """Rows on which floating point stalls, among neighbours on which it does not: no one can tell which is which.

    On which rows it stalls depends on the processor, so they are looked for: about one set in fifty.
    """
    loss, lam, n = LogisticLoss(), 1e-11, 100_000
    stalled = neighbours_stalled = 0
    for seed in range(400):
        x, y, counts = hostile_problem(np.random.default_rng(seed), loss, 8, 8, n)
        detours.clear()
        there = minimise(loss, x, y, lam, counts=counts)
        if not detours["exact"]:
            continue
        stalled += 1
        for replaced in range(8):
            fewer = counts.copy()
            fewer[replaced] -= 1.0
            kept = fewer > 0.0
            rows = np.vstack([x[kept], np.eye(8)[replaced]])
            here = minimise(loss, rows, np.append(y[kept], 1.0), lam, counts=np.append(fewer[kept], 1.0))
            assert here.bounds == there.bounds
        neighbours_stalled += detours["exact"] - 1
    assert stalled > 0  # the rows are hostile enough to show something
    assert neighbours_stalled < 4 * stalled  # and most of their neighbours are not


@each_loss
@pytest.mark.parametrize("lam", [1.0, 1e-9])
@pytest.mark.parametrize("share", [None, 0.9])
def test_integers_find_the_same_minimum(
    loss: Loss, lam: float, share: float | None, detours: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = random_problem(np.random.default_rng(4), 50, 3, loss)
    radius = None if share is None else share * float(np.linalg.norm(minimise(loss, x, y, lam).theta))
    usual = minimise(loss, x, y, lam, radius=radius)
    monkeypatch.setattr(module, "_MAX_ITERATIONS", 1)
    other = minimise(loss, x, y, lam, radius=radius)
    assert detours["exact"] == 1
    assert other.gradient_bound <= other.bounds.tolerance == usual.bounds.tolerance
    assert np.linalg.norm(other.theta - usual.theta) <= 2.0 * usual.bounds.distance_bound
    assert (other.multiplier > 0.0) == (share is not None)


def test_rows_off_the_grid_are_minimised_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_ITERATIONS", 0)
    rng = np.random.default_rng(5)
    for loss in LOSSES:
        x = rng.uniform(-0.3, 0.3, size=(50, 3)) * 10.0 ** rng.uniform(-30.0, 0.0, size=(50, 3))
        y = np.sign(rng.normal(size=50)) * (1.0 if loss.labels == "binary" else rng.uniform(size=50))
        minimum = minimise(loss, x, y, 1e-6)
        assert minimum.gradient_bound <= minimum.bounds.tolerance


@each_loss
@pytest.mark.parametrize("p", [1, 2])
def test_the_ellipsoid_method_keeps_its_theorem(loss: Loss, p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution, "newton", lambda *args: None)
    asked = Counter()
    gradient = ExactObjective.gradient

    def counted(self, theta, nu):
        asked["gradient"] += 1
        return gradient(self, theta, nu)

    monkeypatch.setattr(ExactObjective, "gradient", counted)
    for lam in (0.01, 1e-12):
        asked.clear()
        x, y = random_problem(np.random.default_rng(6), 10, p, loss)
        theta = exact_minimiser(Objective(loss, x, y, lam), None, np.zeros(p), precision(loss, p, lam, None))
        usual = minimise(loss, x, y, lam)
        assert np.linalg.norm(theta - usual.theta) <= 2.0 * usual.bounds.distance_bound
        most = ellipsoid_steps(p, math.log(8.0 * 2.0**64 * (loss.curvature + lam) / lam) + 0.01)
        assert 20 < asked["gradient"] <= most + 1


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), SmoothedHingeLoss(2.0), OneSided()], ids=repr)
@pytest.mark.parametrize("share", [None, 0.5])
def test_descent_keeps_its_theorem(loss: Loss, share: float | None) -> None:
    lam = 0.1
    x, y = random_problem(np.random.default_rng(7), 30, 2, loss)
    radius = None if share is None else share * float(np.linalg.norm(minimise(loss, x, y, lam).theta))
    usual = minimise(loss, x, y, lam, radius=radius)
    objective = Objective(loss, x, y, lam)
    passes = Counter()
    gradient = objective.gradient

    def counted(theta, u):
        passes["gradient"] += 1
        return gradient(theta, u)

    objective.gradient = counted
    theta, _ = descend(objective, radius, usual.bounds.tolerance, np.zeros(2))
    assert np.linalg.norm(theta - usual.theta) <= 2.0 * usual.bounds.distance_bound
    assert passes["gradient"] <= DescentBounds(loss, 30, 2, lam, radius).steps
    # a start that is no good is not used
    descend(objective, radius, usual.bounds.tolerance, np.full(2, 1e100))


def test_a_loss_known_in_floating_point_only(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = OneSided()
    x, y = random_problem(np.random.default_rng(8), 40, 2, loss)
    usual = minimise(loss, x, y, 0.1)
    monkeypatch.setattr(module, "_MAX_ITERATIONS", 0)
    other = minimise(loss, x, y, 0.1)
    assert np.linalg.norm(other.theta - usual.theta) <= 2.0 * usual.bounds.distance_bound
    with pytest.raises(ValueError, match=r"lam = 1e-08 is too small for the one-sided loss.*derivative_in_units"):
        minimise(loss, x, y, 1e-8)
    assert GeneralErrors(loss, 40, 2, 1.1e-7).tolerance == default_tolerance(loss, 40, 2, 1.1e-7)


def test_public_refusals_come_before_rows() -> None:
    bad = np.array([[7.0, math.nan]])  # rows that would be refused if they were looked at
    for options, message in (
        ({"lam": 1e-8, "loss": OneSided()}, "too small"),
        ({"lam": 1e-3, "tolerance": 1e-13}, "tolerance must be finite and at least 1e-12"),
        ({"lam": 1e-3, "tolerance": math.inf}, "tolerance"),
        ({"lam": -1.0}, "lam must be positive"),
        ({"lam": 1.0, "radius": 0.0}, "radius must be positive"),
        ({"lam": 1e-300, "loss": SmoothedHingeLoss(1e-100)}, "too small for a loss of curvature"),
    ):
        arguments = {"loss": SquaredLoss(), **options}
        with pytest.raises(ValueError, match=message):
            minimise(arguments.pop("loss"), bad, np.array([5.0]), arguments.pop("lam"), **arguments)


class Lying(OneSided):
    """Not a convex function."""

    def derivative(self, u: Floats, y: Floats) -> Floats:
        return np.ones_like(u) * np.where(np.abs(u) < 0.01, -1.0, 1.0)

    def derivative_in_units(self, u, y, bits):
        return np.where(abs(u) < (1 << bits) // 100, -1, 1).astype(object) << bits


def test_a_loss_that_is_not_what_it_says_is_an_error_and_not_a_loop() -> None:
    with pytest.raises(ConvergenceError, match="not what it says"):
        minimise(Lying(), np.array([[1.0]]), np.array([1.0]), 30.0)


@pytest.mark.parametrize("radius", [math.inf, 1e6, 1e-3])
def test_ridge_from_sums_of_collinear_rows(radius: float) -> None:
    # λ far below the rounding errors of XᵀX/n: its floating-point factorisation finds it indefinite
    rng = np.random.default_rng(9)
    for _ in range(10):
        p = int(rng.integers(5, 40))
        x = np.rint(rng.dirichlet(np.ones(p)) * 2**20 * 0.9).astype(object)
        counts, sign = int(rng.integers(1, 1000)), int(rng.choice([-1, 1]))
        sums = Sums(counts, p, counts * np.outer(x, x), counts * sign * x * 2**20, counts << 40)
        for lam in (1e-15, 1e-18, 1e-22):
            risk = RidgeRisk(sums, lam, radius)
            assert np.linalg.norm(risk.optimum) <= min(radius, SquaredLoss().radius(lam)) * (1 + 1e-9)
            scale = float(x @ x) / 2**40  # one kind of row: θ = x·y/(‖x‖² + λ), if that lies in the ball
            exact = x.astype(float) / 2**20 * (sign / (scale + lam))
            exact *= min(1.0, radius / float(np.linalg.norm(exact)))
            assert np.abs(risk.optimum - exact).max() <= risk.distance_bound


def test_ridge_bounds_are_public() -> None:
    rng = np.random.default_rng(10)
    for radius in (math.inf, 2.0):
        risks = [RidgeRisk(sums_over(random_rows(rng, 50, 3)), 0.01, radius) for _ in range(3)]
        assert len({(r.distance_bound, r.excess_error_bound(2.0), r.gradient_error_bound(1.0)) for r in risks}) == 1
        assert risks[0].bounds == type(risks[0].bounds)(3, 0.01, radius)
