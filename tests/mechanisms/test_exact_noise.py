"""Objective perturbation on integers: the whole law of what is released, as it is drawn, on neighbours.

In one column the digits of b are one integer and a sign. With steps as coarse as the noise itself, every integer there
is goes through the code that `fit` runs, its probability is known, and so is that of the noise on the grid: the law of
what is released, for each of two neighbours, with no sampling. No neighbour may make anything more likely than is
charged, and each way to get it wrong does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import pytest

from expost.mechanisms.objective import draws as drawn_noise
from expost.mechanisms.objective.draws import BlockNoise
from expost.mechanisms.objective.gaussian_objective import GaussianShot
from expost.mechanisms.objective.perturbation import ObjectiveRows, PerturbedMinimum, Shot
from expost.noise import SeededSource
from expost.solve.losses import CappedLogisticLoss, LogisticLoss
from expost.table.rows import ONE, Rows
from expost.table.shape import Block, Geometry, l1_ball, l2_ball

COARSE = 0.0625  # g, in units of the noise
LONGEST = 320  # digits beyond have probability e^(−20); outcomes are looked at up to e^(−14)
FOUND: dict[tuple[float, ...], float] = {}  # minimisers, which several tests need
# a row moves b by eight steps and a half, so that what is computed on neighbours is never the same
SHOT = partial(Shot, CappedLogisticLoss(0.5), l1_ball(1), 2, 0.53125, 2.0, solver_part=0.25)


def objective(label: int) -> ObjectiveRows:
    """Two rows, of which the first is replaced."""
    return ObjectiveRows(
        Rows(np.full((2, 1), ONE, np.int32), np.array([label * ONE, ONE], np.int32), "l2"), CappedLogisticLoss(0.5)
    )


class PlacedNoise(BlockNoise):
    """Noise whose b̃ we place."""

    place = 0.0

    def draw(self, source):
        (weight,) = self.weights
        return np.array([self.place / weight])


class Placed(Shot):
    """A shot of such noise."""

    @cached_property
    def law(self):
        return PlacedNoise(super().law.blocks, super().law.weights)


def law(shot: Shot, label: int, drawn: Callable[[int], int | None] = lambda k: k) -> tuple[np.ndarray, np.ndarray]:
    """Return the points, in units of the grid, and their probabilities; ``drawn`` tampers with the digits."""
    rows, center = objective(label).perturbed, np.zeros(1)
    placed = Placed(**{field.name: getattr(shot, field.name) for field in dataclasses.fields(shot)})
    grid, _ = shot._solver
    masses: dict[int, float] = {}
    for k in range(LONGEST):
        taken = drawn(k)
        if taken is None:
            continue
        for sign in (1.0, -1.0):
            place = sign * taken * COARSE
            given = (label, place, shot.kept, shot.pull)
            if given not in FOUND:
                object.__setattr__(placed.law, "place", place)
                FOUND[given] = float(placed._found(rows, center, SeededSource(0))[0])
            at = round(FOUND[given] / grid.unit)
            masses[at] = masses.get(at, 0.0) + 0.5 * math.exp(-k * COARSE) * (1 - math.exp(-COARSE))
    points = np.array(sorted(masses), dtype=np.float64)
    mass = np.array([masses[int(point)] for point in points])
    return points, mass / mass.sum()


def log_law(shot: Shot, label: int, epsilon_solver: float, outcomes: np.ndarray, **tampered) -> np.ndarray:
    """ln of the probability of each outcome, up to a constant that is the same for all."""
    points, mass = law(shot, label, **tampered)
    rate = epsilon_solver / shot._solver[0].units
    exponents = np.log(mass) - rate * np.abs(outcomes[:, None] - points)
    most = exponents.max(axis=1)
    return np.asarray(most + np.log(np.exp(exponents - most[:, None]).sum(axis=1)))


def worst(shot: Shot, epsilon_solver: float | None = None, **tampered) -> float:
    """The largest log ratio between neighbours, over outcomes near and far."""
    epsilon = shot.epsilon_solver if epsilon_solver is None else epsilon_solver
    (weight,) = shot.geometry.weights(shot.epsilon_noise, shot.slope)
    reach = min(2.2 * shot.kept, 14.0 / (weight * shot.n * shot.lam)) / shot._solver[0].unit
    outcomes = np.rint(np.linspace(-reach, reach, 1501))
    one, two = (log_law(shot, label, epsilon, outcomes, **tampered) for label in (1, -1))
    return float(np.abs(one - two).max())


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(drawn_noise, "_STEP", COARSE)


@pytest.mark.usefixtures("coarse")
def test_no_outcome_is_likelier_than_charged():
    shot = SHOT()
    assert shot.remainder * shot.n * 0.53125 == pytest.approx(COARSE)
    assert shot.distance > 1e3 * shot.errors.distance
    found = worst(shot)
    assert 0.5 * (shot.epsilon_noise + shot.jacobian) < found <= shot.epsilon


@pytest.mark.usefixtures("coarse")
def test_controls_each_is_caught():
    shot = SHOT()
    with pytest.MonkeyPatch.context() as patch:  # d that ignores b − b̃
        patch.setattr(Shot, "remainder", 0.0)
        blind = SHOT(solver_part=0.01)
        assert blind.epsilon < 0.7 < 2.0 < worst(blind)
    cap = round(6.0 / COARSE)
    assert worst(shot, drawn=lambda k: min(k, cap)) > shot.epsilon  # a tail that is capped
    assert worst(shot, drawn=lambda k: None if k > cap else k) > shot.epsilon  # long noise drawn again
    assert worst(shot, 20.0 * shot.epsilon_solver) > shot.epsilon  # noise on the grid too small


@pytest.mark.usefixtures("coarse")
def test_long_noise_is_folded_back(monkeypatch):
    """Far tails end at the centre, on both data sets; a fold that is too steep moves them apart."""
    monkeypatch.setattr(Shot, "longest", 1.0)  # so that tails that count are folded
    shot = SHOT()
    points, mass = law(shot, 1)
    assert np.abs(points).max() * shot._solver[0].unit <= shot.kept + shot.distance
    assert mass[points == 0].sum() > 0.01
    assert worst(shot) <= shot.epsilon
    # P stated too small: a minimiser that lies within is taken for one that lies beyond
    monkeypatch.setattr(PerturbedMinimum, "pull", property(lambda self: 0.7 * self.lam * self.kept))
    assert worst(SHOT()) > SHOT().epsilon


BOX = Geometry((Block(3, "box", 0.5),), 1.0, "box")
SHOTS = [
    Shot(LogisticLoss(), l2_ball(3), 50, 0.5, 0.05, 2.0),
    Shot(LogisticLoss(), BOX, 50, 0.5, 0.05, 2.0),
    GaussianShot(LogisticLoss(), BOX, 50, 0.1, 0.05, 2.0),
]


class Given:
    """A solver that finds what we say."""

    def __init__(self, theta: np.ndarray) -> None:
        self.theta = theta

    def minimiser(self, errors, center, linear):
        return self.theta


def folded(shot, center, t, monkeypatch) -> np.ndarray:
    """θ₀ + h(t), as it is computed; t has a coordinate for what was drawn beside."""
    beside = shot.law.draw(SeededSource(0)).size - 3
    linear = np.concatenate([np.zeros(3), np.full(beside, t[3] * shot.lam)])
    with monkeypatch.context() as patch:
        patch.setattr(type(shot.law), "draw", lambda self, source: linear * shot.n)
        return shot._found(Given(center + t[:3]), center, None)


@pytest.mark.parametrize("shot", SHOTS, ids=["ball", "box", "normal"])
def test_folding_moves_nothing_further_apart(shot, monkeypatch):
    rng, center = np.random.default_rng(0), np.array([0.0, 1.2, -1.6])
    beside = shot.law.draw(SeededSource(0)).size - 3
    assert beside == (1 if isinstance(shot, GaussianShot) else 0)
    steepest, kept = 0.0, shot.kept
    for _ in range(400):
        t = rng.normal(size=4) * [1, 1, 1, beside]
        t *= kept * rng.choice([0.3, 1.0, 1.5, 2.0, 2.5]) / np.linalg.norm(t)
        moved = t + rng.normal(size=4) * [1, 1, 1, beside] * kept * 10.0 ** rng.uniform(-4, 0)
        # what was drawn beside is not so long that nothing is solved
        t[3], moved[3] = (np.clip(v, -1.9 * kept, 1.9 * kept) for v in (t[3], moved[3]))
        apart = np.linalg.norm(folded(shot, center, t, monkeypatch) - folded(shot, center, moved, monkeypatch))
        steepest = max(steepest, apart / np.linalg.norm(t - moved))
        if np.linalg.norm(t) > (2 + 1e-12) * kept:  # at 2 kept the last digit of a norm is the machine's
            assert (folded(shot, center, t, monkeypatch) == center).all()
        if np.linalg.norm(t) < (1 - 1e-12) * kept:
            assert (folded(shot, center, t, monkeypatch) == center + t[:3]).all()
    assert 0.9 < steepest <= 1.0 + 1e-9


@pytest.mark.parametrize("shot", SHOTS, ids=["ball", "box", "normal"])
def test_what_is_not_solved_lies_beyond(shot):
    """n‖t‖λ ≥ ‖b‖ − nκ, whatever the rows, remainders included; and ordinary noise is never folded."""
    eta = drawn_noise.rounding(3)
    shortest = (1 - eta) * shot.pull - shot.remainder - shot.slope
    assert shortest / shot.lam > 2 * shot.kept
    assert shot.errors.pull > shot.pull * (1 + 1e-9)
    assert shot.errors.within == 2 * shot.kept
    assert shot.longest > 5 * shot.typical
    drawn = [np.linalg.norm(shot.law.draw(SeededSource([1, k]))) / shot.n for k in range(500)]
    assert max(drawn) < shot.longest  # but for one seed in 10¹⁵


def test_no_redraw_whatever_was_drawn(monkeypatch):
    """As many words for short noise as for long: a draw is not looked at."""
    rows = ObjectiveRows(
        Rows(np.full((2, 3), ONE // 4, np.int32), np.array([ONE, -ONE], np.int32), "l2"), LogisticLoss()
    )
    shot, calls = Shot(LogisticLoss(), l2_ball(3), 2, 0.5, 0.05), []
    block_noise = drawn_noise.block_noise

    def counted(*given):
        calls.append(given)
        return block_noise(*given) * scale

    monkeypatch.setattr(drawn_noise, "block_noise", counted)
    for scale in (1e-9, 1.0, 1e3, 1e9, 1e153, 1e300, math.inf):  # noqa: B007
        released = shot.draw(rows.perturbed, np.zeros(3), SeededSource(3))
        assert np.isfinite(released).all()
    assert len(calls) == 7
