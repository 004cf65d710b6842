"""From a schema, a number of rows and goals to prices; no data are read.

A plan asks the same code that a fit does: what is searched for comes from `expost.AccuracyFirstModel`, what it costs
from the search itself, carried out on made-up rows. The worst case is a promise; what is likely is not, since the
caller's rows decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from expost import validation
from expost.data.encode import Encoding
from expost.estimators._tables import as_schema
from expost.goals import R2, ErrorRate, Goal, TestedGoal
from expost.planning.arrays import array_problem, price_array, shrunk
from expost.planning.result import GoalPrice, PricePlan, Saving
from expost.planning.simulation import TableWorlds
from expost.planning.tables import TablePricer

WORLDS = 30
_ARRAY_WORLDS = 8
_WIDE_ARRAY = 60  # columns from which on fewer worlds are drawn
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
    on_invalid: str = "error",
    task: Literal["classification", "regression"] | None = None,
    columns: int | None = None,
    regularization: float = 0.01,
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
        How many rows there will be.
    max_epsilon : float, default=None
        The cap that a fit would be given, 10 if none is stated.
    failure_probability : float, default=0.1
        γ of the promise.
    on_invalid : {"error", "clip"}, default="error"
        As in a fit of a table; "clip" adds the price of looking whether the table fits.
    task, columns
        Of plain arrays, instead of a schema.
    regularization : float, default=0.01
        λ, for goals of arrays.
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
    n = _count("rows", rows)
    worlds = _count("worlds", worlds)
    gamma = validation.failure_probability(failure_probability)
    budget = validation.budget(max_epsilon)
    validation.one_of("on_invalid", on_invalid, ("error", "clip"))
    described = None if schema is None else as_schema(schema)
    encoding = None if described is None else Encoding(described)
    if described is not None and encoding is not None:
        if task is not None or columns is not None:
            raise ValueError("task and columns are for plain arrays; a schema says both")
        task, p = described.task, len(encoding.names)
    else:
        if task is None or columns is None:
            raise ValueError("state a schema, or task and columns of a plain array")
        validation.one_of("task", task, ("classification", "regression"))
        p = _count("columns", columns)
    asked = (goals,) if isinstance(goals, Goal) else tuple(goals)
    if not asked:
        if described is None:
            raise ValueError("state a goal, ExcessRisk(...) say: for plain arrays none is usual")
        asked = USUAL[task]
    for goal in asked:
        if not isinstance(goal, Goal):
            raise ValueError(f"goals must be ErrorRate(...) or others, got {goal!r}")

    priced: list[GoalPrice] = []
    warned: list[str] = []
    found: tuple[Saving, ...] = ()
    tables = [goal for goal in asked if encoding is not None and isinstance(goal, TestedGoal)]
    pricer = None
    if encoding is not None and tables:
        pricer = TablePricer(encoding, n, gamma, budget, on_invalid, TableWorlds.of(encoding, n, worlds, random_state))
    for goal in asked:
        if pricer is not None and goal in tables:
            priced.append(pricer.price(goal))
        else:
            problem = array_problem(task == "classification", n, p, validation.number("regularization", regularization))
            few = min(worlds, _ARRAY_WORLDS if p <= _WIDE_ARRAY else 3)
            priced.append(price_array(problem, goal, gamma, budget, few, random_state))
            warned.append(shrunk(problem, few, random_state))
    if pricer is not None:
        found = pricer.savings(tables[-1])
        warned += [pricer.shrunk(goal) for goal in tables]
    kept = tuple(dict.fromkeys(text for text in warned if text))
    return PricePlan(described, p, n, gamma, budget, tuple(priced), found, kept, worlds)


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a positive whole number, got {value!r}")
    return value
