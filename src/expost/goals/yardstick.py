"""The yardstick of a target of numbers: its mean and spread, released before a search begins.

*Released*: the mean of y and the mean of y² with Laplace noise at levels ε₁ < … < ε_k, one after the other on one path
of gradual release (`expost.noise.laplace`), until the mean is known to a part of the spread. *Neighbours*: one row
replaced, |y| ≤ 1. *Sensitivity*: 9/4 of 1/n in ℓ₁, both together. *Proof.* With a = |y − y′| and b = |y + y′| the two
move by (a + ab)/n, and a + b ≤ 2, so by at most a(3 − a)/n, which is largest at a = 3/2. ∎ *Theorem (privacy)*: what
decides how far the path is walked reads what was released, so it costs the last level alone. It is booked in
differences, each only if it fits. *Theorem (accuracy)*: at one level the noise on one of the two exceeds z scales with
probability e^(−z); so both are within ``off`` at every level at once but for the probability stated, and the variance,
mean of y² less the square of the mean, between the bounds that follow from that.

*The variance by itself* (:meth:`YardstickPath.further`). A bound on a model's shortfall shows nothing of R² unless the
variance is known to be large (theory D2), which tests do not need. So a search that ends without meeting its goal
measures it, for a small part of what it has paid. *Released*: the mean of (y − m)² with discrete Laplace noise, m the
mean that was released. *Sensitivity*: (1 + |m|)²/n. *Theorem*: that mean is Var(y) + (ȳ − m)², so Var(y) is at most
that and at least that less off². Noise exceeds z scales and a unit on one side or the other with probability e^(−z): an
equal part of the probability stated goes to this and to each level of the path.

*Where costs add in squares* (`Account.in_squares`) noise is Gaussian: at a level ε the average of releases that cost
ρ = ε²/2 together, each of what its level adds (`expost.mechanisms.moments.gaussian_moments`, exact noise, averaged).
*Sensitivity*: 2/n in ℓ₂. *Proof.* The square is at most a²(1 + (2 − a)²)/n², whose slope 2a(2a² − 6a + 5) is positive,
so it is largest at a = 2. ∎ k rows replaced together move it k times as far, for k²ρ. *Accuracy*: an average is within
two units of a normal of that variance, which exceeds z deviations with probability 2Φ(−z). A part of ρ is what is left
for it at most, where pure noise has a part of ε.

What it buys: predictions are moved into an interval around the mean instead of the whole of the target's bounds, and a
squared error is compared with (y − mean)² row by row. One row then moves the shortfall of a goal far less
(:func:`reach`), so that a test costs a half to a fifth; steps, slopes and shrinkage of a search follow the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from expost.account.composition import Curve
from expost.noise.gaussian import deviations, discrete_gaussian
from expost.noise.laplace import Integers, LevelValue, NoisePath
from expost.noise.source import WordSource
from expost.numeric import Grid
from expost.release.scoring import ROOM

if TYPE_CHECKING:
    from expost.account.account import Account
    from expost.goals.measure import Judge

_FIRST = 20.0  # the first level is this many over n, for one row
_RATIO, _LEVELS = 1.5, 16
_MOST_OF_BUDGET = 0.2  # of the budget: more leaves too little for models and tests
_ENOUGH = 0.3  # the mean is known well enough within this part of the spread,
_PART = 0.2  # and the variance where noise is this part of it: a larger one may be nothing but noise
_SENSITIVITY, _EUCLIDEAN = 2.25, 2.0
_ROUNDING = 2.0**-48  # of means of n numbers in [−1, 1] that are exact sums, and of their squares


@dataclass(frozen=True)
class Yardstick:
    """A target's mean and spread as they were released, in units where targets lie in [−1, 1]; public.

    Attributes
    ----------
    mean, spread
        About the mean of the targets, and the root of their variance; not below what noise leaves uncertain.
    off
        The mean is off by no more, but for the failure probability it was released with.
    variance
        The target's variance lies between these, but for the same probability.
    """

    mean: float
    spread: float
    off: float
    variance: tuple[float, float] = (0.0, 1.0)

    def within(self, share: float) -> tuple[float, float]:
        """Return the interval that predictions are moved into, for a model that explains that share of the variance."""
        room = ROOM * math.sqrt(share) * self.spread
        return max(-1.0, self.mean - room), min(1.0, self.mean + room)


class YardstickPath:
    """The path that a yardstick is released on; private, and only what is read of it is paid for.

    When a search has ended the variance may be measured by itself (`further`).
    """

    def __init__(self, judge: Judge, account: Account, source: WordSource, failure_probability: float) -> None:
        self._judge, self._source = judge, source
        self._account, self._squares = account, account.in_squares
        grid = Grid.of((_EUCLIDEAN if self._squares else _SENSITIVITY) / judge.n, error_bound=2.0 * _ROUNDING)
        self._levels = [_FIRST / judge.n * _RATIO**k for k in range(_LEVELS)]
        mean, variance = judge.target_mean(), judge.target_variance()
        values = np.array([math.floor(part / grid.unit) for part in (mean, variance + mean * mean)])
        # more than for one number: two are rounded, each by less than a unit
        self._unit, self._units = grid.unit, grid.units + (2 if self._squares else 1)
        if self._squares:
            self._path: Iterator[LevelValue] = _averages(values, self._units, self._levels, source)
            self._tail, self._rounded = deviations(0.25 * failure_probability / _LEVELS), 5.0
        else:
            self._path = iter(NoisePath(values, self._units, self._levels, random_state=source))
            self._tail, self._rounded = math.log(2 * _LEVELS / failure_probability), 2.0
        self._alone = math.log(_LEVELS / failure_probability)  # scales of noise on the variance by itself
        self._paid = 0.0
        self._found: Yardstick | None = None

    def first(
        self, enough: Callable[[Yardstick, bool, float], bool] = lambda found, known, price: known
    ) -> Yardstick | None:
        """Go on until ``enough`` says so, of it, whether the mean is known to a part of the spread, and what the next
        level would cost; None if not even the first level may be taken.
        """
        account = self._account
        most = (
            math.sqrt(2.0 * _MOST_OF_BUDGET * account.room) / account.unit.rows
            if self._squares
            else _MOST_OF_BUDGET * account.worst_case
        )
        for level, following in pairwise(self._levels):
            if level > most or not account.fits(self._step(level)):
                break
            found = self._found = self._read(level)
            known = found.off <= _ENOUGH * found.spread and self._scale(level) <= _PART * found.spread**2
            if enough(found, known, self._step(following).most):
                break
        return self._found

    def further(
        self, least: float, affordable: Callable[[Curve], bool], pay: bool = True
    ) -> tuple[float, float] | None:
        """Return bounds on the variance as close as can be afforded; None if it would not be shown to be that large.

        Where they are not paid for they are what they will probably be.
        """
        known, account = self._found, self._account
        level = next((level for level in reversed(self._levels) if affordable(account.settled_step(level))), None)
        if known is None or level is None:
            return None
        grid = Grid.of((1.0 + abs(known.mean)) ** 2 / self._judge.n, error_bound=2.0 * _ROUNDING)
        margin = (self._alone / level * grid.units + 3.0) * grid.unit * (1.0 + 1e-9)

        def bounds(square: float) -> tuple[float, float]:
            return max(0.0, square - margin - known.off**2 - 1e-12), min(1.0, square + margin + 1e-12)

        likely = bounds(known.spread**2)
        if likely[0] < least or not pay:
            return None if likely[0] < least else likely
        account.book("probe", account.settled_step(level))
        square = self._judge.target_variance() + (self._judge.target_mean() - known.mean) ** 2
        counted = np.array([math.floor(square / grid.unit)])
        (noisy,) = NoisePath(counted, grid.units, [level], random_state=self._source)
        return bounds(int(noisy.values[0]) * grid.unit)

    def _scale(self, level: float) -> float:
        return self._units * self._unit / level

    def _off(self, level: float) -> float:
        return min(2.0, (self._tail * self._scale(level) + self._rounded * self._unit) * (1.0 + 1e-9))

    def _step(self, level: float) -> Curve:
        """Return what going on to a level costs."""
        if self._squares:
            rho = 0.5 * (level**2 - self._paid**2) * self._account.unit.rows**2
            return Curve.gaussian(rho * (1.0 + 1e-12))
        return self._account.pure_step(level, self._paid)

    def _read(self, level: float) -> Yardstick:
        """Book a level and read it."""
        self._account.book("probe", self._step(level))
        self._paid = level
        value = next(value for value in self._path if value.epsilon >= level)
        mean, square = (min(1.0, max(-1.0, int(part) * self._unit)) for part in value.values)
        spread = math.sqrt(min(1.0, max(square - mean * mean, self._scale(level))))
        off = self._off(level)
        return Yardstick(mean, spread, off, _variance(mean, square, off))


def _averages(values: Integers, units: int, levels: Sequence[float], source: WordSource) -> Iterator[LevelValue]:
    """Yield integers that one row moves by so many units in ℓ₂ with Gaussian noise, for ρ = ε²/2 at each level."""
    total, before = np.zeros(len(values)), 0.0
    for index, epsilon in enumerate(levels):
        weight = epsilon**2 - before**2
        noise = discrete_gaussian(units / math.sqrt(weight) * (1.0 + 1e-12), len(values), random_state=source)
        total, before = total + weight * (values + noise), epsilon
        yield LevelValue(index, epsilon, total / epsilon**2)


def _variance(mean: float, square: float, off: float) -> tuple[float, float]:
    """Return bounds on the variance where the mean, and that of squares, are off by no more.

    Examples
    --------
    >>> [round(bound, 4) for bound in _variance(0.2, 0.14, 0.01)]
    [0.0859, 0.1139]
    """
    least = square - off - (abs(mean) + off) ** 2
    most = square + off - max(0.0, abs(mean) - off) ** 2
    return max(0.0, least - 1e-12), min(1.0, most + 1e-12)


def reach(yardstick: Yardstick, within: tuple[float, float], weight: float) -> float:
    """Return n times what one row can move MSE − s·Var(y) by, s = ``weight`` in [0, 1), predictions moved ``within``.

    What is tested is V = mean f(y, u) + s·h(ȳ − m), m the released mean, f(y, u) = (y − u)² − s(y − m)² and h(d) =
    min(d², t²), t = ``off``. *Claim.* V moves by at most (max f − min f + 4st)/n, and is MSE − s·Var(y) where the mean
    is within t. *Proof.* Var(y) = mean (y − m)² − (ȳ − m)², which gives the second part. For the first, one term of the
    mean of f changes, ȳ moves by at most 2/n, and h has slope at most 2t. ∎ The range of f over |y| ≤ 1 and a ≤ u ≤ b:
    f is convex in u and in y, so largest at a corner. It is least at u = y if a ≤ y ≤ b, where it is −s(y − m)², least
    at an end; beyond an end e at u = e, where it is convex in y with its least value at y = e + s(e − m)/(1 − s), or at
    the nearest y that there is.

    Examples
    --------
    >>> narrow = Yardstick(mean=0.0, spread=0.1, off=0.03)
    >>> round(reach(narrow, narrow.within(0.5), 0.5), 2), round(reach(narrow, (-1.0, 1.0), 0.5), 2)
    (1.52, 4.06)
    """
    m, s = yardstick.mean, weight

    def f(y: float, u: float) -> float:
        return (y - u) ** 2 - s * (y - m) ** 2

    largest = max(f(y, u) for y in (-1.0, 1.0) for u in within)
    least = min(
        min(f(end, end), f(_nearest(end + s * (end - m) / (1.0 - s), side, end), end))
        for side, end in zip((-1.0, 1.0), within, strict=True)
    )
    return (largest - least + 4.0 * s * yardstick.off) * (1.0 + 1e-12)


def _nearest(y: float, side: float, end: float) -> float:
    """Return y moved between an end of the predictions and that of the targets."""
    return min(max(y, min(side, end)), max(side, end))
