"""The minimiser of a perturbed objective: its certificate, checked in longer arithmetic on rows that do their worst."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from expost.exceptions import ConvergenceError
from expost.numeric import exact_parts
from expost.passes.engine import predictions
from expost.solve import perturbed
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss
from expost.solve.perturbed import PerturbedErrors, PerturbedObjective, Walk
from expost.solve.row_sums import Passes
from expost.table.rows import MemorySource, Rows
from tests.solve.helpers import ONE, hostile_problem, random_problem

LOSSES = [CappedLogisticLoss(0.5), CappedLogisticLoss(0.2), LogisticLoss(), HuberLoss(0.25), SmoothedHingeLoss(0.5)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
Long = np.longdouble
needs_long = pytest.mark.skipif(np.finfo(Long).eps > 2e-19, reason="long double is no longer than double here")


class Table(Passes):
    """Passes over rows that are given in floating point, rounded to multiples of 2⁻²⁰."""

    def __init__(self, loss: Loss, x: np.ndarray, y: np.ndarray, counts: np.ndarray | None = None) -> None:
        units = [np.trunc(part * ONE).astype(np.int32) for part in (x, y)]
        self.X, self.y, self.counts = units[0] / ONE, units[1] / ONE, counts
        super().__init__(loss, MemorySource(Rows(*units, norm="l2"), counts))


def slopes(loss: Loss, u: np.ndarray, y: np.ndarray) -> np.ndarray:
    """φ′ in extended precision, written out anew."""
    one = Long(1)
    if isinstance(loss, HuberLoss):
        return np.clip(u - y, -Long(loss.delta), Long(loss.delta))
    if isinstance(loss, SmoothedHingeLoss):
        return -y * np.clip((one - y * u) / Long(loss.width), Long(0), one)
    full = one / (one + np.exp(np.clip(y * u, -11000, 11000)))
    return -y * (np.minimum(full, Long(loss.slope)) if isinstance(loss, CappedLogisticLoss) else full)


def exact_gradient(objective: Table, theta, lam: float, center, linear) -> float:
    x, y = objective.X.astype(Long), objective.y.astype(Long)
    counts = np.ones(len(y), Long) if objective.counts is None else objective.counts.astype(Long)
    t = theta.astype(Long)
    pull = (slopes(objective.loss, x @ t, y) * counts) @ x / Long(objective.n)
    total = pull + Long(lam) * (t - center.astype(Long)) + linear.astype(Long)
    return float(np.sqrt((total * total).sum()))


def setting(kind: str, loss: Loss, seed: int):
    """Return rows, a centre and noise that are ordinary or do their worst."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 6))
    counts = None
    if kind == "random":
        x, y = random_problem(rng, 60, p, loss)
    elif kind == "collinear":
        x, y, counts = hostile_problem(rng, loss, 8, p, 5000)
    else:
        x = np.tile(np.eye(p)[0], (50, 1))
        y = np.where(np.arange(50) < 25, 1.0, -1.0) if seed % 2 else np.ones(50)
    size = 10.0 ** rng.uniform(-3, 6) if kind == "far" else 1.0
    center = np.rint(rng.normal(size=p) * size * ONE) / ONE
    linear = rng.normal(size=p) * 10.0 ** rng.uniform(-4, 2)
    lam = float(10.0 ** rng.uniform(-5, 1))
    objective = Table(loss, x, y, counts)
    errors = PerturbedErrors(
        loss, objective.n, p, lam, float(np.linalg.norm(center)), float(np.linalg.norm(linear)) * (1 + 1e-12)
    )
    return objective, errors, center, linear


@needs_long
@each_loss
@pytest.mark.parametrize("kind", ["random", "collinear", "equal", "far"])
def test_the_gradient_is_within_the_tolerance(loss: Loss, kind: str) -> None:
    for seed in range(12):
        objective, errors, center, linear = setting(kind, loss, seed)
        theta = PerturbedObjective(objective).minimiser(errors, center, linear)
        found = exact_gradient(objective, theta, errors.lam, center, linear)
        assert found <= errors.tolerance
        assert np.linalg.norm(theta) <= errors.norm
        assert 0 < errors.tolerance < 1e-11 * (1 + errors.norm * (loss.curvature + errors.lam) + errors.pull)


@needs_long
@each_loss
@pytest.mark.parametrize("kind", ["random", "collinear", "far"])
def test_descent_alone_gets_there_in_the_steps_it_states(loss: Loss, kind: str, monkeypatch) -> None:
    monkeypatch.setattr(perturbed, "_stages", lambda n, p: [])
    done = 0
    for seed in range(40):
        objective, errors, center, linear = setting(kind, loss, seed)
        if errors.steps > 8000:
            continue
        theta = PerturbedObjective(objective).minimiser(errors, center, linear)
        assert exact_gradient(objective, theta, errors.lam, center, linear) <= errors.tolerance
        done += 1
        if done == 3:
            break
    assert done == 3


@needs_long
@each_loss
def test_a_solver_that_stops_too_early_is_noticed(loss: Loss, monkeypatch) -> None:
    monkeypatch.setattr(
        Walk,
        "accepted",
        lambda self, gradient: np.linalg.norm(gradient) <= 3e3 * self._errors.rounding,
    )
    late = 0
    for seed in range(40):
        objective, errors, center, linear = setting("random", loss, seed)
        monkeypatch.setattr(perturbed, "_stages", lambda n, p: [])
        if errors.steps > 8000:
            continue
        theta = PerturbedObjective(objective).minimiser(errors, center, linear)
        late += exact_gradient(objective, theta, errors.lam, center, linear) > errors.tolerance
        if late:
            break
    assert late


@needs_long
@each_loss
@pytest.mark.parametrize("kind", ["random", "collinear", "far"])
def test_computed_gradients_are_off_by_no_more_than_stated(loss: Loss, kind: str) -> None:
    """e itself, at points all over the ball that the search may look at."""
    rng, largest = np.random.default_rng(0), 0.0
    for seed in range(8):
        objective, errors, center, linear = setting(kind, loss, seed)
        private = Walk(objective, errors, center, linear)
        for _ in range(5):
            step = rng.normal(size=center.size)
            reach = (errors.norm - errors.center_norm) * rng.random()
            theta = center + step * (reach / np.linalg.norm(step))
            computed = private.look(theta, None).gradient
            x, t = objective.X.astype(Long), theta.astype(Long)
            counts = np.ones(len(x), Long) if objective.counts is None else objective.counts.astype(Long)
            exact = (slopes(loss, x @ t, objective.y.astype(Long)) * counts) @ x / Long(objective.n)
            exact += Long(errors.lam) * (t - center) + linear
            off = float(np.sqrt(((computed - exact) ** 2).sum()))
            assert off <= errors.rounding
            largest = max(largest, off / errors.rounding)
    assert largest > 1e-4  # the bound is not idle


def test_the_distance_is_that_of_a_strongly_convex_function() -> None:
    errors = PerturbedErrors(LogisticLoss(), 1000, 4, 0.01, 2.0, 0.1)
    assert errors.distance >= errors.tolerance / errors.lam
    assert errors.gap == pytest.approx(1.1**2 / 0.02)
    assert errors.norm >= 2.0 + 2 * 1.1 / 0.01
    for change in ({"lam": 0.001}, {"pull": 10.0}, {"center_norm": 1e6}):
        assert dataclasses.replace(errors, **change).distance > errors.distance


def folded(theta, center, within: float):
    """h: the identity up to half of W, and θ₀ from W on."""
    away = theta - center
    length = float(np.linalg.norm(away))
    return center + away * min(max(within / length - 1.0, 0.0), 1.0) if length else center


@needs_long
@each_loss
@pytest.mark.parametrize("stages", [None, []], ids=["newton", "descent"])
@pytest.mark.parametrize("where", [0.3, 0.8, 1.2, 5.0, 1e3])
def test_minimisers_too_far_away_are_all_the_same(loss: Loss, stages, where: float, monkeypatch) -> None:
    """Whether they lie within W or beyond: h of what is found is that of one found far more closely."""
    if stages is not None:
        monkeypatch.setattr(perturbed, "_stages", lambda n, p: stages)
    for seed in range(2):
        objective, errors, center, linear = setting("collinear", loss, seed)
        errors = dataclasses.replace(errors, lam=max(errors.lam, 0.02 if stages is None else 0.5))
        close = PerturbedObjective(objective).minimiser(errors, center, linear)
        within = float(np.linalg.norm(close - center)) / where
        asked = dataclasses.replace(errors, within=within)
        found = PerturbedObjective(objective).minimiser(asked, center, linear)
        apart = float(np.linalg.norm(folded(found, center, within) - folded(close, center, within)))
        assert asked.rounding <= errors.rounding
        assert apart <= asked.distance + errors.distance
        if np.linalg.norm(found - center) <= 2.0 * within:
            assert exact_gradient(objective, found, errors.lam, center, linear) <= asked.tolerance * (1 + 1e-6)


def test_less_is_asked_of_rounding_where_far_minimisers_do_not_matter() -> None:
    errors = PerturbedErrors(LogisticLoss(), 1000, 4, 1e-5, 0.0, 1e-3)
    near = dataclasses.replace(errors, within=300.0)
    assert near.norm == pytest.approx(600.0)
    assert near.distance < 0.01 * errors.distance
    with pytest.raises(ValueError, match="too many columns"):
        dataclasses.replace(errors, lam=1e-18).distance  # noqa: B018


def test_predictions_are_exact_to_a_unit_of_theta() -> None:
    rng = np.random.default_rng(3)
    x = np.rint(rng.uniform(-1, 1, (40, 30)) / 6 * ONE) / ONE
    theta = rng.normal(size=30) * 1e5
    computed = predictions(x * ONE, exact_parts(theta))
    unit = 2.0**-53 * float(np.linalg.norm(theta))
    with localcontext() as context:
        context.prec = 60
        for row, u in zip(x, computed, strict=True):
            exact = sum(Decimal(a) * Decimal(b) for a, b in zip(row.tolist(), theta.tolist(), strict=True))
            assert abs(float(Decimal(float(u)) - exact)) <= 2 * unit


class Liar(LogisticLoss):
    """States a hundredth of its curvature: steps overshoot."""

    curvature = 0.25 / 400

    def derivative(self, u, y):
        return -y * (y * u < 0)


def test_a_loss_that_is_not_what_it_says_it_is(monkeypatch) -> None:
    monkeypatch.setattr(perturbed, "_stages", lambda n, p: [])
    objective = Table(Liar(), np.ones((4, 1)), np.array([1.0, 1.0, -1.0, -1.0]))
    errors = PerturbedErrors(Liar(), 4, 1, 0.5, 0.0, 0.25)
    with pytest.raises(ConvergenceError, match="not what it says"):
        PerturbedObjective(objective).minimiser(errors, np.zeros(1), np.array([-0.25]))


def test_rows_are_not_shown() -> None:
    objective = Table(LogisticLoss(), np.full((3, 1), 0.125), np.ones(3))
    assert "0.125" not in repr(PerturbedObjective(objective))


def test_no_rows_warn() -> None:
    objective = Table(LogisticLoss(), np.ones((3, 1)), np.ones(3))
    errors = PerturbedErrors(LogisticLoss(), 3, 1, 1e-6, 1e9, 1e6)
    theta = PerturbedObjective(objective).minimiser(errors, np.array([-1e9]), np.array([1e6]))
    assert math.isfinite(theta[0])
