"""A page to explore prices on: a row of goals, what costs most, and searches to watch. Public numbers only.

*Numbers.* Prices are those of plans (`expost.planning`) for one number of rows and a few γ, and at one γ for a few
numbers that one may expect a model to reach. The page scales them by 1/n, since ε·n hardly depends on n, and goes from
one computed goal or γ to the next by straight lines in the logarithm of ε. At a δ they are of the way that a fit takes
if none is stated, at one γ: there every table is searched in rows written out, which takes longer.

*Several goals at once* have no number to move, so all their numbers move together: to so many times the odds.

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
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

import numpy as np

from expost import defaults, validation
from expost.account.account import Account
from expost.exceptions import TargetUnreachable
from expost.goals import GOALS
from expost.goals.flags import words_of
from expost.goals.goal import TestedGoal, square_unit, tested_kind
from expost.goals.labels_and_base_rate import CountedGoal
from expost.mechanisms.objective.chain import ChainPlan, ChainSearch
from expost.noise.source import SeededSource
from expost.numeric import one_thread
from expost.planning.planner import TablePricer, most_tables, rising
from expost.planning.result import LIKELY, GoalPrice
from expost.planning.savings import minimiser
from expost.planning.synthetic import Floats, SyntheticTables
from expost.release.release import Release
from expost.search.noisy_test import laplace_deviations
from expost.search.request import Request
from expost.search.run import settle
from expost.shown import down, exact, up
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
    numbered = goal.number_at(1.0) is not None  # otherwise a shortfall is shown as it is
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
            **{name: goal.reached(short, objective) if numbered else short for name, short in missed.items()},
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


GAMMAS = (0.02, defaults.FAILURE_PROBABILITY, 0.3)
#: At these parts of what a goal allows lies what one may expect, for some of the goals, and in so many tables.
_EXPECTED, _EXPECTED_TABLES = 0.85, 5
#: Tables at a δ, where all of their rows are read at every step.
_DELTA_TABLES, _DELTA_EXPECTED_TABLES = 4, 3
_ODDS = (0.25, 0.5, 1.0, 2.0, 4.0)
_ROWS = 20_000
_DIGITS = 5


def explorer_data(
    schema: Schema,
    *,
    kind: str | None = None,
    goal: TestedGoal | None = None,
    rows: int | None = None,
    release: Release | None = None,
    delta: float | None = None,
    class_weight: Mapping[Any, float] | None = None,
    option: str = "",
    max_epsilon: float = 1.0,
    schema_file: str = "schema.toml",
    worlds: int = 20,
    random_state: int = 0,
) -> dict[str, Any]:
    """Compute everything the page shows; a function of its arguments alone.

    Parameters
    ----------
    schema
        What is publicly known about the table.
    kind
        Which goal to explore: ``"error-rate"``, ``"precision"``, ``"f1"``, ``"log-loss"``, ``"r2"`` or
        ``"mean-squared-error"``; by default that of the release, or the usual one.
    goal
        Where the page starts, instead; several goals at once are moved together.
    rows
        Where the page starts, in persons where the schema names them; by default the release's, or 20,000.
    release
        A release to place among the prices.
    delta
        Of the fits that are priced: by default the release's, or 0.
    class_weight, option
        As those fits are told, and as the command to copy says it.
    max_epsilon
        Where the budget starts.
    schema_file
        What the command to copy calls the schema.
    worlds, random_state
        Of the simulation.
    """
    if goal is not None and kind is not None:
        raise ValueError("state a kind of goal or a goal, not both")
    at = validation.delta((0.0 if release is None else release.delta) if delta is None else delta)
    encoding = Encoding(schema)
    square = square_unit(schema.scaled_target)
    axis = _Axis.of(schema, kind, goal, release, square)
    shown, elsewhere = (None, "") if release is None else _release(release, schema, axis, at)
    weights = validation.class_weights(class_weight, schema.classes)
    if release is not None and tuple(release.parameters.get("class_weights", (1.0, 1.0))) != weights:
        shown, elsewhere = None, "The release was fitted with other class weights: it has no place among these prices."
    n = rows or (shown or {}).get("rows") or _ROWS
    gammas = GAMMAS if not at else ((shown or {}).get("gamma") or defaults.FAILURE_PROBABILITY,)
    usual = gammas[len(gammas) // 2]  # where something is expected, prices are at this one
    many = most_tables(worlds, len(encoding.names), at)
    many, few = (min(many, _DELTA_TABLES), _DELTA_EXPECTED_TABLES) if at else (many, _EXPECTED_TABLES)
    few = min(many, few)
    drawn: int | SyntheticTables = many
    curves: list[list[list[dict[str, Any]]]] = [[] for _ in (None, *axis.expected)]
    for gamma in gammas:
        told: Any = {"seed": random_state, "only_taken": True, "class_weight": class_weight}
        pricer = TablePricer(encoding, n, gamma, None, at, tables=drawn, **told)
        drawn = pricer.drawn  # the same for every γ
        prices = rising({each: pricer.price(each) for each in axis.goals})
        curves[0].append([_curve(price, n) for price in prices.values()])
        if gamma == usual:
            savings = [] if at else pricer.savings(axis.goals[len(axis.goals) // 2])
            traces = [_trace(pricer, each) for each in axis.goals]
            ways = [price.cheapest.perturbation for price in prices.values()]
            fewer = dataclasses.replace(drawn, features=drawn.features[:few])
            for k, best in enumerate(axis.expected, 1):
                expecting = dataclasses.replace(pricer, tables=fewer, expected=(best, axis.goals[0]), _outcomes={})
                found = rising({each: expecting.price(each) for each in axis.goals})
                curves[k].append([_curve(price, n) for price in found.values()])
    return {
        "target": schema.target,
        "task": schema.task,
        "classes": None if schema.classes is None else [str(label) for label in schema.classes],
        "noun": "rows" if schema.person is None else "persons",
        "columns": len(schema.columns),
        "encoded": len(encoding.names),
        "schemaFile": schema_file,
        "option": option,
        "goal": axis.to_dict(),
        "gammas": list(gammas),
        "gamma": usual,
        "likely": list(LIKELY),
        "expected": [None, *(_rounded(best.number) for best in axis.expected)],
        "curves": curves,
        "savings": [{**saving.to_dict(), "saves": _rounded(saving.saves)} for saving in savings],
        "traces": traces,
        "unit": axis.goals[0].unit(square),
        "worlds": [many, few],
        "delta": exact(at) if at else "",
        "ways": ways if at else [],
        "release": shown,
        "elsewhere": elsewhere,
        "start": _start(n, axis, shown, max_epsilon, usual),
    }


@dataclasses.dataclass(frozen=True)
class _Axis:
    """Goals from loose to strict, where each stands, where the page starts, and what may be expected of models."""

    goals: tuple[TestedGoal, ...]
    places: tuple[float, ...]
    start: float
    expected: tuple[TestedGoal, ...] = ()

    @classmethod
    def of(
        cls, schema: Schema, kind: str | None, stated: TestedGoal | None, release: Release | None, square: float
    ) -> _Axis:
        """Return the goals of a kind, with the one that is stated among them; or that one made looser and stricter."""
        if isinstance(stated, CountedGoal) and not (len(stated.each) == 1 and stated.flag.explored):
            together = tuple(stated.at_odds(times) for times in _ODDS)
            return cls(together, tuple(math.log2(times) for times in _ODDS), 0.0)
        if stated is not None:
            kind = stated.flag.kind
        elif kind is None and release is not None:
            words = words_of(release.promise.goal)
            kind = words.kind if words.name and words.explored else None
        chosen = _kind(schema, kind)
        offered = [value * chosen.unit(square) for value in chosen.offered]
        numbers = {*offered, *([] if stated is None else [stated.number])}
        goals = tuple(chosen.stated(number) for number in sorted(numbers, reverse=chosen.sign == "≤"))
        best = [goal.number_at(_EXPECTED) for goal in goals[1:-1:2] + goals[-1:]]
        expected = tuple(chosen.stated(float(f"{number:.2g}")) for number in best if number is not None)
        start = offered[len(offered) // 2] if stated is None else stated.number
        return cls(goals, tuple(goal.number for goal in goals), start, expected)

    @property
    def together(self) -> bool:
        """Whether places are no numbers of a goal but say how strict all are."""
        return self.places[0] < 0 < self.places[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return what the page says and draws them by."""
        first = self.goals[self.places.index(0.0)] if self.together else self.goals[0]
        parts: tuple[TestedGoal, ...] = first.each if isinstance(first, CountedGoal) else (first,)
        return {
            "values": [_rounded(place) for place in self.places],
            "together": self.together,
            "numbered": first.number_at(1.0) is not None,
            "parts": [
                {
                    "flag": part.option.rpartition(" ")[0],
                    "name": part.name,
                    "atLeast": part.sign == "≥",
                    "number": part.number,
                    "full": _finite(part.full) if isinstance(part, CountedGoal) else None,
                }
                for part in parts
            ],
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
    """Return a pure search, also where prices are at a δ."""
    try:
        return trace(dataclasses.replace(pricer.drawn, n=pricer.n), pricer.encoding, pricer.free(goal))
    except TargetUnreachable:
        return None


def _release(release: Release, schema: Schema, axis: _Axis, delta: float) -> tuple[dict[str, Any] | None, str]:
    """Return what of a release is placed on the page, or why it has no place there."""
    promise = release.promise
    if promise.goal is None or "schema" not in release.preparation:
        raise ValueError("the release is not of a table with a schema: it has no place on this page")
    if Schema.from_dict(release.preparation["schema"]).target != schema.target:
        raise ValueError(f"the release predicts another column than {schema.target!r}")
    if axis.together:
        first = axis.goals[axis.places.index(0.0)]
        value = 0.0 if promise.goal == first.name and dict(promise.goals or {}) == first.value else None
    else:
        numbers = (promise.at_least, promise.at_most_caller_units, promise.at_most)
        value = next((number for number in numbers if number is not None), None)
        value = value if promise.goal == axis.goals[0].name else None
    if value is None:
        return None, f"The release is about another goal ({promise.goal}): it has no place on this page."
    if release.delta != delta:
        there = f"at δ = {exact(release.delta)}" if release.delta else "without a δ"
        return None, f"The release states its ε {there}: it has no place among these prices."
    return {
        "value": _rounded(value),
        "epsilon": release.epsilon,
        "paid": up(release.epsilon),
        "worst": release.epsilon_worst_case if math.isfinite(release.epsilon_worst_case) else None,
        "rows": int(release.parameters.get("persons", release.parameters["n"])),
        "status": release.status,
        "gamma": promise.failure_probability,
    }, ""


def _start(n: int, axis: _Axis, shown: dict[str, Any] | None, max_epsilon: float, usual: float) -> dict[str, Any]:
    start = {"rows": n, "goal": _rounded(axis.start), "gamma": usual, "budget": max_epsilon, "expect": 0}
    if shown is not None:
        start |= {"goal": shown["value"], "gamma": shown["gamma"] or usual}
        if shown["worst"]:  # a cap of 2 may have been used but for a rounding error
            start["budget"] = float(down(shown["worst"] * (1.0 + 1e-9)))
    return start


def _finite(value: float) -> float | None:
    return _rounded(value) if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
