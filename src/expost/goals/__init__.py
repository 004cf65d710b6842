"""Targets people have, each whole in a file of its own: its promise, its test, its units, its prices.

:class:`ExcessRisk` is the paper's. An error rate or a mean squared error is tested as it stands. A fraction of what the
null model leaves on the table becomes an excess risk by a private measurement (`expost.goals.relative`).

Names are imported when asked for. The command line reads :data:`FLAGS` alone until it knows that it was called rightly,
and a release from a file, which names its goal, reads the goal's words there without importing one.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, NamedTuple

from expost import validation
from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.goals.error_rate import ErrorRate as ErrorRate
    from expost.goals.excess_risk import ExcessRisk as ExcessRisk
    from expost.goals.goal import Goal as Goal, TestedGoal as TestedGoal
    from expost.goals.log_loss import LogLoss as LogLoss
    from expost.goals.mean_squared_error import R2 as R2, MeanSquaredError as MeanSquaredError
    from expost.goals.relative import RelativeExcessRisk as RelativeExcessRisk

    GOALS: tuple[type[Goal], ...]


class Flag(NamedTuple):
    """How a goal reads on the command line and in a release; its file says what it is."""

    name: str
    metavar: str
    help: str
    #: The number stated lies strictly between 0 and this.
    end: float = 1.0
    #: What a constant reaches: what is promised says little without it.
    yardstick: str = ""
    #: How predictions are judged, beside that they are.
    judged: str = ""
    #: Whether it is a goal of tables with a schema, which says nothing about a λ.
    of_tables: bool = True
    #: Whether its number is the least that will do.
    at_least: bool = False
    #: What releases call it, where that is not its option in words.
    stated_as: str = ""

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


def _goals() -> tuple[type[Goal], ...]:
    """Return every goal, in the order of the flags."""
    return tuple(getattr(sys.modules[__name__], name) for name in FLAGS)


__getattr__, __all__ = public_names(__name__, {"GOALS": _goals})
