"""The yardstick of labels: how many rows are positive, released before a search begins.

*Released*: the number of positive rows with discrete Laplace noise at levels ε₁ < … < ε_k, one after the other on one
path of gradual release (`expost.noise.laplace`), until it is known well enough for its use. *Neighbours*: one row
replaced. *Sensitivity*: 1. *Theorem (privacy)*: what decides how far the path is walked reads what was released, so it
costs the last level alone. It is booked in differences, each only if it fits. What the first level of a search
costs with its test, which is compared with that, is public. *Theorem (accuracy)*: at one level the
noise is beyond z scales and a unit with probability at most e^(−z); so the share is within ``off`` at every level at
once but for the probability stated.

What it buys: what a constant reaches is said beside every promise. A goal that a constant is shown to meet is not
searched for: a model that keeps it need not be better than the constant, which needs no rows. Telling the two apart may
take any ε where they are close, so once the share is known well enough for the search, the walk goes on only while its
next level adds less than the first level of the search and its test, which it may save. Where one label is rare,
a search knows how large a shortfall is large, and which share of the rows to call positive (`expost.goals.counts`).
What a constant misses is a convex function of the share, so it is largest at an end of where the share lies.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from expost.goals.goal import TestedGoal
from expost.noise.laplace import NoisePath
from expost.noise.source import WordSource
from expost.shown import up

if TYPE_CHECKING:
    from expost.account.account import Account
    from expost.goals.measure import Judge

_FIRST = 20.0  # the first level is this many over n, for one row
_RATIO, _LEVELS = 1.5, 16
_SHARE = 0.1  # of γ: what is said of a constant is false with at most this part of it
_MOST = 0.1  # of the budget, at most
# the scale of noise, as a part of the rarer label's share, at which the share is worth stating; is known well enough to
# cut by it; and at which more would buy nothing
_STATED, _KNOWN, _FINEST = 0.05, 0.02, 0.01
_LIKELY = math.log(10.0)  # Laplace noise is within so many scales in nine runs of ten


@dataclass(frozen=True)
class BaseRate:
    """The share of positive rows as it was released; public.

    Attributes
    ----------
    rate
        About the share, above 0 and below 1.
    off
        It is off by no more, but for the failure probability it was released with.
    scale
        The scale of its noise, as a part of the rarer label's share.
    """

    rate: float
    off: float
    scale: float

    @property
    def ends(self) -> tuple[float, float]:
        """Between which the share lies."""
        return max(0.0, self.rate - self.off), min(1.0, self.rate + self.off)

    def about(self, number: Callable[[float], float]) -> str:
        """Return a number that follows from the share, with what it is off by at most in nine runs of ten.

        Examples
        --------
        >>> BaseRate(0.046, 0.006, 0.017).about(lambda share: share)
        '0.046 ± 0.002'
        """
        value, likely = number(self.rate), min(self.off, _LIKELY * self.scale * min(self.rate, 1.0 - self.rate))
        off = max(abs(number(min(max(self.rate + side * likely, 0.0), 1.0)) - value) for side in (-1, 1))
        if not off:
            return f"{value:.3g}"
        digits = max(0, -math.floor(math.log10(off)))
        return f"{value:.{digits}f} ± {up(off, 1)}"


def release_base_rate(
    judge: Judge,
    account: Account,
    source: WordSource,
    failure_probability: float,
    enough: Callable[[BaseRate, float], bool],
) -> BaseRate | None:
    """Release the share of positive rows, booked as a probe; None if not even its first level may be taken.

    It is walked until ``enough`` says so, of it and of what going on to the next level would cost, or the share is
    known to a small part of itself, or it would cost too much.
    """
    n = judge.n
    positive = round(n * (1.0 + judge.target_mean()) / 2.0)  # targets are −1 and 1: exact
    tail = math.log(_LEVELS / failure_probability)
    found, paid = None, 0.0
    levels = [_FIRST / n * _RATIO**k for k in range(_LEVELS)]
    for following, level in zip(
        [*levels[1:], math.inf], NoisePath(np.array([positive]), 1, levels, random_state=source), strict=True
    ):
        step = account.pure_step(level.epsilon, paid)
        dear = account.unit.charge(level.epsilon) > _MOST * account.limit
        if (found is not None and dear) or not account.fits(step):
            break
        account.book("probe", step)
        paid, scale = level.epsilon, 1.0 / level.epsilon
        least = min(1.0, n / 2.0)  # a single row may be either
        rate = min(max(float(level.values[0]), least), n - least) / n
        found = BaseRate(rate, (tail * scale + 2.0) / n, scale / (n * min(rate, 1.0 - rate)))
        if enough(found, account.pure_step(following, paid).most) or found.scale <= _FINEST:
            break
    return found


class LabelGoal(TestedGoal):
    """A goal about labels, which is compared with constants; a new one says what those reach."""

    labels = "binary"
    base: BaseRate | None
    #: Whether a search for it uses the base rate itself, and needs it closely.
    cuts = False

    @abstractmethod
    def constants(self, share: float, base: BaseRate) -> dict[str, float]:
        """Return how far constants, by name, miss the goal where that share is positive: convex in the share.

        They may follow what was released.
        """

    @abstractmethod
    def compared(self, constant: str, base: BaseRate) -> str:
        """Say what a constant reaches."""

    def rival(self, base: BaseRate) -> str:
        """Return the constant to compare with: the nearest to the goal."""
        misses = self.constants(base.rate, base)
        return min(misses, key=lambda name: misses[name])

    def _met_by(self, base: BaseRate) -> str:
        """Return a constant that is shown to meet the goal, and not just emptily; empty if none is."""
        ends = [self.constants(end, base) for end in base.ends]
        return next((name for name in ends[0] if max(found[name] for found in ends) < 0.0), "")

    def _enough(self, base: BaseRate, dear: bool) -> bool:
        """Say whether a constant is shown to do, or the share is known, and that none does or it is dear to tell."""
        if self._met_by(base):
            return True
        known = base.scale <= (_KNOWN if self.cuts else _STATED)
        return known and (dear or self._missed_by_all(base))

    def _missed_by_all(self, base: BaseRate) -> bool:
        return all(found > 0.0 for end in base.ends for found in self.constants(end, base).values())

    def measured(
        self, judge: Judge, account: Account, source: WordSource, failure_probability: float, first: float
    ) -> tuple[Self, float]:
        """Release the base rate, as far as it takes to know where to cut, and whether a constant would do."""

        def enough(base: BaseRate, price: float) -> bool:
            return self._enough(base, price > first)

        found = release_base_rate(judge, account, source, _SHARE * failure_probability, enough)
        left = (1.0 - _SHARE) * failure_probability
        return dataclasses.replace(self, base=found), left  # type: ignore[type-var]

    @property
    def said(self) -> dict[str, Any]:
        """The base rate, what a constant reaches, and which one meets the goal, if one is shown to."""
        if self.base is None:
            return {}
        constant = self._met_by(self.base)
        return {
            "base_rate": self.base.rate,
            "base_rate_off": self.base.off,
            "yardstick": self.compared(constant or self.rival(self.base), self.base),
            **({"constant": constant} if constant else {}),
        }

    @property
    def idle(self) -> str:
        """Say that a constant meets the goal."""
        return "a constant meets the goal, so no model was searched for" if "constant" in self.said else ""
