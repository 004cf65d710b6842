"""Prices of goals of a table: the request is the one that a fit would make, and made-up rows are searched for it.

What costs most: changes of a schema, and what each would save for the same accuracy.

*Shape.* Noise follows the shape of a row, and ε at a level is in proportion to the noise of that shape
(`expost.table.shape`): what a column or a list of categories costs follows from the schema. The price of the same
level is asked of the plan that a fit would settle.

*Width.* Bounds do not change the shape, since numbers are scaled to [−1, 1]. Bounds wider than the values make what a
column says faint: θ must be larger to say it, and λ pulls at it. With H the curvature and θ* the minimiser in a world,
the excess risk of one release is, to second order, ½·tr(A·V·A·H) + ½λ²·(Aθ*)ᵀH(Aθ*), A = (H + λI)⁻¹, V the noise's
variance on a mean gradient. A factor f on a column makes H into FHF and θ* into F⁻¹θ*. The saving is what the level may
fall by, at f = 1, for the same excess risk. It ranks and advises; no price is computed by it.

What a search at a δ on few rows would have cost on many; public.

At one level of noise on a mean gradient or a shortfall, ρ of Gaussian noise is in proportion to 1/n², and pure losses
and Jacobians are to 1/n. A curve is taken apart by its two highest orders, where pure losses no longer grow.

Prices of goals of a table under approximate privacy: the searches themselves, on made-up rows, way by way.

*Few rows stand for many.* Noise in a mean gradient or a shortfall is 1/(n√ρ), so a world is searched with few rows and
what it spent is scaled (`expost.planning.prices`); what that comes to at δ is the price. Rows of a world are repeated
until there are enough, as many as made-up rows say.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from expost.account.account import Account
from expost.account.renyi import ORDERS, Curve
from expost.estimators.model import AccuracyFirstModel
from expost.exceptions import TargetUnreachable
from expost.goals import Goal, TestedGoal
from expost.mechanisms.objective.chain import ChainPlan
from expost.mechanisms.objective.mechanism import ObjectivePerturbation
from expost.noise.source import SeededSource
from expost.planning.result import PURE, GoalPrice, MethodPrice, Saving
from expost.planning.simulation import Outcome, TableWorlds, no_cap
from expost.planning.synthetic import Floats, skewed
from expost.release.release import Release
from expost.search.engine import StagedPlan
from expost.search.request import CheckedPlan, Plan, Request
from expost.search.run import settle
from expost.shown import down
from expost.solve.objective import Objective
from expost.table.encoding import Encoding
from expost.table.kinds import Categorical, Kind, Numeric
from expost.table.rows import ONE, Rows
from expost.table.schema import Schema
from expost.threads import one_thread

_LEAST = 0.01  # savings below are not worth saying
_WORLDS = 5  # that widths are estimated in
_MANY = 5  # categories from which on it is worth asking whether all are needed
_HALVINGS = 12
_REFERENCE = 0.01  # λ that the minimiser is found for, as a part of the one that a model is released at
_NEWTON, _SHORTEST = 15, 1e-3  # steps, and how short one may get

ANY = "any number"

Settler = Callable[[Schema], Request]


def savings(worlds: TableWorlds, request_of: Settler, outcomes: list[Outcome]) -> tuple[Saving, ...]:
    """Return what would make a goal cheaper, the largest saving first.

    Parameters
    ----------
    worlds
        To estimate widths in.
    request_of
        Returns what a fit would search for with a schema.
    outcomes
        Of the goal in these worlds: they say at which level models are typically released.
    """
    schema = worlds.encoding.schema
    request = request_of(schema)
    plan = _settled(request)
    reached = sorted(outcome.regularization for outcome in outcomes if math.isfinite(outcome.epsilon))
    if not reached:
        return ()
    scale = plan.geometry.scale
    level = 1.0 / (reached[len(reached) // 2] * plan.schedule.reach * scale)  # x of the median world
    found = _by_shape(schema, request_of, plan, level / scale)
    with one_thread():
        found += _by_width(worlds, request, plan, level)
    kept = [saving for saving in found if saving.saves >= _LEAST]
    return tuple(sorted(kept, key=lambda saving: -saving.saves))


def _settled(request: Request) -> ChainPlan:
    return cast(ChainPlan, settle(request))


def _by_shape(schema: Schema, request_of: Settler, plan: ChainPlan, level: float) -> list[Saving]:
    """Leave out each column, or half of its categories; ``level`` is in units of the table."""
    now = plan.shot(level * plan.geometry.scale).epsilon

    def saved(columns: dict[str, Kind]) -> float:
        other = _settled(request_of(dataclasses.replace(schema, columns=columns)))
        return 1.0 - other.shot(level * other.geometry.scale).epsilon / now

    found = []
    for name, kind in schema.columns.items():
        rest = {key: value for key, value in schema.columns.items() if key != name}
        if rest:
            found.append(Saving(name, _words(kind), "leave it out", saved(rest), "it says little", False))
        if isinstance(kind, Categorical) and len(kind.categories) > _MANY:
            half = Categorical(kind.categories[: (len(kind.categories) + 1) // 2], other=True, missing=kind.missing)
            changed = saved({**schema.columns, name: half})
            found.append(
                Saving(name, _words(kind), "list half of them, other = true", changed, "the rest are rare", False)
            )
    return found


def _by_width(worlds: TableWorlds, request: Request, plan: ChainPlan, level: float) -> list[Saving]:
    """Halve the bounds of each number, or take its logarithm where values are likely crowded."""
    encoding = worlds.encoding
    columns = {name: kind for name, kind in encoding.schema.columns.items() if isinstance(kind, Numeric)}
    if not columns:
        return []
    places = {name: _place(encoding, name, kind) for name, kind in columns.items()}
    crowded = [name for name, kind in columns.items() if kind.transform is None and skewed(kind)]
    found: dict[str, list[float]] = {name: [] for name in (ANY, *crowded)}
    for k in range(0, len(worlds.features), max(1, len(worlds.features) // _WORLDS)):
        quadratic, x = _Quadratic(worlds, k, request, plan, level), worlds.features[k].x
        factors = {ANY: 0.5, **{name: _crowded(x[:, places[name]], columns[name], encoding) for name in crowded}}
        for name, factor in factors.items():
            # which numbers matter is a whim of the world: what is said of one is the mean over all
            found[name].append(float(np.mean([quadratic.saving(place, factor) for place in places.values()])))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    halved = Saving(ANY, "its bounds", "halve the bounds", means[ANY], "values use only half of them", True)
    return [halved, *(_logarithm(name, columns[name], means[name]) for name in crowded)]


def _logarithm(name: str, kind: Numeric, saves: float) -> Saving:
    high = f"{kind.bounds[1]:,.6g}"
    return Saving(name, _words(kind), 'transform = "log1p"', saves, f"most values are far below {high}", True)


class _Quadratic:
    """A world to second order around its minimiser."""

    def __init__(self, worlds: TableWorlds, k: int, request: Request, plan: ChainPlan, level: float) -> None:
        objective = worlds.generator(k, request).rows.objective
        self._theta = minimiser(objective, plan.shot(level).lam * _REFERENCE)
        self._curvature = objective.curvature_at(objective.predictions(self._theta))
        self._plan, self._level = plan, level

    def saving(self, column: int, factor: float) -> float:
        """Return what is saved if a column that was shrunk by a factor no longer is."""
        allowed = self._excess(self._level, column, factor)
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._excess(self._level * middle, column, 1.0) <= allowed else (middle, high)
        return 1.0 - self._plan.shot(self._level * high).epsilon / self._plan.shot(self._level).epsilon

    def _excess(self, level: float, column: int, factor: float) -> float:
        plan, shot = self._plan, self._plan.shot(level)
        weights = plan.geometry.weights(shot.epsilon_noise, shot.slope)
        variance = np.concatenate(
            [
                np.full(block.size, block.square / block.size / (weight * plan.n) ** 2)
                for block, weight in zip(plan.geometry.blocks, weights, strict=True)
            ]
        )
        scale = np.ones(len(self._theta))
        scale[column] = factor
        curved = self._curvature * np.outer(scale, scale)
        inverse = np.linalg.inv(curved + shot.lam * np.eye(len(scale)))
        spread = float(np.einsum("ij,j,jk,ki->", inverse, variance, inverse, curved, optimize=True))
        pulled = inverse @ (self._theta / scale)
        return 0.5 * spread + 0.5 * shot.lam**2 * float(pulled @ curved @ pulled)


def minimiser(objective: Objective, lam: float) -> Floats:
    """Return about where the mean loss is smallest: advice needs no certificate."""
    theta, gradient = np.zeros(objective.p), objective.mean_gradient(np.zeros(len(objective.y)))
    for _ in range(_NEWTON):
        curved = objective.curvature_at(objective.predictions(theta)) + lam * np.eye(objective.p)
        step, length = np.linalg.solve(curved, gradient), 1.0
        while length > _SHORTEST:
            moved = theta - length * step
            after = objective.mean_gradient(objective.predictions(moved)) + lam * moved
            if float(np.linalg.norm(after)) < float(np.linalg.norm(gradient)):
                theta, gradient = moved, after
                break
            length /= 2
        else:
            break
    return theta


def _place(encoding: Encoding, name: str, kind: Numeric) -> int:
    return encoding.names.index(name if kind.transform is None else f"{kind.transform}({name})")


def _crowded(cells: np.ndarray[tuple[int], np.dtype[np.int32]], kind: Numeric, encoding: Encoding) -> float:
    """Return how much narrower values spread as they are than their logarithms would, in parts of their bounds."""
    low, high = kind.bounds
    share: Floats = (cells / ONE * encoding.scale + 1) / 2
    logs = (np.log1p(low + share * (high - low)) - math.log1p(low)) / (math.log1p(high) - math.log1p(low))
    return min(1.0, float(share.std() / max(float(logs.std()), 1e-12)))


def _words(kind: Kind) -> str:
    if isinstance(kind, Numeric):
        return f"bounds {kind.bounds[0]:,.6g} to {kind.bounds[1]:,.6g}"
    return f"{len(kind.categories)} categories" if isinstance(kind, Categorical) else "true or false"


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
        chain = ChainPlan.settled(
            request.goal, request.goal.chain().loss, request.mechanism.geometry, self._n, self._gamma, request.budget
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


def rescaled(curve: Curve, times: float) -> Curve:
    """Return the curve for rows of that many times the weight.

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
        schedule = plan.schedule_for(plan.loss, plan.goal, plan.geometry, self.n, plan.delta, plan.unit)
        plan = replace(plan, schedule=schedule)  # where it starts depends on how many rows are meant
        found = []
        with one_thread():
            for k in range(len(self.worlds.features)):
                assert request.goal is not None
                rows = _repeated(*self.worlds.rows(k, request.goal))
                generator = request.mechanism.on(rows, request.problem)
                account = Account("plan", plan.worst_case, False, unit=request.unit, delta=self.delta)
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
