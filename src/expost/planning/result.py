"""What a plan says: prices of goals, what would make them smaller, and what to beware of. Public numbers only."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from expost.data.schema import Schema
from expost.goals import Goal

LIKELY = (0.1, 0.9)  # of the simulated worlds cost less
PURE = "objective, pure noise"  # beside ways at a δ: what a fit without one would do
_ROOM = 1.05  # rows asked for beyond what scaling says: the Jacobian's part shrinks a little slower than 1/n


@dataclass(frozen=True)
class MethodPrice:
    """What one way to a goal costs.

    Attributes
    ----------
    method, perturbation
        How the level is found and where the noise goes, as a release calls them.
    epsilons
        What it cost in each simulated world, in order; infinite where it did not reach the goal at any price.
    worst_case
        No outcome costs more; a promise, unlike the rest.
    close_call
        The median over the quarter of the worlds in which the best model comes closest to missing the goal.
    known
        Whether it costs ``worst_case`` whatever the rows.
    affordable
        Whether it can be tried at all within ``max_epsilon``; if not, ``worst_case`` is meant without it.
    taken
        Whether a fit goes this way if no other is stated, where several are priced.

    Examples
    --------
    >>> price = MethodPrice("auto", "objective", (0.1, 0.1, 0.2, 0.3, 0.9), 2.0, 0.3)
    >>> price.low, price.typical, price.high, price.share_within(0.25)
    (0.1, 0.2, 0.9, 0.6)
    """

    method: str
    perturbation: str
    epsilons: tuple[float, ...]
    worst_case: float
    close_call: float
    known: bool = False
    affordable: bool = True
    taken: bool = False

    def quantile(self, share: float) -> float:
        """Return the smallest ε that this share of the worlds does not exceed."""
        place = math.ceil(share * len(self.epsilons) - 1e-9)
        return self.epsilons[max(place, 1) - 1]

    @property
    def low(self) -> float:
        """Lower end of what is likely."""
        return self.quantile(LIKELY[0])

    @property
    def typical(self) -> float:
        """The median over worlds."""
        return self.quantile(0.5)

    @property
    def high(self) -> float:
        """Upper end of what is likely."""
        return self.quantile(LIKELY[1])

    def share_within(self, epsilon: float) -> float:
        """Return the share of worlds in which no more than that was paid."""
        return sum(paid <= epsilon for paid in self.epsilons) / len(self.epsilons)

    @classmethod
    def over(
        cls, method: str, perturbation: str, paid: Sequence[float], worst_case: float, **told: bool
    ) -> MethodPrice:
        """Return the price, given what was paid in each world; in the last of them goals are hardest to reach."""
        hardest = sorted(paid[-max(1, len(paid) // 4) :])
        return cls(method, perturbation, tuple(sorted(paid)), worst_case, hardest[len(hardest) // 2], **told)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; ``None`` stands for what is infinite."""
        ends = {name: getattr(self, name) for name in ("low", "typical", "high", "close_call", "worst_case")}
        return {
            "method": self.method,
            "perturbation": self.perturbation,
            **{name: _finite(value) for name, value in ends.items()},
            "known": self.known,
            "affordable": self.affordable,
            "taken": self.taken,
            "epsilons": [_finite(paid) for paid in self.epsilons],
        }


@dataclass(frozen=True)
class GoalPrice:
    """What a goal costs.

    Attributes
    ----------
    goal
        As stated.
    rows
        For how many rows, or persons where the schema names them.
    methods
        The ways to it, the cheapest first.
    unreachable
        Why no data set of this size can meet it within ``max_epsilon``; empty if one can.
    """

    goal: Goal
    rows: int
    methods: tuple[MethodPrice, ...]
    unreachable: str = ""

    @property
    def cheapest(self) -> MethodPrice:
        """The way that typically costs least."""
        return self.methods[0]

    @property
    def flag(self) -> str:
        """The goal as an option of the command line."""
        return f"{self.goal.flag.name} {number_of(self.goal):g}"

    def rows_for(self, epsilon: float) -> int | None:
        """Return about how many rows let nine in ten worlds pay at most ε; None if no number is seen to do.

        ε·n hardly depends on n.
        """
        high = self.cheapest.high
        return math.ceil(self.rows * high / epsilon * _ROOM) if math.isfinite(high) else None

    def to_dict(self, wished: float) -> dict[str, Any]:
        """Return plain values."""
        return {
            "goal": type(self.goal).__name__,
            "value": number_of(self.goal),
            "option": self.flag,
            "methods": [price.to_dict() for price in self.methods],
            "wished_epsilon": wished,
            "share_within": self.cheapest.share_within(wished),
            "rows_needed": self.rows_for(wished),
            "unreachable": self.unreachable or None,
        }


@dataclass(frozen=True)
class Saving:
    """A change of the schema and what it would save.

    Attributes
    ----------
    column, now
        Which column, and what the schema says of it.
    change
        What to write instead, or that it be left out.
    saves
        The part of ε that is saved for the same accuracy.
    provided
        What has to be true of the rows for it to make sense.
    estimated
        Whether ``saves`` was estimated on simulated rows; otherwise it follows from the schema alone.
    """

    column: str
    now: str
    change: str
    saves: float
    provided: str
    estimated: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class PricePlan:
    """What goals cost for a schema and a number of rows, said without reading any data.

    Attributes
    ----------
    schema
        None for plain arrays.
    columns, rows
        Columns after encoding, the constant included, and rows, or persons where the schema names them.
    failure_probability, max_epsilon
        γ, and the cap stated (None: none).
    goals
        What each goal costs, in the order stated.
    savings
        What costs most, the largest saving first; for the last of the goals.
    warnings
        What to beware of.
    worlds
        How many worlds were simulated.
    delta
        δ that prices are at; 0 is pure.
    """

    schema: Schema | None
    columns: int
    rows: int
    failure_probability: float
    max_epsilon: float | None
    goals: tuple[GoalPrice, ...]
    savings: tuple[Saving, ...]
    warnings: tuple[str, ...]
    worlds: int
    delta: float = 0.0

    @property
    def noun(self) -> str:
        """What is counted and protected: rows or persons."""
        return "rows" if self.schema is None or self.schema.person is None else "persons"

    @property
    def wished(self) -> float:
        """The ε that rows are counted for: the cap, or 1."""
        return 1.0 if self.max_epsilon is None else self.max_epsilon

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "schema": None if self.schema is None else self.schema.to_dict(),
            "columns": self.columns,
            "rows": self.rows,
            "counted": self.noun,
            "failure_probability": self.failure_probability,
            "max_epsilon": self.max_epsilon,
            **({"delta": self.delta} if self.delta else {}),
            "goals": [price.to_dict(self.wished) for price in self.goals],
            "savings": [saving.to_dict() for saving in self.savings],
            "warnings": list(self.warnings),
            "worlds": self.worlds,
            "data_read": False,
        }

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        from expost.planning.text import as_text

        return as_text(self)


def number_of(goal: Goal) -> float:
    """Return the number that a goal states.

    Examples
    --------
    >>> from expost.goals import R2, ErrorRate
    >>> number_of(R2(0.8)), number_of(ErrorRate(0.2))
    (0.8, 0.2)
    """
    names: Sequence[str] = ("at_most", "at_least", "fraction")
    return float(next(getattr(goal, name) for name in names if hasattr(goal, name)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
