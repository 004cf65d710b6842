"""What a report says about the data set's budget, in plain numbers, wherever they are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expost.privacy.curve_loss import ApproximateCap, CurveLoss
from expost.privacy.loss import PureLoss

if TYPE_CHECKING:
    from expost.privacy.ledger import Ledger
    from expost.privacy.release import Release

__all__ = ["BudgetLine"]


@dataclass(frozen=True)
class BudgetLine:
    """What has been spent on a data set, this release included.

    Attributes
    ----------
    dataset
        Its name.
    spent
        Sum of the losses of all releases about it.
    cap
        What they may come to, if somebody has settled that.
    entry
        What the book calls this release.
    held
        Part of ``spent`` that is held for searches whose outcome is not known; with a δ, what that part is by itself.
    delta
        δ of the budget: ``spent`` and ``cap`` are at it, and losses do not simply add up.
    left
        What one more fit may cost, where that is not the difference.

    Examples
    --------
    >>> BudgetLine("survey-2026", spent=0.41, cap=2.0).remaining
    1.59
    """

    dataset: str
    spent: float
    cap: float | None = None
    entry: str | None = None
    held: float = 0.0
    delta: float = 0.0
    left: float | None = None

    def __post_init__(self) -> None:
        for name in ("spent", "held"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be a non-negative number")
        if self.cap is not None and not self.cap >= 0:
            raise ValueError("cap must be a non-negative number")

    @classmethod
    def of(cls, ledger: Ledger, release: Release) -> BudgetLine:
        """Return what a ledger says about the data set of a release, which must be booked there."""
        budget = ledger.budget
        total, held, cap, entry = budget.total, budget.held, budget.cap, budget.entry(release.id).id
        if isinstance(total, PureLoss) and isinstance(held, PureLoss) and isinstance(cap, PureLoss):
            return cls(ledger.dataset, total.epsilon, cap.epsilon, entry, held.epsilon)
        assert isinstance(total, CurveLoss)
        assert isinstance(held, CurveLoss)
        assert isinstance(cap, ApproximateCap)
        left = budget.ceiling(cap.delta)
        return cls(ledger.dataset, total.epsilon, cap.epsilon, entry, held.epsilon, cap.delta, left)

    @property
    def remaining(self) -> float:
        """What is left; infinite without a cap."""
        if self.left is not None:
            return self.left
        return math.inf if self.cap is None else max(0.0, self.cap - self.spent)
