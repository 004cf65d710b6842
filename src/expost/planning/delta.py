"""Prices of goals of a table under approximate privacy: the searches themselves, on made-up rows, way by way.

*Few rows stand for many.* Noise in a mean gradient or a shortfall is 1/(n√ρ), so a world is searched with few rows and
what it spent is scaled (`expost.planning.rescaled`); what that comes to at δ is the price. Rows of a world are repeated
until there are enough, as many as made-up rows say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from expost.data.encode import Encoding
from expost.data.rows import Rows
from expost.estimators.model import AccuracyFirstModel
from expost.exceptions import TargetUnreachable
from expost.goals import Goal
from expost.mechanisms.objective import ObjectivePerturbation
from expost.noise.source import SeededSource
from expost.planning.rescaled import rescaled
from expost.planning.result import PURE, GoalPrice, MethodPrice
from expost.planning.simulation import TableWorlds
from expost.planning.tables import TablePricer
from expost.privacy.release import Release
from expost.privacy.renyi import Curve
from expost.privacy.renyi_account import RenyiAccount
from expost.search.readable import CheckedPlan
from expost.search.request import Request
from expost.search.run import settle
from expost.search.staged import StagedPlan
from expost.threads import one_thread

#: Where the noise may go, as callers state it.
WAYS = ("descent", "objective", "covariance")
ROWS = 6000  # of a world: with fewer, chance makes goals easier to reach than they are with many
_HARDLY_A_CAP = 300.0


@dataclass(frozen=True)
class DeltaPricer:
    """Prices goals of one table at δ.

    Attributes
    ----------
    encoding, n, count
        How the table becomes rows, how many rows are searched, and how many rows or persons are stated.
    gamma, budget, delta, on_invalid
        As a fit is told.
    worlds
        To search in, of few rows: the same for every way, and for pure noise the same as without a δ.
    """

    encoding: Encoding
    n: int
    count: int
    gamma: float
    budget: float | None
    delta: float
    on_invalid: str
    worlds: TableWorlds

    @classmethod
    def of(
        cls,
        encoding: Encoding,
        count: int,
        gamma: float,
        budget: float | None,
        delta: float,
        on_invalid: str,
        worlds: int,
        seed: int,
    ) -> DeltaPricer:
        """Draw the worlds."""
        each = encoding.schema.rows_per_person or 1
        few = each * max(1, min(count, ROWS // each))
        made_up = TableWorlds.of(encoding, few, worlds, seed)
        return cls(encoding, count * each, count, gamma, budget, delta, on_invalid, made_up)

    def _model(self, goal: Goal, way: str | None, budget: float | None) -> AccuracyFirstModel:
        capped = {} if budget is None else {"max_epsilon": budget}
        return AccuracyFirstModel(
            self.encoding.schema,
            goal,
            failure_probability=self.gamma,
            delta=self.delta,
            perturbation=way,
            **capped,  # type: ignore[arg-type]
        )

    def _request(self, goal: Goal, way: str | None, n: int, budget: float | None) -> Request:
        return self._model(goal, way, budget).request_for(n, self.encoding.schema, self.encoding)

    def price(self, goal: Goal) -> GoalPrice:
        """Price a goal, way by way, the typically cheapest first; pure noise, which needs no δ, beside them."""
        priced, reasons = [], []
        taken = self._request(goal, None, self.n, self.budget).mechanism
        for way in WAYS:
            stated = self._request(goal, way, self.n, self.budget)
            reason = ""
            try:
                plan = settle(stated)
                if self.on_invalid == "clip":
                    CheckedPlan(plan, (), self.n, self.n, stated.budget, stated.unit)
            except TargetUnreachable as refusal:
                reason = str(refusal)
            reasons.append(reason)
            free = self._request(goal, way, self.worlds.n, _HARDLY_A_CAP * max(1.0, self.n / self.worlds.n))
            paid = self._searched(free)
            worst = float(self._model(goal, way, self.budget).max_epsilon)
            name = stated.mechanism.name
            told = {"affordable": not reason, "taken": taken == stated.mechanism}
            priced.append(MethodPrice.over(stated.method.name, name, paid, worst, **told))
        pure = self._pure(goal, isinstance(taken, ObjectivePerturbation) and not taken.gaussian)
        priced.append(pure.methods[0])
        reasons.append(pure.unreachable)
        priced.sort(key=lambda price: (not price.affordable, price.typical))
        return GoalPrice(goal, self.count, tuple(priced), reasons[0] if all(reasons) else "")

    def _pure(self, goal: Goal, taken: bool) -> GoalPrice:
        """Price pure noise, in the same worlds as without a δ; `auto` may take it at one, but nobody can state it."""
        worlds = replace(self.worlds, n=self.n)
        found = TablePricer(self.encoding, self.count, self.gamma, self.budget, self.on_invalid, worlds).price(goal)
        way = replace(found.methods[0], perturbation=PURE, taken=taken, affordable=not found.unreachable)
        return replace(found, methods=(way,))

    def _searched(self, request: Request) -> list[float]:
        """Return what each world paid, for the stated number of rows; infinite where nothing was released."""
        try:
            plan = settle(request)
        except TargetUnreachable:
            return [math.inf] * len(self.worlds.features)
        assert isinstance(plan, StagedPlan)
        pace = plan.pace_for(plan.loss, plan.goal, plan.geometry, self.n, plan.delta, plan.unit)
        plan = replace(plan, pace=pace)  # where it starts depends on how many rows are meant
        found = []
        with one_thread():
            for k in range(len(self.worlds.features)):
                assert request.goal is not None
                rows = _repeated(*self.worlds.rows(k, request.goal))
                generator = request.mechanism.on(rows, request.problem)
                account = RenyiAccount("plan", plan.worst_case, False, unit=request.unit, delta=self.delta)
                release = plan.search(generator, account, SeededSource([self.worlds.seed, k, 2]))
                found.append(self._scaled(release) if release.status == "released" else math.inf)
        return found

    def _scaled(self, release: Release) -> float:
        """Return what the release would have cost with the stated number of rows."""
        curve = rescaled(release.account_curve(), self.worlds.n / self.n)
        if self.on_invalid == "clip":
            curve = curve + Curve.pure(80.0 / self.count)
        return curve.epsilon(self.delta)


def _repeated(rows: Rows, counts: np.ndarray) -> Rows:
    """Return rows as often as they are meant to be there."""
    times = np.asarray(counts, dtype=np.int64)
    return replace(rows, x=np.repeat(rows.x, times, axis=0), y=np.repeat(rows.y, times))
