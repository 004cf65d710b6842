"""What the search for a goal pays on synthetic tables: the search itself, with seeded noise.

*Few rows stand for many.* A table has m different rows, each with two targets, which stand for n. Where noise is pure
and on the gradient, passes over rows cost what there are kinds of them (`expost.passes.blocks`), and the search is the
very one that n rows would get. Elsewhere rows are repeated, fewer of them than are meant, and what was spent is scaled.

*Other numbers of rows.* A level of a chain (`expost.mechanisms.objective.chain`) is a number x, and noise, λ and the
accuracy of a test depend on x and on the distribution of the rows, not on how many there are; ε is x times a public
constant over n, but for the Jacobian's logarithm and the solver's share. So ε·n is nearly the same for every n. At a δ,
ρ of Gaussian noise at one level is in proportion to 1/n², and pure losses and Jacobians are to 1/n.

*One run prices every cap.* A search that would cost ε without a cap takes the same steps under a cap of ε or more:
every sum it compares with the cap is at most what it ends with. So tables are searched nearly without one, and the
share that fits a cap is counted afterwards. Under a smaller cap some more are released, by a last level that is made to
fit; none of them is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.account.composition import ORDERS, Curve
from expost.exceptions import TargetUnreachable
from expost.goals import Goal
from expost.goals.goal import as_tested, is_tested
from expost.mechanisms.objective.chain import ChainPlan
from expost.mechanisms.objective.mechanism import ObjectiveGenerator, ObjectivePerturbation
from expost.noise.source import SeededSource
from expost.planning.synthetic import (
    REACH,
    Features,
    Floats,
    draw_array,
    draw_features,
    place_of,
    reach_of,
    with_target,
)
from expost.release.release import Release
from expost.search.engine import StagedPlan
from expost.search.request import Plan, Request
from expost.search.run import settle
from expost.table.encoding import Encoding
from expost.table.preparation import Preparation
from expost.table.rows import Rows
from expost.threads import one_thread

_OUT_OF_REACH = 9600.0  # a level x: what noise on a mean gradient is 1/x of a table's unit
_ROWS_PER_COLUMN, _FEWEST, _MOST = 12, 600, 1500  # different rows of a table


@dataclass(frozen=True)
class Outcome:
    """What a search paid for one table; infinite if it did not reach the goal at any price, and at which λ."""

    epsilon: float
    regularization: float


@dataclass(frozen=True, repr=False)
class SyntheticTables:
    """Tables of a schema, or arrays, shared by goals so that prices can be compared; public.

    Attributes
    ----------
    labels, n
        Whether their targets are labels, and how many rows a table stands for.
    features
        Rows of each table, without their targets.
    seed
        Of targets and noise.
    reach
        What the best model misses in the first and in the last table, as a part of what the goal allows.
    """

    labels: bool
    n: int
    features: Sequence[Features]
    seed: int
    reach: tuple[float, float] = REACH

    @classmethod
    def of(cls, encoding: Encoding, n: int, tables: int, seed: int) -> SyntheticTables:
        """Draw tables of a schema."""
        m = min(n, max(_FEWEST, min(_MOST, _ROWS_PER_COLUMN * len(encoding.names))))
        drawn = [draw_features(encoding, m, np.random.default_rng([seed, k])) for k in range(tables)]
        return cls(encoding.schema.task == "classification", n, drawn, seed)

    @classmethod
    def arrays(cls, preparation: Preparation, n: int, tables: int, seed: int) -> SyntheticTables:
        """Draw arrays, all of whose rows are different."""
        drawn = [draw_array(preparation, n, np.random.default_rng([seed, k])) for k in range(tables)]
        return cls(preparation.target is None, n, drawn, seed)

    def rows(self, k: int, goal: Goal) -> tuple[Rows, Floats]:
        """Return table k with targets, and how many rows each of its rows stands for."""
        reach = reach_of(k, len(self.features), self.reach)
        rng = np.random.default_rng([self.seed, k, 1])
        return with_target(self.features[k], goal, self.labels, reach, self.n, rng, place_of(k))

    def generator(self, k: int, request: Request) -> Any:
        """Return table k as the search takes it."""
        assert request.goal is not None
        rows, counts = self.rows(k, request.goal)
        mechanism = request.mechanism
        if is_tested(request.goal) and isinstance(mechanism, ObjectivePerturbation) and not mechanism.gaussian:
            return ObjectiveGenerator(mechanism, rows, request.problem, counts)
        often = counts.astype(np.int64)
        written = replace(rows, x=np.repeat(rows.x, often, axis=0), y=np.repeat(rows.y, often))
        return mechanism.on(written, request.problem)

    def account(self, request: Request, plan: Plan) -> Account:
        """Return an account of its own: a simulation is charged to nobody."""
        return Account(request.method.name, plan.worst_case, secure=False, unit=request.unit, delta=request.delta)

    def search(self, request: Request, n: int | None = None, look: float = 0.0) -> list[Outcome]:
        """Search every table for the goal of a request, hardly capped, and say what n rows would have paid.

        ``look`` is paid beside: for looking whether the table fits.
        """
        n = self.n if n is None else n
        try:
            plan = settle(request)
        except TargetUnreachable:
            return [Outcome(math.inf, math.nan)] * len(self.features)
        if isinstance(plan, StagedPlan) and not isinstance(plan, ChainPlan):
            # where it starts depends on how many rows are meant
            schedule = plan.schedule_for(plan.loss, plan.goal, plan.geometry, n, plan.delta, plan.unit)
            plan = replace(plan, schedule=schedule)
        found = []
        with one_thread():
            for k in range(len(self.features)):
                account, source = self.account(request, plan), SeededSource([self.seed, k, 2])
                release = plan.search(self.generator(k, request), account, source)
                lam = float(release.parameters.get("regularization", math.nan))
                found.append(Outcome(self._paid(release, request.delta, n, look), lam))
        return found

    def _paid(self, release: Release, delta: float, n: int, look: float) -> float:
        """Return what a release would have cost with so many rows."""
        if release.status != "released":
            return math.inf
        if delta:
            return (rescaled(release.account_curve(), self.n / n) + Curve.pure(look)).epsilon(delta)
        return (release.epsilon if self.n == n else release.epsilon * self.n / n) + look


def rescaled(curve: Curve, times: float) -> Curve:
    """Return the curve for rows of that many times the weight, taken apart by its two highest orders.

    There pure losses no longer grow.

    Examples
    --------
    >>> both = rescaled(Curve.gaussian(1e-4) + Curve.pure(0.02), 0.5)
    >>> expected = Curve.gaussian(2.5e-5) + Curve.ex_post(0.01)
    >>> bool(abs(both.epsilon(1e-6) - expected.epsilon(1e-6)) < 1e-6)
    True
    """
    (low, high), (less, more) = ORDERS[-2:], curve.losses[-2:]
    rho = (more - less) / (high - low)
    return Curve.gaussian(rho * times**2) + Curve.ex_post(max(0.0, more - high * rho) * times)


def no_cap(request: Request) -> float:
    """Return an ε that is hardly a cap: what a level costs beyond which a goal is out of reach, wherever it starts.

    Without any, the search of a table that cannot meet its goal would go on to where λ is next to nothing, and
    minimising takes forever.
    """
    chain = uncapped_chain(request)
    last = chain.shot(_OUT_OF_REACH * chain.geometry.scale).epsilon
    return request.unit.charge(last * (1 + chain.schedule.test_part))


def uncapped_chain(request: Request, budget: float = math.inf) -> ChainPlan:
    """Return the chain of a request, whether or not its goal can be met within a budget."""
    goal, geometry = as_tested(request.goal), request.mechanism.geometry
    assert geometry is not None
    return ChainPlan.settled(goal, goal.chain().loss, geometry, request.problem.n, request.failure_probability, budget)
