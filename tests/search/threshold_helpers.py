"""The exact law of the noisy test, read off the implementation, and a measure that keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from expost.goals.measure import Measure
from expost.numeric import Grid
from expost.search import above_threshold
from expost.search.above_threshold import AboveThreshold, Calibration


class UnitMeasure(Measure):
    """A measure whose hypotheses are their own values, whole numbers of units."""

    def __init__(self, sensitivity: int = 1) -> None:
        self.uniform = Grid(1.0, sensitivity)
        self.limits: list[int] = []

    def value(self, hypothesis: int) -> float:
        return float(hypothesis)

    def sensitivity(self, hypothesis: Any = None) -> float:
        return self.uniform.effective_sensitivity

    def at_most(self, hypothesis: int, limit: int, unit: float) -> bool:
        self.limits.append(limit)
        return super().at_most(hypothesis, limit, unit)


class OwnUnitMeasure(UnitMeasure):
    """The same without one sensitivity for all hypotheses; needs UNITS replaced by as few."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.uniform = None
        self._sensitivity = units - 1.0  # so that a unit, which leaves one for rounding, is 1

    def sensitivity(self, hypothesis: Any = None) -> float:
        return self._sensitivity


def calibration(kind: str, e1: float, e2: float, *, threshold: float, sensitivity: int = 1) -> Calibration:
    return Calibration("by hand", kind, threshold, e1, e2, float(sensitivity))


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
    monkeypatch,
    build: Callable[[UnitMeasure], AboveThreshold],
    sensitivity: int,
    n_tests: int = 3,
    kind_of_measure: type[UnitMeasure] = UnitMeasure,
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
        measure = kind_of_measure(sensitivity)
        rule = build(measure)
        for _ in range(n_tests):
            rule.accepts(10**9)
        return measure.limits, rule

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
