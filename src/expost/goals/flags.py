"""How goals read: on the command line, and in the words of a release.

Nothing else, so that ``--help`` and mistakes need no goal imported, and a release from a file, which names its goal, is
read without one.
"""

from __future__ import annotations

from typing import NamedTuple

from expost import validation


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
