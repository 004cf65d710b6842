"""One search on made-up rows, step by step: how noise leaves a hypothesis until a test passes. Public.

What the tests said is released by a search anyway; the rest, true errors among it, may be shown because the rows are
made up.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from expost.erm.measures import target_variance
from expost.goals import R2
from expost.goals.goal import TestedGoal
from expost.noise.source import SeededSource
from expost.planning.savings import minimiser
from expost.planning.simulation import TableWorlds
from expost.planning.worlds import Floats
from expost.privacy.account import Account
from expost.search.chain import ChainPlan, _Chain
from expost.search.request import Request
from expost.search.run import settle
from expost.stopping.noisy_value import ValueTest
from expost.threads import one_thread

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
    """A watched search in one world.

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


def trace(worlds: TableWorlds, request: Request) -> Trace | None:
    """Return a search worth watching, if a world has one: a few levels, and a model in the end.

    Examples
    --------
    >>> from expost import AccuracyFirstModel, ErrorRate, Schema
    >>> from expost.data.encode import Encoding
    >>> from expost.datasets import SURVEY_SCHEMA
    >>> schema = Schema.from_dict(SURVEY_SCHEMA)
    >>> encoding = Encoding(schema)
    >>> request = AccuracyFirstModel(schema, ErrorRate(0.2)).request_for(5000, schema, encoding)
    >>> watched = trace(TableWorlds.of(encoding, 5000, 8, 0), request)
    >>> len(watched.steps) > 1, watched.steps[-1]["passed"]
    (True, True)
    """
    plan = settle(request)
    assert isinstance(plan, ChainPlan)
    worlds = dataclasses.replace(worlds, reach=_CLOSE)
    found: tuple[int, int, _Watched] | None = None
    with one_thread():
        for k in range(len(worlds.features)):
            account = Account(request.method.name, plan.worst_case, secure=False, unit=request.unit)
            chain = _Watched(plan, worlds.generator(k, request), account, SeededSource([worlds.seed, k, 2]))
            if chain.run().status != "released" or chain.levels > _MOST_LEVELS:
                continue
            if found is None or chain.levels > found[0]:
                found = (chain.levels, k, chain)
            if found[0] >= _LEAST_LEVELS:
                break
        return None if found is None else _told(worlds, found[1], found[2], plan)


def _told(worlds: TableWorlds, k: int, chain: _Watched, plan: ChainPlan) -> Trace:
    objective, scale = chain.generator.rows.objective, worlds.encoding.scale
    best = minimiser(objective, 1e-4)
    spread = objective.X.std(axis=0)
    order = np.argsort(-np.abs(best) * spread, kind="stable")[:_SHOWN_COLUMNS]
    assert objective.counts is not None  # worlds are counted
    many = objective.counts / objective.n
    rows = np.random.default_rng([worlds.seed, k, 3]).choice(len(many), _SHOWN_ROWS, p=many)
    steps = []
    for step in chain.steps:
        true = plan.goal.shortfall(objective, step.theta)
        values = [_value(plan.goal, objective, missed) for missed in (true, step.noisy, step.noisy + step.margin)]
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
    names = tuple(worlds.encoding.names[j] for j in order)
    return Trace(names, tuple(best[order] / scale), tuple(objective.y[rows]), tuple(steps))


def _value(goal: TestedGoal, objective: Any, shortfall: float) -> float:
    """Return the goal's own measure, scaled units, for a shortfall."""
    if isinstance(goal, R2):
        return float(goal.at_least - shortfall / target_variance(objective))
    return float(goal.at_most + shortfall)


def _short(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
