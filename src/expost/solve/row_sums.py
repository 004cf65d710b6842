"""Sums over rows that are the same to the bit for every source, batch size, engine and number of workers.

*Predictions* are exact up to one rounding (:mod:`expost.numeric`), and φ of them is computed row by row, so
each row contributes the same bits wherever it is read. *Sums* are of integers:

- Slopes φ′, at most S = 2ˢ in size, are rounded to multiples of S·2⁻⁴⁴ and split, φ′ = (h·2²² + l)·S·2⁻⁴⁴ with |h| ≤
  2²² and |l| ≤ 2²¹. Rows are integers of at most 2²⁰, so a BLAS product over 2048 rows is at most 2⁵³ and exact in
  float64 in any order. Blocks are added as 64-bit integers and those as Python's. A mean of φ′x is then off by S·2⁻⁴⁵
  in ℓ₂ (‖x‖₂ ≤ 1) and one rounding.
- Second derivatives d are for Newton's method, which needs them close and not exact: z = √(d/C)·x is rounded to
  multiples of 2⁻²⁰, C a power of four with d ≤ C, and zᵀz summed as integers below 2⁴⁰ are. Of very many rows a sample
  will do; which rows are in it is a function of each row alone (:func:`expost.passes.engine.sampled`).
- Means of what goals test, at most m ≤ 2ᵏ a row, are sums of multiples of 2ᵏ⁻⁵¹: off by m·2⁻⁵¹ at most.

Equal rows that are worked on once (:mod:`expost.passes.engine`) count in blocks by their number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from expost.numeric import INFLATION, UNIT, AnyArray, FloatArray, Private, exact_parts, gamma, prediction_rounding
from expost.passes.engine import (
    GROUP,
    Engine,
    LocalEngine,
    Totals,
    blocks,
    distinct,
    folded,
    gram,
    predictions,
    sampled,
    scaled_rows,
    weighted,
    whole,
)
from expost.passes.first_pass import judged
from expost.solve.losses import Loss
from expost.table.rows import FRACTION_BITS, Batch, MemorySource, Rows, RowSource, declared, given_up, thinned

_LIMB = 22
_TERM_BITS = 51
_ODDS = 4.0  # standard deviations of a sample's size
_FEW = 1 << 14  # rows in a sample below which second derivatives are taken at all

#: A function of predictions and targets, elementwise, not negative; it has to be picklable.
Term = Callable[[FloatArray, FloatArray], FloatArray]


def slope_rounding(loss: Loss) -> float:
    """Return how far a slope is rounded at most."""
    return math.ldexp(1.0, _slope_exponent(loss) - 2 * _LIMB - 1)


def _slope_exponent(loss: Loss) -> int:
    return math.ceil(math.log2(loss.lipschitz(math.inf) * (1.0 + 1e-9)))


class BlockSums(ABC):
    """Sums over the blocks of a batch."""

    def __call__(self, batch: Batch) -> Totals:
        """Return the sums over a batch."""
        with np.errstate(all="ignore"):  # a warning that some rows cause would tell of them
            return folded((self._block(*block) for block in blocks(batch)), batch.shift)

    @abstractmethod
    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals: ...


@dataclass(frozen=True, eq=False)
class SlopeSums(BlockSums):
    """Σφ′x, and Σφ″xxᵀ if asked for, at the predictions of θ.

    Attributes
    ----------
    loss
        Which φ.
    parts
        θ, from :func:`~expost.numeric.exact_parts`.
    exponent
        s.
    sample
        Second derivatives are taken at about one row in 2^sample as well; nowhere if None.
    """

    loss: Loss
    parts: FloatArray
    exponent: int
    sample: int | None

    @property
    def effort(self) -> float:
        """What a cell costs, in units of a gradient's."""
        return 1.0 if self.sample is None else 1.0 + self.parts.shape[0] / 16 * 2.0**-self.sample

    def __call__(self, batch: Batch) -> Totals:
        """Return the sums of h·x and l·x, and of zzᵀ over how many rows."""
        if self.sample is not None:
            batch = thinned(batch)  # for a gradient alone that takes longer than it saves
        return super().__call__(batch)

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        u = predictions(x, self.parts)
        steps = self.loss.derivative(u, y) * 2.0 ** (2 * _LIMB - self.exponent)
        np.rint(steps, out=steps)
        most = 2.0 ** (2 * _LIMB)
        np.clip(steps, -most, most, out=steps)
        limbs = np.empty((2, len(steps)))
        np.rint(steps * 2.0**-_LIMB, out=limbs[0])
        np.subtract(steps, limbs[0] * 2.0**_LIMB, out=limbs[1])
        sums = weighted(x, limbs if counts is None else limbs * counts)
        return (sums,) if self.sample is None else (sums, *self._curvature(x, u, y, counts, self.sample))

    def _curvature(
        self, x: Any, u: FloatArray, y: FloatArray, counts: FloatArray | None, sample: int
    ) -> tuple[Any, int]:
        if sample:
            some = sampled(x, sample)
            x, u, y, counts = x[some], u[some], y[some], None if counts is None else counts[some]
        roots = np.sqrt(self.loss.second_derivative(u, y) / curvature_unit(self.loss))
        z = scaled_rows(x, roots)
        return gram(z, counts), len(y) if counts is None else int(counts.sum())


class Outcomes(NamedTuple):
    """How many rows are predicted positive and are, are not, predicted negative and are positive after all, are not."""

    hits: float
    false_alarms: float
    misses: float
    quiet: float


@dataclass(frozen=True, eq=False)
class OutcomeCount(BlockSums):
    """How many rows of each outcome θ, on its grid, has: predicted positive where xᵀθ > 0."""

    parts: FloatArray

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        kind = 2 * (predictions(x, self.parts) <= 0.0) + (y <= 0.0)
        return (np.bincount(kind, counts, minlength=4).astype(np.int64),)


@dataclass(frozen=True, eq=False)
class ScoreCount(BlockSums):
    """How many rows have a prediction above as many of the edges, none to all."""

    parts: FloatArray
    edges: FloatArray

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        above = np.searchsorted(self.edges, predictions(x, self.parts))
        return (np.bincount(above, counts, minlength=len(self.edges) + 1).astype(np.int64),)


@dataclass(frozen=True, eq=False)
class TermSum(BlockSums):
    """Σ of a term of predictions and targets, at most 2ᵏ, in units of 2ᵏ⁻⁵¹."""

    term: Term
    parts: FloatArray
    exponent: int

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        values = self.term(predictions(x, self.parts), y)
        steps = whole(np.rint(np.clip(values * 2.0**-self.exponent, 0.0, 1.0) * 2.0**_TERM_BITS))
        if counts is not None:
            return (int((steps * counts.astype(np.int64)).sum()),)
        return (sum(int(steps[start : start + GROUP].sum()) for start in range(0, len(steps), GROUP)),)  # below 2⁶²


def target_moments(batch: Batch) -> Totals:
    """Return Σy and Σy², in units of 2⁻²⁰ and 2⁻⁴⁰."""
    y = batch.y.astype(np.int64)
    times = 1 if batch.counts is None else batch.counts.astype(np.int64)
    weighted = y * times
    # in slices: 2¹⁰ rows, each at most 2¹¹ times 2⁴⁰, stay below 2⁶²
    squares = sum(int(weighted[i : i + 1024] @ y[i : i + 1024]) for i in range(0, len(y), 1024))
    return int(weighted.sum()) << batch.shift, squares << batch.shift


def curvature_unit(loss: Loss) -> float:
    """Return C, a power of four of at least the largest φ″."""
    return 4.0 ** math.ceil(math.log(loss.curvature, 4.0) - 1e-12)


class Slopes(NamedTuple):
    """mean φ′x and, if asked for, about mean φ″xxᵀ, of one row in 2^sample; private."""

    gradient: FloatArray
    curvature: FloatArray | None
    sample: int


class Passes(Private):
    """The sums that minimisers and goals ask for, over any source; private.

    Parameters
    ----------
    loss
        φ.
    source
        The rows.
    engine
        Who carries out passes; threads of this process by default.

    Examples
    --------
    >>> x, y = np.array([[2**20], [2**19]], np.int32), np.array([2**20, -(2**20)], np.int32)
    >>> from expost.solve.losses import LogisticLoss
    >>> passes = Passes.over(LogisticLoss(), Rows(x, y))
    >>> passes.slopes(np.zeros(1)).gradient  # the mean of −½ and ¼
    array([-0.125])
    >>> passes.errors(np.ones(1)), passes
    (1, Passes(n=2, p=1))
    """

    def __init__(self, loss: Loss, source: RowSource, engine: Engine | None = None) -> None:
        self.loss, self.source = loss, source
        self.engine: Engine = LocalEngine() if engine is None else engine
        self.n, self.p = source.n, source.p

    @classmethod
    def over(cls, loss: Loss, rows: Rows | RowSource, engine: Engine | None = None) -> Passes:
        """Return passes over rows, of which equal ones in memory are worked on once."""
        if isinstance(rows, RowSource):
            rows = judged(rows)
        if isinstance(rows, RowSource):
            return cls(loss, rows, rows.engine if engine is None else engine)
        x, y, counts = distinct(rows)
        kinds = rows if counts is None else Rows(given_up(np.ascontiguousarray(x)), given_up(y), **declared(rows))
        return cls(loss, MemorySource(kinds, counts, sparse=True), engine)

    def __repr__(self) -> str:
        return f"Passes(n={self.n}, p={self.p})"

    def with_loss(self, loss: Loss) -> Passes:
        """Return passes over the same rows for another loss."""
        return Passes(loss, self.source, self.engine)

    def slopes(self, theta: FloatArray, *, curvature: bool = False, sample: int = 0) -> Slopes:
        """Return the mean gradient of the loss, to within :func:`slope_rounding` and the rounding of predictions.

        Second derivatives, if asked for, are those of about one row in 2^sample.
        """
        exponent = _slope_exponent(self.loss)
        work = SlopeSums(self.loss, exact_parts(theta), exponent, sample if curvature else None)
        found = self.engine.total(self.source, work)
        whole = [(int(high) << _LIMB) + int(low) for high, low in zip(*found[0].tolist(), strict=True)]
        below = self.n << (2 * _LIMB + FRACTION_BITS - min(exponent, 0))
        gradient = np.array([(value << max(exponent, 0)) / below for value in whole], dtype=np.float64)
        if not curvature:
            return Slopes(gradient, None, 0)
        if sample and self._is_odd(found[2], sample):
            return self.slopes(theta, curvature=True)
        scale = curvature_unit(self.loss) * 2.0 ** (-2 * FRACTION_BITS) / found[2]
        return Slopes(gradient, np.asarray(found[1].astype(np.float64) * scale), sample)

    def _is_odd(self, count: int, sample: int) -> bool:
        """Whether a sample has few rows, or other numbers of them than chance would have: many rows are equal then.

        Equal rows are all in it or none is, so that where a few kinds are most of the rows it says little about others.
        """
        return count < _FEW or abs((count << sample) - self.n) > _ODDS * math.sqrt(self.n << sample)

    def outcomes(self, theta: FloatArray) -> Outcomes:
        """Return how many rows of each outcome θ has."""
        found = self.engine.total(self.source, OutcomeCount(exact_parts(theta)))[0]
        return Outcomes(*(int(count) for count in found))

    def errors(self, theta: FloatArray) -> int:
        """Return how many rows θ misclassifies."""
        found = self.outcomes(theta)
        return int(found.false_alarms + found.misses)

    @property
    def constant(self) -> tuple[int, int] | None:
        """Which column every row has the same in, and its value in units of 2⁻²⁰, if rows declare one; public."""
        return self.source.constant

    def above(self, theta: FloatArray, edges: FloatArray) -> AnyArray:
        """Return how many rows have a prediction above each edge, of edges that ascend."""
        found = self.engine.total(self.source, ScoreCount(exact_parts(theta), edges))[0]
        return np.asarray(np.cumsum(found[::-1])[::-1][1:])

    def mean_of(self, term: Term, theta: FloatArray, most: float = 8.0) -> float:
        """Return the mean of a term in [0, most], off by most·2⁻⁵¹ beside its evaluation."""
        exponent = math.ceil(math.log2(most))
        found = int(self.engine.total(self.source, TermSum(term, exact_parts(theta), exponent))[0])
        return math.ldexp(found / (self.n << _TERM_BITS), exponent)

    def target_mean(self) -> float:
        """Return ȳ, rounded once."""
        return float(self.engine.total(self.source, target_moments)[0] / (self.n << FRACTION_BITS))

    def target_variance(self) -> float:
        """Return the mean of (y − ȳ)², rounded once."""
        first, second = self.engine.total(self.source, target_moments)
        return float((self.n * second - first * first) / (self.n * self.n << 2 * FRACTION_BITS))


@dataclass(frozen=True)
class PassErrors:
    """How far a gradient is off that one pass over the rows finds; public.

    Attributes
    ----------
    loss, p, lam
        What it is the gradient of.
    """

    loss: Loss
    p: int
    lam: float

    def gradient_error_bound(self, radius: float) -> float:
        """Return a bound on the error of a computed ‖∇L(θ)‖₂ over ‖θ‖₂ ≤ radius: predictions, slopes, sums, penalty."""
        slope = self.loss.lipschitz(math.inf)
        slopes = slope_rounding(self.loss) + self.loss.EVALUATION_ULPS * UNIT * slope
        predicted = self.loss.curvature * prediction_rounding(self.p) * radius
        return INFLATION * (slopes + predicted + gamma(self.p + 16) * (slope + self.lam * radius))


class PassGradients(Private):
    """Gradients of L = mean φ + (λ/2)‖θ‖², each by one pass over the rows; private."""

    def __init__(self, passes: Passes, lam: float) -> None:
        self._passes, self._lam = passes, lam
        self._errors = PassErrors(passes.loss, passes.p, lam)

    def gradient_error_bound(self, radius: float) -> float:
        """Return the public bound."""
        return self._errors.gradient_error_bound(radius)

    def gradient_norm(self, theta: FloatArray) -> float:
        """Return ‖∇L(θ)‖₂."""
        return float(np.linalg.norm(self._passes.slopes(theta).gradient + self._lam * theta))

    def gradient_lower(self, theta: FloatArray) -> float:
        """Return what is known without a pass."""
        return 0.0
