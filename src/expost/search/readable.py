"""A look at the table before a model is paid for: does it fit the schema at all?

Where no row may raise (``on_invalid="clip"``), a misspelt label or a text column given bounds would turn into a model
of nothing. *Released*: whether two noisy counts pass. *Neighbours*: one row replaced. *Sensitivity*: the smallest
number of readable cells in any column, and the number of rows whose target is readable, each move by at most one.
*Theorem*: Laplace noise of scale n/40 costs 40/n each. Where neighbours differ in a person of k rows, n = m·k and the
account charges k times that, 40/m (`expost.privacy.unit`). No promise rests on it: a table that fits is refused with a
probability of at most e⁻⁶, and one that does not is refused most likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from expost.exceptions import TargetUnreachable
from expost.noise.laplace import discrete_laplace
from expost.noise.source import WordSource
from expost.privacy.account import Account
from expost.privacy.composition import add_losses
from expost.privacy.release import Release
from expost.privacy.unit import ROW, Unit
from expost.rounding import down, up
from expost.search.request import Plan

_EACH = 40.0  # ε of a count, times n
_ENOUGH = 0.85  # of the rows have a readable target
_SOME = 0.15  # of the cells of every column are readable


@dataclass(frozen=True, repr=False)
class CheckedPlan:
    """A plan that first looks whether the table fits.

    ``columns`` are the readable cells of each column and ``labels`` the readable targets; these counts are private.
    """

    plan: Plan
    columns: Sequence[int]
    labels: int
    n: int
    budget: float
    unit: Unit = ROW

    def __post_init__(self) -> None:
        if self.cost >= self.budget:
            cost, budget = self.unit.charge(self.cost), self.unit.charge(self.budget)
            raise TargetUnreachable(
                f"at {self.unit.count(self.n)} looking whether the table fits its schema would cost epsilon = "
                f"{up(cost)}, more than max_epsilon = {down(budget)}. Nothing was spent."
            )

    def __repr__(self) -> str:
        return f"CheckedPlan(n={self.n})"

    @property
    def cost(self) -> float:
        """What the two counts cost."""
        return add_losses(_EACH / self.n, _EACH / self.n)

    @property
    def gaussian(self) -> bool:
        """Whether the plan behind books Gaussian curves."""
        return getattr(self.plan, "gaussian", False)

    @property
    def worst_case(self) -> float:
        """No outcome costs more than the plan and the counts, nor than the budget."""
        return self.budget

    def search(self, generator: Any, account: Account, source: WordSource) -> Release:
        """Look, and go on if the table fits."""
        if not account.affords(self.cost):
            account.reasons.append("looking whether the table fits its schema would exceed the budget")
            return account.refused()
        noise = discrete_laplace(_EACH / self.n, 1, 2, random_state=source)
        account.look_first(self.cost)
        known = self.labels + int(noise[0])
        fewest = min(self.columns, default=self.n) + int(noise[1])
        if known < _ENOUGH * self.n:
            account.reasons.append(
                f"hardly enough rows have a target that the schema knows (about {max(0, known):,} of {self.n:,}): is a "
                f"label misspelt? expost check tells the curator"
            )
            return account.refused(parameters={"unfit": True})
        if fewest < _SOME * self.n:
            account.reasons.append(
                "a column has hardly any cell that fits the schema: is a text column given bounds, or are categories "
                "misspelt? expost check tells the curator"
            )
            return account.refused(parameters={"unfit": True})
        account.reasons.append(f"the table fits its schema, counted for epsilon = {up(self.unit.charge(self.cost))}")
        return self.plan.search(generator, account, source)
