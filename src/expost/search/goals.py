"""Targets people have, beside excess risk (theory B9); public.

An error rate or a mean squared error is tested as it stands: `expost.search.tested_goal`. A fraction of what the null
model leaves on the table becomes an excess risk by a private measurement: `expost.search.gap_probe`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from expost.erm.losses import Loss

_TESTED_BY = ("auto", "above_threshold")
_REDUCED_TO = ("auto", "certified", "stationarity", "above_threshold", "doubling")


@dataclass(frozen=True)
class ErrorRate:
    """At most this share of the rows is misclassified.

    Parameters
    ----------
    at_most : float
        The share, strictly between 0 and 1. A row is predicted positive where xᵀθ > 0, as ``predict`` does; a row
        with xᵀθ = 0 (every column at the middle of its bounds, say) is predicted negative.
    margin : float, default=0.2
        Part of ``at_most`` that the test's noise may take up: a model within (1 − margin)·at_most is likely to pass.
        The test costs in proportion to 1/margin; a small one is for targets close to what the best model reaches.

    Examples
    --------
    >>> ErrorRate(0.05)
    ErrorRate(at_most=0.05, margin=0.2)
    """

    at_most: float
    margin: float = 0.2

    def __post_init__(self) -> None:
        _settle(self, "at_most", 1.0)
        _settle(self, "margin", 1.0)


@dataclass(frozen=True)
class MeanSquaredError:
    """The mean of (y − prediction)² is at most this.

    Parameters
    ----------
    at_most : float
        For estimators and the command line in squared units of the target passed to them; for :func:`expost.run`, whose
        rows are scaled, in units where targets lie in [−1, 1].
    margin : float, default=0.2
        As in :class:`ErrorRate`, for a θ whose largest coordinate is 2; in proportion to (1 + ‖θ‖_∞)² for others.

    Examples
    --------
    >>> MeanSquaredError(4.0)
    MeanSquaredError(at_most=4.0, margin=0.2)
    """

    at_most: float
    margin: float = 0.2

    def __post_init__(self) -> None:
        _settle(self, "at_most", math.inf)
        _settle(self, "margin", 1.0)


@dataclass(frozen=True)
class RelativeExcessRisk:
    """At most this fraction of what the null model leaves on the table: L(θ) − min L ≤ r·(L(0) − min L).

    Parameters
    ----------
    fraction : float
        r, strictly between 0 and 1.

    Examples
    --------
    >>> RelativeExcessRisk(0.1)
    RelativeExcessRisk(fraction=0.1)
    """

    fraction: float

    def __post_init__(self) -> None:
        _settle(self, "fraction", 1.0)


Goal = ErrorRate | MeanSquaredError | RelativeExcessRisk


def check_goal(goal: object, loss: Loss, method: str, *, calibration: str, on_failure: str) -> None:
    """Raise a helpful error unless the goal, the loss and the method go together."""
    if not isinstance(goal, Goal):
        raise ValueError(
            f"goal must be ErrorRate(...), MeanSquaredError(...) or RelativeExcessRisk(...), got {goal!r}; a plain "
            f"number is an excess_risk"
        )
    name = type(goal).__name__
    if isinstance(goal, ErrorRate) and loss.labels != "binary":
        raise ValueError("ErrorRate is for classification; for regression pass MeanSquaredError(...)")
    if isinstance(goal, MeanSquaredError) and loss.labels != "real":
        raise ValueError("MeanSquaredError is for regression; for classification pass ErrorRate(...)")
    methods = _REDUCED_TO if isinstance(goal, RelativeExcessRisk) else _TESTED_BY
    if method not in methods:
        raise ValueError(f"goal={name}(...) cannot be met by method={method!r}; pass one of {list(methods)}")
    if isinstance(goal, RelativeExcessRisk):
        return
    if calibration != "tight":
        raise ValueError(f"goal={name}(...) is tested with calibration='tight' only, got {calibration!r}")
    if on_failure != "refuse":
        raise ValueError(f"on_failure={on_failure!r} cannot keep {name}: the optimum of the risk need not meet it")


def _settle(goal: object, name: str, end: float) -> None:
    """Check that a field lies strictly between 0 and ``end``, and make it a float of full precision."""
    value = getattr(goal, name)
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 < float(value) < end:
        what = "a positive finite number" if math.isinf(end) else f"a number strictly between 0 and {end:g}"
        raise ValueError(f"{name} must be {what}, got {value!r}")
    object.__setattr__(goal, name, float(value))  # in single precision limits would be off by more than their slack
