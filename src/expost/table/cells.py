"""One raw cell at a time: what it is as a number, and what it is as a label.

What a cell becomes depends on that cell alone, and no cell may raise, warn or print: each would tell the world
about its row. So a cell is read only if its type is on the list below, by code of Python and NumPy that is known to
do nothing else. Every other object is not a number and no label, and none of its methods is called, not even to
hash, compare or convert it: types are told apart by identity, because a metaclass may define those as well.

========================================  =================================  =============================
cell                                      as a number                        as a label
========================================  =================================  =============================
bool, int, float; NumPy's real scalars    its value; ±∞ beyond float64       equal numbers are equal
Decimal, Fraction                         the nearest float64                as that float64
str                                       what ``float(text)`` says          equal text
bytes                                     what ``float(text)`` says          equal bytes
an array without dimensions               as its only entry                  as its only entry
None                                      missing                            none
anything else                             not a number                       none
========================================  =================================  =============================

Subclasses of float, int, str and bytes are read as what they inherit from, whatever they override. ``float(text)``
takes ``" 1.5 "``, ``"1e3"``, ``"1_000"``, ``"nan"`` and ``"-inf"``, and neither ``"1,5"`` nor ``"true"``.

Stated labels are categories, classes, and the marks that stand for a missing cell; a :class:`Lookup` says which of them
a cell is. The same table may come as text (a CSV file), as numbers or with types of its own, and must be read alike. So
text is compared as it stands, without spaces around it, and text that equals no label is compared as a number: ``"1"``,
``"1.0"`` and ``1`` are one label, and ``"01"`` is the same unless it is stated too, as codes with zeros in front may
be. ``True`` is 1, and its text ``"true"``, ``"True"`` or ``"TRUE"``. What is missing everywhere: None, NaN (also as
text), and the NA and NaT of pandas. Each cell is read by itself, by :func:`expost.table.cells.label`, which calls
nothing of a type it does not know.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Label = int | float | str | bytes
"""What labels are compared as."""

_REPLACED: Final = "\ufffd"  # what stands for bytes that are not in the encoding
_NAN: Final = float("nan")
_INF: Final = float("inf")

# Exact types, by identity. Types that are never destroyed keep theirs, so no other type can be taken for them.
_INTEGERS: Final = frozenset(map(id, (bool, int, np.bool_, *(np.dtype(code).type for code in "bBhHiIlLqQ"))))
_FLOATS: Final = frozenset(map(id, (float, *(np.dtype(code).type for code in "efdg"))))
# Cells that float() reads by itself, and fails for with nothing but a ValueError or an OverflowError; and none.
_PLAIN: Final = _INTEGERS | _FLOATS | {id(str), id(type(None))}


def numbers(cells: list[Any]) -> npt.NDArray[np.float64]:
    """Read each cell as a number; what is none becomes NaN."""
    kinds = set(map(id, map(type, cells)))
    with np.errstate(all="ignore"):  # a long double may not fit
        if kinds <= _PLAIN:
            # Four times faster, and the same for every cell if none fails: which way is taken does not show.
            try:
                filled = [_NAN if cell is None else cell for cell in cells] if id(type(None)) in kinds else cells
                return np.fromiter(map(float, filled), dtype=np.float64, count=len(cells))
            except (ValueError, OverflowError):
                pass
        read = (_NAN if (value := number(cell)) is None else value for cell in cells)
        return np.fromiter(read, dtype=np.float64, count=len(cells))


def number(cell: Any) -> float | None:
    """Read one cell as a number: NaN if it is missing, None if it is something else.

    Examples
    --------
    >>> number("-1e3"), number(10**400), number(None), number(2j), number([1.0])
    (-1000.0, inf, nan, None, None)
    """
    value = label(cell)
    if isinstance(value, float):
        return value
    if value is None:
        return _NAN if cell is None else None
    try:
        return float(value)
    except OverflowError:  # an integer, for text that is too large is infinite already
        return _INF if isinstance(value, int) and value > 0 else -_INF
    except ValueError:  # text of something else
        return None


def label(cell: Any) -> Label | None:
    """Reduce a cell to what labels are compared as, None if it can be no label.

    Examples
    --------
    >>> label(np.int64(3)), label(True), label("yes"), label(b"yes"), label([3]), label(None)
    (3, 1, 'yes', b'yes', None, None)
    """
    kind = type(cell)
    if kind is str:
        return cell  # type: ignore[no-any-return]
    if id(kind) in _INTEGERS:
        return int(cell)
    if id(kind) in _FLOATS:
        return float(cell)
    if kind is np.ndarray and cell.ndim == 0 and cell.dtype.kind in "biufUSO":
        entry = cell.item()
        return None if type(entry) is np.ndarray else label(entry)  # arrays may be nested without end
    return _rare(cell, kind)


def resolve_classes(classes: Sequence[Any] | npt.NDArray[Any]) -> tuple[Label, Label]:
    """Check that ``classes`` is a pair of different labels, the negative one first."""
    pair = [label(stated) for stated in classes]
    if len(pair) != 2 or pair[0] is None or pair[1] is None or any(c != c for c in pair) or _equal(*pair):
        raise ValueError(
            "classes must be a pair (negative label, positive label) of two different labels, each a number or text"
        )
    return pair[0], pair[1]


def signs(cells: list[Any], classes: tuple[Label, Label]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say which cells are the positive class and which are neither class."""
    read = [label(cell) for cell in cells]
    negative, positive = (np.fromiter((_equal(c, x) for x in read), dtype=np.bool_, count=len(read)) for c in classes)
    return positive, ~(negative | positive)


def _rare(cell: Any, kind: type) -> Label | None:
    """Go on with types met less often. The methods called are those of the classes named here."""
    if kind is Decimal:
        # A signalling NaN is the one that cannot be converted.
        return _NAN if cell.is_nan() else float(cell)
    if kind is Fraction:
        return _quotient(cell.numerator, cell.denominator)
    # issubclass of a real type looks at its line of descent and calls nothing.
    if issubclass(kind, str):
        return str.__str__(cell)
    if issubclass(kind, bytes):
        return bytes.__bytes__(cell)
    if issubclass(kind, float):
        return float.__float__(cell)
    if issubclass(kind, int):
        return int.__int__(cell)
    return None


def _equal(stated: Label | None, value: Label | None) -> bool:
    # Python may be told to warn where text is compared with bytes.
    if type(stated) is str or type(stated) is bytes:
        return type(value) is type(stated) and value == stated
    return (type(value) is int or type(value) is float) and value == stated


def _quotient(numerator: Any, denominator: Any) -> float | None:
    if id(type(numerator)) not in _INTEGERS or id(type(denominator)) not in _INTEGERS:
        return None  # a fraction keeps whatever it was made of
    above, below = int(numerator), int(denominator)
    try:
        return above / below
    except OverflowError:
        return _INF if (above > 0) == (below > 0) else -_INF
    except ZeroDivisionError:
        return None


def is_undecoded(cell: Any) -> bool:
    r"""Say whether a cell is text with marks where bytes were not in the encoding, or bytes that are not in UTF-8.

    Examples
    --------
    >>> [is_undecoded(cell) for cell in ("Z\ufffdrich", "Zürich", b"Z\xfcrich", "Zürich".encode(), 7)]
    [True, False, True, False, False]
    """
    value = cell if type(cell) is str else label(cell)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return isinstance(value, str) and _REPLACED in value


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
        """Return the group of one cell, ``MISSING`` or ``UNKNOWN``."""
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
