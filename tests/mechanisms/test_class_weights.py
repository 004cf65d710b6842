"""Weights of labels in the loss: what they must reach is attacked, and each way to get it wrong is caught."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from expost.mechanisms.descent.clipping import SlopeTable
from expost.mechanisms.moments.gaussian_moments import MomentGenerator
from expost.mechanisms.objective.perturbation import Shot
from expost.passes.sums import sums_over
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, Loss, WeightedLoss, weighted
from expost.solve.problem import Problem, excess_risk_sensitivity
from expost.table.rows import ONE, MemorySource, Rows
from expost.table.shape import l1_ball, l2_ball
from tests.mechanisms.test_objective import at_the_corner, log_density, worst_ratio

HALF = CappedLogisticLoss(0.5)
SHOT = Shot(WeightedLoss(HALF, 0.2, 1.0), l1_ball(1), 1, 0.4, 0.05)


class Undivided(WeightedLoss):
    """Weights 1 and 5 as they were stated, and not the fifth part of each; it states the slope that is asked for."""

    def __init__(self, slope: float = 5.0, bend: float = 5.0) -> None:
        super().__init__(HALF, 1.0, 5.0)
        vars(self).update(slope=slope, bend=bend)

    def derivative(self, u, y):
        return 5.0 * super().derivative(u, y)

    def second_derivative(self, u, y):
        return 5.0 * super().second_derivative(u, y)

    def lipschitz(self, radius: float) -> float:
        return self.slope * super().lipschitz(radius)

    @property
    def curvature(self) -> float:
        return self.bend * super().curvature


def made(loss: Loss, epsilon: float = 0.4, lam: float = 0.05) -> Shot:
    return Shot(loss, l1_ball(1), 1, epsilon, lam)


def test_weights_that_reach_slope_and_curvature_are_charged():
    """The same row with the other label, and the same row turned round: the bound holds, and is used up."""
    for shot in (SHOT, made(Undivided()), made(WeightedLoss(HALF, 1.0, 0.2))):
        worst = max(at_the_corner(shot), worst_ratio(shot))
        assert 0.8 * shot.epsilon_noise < worst <= (shot.epsilon_noise + shot.jacobian) * (1 + 1e-9)


@pytest.mark.parametrize(
    "shot",
    [made(Undivided(slope=1.0)), made(Undivided(bend=1.0), epsilon=0.01, lam=1e-3)],
    ids=["left out of κ", "left out of J"],
)
def test_weights_left_out_are_caught(shot):
    assert worst_ratio(shot) > 1.2 * (shot.epsilon_noise + shot.jacobian)


def test_only_the_quotient_counts():
    """Five times the loss, λ and noise is the same release at the same price, so dividing by the maximum loses none."""
    fivefold = made(Undivided(), lam=5 * SHOT.lam)
    assert fivefold.jacobian == pytest.approx(SHOT.jacobian, rel=1e-12)
    x, y, theta, center = np.array([[0.7]]), np.array([1.0]), np.array([0.3]), np.array([-0.1])
    ratios = []
    for shot in (SHOT, fivefold):
        scale = shot.geometry.weights(shot.epsilon_noise, shot.slope)
        ratios.append(
            log_density(shot, scale, x, y, theta, center) - log_density(shot, scale, x, -y, 2 * theta, center)
        )
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-12)


def balanced(y: np.ndarray) -> Loss:
    """The loss of weights n/(2n_y), which are functions of the rows."""
    many = np.array([np.sum(y < 0), np.sum(y > 0)])
    return weighted(HALF, (1.0, 1.0) if not many.all() else tuple((1.0 / many).tolist()))


@pytest.mark.parametrize("by_rows", [False, True], ids=["public", "by class counts"])
def test_weights_by_class_counts_are_caught(by_rows):
    """One row with the other label moves the weights of all others: more than 2κ, and more than one bent row."""
    n, worst = 6, 0.0
    shot = Shot(WeightedLoss(HALF, 0.2, 1.0), l1_ball(1), n, 0.4, 0.05)
    scale = shot.geometry.weights(shot.epsilon_noise, shot.slope)
    bound = float(Fraction(shot.epsilon_noise) + Fraction(shot.jacobian))
    for y in itertools.product((-1.0, 1.0), repeat=n):
        for signs in itertools.product((-1.0, 1.0), repeat=3):
            x = np.array([*signs, signs[-1], *np.array(y)[4:]])[:, None]
            there = (np.array([-y[0], *y[1:]]), np.concatenate([-x[:1], x[1:]]))
            for theta in (1e-9, -1e-9, 0.4, -3.0):
                for center in (-1e6, 1e6):
                    one, two = (
                        log_density(
                            Shot(balanced(labels) if by_rows else shot.loss, shot.geometry, n, 0.4, 0.05),
                            scale,
                            rows,
                            labels,
                            np.array([theta]),
                            np.array([center]),
                        )
                        for labels, rows in ((np.array(y), x), there)
                    )
                    worst = max(worst, abs(one - two))
    assert (worst > 1.2 * bound) == by_rows
    assert by_rows or worst <= bound * (1 + 1e-9)


def test_a_spread_without_weights_is_caught():
    """A heavy row on the wrong side becomes a light one on the right side: the risk falls by more than φ's spread."""
    loss, plain, radius = WeightedLoss(LogisticLoss(), 0.01, 1.0), LogisticLoss(), 1.0
    high = float(loss.value(np.array([-radius]), np.ones(1))[0])
    low = float(loss.value(np.array([-radius]), -np.ones(1))[0])
    assert plain.spread(radius) * 1.2 < high - low <= loss.spread(radius)
    # n = 1: L(θ) falls by that, and min L by as much again where θ is the other row's minimiser
    assert 2 * (high - low) <= excess_risk_sensitivity(loss, radius, 1)
    assert 2 * (high - low) > excess_risk_sensitivity(plain, radius, 1)


def test_slopes_of_a_descent_have_the_weights():
    table, plain = SlopeTable.of(WeightedLoss(HALF, 0.25, 1.0)), SlopeTable.of(HALF)
    u = np.linspace(-9, 9, 4001)
    for label, weight in ((1.0, 1.0), (-1.0, 0.25)):
        y = np.full_like(u, label)
        np.testing.assert_allclose(table.at(u, y), weight * plain.at(u, y), atol=1)
    assert table.largest == plain.largest


def test_moments_are_of_rows_that_weights_make_shorter():
    rng = np.random.default_rng(0)
    x = (rng.uniform(-1, 1, (500, 3)) / np.sqrt(3) * ONE).astype(np.int32)
    y = np.where(rng.random(500) < 0.1, ONE, -ONE).astype(np.int32)
    rows = Rows(x, y, norm="l2", shape=None)
    problem = Problem.of(WeightedLoss(HALF, 0.3, 1.0), n=500, p=3, regularization=1.0)
    sums = MomentGenerator(None, rows, problem).sums  # type: ignore[arg-type]
    weights = np.where(y > 0, 1.0, 0.3)
    np.testing.assert_allclose(sums.gram / 2.0**40, (x / ONE).T * weights @ (x / ONE), atol=1e-3)
    np.testing.assert_allclose(sums.moment / 2.0**40, (x / ONE).T @ (weights * y / ONE), atol=1e-3)
    for k in range(500):  # no entry is larger than it was, whatever the weight
        some = sums_over(MemorySource(Rows(x[k : k + 1], y[k : k + 1], norm="l2")), weights=(0.3, 1.0))
        assert (np.sqrt(np.diag(some.gram)) <= np.abs(x[k])).all()
        assert some.target_square <= ONE**2
    with pytest.raises(ValueError, match="at most 1"):
        sums_over(MemorySource(rows), weights=(1.0, 5.0))


def test_which_losses_and_weights():
    assert weighted(HALF, (2.0, 2.0)) is HALF
    assert WeightedLoss(HALF, 1.0, 4.0) == WeightedLoss(HALF, 2.0, 8.0) != WeightedLoss(HALF, 1.0, 5.0)
    assert WeightedLoss(HALF, 1.0, 4.0).class_weights == (0.25, 1.0)
    assert HALF.class_weights == (1.0, 1.0)

    class Own(LogisticLoss):
        pass

    for loss in (HuberLoss(0.5), WeightedLoss(HALF, 1.0, 4.0), Own()):
        with pytest.raises(ValueError, match="library's own losses of labels"):
            WeightedLoss(loss, 1.0, 2.0)
    for weight in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="positive and finite"):
            WeightedLoss(HALF, 1.0, weight)
    with pytest.raises(ValueError, match="nothing beside"):
        WeightedLoss(HALF, 1e-300, 1e300)
    with pytest.raises(AttributeError, match="privacy rests on"):
        WeightedLoss(HALF, 1.0, 4.0).curvature = 0.01  # type: ignore[misc]


def test_rows_of_every_shape_in_two_columns():
    for geometry in (l1_ball(2), l2_ball(2)):
        shot = Shot(WeightedLoss(LogisticLoss(), 0.1, 1.0), geometry, 2, 0.3, 0.02)
        assert 0.4 * 0.3 < worst_ratio(shot, tries=200) <= (0.3 + shot.jacobian) * (1 + 1e-9)
