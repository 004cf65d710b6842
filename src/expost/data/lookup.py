"""Stated labels, and which of them a cell is: categories, classes, and the marks that stand for a missing cell.

The same table may come as text (a CSV file), as numbers or with types of its own, and must be read alike. So text is
compared as it stands, without spaces around it, and text that equals no label is compared as a number: ``"1"``,
``"1.0"`` and ``1`` are one label, and ``"01"`` is the same unless it is stated too, as codes with zeros in front may
be. ``True`` is 1, and its text ``"true"``, ``"True"`` or ``"TRUE"``.
What is missing everywhere: None, NaN (also as text), and the NA and NaT of pandas. Each cell is read by itself, by
:func:`expost.data.cells.label`, which calls nothing of a type it does not know.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, Final

from expost.data.cells import Label, label

__all__ = ["MISSING", "UNKNOWN", "Lookup", "is_na"]

MISSING: Final = -1
UNKNOWN: Final = -2

_WORDS: Final = {"true": 1, "True": 1, "TRUE": 1, "false": 0, "False": 0, "FALSE": 0}
_LONGEST_INTEGER = 40  # longer text is a float


class Lookup:
    """Groups of labels; a cell gets the number of its group.

    Parameters
    ----------
    groups : sequence of sequences of str, int, float or bool
        Labels that mean the same.
    fold : bool, default=False
        Whether upper and lower case are the same.

    Raises
    ------
    ValueError
        If two groups share a label; it is stated, not read, and so may be quoted.

    Examples
    --------
    >>> lookup = Lookup([["no"], ["yes"], [3]])
    >>> lookup.codes(["yes", " no ", "3.0", 3, None, "maybe", [3]])
    [1, 0, 2, 2, -1, -2, -2]
    """

    def __init__(self, groups: Sequence[Sequence[Any]], *, fold: bool = False) -> None:
        self._fold = fold
        self._texts: dict[str, int] = {}
        self.numbers: dict[int | float, int] = {}
        words: dict[int | float, int] = {}
        for code, group in enumerate(groups):
            for stated in group:
                value = label(stated)
                if isinstance(value, str):
                    text = self._plain(value)
                    self._add(self._texts, text, code, stated)
                    read = _number(text)
                    if read is not None and math.isfinite(read) and text in (str(read), repr(float(read))):
                        self._add(self.numbers, read, code, stated)
                    elif text in _WORDS:
                        words[_WORDS[text]] = code
                elif isinstance(value, int | float) and math.isfinite(value):
                    self._add(self.numbers, value, code, stated)
                else:
                    raise ValueError("a label must be text, a finite number, true or false")
        self.numbers = {**words, **self.numbers}  # 1 for "true", unless 1 is stated too

    def __repr__(self) -> str:
        return f"Lookup({len(self._texts)} texts, {len(self.numbers)} numbers)"

    def codes(self, cells: list[Any]) -> list[int]:
        """Return the group of each cell, ``MISSING`` or ``UNKNOWN``."""
        texts, code = self._texts, self.code
        # Text as it was stated needs no second look; which way is taken depends on the cell alone.
        return [texts[cell] if type(cell) is str and cell in texts else code(cell) for cell in cells]

    def code(self, cell: Any) -> int:
        """Return the group of one cell, ``MISSING`` or ``UNKNOWN``.

        Examples
        --------
        >>> Lookup([["no"], ["yes"]], fold=True).code(b"YES")
        1
        """
        value: Label | None = label(cell)
        if value is None:
            return MISSING if cell is None or is_na(cell) else UNKNOWN
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            text = self._plain(value)
            found = self._texts.get(text)
            if found is not None:
                return found
            read = _number(text)
            if read is None:
                return UNKNOWN
            value = read
        return MISSING if value != value else self.numbers.get(value, UNKNOWN)

    def _plain(self, text: str) -> str:
        text = text.strip()
        return text.lower() if self._fold else text

    def _add(self, table: dict[Any, int], key: Any, code: int, stated: Any) -> None:
        if table.setdefault(key, code) != code:
            raise ValueError(f"{stated!r} appears twice")


def _number(text: str) -> int | float | None:
    """Read text as a number, as an integer if it is one: floats beyond 2⁵³ are not told apart."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LONGEST_INTEGER:
        try:
            return int(text)
        except ValueError:
            pass
    try:
        return float(text)
    except ValueError:
        return None


def is_na(cell: Any) -> bool:
    """Say whether a cell is one of the two objects of pandas for "missing"; by identity, which calls nothing."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and (cell is getattr(pandas, "NA", pandas) or cell is getattr(pandas, "NaT", pandas))
