"""Errors and warnings with names a caller can catch.

The one way a minimiser can fail to be found.
"""

from __future__ import annotations

import math
import sys
import warnings
from typing import TYPE_CHECKING

from expost.shown import down, up

if TYPE_CHECKING:
    from expost.release.release import Release


UNSPENT = "Nothing was spent"
_BETWEEN = ("expost", "sklearn", "joblib", "contextlib")  # packages that stand between a caller and what warns


def advice(release: Release, stated: bool | None = None) -> str:
    """Say what may help after a refusal.

    Parameters
    ----------
    release
        The refusal.
    stated
        Whether the caller stated a regularization; by default whether the promise is about one.
    """
    if "constant" in release.parameters:
        new = f", which is not shown of new {release.unit}s" if release.held_out else ""
        rare = (
            ", or where one label is rare for Recall(...) and Precision(...)"
            if "base_rate" in release.parameters
            else ""
        )
        return (
            f"{release.to_compare[0].upper()}{release.to_compare[1:]}, as good as was asked and without a model{new}. "
            f"Ask for clearly better than that{rare}."
        )
    near = f"{release.closest[0].upper()}{release.closest[1:]}. " if release.closest else ""
    near += f"{release.going_on[0].upper()}{release.going_on[1:]}. " if release.going_on else ""
    chance = "left_to_chance" in release.parameters and "next_level" not in release.parameters
    other = "or hold out more of them" if chance else "or allow a larger max_epsilon"
    said = f"{near}Ask for less accuracy, use more rows, {other}."
    if release.promise.goal is None:
        return said
    beyond = " A goal may also be beyond the best linear model"
    if release.promise.regularization is not None if stated is None else stated:
        return f"{said}{beyond}, or beyond the best one for the regularization stated: then a smaller one helps."
    return f"{said}{beyond}: then no number of rows helps."


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller: the nearest one that is neither in this package nor in one that calls it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class AccuracyNotReached(Exception):
    """No level qualified, or a constant would do and none was tried.

    :attr:`release` says what the search cost, and holds its best model if it is ``"short"``.
    """

    def __init__(self, release: Release) -> None:
        reasons = "; ".join(release.parameters.get("reasons", ()))
        who = "a constant meets" if "constant" in release.parameters else "no hypothesis met"
        on = f" on the {release.unit}s fitted" if release.held_out and "constant" in release.parameters else ""
        cost = f"epsilon = {up(release.epsilon)} (ex-post, one {release.unit} replaced)"
        nothing = release.promise.goal is not None and not release.closest and "constant" not in release.parameters
        shown = ", and none was shown to be better than a constant" if nothing else ""
        said = f"{who} the accuracy target{on}{shown}, so none is returned; the refusal itself cost {cost}"
        if release.status == "short":
            said = (
                f"no hypothesis met the accuracy target; the best one is in the release that this exception carries, "
                f"and fit keeps it with when_short='keep'. The search cost {cost}"
            )
        super().__init__(f"{said}. {reasons}{'. ' if reasons else ''}{advice(release)}")
        self.release = release

    def __reduce__(self) -> tuple[type[AccuracyNotReached], tuple[Release]]:
        return (type(self), (self.release,))


class SearchInterrupted(Exception):
    """Something went wrong after noise had been drawn; :attr:`release` says what has to be charged for it."""

    def __init__(self, release: Release, by: str) -> None:
        super().__init__(
            f"the search was interrupted ({by}) after it had begun; epsilon = {up(release.epsilon)} has to be counted "
            f"as spent (one {release.unit} replaced). Keep the release that this exception carries"
        )
        self.release, self.by = release, by

    def __reduce__(self) -> tuple[type[SearchInterrupted], tuple[Release, str]]:
        return (type(self), (self.release, self.by))


class TargetUnreachable(ValueError):
    """No data set of this size could meet the target within the budget; nothing was spent."""


def too_dear(what: str, epsilon: float, n: int, budget: float, remedy: str, spare: float = 1.1) -> TargetUnreachable:
    """Return the refusal of what costs more than the budget, and as 1/n; ``spare`` times as many rows are asked for."""
    rows = math.ceil(n * epsilon / budget * spare)
    return TargetUnreachable(
        f"{what} would cost epsilon = {up(epsilon)} at n = {n}, more than max_epsilon = {down(budget)}, whatever the "
        f"data. Pass {remedy}, or about {rows:,} rows. Nothing was spent."
    )


class LedgerRefused(ValueError):
    """A ledger did not let a search begin; nothing was spent."""


class BudgetExceeded(LedgerRefused):
    """The worst case of a search is more than its data set has left; nothing was spent.

    :attr:`remaining` is a ``max_epsilon`` that would still fit.
    """

    def __init__(self, message: str, remaining: float) -> None:
        super().__init__(message)
        self.remaining = remaining

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, float]]:
        return (type(self), (str(self), self.remaining))


class LedgerUnavailable(OSError):
    """The file of a ledger could not be read or written, or is not as it was recorded."""


class PathNotKeptWarning(UserWarning):
    """A release stands, but what was to be kept of its path could not be written, so nothing can go on from it."""


class LedgerWarning(UserWarning):
    """A search came to its end, but its loss could not be settled; says whether anything is charged for it."""


class InvalidRows(ValueError, TypeError):
    """Rows that cannot be used under ``on_invalid="error"``; the message counts them and shows nothing of them.

    It is a ``TypeError`` too, because that is what scikit-learn expects of cells that are not numbers.
    """


class InferredClassesWarning(UserWarning):
    """Class labels were read off the data, which the privacy guarantee does not cover."""


class LargeEpsilonWarning(UserWarning):
    """A model was released at an ε that protects little."""


class LargeDeltaWarning(UserWarning):
    """A δ was stated that so many rows are too many for: the outcome may well speak for somebody's by more than ε."""


class CoarseMarginWarning(UserWarning):
    """An evaluation would tell next to nothing of a rare label; said before anything is spent."""


class StrongRegularizationWarning(UserWarning):
    """The regularization stated leaves little of a model but its constant."""


class ShortOfGoalWarning(UserWarning):
    """No model was shown to meet the goal: the best one is returned, and its release states what was shown of it."""


class RepeatedFitsWarning(UserWarning):
    """Clones of one estimator are fitted without a ledger or a budget: each spends, and nobody adds it up."""


class NotPrivateWarning(UserWarning):
    """What was asked for is returned, and it is not private."""


class UnreadableFile(OSError):
    """A file of a table disappeared, changed or turned out to be damaged while it was read; names it."""


class ConvergenceError(RuntimeError):
    """A minimiser could not be certified to the public tolerance: the loss is not what it says it is.

    The charge for an inexact minimiser is computed from the tolerance, so an uncertified one must not
    be used. For a convex loss with the constants it states, no rows can cause this error
    (``expost.solve.minimiser``); for the losses of the library it does not occur.
    """
