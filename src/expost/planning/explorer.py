"""What the page knows: prices of a row of goals, what costs most, and searches to watch. Public numbers only.

Prices are computed for one number of rows and a few γ (`expost.planning`). The page scales them by 1/n, since ε·n
hardly depends on n, and goes from one computed goal or γ to the next by straight lines in the logarithm of ε.

The page as one file: markup, style, script and numbers together, nothing fetched from anywhere.

The page forbids itself every request (a content security policy of ``default-src 'none'``), so it works from a disk
without a network, and what is moved about on it is told to nobody.

The page served to this machine: one address, one answer.

One search on made-up rows, step by step: how noise leaves a hypothesis until a test passes. Public.

What the tests said is released by a search anyway; the rest, true errors among it, may be shown because the rows are
made up.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.exceptions import TargetUnreachable
from expost.goals import GOALS, Goal, words_of
from expost.goals.goal import TestedGoal, tested_kind
from expost.mechanisms.objective.chain import ChainPlan, _Chain
from expost.noise.source import SeededSource
from expost.planning.planner import TABLES
from expost.planning.prices import TablePricer
from expost.planning.result import GoalPrice
from expost.planning.savings import minimiser
from expost.planning.simulation import SyntheticTables
from expost.planning.synthetic import Floats
from expost.release.release import Release
from expost.search.noisy_test import ValueTest
from expost.search.request import Request
from expost.search.run import settle
from expost.table.encoding import Encoding
from expost.table.schema import Schema
from expost.threads import one_thread

_SCRIPTS = ("model.js", "chart.js", "watch.js", "main.js")


def page(data: dict[str, Any]) -> str:
    """Return the HTML of the page for what `explorer_data` computed.

    Examples
    --------
    >>> text = page({"target": "</script><b>"})
    >>> text.startswith("<!doctype html>"), "</script><b>" in text
    (True, False)
    """
    home = files("expost.planning") / "assets"

    def read(name: str) -> str:
        return (home / name).read_text(encoding="utf-8")

    # a name in a schema must not end the script that holds it
    numbers = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    numbers = numbers.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    parts = {"style": read("style.css"), "script": "\n".join(map(read, _SCRIPTS)), "data": numbers}
    text = read("page.html")
    for name, part in parts.items():
        before, after = text.split(f"<!-- {name} -->")
        text = before + part + after
    return text


LOOPBACK = "127.0.0.1"


def server_of(text: str, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the page, bound to the loopback interface; 0 is any port that is free.

    Examples
    --------
    >>> with server_of("<!doctype html>") as server:
    ...     server.server_address[0]
    '127.0.0.1'
    """
    body = text.encode("utf-8")

    class Handler(BaseHTTPRequestHandler):
        """Answers with the page, to those who asked for this machine by its own name."""

        def do_GET(self) -> None:
            """Send the page."""
            self._answer(send=True)

        def do_HEAD(self) -> None:
            """Send what it is."""
            self._answer(send=False)

        def _answer(self, *, send: bool) -> None:
            # another name would be a foreign page that leads here
            here = (self.headers.get("Host") or "").rsplit(":", 1)[0] in (LOOPBACK, "localhost")
            found = here and self.path.split("?")[0] == "/"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if found and send:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)


_SHOWN_ROWS, _SHOWN_COLUMNS = 90, 12
_LEAST_LEVELS, _MOST_LEVELS = 3, 6  # worth watching
_CLOSE = (0.9, 0.995)  # such searches are found where the best model hardly reaches the goal


@dataclass(frozen=True, repr=False)
class Step:
    """A test of a hypothesis: the hypothesis, what it cost so far, the noisy shortfall, its margin and the outcome."""

    theta: Floats
    spent: float
    noisy: float
    margin: float
    passed: bool


class _Watched(_Chain):
    """The search, with what it does written down."""

    def __init__(self, plan: ChainPlan, generator: Any, account: Account, source: SeededSource) -> None:
        super().__init__(plan, generator, account, source)
        self.steps: list[Step] = []

    def _ask(self, theta: Floats, epsilon: float) -> tuple[bool, float]:
        gamma = self._gamma()
        passed, noisy = super()._ask(theta, epsilon)
        goal, n = self.plan.goal, self.plan.n
        error = goal.shortfall_error(n, theta.size, theta)
        margin = ValueTest.of(goal.shortfall_sensitivity(n), error, epsilon).margin(gamma, error)
        self.steps.append(Step(theta.copy(), self.account.unit.charge(self.account.total), noisy, margin, passed))
        return passed, noisy


@dataclass(frozen=True, repr=False)
class Trace:
    """A watched search of one table.

    Attributes
    ----------
    columns, best
        Encoded columns that matter most, and their coefficients without noise.
    actual
        The targets of some rows, scaled to [−1, 1].
    steps
        For each test: coefficients of those columns, predictions of those rows, and what was measured.
    """

    columns: tuple[str, ...]
    best: tuple[float, ...]
    actual: tuple[float, ...]
    steps: tuple[dict[str, Any], ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, rounded to what a screen shows."""
        return {
            "columns": list(self.columns),
            "best": _short(self.best),
            "actual": _short(self.actual),
            "steps": [
                {**step, "coefficients": _short(step["coefficients"]), "predictions": _short(step["predictions"])}
                for step in self.steps
            ],
        }


def trace(tables: SyntheticTables, encoding: Encoding, request: Request) -> Trace | None:
    """Return a search worth watching, if a table has one: a few levels, and a model in the end.

    Examples
    --------
    >>> from expost import AccuracyFirstModel, ErrorRate, Schema
    >>> from expost.table.encoding import Encoding
    >>> from expost.datasets import SURVEY_SCHEMA
    >>> schema = Schema.from_dict(SURVEY_SCHEMA)
    >>> encoding = Encoding(schema)
    >>> request = AccuracyFirstModel(schema, ErrorRate(0.2)).request_for(5000, schema, encoding)
    >>> watched = trace(SyntheticTables.of(encoding, 5000, 8, 0), encoding, request)
    >>> len(watched.steps) > 1, watched.steps[-1]["passed"]
    (True, True)
    """
    plan = settle(request)
    assert isinstance(plan, ChainPlan)
    tables = dataclasses.replace(tables, reach=_CLOSE)
    found: tuple[int, int, _Watched] | None = None
    with one_thread():
        for k in range(len(tables.features)):
            account, source = tables.account(request, plan), SeededSource([tables.seed, k, 2])
            chain = _Watched(plan, tables.generator(k, request), account, source)
            if chain.run().status != "released" or chain.levels > _MOST_LEVELS:
                continue
            if found is None or chain.levels > found[0]:
                found = (chain.levels, k, chain)
            if found[0] >= _LEAST_LEVELS:
                break
        return None if found is None else _told(encoding, [tables.seed, found[1], 3], found[2], plan)


def _told(encoding: Encoding, seed: list[int], chain: _Watched, plan: ChainPlan) -> Trace:
    objective, scale = chain.generator.rows.objective, encoding.scale
    best = minimiser(objective, 1e-4)
    spread = objective.X.std(axis=0)
    order = np.argsort(-np.abs(best) * spread, kind="stable")[:_SHOWN_COLUMNS]
    assert objective.counts is not None  # rows of synthetic tables are counted
    many = objective.counts / objective.n
    rows = np.random.default_rng(seed).choice(len(many), _SHOWN_ROWS, p=many)
    steps = []
    for step in chain.steps:
        true = plan.goal.shortfall(objective, step.theta)
        values = [plan.goal.reached(missed, objective) for missed in (true, step.noisy, step.noisy + step.margin)]
        steps.append(
            {
                "coefficients": (step.theta[order] / scale).tolist(),
                "predictions": (objective.X[rows] @ step.theta).tolist(),
                "spent": step.spent,
                "true": values[0],
                "measured": values[1],
                "at_worst": values[2],
                "passed": step.passed,
            }
        )
    names = tuple(encoding.names[j] for j in order)
    return Trace(names, tuple(best[order] / scale), tuple(objective.y[rows]), tuple(steps))


def _short(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


GAMMAS = (0.02, 0.1, 0.3)
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
    worlds: int = TABLES,
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
    if shown is not None and shown["kind"] != chosen.flag.kind:
        shown = None  # a release about something else has no place on this axis
    n = rows or (shown or {}).get("rows") or _ROWS
    encoding = Encoding(schema)
    unit = chosen.unit(_square_unit(schema))
    goals = [chosen.stated(value * unit) for value in chosen.offered]
    tables: int | SyntheticTables = worlds
    curves, savings = [], []
    for gamma in GAMMAS:
        pricer = TablePricer(encoding, n, gamma, None, tables=tables, seed=random_state)
        tables = pricer.drawn  # the same for every γ
        curves.append([_curve(pricer.price(goal), n) for goal in goals])
        if gamma == GAMMAS[1]:
            savings = [saving.to_dict() for saving in pricer.savings(goals[len(goals) // 2])]
            traces = [_trace(pricer, goal) for goal in goals]
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
            "atLeast": chosen.sign == "≥",
            "values": [_rounded(goal.number) for goal in goals],
        },
        "gammas": list(GAMMAS),
        "curves": curves,
        "savings": [{**saving, "saves": _rounded(saving["saves"])} for saving in savings],
        "traces": traces,
        "unit": unit,
        "worlds": worlds,
        "release": shown,
        "start": _start(n, goals, shown, max_epsilon),
    }


def _kind(schema: Schema, stated: str | None) -> type[TestedGoal]:
    """Return the goal of that name, or the first for the schema's target."""
    labels = "binary" if schema.task == "classification" else "real"
    fitting = {kind.flag.kind: kind for kind in map(tested_kind, GOALS) if kind is not None and kind.labels == labels}
    if stated is None:
        return next(iter(fitting.values()))
    if stated not in fitting:
        raise ValueError(f"the goal must be {' or '.join(fitting)} for {schema.task}, got {stated!r}")
    return fitting[stated]


def _square_unit(schema: Schema) -> float:
    """Return what 1 in scaled squares is in squared units of the target."""
    return 1.0 if schema.target_bounds is None else ((schema.target_bounds[1] - schema.target_bounds[0]) / 2) ** 2


def _curve(price: GoalPrice, n: int) -> dict[str, Any]:
    """Return ε·n in every table, in order, and that of a close call; None for what is out of reach."""
    way = price.cheapest
    return {
        "products": [_finite(epsilon * n) for epsilon in way.epsilons],
        "closeCall": _finite(way.close_call * n),
    }


def _trace(pricer: TablePricer, goal: TestedGoal) -> dict[str, Any] | None:
    try:
        watched = trace(pricer.drawn, pricer.encoding, pricer.free(goal))
    except TargetUnreachable:
        return None
    return None if watched is None else watched.to_dict()


def _release(release: Release, schema: Schema) -> dict[str, Any]:
    """Return what of a release is placed on the page."""
    promise = release.promise
    kind = words_of(promise.goal).kind
    numbers = (promise.at_least, promise.at_most_caller_units, promise.at_most)
    value = next((number for number in numbers if number is not None), None)
    if not kind or value is None or "schema" not in release.preparation:
        raise ValueError("the release is not of a table with a schema: it has no place on this page")
    if Schema.from_dict(release.preparation["schema"]).target != schema.target:
        raise ValueError(f"the release predicts another column than {schema.target!r}")
    return {
        "kind": kind,
        "value": _rounded(value),
        "epsilon": release.epsilon,
        "worst": release.epsilon_worst_case if math.isfinite(release.epsilon_worst_case) else None,
        "rows": int(release.parameters.get("persons", release.parameters["n"])),
        "status": release.status,
        "gamma": promise.failure_probability,
    }


def _start(n: int, goals: Sequence[Goal], shown: dict[str, Any] | None, max_epsilon: float) -> dict[str, Any]:
    middle = goals[len(goals) // 2].number
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
