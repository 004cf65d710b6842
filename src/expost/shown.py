"""Text as it may be shown: control characters are spelled out, wherever a name, a label or a message came from.

A name from somebody else's file could otherwise move the cursor, colour or overwrite what stands on a terminal, turn
the direction of reading, or begin a line of its own that looks like ours.

How an ε, and what follows from it, is written for people: never better than what holds.

A loss, paid or possible, is rounded up, and so are the odds and suspicions it allows; a cap, and what is left of it, is
rounded down. Promises likewise, in six digits: at most so much upwards, at least so much, or a probability, downwards.
Nothing else in the package writes one in a few digits (``tests/test_losses_shown.py`` reads the source).
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Container, Iterable, Sequence

# C0 and C1 (and C1 as undecodable bytes of file names), line separators, marks and overrides of direction
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udc9f]")
_BREAK = re.compile(f"[\t\n{_CONTROL.pattern[1:]}")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def visible(text: str) -> str:
    r"""Return a text with control characters as ``\u001b``, which leaves JSON as it is; tabs and ends of lines stay.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\nc"))
    a\u001b[2Jb
    c
    """
    return _CONTROL.sub(_spelled, text)


def one_line(text: object) -> str:
    r"""Return what is shown of a name or label within a line, which it must not end.

    Examples
    --------
    >>> print(one_line("age\n(years)"))
    age\u000a(years)
    """
    return _BREAK.sub(_spelled, str(text))


def _spelled(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def up(value: float, digits: int = 4) -> str:
    """Write a number in a few digits, rounded up: a privacy loss is not to look smaller than it is.

    Examples
    --------
    >>> up(0.123412), up(0.1), up(1234567.0), up(float("inf")), up(0.0834, 2)
    ('0.1235', '0.1', '1.235e+06', 'inf', '0.084')
    """
    return _rounded(value, digits, decimal.ROUND_CEILING)


def down(value: float, digits: int = 4) -> str:
    """Write a number in a few digits, rounded down: what is left is not to look larger than it is.

    Examples
    --------
    >>> down(0.12349), down(0.1)
    ('0.1234', '0.1')
    """
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def number(value: float, digits: int = 4) -> str:
    """Return a number for people, with a proper minus sign.

    Examples
    --------
    >>> number(-1234.5678), number(0.0012345), number(-0.0), number(-1.05e-7)
    ('−1,235', '0.001234', '0', '−1.05·10⁻⁷')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else f"{value:g}".replace("-", "−").replace("inf", "∞")
    size = decimal.Context(prec=digits).create_decimal(repr(abs(float(value))))
    sign = "−" if value < 0 else ""
    if -4 <= size.adjusted() < 9:
        shown = f"{size:,f}"
        return sign + (shown.rstrip("0").rstrip(".") if "." in shown else shown)
    mantissa = f"{size.scaleb(-size.adjusted()):f}"
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{sign}{mantissa}·10{str(size.adjusted()).translate(_RAISED)}"


def exact(value: float, digits: int = 17) -> str:
    """Write a number so that reading it gives the same one: in a command to copy, where no rounding will do.

    One that was brought into other units takes fewer ``digits``, without what floats added on the way.

    Examples
    --------
    >>> exact(20.0), exact(1.2345678e-06), exact(0.25), exact(0.35 / 25.0, 12)
    ('20', '1.2345678e-06', '0.25', '0.014')
    """
    return repr(float(f"{value:.{digits}g}")).removesuffix(".0")


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(exact):.{max(digits, 4)}g}"


def counted(count: int, word: str) -> str:
    """Return how many of something there are, in words.

    Examples
    --------
    >>> counted(1, "look"), counted(2, "look")
    ('1 look', '2 looks')
    """
    return f"{count} {word}" + ("" if count == 1 else "s")


def percent(share: float) -> str:
    """Write a share of at most 1 in per cent, rounded up: three digits, more of them near 100, none above it.

    Examples
    --------
    >>> percent(0.01), percent(0.01489), percent(0.5512), percent(0.99991), percent(1.0)
    ('1 %', '1.49 %', '55.2 %', '99.991 %', '100 %')
    """
    value = 100 * decimal.Decimal(repr(share))
    if value >= 100 or value <= 0:
        return f"{max(0, min(100, value)):.0f} %"
    places = 2 - value.adjusted()
    if value > 99:
        places = max(1, 1 - (100 - value).adjusted())
    rounded = value.quantize(decimal.Decimal(1).scaleb(-places), rounding=decimal.ROUND_CEILING)
    text = f"{min(rounded, decimal.Decimal(100)):f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence has them.

    Examples
    --------
    >>> joined(["recall"]), joined(["recall", "precision"]), joined(["recall", "precision", "error rate"])
    ('recall', 'recall and precision', 'recall, precision and error rate')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def listed(items: Iterable[object], limit: int = 10) -> str:
    """Name the first of some things, and say how many more there are.

    Examples
    --------
    >>> listed(["age", "income"]), listed(range(100_000), limit=2)
    ('age, income', '0, 1 and 99,998 more')
    """
    shown = [str(item) for item in items]
    return ", ".join(shown[:limit]) + (f" and {len(shown) - limit:,} more" if len(shown) > limit else "")


def aligned(rows: Sequence[Sequence[object]], right: Container[int] = (), gap: str = "  ") -> list[str]:
    """Return the lines of a table, some columns of it set to the right.

    Examples
    --------
    >>> aligned([("age", 31), ("income", 1200)], right=[1])
    ['age       31', 'income  1200']
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        gap.join(
            text.rjust(width) if j in right else text.ljust(width)
            for j, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
