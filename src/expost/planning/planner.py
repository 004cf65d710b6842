"""From a schema, a number of rows and goals to prices; no data are read.

A plan asks the same code that a fit does: what is searched for comes from `expost.AccuracyFirstModel`, what it costs
from the search itself, carried out on synthetic tables. The worst case is a promise; what is likely is not, since the
caller's rows decide.

A fit of a table goes one way without a δ, and one of several at a δ; a fit of an array goes by any method and mechanism
that the goal allows. Each way is a function from a number of rows and a cap to the request that a fit would make, and
all are priced alike: the request within the cap says what cannot be reached and what no outcome exceeds, and the same
request with hardly a cap is searched for (`expost.planning.synthetic`). Where a certificate says beforehand what
suffices, every run costs the worst case: the price is known.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import Any, Literal

from expost import defaults, validation
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge
from expost.estimators.inputs import as_schema
from expost.exceptions import StrongRegularizationWarning, TargetUnreachable
from expost.goals import R2, ErrorRate, Goal
from expost.goals.goal import TestedGoal, as_goal, as_tested, is_tested, square_unit
from expost.mechanisms import MECHANISMS, ObjectivePerturbation
from expost.planning.result import CLOSE_CALL, PURE, TYPICAL, GoalPrice, MethodPrice, PricePlan, Saving
from expost.planning.savings import savings
from expost.planning.synthetic import (
    Outcome,
    SyntheticTables,
    missed_by_constant,
    no_cap,
    reach_at,
    uncapped_chain,
)
from expost.search.request import CheckedPlan, Request
from expost.search.run import settle
from expost.shown import down, exact, up
from expost.table import Encoding, Preparation, Schema

Task = Literal["classification", "regression"]

_ARRAYS = 8
_WIDE_ARRAY = 60  # columns from which on fewer arrays are drawn
_WIDEST = 1_800  # columns of all tables together: fewer of wider ones, three at least
_FEWER = 3  # times fewer at a δ, where every table is searched in four ways
#: Columns of a table at a δ, and of an array of numbers, up to which a plan takes minutes: both are searched by second
#: moments, of which there are the square of that, and take time in its third power.
_WIDEST_AT_DELTA, _WIDEST_MOMENTS = 1_000, 500
#: Priced if no goal is stated: what people ask for, from loose to strict.
USUAL: dict[str, tuple[Goal, ...]] = {
    "classification": tuple(ErrorRate(rate) for rate in (0.3, 0.25, 0.2, 0.15, 0.1)),
    "regression": tuple(R2(share) for share in (0.3, 0.5, 0.7, 0.8, 0.9)),
}

#: Where the noise may go at a δ, as callers state it.
WAYS = ("descent", "objective", "covariance")
_ROWS = 6000  # of a table searched at a δ: with fewer, chance makes goals easier to reach than they are with many
_ARRAY_ROWS = 4000  # of an array; ε·n hardly depends on n
_HARDLY_A_CAP = 300.0  # at a δ
_OFF = 0.1  # part of a goal's number by which a table's best model may be off without a word about it


@dataclass(frozen=True)
class Way:
    """One way to a goal; public.

    Attributes
    ----------
    request
        What a fit would ask for, given a number of rows and a cap (None is the one stated).
    tables, cap
        To search in, and what hardly is a cap there.
    most
        The worst case, where it is the cap whatever is settled; None where the plan says it.
    noise
        What a plan calls the noise, where it is not the mechanism's name.
    """

    request: Callable[[int, float | None], Request]
    tables: SyntheticTables
    cap: float
    most: float | None = None
    noise: str | None = None
    taken: bool = False


class Pricer(ABC):
    """Prices goals, way by way, the typically cheapest first."""

    count: int
    on_invalid = "error"

    @property
    def n(self) -> int:
        """How many rows a fit searches."""
        return self.count

    @abstractmethod
    def ways(self, goal: Goal) -> Iterable[Way]:
        """Yield the ways to a goal, each once."""

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal."""
        found = [self._priced(way) for way in self.ways(goal)]
        prices = [price for price, _ in found]
        # a utility theorem promises the mean only: it is no rival of those that keep a promise with probability 1 − γ
        prices.sort(key=lambda price: (price.method == "theory", not price.affordable, price.typical, price.worst_case))
        nothing = not any(price.affordable for price in prices if price.method != "theory")
        reasons = [reason for _, reason in found if reason]
        return GoalPrice(goal, self.count, tuple(prices), reasons[0] if nothing else "")

    def _priced(self, way: Way) -> tuple[MethodPrice, str]:
        """Return what one way costs, and why it cannot be tried within the cap, if so."""
        stated = way.request(self.n, None)
        worst, reason = self._worst(stated)
        if reason and way.most is None:
            worst, _ = self._worst(way.request(self.n, way.cap))
        free = way.request(way.tables.n, way.cap)
        outcomes = self.searched(way, free)
        epsilons = [outcome.epsilon for outcome in outcomes]
        known = False
        if way.most is None and not free.delta:
            scaled = self._worst(free)[0] * way.tables.n / self.n
            known = all(epsilon == scaled for epsilon in epsilons)
        if known:  # for n rows; the rest was paid for fewer
            epsilons = [worst] * len(epsilons)
        told = {"known": known, "affordable": not reason, "taken": way.taken}
        noise, most = way.noise or stated.mechanism.name, worst if way.most is None else way.most
        return MethodPrice.over(stated.method.name, noise, epsilons, most, **told), reason

    def searched(self, way: Way, free: Request) -> list[Outcome]:
        """Search the tables of a way, within the cap first: a fit gives up, turns and ends by what it may spend."""
        look = self._look(way.request(self.n, None)) if self.on_invalid == "clip" else 0.0
        if way.most is None:
            return way.tables.search(free, self.n, look)
        found = way.tables.search(way.request(way.tables.n, way.most * self.n / way.tables.n), self.n, look)
        short = [k for k, outcome in enumerate(found) if outcome.epsilon > way.most]
        beyond = math.nextafter(way.most, math.inf)
        for k, outcome in zip(short, way.tables.search(free, self.n, look, short), strict=True):
            found[k] = replace(outcome, epsilon=max(outcome.epsilon, beyond))
        return found

    def _worst(self, request: Request) -> tuple[float, str]:
        """Return the worst case, or an infinite one and why no data set can meet the goal."""
        try:
            plan = settle(request)
            if self.on_invalid == "clip":
                CheckedPlan(plan, (), self.n, self.n, request.budget, request.unit)
            return plan.worst_case, ""
        except TargetUnreachable as reason:
            return math.inf, str(reason)

    def _look(self, request: Request) -> float:
        """Return what looking whether the table fits costs."""
        nothing: Any = None  # of which only the cost is asked for
        return request.unit.charge(CheckedPlan(nothing, (), self.n, self.n, math.inf, request.unit).cost)


@dataclass(frozen=True)
class TablePricer(Pricer):
    """Prices goals of a table; keeps synthetic tables and outcomes.

    Attributes
    ----------
    encoding, count
        How the table becomes rows, and how many rows there are, or persons where the schema names them.
    gamma, budget, delta, on_invalid
        As a fit is told: γ, the cap (None: the default), δ and what bad cells do.
    tables, seed
        How many tables to draw, and by which seed; or tables that were drawn for another pricer.
    expected
        What the best model is expected to meet just so, and the loosest of the goals; None if nothing is expected.
    only_taken
        Whether at a δ the way that a fit takes is priced alone.
    positives
        The share of rows that is believed to be positive; None if nothing is.
    class_weight
        As a fit is told.
    """

    encoding: Encoding
    count: int
    gamma: float
    budget: float | None
    delta: float = 0.0
    on_invalid: str = "error"
    tables: int | SyntheticTables = defaults.WORLDS
    seed: int = 0
    expected: tuple[TestedGoal, TestedGoal] | None = None
    only_taken: bool = False
    positives: float | None = None
    class_weight: Mapping[Any, float] | None = None
    _outcomes: dict[Goal, list[Outcome]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many rows a fit searches: where the schema names persons, so many of each."""
        return self.count * (self.encoding.schema.rows_per_person or 1)

    @cached_property
    def drawn(self) -> SyntheticTables:
        """The tables; few rows stand for many at a δ."""
        if isinstance(self.tables, SyntheticTables):
            drawn = self.tables
        else:
            each = self.encoding.schema.rows_per_person or 1
            n = each * max(1, min(self.count, _ROWS // each)) if self.delta else self.n
            drawn = replace(SyntheticTables.of(self.encoding, n, self.tables, self.seed), positives=self.positives)
        if self.expected is None:
            return drawn
        unit = square_unit(self.encoding.schema.scaled_target)
        best, loosest = (goal.in_scaled_units(unit) for goal in self.expected)
        return replace(drawn, expected=(best, loosest))

    def _model(self, goal: Goal, budget: float | None, schema: Schema | None = None, **at: Any) -> AccuracyFirstModel:
        most = self.budget if budget is None else budget
        capped: dict[str, Any] = {} if most is None else {"max_epsilon": most}
        at |= {"failure_probability": self.gamma, "class_weight": self.class_weight}
        return AccuracyFirstModel(schema or self.encoding.schema, goal, **capped, **at)

    def _request(self, goal: Goal, n: int, budget: float | None, schema: Schema | None = None, **at: Any) -> Request:
        """Return what a fit would ask for; ``at`` is its δ and where the noise goes."""
        encoding = self.encoding if schema is None or schema is self.encoding.schema else Encoding(schema)
        return self._model(goal, budget, encoding.schema, **at).request_for(n, encoding.schema, encoding)

    def free(self, goal: Goal, schema: Schema | None = None) -> Request:
        """Return the pure request with hardly a cap."""
        return self._request(goal, self.n, no_cap(self._request(goal, self.n, None, schema)), schema)

    def ways(self, goal: Goal) -> Iterator[Way]:
        """Yield pure noise, which needs no δ; at a δ the other ways first, or the one that a fit takes alone."""
        for way in self._every_way(goal):
            if way.taken or not (self.delta and self.only_taken):
                yield way

    def _every_way(self, goal: Goal) -> Iterator[Way]:
        most = float(self._model(goal, None).max_epsilon)
        taken = self._request(goal, self.n, None, delta=self.delta).mechanism
        for way in WAYS if self.delta else ():
            cap = _HARDLY_A_CAP * max(1.0, self.n / self.drawn.n)
            made = partial(self._request, goal, delta=self.delta, perturbation=way)
            stated = made(self.n, None).mechanism
            is_taken = (stated.name, stated.gaussian) == (taken.name, taken.gaussian)
            if is_taken:  # where nothing is stated it may turn to pure noise
                made = partial(self._request, goal, delta=self.delta)
            yield Way(made, self.drawn, cap, most, taken=is_taken)
        pure = partial(self._request, goal)
        is_pure = isinstance(taken, ObjectivePerturbation) and not taken.gaussian
        named = {"noise": PURE, "taken": is_pure} if self.delta else {}
        tables = replace(self.drawn, n=self.n)  # the same with a δ and without
        yield Way(pure, tables, no_cap(pure(self.n, None)), most, **named)  # type: ignore[arg-type]

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal, and say what models without privacy are taken to reach where it costs that."""
        found = super().price(goal)
        if self.expected is not None or not is_tested(goal):
            return found
        believed = tuple(goal.number_at(reach_at(place)) for place in (TYPICAL, CLOSE_CALL))
        return replace(found, believed=None if None in believed else believed)  # type: ignore[arg-type]

    def searched(self, way: Way, free: Request) -> list[Outcome]:
        """Search, and keep what savings are said by; not what a model that is expected does not meet."""
        assert free.goal is not None
        best = self.drawn.expected
        if best is not None and stricter(as_tested(free.goal), best[0]):
            found = [Outcome(math.inf, math.nan)] * len(self.drawn.features)
        else:
            found = super().searched(way, free)
        self._outcomes[free.goal] = found
        return found

    def savings(self, goal: Goal) -> tuple[Saving, ...]:
        """Say what would make a goal cheaper, of those priced; for pure fits."""
        outcomes = self._outcomes[self.free(goal).goal]  # type: ignore[index]
        return savings(self.drawn, self.encoding, lambda schema: self.free(goal, schema), outcomes)

    def rarer(self, goals: Sequence[Goal]) -> tuple[float, float]:
        """Return the least and the largest share that the rarer label has in the tables of goals."""
        shares = [share for goal in goals for share in self.drawn.shares(goal)]
        return min(min(share, 1.0 - share) for share in shares), max(min(share, 1.0 - share) for share in shares)

    def untold(self, goal: TestedGoal) -> tuple[int, str]:
        """Return in how many tables labels cannot be told as well as was meant, and a warning if there are such.

        Of goals that one number says: where many rows have one score, nobody may know more than their share.
        """
        if not self.drawn.labels or goal.number_at(1.0) is None:
            return 0, ""
        best = goal if self.expected is None else self.expected[0]
        off = [beyond for beyond in self.drawn.beyond(goal) if beyond > _OFF * best.number]
        if not off:
            return 0, ""
        few, all_of = len(off), len(self.drawn.features)
        return few, (
            f"in {few} of {all_of} made-up tables for {goal.words} the columns of this schema do not tell labels so "
            f"well, and the best model misses by up to {up(max(off), 2)} more than was meant"
        )

    def shrunk(self, goal: Goal) -> str:
        """Warn if the cap leaves only a first model that λ pulls to its constant."""
        request = self._request(goal, self.n, None)
        chain = uncapped_chain(request, request.budget)
        part = chain.affordable_start / chain.start
        if part in (0.0, 1.0):
            return ""
        cap, times = down(request.unit.charge(request.budget)), f"{1 / part:.2g} times"
        return (
            f"for an ε of {cap} the first model is {times} as noisy as it should be, and shrunk {times} as strongly: "
            f"expect little more than its constant"
        )


@dataclass(frozen=True)
class ArrayPricer(Pricer):
    """Prices goals of plain arrays, whose columns the estimators scale by stated bounds.

    Attributes
    ----------
    labels
        Whether it is a classification.
    count, columns
        Rows and columns.
    regularization, gamma, budget
        As the estimators take them; None is their default cap.
    delta
        δ, for regression; 0 is pure.
    tables, seed
        How many arrays to draw, and by which seed.
    """

    labels: bool
    count: int
    columns: int
    regularization: float | str
    gamma: float
    budget: float | None
    delta: float = 0.0
    tables: int = 8
    seed: int = 0
    warned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.delta and self.labels:
            raise ValueError("with a delta, arrays are planned for regression; state a schema for classes")
        if not self.labels:
            _require_narrow(self.columns, _WIDEST_MOMENTS, "an array of numbers", "plan for fewer of them")

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal, in units where targets lie in [−1, 1], and keep a warning about λ if there is one."""
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", StrongRegularizationWarning)
            price = super().price(goal)
        self.warned.extend(str(each.message) for each in noted[:1])
        return price

    def settled(
        self, goal: Goal, method: str, perturbation: str | None, n: int, budget: float | None
    ) -> tuple[Preparation, Request]:
        """Return what a fit of n rows would settle before it looks at one."""
        stated: dict[str, Any] = {
            "bounds": 1.0,
            "regularization": self.regularization,
            "failure_probability": self.gamma,
            "method": method,
            "perturbation": perturbation,
            "goal": goal,
        }
        most = self.budget if budget is None else budget
        if most is not None:
            stated["max_epsilon"] = most
        estimator: Any = (
            AccuracyFirstLogisticRegression(classes=("a", "b"), **stated)
            if self.labels
            else AccuracyFirstRidge(target_bound=1.0, delta=self.delta, **stated)
        )
        preparation = estimator._preparation(self.columns)
        return preparation, estimator._request(n, preparation)

    def ways(self, goal: Goal) -> Iterator[Way]:
        """Yield the methods and perturbations that can be asked for."""
        seen, n = set(), min(self.n, _ARRAY_ROWS)
        for method in goal.methods:
            for perturbation in (None, *MECHANISMS):
                if method == "fixed":  # promises nothing
                    continue
                try:
                    preparation, request = self.settled(goal, method, perturbation, self.n, None)
                except ValueError:
                    if (method, perturbation) == (goal.methods[0], None):
                        raise  # the goal itself is wrong
                    continue  # a mechanism for another loss
                if (method, request.mechanism.name) not in seen:
                    seen.add((method, request.mechanism.name))
                    tables = SyntheticTables.arrays(preparation, n, self.tables, self.seed)
                    yield Way(partial(self._request, goal, method, perturbation), tables, math.inf)

    def _request(self, goal: Goal, method: str, perturbation: str | None, n: int, budget: float | None) -> Request:
        return self.settled(goal, method, perturbation, n, budget)[1]


def plan(
    schema: Any = None,
    goals: Goal | Sequence[Goal] = (),
    *,
    rows: int,
    max_epsilon: float | None = None,
    failure_probability: float = defaults.FAILURE_PROBABILITY,
    delta: float = 0.0,
    on_invalid: str = "error",
    person: str | None = None,
    rows_per_person: int | None = None,
    task: Task | None = None,
    columns: int | None = None,
    regularization: float | str = "auto",
    expect: float | None = None,
    positives: float | None = None,
    class_weight: Mapping[Any, float] | None = None,
    worlds: int = defaults.WORLDS,
    random_state: int = 0,
) -> PricePlan:
    """Say what goals would cost, without reading any data.

    Prices that depend on the rows are given as a range over made-up rows that follow the schema; **your rows decide**.
    No outcome of a fit with the same ``max_epsilon`` costs more than ``worst_case``, whatever the rows.

    Parameters
    ----------
    schema : Schema, mapping, or path of a TOML file, default=None
        What is publicly known about the table; None for plain arrays.
    goals : Goal or sequence of goals, default=()
        What to price: ``ErrorRate``, ``LogLoss``, ``R2`` or ``MeanSquaredError`` for a table; for arrays any goal of
        their estimators, in scaled units. By default what people usually ask for. ``ExcessRisk`` and
        ``RelativeExcessRisk`` are goals of arrays: with a schema, of an array of its encoded columns.
    rows : int
        How many rows there will be; how many persons, where the schema names them.
    max_epsilon : float, default=None
        The cap that a fit would be given, 2 if none is stated.
    failure_probability : float, default=0.1
        γ of the promise.
    delta : float, default=0.0
        0 plans pure fits. A δ plans fits at it: goals of a table by every way there is (noise on gradients, on second
        moments), and an excess risk of regression. What a change of the schema would save is then not said.
    on_invalid : {"error", "clip"}, default="error"
        As in a fit of a table; "clip" adds the price of looking whether the table fits.
    person, rows_per_person
        As in a fit of a table with several rows of one person.
    task, columns
        Of plain arrays, instead of a schema.
    regularization : float or "auto", default="auto"
        λ, for goals of arrays, as the estimators take it.
    expect : float, default=None
        What you expect the best model without privacy to reach, from public knowledge, in the goals' own number: an
        error rate, say. It narrows what is likely. Goals of one kind only.
    positives : float, default=None
        About which share of the rows you believe to have the positive label, from public knowledge. By default made-up
        tables have shares that go with the goals: a small log loss is asked for where a label is rare.
    class_weight : dict of label to float, optional
        As in a fit of a table.
    worlds : int, default=30
        How many made-up tables to search.
    random_state : int, default=0
        Seed of the simulation.

    Returns
    -------
    PricePlan

    Examples
    --------
    >>> from expost import ErrorRate, plan
    >>> schema = {
    ...     "target": "income",
    ...     "classes": ["low", "high"],
    ...     "columns": {"hours": {"bounds": [0, 80]}, "sector": {"categories": ["public", "private"]}},
    ... }
    >>> prices = plan(schema, ErrorRate(0.2), rows=20_000, max_epsilon=1.0, worlds=10)
    >>> price = prices.goals[0].cheapest
    >>> price.worst_case, price.low < price.high < 1.0, price.share_within(1.0) > 0.5
    (1.0, True, True)
    """
    count, worlds = validation.count("rows", rows), validation.count("worlds", worlds)
    at = validation.delta(delta)
    gamma, budget = validation.failure_probability(failure_probability), validation.budget(max_epsilon)
    validation.one_of("on_invalid", on_invalid, ("error", "clip"))
    encoding, task, p = _resolved(schema, person, rows_per_person, task, columns)
    worlds = most_tables(worlds, p, at)
    asked = _asked(goals, None if encoding is None else task)
    tables = [goal for goal in asked if encoding is not None and is_tested(goal)]
    if class_weight is not None and len(tables) < len(asked):
        raise ValueError(
            "class_weight is planned with for goals of tables: state a schema, and ErrorRate(...) or the like"
        )
    expected = None if expect is None else _expected(expect, asked, tables)
    also = [] if expected is None else [expected[0]]  # which a constant is not to meet either
    believed = None if positives is None else believed_positives(positives, task if tables else None, [*tables, *also])
    priced: dict[Goal, GoalPrice] = {}
    warned: list[str] = []
    found: tuple[Saving, ...] = ()
    off = 0
    if encoding is not None and tables:
        stated = (encoding, count, gamma, budget, at, on_invalid, worlds, random_state, expected)
        pricer = TablePricer(*stated, positives=believed, class_weight=class_weight)
        priced = rising({goal: pricer.price(goal) for goal in tables})
        if not at:
            found = pricer.savings(tables[-1])
            warned = [pricer.shrunk(goal) for goal in tables]
        # what is expected is one kind of tables, for all goals
        untold = [pricer.untold(goal) for goal in (tables if expected is None else tables[:1])]
        warned += [text for _, text in untold]
        off = max(few for few, _ in untold)
    for goal in asked:
        if goal not in priced:
            if encoding is not None and encoding.schema.person is not None:
                raise ValueError(f"{type(goal).__name__} is a goal of arrays, which are of single rows; name no person")
            few = min(worlds, _ARRAYS if p <= _WIDE_ARRAY else 3)
            arrays = ArrayPricer(
                task == "classification", count, p, regularization, gamma, budget, at, few, random_state
            )
            priced[goal] = arrays.price(goal)
            warned += arrays.warned
    kept = tuple(dict.fromkeys(text for text in warned if text))
    described = None if encoding is None else encoding.schema
    prices = tuple(priced[goal] for goal in asked)
    rarer = pricer.rarer(tables) if encoding is not None and tables and task == "classification" else None
    return PricePlan(described, p, count, gamma, budget, prices, found, kept, worlds, at, expect, believed, rarer, off)


def most_tables(stated: int, columns: int, delta: float) -> int:
    """Return how many tables are drawn of those stated: fewer of wide ones, and at a δ, three at least.

    Tables that are too wide to be searched at a δ are refused.

    Examples
    --------
    >>> most_tables(30, 20, 0.0), most_tables(30, 60, 1e-6), most_tables(30, 5000, 0.0)
    (30, 10, 3)
    """
    if delta:
        _require_narrow(columns, _WIDEST_AT_DELTA, "a table at a delta", "plan without one, or join rare categories")
    return min(stated, max(3, _WIDEST // (columns * _FEWER if delta else columns)))


def _require_narrow(columns: int, most: int, what: str, instead: str) -> None:
    """Complain about what would be searched for hours."""
    if columns > most:
        raise ValueError(
            f"{what} is planned for up to {most:,} columns, of which each category is one, and these are {columns:,}: "
            f"searching made-up ones by second moments would take too long; {instead}"
        )


def stricter(goal: TestedGoal, other: TestedGoal) -> bool:
    """Whether a goal of the same kind asks for at least as much."""
    return goal.number >= other.number if goal.sign == "≥" else goal.number <= other.number


def rising(priced: dict[Goal, GoalPrice]) -> dict[Goal, GoalPrice]:
    """Return prices that do not fall as goals get stricter.

    A model that meets the stricter goal meets the looser one. So where a stricter one came out cheaper, chance did it:
    every way costs at least what it costs for the looser, table by table from the cheapest to the dearest.
    """
    found = dict(priced)
    kinds = [goal for goal in priced if is_tested(goal) and goal.number_at(1.0) is not None]
    for _, several in groupby(sorted(kinds, key=lambda goal: type(goal).__name__), type):
        ordered = sorted(several, key=lambda goal: goal.number if goal.sign == "≥" else -goal.number)
        for looser, goal in pairwise(ordered):
            below = {(way.method, way.perturbation): way for way in found[looser].methods}
            ways = [way.at_least(below.get((way.method, way.perturbation))) for way in found[goal].methods]
            found[goal] = replace(found[goal], methods=tuple(ways))
    return found


def _expected(expect: float, asked: Sequence[Goal], tables: Sequence[TestedGoal]) -> tuple[TestedGoal, TestedGoal]:
    """Return what a model is expected to meet, as a goal, and the loosest of the goals."""
    kinds = {type(goal) for goal in asked}
    if len(kinds) != 1 or len(tables) < len(asked) or tables[0].number_at(1.0) is None:
        raise ValueError(
            "expect is what the best model reaches in the goals' own number: state goals of one kind, ErrorRate(...), "
            "LogLoss(...), R2(...) or MeanSquaredError(...), with a schema"
        )
    kind = type(tables[0])
    best = kind.stated(validation.share("expect", expect, end=kind.end))
    least = min if tables[0].sign == "≥" else max
    return best, least(tables, key=lambda goal: goal.number)


def believed_positives(positives: float, task: str | None, goals: Sequence[TestedGoal]) -> float:
    """Return a share of positive labels that is believed, or say why the goals do not go with it."""
    share = validation.share("positives", positives)
    if task != "classification":
        raise ValueError("positives is a share of labels: state a schema with classes, and ErrorRate(...) or the like")
    met = next((goal for goal in goals if missed_by_constant(goal, share) <= 0), None)
    if met is not None:
        raise ValueError(
            f"where {exact(share)} of the rows are positive, a model that says the same of all of them meets "
            f"{met.words}: ask for more, expect a better model, or state other positives"
        )
    return share


def _resolved(
    schema: Any, person: str | None, rows_per_person: int | None, task: Task | None, columns: int | None
) -> tuple[Encoding | None, Task, int]:
    """Return how the table becomes rows, if there is one, the task and the number of columns."""
    if schema is None:
        if task is None or columns is None:
            raise ValueError("state a schema, or task and columns of a plain array")
        if person is not None or rows_per_person is not None:
            raise ValueError("person and rows_per_person go with a schema: arrays are of single rows")
        validation.one_of("task", task, ("classification", "regression"))
        return None, task, validation.count("columns", columns)
    if task is not None or columns is not None:
        raise ValueError("task and columns are for plain arrays; a schema says both")
    encoding = Encoding(as_schema(schema).with_person(person, rows_per_person))
    return encoding, encoding.schema.task, len(encoding.names)


def _asked(goals: Goal | Sequence[Goal], task: Task | None) -> tuple[Goal, ...]:
    """Return the goals, the usual ones if none is stated for a table."""
    stated = tuple(goals) if isinstance(goals, Iterable) else (goals,)
    if not stated and task is None:
        raise ValueError("state a goal, ExcessRisk(...) say: for plain arrays none is usual")
    asked = tuple(as_goal(goal, f"goals must be ErrorRate(...) or others, got {goal!r}") for goal in stated)
    return asked or USUAL[str(task)]
