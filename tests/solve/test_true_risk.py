"""True risks: right to within the error they publish, and bracketed by their cheap bounds."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from expost.passes.sums import sums_over
from expost.solve.losses import LogisticLoss, Loss, SquaredLoss
from expost.solve.minimiser import GeneralRisk, RidgeRisk, Risk, minimise
from expost.table.rows import Rows
from tests.solve.helpers import LOSSES, in_ball, objective, random_problem, random_rows

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def exact_ridge_risk(rows: Rows, lam: float, theta: np.ndarray) -> Fraction:
    """L(θ) in rational arithmetic."""
    t = [Fraction(float(v)) for v in theta]
    total = Fraction(0)
    for x, y in zip(rows.x, rows.y, strict=True):
        u = sum((Fraction(int(a), 2**20) * b for a, b in zip(x, t, strict=True)), Fraction(0))
        total += (u - Fraction(int(y), 2**20)) ** 2
    return total / (2 * len(rows.y)) + Fraction(lam) / 2 * sum(v * v for v in t)


def exact_ridge_minimum(rows: Rows, lam: float) -> Fraction:
    """The unconstrained minimum for two features, by Cramer's rule."""
    n = len(rows.y)
    x, y = rows.x.astype(object), rows.y.astype(object)
    unit = Fraction(1, 2**40 * n)
    (a, b), (_, d) = (x.T @ x).tolist()
    a, b, d = a * unit + Fraction(lam), b * unit, d * unit + Fraction(lam)
    e, f = (v * unit for v in (x.T @ y).tolist())
    determinant = a * d - b * b
    s, t = (e * d - b * f) / determinant, (a * f - b * e) / determinant
    return int(y @ y) * unit / 2 - (e * s + f * t) / 2


@pytest.mark.parametrize("lam", [0.5, 1e-3, 1e-6])
def test_ridge_excess_against_rational_arithmetic(lam: float) -> None:
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 60, 2, full=True)
    natural = SquaredLoss().radius(lam)
    lowest = exact_ridge_minimum(rows, lam)
    for radius in (math.inf, natural):
        risk = RidgeRisk(sums_over(rows), lam, radius)
        bound = risk.excess_error_bound(natural)
        assert bound < 1e-4 * max(1.0, natural**2)
        for theta in [risk.optimum, *(in_ball(rng, 2, natural) for _ in range(20))]:
            exact = exact_ridge_risk(rows, lam, theta) - lowest
            assert abs(Fraction(risk.excess(theta)) - exact) <= Fraction(bound)
            assert risk.lower(theta) == risk.upper(theta) == risk.excess(theta)


def test_ridge_error_bound_is_small_where_it_is_used() -> None:
    rows = random_rows(np.random.default_rng(1), 1000, 77)
    risk = RidgeRisk(sums_over(rows), 0.005, SquaredLoss().paper_radius(0.005))
    assert risk.excess_error_bound(SquaredLoss().paper_radius(0.005)) < 1e-9
    assert risk.distance_bound < 1e-6


@pytest.mark.parametrize("radius", [0.05, 0.5, 1.0])
def test_ridge_in_a_ball_that_binds(radius: float) -> None:
    rng = np.random.default_rng(2)
    lam, loss = 1e-3, SquaredLoss()
    rows = random_rows(rng, 300, 3, full=True)
    x = rows.x / 2**20
    y = np.clip(x @ np.array([3.0, -2.0, 1.0]), -1.0, 1.0)
    rows = Rows(rows.x, np.round(y * 2**20).astype(np.int32))
    risk = RidgeRisk(sums_over(rows), lam, radius)
    minimum = minimise(loss, x, rows.y / 2**20, lam, radius=radius)
    assert minimum.multiplier > 0.0
    assert np.linalg.norm(risk.optimum - minimum.theta) <= risk.distance_bound + minimum.bounds.distance_bound
    general = GeneralRisk(minimum)
    bound = risk.excess_error_bound(radius) + general.excess_error_bound(radius)
    for _ in range(30):
        theta = in_ball(rng, 3, radius)
        assert risk.excess(theta) >= -risk.excess_error_bound(radius)
        assert abs(risk.excess(theta) - general.excess(theta)) <= bound


@pytest.mark.parametrize("p", [1, 2, 3, 12])
@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6])
def test_ridge_meets_its_public_tolerance(p: int, lam: float) -> None:
    # The constructor raises where it does not.
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = random_rows(rng, int(rng.integers(1, 30)), p)
        for radius in (math.inf, SquaredLoss().radius(lam), 1.0, 1e-3):
            RidgeRisk(sums_over(rows), lam, radius)


@each_loss
@pytest.mark.parametrize("constrained", [False, True])
def test_general_excess_and_its_bounds(loss: Loss, constrained: bool) -> None:
    rng = np.random.default_rng(4)
    n, p, lam = 400, 4, 1e-2
    x, y = random_problem(rng, n, p, loss)
    natural = loss.radius(lam)
    norm = float(np.linalg.norm(minimise(loss, x, y, lam).theta))
    radius = 0.5 * norm if constrained else None
    minimum = minimise(loss, x, y, lam, radius=radius)
    risk = GeneralRisk(minimum)
    error = risk.excess_error_bound(natural)
    assert error < 1e-11
    lowest = objective(loss, x, y, lam, minimum.theta)
    for scale in (1e-7, 1e-3, 0.1, 1.0):
        for _ in range(10):
            theta = risk.optimum + scale * in_ball(rng, p, 0.5 * natural)
            excess = risk.excess(theta)
            assert excess == pytest.approx(objective(loss, x, y, lam, theta) - lowest, abs=1e-12)
            assert risk.lower(theta) <= excess + error
            assert risk.upper(theta) >= excess - error
            assert risk.gradient_lower(theta) <= risk.gradient_norm(theta) + risk.gradient_error_bound(2 * natural)


@each_loss
def test_cheap_bounds_at_the_minimum_are_tight(loss: Loss) -> None:
    x, y = random_problem(np.random.default_rng(5), 400, 4, loss)
    risk = GeneralRisk(minimise(loss, x, y, 1e-2))
    assert -1e-15 < risk.lower(risk.optimum) <= 0.0 <= risk.upper(risk.optimum) < 1e-15
    step = np.full(4, 0.1)
    theta, square, sigma = risk.optimum + step, step @ step, x.T @ x / 400
    lower = 0.5 * 1e-2 * square
    upper = 0.5 * (loss.curvature * step @ sigma @ step + 1e-2 * square)
    if loss.self_concordance is None:
        # Strong convexity and smoothness are all that is known.
        assert risk.lower(theta) == pytest.approx(lower, abs=1e-11)
        assert risk.upper(theta) == pytest.approx(upper, abs=1e-11)
    else:
        # The curvature at the minimum is known to hold nearby: the bracket is as narrow as ψ(±M‖step‖_∞) allows.
        assert lower < risk.lower(theta) <= risk.excess(theta) + 1e-9
        assert risk.excess(theta) - 1e-9 <= risk.upper(theta) <= upper + 1e-9
        width = math.exp(loss.self_concordance * 0.1) - 1.0
        assert risk.upper(theta) - risk.lower(theta) <= width * risk.excess(theta) + 1e-9


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=repr)
def test_cheap_bounds_hold_near_and_far(loss: Loss) -> None:
    """From steps where the closed form of ψ cancels to steps where e^{M‖step‖} is astronomical."""
    rng, lam = np.random.default_rng(9), 1e-4
    x, y = random_problem(rng, 300, 3, loss)
    risk = GeneralRisk(minimise(loss, x, y, lam))
    for exponent in np.linspace(-7.0, 2.0, 37):
        for _ in range(5):
            theta = risk.optimum + in_ball(rng, 3, 10.0**exponent)
            error = risk.excess_error_bound(float(np.linalg.norm(theta)))
            assert risk.lower(theta) - error <= risk.excess(theta) <= risk.upper(theta) + error
            assert risk.gradient_lower(theta) <= risk.gradient_norm(theta) + error


def test_the_cheap_bound_on_a_gradient_is_sharp_along_it() -> None:
    """In one dimension the gradient has nowhere else to point."""
    rng, lam = np.random.default_rng(10), 1e-2
    x, y = random_problem(rng, 300, 1, LogisticLoss())
    risk = GeneralRisk(minimise(LogisticLoss(), x, y, lam))
    for step in (1e-6, 1e-3, 0.1):
        theta = risk.optimum + step
        norm = risk.gradient_norm(theta)
        assert (1 - step) * norm - 1e-12 <= risk.gradient_lower(theta) <= norm + 1e-12
    assert risk.gradient_lower(risk.optimum) == 0.0


def test_general_excess_over_several_blocks_against_rational_arithmetic() -> None:
    rng = np.random.default_rng(6)
    rows = random_rows(rng, 9000, 2, full=True)
    x, y, lam = rows.x / 2**20, rows.y / 2**20, 1e-3
    risk = GeneralRisk(minimise(SquaredLoss(), x, y, lam))
    theta = np.array([3.0, -2.0])
    exact = exact_ridge_risk(rows, lam, theta) - exact_ridge_minimum(rows, lam)
    assert abs(Fraction(risk.excess(theta)) - exact) <= Fraction(risk.excess_error_bound(4.0))
    assert Fraction(risk.lower(theta)) <= exact <= Fraction(risk.upper(theta))


def test_error_bounds_are_public() -> None:
    rng, lam = np.random.default_rng(7), 0.01
    general, ridge = set(), set()
    for _ in range(3):
        x, y = random_problem(rng, 100, 3, LogisticLoss())
        general.add(GeneralRisk(minimise(LogisticLoss(), x, y, lam, radius=2.0)).excess_error_bound(2.0))
        ridge.add(RidgeRisk(sums_over(random_rows(rng, 100, 3)), lam, 2.0).excess_error_bound(2.0))
    assert len(general) == len(ridge) == 1


def test_risks_do_not_leave() -> None:
    rows = random_rows(np.random.default_rng(8), 20, 2)
    x, y = rows.x / 2**20, rows.y / 2**20
    risks: list[Risk] = [
        RidgeRisk(sums_over(rows), 0.1, 1.0),
        GeneralRisk(minimise(SquaredLoss(), x, y, 0.1)),
    ]
    for risk in risks:
        with pytest.raises(TypeError, match="private"):
            pickle.dumps(risk)
    assert repr(risks[0]) == "RidgeRisk(n=20, p=2, lam=0.1, radius=1.0)"
    assert repr(risks[1]) == "GeneralRisk(loss=SquaredLoss(), n=20, p=2, lam=0.1)"
