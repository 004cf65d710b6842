"""What the page knows: prices of a row of goals, what costs most, and searches to watch. Public numbers only.

Prices are computed for one number of rows and a few γ (`expost.planning`). The page scales them by 1/n, since ε·n
hardly depends on n, and goes from one computed goal or γ to the next by straight lines in the logarithm of ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from expost.data.encode import Encoding
from expost.data.schema import Schema
from expost.exceptions import TargetUnreachable
from expost.goals import GOALS, R2, ErrorRate, Goal, LogLoss, MeanSquaredError, TestedGoal
from expost.planning.planner import WORLDS
from expost.planning.result import GoalPrice, number_of
from expost.planning.simulation import TableWorlds
from expost.planning.tables import TablePricer, rows_searched
from expost.planning.trace import trace
from expost.privacy.release import Release

GAMMAS = (0.02, 0.1, 0.3)
_VALUES: dict[type[TestedGoal], tuple[float, ...]] = {
    ErrorRate: (0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05),
    LogLoss: (0.65, 0.6, 0.5, 0.4, 0.3, 0.2),
    R2: (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95),
    MeanSquaredError: (0.2, 0.1, 0.05, 0.02, 0.01),  # in squares of half the width of the target's bounds
}
KINDS: dict[str, type[TestedGoal]] = {kind.flag.name.removeprefix("--"): kind for kind in _VALUES}
_ROWS = 20_000
_DIGITS = 5


def explorer_data(
    schema: Schema,
    *,
    kind: str | None = None,
    rows: int | None = None,
    release: Release | None = None,
    max_epsilon: float = 1.0,
    schema_file: str = "schema.toml",
    worlds: int = WORLDS,
    random_state: int = 0,
) -> dict[str, Any]:
    """Compute everything the page shows; a function of its arguments alone.

    Parameters
    ----------
    schema
        What is publicly known about the table.
    kind
        Which goal to explore: ``"error-rate"``, ``"log-loss"``, ``"r2"`` or ``"mean-squared-error"``; by default that
        of the release, or the usual one.
    rows
        Where the page starts, in persons where the schema names them; by default the release's, or 20,000.
    release
        A release to place among the prices.
    max_epsilon
        Where the budget starts.
    schema_file
        What the command to copy calls the schema.
    worlds, random_state
        Of the simulation.
    """
    shown = None if release is None else _release(release, schema)
    chosen = _kind(schema, kind or (shown or {}).get("kind"))
    if shown is not None and shown["kind"] != chosen.flag.name.removeprefix("--"):
        shown = None  # a release about something else has no place on this axis
    n = rows or (shown or {}).get("rows") or _ROWS
    encoding = Encoding(schema)
    unit = _unit(schema)
    goals = [_goal(chosen, value * (unit if chosen is MeanSquaredError else 1.0)) for value in _VALUES[chosen]]
    made_up = TableWorlds.of(encoding, rows_searched(schema, n), worlds, random_state)
    curves, savings = [], []
    for gamma in GAMMAS:
        pricer = TablePricer(encoding, n, gamma, None, "error", made_up)
        curves.append([_curve(pricer.price(goal), n) for goal in goals])
        if gamma == GAMMAS[1]:
            savings = [saving.to_dict() for saving in pricer.savings(goals[len(goals) // 2])]
            traces = [_trace(pricer, made_up, goal) for goal in goals]
    return {
        "target": schema.target,
        "task": schema.task,
        "classes": None if schema.classes is None else [str(label) for label in schema.classes],
        "noun": "rows" if schema.person is None else "persons",
        "columns": len(schema.columns),
        "encoded": len(encoding.names),
        "schemaFile": schema_file,
        "goal": {
            "flag": chosen.flag.name,
            "name": chosen.name,
            "atLeast": chosen is R2,
            "values": [_rounded(number_of(goal)) for goal in goals],
        },
        "gammas": list(GAMMAS),
        "curves": curves,
        "savings": [{**saving, "saves": _rounded(saving["saves"])} for saving in savings],
        "traces": traces,
        "unit": unit if chosen is MeanSquaredError else 1.0,
        "worlds": worlds,
        "release": shown,
        "start": _start(n, goals, shown, max_epsilon),
    }


def _kind(schema: Schema, stated: str | None) -> type[TestedGoal]:
    labels = schema.task == "classification"
    fitting = [name for name, kind in KINDS.items() if (kind in (ErrorRate, LogLoss)) == labels]
    if stated is None:
        return KINDS[fitting[0]]
    if stated not in fitting:
        raise ValueError(f"the goal must be {' or '.join(fitting)} for {schema.task}, got {stated!r}")
    return KINDS[stated]


def _goal(kind: type[TestedGoal], value: float) -> TestedGoal:
    goal: Goal = kind.stated(value, 0.2)
    assert isinstance(goal, TestedGoal)
    return goal


def _unit(schema: Schema) -> float:
    """Return what 1 in scaled squares is in squared units of the target."""
    return 1.0 if schema.target_bounds is None else ((schema.target_bounds[1] - schema.target_bounds[0]) / 2) ** 2


def _curve(price: GoalPrice, n: int) -> dict[str, Any]:
    """Return ε·n in every world, in order, and that of a close call; None for what is out of reach."""
    way = price.cheapest
    return {
        "products": [_finite(epsilon * n) for epsilon in way.epsilons],
        "closeCall": _finite(way.close_call * n),
    }


def _trace(pricer: TablePricer, worlds: TableWorlds, goal: TestedGoal) -> dict[str, Any] | None:
    try:
        watched = trace(worlds, pricer.free(worlds.encoding.schema, goal))
    except TargetUnreachable:
        return None
    return None if watched is None else watched.to_dict()


def _release(release: Release, schema: Schema) -> dict[str, Any]:
    """Return what of a release is placed on the page."""
    promise = release.promise
    kind = next((goal for goal in GOALS if goal.name is not None and goal.name == promise.goal), None)
    stated = {MeanSquaredError: promise.at_most_caller_units, R2: promise.at_least}
    value = None if kind is None else stated.get(kind, promise.at_most)
    if kind is None or value is None or "schema" not in release.preparation:
        raise ValueError("the release is not of a table with a schema: it has no place on this page")
    if Schema.from_dict(release.preparation["schema"]).target != schema.target:
        raise ValueError(f"the release predicts another column than {schema.target!r}")
    return {
        "kind": kind.flag.name.removeprefix("--"),
        "value": _rounded(value),
        "epsilon": release.epsilon,
        "worst": release.epsilon_worst_case if math.isfinite(release.epsilon_worst_case) else None,
        "rows": int(release.parameters.get("persons", release.parameters["n"])),
        "status": release.status,
        "gamma": promise.failure_probability,
    }


def _start(n: int, goals: Sequence[Goal], shown: dict[str, Any] | None, max_epsilon: float) -> dict[str, Any]:
    middle = number_of(goals[len(goals) // 2])
    if shown is None:
        return {"rows": n, "goal": _rounded(middle), "gamma": 0.1, "budget": max_epsilon}
    return {
        "rows": n,
        "goal": shown["value"],
        "gamma": shown["gamma"] or 0.1,
        "budget": shown["worst"] or max_epsilon,
    }


def _finite(value: float) -> float | None:
    return _rounded(value) if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
