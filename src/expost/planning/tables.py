"""Prices of goals of a table: the request is the one that a fit would make, and made-up rows are searched for it."""

from __future__ import annotations

import math
from typing import Any

from expost.data.encode import Encoding
from expost.data.schema import Schema
from expost.estimators.model import AccuracyFirstModel
from expost.exceptions import TargetUnreachable
from expost.goals import Goal, TestedGoal
from expost.planning.result import GoalPrice, MethodPrice, Saving
from expost.planning.savings import savings
from expost.planning.simulation import Outcome, TableWorlds, no_cap
from expost.rounding import down
from expost.search.chain import ChainPlan
from expost.search.readable import CheckedPlan
from expost.search.request import Plan, Request
from expost.search.run import settle


class TablePricer:
    """Prices goals of one table; keeps worlds and outcomes.

    Parameters
    ----------
    encoding, count
        How the table becomes rows, and how many rows there are, or persons where the schema names them.
    gamma, budget, on_invalid
        As a fit is told: γ, the cap (None: the default) and what bad cells do.
    worlds
        To search in.
    """

    def __init__(
        self, encoding: Encoding, count: int, gamma: float, budget: float | None, on_invalid: str, worlds: TableWorlds
    ) -> None:
        self._encoding, self._count, self._gamma, self._budget = encoding, count, gamma, budget
        self._n = rows_searched(encoding.schema, count)
        self._on_invalid, self._worlds = on_invalid, worlds
        self._outcomes: dict[Goal, list[Outcome]] = {}

    def _model(self, schema: Schema, goal: Goal, budget: float | None) -> AccuracyFirstModel:
        capped: dict[str, Any] = {} if budget is None else {"max_epsilon": budget}
        return AccuracyFirstModel(schema, goal, failure_probability=self._gamma, **capped)

    def _request(self, schema: Schema, goal: Goal, budget: float | None) -> Request:
        encoding = self._encoding if schema is self._encoding.schema else Encoding(schema)
        return self._model(schema, goal, budget).request_for(self._n, schema, encoding)

    def free(self, schema: Schema, goal: Goal) -> Request:
        """Return the request with hardly a cap."""
        return self._request(schema, goal, no_cap(self._request(schema, goal, self._budget)))

    def _look(self, settled: Plan, request: Request, budget: float) -> float:
        """Return what looking whether the table fits costs, or raise if a fit could not afford it."""
        if self._on_invalid != "clip":
            return 0.0
        return request.unit.charge(CheckedPlan(settled, (), self._n, self._n, budget, request.unit).cost)

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal."""
        schema = self._encoding.schema
        stated = self._request(schema, goal, self._budget)
        unreachable = ""
        try:
            self._look(settle(stated), stated, stated.budget)
        except TargetUnreachable as reason:
            unreachable = str(reason)
        free = self.free(schema, goal)
        look = self._look(_Nothing(), free, math.inf)
        self._outcomes[goal] = outcomes = self._worlds.search(free)
        epsilons = [outcome.epsilon + look for outcome in outcomes]
        worst = float(self._model(schema, goal, self._budget).max_epsilon)
        way = MethodPrice.over(stated.method.name, stated.mechanism.name, epsilons, worst)
        return GoalPrice(goal, self._count, (way,), unreachable)

    def savings(self, goal: Goal) -> tuple[Saving, ...]:
        """Say what would make a goal cheaper."""
        return savings(self._worlds, lambda schema: self.free(schema, goal), self._outcomes[goal])

    def shrunk(self, goal: Goal) -> str:
        """Warn if the cap leaves only a first model that λ pulls to its constant."""
        request = self._request(self._encoding.schema, goal, self._budget)
        assert isinstance(request.goal, TestedGoal)
        assert request.mechanism.geometry is not None
        chain = ChainPlan(
            request.goal, request.goal.chain(), request.mechanism.geometry, self._n, self._gamma, request.budget
        )
        part = chain.start / chain.usual_start
        if part >= 1.0:
            return ""
        cap, times = down(request.unit.charge(request.budget)), f"{1 / part:.2g} times"
        return (
            f"for an ε of {cap} the first model is {times} as noisy as it should be, and shrunk {times} as strongly: "
            f"expect little more than its constant"
        )


def rows_searched(schema: Schema, count: int) -> int:
    """Return how many rows a fit searches: where the schema names persons, so many of each."""
    return count * (schema.rows_per_person or 1)


class _Nothing:
    """No search at all, to ask what looking costs."""

    worst_case = 0.0

    def search(self, generator: Any, account: Any, source: Any) -> Any:
        """Refuse."""
        raise NotImplementedError
