"""A path of models by noisy gradient descent, to be stopped whenever one likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from expost import defaults, validation
from expost.account.account import Account, Spending, current, unspent
from expost.account.composition import Curve
from expost.estimators.inputs import as_schema, warn_if_likely
from expost.estimators.model import BAD_ROWS, in_table_units, names_of, unit_of
from expost.mechanisms.descent.clipping import ClippedGradients, SlopeTable
from expost.mechanisms.descent.gradient_descent import DescentPlan, Walk
from expost.noise.source import resolve_source
from expost.numeric import one_thread
from expost.release.release import Release
from expost.search.levels import rho_at
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, Loss
from expost.table.encoding import Encoding
from expost.table.misfits import CLIPPED_LABELS, CLIPPED_TARGETS
from expost.table.shape import block_geometry


@unspent()
def gradient_path(
    table: Any,
    schema: Any,
    *,
    delta: float = 1e-6,
    max_epsilon: float = defaults.MAX_EPSILON,
    probabilities: bool = False,
    on_invalid: str = "error",
    random_state: Any = None,
) -> Iterator[Release]:
    """Yield linear models of a table, each with less noise than the one before, until the budget is used up.

    Each is a release that costs what everything on the path up to it costs: the last one seen is what was paid,
    whenever one stops, by whatever rule reads releases only (:mod:`expost.mechanisms.descent.gradient_descent`). No
    accuracy is promised; :class:`~expost.AccuracyFirstModel` with a ``delta`` tests it.

    Parameters
    ----------
    table, schema
        As in :class:`~expost.AccuracyFirstModel`.
    delta : float, default=1e-6
        δ.
    max_epsilon : float, default=2.0
        No release of the path costs more, at δ.
    probabilities : bool, default=False
        For classes, minimise the logistic loss itself, not one with its slope capped, which costs half as much.
    on_invalid : {"error", "clip"}, default="error"
        As there, but that no table is refused after a count.
    random_state : None, int or RandomState, default=None
        ``None`` is the cryptographic source.

    Yields
    ------
    Release
        ``hypothesis`` in scaled units; ``parameters`` has ``columns``, ``coef`` and ``intercept`` in the table's own.

    Examples
    --------
    >>> import numpy as np
    >>> from expost.estimators import gradient_path
    >>> hours = np.random.default_rng(0).uniform(0, 80, 20_000)
    >>> table = {"hours": hours, "late": np.where(hours > 40, "yes", "no")}
    >>> schema = {"target": "late", "classes": ["no", "yes"], "columns": {"hours": {"bounds": [0, 80]}}}
    >>> for release in gradient_path(table, schema, random_state=0):
    ...     if release.parameters["coef"][0] > 0.05:
    ...         break
    >>> bool(release.epsilon < 1.0), release.delta
    (True, 1e-06)
    """
    validation.one_of("on_invalid", on_invalid, ("error", "clip"))
    at, budget = validation.delta(delta), validation.positive("max_epsilon", max_epsilon)
    if not at:
        raise ValueError("gradient_path needs a delta above 0, say 1e-6: its noise is Gaussian")
    encoding = Encoding(as_schema(schema))
    labels = encoding.schema.task == "classification"
    if probabilities and not labels:
        raise ValueError("probabilities=True is for classes; this schema has a target with bounds")
    loss: Loss = LogisticLoss() if probabilities else CappedLogisticLoss(0.5) if labels else HuberLoss(0.25)
    return _path(table, encoding, loss, Account("gradient path", budget, True, delta=at), on_invalid, random_state)


def _path(
    table: Any, encoding: Encoding, loss: Loss, account: Account, on_invalid: Any, random_state: Any
) -> Iterator[Release]:
    with unspent():
        rows = encoding.encode(table, on_invalid=on_invalid)
        source = resolve_source(random_state)
        unit = unit_of(encoding.schema, rows.n)
        warn_if_likely(account.delta, rows.n, unit)
    account.secure = source.secure
    clipped = CLIPPED_LABELS if encoding.schema.classes is not None else CLIPPED_TARGETS
    said = {
        "claims": (*((clipped,) if on_invalid == "clip" else ()), *validation.source_claims(source)),
        "not_covered": () if on_invalid == "clip" else (BAD_ROWS,),
    }
    geometry = block_geometry(encoding)
    schedule = DescentPlan.usual_schedule(loss)
    account.unit, account.worst_case = unit, unit.share(account.worst_case)
    walk = Walk(loss, geometry, ClippedGradients(rows, SlopeTable.of(loss)), schedule, unit)
    first = rho_at(schedule.start * geometry.scale, DescentPlan.noise_of(loss, geometry), rows.n, unit)
    rho, spent, level = first, 0.0, 0
    while True:
        account.count_on(current(account.delta, unit))  # at every stage: it may be inside a budget that others are not
        account.begin()
        if not account.fits(Curve.gaussian(rho)):
            if account.shared is not None:
                account.shared.end(account)
            return
        account.book("generation", Curve.gaussian(rho))

        def stage(spending: Spending, cost: float = rho, place: int = level) -> Release:
            spending.release = account.interrupted().with_details(**said)
            with one_thread():
                theta = walk.stage(cost, source)
            schema = encoding.schema
            release = account.released(
                theta,
                level=place,
                perturbation="gradient descent",
                parameters={
                    "loss": loss.name,
                    "n": rows.n,
                    "p": rows.p,
                    **unit.described,
                    **in_table_units(encoding, np.asarray(theta)),
                },
            )
            return spending.end(
                release.with_details(
                    **said,
                    preparation={"schema": schema.to_dict(), "scale": encoding.scale},
                    **names_of(schema),
                )
            )

        yield Spending().guard(stage)
        spent, level = spent + rho, level + 1
        rho = spent * (schedule.growth - 1.0)
