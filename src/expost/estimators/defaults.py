"""What the estimators take where the caller states nothing, and the warnings that go with it; public numbers only."""

from __future__ import annotations

import math
from typing import Any

from expost import validation
from expost.account.composition import Unit
from expost.exceptions import LargeDeltaWarning, StrongRegularizationWarning, warn
from expost.goals.goal import Goal, is_tested
from expost.shown import up
from expost.table.preparation import Preparation

__all__ = [
    "chained",
    "settled_budget",
    "settled_regularization",
    "warn_if_likely",
    "warn_if_shrunk",
]

AUTO = "auto"
#: A chain of releases needs an end; with the budget lifted this is it.
LIFTED = 1000.0
_LIKELY = 0.1  # δ times the number of persons: one chance in ten that it fails for anybody
_USUAL = 0.01  # λ where it may be: the paper's scale
# λF² is the weight of a coefficient's square in the units of columns in [−1, 1], whose mean square is about ⅓: beyond a
# tenth, shrinkage takes a visible part of every coefficient, and far beyond it all of them
_SHRUNK = 0.1
# options that a chain of releases has no use for, and what they are when nothing is stated
_GRADUAL = {
    "method": "auto",
    "perturbation": None,
    "noise": "laplace",
    "calibration": "tight",
    "radius": None,
    "n_levels": None,
    "loss": None,
    "full_matrix": False,
    "on_failure": "refuse",
    "keep_path": None,
    "keep_statistics": False,
}


def chained(estimator: Any) -> bool:
    """Whether a goal in people's units is searched for by a chain in which noise and λ shrink together.

    It is unless the caller stated a λ, or an option of a gradual release, which has one λ for all levels.
    """
    goal: Goal | None = estimator.goal
    # with a δ there is a choice of mechanism for such goals
    free = ("perturbation",) if getattr(estimator, "delta", 0.0) else ()
    plain = all(_is(getattr(estimator, name, usual), usual) for name, usual in _GRADUAL.items() if name not in free)
    return _is(estimator.regularization, AUTO) and is_tested(goal) and plain


def _is(value: Any, usual: Any) -> bool:
    return value is usual or (type(value) is type(usual) and bool(value == usual))


def settled_regularization(stated: Any, preparation: Preparation) -> float:
    """Return λ for a promise that is about one: as stated, or small enough that it does not shrink the model away.

    Examples
    --------
    >>> recipe = Preparation(None, 20.0, target=None, intercept_weight=0, n_columns=20)
    >>> settled_regularization("auto", recipe), settled_regularization(0.5, recipe)
    (0.00025, 0.5)
    """
    if _is(stated, AUTO):
        return min(_USUAL, _SHRUNK / preparation.divisor**2)
    if isinstance(stated, str):
        raise ValueError(f"regularization must be a number or 'auto', got {stated!r}")
    return validation.number("regularization", stated)


def settled_budget(stated: Any, method: str) -> float | None:
    """Return ``max_epsilon``, None where it was lifted; a single shot at it is never a default."""
    if _is(stated, AUTO):
        return None if method == "fixed" else validation.MOST
    return None if stated == math.inf else validation.budget(stated)


def warn_if_shrunk(lam: float, preparation: Preparation) -> None:
    """Warn, before anything is spent, about a λ that leaves little but a constant."""
    weight = lam * preparation.divisor**2
    if weight > _SHRUNK:
        fine = _SHRUNK / preparation.divisor**2
        warn(
            f"regularization = {lam:g} shrinks the model towards its constant: rows are divided by "
            f"{preparation.divisor:.3g}, so columns in [-1, 1] are shrunk by {weight:.2g}, and more than {_SHRUNK:g} "
            f"is too much for most tables. Pass regularization = {fine:.1g} or less, fewer columns, a smaller "
            f"feature_bound, or a goal such as ErrorRate(...) or R2(...), which needs no regularization",
            StrongRegularizationWarning,
        )


def warn_if_likely(delta: float, n: int, unit: Unit) -> None:
    """Warn, before anything is spent, about a δ that is not far below one over the number of rows, or of persons."""
    many = n if unit.persons is None else unit.persons
    if delta * many <= _LIKELY:
        return
    warn(
        f"delta={delta:g} is large for {many:,} {unit.noun}s: it should be far below 1/{many}. With it the guarantee "
        f"may fail for as many as {up(delta * many)} of them on average. Pass delta={_LIKELY / many:.0e} or less",
        LargeDeltaWarning,
    )
