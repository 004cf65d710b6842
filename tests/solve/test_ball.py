"""The quadratic over a ball: optimality conditions in every case, and agreement with independent solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from expost.solve.ball import minimise_in_ball
from tests.solve.helpers import Floats, in_ball


def value(h: Floats, g: Floats, theta: Floats) -> float:
    return float(0.5 * theta @ h @ theta - g @ theta)


def assert_optimal(h: Floats, g: Floats, radius: float, theta: Floats, tolerance: float = 1e-9) -> None:
    """Moré and Sorensen: these conditions hold at a global minimiser and nowhere else."""
    norm, scale = np.linalg.norm(theta), np.linalg.norm(h, 2) + np.linalg.norm(g)
    assert norm <= radius * (1 + 1e-14)
    inside = norm < radius * (1 - 1e-9)
    mu = 0.0 if inside else max(0.0, float(theta @ (g - h @ theta)) / norm**2)
    assert np.linalg.norm(h @ theta + mu * theta - g) <= tolerance * scale * max(1.0, norm)
    assert np.linalg.eigvalsh(h)[0] + mu >= -tolerance * scale


def symmetric(rng: np.random.Generator, eigenvalues: Floats) -> tuple[Floats, Floats]:
    q, _ = np.linalg.qr(rng.normal(size=(eigenvalues.size,) * 2))
    h = q @ np.diag(eigenvalues) @ q.T
    return 0.5 * (h + h.T), q


@pytest.mark.parametrize("p", [1, 2, 5, 30])
@pytest.mark.parametrize("shift", [0.1, 0.0, -1.0, -10.0])
@pytest.mark.parametrize("radius", [1e-3, 0.5, 3.0, 1e3])
def test_optimality_conditions(p: int, shift: float, radius: float) -> None:
    rng = np.random.default_rng(int(100 * p + 10 * abs(shift)))
    for _ in range(5):
        h, _ = symmetric(rng, rng.uniform(shift, shift + 5.0, size=p))
        g = rng.normal(size=p)
        theta = minimise_in_ball(h, g, radius)
        assert_optimal(h, g, radius, theta)
        best = value(h, g, theta)
        for _ in range(50):
            other = in_ball(rng, p, radius)
            assert best <= value(h, g, other) + 1e-10 * (1 + abs(best))


def test_against_a_general_purpose_solver() -> None:
    rng = np.random.default_rng(3)
    p, radius = 4, 1.3
    for case in range(12):
        h, _ = symmetric(rng, rng.normal(size=p) + (1.5 if case % 2 else 0.0))
        g = rng.normal(size=p)
        found = [
            minimize(
                lambda t, h=h, g=g: value(h, g, t),
                in_ball(rng, p, radius),
                jac=lambda t, h=h, g=g: h @ t - g,
                method="SLSQP",
                constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
                options={"ftol": 1e-13, "maxiter": 500},
            ).fun
            for _ in range(8)
        ]
        assert value(h, g, minimise_in_ball(h, g, radius)) == pytest.approx(min(found), abs=1e-8)


def test_against_bisection_of_the_secular_equation() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        eigenvalues = np.sort(rng.normal(size=6))
        c, radius = rng.normal(size=6), 0.7

        def gap(mu: float, w: Floats = eigenvalues, c: Floats = c, radius: float = radius) -> float:
            return float(np.linalg.norm(c / (w + mu))) - radius

        low = max(0.0, -eigenvalues[0]) + 1e-9
        if gap(low) < 0.0:
            continue
        mu = brentq(gap, low, 1e4, xtol=1e-14)
        theta = minimise_in_ball(np.diag(eigenvalues), c, radius)
        np.testing.assert_allclose(theta, c / (eigenvalues + mu), rtol=1e-9)


def test_interior_and_unbounded() -> None:
    h, g = np.diag([2.0, 4.0]), np.array([2.0, 2.0])
    for radius in (np.inf, 10.0, np.hypot(1.0, 0.5) * (1 + 1e-12)):
        np.testing.assert_allclose(minimise_in_ball(h, g, radius), [1.0, 0.5], rtol=1e-14)
    for bad in (np.diag([1.0, -1.0]), np.diag([1.0, 0.0])):
        with pytest.raises(ValueError, match="positive definite"):
            minimise_in_ball(bad, g, np.inf)


def test_radius_zero_and_bad_input() -> None:
    np.testing.assert_array_equal(minimise_in_ball(-np.eye(2), np.ones(2), 0.0), [0.0, 0.0])
    for radius in (-1.0, np.nan):
        with pytest.raises(ValueError, match="radius"):
            minimise_in_ball(np.eye(2), np.ones(2), radius)
    with pytest.raises(ValueError, match="finite"):
        minimise_in_ball(np.eye(2), np.array([1.0, np.nan]), 1.0)
    with pytest.raises(ValueError, match="shape"):
        minimise_in_ball(np.eye(3), np.ones(2), 1.0)


def test_without_linear_term() -> None:
    np.testing.assert_array_equal(minimise_in_ball(np.eye(3), np.zeros(3), 2.0), np.zeros(3))
    theta = minimise_in_ball(np.diag([1.0, -3.0, 2.0]), np.zeros(3), 2.0)
    np.testing.assert_allclose(np.abs(theta), [0.0, 2.0, 0.0], atol=1e-15)
    # A singular direction without pull is left alone.
    np.testing.assert_allclose(minimise_in_ball(np.diag([0.0, 1.0]), np.array([0.0, 0.5]), 2.0), [0.0, 0.5])


@pytest.mark.parametrize("multiplicity", [1, 2])
def test_hard_case(multiplicity: int) -> None:
    # g has no part along the lowest eigenspace and the rest does not reach the sphere.
    lowest = -2.0
    eigenvalues = np.array([lowest] * multiplicity + [1.0, 3.0])
    g = np.array([0.0] * multiplicity + [0.6, 1.0])
    theta = minimise_in_ball(np.diag(eigenvalues), g, 5.0)
    assert np.linalg.norm(theta) == pytest.approx(5.0, rel=1e-14)
    np.testing.assert_allclose(theta[multiplicity:], [0.2, 0.2], rtol=1e-12)
    assert_optimal(np.diag(eigenvalues), g, 5.0, theta)
    # The same, but the sphere is reached before the lowest eigenvalue matters.
    theta = minimise_in_ball(np.diag(eigenvalues), g, 0.05)
    assert_optimal(np.diag(eigenvalues), g, 0.05, theta)
    np.testing.assert_array_equal(theta[:multiplicity], 0.0)


@pytest.mark.parametrize("tiny", [1e-300, 1e-30, 1e-16, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("rotate", [False, True])
def test_near_hard_case(tiny: float, rotate: bool) -> None:
    rng = np.random.default_rng(9)
    eigenvalues = np.array([-2.0, -1.0, 1.0, 3.0])
    g = np.array([tiny, 0.5, 0.6, 1.0])
    h = np.diag(eigenvalues)
    if rotate:
        h, q = symmetric(rng, eigenvalues)
        g = q @ g
    theta = minimise_in_ball(h, g, 5.0)
    assert np.linalg.norm(theta) == pytest.approx(5.0, rel=1e-14)
    assert_optimal(h, g, 5.0, theta)
    if not rotate:
        assert theta[0] > 0.0  # the sign the tiny component asks for
        np.testing.assert_allclose(theta[2:], [0.2, 0.2], rtol=max(1e-10, 10 * tiny))


def test_large_scales_do_not_matter() -> None:
    rng = np.random.default_rng(10)
    for scale in (1e-12, 1e12):
        h, _ = symmetric(rng, scale * np.array([-1.0, 0.3, 2.0]))
        g = scale * rng.normal(size=3)
        assert_optimal(h, g, 1.0, minimise_in_ball(h, g, 1.0))
        np.testing.assert_allclose(minimise_in_ball(h, g, 1.0), minimise_in_ball(h / scale, g / scale, 1.0), rtol=1e-9)
