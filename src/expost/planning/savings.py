"""What costs most: changes of a schema, and what each would save for the same accuracy.

*Shape.* Noise follows the shape of a row, and ε at a level is in proportion to the noise of that shape
(`expost.table.shape`): what a column or a list of categories costs follows from the schema. The price of the same
level is asked of the plan that a fit would settle.

*Width.* Bounds do not change the shape, since numbers are scaled to [−1, 1]. Bounds wider than the values make what a
column says faint: θ must be larger to say it, and λ pulls at it. With H the curvature and θ* the minimiser of a table,
the excess risk of one release is, to second order, ½·tr(A·V·A·H) + ½λ²·(Aθ*)ᵀH(Aθ*), A = (H + λI)⁻¹, V the noise's
variance on a mean gradient. A factor f on a column makes H into FHF and θ* into F⁻¹θ*. The saving is what the level may
fall by, at f = 1, for the same excess risk. It ranks and advises; no price is computed by it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import cast

import numpy as np

from expost.goals.goal import root
from expost.mechanisms.objective.chain import ChainPlan
from expost.numeric import one_thread
from expost.planning.result import Saving
from expost.planning.synthetic import Floats, Outcome, SyntheticTables, skewed
from expost.search.request import Request
from expost.search.run import settle
from expost.solve.objective import Objective
from expost.table import ONE, Encoding, Schema
from expost.table.kinds import Categorical, Kind, Numeric

_LEAST = 0.01  # savings below are not worth saying
_TABLES = 5  # that widths are estimated in
_PLACES = 4  # numbers of a table that are changed one by one; what is said of others is their mean
_WIDE = 400  # columns, encoded, of tables whose p × p matrices would take minutes: widths are not estimated there
_ASKED = 100  # columns, those with most noise, that are left out one by one: every one of them is a plan of its own
_MANY = 5  # categories from which on it is worth asking whether all are needed
_HALVINGS = 12
_REFERENCE = 0.01  # λ that the minimiser is found for, as a part of the one that a model is released at
_NEWTON, _SHORTEST = 15, 1e-3  # steps, and how short one may get

ANY = "any number"

Settler = Callable[[Schema], Request]


def savings(
    tables: SyntheticTables, encoding: Encoding, request_of: Settler, outcomes: list[Outcome]
) -> tuple[Saving, ...]:
    """Return what would make a goal cheaper, the largest saving first.

    Parameters
    ----------
    tables, encoding
        To estimate widths in, and how they became rows.
    request_of
        Returns what a fit would search for with a schema.
    outcomes
        Of the goal in these tables: they say at which level models are typically released.
    """
    schema = encoding.schema
    request = request_of(schema)
    plan = _settled(request)
    reached = sorted(outcome.regularization for outcome in outcomes if math.isfinite(outcome.epsilon))
    if not reached:
        return ()
    scale = plan.geometry.scale
    level = 1.0 / (reached[len(reached) // 2] * plan.schedule.reach * scale)  # x of the median table
    found = _by_shape(schema, request_of, plan, level / scale)
    with one_thread():
        found += _by_width(tables, encoding, request, plan, level)
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
    widest = sorted(schema.columns.items(), key=lambda item: -len(getattr(item[1], "categories", ())))[:_ASKED]
    for name, kind in widest:
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


def _by_width(
    tables: SyntheticTables, encoding: Encoding, request: Request, plan: ChainPlan, level: float
) -> list[Saving]:
    """Halve the bounds of each number, or take its logarithm where values are likely crowded."""
    columns = {name: kind for name, kind in encoding.parts if isinstance(kind, Numeric) and kind.shape is None}
    if not columns or len(encoding.names) > _WIDE:
        return []
    some = dict.fromkeys([*list(columns)[:: -(-len(columns) // _PLACES)], *_crowding(columns)])
    places = {name: _place(encoding, name, columns[name]) for name in some}
    crowded = _crowding(columns)
    found: dict[str, list[float]] = {name: [] for name in (ANY, *crowded)}
    for k in range(0, len(tables.features), max(1, len(tables.features) // _TABLES)):
        quadratic, x = _Quadratic(tables, k, request, plan, level), tables.features[k].x
        factors = {ANY: 0.5, **{name: _crowded(x[:, places[name]], columns[name], encoding) for name in crowded}}
        for name, factor in factors.items():
            # which numbers matter is a whim of the table: what is said of one is the mean over all
            found[name].append(float(np.mean([quadratic.saving(place, factor) for place in places.values()])))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    halved = Saving(ANY, "its bounds", "halve the bounds", means[ANY], "values use only half of them", True)
    return [halved, *(_logarithm(name, columns[name], means[name]) for name in crowded)]


def _crowding(columns: dict[str, Numeric]) -> list[str]:
    """Return the first of those whose values are likely crowded near the lower bound."""
    return [name for name, kind in columns.items() if kind.transform is None and skewed(kind)][:_PLACES]


def _logarithm(name: str, kind: Numeric, saves: float) -> Saving:
    high = f"{kind.bounds[1]:,.6g}"
    return Saving(name, _words(kind), 'transform = "log1p"', saves, f"most values are far below {high}", True)


class _Quadratic:
    """A table to second order around its minimiser."""

    def __init__(self, tables: SyntheticTables, k: int, request: Request, plan: ChainPlan, level: float) -> None:
        objective = tables.generator(k, request).rows.objective
        self._theta = minimiser(objective, plan.shot(level).lam * _REFERENCE)
        self._curvature = objective.curvature_at(objective.predictions(self._theta))
        self._plan, self._level = plan, level

    def saving(self, column: int, factor: float) -> float:
        """Return what is saved if a column that was shrunk by a factor no longer is."""
        allowed = self._excess(self._level, column, factor)
        part = root(lambda part: allowed - self._excess(self._level * part, column, 1.0), 1e-6, 1.0, _HALVINGS)
        return 1.0 - self._plan.shot(self._level * part).epsilon / self._plan.shot(self._level).epsilon

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
        stated = kind.to_dict()["bounds"]  # of a date: as text
        return "bounds " + " to ".join(end if isinstance(end, str) else f"{end:,.6g}" for end in stated)
    return f"{len(kind.categories)} categories" if isinstance(kind, Categorical) else "true or false"
