"""Rows, reference solutions and adversaries shared by the tests of this room."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from expost.solve.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss, WeightedLoss
from expost.table.rows import Rows

ONE = 2**20
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

LOSSES: list[Loss] = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(1.5),
    HuberLoss(0.5),
    HuberLoss(0.1),
    SmoothedHingeLoss(2.0),
    SmoothedHingeLoss(0.5),
    SmoothedHingeLoss(0.1),
    WeightedLoss(LogisticLoss(), 0.25, 1.0),
    WeightedLoss(SmoothedHingeLoss(0.5), 1.0, 0.3),
]


def random_rows(rng: np.random.Generator, n: int, p: int, *, full: bool = False) -> Rows:
    """Rows with norms spread over [0, 1], or all exactly one if ``full``."""
    shares = rng.dirichlet(np.full(p, 0.5), size=n)
    x = np.trunc(shares * ONE).astype(np.int32)
    if full:
        x[:, 0] += ONE - x.sum(axis=1, dtype=np.int32)
    else:
        x = (x * rng.uniform(size=(n, 1))).astype(np.int32)
    x *= rng.choice(np.array([-1, 1], np.int32), size=(n, p))
    return Rows(x, rng.integers(-ONE, ONE + 1, size=n).astype(np.int32))


def random_problem(rng: np.random.Generator, n: int, p: int, loss: Loss) -> tuple[Floats, Floats]:
    """Float rows with a signal, exactly representable in fixed point."""
    rows = random_rows(rng, n, p, full=True)
    x = rows.x / ONE
    signal = x @ (4.0 * rng.normal(size=p)) + 0.3 * rng.normal(size=n)
    y = np.where(signal >= 0, 1.0, -1.0) if loss.labels == "binary" else np.clip(signal, -1.0, 1.0)
    return x, y


def objective(loss: Loss, x: Floats, y: Floats, lam: float, theta: Floats) -> float:
    """L(θ), written out independently of the code under test."""
    return float(np.mean(loss.value(x @ theta, y)) + 0.5 * lam * theta @ theta)


def in_ball(rng: np.random.Generator, p: int, radius: float) -> Floats:
    """A random point of the ball, half of the time on its surface."""
    direction = rng.normal(size=p)
    scale = 1.0 if rng.random() < 0.5 else rng.random()
    return np.asarray(direction * (scale * radius / np.linalg.norm(direction)))


def hostile_problem(rng: np.random.Generator, loss: Loss, kinds: int, p: int, n: int) -> tuple[Floats, Floats, Floats]:
    """Nearly collinear kinds of rows, and how many rows are of each: hardly any curvature across them."""
    base = rng.normal(size=p)
    base /= np.abs(base).sum()
    length = ONE * rng.uniform(0.3, 0.95, size=(kinds, 1)) * rng.choice([-1.0, 1.0], size=(kinds, 1))
    spread = 10.0 ** rng.uniform(0.0, 4.0)
    aside = rng.normal(size=(kinds, p)) if rng.random() < 0.5 else rng.normal(size=(kinds, 1)) * rng.normal(size=p)
    x = np.rint(length * base + spread * aside)
    x = np.trunc(x * np.minimum(1.0, ONE / np.maximum(1.0, np.abs(x).sum(axis=1, keepdims=True)))) / ONE
    real = np.rint(rng.uniform(-ONE, ONE, size=kinds)) / ONE
    y = np.where(real >= 0.0, 1.0, -1.0) if loss.labels == "binary" else real
    counts = 1.0 + rng.multinomial(n - kinds, rng.dirichlet(np.full(kinds, 0.4)))
    return x, y, counts
