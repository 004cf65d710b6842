"""An excess risk at a δ: by second moments under Gaussian noise, or by what is pure, where that is predicted cheaper.

A pure ε holds at every δ, so whoever accepts a δ may be given it. Both plans say roughly what they will cost, from
public numbers alone, before a row is looked at; the release states the comparison. Nothing has to be right about it.
"""

from __future__ import annotations

import dataclasses
import math

from expost.exceptions import TargetUnreachable
from expost.privacy.renyi import Curve
from expost.privacy.shared import current
from expost.rounding import up
from expost.search.moment_risk import MomentRiskPlan
from expost.search.request import Request

_GAUSSIAN = "second moments under Gaussian noise"


def cheaper_at_delta(gaussian: Request | None, pure: Request | None) -> Request:
    """Return the request at δ, or the pure one for the same goal with the reason for it; None is what cannot be."""
    if gaussian is None:
        return _pure_alone(pure)
    if pure is None or current(gaussian.delta, gaussian.unit) is not None:
        return gaussian  # as stated; or in a budget that several fits share, where costs add in squares
    at_delta, alone = _expected(gaussian), _expected(pure)
    if not alone < at_delta:
        return gaussian
    said = "out of reach" if math.isinf(at_delta) else up(at_delta, 2)
    reason = (
        f"pure noise was predicted to be cheapest from public numbers alone: epsilon about {up(alone, 2)} "
        f"({_GAUSSIAN} {said})"
    )
    return dataclasses.replace(pure, reason=reason)


def _pure_alone(pure: Request | None) -> Request:
    """Return the pure request where a loss has no other way to an excess risk, or say that it has none."""
    if pure is None:
        raise ValueError(
            "with a delta an excess risk of this loss is searched for by method='auto' alone, with noise on the "
            "gradient; leave perturbation, noise, keep_path and on_failure out, or state a goal in people's units"
        )
    return dataclasses.replace(
        pure, reason="this loss has a pure way to an excess risk alone, which holds at any delta"
    )


def _expected(request: Request) -> float:
    """Return roughly what a search will cost; infinite where it cannot be tried."""
    try:
        plan = request.plan()
    except TargetUnreachable:
        return math.inf
    if isinstance(plan, MomentRiskPlan):
        return Curve.gaussian(plan.expected).epsilon(plan.delta) if plan.rhos else 0.0
    return float(getattr(plan, "expected", plan.worst_case))
