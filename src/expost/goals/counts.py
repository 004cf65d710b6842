"""Goals that are sums over rows: recall, precision, F₁, specificity, a cost of errors, and several of them as one.

A row that is predicted positive and is, is a hit; one that is not, a false alarm; a positive one that is predicted
negative, a miss; others are quiet. A goal says what a row of each outcome adds, g, so that it is met where the mean of
g over all rows is at most 0 (theory D2):

| goal | hit | false alarm | miss | quiet |
|---|---|---|---|---|
| recall ≥ r | r − 1 | 0 | r | 0 |
| precision ≥ q | q − 1 | q | 0 | 0 |
| F₁ ≥ f | 2f − 2 | f | f | 0 |
| specificity ≥ s | 0 | s | 0 | s − 1 |
| mean cost ≤ c | −c | a − c | b − c | −c |

*Proof*, of precision: Σg = q·(hits + false alarms) − hits ≤ 0. The others alike; F₁ is 2h/(2h + a + m) of h hits, a
false alarms and m misses. ∎ No number of positive rows is needed, and none is released for it.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. *Sensitivity*: outcomes are counted exactly for a θ on its
public grid, and a row's g changes from one entry of its line to another: by at most D, the largest less the smallest,
so the mean by D/n. Shortfalls are stated in units of D: mean(g)/D moves by at most 1/n.

*Several at once* are one test: the largest of their shortfalls is at most 0 where all are, and moves by at most 1/n,
since each does (|max aᵢ − max bᵢ| ≤ max|aᵢ − bᵢ|).

*Met emptily*: where no row is positive any model has a shortfall of exactly 0 in recall, and so has precision where no
row is called positive; such a model passes with a test's failure probability only. Recall alone is met by calling all
rows positive and specificity by calling none, whatever the rows: they are refused before anything is looked at.

*Where to cut* (:meth:`CountedGoal.placed`). A model of a rare label calls hardly a row positive. So the cut-off is
found, and the constant moved by it: it is where about A of the rows lie above it, A a function of the goal and the
released base rate (:func:`alarms`). *Released*: the best of K public cut-offs by the score −|number of rows above it −
A·n|, with geometric noise of scale 2k/ε on every score, k rows being replaced together. *Sensitivity*: k for every
score. *Theorem*: ε-private, no more than the choice being released. *Proof.* Fix the noise of all cut-offs but one. It
is chosen where its noise is at least some whole number t, ties being broken by place. On a neighbour its score may be k
lower and all others k higher, so t moves by 2k at most, and P(G ≥ t + 2k) ≥ e^(−ε)·P(G ≥ t) for a geometric variable. ∎
It reads no label: a row that is counted on the wrong side costs the goal as much as the label is likely there, a few
hundredths of a row where it is rare, so this costs far less than choosing by the shortfall itself would. Weights of
classes in the loss were tried beside it and bring nothing: they move the cut-off, which is found anyway, and add noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from expost import validation
from expost.account.composition import Curve
from expost.goals.base_rate import BaseRate, LabelGoal
from expost.goals.goal import ChainSettings
from expost.goals.measure import Judge
from expost.noise.laplace import geometric
from expost.numeric import FloatArray, to_grid
from expost.release.release import Promise
from expost.shown import down, exact, up
from expost.solve.losses import CappedLogisticLoss
from expost.solve.problem import Problem
from expost.table.rows import ONE

if TYPE_CHECKING:
    from expost.account.account import Account
    from expost.noise.source import WordSource
    from expost.search.request import Plan, Request


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
_ROOM = 1.0 / 3.0  # of what a perfect model has to spare, a model that will do is taken to have
_HALVINGS = 40


class CountedGoal(LabelGoal):
    """A goal about outcomes of rows; a new one states what a row of each adds, and its number."""

    chained_only = True
    cuts = True
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        raise NotImplementedError

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

    def shown(self, bound: float) -> dict[str, float]:
        """Return nothing: a shortfall above 0 says nothing about a share of rows whose number nobody knows."""
        return {}

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
        return {name: max(line.mean(said, 1.0) for line in self.lines) for name, said in _constant(share).items()}

    def rival(self, base: BaseRate) -> str:
        """Return the constant to compare with: where positive rows are to be found, the one that finds them all."""
        return "yes" if any(goal.sign == "≥" for goal in self.each) else super().rival(base)

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return the goal's own number for shares of outcomes; 0 where there is nothing to count."""
        raise NotImplementedError

    def compared(self, constant: str, base: BaseRate) -> str:
        """Say what a constant reaches."""
        numbers = [
            f"{goal.name} {base.about(lambda share, goal=goal: goal.number_of(*_constant(share)[constant]))}"  # type: ignore[misc]
            for goal in self.each
        ]
        return f"always saying {constant} has {_listed(numbers)}"

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
        account.book("test", step)
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


def _constant(rate: float) -> dict[str, tuple[float, float, float, float]]:
    """Return the outcomes of always saying no, and of always saying yes, where that share of the rows is positive."""
    return {"no": (0.0, 0.0, rate, 1.0 - rate), "yes": (rate, 1.0 - rate, 0.0, 0.0)}


def _share(part: float, of: float) -> float:
    return part / of if of else 0.0


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

    low, high = 0.0, 6.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if best(middle)[0] <= -_ROOM * spare else (middle, high)
    return best(high)[1]


@dataclass(frozen=True)
class Recall(CountedGoal):
    """At least this share of the positive rows is predicted positive; asked for beside another goal.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> Recall(0.8) & Precision(0.4)
    Recall(at_least=0.8) & Precision(at_least=0.4)
    """

    at_least: float
    base: BaseRate | None = field(default=None, repr=False)

    name = "recall"
    sign = "≥"

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"at least {down(self.at_least, 6)} of the positive rows are predicted positive (recall)"

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return it."""
        return _share(hits, hits + misses)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        r = self.at_least
        return Added(r - 1.0, 0.0, r, 0.0)

    def plan(self, request: Request) -> Plan:
        """Refuse: always saying yes would do."""
        raise ValueError(
            "recall alone is met by always giving the positive label, which needs no rows; ask for Precision(...), "
            "Specificity(...) or ErrorRate(...) beside it. Nothing was spent"
        )


@dataclass(frozen=True)
class Precision(CountedGoal):
    """At least this share of the rows that are predicted positive is positive.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> Precision(0.4).words
    'precision ≥ 0.4'
    """

    at_least: float
    base: BaseRate | None = field(default=None, repr=False)

    name = "precision"
    sign = "≥"
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"of the rows predicted positive at least {down(self.at_least, 6)} are (precision)"

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return it."""
        return _share(hits, hits + false_alarms)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        q = self.at_least
        return Added(q - 1.0, q, 0.0, 0.0)


@dataclass(frozen=True)
class F1(CountedGoal):
    """F₁, the harmonic mean of recall and precision, is at least this.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> F1(0.5).added.reach
    1.5
    """

    at_least: float
    base: BaseRate | None = field(default=None, repr=False)

    name = "F₁"
    sign = "≥"
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

    def statement(self) -> str:
        """Say what is promised about the mean."""
        return f"F₁, the harmonic mean of recall and precision, is at least {down(self.at_least, 6)}"

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return it."""
        return _share(2.0 * hits, 2.0 * hits + false_alarms + misses)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        f = self.at_least
        return Added(2.0 * f - 2.0, f, f, 0.0)


@dataclass(frozen=True)
class Specificity(CountedGoal):
    """At least this share of the negative rows is predicted negative; asked for beside another goal.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> (Recall(0.8) & Specificity(0.7)).words
    'recall ≥ 0.8 and specificity ≥ 0.7'
    """

    at_least: float
    base: BaseRate | None = field(default=None, repr=False)

    name = "specificity"
    sign = "≥"

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"at least {down(self.at_least, 6)} of the negative rows are predicted negative (specificity)"

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return it."""
        return _share(quiet, quiet + false_alarms)

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        s = self.at_least
        return Added(0.0, s, 0.0, s - 1.0)

    def plan(self, request: Request) -> Plan:
        """Refuse: always saying no would do."""
        raise ValueError(
            "specificity alone is met by always giving the negative label, which needs no rows; ask for Recall(...) "
            "beside it. Nothing was spent"
        )


@dataclass(frozen=True)
class MeanCost(CountedGoal):
    """The mean over all rows of what their errors cost is at most this.

    Parameters
    ----------
    at_most : float
        In the units that costs are stated in.
    false_positive, false_negative : float, default=1.0
        What an error costs: a negative row predicted positive, and a positive one predicted negative.

    Examples
    --------
    >>> goal = MeanCost(0.3, false_positive=1, false_negative=20)
    >>> goal.words, goal.added.reach
    ('mean cost ≤ 0.3', 20.0)
    """

    at_most: float
    false_positive: float = 1.0
    false_negative: float = 1.0
    base: BaseRate | None = field(default=None, repr=False)

    name = "mean cost"
    end: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, validation.share(name, getattr(self, name), end=math.inf))

    def statement(self) -> str:
        """Say what is promised about the mean."""
        return (
            f"the mean cost of a row is at most {up(self.at_most, 6)}, a false positive costing "
            f"{exact(self.false_positive)} and a false negative {exact(self.false_negative)}"
        )

    def number_of(self, hits: float, false_alarms: float, misses: float, quiet: float) -> float:
        """Return it."""
        return self.false_positive * false_alarms + self.false_negative * misses

    @property
    def added(self) -> Added:
        """What a row of each outcome adds."""
        c = self.at_most
        return Added(-c, self.false_positive - c, self.false_negative - c, -c)

    @property
    def option(self) -> str:
        """How the command line states it."""
        costs = f"fp={exact(self.false_positive)},fn={exact(self.false_negative)}"
        return f"--cost {costs} {super().option}"

    @property
    def costs(self) -> dict[str, float]:
        """What errors cost."""
        return {"false_positive": self.false_positive, "false_negative": self.false_negative}

    def shown(self, bound: float) -> dict[str, float]:
        """Return the mean cost shown: its shortfall is a mean over all rows."""
        return super(CountedGoal, self).shown(bound * self.added.reach)

    @property
    def constant(self) -> float:
        """What the cheaper constant costs, or any may."""
        if self.base is None:
            return max(self.false_positive, self.false_negative)
        return min(self.number_of(*said) for said in _constant(self.base.rate).values())

    @property
    def full(self) -> float:
        """What the cheaper error costs: always giving one label costs no more."""
        return min(self.false_positive, self.false_negative)

    def plan(self, request: Request) -> Plan:
        """Refuse what costs nothing to meet; else test."""
        if self.at_most >= min(self.false_positive, self.false_negative):
            raise ValueError(
                "always giving one label costs no more than that on average, whatever the rows: ask for a smaller "
                "mean cost than either error costs. Nothing was spent"
            )
        return super().plan(request)


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
        return _listed([str(goal.name) for goal in self.goals])

    @property
    def each(self) -> tuple[CountedGoal, ...]:
        """The goals."""
        return self.goals

    def at_odds(self, times: float) -> AllOf:
        """Return each of them so many times stricter."""
        return AllOf(tuple(goal.at_odds(times) for goal in self.goals))

    @property
    def lines(self) -> tuple[Added, ...]:
        """What rows add, for each of them."""
        return tuple(goal.added for goal in self.goals)

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
        return _listed([goal.words for goal in self.goals])

    def statement(self) -> str:
        """Say what is promised about each."""
        return "; and ".join(goal.statement() for goal in self.goals)

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about all numbers."""
        return Promise(self.statement(), goal=self.name, goals=self.value, costs=self.costs)

    def plan(self, request: Request) -> Plan:
        """Test all at once."""
        return request.tested(self)


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
