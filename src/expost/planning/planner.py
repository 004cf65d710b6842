"""From a schema, a number of rows and goals to prices; no data are read.

A plan asks the same code that a fit does: what is searched for comes from `expost.AccuracyFirstModel`, what it costs
from the search itself, carried out on synthetic tables. The worst case is a promise; what is likely is not, since the
caller's rows decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from expost import validation
from expost.estimators.inputs import as_schema
from expost.goals import R2, ErrorRate, Goal
from expost.goals.goal import as_goal, is_tested
from expost.planning.prices import ArrayPricer, TablePricer
from expost.planning.result import GoalPrice, PricePlan, Saving
from expost.table.encoding import Encoding

Task = Literal["classification", "regression"]

TABLES = 30
_ARRAYS = 8
_WIDE_ARRAY = 60  # columns from which on fewer arrays are drawn
_WIDEST = 9_000  # columns of all tables together: fewer of wider ones, three at least
#: Priced if no goal is stated: what people ask for, from loose to strict.
USUAL: dict[str, tuple[Goal, ...]] = {
    "classification": tuple(ErrorRate(rate) for rate in (0.3, 0.25, 0.2, 0.15, 0.1)),
    "regression": tuple(R2(share) for share in (0.3, 0.5, 0.7, 0.8, 0.9)),
}


def plan(
    schema: Any = None,
    goals: Goal | Sequence[Goal] = (),
    *,
    rows: int,
    max_epsilon: float | None = None,
    failure_probability: float = 0.1,
    delta: float = 0.0,
    on_invalid: str = "error",
    person: str | None = None,
    rows_per_person: int | None = None,
    task: Task | None = None,
    columns: int | None = None,
    regularization: float | str = "auto",
    worlds: int = TABLES,
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
    encoding, task, p = _described(schema, person, rows_per_person, task, columns)
    worlds = min(worlds, max(3, _WIDEST // p))
    asked = _asked(goals, None if encoding is None else task)
    tables = [goal for goal in asked if encoding is not None and is_tested(goal)]
    priced: dict[Goal, GoalPrice] = {}
    warned: list[str] = []
    found: tuple[Saving, ...] = ()
    if encoding is not None and tables:
        pricer = TablePricer(encoding, count, gamma, budget, at, on_invalid, worlds, random_state)
        priced = {goal: pricer.price(goal) for goal in tables}
        if not at:
            found = pricer.savings(tables[-1])
            warned = [pricer.shrunk(goal) for goal in tables]
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
    return PricePlan(described, p, count, gamma, budget, tuple(priced[goal] for goal in asked), found, kept, worlds, at)


def _described(
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
