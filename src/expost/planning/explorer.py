"""A page to explore prices on: a row of goals, what costs most, and searches to watch. Public numbers only.

*Numbers.* Prices are computed for one number of rows and a few γ (`expost.planning`). The page scales them by 1/n,
since ε·n hardly depends on n, and goes from one computed goal or γ to the next by straight lines in the logarithm of ε.

*Searches to watch.* How noise leaves a hypothesis until a test passes, step by step. What the tests said is released by
a search anyway; the rest, true errors among it, may be shown because the rows are synthetic.

*The page* is one file, markup, style, script and numbers together. It forbids itself every request (a content security
policy of ``default-src 'none'``), so it works from a disk without a network, and what is moved about on it is told to
nobody. Served, it has one address and one answer, on this machine.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import numpy as np

from expost import validation
from expost.account.account import Account
from expost.exceptions import TargetUnreachable
from expost.goals import GOALS, Goal, words_of
from expost.goals.goal import TestedGoal, square_unit, tested_kind
from expost.mechanisms.objective.chain import ChainPlan, ChainSearch
from expost.noise.source import SeededSource
from expost.numeric import one_thread
from expost.planning.planner import TablePricer, rising
from expost.planning.result import GoalPrice
from expost.planning.savings import minimiser
from expost.planning.synthetic import Floats, SyntheticTables
from expost.release.release import Release
from expost.search.noisy_test import laplace_deviations
from expost.search.request import Request
from expost.search.run import settle
from expost.table import Encoding, Schema

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


class _Watched(ChainSearch):
    """The search, with each test written down: the hypothesis, the noisy shortfall, its margin and the outcome."""

    def __init__(self, plan: ChainPlan, generator: Any, account: Account, source: SeededSource) -> None:
        measured = plan.after_measuring(generator, account, source)
        super().__init__(measured, *measured.walk(generator), account, source)
        self.generator = generator
        self.watched: list[tuple[Floats, float, float, dict[str, Any]]] = []

    def _passes(self, model: Floats, x: float) -> bool:
        passed, tests = super()._passes(model, x), self.tests
        margin = laplace_deviations(self.plan.gamma(self.stages)) * tests.scale
        told = {"spent": self.account.unit.charge(self.account.total), "passed": passed}
        self.watched.append((model.copy(), tests.noisy, margin, told))
        return passed


def trace(tables: SyntheticTables, encoding: Encoding, request: Request) -> dict[str, Any] | None:
    """Return a search worth watching, if a table has one: a few levels, and a model in the end.

    Encoded columns that matter most, with their coefficients without noise; targets of some rows, scaled to [−1, 1];
    and for each test coefficients of those columns, predictions of those rows, and what was measured.

    Examples
    --------
    >>> from expost import AccuracyFirstModel, ErrorRate, Schema
    >>> from expost.table.encoding import Encoding
    >>> from expost.datasets import SURVEY_SCHEMA
    >>> schema = Schema.from_dict(SURVEY_SCHEMA)
    >>> encoding = Encoding(schema)
    >>> request = AccuracyFirstModel(schema, ErrorRate(0.2)).request_for(5000, schema, encoding)
    >>> watched = trace(SyntheticTables.of(encoding, 5000, 8, 0), encoding, request)
    >>> len(watched["steps"]) > 1, watched["steps"][-1]["passed"]
    (True, True)
    """
    plan = settle(request)
    assert isinstance(plan, ChainPlan)
    tables = dataclasses.replace(tables, reach=_CLOSE)
    found: tuple[int, _Watched] | None = None
    with one_thread():
        for k in range(len(tables.features)):
            account, source = tables.account(request, plan), SeededSource([tables.seed, k, 2])
            chain = _Watched(plan, tables.generator(k, request), account, source)
            if chain.run().status != "released" or chain.stages > _MOST_LEVELS:
                continue
            if found is None or chain.stages > found[1].stages:
                found = (k, chain)
            if found[1].stages >= _LEAST_LEVELS:
                break
        return None if found is None else _told(encoding, [tables.seed, found[0], 3], found[1])


def _told(encoding: Encoding, seed: list[int], chain: _Watched) -> dict[str, Any]:
    """Return plain values, rounded to what a screen shows."""
    objective, scale, goal = chain.generator.rows.objective, encoding.scale, chain.plan.goal
    best = minimiser(objective, 1e-4)
    order = np.argsort(-np.abs(best) * objective.X.std(axis=0), kind="stable")[:_SHOWN_COLUMNS]
    assert objective.counts is not None  # rows of synthetic tables are counted
    many = objective.counts / objective.n
    rows = np.random.default_rng(seed).choice(len(many), _SHOWN_ROWS, p=many)

    def step(theta: Floats, noisy: float, margin: float, told: dict[str, Any]) -> dict[str, Any]:
        missed = {"true": goal.shortfall(objective, theta), "measured": noisy, "at_worst": noisy + margin}
        return {
            "coefficients": _short(theta[order] / scale),
            "predictions": _short(objective.X[rows] @ theta),
            **{name: goal.reached(shortfall, objective) for name, shortfall in missed.items()},
            **told,
        }

    return {
        "columns": [encoding.names[j] for j in order],
        "best": _short(best[order] / scale),
        "actual": _short(objective.y[rows]),
        "steps": [step(*test) for test in chain.watched],
    }


def _short(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


GAMMAS = (0.02, validation.GAMMA, 0.3)
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
    worlds: int = validation.TABLES,
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
    unit = chosen.unit(square_unit(schema.scaled_target))
    goals = [chosen.stated(value * unit) for value in chosen.offered]
    tables: int | SyntheticTables = worlds
    curves, savings = [], []
    for gamma in GAMMAS:
        pricer = TablePricer(encoding, n, gamma, None, tables=tables, seed=random_state)
        tables = pricer.drawn  # the same for every γ
        curves.append([_curve(price, n) for price in rising({goal: pricer.price(goal) for goal in goals}).values()])
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
    kinds = [kind for kind in map(tested_kind, GOALS) if kind is not None and kind.labels == labels]
    fitting = {kind.flag.kind: kind for kind in kinds if kind.flag.explored}
    if stated is None:
        return next(iter(fitting.values()))
    if stated not in fitting:
        raise ValueError(f"the goal must be {' or '.join(fitting)} for {schema.task}, got {stated!r}")
    return fitting[stated]


def _curve(price: GoalPrice, n: int) -> dict[str, Any]:
    """Return ε·n in every table, in order, and that of a close call; None for what is out of reach."""
    way = price.cheapest
    return {
        "products": [_finite(epsilon * n) for epsilon in way.epsilons],
        "closeCall": _finite(way.close_call * n),
    }


def _trace(pricer: TablePricer, goal: TestedGoal) -> dict[str, Any] | None:
    try:
        return trace(pricer.drawn, pricer.encoding, pricer.free(goal))
    except TargetUnreachable:
        return None


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
        return {"rows": n, "goal": _rounded(middle), "gamma": validation.GAMMA, "budget": max_epsilon}
    return {
        "rows": n,
        "goal": shown["value"],
        "gamma": shown["gamma"] or validation.GAMMA,
        "budget": shown["worst"] or max_epsilon,
    }


def _finite(value: float) -> float | None:
    return _rounded(value) if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
