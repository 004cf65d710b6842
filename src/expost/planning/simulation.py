"""What the search for a goal pays on made-up rows: the search itself, with seeded noise, on worlds of a schema.

*Few rows stand for many.* A world has m different rows, each with two targets, which stand for n: passes over rows cost
what there are kinds of them (`expost.passes.blocks`), and the search is the very one that n rows would get.

*Other numbers of rows.* A level of the chain (`expost.mechanisms.objective.chain`) is a number x, and noise, λ and the
accuracy of a test depend on x and on the distribution of the rows, not on how many there are; ε is x times a public
constant over n, but for the Jacobian's logarithm and the solver's share. So ε·n is nearly the same for every n.

*One run prices every cap.* A search that would cost ε without a cap takes the same steps under a cap of ε or more:
every sum it compares with the cap is at most what it ends with. So worlds are searched nearly without one, and the
share that fits a cap is counted afterwards. Under a smaller cap some more are released, by a last level that is made to
fit; none of them is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.account.account import Account
from expost.exceptions import TargetUnreachable
from expost.goals import Goal, TestedGoal
from expost.mechanisms.objective.chain import ChainPlan
from expost.mechanisms.objective.mechanism import ObjectiveGenerator, ObjectivePerturbation
from expost.noise.source import SeededSource
from expost.planning.synthetic import REACH, Features, Floats, draw_features, place_of, reach_of, with_target
from expost.search.request import Plan, Request
from expost.search.run import settle
from expost.table.encoding import Encoding
from expost.table.rows import Rows
from expost.threads import one_thread

_OUT_OF_REACH = 9600.0  # a level x: what noise on a mean gradient is 1/x of a table's unit
_ROWS_PER_COLUMN, _FEWEST, _MOST = 12, 600, 1500  # different rows of a world


@dataclass(frozen=True)
class Outcome:
    """What a search paid in one world; infinite if it did not reach the goal at any price, and at which λ."""

    epsilon: float
    regularization: float


@dataclass(frozen=True, repr=False)
class TableWorlds:
    """Worlds of a schema, shared by goals so that prices can be compared; public.

    Attributes
    ----------
    encoding, n
        How tables become rows, and how many rows a world stands for.
    features
        Rows of each world, without their targets.
    seed
        Of targets and noise.
    reach
        What the best model misses in the first and in the last world, as a part of what the goal allows.
    """

    encoding: Encoding
    n: int
    features: Sequence[Features]
    seed: int
    reach: tuple[float, float] = REACH

    @classmethod
    def of(cls, encoding: Encoding, n: int, worlds: int, seed: int) -> TableWorlds:
        """Draw them."""
        m = min(n, max(_FEWEST, min(_MOST, _ROWS_PER_COLUMN * len(encoding.names))))
        return cls(
            encoding, n, [draw_features(encoding, m, np.random.default_rng([seed, k])) for k in range(worlds)], seed
        )

    @property
    def size(self) -> int:
        """Different rows of a world."""
        return len(self.features[0].score)

    def rows(self, k: int, goal: Goal) -> tuple[Rows, Floats]:
        """Return world k with targets, and how many rows each of its rows stands for."""
        reach = reach_of(k, len(self.features), self.reach)
        labels = self.encoding.schema.task == "classification"
        rng = np.random.default_rng([self.seed, k, 1])
        return with_target(self.features[k], goal, labels, reach, self.n, rng, place_of(k))

    def generator(self, k: int, request: Request) -> Any:
        """Return world k as the search takes it."""
        assert request.goal is not None
        assert isinstance(request.mechanism, ObjectivePerturbation)
        rows, counts = self.rows(k, request.goal)
        return ObjectiveGenerator(request.mechanism, rows, request.problem, counts)

    def search(self, request: Request) -> list[Outcome]:
        """Search every world for the goal of a request, whose budget is meant to come from `no_cap`."""
        try:
            plan = settle(request)
        except TargetUnreachable:
            return [Outcome(math.inf, math.nan)] * len(self.features)
        with one_thread():
            return [self._search(k, request, plan) for k in range(len(self.features))]

    def _search(self, k: int, request: Request, plan: Plan) -> Outcome:
        account = Account(request.method.name, plan.worst_case, secure=False, unit=request.unit)
        release = plan.search(self.generator(k, request), account, SeededSource([self.seed, k, 2]))
        if release.status != "released":
            return Outcome(math.inf, math.nan)
        return Outcome(release.epsilon, float(release.parameters["regularization"]))


def no_cap(request: Request) -> float:
    """Return an ε that is hardly a cap: what a level costs beyond which a goal is out of reach, wherever it starts.

    Without any, the search of a world that cannot meet its goal would go on to where λ is next to nothing, and
    minimising takes forever.
    """
    assert isinstance(request.goal, TestedGoal)
    assert request.mechanism.geometry is not None
    chain = ChainPlan.settled(
        request.goal, request.goal.chain().loss, request.mechanism.geometry, request.problem.n, 0.1, math.inf
    )
    last = chain.shot(_OUT_OF_REACH * chain.geometry.scale).epsilon
    return request.unit.charge(last * (1 + chain.schedule.test_part))
