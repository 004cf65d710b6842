"""What the tests of the search share: generated rows, sources that count, and exact laws of the noisy test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from scipy import stats

from expost import Preparation, Problem, Rows, SeededSource, Sums, sums_of
from expost.search import above_threshold
from expost.search.above_threshold import AboveThreshold
from expost.search.calibration import Calibration

# Every statistical test may fail with at most this probability although nothing is wrong.
RARE = 1e-6

N = 20_000


def at_most_by_chance(trials: int, probability: float) -> int:
    """Return the largest count that does not refute "the probability is at most this", one-sided at level RARE."""
    return int(stats.binom.isf(RARE, trials, probability))


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
    return sums_of(regression_rows(n, p))


class CountingSource:
    """A seeded source that counts the words it has handed out."""

    secure = False

    def __init__(self, seed: int = 0) -> None:
        self._source = SeededSource(seed)
        self.drawn = 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        return self._source.words(count)


class UnitQuery:
    """A query whose hypotheses are their own errors, whole numbers of units."""

    grid = 1.0

    def __init__(self, sensitivity: int = 1) -> None:
        self.sensitivity = sensitivity
        self.limits: list[int] = []

    def at_most(self, hypothesis: int, limit: int) -> bool:
        self.limits.append(limit)
        return hypothesis <= limit


def calibration(kind: str, e1: float, e2: float, *, threshold: float, sensitivity: int = 1) -> Calibration:
    return Calibration("by hand", kind, threshold, e1, e2, float(sensitivity))


# --- the exact law of AboveThreshold on a grid ---------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyTest:
    """The law a test really follows, read off the implementation by replacing its samplers.

    ``threshold_rate`` is None where no noise is added. Noise enters with the given signs.
    """

    base: int
    kind: str
    sensitivity: int
    threshold_rate: float | None
    query_rate: float
    threshold_sign: int = 1
    query_sign: int = 1

    def without_threshold_noise(self) -> NoisyTest:
        return replace(self, threshold_rate=None)

    def with_query_rate(self, factor: float) -> NoisyTest:
        return replace(self, query_rate=self.query_rate * factor)

    def stopping(self, errors: np.ndarray) -> np.ndarray:
        """Return P(stop at t) for t = 0 … T−1 and P(never), for each row of ``errors``; summed exactly over ρ."""
        shift, weight = self._threshold_noise()
        survive = np.ones((len(errors), len(shift)))
        out = []
        for column in errors.T:
            accept = self._above(column[:, None] - self.base - shift[None, :])
            out.append((weight * survive * accept).sum(axis=1))
            survive *= self._above(column[:, None] - self.base - shift[None, :], reject=True)
        return np.column_stack([*out, (weight * survive).sum(axis=1)])

    def _threshold_noise(self) -> tuple[np.ndarray, np.ndarray]:
        if self.threshold_rate is None:
            return np.zeros(1, dtype=int), np.ones(1)
        q, reach = np.exp(-self.threshold_rate), int(60 / self.threshold_rate) + 420
        if self.kind == "exponential":
            k = np.arange(reach)
            return self.threshold_sign * k, q**k * (1 - q)
        k = np.arange(-reach, reach + 1)
        return k, q ** np.abs(k) * (1 - q) / (1 + q)

    def _above(self, x: np.ndarray, *, reject: bool = False) -> np.ndarray:
        """Return P(ν ≥ x) of the query noise, or P(ν < x), each without cancellation."""
        q = np.exp(-self.query_rate)
        if self.kind == "exponential":
            assert self.query_sign == 1
            tail = np.where(x <= 0, 1.0, q ** np.maximum(x, 0))
            return np.where(x <= 0, 0.0, -np.expm1(-self.query_rate * np.maximum(x, 0))) if reject else tail
        upper = q ** np.maximum(x, 0) / (1 + q)  # P(ν ≥ x) for x ≥ 1
        lower = q ** np.maximum(1 - x, 0) / (1 + q)  # P(ν < x) for x ≤ 0
        accept = np.where(x >= 1, upper, 1 - lower)
        return np.where(x >= 1, 1 - upper, lower) if reject else accept


def law_of(
    monkeypatch, build: Callable[[UnitQuery], AboveThreshold], sensitivity: int, n_tests: int = 3
) -> tuple[NoisyTest, AboveThreshold]:
    """Read the law of a rule off its own calls of the samplers, and the signs off the limits they lead to."""
    calls: list[tuple[str, float, int, int]] = []
    values: list[int] = []

    def sampler(kind):
        def draw(epsilon, delta, size, *, random_state=None):
            calls.append((kind, epsilon, delta, size))
            return np.full(size, values[len(calls) - 1])

        return draw

    def limits(on_threshold: int, on_queries: int) -> tuple[list[int], AboveThreshold]:
        calls.clear()
        values[:] = [on_threshold, on_queries]
        query = UnitQuery(sensitivity)
        rule = build(query)
        for _ in range(n_tests):
            rule.accepts(10**9)
        return query.limits, rule

    with monkeypatch.context() as patch:
        patch.setattr(above_threshold, "discrete_laplace", sampler("laplace"))
        patch.setattr(above_threshold, "geometric", sampler("exponential"))
        (base, *rest), rule = limits(0, 0)
        assert rest == [base] * (n_tests - 1)
        (moved, *_), _ = limits(1, 0)
        shifted, _ = limits(0, 1)
        (kind, e1, d1, size1), (kind2, e2, d2, size2) = calls
    assert (size1, size2, kind2) == (1, n_tests, kind)
    assert shifted == [base + 1] * n_tests
    return NoisyTest(base, kind, sensitivity, e1 / d1, e2 / d2, moved - base), rule


def worst_losses(law: NoisyTest, offsets: tuple[int, ...] = (-40, -8, 0, 3, 25), n_tests: int = 3):
    """Return the largest log ratio of P(stop at t), over t, and of P(never), over a grid of neighbouring sequences."""
    errors = law.base + np.array(list(product(offsets, repeat=n_tests)))
    own, stop, never = np.log(law.stopping(errors)), [], []
    for change in product((-1, 0, 1), repeat=n_tests):
        ratio = own - np.log(law.stopping(errors + law.sensitivity * np.array(change)))
        stop.append(ratio[:, :-1].max())
        never.append(ratio[:, -1].max())
    return max(stop), max(never)


def losses_between(law: NoisyTest, errors: list[int], change: list[int]) -> tuple[float, float]:
    """Return (stopping at the last, never) for given errors, relative to the threshold; changes in units of Δ."""
    own = law.base + np.array([errors])
    ratio = np.log(law.stopping(own)) - np.log(law.stopping(own + law.sensitivity * np.array(change)))
    return float(ratio[0, -2]), float(ratio[0, -1])


def ridge_rows(n, p, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) / p * scale
    y = np.clip(X @ rng.normal(size=p) * 2 + 0.3 + 0.1 * rng.normal(size=n), -1, 1)
    recipe = Preparation(bounds=None, feature_bound=1.0, target=(-1.0, 1.0), intercept_weight=0.5, n_columns=p)
    return recipe.prepare_regression(X, y)


def logistic_rows(n, p, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p)) / p
    labels = X @ np.arange(1, p + 1) + 0.05 * rng.logistic(size=n) > 0
    recipe = Preparation(bounds=None, feature_bound=1.0, target=None, intercept_weight=0.0, n_columns=p)
    return recipe.prepare_classification(X, labels, (False, True))


def problem_of(rows, loss, alpha, lam=0.02, gamma=0.1):
    return Problem.of(loss, n=rows.n, p=rows.p, regularization=lam, excess_risk=alpha, failure_probability=gamma)
