"""Gradients that prove risks: how far one row moves them, how far their computation may be off.

Nothing here is left to chance (seeds are fixed and every bound is meant to hold always), so the false-alarm rate is
zero. Attempts to refute a bound are paired with a bound that is too small and has to be caught.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from expost.goals.measure import GradientLength
from expost.mechanisms import Covariance, Output
from expost.numeric import Grid
from expost.passes.sums import sums_over
from expost.solve.losses import LogisticLoss, Loss, SquaredLoss
from expost.solve.minimiser import RidgeRisk
from expost.solve.problem import gradient_sensitivity
from tests.helpers import LOSSES, fixed_rows, logistic_rows, problem_of, ridge_rows, smallest_limit


def test_a_gradient_bounds_the_risk():
    rows = ridge_rows(500, 3, 0)
    risk = Covariance().on(rows, problem_of(rows, SquaredLoss())).risk
    rng = np.random.default_rng(1)
    for _ in range(50):
        theta = rng.normal(size=4) * rng.choice([0.1, 1, 5])
        assert risk.excess(theta) <= risk.gradient_norm(theta) ** 2 / (2 * 0.02) * (1 + 1e-9)


def test_gradient_norms_agree():
    """Ridge by sums, the same loss by rows, and finite differences."""
    rows = ridge_rows(400, 3, 2)
    problem = problem_of(rows, SquaredLoss())
    by_sums, by_rows = Covariance().on(sums_over(rows), problem), Output().on(rows, problem)
    theta = np.array([0.3, -1.0, 2.0, 0.1])
    steps = 1e-5 * np.eye(4)
    slopes = [(by_sums.risk.excess(theta + h) - by_sums.risk.excess(theta - h)) / 2e-5 for h in steps]
    assert by_sums.risk.gradient_norm(theta) == pytest.approx(float(np.linalg.norm(slopes)), rel=1e-6)
    assert by_sums.risk.gradient_norm(theta) == pytest.approx(by_rows.risk.gradient_norm(theta), rel=1e-10)


# --- S(m) ----------------------------------------------------------------------------------------------------------


def largest_gradient_change(loss: Loss, m: float, rng: np.random.Generator, tries: int = 4000) -> float:
    """Search neighbours (two rows of ℓ₁ norm 1) and θ with ‖θ‖_∞ = m for the largest ‖∇φ − ∇φ′‖₂."""
    best = 0.0
    for p in (1, 2, 3, 5):
        theta = m * rng.choice([-1.0, 1.0], size=(tries, p)) * np.where(rng.random((tries, p)) < 0.8, 1.0, rng.random())

        def row(p=p):
            x = rng.standard_normal((tries, p)) * (rng.random((tries, p)) < 0.6)
            corner = np.eye(p)[rng.integers(p, size=tries)] * rng.choice([-1.0, 1.0], size=(tries, 1))
            x = np.where(rng.random((tries, 1)) < 0.4, corner, x)
            norm = np.abs(x).sum(axis=1, keepdims=True)
            return np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)

        x, other, y = row(), row(), rng.choice([-1.0, 1.0], size=tries)
        mixed = rng.random((tries, 1))
        for second in (other, mixed * other - (1 - mixed) * x, -x):
            for target in (y, -y):
                change = loss.derivative((x * theta).sum(1), y)[:, None] * x
                change = change - loss.derivative((second * theta).sum(1), target)[:, None] * second
                best = max(best, float(np.linalg.norm(change, axis=1).max()))
    return best


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_neighbours_move_a_gradient_further(loss):
    rng = np.random.default_rng(1)
    for m in (0.0, 0.05, 0.25, 0.5, 0.9, 1.0, 1.3, 4.0, 20.0):
        assert largest_gradient_change(loss, m, rng) <= gradient_sensitivity(loss, m)


@pytest.mark.parametrize(("loss", "m"), [(SquaredLoss(), 0.0), (SquaredLoss(), 4.0), (LogisticLoss(), 0.25)], ids=repr)
def test_a_hundredth_less_would_be_refuted(loss, m):
    assert largest_gradient_change(loss, m, np.random.default_rng(1)) > 0.99 * gradient_sensitivity(loss, m)


class OneSided(Loss):
    """Steeper on one side of the target than on the other: not symmetric."""

    labels = "real"
    name, curvature, null_value, pull = "one-sided", 1.0, 0.5, 0.25

    def value(self, u, y):
        return 0.5 * np.where(u > y, 1.0, 0.1) * (u - y) ** 2

    def derivative(self, u, y):
        return np.where(u > y, 1.0, 0.1) * (u - y)

    def second_derivative(self, u, y):
        return np.where(u > y, 1.0, 0.1)

    def lipschitz(self, radius):
        return 1.0 + radius

    def spread(self, radius):
        return 0.5 * (1.0 + radius) ** 2


def test_a_loss_of_ones_own_gets_the_general_bound():
    rng = np.random.default_rng(2)
    for m in (0.0, 0.5, 2.0):
        assert largest_gradient_change(OneSided(), m, rng) <= gradient_sensitivity(OneSided(), m) == 2 * (1 + m)


def test_the_error_of_a_gradient_norm_is_within_its_bound():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, p, lam = int(rng.integers(1, 6)), int(rng.integers(1, 7)), float(10 ** rng.uniform(-9, 0))
        rows = fixed_rows(rng.standard_normal((n, p)), rng.choice([-1.0, 1.0], n))
        sums = sums_over(rows)
        risk = RidgeRisk(sums, lam, math.inf)
        theta = rng.standard_normal(p) * 10 ** rng.uniform(-3, 4)
        if seed % 2:
            theta = risk.optimum * (1 + 1e-9 * rng.standard_normal(p))
        exact = Fraction(0)
        for i in range(p):
            entry = Fraction(lam) * Fraction(float(theta[i])) - Fraction(int(sums.moment[i]), n << 40)
            entry += sum(Fraction(int(sums.gram[i, j]), n << 40) * Fraction(float(theta[j])) for j in range(p))
            exact += entry * entry
        with localcontext() as context:
            context.prec = 60
            root = (Decimal(exact.numerator) / Decimal(exact.denominator)).sqrt()
            error = abs(Decimal(risk.gradient_norm(theta)) - root)
        assert error <= risk.gradient_error_bound(float(np.linalg.norm(theta)) * (1 + 1e-12))


# --- the measure ------------------------------------------------------------------------------------------------------


def measured(rows, loss):
    mechanism = Covariance() if loss.name == "squared" else Output()
    return GradientLength(mechanism.on(rows, problem_of(rows, loss)).risk, loss, rows.n)


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=repr)
def test_neighbours_answer_within_the_charge(loss):
    """As integers, on the grid of a rule and on that of one question; half of the charge would be refuted."""
    rng, most = np.random.default_rng(7), 0.0
    for _ in range(25):
        x, y = rng.uniform(-0.2, 0.2, (4, 2)), rng.choice([-1.0, 1.0], 4)
        theta = rng.choice([-1.0, 1.0], 2) * rng.choice([0.1, 1.0, 4.0])
        pair = []
        for sign in (1.0, -1.0):
            x[0], y[0] = np.eye(2)[0] * np.sign(theta[0]), -sign
            pair.append(measured(fixed_rows(x, y), loss))
        for grid in (pair[0].grid(theta), pair[0].fine_grid(theta)):
            assert grid in (pair[1].grid(theta), pair[1].fine_grid(theta))  # public given θ
            moved = abs(smallest_limit(pair[0], theta, grid.unit) - smallest_limit(pair[1], theta, grid.unit))
            assert moved <= grid.units
            most = max(most, moved / grid.units)
    assert most > 0.5


def test_sensitivity_and_error_by_hand():
    """S(‖θ‖_∞)/n, and the risk's own bound at ‖θ‖₂."""
    rows = ridge_rows(500, 3, 0)
    generator = Covariance().on(rows, problem_of(rows, SquaredLoss()))
    measure, theta = GradientLength(generator.risk, SquaredLoss(), 500), np.array([0.0, -3.0, 4.0, 0.0])
    assert measure.uniform is None
    assert measure.sensitivity(theta) == gradient_sensitivity(SquaredLoss(), 4.0) / 500
    assert measure.error_bound(theta) == generator.risk.gradient_error_bound(5.0 * (1 + 1e-12))
    assert measure.fine_grid(theta) == Grid.of(measure.sensitivity(theta), error_bound=measure.error_bound(theta))


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=repr)
def test_cheap_bounds_are_below(loss):
    rows = ridge_rows(500, 3, 1) if loss.name == "squared" else logistic_rows(500, 4, 1)
    measure, rng = measured(rows, loss), np.random.default_rng(2)
    for _ in range(100):
        theta = rng.normal(size=4) * rng.choice([0.01, 1, 10])
        (lower,) = measure.lower(theta)
        assert lower <= measure.value(theta) + measure.error_bound(theta)
