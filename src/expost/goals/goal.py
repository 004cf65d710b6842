"""What a goal is: what the caller asks for, what is promised about it, in whose units, and what is asked of it.

A new goal is one file here and an entry in ``goals/flags.py`` with its flag and its words, which the command line
and releases read there. Nothing outside this folder asks which goal it has: searches, estimators, plans and the
explorer ask what a goal says of itself, and what it does not say follows from its *shortfall*, how far a hypothesis
misses it, as one number: what a chain of releases is tested and steered by, and what synthetic tables are made by.

*Released*: noisy shortfalls. *Neighbours*: one row replaced. A goal says how far one row can move its shortfall.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeGuard

import numpy as np

from expost import defaults, validation
from expost.goals.flags import FLAGS, Flag
from expost.goals.measure import Judge, Measure, Predicted
from expost.numeric import FloatArray, bisected
from expost.passes.sums import Sums
from expost.release.release import Promise
from expost.shown import exact, up
from expost.solve.losses import Labels, Loss
from expost.solve.problem import Problem

if TYPE_CHECKING:
    from expost.account.account import Account
    from expost.account.composition import Curve
    from expost.noise.source import WordSource
    from expost.search.request import Plan, Request


#: What a bound on the best model's shortfall shows, once more was measured if that takes it; asks whether what that
#: costs may be booked. At last whether it is: what is probably shown, for nothing, if not.
Further = Callable[[float, Callable[["Curve"], bool], bool], dict[str, Any]]


@dataclass(frozen=True)
class ChainSettings:
    """What a goal asks of a chain of releases; public, and any values are sound.

    Attributes
    ----------
    loss
        What is minimised for it.
    reach
        R, a guess of how far apart models are, in units of the table; λ = 1/(xR) at level x.
    start
        x of the first level: the inverse of the typical noise on a mean gradient.
    steer
        How large a shortfall is large; settles how far the next level goes.
    spread
        The root of the target's variance, as it was released or guessed; 1 for labels.
    """

    loss: Loss
    reach: float
    start: float
    steer: float
    spread: float = 1.0

    @property
    def sharper(self) -> float:
        """How many times less noise a curve takes than where an error rate of 0.15 is asked for, before it pays.

        Fewer errors leave less room for noise; other goals suffer from all of it, the more the narrower the target is.
        """
        if self.loss.labels == "binary" and self.loss.name != "logistic":
            return max(1.0, 0.15 / self.steer)
        return 4.0 * max(1.0, 0.43 / self.spread)


RISK_CHARGED = ("excess risk: rounded to a public grid, floating-point error bounded and charged to its sensitivity",)
ABOUT_RISK = "regularised empirical risk of the clipped, rounded rows"


class Goal(ABC):
    """What the caller asks for. Its first argument is its number."""

    #: What releases call it; None for excess risk, the paper's own target.
    name: ClassVar[str | None]
    #: Of its class, from the table that is read before any goal is imported.
    flag: ClassVar[Flag]
    #: Methods that can meet it.
    methods: ClassVar[tuple[str, ...]]
    #: Which side of its number it asks for.
    sign: ClassVar[Literal["≤", "≥"]] = "≤"
    #: Whether it has no measure for a gradual release, only a shortfall for a chain of releases.
    chained_only: ClassVar[bool] = False
    #: Whether there is no search for it under approximate privacy.
    pure_only: ClassVar[bool] = False
    #: M, if models for it estimate probabilities: log odds are moved into [−M, M] before they are judged.
    largest_odds: ClassVar[float | None] = None

    def __init_subclass__(cls) -> None:
        if cls.__name__ in FLAGS:
            cls.flag = FLAGS[cls.__name__]

    def settle(self, name: str, end: float = 1.0, *, called: str | None = None) -> None:
        """Check that a field lies strictly between 0 and ``end``, and make it a float of full precision.

        ``called`` is what callers state it by, where that is not the field's name.
        """
        # in single precision limits would be off by more than their slack
        object.__setattr__(self, name, validation.share(called or name, getattr(self, name), end=end))

    def check(self, loss: Loss, *, method: str, calibration: str, on_failure: str) -> None:
        """Raise a helpful error unless the goal, the loss and the method go together."""
        self.require(loss)
        if method not in self.methods:
            raise ValueError(
                f"goal={type(self).__name__}(...) cannot be met by method={method!r}; pass one of {list(self.methods)}"
            )

    def require(self, loss: Loss) -> None:
        """Raise a helpful error unless the goal is one for this loss."""
        return

    def require_rows(self, generator: Any) -> None:
        """Raise, before anything is drawn, unless what was made of the rows is enough for it."""
        return

    @classmethod
    def _fields(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]  # every goal is a dataclass

    @classmethod
    def stated(cls, value: float, margin: float = defaults.MARGIN, **given: float) -> Self:
        """Return the goal that a flag states, with the margin stated beside it if it has one, and what else is."""
        given |= {"margin": margin} if "margin" in cls._fields() else {}
        return cls(value, **given)  # type: ignore[call-arg]

    @property
    def number(self) -> float:
        """The number that it states."""
        return float(getattr(self, self._fields()[0]))

    @property
    def value(self) -> Any:
        """The number, or the number of each goal by its name, where it is several."""
        return self.number

    @property
    def each(self) -> tuple[Goal, ...]:
        """The goals that it is made of: itself, or several at once."""
        return (self,)

    @property
    def costs(self) -> dict[str, float] | None:
        """What errors cost, if it is about that: part of what the number means."""
        return None

    @property
    def option(self) -> str:
        """How the command line states it."""
        return f"{self.flag.name} {exact(self.number)}"

    @property
    def words(self) -> str:
        """The goal in words; a number that was brought into other units, without what rounding added."""
        return f"{self.name or 'excess risk'} {self.sign} {exact(self.number, 12)}"

    @property
    def excess_risk(self) -> float | None:
        """α, if it is an excess risk itself, which certificates are about."""
        return None

    def in_scaled_units(self, square_unit: float) -> Self:
        """Return the goal for rows in scaled units; 1 in scaled squares is ``square_unit`` in the caller's."""
        return self

    def in_caller_units(self, promise: Promise, square_unit: float) -> Promise:
        """Return the promise with its numbers in the caller's units beside."""
        if promise.excess_risk is None:
            return promise
        return dataclasses.replace(promise, excess_risk_caller_units=promise.excess_risk * square_unit)

    @abstractmethod
    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return what is promised; ``reduced`` is the promise it was reduced to along the way, if it was."""

    @abstractmethod
    def plan(self, request: Request) -> Plan:
        """Settle how it is searched for, or say why it cannot be met; nothing is looked at."""

    def exact(self) -> tuple[str, ...]:
        """Say what about its test is exact."""
        return ()

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say what is floating point and was charged, given what the method says about gradients."""
        return (*RISK_CHARGED, *by_method)


def as_goal(given: object, otherwise: str) -> Goal:
    """Return a goal as it is given, or raise with what to state instead."""
    if not isinstance(given, Goal):
        raise ValueError(otherwise)
    return given


def excess_risk_of(goal: object) -> float | None:
    """Return α of a goal that is an excess risk itself; None for all others, and where there is none."""
    return goal.excess_risk if isinstance(goal, Goal) else None


def is_tested(goal: object) -> TypeGuard[TestedGoal]:
    """Whether it is a goal that is tested as it stands: one of tables, which says nothing about a λ."""
    return isinstance(goal, TestedGoal)


def tested_kind(kind: type[Goal]) -> type[TestedGoal] | None:
    """Return a class of goals if they are tested as they stand, None for others."""
    return kind if issubclass(kind, TestedGoal) else None


def as_tested(given: object, otherwise: str = "a chain of releases is for goals in people's units") -> TestedGoal:
    """Return a goal that is tested as it stands, or raise with what to state instead."""
    if not is_tested(given):
        raise ValueError(otherwise)
    return given


def square_unit(bounds: tuple[float, float] | None) -> float:
    """Return what 1 in scaled squares is in squared units of a target with these bounds; labels have none."""
    return 1.0 if bounds is None else ((bounds[1] - bounds[0]) / 2) ** 2


#: What a goal of tables may be about, and the usual goals of each, for messages.
TASKS: dict[Labels, tuple[str, str]] = {
    "binary": ("classification", "ErrorRate(...) or LogLoss(...)"),
    "real": ("regression", "R2(...) or MeanSquaredError(...)"),
}
_UNITS = {1: "units", 2: "squared units"}


class TestedGoal(Goal):
    """A goal that is tested as it stands, by AboveThreshold on a measure of its own (theory B9 with A3, B5).

    *Released*: hypotheses up to the first whose measure passes a noisy limit. *Theorem*: gradual release for the
    hypotheses, `expost.search.above_threshold` for the test; sensitivities stand with the measures.

    A new one states its number and its :meth:`statement`, its shortfall with sensitivity and error, and what it asks
    of a chain. Everything else has a default.
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    at_most: float
    margin: float
    #: What it is about.
    labels: ClassVar[Labels]
    #: Its number lies strictly between 0 and this.
    end: ClassVar[float] = 1.0
    #: The power of the target's unit that its number is in.
    power: ClassVar[int] = 0
    #: Whether a row either counts against it or does not: its number is the share of those that do.
    counts: ClassVar[bool] = False
    #: Numbers to explore, from loose to strict, in units where targets lie in [−1, 1].
    offered: ClassVar[tuple[float, ...]] = (0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
    methods: ClassVar[tuple[str, ...]] = ("auto", "above_threshold")

    def __post_init__(self) -> None:
        number, *others = self._fields()
        self.settle(number, self.end)
        if "margin" in others:
            self.settle("margin")

    def check(self, loss: Loss, *, method: str, calibration: str, on_failure: str) -> None:
        """Raise a helpful error unless the goal, the loss and the method go together."""
        super().check(loss, method=method, calibration=calibration, on_failure=on_failure)
        name = type(self).__name__
        if calibration != "tight":
            raise ValueError(f"goal={name}(...) is tested with calibration='tight' only, got {calibration!r}")
        if on_failure != "refuse":
            raise ValueError(f"on_failure={on_failure!r} cannot keep {name}: the optimum of the risk need not meet it")

    def require_rows(self, generator: Any) -> None:
        """Raise unless there are rows to measure it on: sums of them tell no prediction."""
        if isinstance(getattr(generator, "rows", None), Sums):
            raise ValueError(f"{type(self).__name__} is tested on rows; pass them, not their sums. Nothing was spent")

    def require(self, loss: Loss) -> None:
        """Raise unless the loss is for the kind of target that what is minimised for the goal is for."""
        labels = self.chain().loss.labels
        if loss.labels != labels:
            (task, _), (other, usual) = TASKS[labels], TASKS[loss.labels]
            raise ValueError(f"{type(self).__name__} is for {task}; for {other} pass {usual}")

    @classmethod
    def unit(cls, square_unit: float) -> float:
        """Return what its number is counted in, in the caller's units."""
        return float(square_unit ** (cls.power / 2))

    def in_scaled_units(self, square_unit: float) -> Self:
        """Return the goal in units where targets lie in [−1, 1]."""
        if not self.power:
            return self
        return dataclasses.replace(self, at_most=self.at_most / self.unit(square_unit))  # type: ignore[type-var]

    def in_caller_units(self, promise: Promise, square_unit: float) -> Promise:
        """Say the promise in units of the target as well, if it is in such."""
        if not self.power or promise.at_most is None:
            return promise
        stated = promise.at_most * self.unit(square_unit)
        return dataclasses.replace(
            promise,
            statement=f"{promise.statement}; that is {up(stated, 6)} in {_UNITS[self.power]} of the target",
            at_most_caller_units=stated,
        )

    @abstractmethod
    def statement(self) -> str:
        """Say what is promised."""

    def promise(self, problem: Problem, reduced: Promise | None = None) -> Promise:
        """Return the promise about its number."""
        least, most = (self.number, None) if self.sign == "≥" else (None, self.number)
        return Promise(self.statement(), goal=self.name, at_least=least, at_most=most, costs=self.costs)

    def plan(self, request: Request) -> Plan:
        """Test models, of one gradual release or of a chain of releases: whichever the mechanism makes."""
        return request.tested(self)

    def typical(self, problem: Problem) -> float:
        """Return a typical sensitivity of the measure, which the margin is stated for; any value is sound."""
        return self.shortfall_sensitivity(problem.n)

    def measure(self, generator: Any) -> Measure:
        """Return what is tested; private."""
        if self.chained_only:
            name = type(self).__name__
            raise ValueError(f"{name} has no measure of its own: it is searched for by a chain of releases")
        return ShortfallMeasure(self, generator.risk.objective)

    @abstractmethod
    def chain(self) -> ChainSettings:
        """Return what it asks of a chain of releases (`expost.mechanisms.objective.chain`)."""

    @abstractmethod
    def shortfall(self, objective: Judge, theta: Any) -> float:
        """Return how far θ misses the goal, negative if it meets it; private."""

    @abstractmethod
    def shortfall_sensitivity(self, n: int) -> float:
        """Return how far one row can move the shortfall of a fixed hypothesis."""

    @abstractmethod
    def shortfall_error(self, n: int, p: int, theta: Any) -> float:
        """Return a bound on the error of :meth:`shortfall`; public."""

    @property
    def room(self) -> float:
        """How far below zero a shortfall may be, as far as is known: tests that could not show that are not made."""
        return self.chain().steer

    def at_best(self) -> Self:
        """Return the goal as it would be tested on the table most favourable to that."""
        return self

    def measured(
        self, judge: Judge, account: Account, source: WordSource, failure_probability: float, first: float
    ) -> tuple[Self, float, Further | None]:
        """Release what the goal is better tested with, and return it so; and what is left of γ for tests.

        Booked on the account, and only as far as that lets it; nothing by default. ``first`` is about what the first
        level of the search and its test will cost, which is public: no more than that is worth paying to spare it.
        Last, how to measure more of it in the end, where that may show something of a model that misses the goal.
        """
        return self, failure_probability, None

    @property
    def cut_part(self) -> float:
        """Which part of what a test costs finding a cut-off for its model costs before it."""
        return 0.0

    def placed(
        self,
        model: FloatArray,
        judge: Judge,
        account: Account,
        source: WordSource,
        most: float,
        in_squares: bool = False,
    ) -> FloatArray:
        """Return a released model as it is tested, booked likewise; ``most`` (ε, or ρ in squares) is for its test."""
        return model

    @property
    def said(self) -> dict[str, Any]:
        """What a release says of what was measured."""
        return {}

    @property
    def idle(self) -> str:
        """Say that a constant meets the goal, where what was measured shows it; empty otherwise."""
        return "a constant meets the goal, so no model was searched for" if "constant" in self.said else ""

    @property
    def within(self) -> tuple[float, float] | None:
        """What predictions are moved into before they are judged, if that is less than the target's bounds."""
        return None

    @property
    def constant(self) -> float:
        """What some constant reaches, in scaled units, as far as that is public or was released; it only steers.

        A model of which no more was shown is not handed over as if it were one.
        """
        return math.inf

    @property
    def missed_by_constant(self) -> float:
        """How far the best constant misses the goal, as far as that was released; it only steers."""
        return math.inf

    def shown(self, bound: float) -> dict[str, float]:
        """Return what a bound on a model's shortfall shows about the goal's own number, as a release says it.

        It is in scaled units, as ``promise.at_most`` is, and not below 0, which no error, loss or cost is. Nothing
        where the goal is not met and a constant does as well.
        """
        number = max(0.0, math.nextafter(self.at_most + bound, math.inf))
        if bound <= 0.0:
            return {"shown": min(number, self.at_most)}
        return {"shown": number} if number < self.constant else {}

    @property
    def untold(self) -> str:
        """Say why no bound shows anything, where that is what was released of the rows; empty otherwise."""
        return ""

    def reached(self, shortfall: float, objective: Judge) -> float:
        """Return the goal's own number for a shortfall on rows, in scaled units; private."""
        return self.at_most + shortfall

    @property
    def each_row(self) -> tuple[float, float] | None:
        """Between which numbers each row's part in the goal's own number lies, where that is their mean; else None.

        What is promised about new rows is promised about means (`expost.search.new_rows`).
        """
        return None

    def hypothesis(self, generator: Any) -> Callable[[Any], Any]:
        """Return how revealed values become the hypotheses that are tested."""
        made: Callable[[Any], Any] = generator.hypothesis
        return made

    @property
    def as_risk(self) -> float:
        """Roughly the excess risk that a hypothesis may have and still meet the goal; settles how far levels go."""
        return self.at_most

    def charged(self, by_method: tuple[str, ...]) -> tuple[str, ...]:
        """Say that no risk and no gradient is looked at."""
        return ()

    # Synthetic tables for it (`expost.planning.synthetic`): rows of which the best model misses a stated part of what
    # the goal allows, and on which no constant would do. Public, and any answers are sound: prices follow from them.

    def missed(self, u: FloatArray, y: FloatArray, weights: FloatArray) -> float:
        """Return the shortfall of predictions u of targets y, so much of which each is."""
        return self.shortfall(Predicted(u, y, weights), np.ones(1))

    def number_at(self, reach: float) -> float | None:
        """Return its number for a model that misses that part of what the goal allows, if one number says it."""
        return reach * self.number

    def idle_variance(self) -> float | None:
        """Return the variance of a target up to which its mean would do, if a formula says it for all rows."""
        return None


class ShortfallMeasure(Measure):
    """A goal's own number, by its shortfall."""

    def __init__(self, goal: TestedGoal, objective: Judge) -> None:
        self._goal, self._objective = goal, objective

    def value(self, hypothesis: Any) -> float:
        """Return the number."""
        return self._goal.shortfall(self._objective, np.asarray(hypothesis)) + self._goal.at_most

    def sensitivity(self, hypothesis: Any) -> float:
        """Return that of the shortfall."""
        return self._goal.shortfall_sensitivity(self._objective.n)

    def error_bound(self, hypothesis: Any) -> float:
        """Return that of the shortfall, and the rounding of a sum."""
        theta = np.asarray(hypothesis)
        return self._goal.shortfall_error(self._objective.n, theta.size, theta) + 2.0**-51 * self._goal.at_most


def root(function: Callable[[float], float], low: float, high: float, halvings: int = 18) -> float:
    """Return where a monotone function changes its sign, or the end nearer to it.

    Examples
    --------
    >>> round(root(lambda x: x * x - 2.0, 0.0, 4.0), 3), round(root(lambda x: 1.0 - x, 2.0, 3.0), 3)
    (1.414, 2.0)
    """
    sign = 1.0 if function(high) > function(low) else -1.0
    ends = bisected(lambda x: not sign * function(x) > 0, low, high, halvings)  # to a few millionths of the interval
    return 0.5 * sum(ends)
