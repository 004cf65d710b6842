"""Goals about squared errors: a mean squared error of at most this, or R², the share of the variance explained.

Neighbours differ in one replaced row; the number of rows n is public. Rows satisfy ‖x‖₁ ≤ 1 (hence ‖x‖₂ ≤ 1) and
|y| ≤ 1. A result is rounded up by a few units in the last place: a sensitivity may err on the large side only.

*Mean squared error.* For a released θ it moves by at most (1 + ‖θ‖_∞)²/n (:func:`mean_square_sensitivity`).

Where a search has released the target's mean and spread, sensitivities are smaller: `expost.goals.yardstick`.

*R².* The shortfall is MSE − (1 − r)·Var(y), predictions and targets in [−1, 1]. With m the mean of the other
targets, Var(y) = const + ((n − 1)/n²)(y − m)², so a row contributes (1/n)(y − ŷ)² − (1 − r)((n − 1)/n²)(y − m)², whose
range over y and ŷ is 4/n + (1 − r)((n − 1)/n²)·4|m| and is largest at |m| = 1: D = (4/n)(1 + (1 − r)(n − 1)/n). ∎
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from expost import defaults
from expost.goals.goal import ChainSettings, Further, TestedGoal
from expost.goals.measure import (
    Judge,
    MeanSquare,
    Measure,
    clipped_mean_square,
    clipped_mean_square_error,
)
from expost.goals.yardstick import Yardstick, YardstickPath, reach
from expost.numeric import check, round_up
from expost.shown import down, up
from expost.solve.losses import HuberLoss
from expost.solve.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from expost.account.account import Account
    from expost.account.composition import Curve
    from expost.noise.source import WordSource
    from expost.search.request import Plan, Request


def mean_square_sensitivity(largest_coordinate: float, n: int) -> float:
    """Return (1 + m)²/n, the sensitivity of mean (y − xᵀθ)² for a fixed θ with ‖θ‖_∞ ≤ m.

    Proof. ‖x‖₁ ≤ 1 and |y| ≤ 1 put a row's term between 0 and (1 + m)², and both are attained: x = ±e_j. ∎

    Examples
    --------
    >>> round(mean_square_sensitivity(1.0, 100), 12)
    0.04
    """
    check(n=n, radius=largest_coordinate)
    return round_up((1.0 + largest_coordinate) ** 2 / n)


_SHARE = 0.1  # of γ, for the yardstick: a half for the mean, a half for the variance
#: Slope of Huber's loss, how far models are apart, and a first level, for a target of spread 1.
_SLOPE, _REACH, _START = 0.58, 1.75, 1.25
_GUESS = 0.32  # the spread before it is known; it only steers
_WORTH_SHOWING = 0.25  # of an R² that was asked for: to show less of a model is not worth more ε


class SquaredErrorGoal(TestedGoal):
    """Goals whose shortfall is MSE − s·Var(y) − a, predictions moved into an interval: s and a are the goal's own."""

    labels = "real"
    yardstick: Yardstick | None

    @property
    def weight(self) -> float:
        """Which part s of the target's variance is allowed."""
        return 0.0

    @property
    def allowed(self) -> float:
        """Which mean square a is allowed, whatever the variance."""
        return 0.0

    def measured(
        self, judge: Judge, account: Account, source: WordSource, failure_probability: float, first: float
    ) -> tuple[Self, float, Further | None]:
        """Release the target's mean and spread, which tests are far less sensitive with."""
        path = YardstickPath(judge, account, source, _SHARE * failure_probability)

        def enough(found: Yardstick, known: bool, price: float) -> bool:
            goal: Self = dataclasses.replace(self, yardstick=found)  # type: ignore[type-var]
            return bool(goal.idle) or (known and (goal._told or price > first))

        goal: Self = dataclasses.replace(self, yardstick=path.first(enough))  # type: ignore[type-var]

        def further(bound: float, affordable: Callable[[Curve], bool], pay: bool) -> dict[str, Any]:
            return goal.shown(bound) or goal._shown_further(bound, path, affordable, pay)

        return goal, (1.0 - _SHARE) * failure_probability, further

    @property
    def _told(self) -> bool:
        """Whether the mean probably does not do: to know that for sure would be dear, and spare nothing."""
        return self.spread**2 > (self.idle_variance() or 0.0)

    @property
    def said(self) -> dict[str, Any]:
        """The mean, if it is shown to meet the goal: about a released mean m squares have Var(y) + (ȳ − m)²."""
        most = self.idle_variance() or 0.0
        if self.yardstick is None or self.yardstick.variance[1] + self.yardstick.off**2 > most:
            return {}
        place = f"{50.0 * (1.0 + self.yardstick.mean):.4g} % of the way from the target's lower bound to its upper one"
        return {"constant": "mean", "yardstick": f"always predicting about the mean, {place}, meets the goal"}

    def _shown_further(
        self, bound: float, path: YardstickPath, affordable: Callable[[Curve], bool], pay: bool
    ) -> dict[str, Any]:
        """Return what a bound shows, with more known of the variance if that helps and can be afforded."""
        return {}

    @property
    def spread(self) -> float:
        """The target's, as it was released, or a guess."""
        return _GUESS if self.yardstick is None else self.yardstick.spread

    @property
    def within(self) -> tuple[float, float] | None:
        """The interval around the released mean that predictions of a model as good as asked for need."""
        if self.yardstick is None:
            return None
        left = self.weight + self.allowed / self.spread**2
        return self.yardstick.within(min(1.0, max(0.1, 1.0 - left)))

    @property
    def missed_by_constant(self) -> float:
        """What the mean leaves unexplained, less what may be."""
        return math.inf if self.yardstick is None else (1.0 - self.weight) * self.spread**2 - self.allowed

    def at_best(self) -> Self:
        """Return the goal for a target that fills its bounds, or is spread so that a test is the least sensitive."""
        if self.yardstick is not None:
            return self
        spreads = [(m, math.sqrt(1.0 - m * m) * 2.0**-k) for m in (0.0, 0.5, 0.8) for k in range(6)]
        goals = [dataclasses.replace(self, yardstick=Yardstick(m, spread, 0.0)) for m, spread in spreads]  # type: ignore[type-var]
        return min(goals, key=lambda goal: goal.shortfall_sensitivity(1) / goal.room)

    def chain(self) -> ChainSettings:
        """Minimise Huber's loss, its slope a part of the target's spread: what a row adds to a gradient is bounded."""
        slope = 2.0 ** (round(4.0 * math.log2(min(0.5, _SLOPE * self.spread))) / 4.0)
        steer = self.weight * self.spread**2 + self.allowed
        reach, start = _REACH * self.spread, _START / self.spread
        return ChainSettings(HuberLoss(slope), reach=reach, start=start, steer=steer, spread=self.spread)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return 4(1 + s(n − 1)/n)/n, rounded up, or less with a yardstick (:func:`~expost.goals.yardstick.reach`)."""
        if self.yardstick is None or self.within is None:
            return math.nextafter((4.0 / n) * (1.0 + self.weight * (n - 1) / n) * (1 + 1e-15), math.inf)
        return math.nextafter(reach(self.yardstick, self.within, self.weight) / n, math.inf)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return MSE − s·Var(y) − a, or what a yardstick's test has instead where its mean is far off."""
        square = clipped_mean_square(objective, theta, self.within or (-1.0, 1.0))
        if not self.weight:
            return square - self.allowed
        found = square - self.weight * objective.target_variance() - self.allowed
        if self.yardstick is None:
            return found
        beyond = (objective.target_mean() - self.yardstick.mean) ** 2 - self.yardstick.off**2
        return found - self.weight * max(0.0, beyond)

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of the means."""
        return 2.0 * clipped_mean_square_error(n, p, theta) + 2.0**-48


_TYPICAL_COORDINATE = 2.0  # only settles how the margin is stated; any value is sound


@dataclass(frozen=True)
class MeanSquaredError(SquaredErrorGoal):
    """The mean of (y − prediction)² is at most this, predictions moved into the target's bounds.

    Parameters
    ----------
    at_most : float
        For estimators and the command line in squared units of the target passed to them; for
        :func:`expost.search.run_search`, whose rows are scaled, in units where targets lie in [−1, 1].
    margin : float, default=0.2
        Read where it is for :class:`ErrorRate`, and as it is there for a θ whose largest coordinate is 2; in proportion
        to (1 + ‖θ‖_∞)² for others.

    Examples
    --------
    >>> MeanSquaredError(4.0)
    MeanSquaredError(at_most=4.0, margin=0.2)
    """

    at_most: float
    margin: float = defaults.MARGIN
    yardstick: Yardstick | None = field(default=None, repr=False)

    name = "mean squared error"
    end: ClassVar[float] = math.inf
    power = 2
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.1, 0.05, 0.02, 0.01)

    def statement(self) -> str:
        """Say what is promised about the mean square."""
        return (
            f"the mean squared error of the clipped, rounded rows is at most {up(self.at_most, 6)}, targets in [-1, 1] "
            f"and predictions moved into the target's bounds, or what of them the release states"
        )

    def plan(self, request: Request) -> Plan:
        """Refuse what costs nothing to meet; else test."""
        if self.at_most >= 1:
            raise ValueError(
                "always predicting the middle of the target bounds has a mean squared error of at most one half-width "
                "of those bounds squared, whatever the rows: ask for less, or use that model, which costs nothing"
            )
        return super().plan(request)

    def typical(self, problem: Problem) -> float:
        """Return the sensitivity for a largest coordinate of 2."""
        return mean_square_sensitivity(min(problem.radius, _TYPICAL_COORDINATE), problem.n)

    def measure(self, generator: Any) -> Measure:
        """Return the mean squared error, by sums or by rows."""
        return SquaredErrorMean(generator.mean_square(), generator.problem.n)

    @property
    def allowed(self) -> float:
        """The number itself."""
        return self.at_most

    @property
    def each_row(self) -> tuple[float, float]:
        """Nothing, and the square of how far a target may be from a prediction."""
        lower, upper = self.within or (-1.0, 1.0)
        return 0.0, max(1.0 + upper, 1.0 - lower) ** 2 * (1.0 + 1e-12)

    @property
    def constant(self) -> float:
        """The target's variance, as it was released; the middle of the bounds has at most 1."""
        return 1.0 if self.yardstick is None else self.spread**2

    def idle_variance(self) -> float:
        """Return what is allowed: the mean has the target's variance."""
        return self.at_most

    @property
    def as_risk(self) -> float:
        """The risk of regression is half the mean square."""
        return self.at_most / 2

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what was charged."""
        return ("mean squared error: rounded to a public grid, floating-point error bounded and charged",)


class SquaredErrorMean(Measure):
    """Mean squared error; sensitivity (1 + ‖θ‖_∞)²/n."""

    def __init__(self, mean_square: MeanSquare, n: int) -> None:
        self._mean_square, self._n = mean_square, n

    def value(self, hypothesis: Any) -> float:
        """Return the mean squared error."""
        return self._mean_square.value(np.asarray(hypothesis, dtype=np.float64))

    def sensitivity(self, hypothesis: Any) -> float:
        """Return (1 + ‖θ‖_∞)²/n."""
        return mean_square_sensitivity(_largest(hypothesis), self._n)

    def error_bound(self, hypothesis: Any) -> float:
        """Return the bound for ‖θ‖_∞."""
        return self._mean_square.error_bound(_largest(hypothesis))


def _largest(theta: Any) -> float:
    return float(np.abs(np.asarray(theta, dtype=np.float64)).max(initial=0.0))


@dataclass(frozen=True)
class R2(SquaredErrorGoal):
    """At least this share of the target's variance is explained, by predictions moved into the target's bounds.

    Parameters
    ----------
    at_least : float
        r, strictly between 0 and 1. Zero is what always predicting the mean reaches.

    Examples
    --------
    >>> R2(0.8)
    R2(at_least=0.8)
    """

    at_least: float
    yardstick: Yardstick | None = field(default=None, repr=False)

    name = "R²"
    sign = "≥"
    chained_only = True
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95)
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return (
            f"R² of the bounded, rounded rows is at least {down(self.at_least, 6)}, predictions moved into the "
            f"target's bounds, or what of them the release states"
        )

    @property
    def weight(self) -> float:
        """The part that may be left unexplained."""
        return 1.0 - self.at_least

    @property
    def constant(self) -> float:
        """Zero: the mean explains nothing, whatever the target."""
        return 0.0

    def shown(self, bound: float) -> dict[str, float]:
        """Return what is shown of R²: MSE − (1 − r)·Var(y) ≤ b says R² ≥ r − b/Var(y) (theory D2).

        Where b ≤ 0 that takes Var(y) at most, which is never above 1; where b > 0 it takes Var(y) at least, and shows
        nothing without a yardstick that says more than zero.
        """
        least, most = (0.0, 1.0) if self.yardstick is None else self.yardstick.variance
        if bound <= 0.0:
            return {"shown": min(1.0, max(self.at_least, (self.at_least - bound / most) * (1.0 - 1e-12)))}
        number = self.at_least - bound / least * (1.0 + 1e-12) if least else 0.0
        return {"shown": number} if number > self.constant else {}

    def _shown_further(
        self, bound: float, path: YardstickPath, affordable: Callable[[Curve], bool], pay: bool
    ) -> dict[str, Any]:
        """Go on along the path of the variance, where that probably shows R² to be a part of what was asked for."""
        if self.yardstick is None:
            return {}
        found = path.further(bound / ((1.0 - _WORTH_SHOWING) * self.at_least), affordable, pay)
        if found is None:
            return {}
        return dataclasses.replace(self, yardstick=dataclasses.replace(self.yardstick, variance=found)).shown(bound)

    def reached(self, shortfall: float, objective: Judge) -> float:
        """Return R²."""
        return self.at_least - shortfall / objective.target_variance()

    def number_at(self, reach: float) -> float:
        """Return the share that is explained where that part of what may be left is."""
        return 1.0 - reach * (1.0 - self.at_least)

    def idle_variance(self) -> float:
        """Return zero: the mean explains nothing, whatever the target."""
        return 0.0
