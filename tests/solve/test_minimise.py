"""Certified minimisers: against other people's solvers, against exact answers, and against their own promises."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import LogisticRegression, Ridge

from expost.solve.error_bounds import default_tolerance, distance_bound, radius_tolerance
from expost.solve.exact import step_length
from expost.solve.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss
from expost.solve.minimiser import minimise
from expost.solve.objective import Objective
from tests.solve.helpers import LOSSES, Floats, objective, random_problem, random_rows

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def exact_gradient(loss: Loss, x: Floats, y: Floats, lam: float, theta: Floats) -> Floats:
    """∇L with every sum and product in extended precision; slopes from extended-precision predictions."""
    wide = x.astype(np.longdouble)
    u = wide @ theta.astype(np.longdouble)
    slopes = loss.derivative(u, y.astype(np.longdouble))  # type: ignore[arg-type]
    return np.asarray(slopes @ wide / len(y) + np.longdouble(lam) * theta)


@pytest.mark.parametrize("lam", [0.1, 1e-3, 1e-6])
def test_ridge_agrees_with_scikit_learn(lam: float) -> None:
    loss = SquaredLoss()
    x, y = random_problem(np.random.default_rng(0), 2000, 8, loss)
    other = Ridge(alpha=lam * len(y), fit_intercept=False, solver="cholesky").fit(x, y).coef_
    np.testing.assert_allclose(minimise(loss, x, y, lam).theta, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("lam", [0.1, 1e-3, 1e-6])
def test_logistic_agrees_with_scikit_learn(lam: float) -> None:
    loss = LogisticLoss()
    x, y = random_problem(np.random.default_rng(1), 2000, 8, loss)
    model = LogisticRegression(
        C=1 / (lam * len(y)), fit_intercept=False, tol=1e-12, solver="newton-cholesky", max_iter=200
    )
    np.testing.assert_allclose(minimise(loss, x, y, lam).theta, model.fit(x, y).coef_[0], rtol=1e-7)


@pytest.mark.parametrize("loss", [HuberLoss(0.3), HuberLoss(0.05), SmoothedHingeLoss(0.5)], ids=repr)
@pytest.mark.parametrize("lam", [0.1, 1e-3])
def test_others_agree_with_scipy(loss: Loss, lam: float) -> None:
    x, y = random_problem(np.random.default_rng(2), 500, 5, loss)
    other = scipy_minimize(
        lambda t: objective(loss, x, y, lam, t),
        np.zeros(5),
        jac=lambda t: x.T @ loss.derivative(x @ t, y) / len(y) + lam * t,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000},
    )
    theta = minimise(loss, x, y, lam).theta
    assert objective(loss, x, y, lam, theta) <= other.fun + 1e-15
    np.testing.assert_allclose(theta, other.x, atol=1e-5 / lam * 1e-2)


@each_loss
@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4, 1e-6])
def test_the_certificate_is_met_and_true(loss: Loss, lam: float) -> None:
    x, y = random_problem(np.random.default_rng(3), 3000, 6, loss)
    minimum = minimise(loss, x, y, lam)
    assert minimum.gradient_bound <= minimum.bounds.tolerance == default_tolerance(loss, 3000, 6, lam)
    exact = exact_gradient(loss, x, y, lam, minimum.theta)
    assert np.linalg.norm(exact) <= minimum.gradient_bound
    assert np.linalg.norm(exact - minimum.gradient.vector) <= minimum.gradient.rounding
    assert minimum.multiplier == 0.0
    assert minimum.bounds.radius_tolerance == 0.0


@each_loss
def test_the_rounding_bound_covers_rough_points(loss: Loss) -> None:
    # Far from the minimum, where slopes are large; several blocks of rows, so that block sums are added too.
    rng = np.random.default_rng(4)
    x, y = random_problem(rng, 20_000, 3, loss)
    problem = Objective(loss, x, y, 0.01)
    for _ in range(3):
        theta = 10.0 * rng.normal(size=3)
        gradient = problem.gradient(theta, problem.predictions(theta))
        error = np.linalg.norm(exact_gradient(loss, x, y, 0.01, theta) - gradient.vector)
        assert error <= gradient.rounding < 1e-9


def test_the_rounding_bound_covers_predictions_that_cancel() -> None:
    # One row, a large θ and a steep loss: the rounding of xᵀθ is then nearly all of the error.
    rng, loss, worst = np.random.default_rng(12), SmoothedHingeLoss(0.01), 0.0
    for _ in range(200):
        x, y = np.array([[rng.uniform(0.1, 0.5), rng.uniform(0.1, 0.5)]]), np.array([1.0])
        theta = np.array([1000.0, (0.995 - 1000.0 * x[0, 0]) / x[0, 1]])
        problem = Objective(loss, x, y, 1e-6)
        gradient = problem.gradient(theta, problem.predictions(theta))
        error = np.linalg.norm(exact_gradient(loss, x, y, 1e-6, theta) - gradient.vector)
        assert error <= gradient.rounding
        worst = max(worst, float(error / gradient.rounding))
    assert worst > 0.01


def test_distance_to_the_exact_minimiser() -> None:
    # One feature: the ridge minimiser is a rational number.
    rows = random_rows(np.random.default_rng(5), 500, 1)
    for lam in (0.25, 2.0**-20):
        minimum = minimise(SquaredLoss(), rows.x / 2**20, rows.y / 2**20, lam)
        xx = sum(int(v) ** 2 for v in rows.x[:, 0])
        xy = sum(int(v) * int(w) for v, w in zip(rows.x[:, 0], rows.y, strict=True))
        exact = Fraction(xy, 2**40) / (Fraction(xx, 2**40) + 500 * Fraction(lam))
        error = abs(Fraction(float(minimum.theta[0])) - exact)
        assert error <= Fraction(minimum.bounds.distance_bound)
        assert minimum.bounds.distance_bound == distance_bound(SquaredLoss(), lam, minimum.bounds.tolerance)


@each_loss
@pytest.mark.parametrize("lam", [0.05, 1e-4, 1e-6])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_in_a_ball_that_binds(loss: Loss, lam: float, share: float) -> None:
    rng = np.random.default_rng(6)
    x, y = random_problem(rng, 1000, 4, loss)
    free = minimise(loss, x, y, lam)
    radius = share * float(np.linalg.norm(free.theta))
    minimum = minimise(loss, x, y, lam, radius=radius)
    theta = minimum.theta
    assert abs(np.linalg.norm(theta) - radius) <= minimum.bounds.radius_tolerance
    assert minimum.multiplier > 0.0
    exact = exact_gradient(loss, x, y, lam, theta) + minimum.multiplier * theta
    assert np.linalg.norm(exact) <= minimum.gradient_bound <= minimum.bounds.tolerance
    # On the sphere θ minimises L + (ν/2)‖θ‖², another way to the same point.
    again = minimise(loss, x, y, lam + minimum.multiplier).theta
    slack = (minimum.bounds.tolerance + free.bounds.tolerance) / (lam + minimum.multiplier)
    assert np.linalg.norm(again - theta) <= 2.0 * slack


@each_loss
def test_in_a_ball_that_does_not_bind(loss: Loss) -> None:
    x, y = random_problem(np.random.default_rng(7), 500, 4, loss)
    free = minimise(loss, x, y, 0.01)
    inside = minimise(loss, x, y, 0.01, radius=1.5 * float(np.linalg.norm(free.theta)))
    assert inside.multiplier == 0.0
    assert np.linalg.norm(inside.theta - free.theta) <= free.bounds.distance_bound + inside.bounds.distance_bound
    # Public: the bound is the same whether or not the ball binds.
    assert inside.bounds.distance_bound == distance_bound(
        loss, 0.01, inside.bounds.tolerance, inside.bounds.radius_tolerance
    )


@each_loss
def test_minimisers_of_two_radii_are_as_close_as_claimed(loss: Loss) -> None:
    """The second half of the distance bound, (c + λ)ρ/λ, with a ρ large enough to see."""
    rng = np.random.default_rng(8)
    for lam in (0.1, 1e-3):
        x, y = random_problem(rng, 200, 3, loss)
        norm = float(np.linalg.norm(minimise(loss, x, y, lam).theta))
        for share in (0.3, 0.95, 0.999):
            for rho in (1e-1, 1e-3, 1e-5):
                pair = [minimise(loss, x, y, lam, radius=r) for r in (share * norm, share * norm + rho)]
                distance = np.linalg.norm(pair[0].theta - pair[1].theta)
                bound = distance_bound(loss, lam, 0.0, rho)
                assert distance <= bound + pair[0].bounds.distance_bound + pair[1].bounds.distance_bound


def test_two_radii_bound_is_not_vacuous() -> None:
    # Moving along the sphere's normal alone costs ρ; here the minimiser also turns, by many times that.
    x, y = np.array([[1.0, 0.0], [0.0, 0.02]]), np.array([1.0, 1.0])
    lam, radius, rho = 1e-5, 0.9987, 1e-6
    a, b = (minimise(SquaredLoss(), x, y, lam, radius=r).theta for r in (radius, radius + rho))
    assert np.linalg.norm(a - b) > 2.0 * rho


@each_loss
def test_extreme_rows(loss: Loss) -> None:
    for x, y in [
        (np.zeros((3, 2)), np.ones(3)),
        (np.array([[1.0, 0.0]]), np.array([-1.0])),
        (np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0**-20]]), np.array([1.0, -1.0, 1.0])),
    ]:
        for lam in (1.0, 1e-6):
            minimum = minimise(loss, x, y, lam)
            assert np.linalg.norm(exact_gradient(loss, x, y, lam, minimum.theta)) <= minimum.bounds.tolerance


def test_separable_rows_with_hardly_any_regularisation() -> None:
    x = np.array([[1.0, 0.0], [-0.5, 0.5], [0.25, 0.5]])
    y = np.array([1.0, -1.0, 1.0])
    for loss in (LogisticLoss(), SmoothedHingeLoss(0.01)):
        minimum = minimise(loss, x, y, 1e-6)
        assert np.linalg.norm(minimum.theta) <= loss.radius(1e-6)


def test_an_unreachable_tolerance_is_an_error() -> None:
    loss = LogisticLoss()
    x, y = random_problem(np.random.default_rng(9), 100, 3, loss)
    with pytest.raises(ValueError, match="tolerance must be finite and at least"):
        minimise(loss, x, y, 0.01, tolerance=1e-18)
    assert minimise(loss, x, y, 0.01, tolerance=1e-3).iterations < minimise(loss, x, y, 0.01).iterations


def test_inadmissible_rows_are_refused() -> None:
    good, y = np.array([[0.5, 0.5]]), np.array([1.0])
    with pytest.raises(ValueError, match="l1 norm"):
        minimise(SquaredLoss(), np.array([[0.6, 0.5]]), y, 0.1)
    with pytest.raises(ValueError, match="l1 norm"):
        minimise(SquaredLoss(), np.array([[np.nan, 0.5]]), y, 0.1)
    with pytest.raises(ValueError, match="target"):
        minimise(SquaredLoss(), good, np.array([1.1]), 0.1)
    with pytest.raises(ValueError, match="-1 and 1"):
        minimise(LogisticLoss(), good, np.array([0.5]), 0.1)
    with pytest.raises(ValueError, match="lam"):
        minimise(SquaredLoss(), good, y, 0.0)
    with pytest.raises(ValueError, match="radius"):
        minimise(SquaredLoss(), good, y, 0.1, radius=np.inf)


def test_public_constants_depend_on_public_numbers_only() -> None:
    loss = LogisticLoss()
    rng = np.random.default_rng(10)
    minima = [minimise(loss, *random_problem(rng, 300, 3, loss), 0.01, radius=2.0) for _ in range(4)]
    assert len({(m.bounds.tolerance, m.bounds.distance_bound, m.bounds.radius_tolerance) for m in minima}) == 1
    assert minima[0].bounds.radius_tolerance == radius_tolerance(3, 2.0)


def test_minima_do_not_leave() -> None:
    minimum = minimise(SquaredLoss(), np.array([[1.0]]), np.array([0.7]), 0.1)
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(minimum)
    assert "0.6" not in repr(minimum)


@pytest.mark.parametrize("steep", [0.5, 1.0, 1.05, 3.0, 1e6])
def test_line_search_makes_the_function_fall(steep: float) -> None:
    # Convex, with a kink in the slope that a full Newton step overshoots.
    def slope(t: float) -> float:
        return -1.0 + min(t, 0.1) * 10.0 * steep + 0.01 * t

    t = step_length(slope)
    area = np.trapezoid([slope(s) for s in np.linspace(0, t, 10_001)], dx=t / 10_000)
    assert 0.0 < t <= 1.0
    assert area < 0.0
    assert step_length(lambda t: 1.0) == 0.0
