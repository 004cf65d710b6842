"""How goals read on the command line; nothing else, so that ``--help`` and mistakes need no goal imported."""

from __future__ import annotations

from typing import NamedTuple

from expost import validation


class Flag(NamedTuple):
    """How a goal reads on the command line."""

    name: str
    metavar: str
    help: str
    #: The number stated lies strictly between 0 and this.
    end: float = 1.0

    @property
    def attribute(self) -> str:
        """The name of the parsed option."""
        return self.name.removeprefix("--").replace("-", "_")

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
