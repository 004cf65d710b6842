"""Goals that count rows by their labels: what is counted, an error rate first of all, and what constants reach.

A row that is predicted positive and is, is a hit; one that is not, a false alarm; a positive one that is predicted
negative, a miss; others are quiet. A goal says what it counts, and among which rows, as weights of the four outcomes:
an error rate ≤ e counts false alarms and misses among all rows, recall ≥ r hits among hits and misses (others are in
`expost.goals.outcomes`). Such a quotient is at most v just where the mean over all rows of what they add, g = counted −
v·among, is at most 0, and at least v where that of g = v·among − counted is (theory D2). No number of positive rows is
needed for it, and none is released.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. *Sensitivity*: outcomes are counted exactly for a θ on its
public grid (`expost.goals.measure`; rounding to it is post-processing), and a row's g changes from one outcome's to
another's: by at most D, the largest less the smallest, so the mean by D/n. Shortfalls are stated in units of D:
mean(g)/D moves by at most 1/n. For an error rate D is 1.

*Several at once* are one test: the largest of their shortfalls is at most 0 where all are, and moves by at most 1/n,
since each does (|max aᵢ − max bᵢ| ≤ max|aᵢ − bᵢ|).

*Met emptily*: where no row is positive any model has a shortfall of exactly 0 in recall, and so has precision where no
row is called positive; such a model passes with a test's failure probability only. Recall alone is met by calling all
rows positive and specificity by calling none, whatever the rows: they are refused, and nothing is spent.

*What is shown* (:meth:`CountedGoal.shown`). A search knows of the shares o of the four outcomes that they are at least
0 and add up to 1; that the positive ones, π, lie between π₋ and π₊, the ends of the released base rate; and that
mean(g) ≤ b·D for each goal, b the bound that tests have shown. *Theorem*: but for γ in all, each number is at least the
least that outcomes with all of this have (at most the largest, for goals of at most so much). That is taken at an edge
of the cone that these inequalities make of o and its multiples. *Proof.* All tests' bounds hold but for what is left of
γ once the base rate had its part, and π₋ ≤ π ≤ π₊ but for that part: over all levels of its path at once, so whatever
decided where the walk ended. So o is in the cone. That lies among vectors without negative parts, so each of its points
is a sum of points on its edges, where three inequalities that are independent hold as equalities. Let v be the least
counted/among of edges with something among: counted ≥ v·among on these, and on the others too, where there is nothing
to count either; both sides add up, so it holds for o. ∎ It is computed in whole numbers, and rounded outwards once.
Recall ≥ r alone is r − b/π₋ for a b above 0, and beside precision ≥ q (unless π₊ says more) both are the part
1 − b/(rπ₋) of what was asked. Where π may be 0 nothing is shown of a share of positive rows, and where precision stands
alone nothing of precision. What is shown of a model that misses is stated only where no coin, always yes and always no
among them, has as much of everything at the released base rate.

*Where to cut* (:meth:`CountedGoal.placed`). A model of a rare label calls hardly a row positive. So the cut-off is
found, and the constant moved by it: it is where about A of the rows lie above it, A a function of the goal and the
released base rate (:func:`alarms`). *Released*: the best of K public cut-offs by the score −|number of rows above it −
A·n|, with geometric noise of scale 2k/ε on every score, k rows being replaced together. *Sensitivity*: k for every
score. *Theorem*: ε-private, no more than the choice being released. *Proof.* Fix the noise of all cut-offs but one. It
is chosen where its noise is at least some whole number t, ties being broken by place. On a neighbour its score may be k
lower and all others k higher, so t moves by 2k at most, and P(G ≥ t + 2k) ≥ e^(−ε)·P(G ≥ t) for a geometric variable. ∎
It reads no label: a row that is counted on the wrong side costs the goal as much as the label is likely there, a few
hundredths of a row where it is rare, so this costs far less than choosing by the shortfall itself would. Public weights
of labels in the loss (`expost.solve.losses.WeightedLoss`) mostly bring nothing beside it: they move the cut-off, which
is found anyway, and leave less signal (`benchmarks/results/class_weights.md`). What is counted has no weights.

**The base rate**: how many rows are positive, released before a search begins.

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
a search knows how large a shortfall is large, and which share of the rows to call positive.
What a constant misses is a convex function of the share, so it is largest at an end of where the share lies.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from expost import defaults
from expost.account.composition import Curve
from expost.goals.goal import ChainSettings, Further, TestedGoal
from expost.goals.measure import Judge, Measure
from expost.noise.laplace import NoisePath, geometric
from expost.noise.source import WordSource
from expost.numeric import UNITS, FloatArray, Grid, bisected, to_grid
from expost.release.release import Promise
from expost.shown import down, joined, up
from expost.solve.losses import CappedLogisticLoss
from expost.solve.problem import Problem
from expost.table.rows import ONE

if TYPE_CHECKING:
    from expost.account.account import Account
    from expost.search.request import Plan, Request


_FIRST = 20.0  # the first level is this many over n, for one row
_RATIO, _LEVELS = 1.5, 16
_SHARE = 0.1  # of γ: what is said of a constant is false with at most this part of it
_MOST_OF_BUDGET = 0.1  # of the budget, at most
# the scale of noise, as a part of the rarer label's share, at which the share is worth stating; is known well enough to
# cut by it; and at which more would buy nothing
_STATED, _KNOWN, _FINEST = 0.05, 0.02, 0.01
_LIKELY = math.log(10.0)  # Laplace noise of one level is within so many scales in nine runs of ten


#: What a row counts for if it is a hit, a false alarm, a miss or a quiet one.
Weights = tuple[float, float, float, float]
EVERY: Weights = (1.0, 1.0, 1.0, 1.0)


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
        """Return a number that follows from the share, with what it is off by at most in about nine runs of ten.

        That is measured, not proved, as ``off`` is: what was released said at which level to stop. Where a constant
        nearly meets the goal the share was off by more in up to one run of seven before it was rounded, outwards, and
        in up to one of nine as it is shown.

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


class BaseRatePath:
    """The path that a base rate is released on; private, and only what is read of it is paid for.

    A search that has ended may go on along it (`further`): that costs what the level come to adds, and is covered by
    the failure probability of the first levels, which is about all of them.
    """

    def __init__(self, judge: Judge, account: Account, source: WordSource, failure_probability: float) -> None:
        self._account, self._n, self._paid = account, judge.n, 0.0
        positive = round(judge.n * (1.0 + judge.target_mean()) / 2.0)  # targets are −1 and 1: exact
        self._tail = math.log(_LEVELS / failure_probability)
        self._levels = [_FIRST / judge.n * _RATIO**k for k in range(_LEVELS)]
        self._path = iter(NoisePath(np.array([positive]), 1, self._levels, random_state=source))
        self.found: BaseRate | None = None

    def first(self, enough: Callable[[BaseRate, float], bool]) -> BaseRate | None:
        """Release the share of positive rows, booked as a probe; None if not even its first level may be taken.

        It is walked until ``enough`` says so, of it and of what going on to the next level would cost, or the share is
        known to a small part of itself, or it would cost too much.
        """
        account = self._account
        for level, following in zip(self._levels, [*self._levels[1:], math.inf], strict=True):
            dear = account.unit.charge(level) > _MOST_OF_BUDGET * account.limit
            if (self.found is not None and dear) or not account.fits(self._step(level)):
                break
            self.found = self._read(level)
            if enough(self.found, self._step(following).most) or self.found.scale <= _FINEST:
                break
        return self.found

    def further(self, affordable: Callable[[Curve], bool], pay: bool) -> BaseRate | None:
        """Return the share from as far along as can be afforded, or what it probably will be if it is not paid for."""
        for level in reversed(self._levels):
            if self.found is not None and level > self._paid and affordable(self._step(level)):
                return self._read(level) if pay else self._as_known(level, self.found.rate)
        return None

    def _step(self, level: float) -> Curve:
        """Return what going on to a level costs."""
        return self._account.pure_step(level, self._paid)

    def _read(self, level: float) -> BaseRate:
        """Book a level and read it."""
        self._account.book("probe", self._step(level))
        value = next(value for value in self._path if value.epsilon >= level)
        self._paid, least = value.epsilon, min(1.0, self._n / 2.0)  # a single row may be either
        return self._as_known(level, min(max(float(value.values[0]), least), self._n - least) / self._n)

    def _as_known(self, level: float, rate: float) -> BaseRate:
        return BaseRate(rate, (self._tail / level + 2.0) / self._n, 1.0 / (level * self._n * min(rate, 1.0 - rate)))


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

    @property
    def missed_by_constant(self) -> float:
        """How far the constant to compare with misses the goal at the released share, less the noise of that."""
        if self.base is None:
            return math.inf
        rate, rival = self.base.rate, self.rival(self.base)
        off = min(1.0, self.base.scale) * min(rate, 1.0 - rate)
        return min(self.constants(share, self.base)[rival] for share in (rate - off, rate, rate + off))

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
    ) -> tuple[Self, float, Further | None]:
        """Release the base rate, as far as it takes to know where to cut, and whether a constant would do."""

        def enough(base: BaseRate, price: float) -> bool:
            return self._enough(base, price > first)

        path = BaseRatePath(judge, account, source, _SHARE * failure_probability)
        goal: Self = dataclasses.replace(self, base=path.first(enough))  # type: ignore[type-var]

        def further(bound: float, affordable: Callable[[Curve], bool], pay: bool) -> dict[str, Any]:
            if shown := goal.shown(bound):
                return shown
            known = path.further(affordable, False)
            if known is None or not (shown := dataclasses.replace(goal, base=known).shown(bound)) or not pay:  # type: ignore[type-var]
                return {} if known is None else shown
            better: Self = dataclasses.replace(goal, base=path.further(affordable, True))  # type: ignore[type-var]
            return {**better.said, **shown} if (shown := better.shown(bound)) else {}

        return goal, (1.0 - _SHARE) * failure_probability, further if self.cuts else None

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


class Added(NamedTuple):
    """What a row of each outcome adds, in the order of `expost.solve.row_sums.Outcomes`."""

    hit: float
    false_alarm: float
    miss: float
    quiet: float

    @property
    def reach(self) -> float:
        """D, the largest less the smallest."""
        return max(self) - min(self)

    def mean(self, outcomes: Any, n: float) -> float:
        """Return mean(g)/D of n rows."""
        return math.fsum(g * count for g, count in zip(self, outcomes, strict=True)) / (n * self.reach)


_START, _REACH = 5.0, 5.0
_RARER = 0.6  # a first level has as much less noise as this power of how much rarer than a half a label is
_CUTS = 1024  # cut-offs, evenly over all predictions there can be: few rows lie between two
_CUT_PART = 0.05  # of what a test may cost, for finding one
_OF_SPARE = 1.0 / 3.0  # of what a perfect model has to spare, a model that will do is taken to have
_HALVINGS = 40


class CountedGoal(LabelGoal):
    """A goal about outcomes of rows; a new one states what it counts, of what, and its number."""

    counted: ClassVar[Weights]
    among: ClassVar[Weights] = EVERY
    chained_only = True
    cuts = True
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def adds(self, number: float) -> Added:
        """Return what a row of each outcome adds where that number is asked for."""
        least, pairs = self.sign == "≥", zip(self.counted, self.among, strict=True)
        return Added(*(number * of - part if least else part - number * of for part, of in pairs))

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        return self.adds(self.number)

    @property
    def each(self) -> tuple[CountedGoal, ...]:
        """The goals that it is made of."""
        return (self,)

    @property
    def lines(self) -> tuple[Added, ...]:
        """What rows add, for each of them."""
        return tuple(goal.added for goal in self.each)

    @property
    def full(self) -> float:
        """What its number stays below."""
        return 1.0

    def at_odds(self, times: float) -> Self:
        """Return the goal with the odds of its number so many times stricter; looser where that is below 1.

        Examples
        --------
        >>> from expost import Precision, Recall
        >>> (Recall(0.8) & Precision(0.5)).at_odds(2.0)
        Recall(at_least=0.8889) & Precision(at_least=0.6667)
        """
        if times == 1.0:
            return self
        odds = self.number / (self.full - self.number) * (times if self.sign == "≥" else 1.0 / times)
        exactly = self.full * odds / (1.0 + odds)
        shown = float(f"{exactly:.4g}")  # as people state it
        return dataclasses.replace(self, **{self._fields()[0]: shown if shown < self.full else exactly})  # type: ignore[type-var]

    def __and__(self, other: object) -> AllOf:
        if not isinstance(other, CountedGoal):
            raise TypeError(
                f"{type(other).__name__} is not tested together with others; goals about outcomes of rows are, such "
                f"as Recall(0.8) & Precision(0.4)"
            )
        return AllOf((*self.each, *other.each))

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the largest mean(g)/D; θ is on the grid of `to_grid`."""
        outcomes = objective.outcomes(theta)
        return max(line.mean(outcomes, objective.n) for line in self.lines)

    def shortfall_sensitivity(self, n: int) -> float:
        """Return 1/n."""
        return 1.0 / n

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of g, which is at most D in size, of a sum and a quotient: counts are exact."""
        return 2.0**-49

    def exact(self) -> tuple[str, ...]:
        """Say that counts are exact."""
        return ("outcomes of rows, θ being on a public grid",)

    def shown(self, bound: float) -> dict[str, Any]:
        """Return what a bound shows of each number, with the base rate that was released (see the module).

        Nothing where the goal is not met and a coin does as well.
        """
        if math.isinf(bound):
            return {}
        low, high = map(Fraction, (0.0, 1.0) if self.base is None else self.base.ends)
        limits = [tuple(Fraction(bound) * Fraction(line.reach) - Fraction(g) for g in line) for line in self.lines]
        share = (1 - low, -low, 1 - low, -low), (high - 1, high, high - 1, high)
        edges = _edges([*_OUTCOMES, *share, *limits])
        found = {goal: number for goal in self.each if (number := goal._shown_by(edges, bound)) is not None}
        if bound > 0.0 and self._coin_has([goal.adds(number) for goal, number in found.items()]):
            return {}
        return {"shown": self._as_stated({str(goal.name): number for goal, number in found.items()})}

    def _shown_by(self, edges: Sequence[tuple[int, ...]], bound: float) -> float | None:
        """Return the least, or largest, number of all edges, or the number that was asked for if that is met."""
        least = self.sign == "≥"
        of, among = (tuple(map(Fraction, weights)) for weights in (self.counted, self.among))
        numbers = [sum(map(mul, of, edge)) / whole for edge in edges if (whole := sum(map(mul, among, edge)))]
        number = (min if least else max)(numbers, default=None)
        shown = None if number is None else math.nextafter(float(number), -math.inf if least else math.inf)
        if bound <= 0.0:
            return self.number if shown is None else (max if least else min)(self.number, shown)
        return None if shown is None or (least and shown <= 0.0) else shown

    def _as_stated(self, numbers: dict[str, float]) -> float | dict[str, float]:
        """Return what a release states: the number, or of several goals the number of each."""
        return numbers[str(self.name)]

    @property
    def untold(self) -> str:
        """Say that one of the labels may not occur at all, for what is known."""
        low, high = (0.0, 1.0) if self.base is None else self.base.ends
        if low > 0.0 and high < 1.0:
            return ""
        told = f"the share of positive rows is known too roughly, as between {down(low, 2)} and {up(high, 2)}"
        return f"{told}, for a bound on what part of some rows is right"

    def _coin_has(self, lines: Sequence[Added]) -> bool:
        """Whether saying yes with some probability, whatever the row, has numbers as good at the released base rate."""
        said = always(0.5 if self.base is None else self.base.rate)
        low, high = 0.0, 1.0
        for line in lines:
            no, yes = (line.mean(said[name], 1.0) for name in ("no", "yes"))
            if no > 0.0 and yes > 0.0:
                return False
            if no > 0.0:
                low = max(low, no / (no - yes))
            elif yes > 0.0:
                high = min(high, no / (no - yes))
        return low <= high

    def spare(self, rate: float) -> float:
        """Return what a perfect model has to spare at a base rate, in units of shortfalls."""
        return -max(line.mean((rate, 0.0, 0.0, 1.0 - rate), 1.0) for line in self.lines)

    def chain(self) -> ChainSettings:
        """Minimise what an error rate does: the cut-off is found afterwards."""
        if self.base is None:  # whatever the rows are
            steer, start = max(self.spare(k / 100) for k in range(1, 100)), _START
        else:
            rare = min(self.base.rate, 1.0 - self.base.rate)
            steer, start = self.spare(self.base.rate), _START * (0.5 / rare) ** _RARER
        return ChainSettings(CappedLogisticLoss(0.5), reach=_REACH, start=start, steer=max(steer, 1e-9))

    def constants(self, share: float, base: BaseRate) -> dict[str, float]:
        """Return what always saying no misses, and always saying yes: of linear functions of the share the largest."""
        return {name: max(line.mean(said, 1.0) for line in self.lines) for name, said in always(share).items()}

    def rival(self, base: BaseRate) -> str:
        """Return the constant to compare with: where positive rows are to be found, the one that finds them all."""
        return "yes" if any(goal.sign == "≥" for goal in self.each) else super().rival(base)

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return the goal's own number for shares of outcomes; 0 where there is nothing to count."""
        shares = (hits, false_alarms, misses, quiet)
        part = sum(weight * share for weight, share in zip(self.counted, shares, strict=True))
        of = 1.0 if self.among == EVERY else sum(w * share for w, share in zip(self.among, shares, strict=True))
        return part / of if of else 0.0

    def compared(self, constant: str, base: BaseRate) -> str:
        """Say what a constant reaches."""
        numbers = [
            f"{goal.name} {base.about(lambda share, goal=goal: goal.number_of(*always(share)[constant]))}"  # type: ignore[misc]
            for goal in self.each
        ]
        return f"always saying {constant} has {joined(numbers)}"

    @property
    def cut_part(self) -> float:
        """Nothing where the goal is not about cutting."""
        return _CUT_PART if self.cuts else 0.0

    def placed(
        self, model: FloatArray, judge: Any, account: Account, source: WordSource, most: float, in_squares: bool = False
    ) -> FloatArray:
        """Return the model with its constant moved to a cut-off, which costs a part of what its test may.

        Where the goal is not about cutting, models are made to be cut where they are.
        """
        if not self.cuts:
            return model
        # a pure ε adds ε²/2 where costs add in squares
        epsilon = math.sqrt(2.0 * _CUT_PART * most) if in_squares else _CUT_PART * most
        length = float(np.linalg.norm(model))
        step = Curve.pure(epsilon)
        if judge.constant is None or self.base is None or not length or not account.fits(step):
            return model
        account.book("generation" if account.held_out else "test", step)  # it reads rows that are fitted
        edges = length * np.linspace(-1.0, 1.0, _CUTS)
        wanted = round(alarms(self.lines, self.base.rate) * judge.n)
        scores = [-abs(int(count) - wanted) for count in judge.above(model, edges)]
        best = noisy_best(scores, epsilon, account.unit.rows if account.delta else 1, source)
        column, value = judge.constant
        moved = np.array(model, dtype=np.float64)
        moved[column] -= float(edges[best]) * (ONE / value)
        return to_grid(moved, float(np.abs(moved).max()), norm="l2")

    # synthetic tables

    def number_at(self, reach: float) -> float | None:
        """Return nothing: several models that miss as much differ in it."""
        return None

    def missed(self, u: FloatArray, y: FloatArray, weights: FloatArray) -> float:
        """Return the shortfall at the best cut-off: it is found in a search."""
        order = np.argsort(-u, kind="stable")
        positive = np.where(y > 0, weights, 0.0)[order]
        hits, false = np.cumsum(positive), np.cumsum(weights[order] - positive)
        last = np.append(np.diff(u[order]) < 0, True)  # rows that are alike are called alike
        hits, false = np.append(0.0, hits[last]), np.append(0.0, false[last])
        return float(_worst(self.lines, hits, false, hits[-1], hits[-1] + false[-1]).min())


_OUTCOMES = tuple(tuple(int(i == j) for j in range(4)) for i in range(4))


def _edges(forms: Sequence[Sequence[Any]]) -> list[tuple[int, ...]]:
    """Return a vector along each edge of the cone where all linear forms of four numbers, those among them, are ≥ 0.

    Examples
    --------
    >>> sorted(_edges([*_OUTCOMES, (1, -1, 0, 0)]))  # the first is no less than the second
    [(0, 0, 0, 1), (0, 0, 1, 0), (1, 0, 0, 0), (1, 1, 0, 0)]
    """
    whole = [[int(part * math.lcm(*(Fraction(each).denominator for each in form))) for part in form] for form in forms]
    found = {_direction(_normal(three)) for three in combinations(whole, 3)}
    both = [tuple(sign * part for part in edge) for edge in found if any(edge) for sign in (1, -1)]
    return [edge for edge in both if all(sum(map(mul, form, edge)) >= 0 for form in whole)]


def _direction(vector: Sequence[int]) -> tuple[int, ...]:
    """Return the shortest whole vector in that direction."""
    return tuple(part // (math.gcd(*vector) or 1) for part in vector)


def _normal(three: Sequence[Sequence[int]]) -> list[int]:
    """Return what is orthogonal to three vectors of four numbers; 0 if they depend on each other."""
    found = []
    for k in range(4):
        (a, b, c), (d, e, f), (g, h, i) = ([*vector[:k], *vector[k + 1 :]] for vector in three)
        found.append((-1) ** k * (a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)))
    return found


def always(rate: float) -> dict[str, tuple[float, float, float, float]]:
    """Return the outcomes of always saying no, and of always saying yes, where that share of the rows is positive."""
    return {"no": (0.0, 0.0, rate, 1.0 - rate), "yes": (rate, 1.0 - rate, 0.0, 0.0)}


def noisy_best(scores: Sequence[int], epsilon: float, sensitivity: int, source: WordSource) -> int:
    """Return which of the scores is best with geometric noise on each, the first of equal ones.

    Each score moves by at most ``sensitivity`` between neighbours; the choice costs ε (see the module).

    Examples
    --------
    >>> from expost.noise.source import SeededSource
    >>> noisy_best([0, 900, 3], 1.0, 1, SeededSource(0))
    1
    """
    noise = geometric(epsilon, 2 * sensitivity, len(scores), random_state=source)
    return max(range(len(scores)), key=lambda k: scores[k] + int(noise[k]))


def _worst(lines: tuple[Added, ...], hits: Any, false: Any, positive: float, n: float = 1.0) -> Any:
    """Return the largest mean(g)/D, elementwise."""
    outcomes = (hits, false, positive - hits, n - positive - false)
    found = [sum(g * part for g, part in zip(line, outcomes, strict=True)) / (n * line.reach) for line in lines]
    return np.max(np.broadcast_arrays(*found), axis=0)


@lru_cache(maxsize=64)
def alarms(lines: tuple[Added, ...], rate: float) -> float:
    """Return A, the share of rows to call positive at a base rate: a public function, and any is sound.

    Of two normal distributions of scores, one for each label, that are so far apart that the best cut-off leaves a
    third of what a perfect model has to spare, it is the share above that cut-off. For recall ≥ r and precision ≥ q
    that is r·rate/q, where both have as much to spare, whatever the distributions are.

    Examples
    --------
    >>> from expost import Precision, Recall
    >>> lines = (Recall(0.7) & Precision(0.15)).lines
    >>> round(alarms(lines, 0.046), 3), round(0.7 * 0.046 / 0.15, 3)
    (0.215, 0.215)
    """
    cuts = np.linspace(-6.0, 12.0, 3601)
    spare = -float(_worst(lines, rate, 0.0, rate))

    def best(apart: float) -> tuple[float, float]:
        hits, false = rate * ndtr(apart - cuts), (1.0 - rate) * ndtr(-cuts)
        found = _worst(lines, hits, false, rate)
        place = int(np.argmin(found))
        return float(found[place]), float(hits[place] + false[place])

    _, enough = bisected(lambda apart: best(apart)[0] > -_OF_SPARE * spare, 0.0, 6.0, _HALVINGS)
    return best(enough)[1]


@dataclass(frozen=True)
class ErrorRate(CountedGoal):
    """At most this share of the rows is misclassified.

    Parameters
    ----------
    at_most : float
        The share, strictly between 0 and 1. A row is predicted positive where xᵀθ > 0, as ``predict`` does; a row
        with xᵀθ = 0 (every column at the middle of its bounds, say) is predicted negative.
    margin : float, default=0.2
        Read only where a λ is stated, or another option of the gradual release of one λ
        (:mod:`expost.search.gradual`): part of ``at_most`` that the test's noise may take up. A model within
        (1 − margin)·at_most is likely to pass then, and the test costs in proportion to 1/margin. Fits of tables, and
        all others that go in levels, take no notice of it: how close their tests look follows from what they see.

    Examples
    --------
    >>> ErrorRate(0.05)
    ErrorRate(at_most=0.05, margin=0.2)
    """

    at_most: float
    margin: float = defaults.MARGIN
    base: BaseRate | None = field(default=None, repr=False)

    name = "error rate"
    counted = (0.0, 1.0, 1.0, 0.0)
    chained_only = False
    cuts = False
    methods = TestedGoal.methods
    counts = True
    each_row = (0.0, 1.0)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return (
            f"the share of clipped, rounded rows misclassified is at most {up(self.at_most, 6)} (a tie counts as the "
            f"first class)"
        )

    def measure(self, generator: Any) -> Measure:
        """Return the share of misclassified rows."""
        return ErrorShare(generator.risk.objective)

    def hypothesis(self, generator: Any) -> Callable[[Any], Any]:
        """Round hypotheses to the grid on which predictions are exact."""
        radius = generator.problem.radius
        return lambda values: to_grid(np.asarray(generator.hypothesis(values)), radius)

    def chain(self) -> ChainSettings:
        """Minimise the logistic loss with its slope capped: as good for an error rate, at half the sensitivity."""
        return ChainSettings(CappedLogisticLoss(0.5), reach=_REACH, start=_START, steer=self.at_most)

    shown, untold = TestedGoal.shown, TestedGoal.untold
    missed, number_at = TestedGoal.missed, TestedGoal.number_at

    @property
    def constant(self) -> float:
        """The rarer label's share, or one half: one of the two labels is at least as common as that."""
        return 0.5 if self.base is None else min(self.base.rate, 1.0 - self.base.rate)

    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return the share of errors less what is allowed; θ is on the grid of `to_grid`."""
        return objective.errors(theta) / objective.n - self.at_most

    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return the rounding of a quotient and a difference: counts are exact."""
        return 2.0**-51

    def exact(self) -> tuple[str, ...]:
        """Say that counts are exact."""
        return ("misclassified rows, θ being on a public grid",)


class ErrorShare(Measure):
    """Share of misclassified rows: an exact count, so the sensitivity is 1/n and nothing is added to it."""

    def __init__(self, objective: Judge) -> None:
        self._objective = objective

    def value(self, hypothesis: Any) -> float:
        """Return the share."""
        return self._objective.errors(np.asarray(hypothesis)) / self._objective.n

    def sensitivity(self, hypothesis: Any = None) -> float:
        """Return 1/n."""
        return 1.0 / self._objective.n

    def grid(self, hypothesis: Any) -> Grid:
        """Return 1/n in UNITS parts: counts need no rounding, so none is charged."""
        return Grid(1.0 / (self._objective.n * UNITS), UNITS)

    def fine_grid(self, hypothesis: Any) -> Grid:
        """Return the same: only on that grid are limits multiples of a count."""
        return self.grid(hypothesis)

    def at_most(self, hypothesis: Any, limit: int, unit: float) -> bool:
        """Compare counts, each UNITS units."""
        return limit >= 0 and self._objective.errors(np.asarray(hypothesis)) * UNITS <= limit


@dataclass(frozen=True, repr=False)
class AllOf(CountedGoal):
    """Several goals at once, as one test; written ``Recall(0.8) & Precision(0.4)``.

    Parameters
    ----------
    goals : tuple of goals
        Each about outcomes of rows, no two of one kind.
    """

    goals: tuple[CountedGoal, ...]
    base: BaseRate | None = None

    def __post_init__(self) -> None:
        if len({type(goal) for goal in self.goals}) < len(self.goals):
            raise ValueError("several goals at once must be of different kinds, such as Recall(0.8) & Precision(0.4)")

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.goals))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of all."""
        return joined([str(goal.name) for goal in self.goals])

    @property
    def each(self) -> tuple[CountedGoal, ...]:
        """The goals."""
        return self.goals

    def at_odds(self, times: float) -> AllOf:
        """Return each of them so many times stricter."""
        return AllOf(tuple(goal.at_odds(times) for goal in self.goals))

    @property
    def value(self) -> dict[str, float]:
        """The number of each."""
        return {str(goal.name): goal.number for goal in self.goals}

    @property
    def costs(self) -> dict[str, float] | None:
        """What errors cost, if one of them is about that."""
        return next((goal.costs for goal in self.goals if goal.costs), None)

    @property
    def option(self) -> str:
        """How the command line states them."""
        return " ".join(goal.option for goal in self.goals)

    @property
    def words(self) -> str:
        """The goals in words."""
        return joined([goal.words for goal in self.goals])

    def statement(self) -> str:
        """Say what is promised about each."""
        return "; and ".join(goal.statement() for goal in self.goals)

    def _as_stated(self, numbers: dict[str, float]) -> dict[str, float]:
        return numbers

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about all numbers."""
        return Promise(self.statement(), goal=self.name, goals=self.value, costs=self.costs)

    def plan(self, request: Request) -> Plan:
        """Test all at once."""
        return request.tested(self)
