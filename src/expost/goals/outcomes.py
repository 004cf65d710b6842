"""Recall, precision, F₁, specificity and a cost of errors, by outcomes of rows (`expost.goals.labels_and_base_rate`).

| goal | counted | among | a hit adds | a false alarm | a miss | a quiet row |
|---|---|---|---|---|---|---|
| recall ≥ r | hits | positive rows | r − 1 | 0 | r | 0 |
| precision ≥ q | hits | rows called positive | q − 1 | q | 0 | 0 |
| F₁ ≥ f | hits, twice | the same, false alarms and misses | 2f − 2 | f | f | 0 |
| specificity ≥ s | quiet rows | negative rows | 0 | s | 0 | s − 1 |
| mean cost ≤ c | false alarms, each a, and misses, each b | all rows | −c | a − c | b − c | −c |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from expost import validation
from expost.goals.labels_and_base_rate import BaseRate, CountedGoal, Weights
from expost.shown import down, exact, up

if TYPE_CHECKING:
    from expost.search.request import Plan, Request


@dataclass(frozen=True)
class _AtLeast(CountedGoal):
    """At least that part of some rows counts."""

    at_least: float
    base: BaseRate | None = field(default=None, repr=False)

    sign = "≥"


@dataclass(frozen=True)
class Recall(_AtLeast):
    """At least this share of the positive rows is predicted positive; asked for beside another goal.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> Recall(0.8) & Precision(0.4)
    Recall(at_least=0.8) & Precision(at_least=0.4)
    """

    name = "recall"
    counted = (1.0, 0.0, 0.0, 0.0)
    among = (1.0, 0.0, 1.0, 0.0)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"at least {down(self.at_least, 6)} of the positive rows are predicted positive (recall)"

    def plan(self, request: Request) -> Plan:
        """Refuse: always saying yes would do."""
        raise ValueError(
            "recall alone is met by always giving the positive label, which needs no rows; ask for Precision(...), "
            "Specificity(...) or ErrorRate(...) beside it. Nothing was spent"
        )


@dataclass(frozen=True)
class Precision(_AtLeast):
    """At least this share of the rows that are predicted positive is positive.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> Precision(0.4).words
    'precision ≥ 0.4'
    """

    name = "precision"
    counted = (1.0, 0.0, 0.0, 0.0)
    among = (1.0, 1.0, 0.0, 0.0)
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"of the rows predicted positive at least {down(self.at_least, 6)} are (precision)"


@dataclass(frozen=True)
class F1(_AtLeast):
    """F₁, the harmonic mean of recall and precision, is at least this.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> F1(0.5).added.reach
    1.5
    """

    name = "F₁"
    counted = (2.0, 0.0, 0.0, 0.0)
    among = (2.0, 1.0, 1.0, 0.0)
    offered: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

    def statement(self) -> str:
        """Say what is promised about the mean."""
        return f"F₁, the harmonic mean of recall and precision, is at least {down(self.at_least, 6)}"


@dataclass(frozen=True)
class Specificity(_AtLeast):
    """At least this share of the negative rows is predicted negative; asked for beside another goal.

    Parameters
    ----------
    at_least : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> (Recall(0.8) & Specificity(0.7)).words
    'recall ≥ 0.8 and specificity ≥ 0.7'
    """

    name = "specificity"
    counted = (0.0, 0.0, 0.0, 1.0)
    among = (0.0, 1.0, 0.0, 1.0)

    def statement(self) -> str:
        """Say what is promised about the share."""
        return f"at least {down(self.at_least, 6)} of the negative rows are predicted negative (specificity)"

    def plan(self, request: Request) -> Plan:
        """Refuse: always saying no would do."""
        raise ValueError(
            "specificity alone is met by always giving the negative label, which needs no rows; ask for Recall(...) "
            "beside it. Nothing was spent"
        )


@dataclass(frozen=True)
class MeanCost(CountedGoal):
    """The mean over all rows of what their errors cost is at most this.

    Parameters
    ----------
    at_most : float
        In the units that costs are stated in.
    false_positive, false_negative : float, default=1.0
        What an error costs: a negative row predicted positive, and a positive one predicted negative.

    Examples
    --------
    >>> goal = MeanCost(0.3, false_positive=1, false_negative=20)
    >>> goal.words, goal.added.reach
    ('mean cost ≤ 0.3', 20.0)
    """

    at_most: float
    false_positive: float = 1.0
    false_negative: float = 1.0
    base: BaseRate | None = field(default=None, repr=False)

    name = "mean cost"
    end: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("false_positive", "false_negative"):
            object.__setattr__(self, name, validation.share(name, getattr(self, name), end=math.inf))

    def statement(self) -> str:
        """Say what is promised about the mean."""
        return (
            f"the mean cost of a row is at most {up(self.at_most, 6)}, a false positive costing "
            f"{exact(self.false_positive)} and a false negative {exact(self.false_negative)}"
        )

    @property
    def counted(self) -> Weights:  # type: ignore[override]
        """What errors cost."""
        return 0.0, self.false_positive, self.false_negative, 0.0

    @property
    def option(self) -> str:
        """How the command line states it."""
        costs = f"fp={exact(self.false_positive)},fn={exact(self.false_negative)}"
        return f"--cost {costs} {super().option}"

    @property
    def costs(self) -> dict[str, float]:
        """What errors cost."""
        return {"false_positive": self.false_positive, "false_negative": self.false_negative}

    @property
    def full(self) -> float:
        """What the cheaper error costs: always giving one label costs no more."""
        return min(self.false_positive, self.false_negative)

    def plan(self, request: Request) -> Plan:
        """Refuse what costs nothing to meet; else test."""
        if self.at_most >= min(self.false_positive, self.false_negative):
            raise ValueError(
                "always giving one label costs no more than that on average, whatever the rows: ask for a smaller "
                "mean cost than either error costs. Nothing was spent"
            )
        return super().plan(request)
