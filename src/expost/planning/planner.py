"""From a schema, a number of rows and goals to prices; no data are read.

A plan asks the same code that a fit does: what is searched for comes from `expost.AccuracyFirstModel`, what it costs
from the search itself, carried out on made-up rows. The worst case is a promise; what is likely is not, since the
caller's rows decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from expost import validation
from expost.estimators.inputs import as_schema
from expost.goals import R2, ErrorRate, Goal, TestedGoal
from expost.planning.arrays import ArrayTask, price_array
from expost.planning.prices import DeltaPricer, TablePricer, rows_searched
from expost.planning.result import GoalPrice, PricePlan, Saving
from expost.planning.simulation import TableWorlds
from expost.table.encoding import Encoding

Task = Literal["classification", "regression"]

WORLDS = 30
_ARRAY_WORLDS = 8
_WIDE_ARRAY = 60  # columns from which on fewer worlds are drawn
_WIDEST = 9_000  # columns of all worlds together: fewer worlds of wider tables, three at least
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
    worlds: int = WORLDS,
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
    tables = [goal for goal in asked if encoding is not None and isinstance(goal, TestedGoal)]
    priced: dict[Goal, GoalPrice] = {}
    warned: list[str] = []
    found: tuple[Saving, ...] = ()
    if encoding is not None and tables and at:
        of_delta = DeltaPricer.of(encoding, count, gamma, budget, at, on_invalid, worlds, random_state)
        priced = {goal: of_delta.price(goal) for goal in tables}
    elif encoding is not None and tables:
        made_up = TableWorlds.of(encoding, rows_searched(encoding.schema, count), worlds, random_state)
        pricer = TablePricer(encoding, count, gamma, budget, on_invalid, made_up)
        priced = {goal: pricer.price(goal) for goal in tables}
        found = pricer.savings(tables[-1])
        warned = [pricer.shrunk(goal) for goal in tables]
    for goal in asked:
        if goal not in priced:
            if encoding is not None and encoding.schema.person is not None:
                raise ValueError(f"{type(goal).__name__} is a goal of arrays, which are of single rows; name no person")
            array = ArrayTask(task == "classification", count, p, goal, regularization, gamma, budget, at)
            few = min(worlds, _ARRAY_WORLDS if p <= _WIDE_ARRAY else 3)
            priced[goal], told = price_array(array, few, random_state)
            warned.append(told)
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
    asked = (goals,) if isinstance(goals, Goal) else tuple(goals)
    if not asked and task is None:
        raise ValueError("state a goal, ExcessRisk(...) say: for plain arrays none is usual")
    for goal in asked:
        if not isinstance(goal, Goal):
            raise ValueError(f"goals must be ErrorRate(...) or others, got {goal!r}")
    return asked or USUAL[str(task)]
