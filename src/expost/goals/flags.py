"""Every goal, its flag and its words in a release: a table, so that who needs the words imports no goal.

The command line reads it until it knows that it was called rightly; a release from a file, which names its goal, finds
the goal's words here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from expost import validation

if TYPE_CHECKING:
    from expost.goals.excess_risk import ExcessRisk as ExcessRisk
    from expost.goals.labels_and_base_rate import ErrorRate as ErrorRate
    from expost.goals.log_loss import LogLoss as LogLoss
    from expost.goals.outcomes import (
        F1 as F1,
        MeanCost as MeanCost,
        Precision as Precision,
        Recall as Recall,
        Specificity as Specificity,
    )
    from expost.goals.relative_excess_risk import RelativeExcessRisk as RelativeExcessRisk
    from expost.goals.squared_errors import R2 as R2, MeanSquaredError as MeanSquaredError


class Flag(NamedTuple):
    """How a goal reads on the command line and in a release; its file says what it is."""

    name: str
    metavar: str
    help: str
    #: The number stated lies strictly between 0 and this.
    end: float = 1.0
    #: What a constant reaches: what is promised says little without it.
    yardstick: str = ""
    #: What to ask for rather, where no model is shown to be better than a constant.
    rather: str = ""
    #: How predictions are judged, beside that they are.
    judged: str = ""
    #: Whether it is a goal of tables with a schema, which says nothing about a λ.
    of_tables: bool = True
    #: Whether its number is the least that will do.
    at_least: bool = False
    #: What releases call it, where that is not its option in words.
    stated_as: str = ""
    #: Whether it is about outcomes of rows, so that several of its kind are one test.
    joins: bool = False
    #: Which goal has to be stated beside it, as a constant would meet it alone; and what else.
    beside: str = ""
    given: str = ""

    @property
    def attribute(self) -> str:
        """The name of the parsed option."""
        return self.kind.replace("-", "_")

    @property
    def kind(self) -> str:
        """The option without its dashes."""
        return self.name.removeprefix("--")

    @property
    def called(self) -> str:
        """What releases call the goal."""
        return self.stated_as or self.kind.replace("-", " ")

    @property
    def explored(self) -> bool:
        """Whether its number alone says what is asked of a table."""
        return self.of_tables and not self.beside and not self.given

    def check(self, value: float) -> float:
        """Return the number, or say what to state instead.

        Examples
        --------
        >>> Flag("--error-rate", "E", "share of rows misclassified at most").check(20)
        Traceback (most recent call last):
        ...
        ValueError: --error-rate must be a number strictly between 0 and 1, got 20
        """
        return validation.share(self.name, value, end=self.end)


_BOUNDED = "targets and predictions moved into the target's bounds"

#: The flag and the words of every goal, in the order the command line lists them.
FLAGS = {
    "ErrorRate": Flag(
        "--error-rate",
        "E",
        "share of rows misclassified at most",
        yardstick="always giving the commoner label is wrong as often as the other one occurs",
        rather="for a rare label ask for recall and precision, or a cost",
        joins=True,
    ),
    "Recall": Flag(
        "--recall",
        "R",
        "share of positive rows predicted positive at least; with another goal beside",
        yardstick="always giving the positive label has recall 1, and the precision of how often it occurs",
        at_least=True,
        joins=True,
        beside="--precision, --specificity or --error-rate",
    ),
    "Precision": Flag(
        "--precision",
        "Q",
        "share of rows predicted positive that are, at least",
        yardstick="always giving the positive label is as precise as it is common; precision alone may be that of few "
        "rows, so ask for a recall beside it",
        at_least=True,
        joins=True,
    ),
    "F1": Flag(
        "--f1",
        "F",
        "harmonic mean of recall and precision at least",
        yardstick="always giving a positive label of share π reaches 2π/(1 + π)",
        at_least=True,
        stated_as="F₁",
        joins=True,
    ),
    "Specificity": Flag(
        "--specificity",
        "S",
        "share of negative rows predicted negative at least; with --recall beside",
        yardstick="always giving the negative label has specificity 1, and recall 0",
        at_least=True,
        joins=True,
        beside="--recall",
    ),
    "MeanCost": Flag(
        "--cost-at-most",
        "C",
        "mean cost of a row at most, by --cost",
        math.inf,
        yardstick="always giving one label costs what an error costs as often as the other label occurs",
        stated_as="mean cost",
        joins=True,
        given="--cost fp=1,fn=20",
    ),
    "LogLoss": Flag(
        "--log-loss",
        "L",
        "mean of −log(probability given to the true label) at most",
        math.log(2.0),
        yardstick="always stating the share of a label has at most 0.693, less where one is rare",
        judged="log odds moved into bounds",
    ),
    "R2": Flag(
        "--r2",
        "R",
        "share of the target's variance explained at least",
        yardstick="always predicting the mean reaches 0",
        judged=_BOUNDED,
        at_least=True,
        stated_as="R²",
    ),
    "MeanSquaredError": Flag(
        "--mean-squared-error",
        "M",
        "at most, in squared units of the target column",
        math.inf,
        yardstick="always predicting the mean has the target's variance",
        judged=_BOUNDED,
    ),
    "ExcessRisk": Flag(
        "--excess-risk", "A", "how much worse than the best model, in scaled units", math.inf, of_tables=False
    ),
    "RelativeExcessRisk": Flag(
        "--relative-excess-risk", "R", "the same as a fraction of what the best constant misses", of_tables=False
    ),
}


def words_of(goal: str | None) -> Flag:
    """Return the entry of a goal by what releases call it; one without words for a goal that is not in the table.

    Examples
    --------
    >>> words_of("R²").yardstick, words_of("applause").yardstick
    ('always predicting the mean reaches 0', '')
    """
    return next((flag for flag in FLAGS.values() if flag.called == goal), Flag("", "", ""))


def yardstick_of(goal: str | None) -> str:
    """Return what a constant reaches, for a goal or several by what releases call them.

    Examples
    --------
    >>> yardstick_of("recall and precision").startswith("always giving the positive label has recall 1")
    True
    """
    return words_of(goal).yardstick or words_of((goal or "").split(",")[0].split(" and ")[0]).yardstick
