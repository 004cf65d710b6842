"""Prices of goals of a table: the request is the one that a fit would make, and made-up rows are searched for it."""

from __future__ import annotations

import dataclasses
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
from expost.search.chain import ChainPlan
from expost.search.readable import CheckedPlan
from expost.search.request import Plan, Request
from expost.search.run import settle


class TablePricer:
    """Prices goals of one table; keeps worlds and outcomes.

    Parameters
    ----------
    encoding, n
        How the table becomes rows, and how many there are.
    gamma, budget, on_invalid
        As a fit is told: γ, the cap (None: the default) and what bad cells do.
    worlds
        To search in.
    """

    def __init__(
        self, encoding: Encoding, n: int, gamma: float, budget: float | None, on_invalid: str, worlds: TableWorlds
    ) -> None:
        self._encoding, self._n, self._gamma, self._budget = encoding, n, gamma, budget
        self._on_invalid, self._worlds = on_invalid, worlds
        self._outcomes: dict[Goal, list[Outcome]] = {}

    def _request(self, schema: Schema, goal: Goal, budget: float | None) -> Request:
        capped: dict[str, Any] = {} if budget is None else {"max_epsilon": budget}
        model = AccuracyFirstModel(schema, goal, failure_probability=self._gamma, **capped)
        encoding = self._encoding if schema is self._encoding.schema else Encoding(schema)
        return model.request_for(self._n, schema, encoding)

    def free(self, schema: Schema, goal: Goal) -> Request:
        """Return the request with hardly a cap."""
        return self._request(schema, goal, no_cap(self._request(schema, goal, self._budget)))

    def _checked(self, settled: Plan, budget: float) -> CheckedPlan | Plan:
        """Put the look before the search that a fit puts there."""
        return CheckedPlan(settled, (), self._n, self._n, budget) if self._on_invalid == "clip" else settled

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal."""
        schema = self._encoding.schema
        stated = self._request(schema, goal, self._budget)
        unreachable = ""
        try:
            self._checked(settle(stated), stated.budget)
        except TargetUnreachable as reason:
            unreachable = str(reason)
        free = self.free(schema, goal)
        look = 0.0
        if self._on_invalid == "clip":
            look = CheckedPlan(_Nothing(), (), self._n, self._n, math.inf).cost
        self._outcomes[goal] = outcomes = self._worlds.search(free)
        epsilons = [outcome.epsilon + look for outcome in outcomes]
        way = MethodPrice.over(stated.method.name, stated.mechanism.name, epsilons, stated.budget)
        return GoalPrice(goal, self._n, (way,), unreachable)

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
        part = chain.start / dataclasses.replace(chain, budget=no_cap(request)).start
        if part >= 1.0:
            return ""
        return (
            f"within max_epsilon = {request.budget:g} the first model is {1 / part:.2g} times as noisy as it should be "
            f"and λ = {chain.shot(chain.start).lam:.2g} shrinks it {1 / part:.2g} times as strongly: expect little "
            f"more than its constant"
        )


class _Nothing:
    """No search at all, to ask what looking costs."""

    worst_case = 0.0

    def search(self, generator: Any, account: Any, source: Any) -> Any:
        """Refuse."""
        raise NotImplementedError
