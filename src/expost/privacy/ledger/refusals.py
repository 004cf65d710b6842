"""Why a ledger does not let a search begin, in words that say what to pass. Nothing has been spent by then."""

from __future__ import annotations

import math
import re
import shlex

from expost.exceptions import BudgetExceeded, LedgerRefused
from expost.privacy.ledger.budget import Budget
from expost.privacy.loss import PrivacyLoss
from expost.privacy.release import NEIGHBOURS, Release
from expost.rounding import down

_NOTHING = "Nothing was spent"


def require_secure(secure: bool) -> None:
    """Refuse a simulation."""
    if not secure:
        raise LedgerRefused(
            f"seeded noise protects nobody, and a ledger books no simulation; leave random_state out, or the ledger. "
            f"{_NOTHING}"
        )


def require_taken(budget: Budget, delta: float) -> None:
    """Refuse approximate privacy where the budget is pure: an ε at a δ does not add to pure ones without its δ."""
    if not budget.cap.takes(delta):
        raise LedgerRefused(
            f"the budget of data set {budget.dataset!r} is pure, and this search holds but for a chance of delta = "
            f"{delta:g}. Leave delta out, or state a budget for it (a data set of another name, created with a delta). "
            f"{_NOTHING} here"
        )


def require_unit(budget: Budget, unit: str) -> None:
    """Refuse a search about another unit: losses about different neighbours do not add."""
    if unit != budget.unit:
        raise LedgerRefused(
            f"the budget of data set {budget.dataset!r} is about {budget.unit!r}, this search about {unit!r}. State a "
            f"budget for that, under another name: expost ledger create FILE --dataset NAME --cap E{_unit(unit)}. "
            f"{_NOTHING}"
        )


def _unit(unit: str) -> str:
    """Return the option with which a budget for a unit is stated."""
    person = re.match(r"one person, as column '(.+)' tells them apart", unit)
    if person is not None:
        return f" --person {shlex.quote(person[1])}"
    return "" if unit == NEIGHBOURS else f" --unit {shlex.quote(unit)}"


def unbounded(budget: Budget, held: Release | None) -> LedgerRefused:
    """Return the refusal of a worst case of infinity."""
    if held is not None and math.isfinite(held.epsilon_worst_case):  # so it is not the search that has no bound
        advice = "leave out on_failure='release_optimum', which may release the optimum itself"
    else:
        advice = f"pass max_epsilon={down(budget.ceiling(0.0 if held is None else held.delta))} or less"
    return LedgerRefused(f"the cost of this search has no bound, and infinity cannot be reserved; {advice}. {_NOTHING}")


def exceeded(budget: Budget, loss: PrivacyLoss | None, delta: float = 0.0, *, by_hand: bool = False) -> BudgetExceeded:
    """Return the refusal of a worst case that is more than what is left."""
    left = budget.ceiling(delta, by_hand=by_hand)
    held = f" ({budget.held.text()} held for searches not settled)" if any(e.held for e in budget.entries) else ""
    has = f"data set {budget.dataset!r} has {down(left)} of {budget.cap.text(rounding='down')} left{held}"
    asks = "" if loss is None else f", and this search may cost up to {loss.text()}"
    advice = ""
    if left > 0:
        advice = f". Pass max_epsilon={down(left)}, or when_short='lower' to have it lowered"
    return BudgetExceeded(f"{has}{asks}{advice}. {_NOTHING}", left)
