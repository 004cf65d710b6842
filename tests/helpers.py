"""What tests of several rooms share: generated rows, settled plans, sources that count, and statistics of many runs."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from expost.exceptions import AccuracyNotReached
from expost.goals import Goal
from expost.goals.measure import Measure
from expost.mechanisms import Mechanism, mechanism_of
from expost.noise import SeededSource
from expost.noise.laplace import NoisePath
from expost.passes.sums import Sums, sums_over
from expost.release.release import Release
from expost.search import METHODS, Request
from expost.solve.losses import HuberLoss, LogisticLoss, Loss, SmoothedHingeLoss, SquaredLoss, WeightedLoss
from expost.solve.problem import Problem
from expost.table.bounds_encoding import Preparation
from expost.table.files import open_disk
from expost.table.rows import ONE, Rows

# Every statistical test may fail with at most this probability although nothing is wrong.
RARE = 1e-6

N = 20_000

LOSSES = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(0.25),
    HuberLoss(1.5),
    SmoothedHingeLoss(0.5),
    SmoothedHingeLoss(3),
    WeightedLoss(LogisticLoss(), 0.25, 1.0),
]


def repetitions(usual: int, thorough: int) -> int:
    """Return how often a test that is marked "repeats" tries: more often in `make audit`."""
    return thorough if "EXPOST_THOROUGH" in os.environ else usual


def at_most_by_chance(trials: int, probability: float) -> int:
    """Return the largest count that does not refute "the probability is at most this", one-sided at level RARE."""
    return int(stats.binom.isf(RARE, trials, probability))


def tool(name: str) -> Any:
    """Return a script of ``tools/`` as a module."""
    path = Path(__file__).parents[1] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tools_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_in_every_run(text: str) -> dict[str, Any]:
    """Return a release in JSON as plain values, without what tells one run from another."""
    return {key: value for key, value in json.loads(text).items() if key not in ("id", "date")}


# --- rows ------------------------------------------------------------------------------------------------------------


@cache
def features(n: int = N, p: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the surface of the unit ℓ₁ ball and a target that a linear model explains well."""
    rng = np.random.default_rng(20170526)
    X = rng.uniform(-1, 1, size=(n, p))
    X /= np.abs(X).sum(axis=1, keepdims=True)
    weights = np.array([1.0, -0.8, 0.6, 0.9, -0.7])[:p]
    return X, np.clip(X @ weights + 0.05 * rng.normal(size=n), -1, 1)


@cache
def regression_rows(n: int = N, p: int = 4) -> Rows:
    X, y = features(n, p)
    recipe = Preparation(bounds=None, feature_bound=1.0, target=(-1.0, 1.0), intercept_weight=0.0, n_columns=p)
    return recipe.prepare_regression(X, y)


@cache
def classification_rows(n: int = N, p: int = 4) -> Rows:
    X, y = features(n, p)
    recipe = Preparation(bounds=None, feature_bound=1.0, target=None, intercept_weight=0.0, n_columns=p)
    return recipe.prepare_classification(X, y > 0, (False, True))


@cache
def regression_sums(n: int = N, p: int = 4) -> Sums:
    return sums_over(regression_rows(n, p))


def ridge_rows(n: int, p: int, seed: int, scale: float = 1.0) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) / p * scale
    y = np.clip(X @ rng.normal(size=p) * 2 + 0.3 + 0.1 * rng.normal(size=n), -1, 1)
    recipe = Preparation(bounds=None, feature_bound=1.0, target=(-1.0, 1.0), intercept_weight=0.5, n_columns=p)
    return recipe.prepare_regression(X, y)


def logistic_rows(n: int, p: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) / p
    labels = X @ np.arange(1, p + 1) + 0.05 * rng.logistic(size=n) > 0
    recipe = Preparation(bounds=None, feature_bound=1.0, target=None, intercept_weight=0.0, n_columns=p)
    return recipe.prepare_classification(X, labels, (False, True))


def fixed_rows(x: Any, y: Any) -> Rows:
    """Return rows in fixed point, moved into the unit ℓ₁ ball."""
    x = np.atleast_2d(np.asarray(x, dtype=float))
    x = x / np.maximum(1.0, np.abs(x).sum(axis=1, keepdims=True) * (1 + 1e-9))
    return Rows(np.trunc(x * ONE).astype(np.int32), np.trunc(np.clip(y, -1, 1) * ONE).astype(np.int32))


# --- searches --------------------------------------------------------------------------------------------------------


def problem_of(rows: Rows, loss: Loss, lam: float = 0.02) -> Problem:
    return Problem.of(loss, n=rows.n, p=rows.p, regularization=lam)


def plan_of(
    problem: Problem, goal: Goal, method: str = "above_threshold", mechanism: Mechanism | None = None, **options: Any
) -> Any:
    """Return what a method settles; no row is looked at."""
    if mechanism is None:
        mechanism = mechanism_of("covariance" if problem.loss.name == "squared" else "output")
    return Request(problem, goal, METHODS[method], mechanism, **options).plan()


def outcome(search: Callable[..., Release], *given: Any, **options: Any) -> Release:
    """Return the release, be it a refusal."""
    try:
        return search(*given, **options)
    except AccuracyNotReached as refusal:
        return refusal.release


def smallest_limit(measure: Measure, hypothesis: Any, unit: float | None = None) -> int:
    """Return the answer of a measure, in units of its grid or other ones, by bisection on what it accepts."""
    unit = measure.grid(hypothesis).unit if unit is None else unit
    low, high = -(1 << 60), 1 << 60
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if measure.at_most(hypothesis, middle, unit) else (middle, high)
    return high


class CountingSource:
    """A seeded source that counts the words it has handed out."""

    secure = False

    def __init__(self, seed: int = 0) -> None:
        self._source = SeededSource(seed)
        self.drawn = 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        return self._source.words(count)


class _Level:
    """A level of a path that notes what it costs once it is looked at."""

    def __init__(self, level: Any, looked_at: list[float]) -> None:
        self.epsilon, self._level, self._looked_at = level.epsilon, level, looked_at

    @property
    def values(self) -> Any:
        self._looked_at.append(self.epsilon)
        return self._level.values


def watch_paths(monkeypatch: Any, *modules: Any) -> list[list[float]]:
    """Return the levels looked at of every path of gradual release that these modules will make."""
    paths: list[list[float]] = []

    class Watched(NoisePath):
        def __iter__(self) -> Any:
            paths.append([])
            yield from (_Level(level, paths[-1]) for level in super().__iter__())

    for module in modules:
        monkeypatch.setattr(module, "NoisePath", Watched)
    return paths


def readable_cells(encoding: Any, frame: Any) -> dict[str, int]:
    """Count rows whose cell is readable, by column, and rows of each class."""
    _, tallies, target = encoding.encode_and_count(frame, "clip")
    counts = {tally.name: tally.readable for tally in tallies}
    if target.classes is None:
        return {**counts, target.name: target.readable}
    named = zip(encoding.schema.classes, target.classes, strict=True)
    return {**counts, **{f"{target.name}={label}": count for label, count in named}}


def cut(file: Any, part_bytes: int) -> Any:
    """Return a file of lines that is read in parts of about so many bytes."""
    file.part_bytes = part_bytes
    return file


def read_columns(path: Any, names: Sequence[str], **options: Any) -> Any:
    """Return columns of a file, whole; options are those of CSV files."""
    return open_disk(path, **options).files[0].whole(names)
