"""How an ε, and what follows from it, is written for people: never better than what holds.

A loss, paid or possible, is rounded up, and so are the odds and suspicions it allows; a cap, and what is left of it, is
rounded down. Nothing else in the package writes one in a few digits (``tests/test_losses_shown.py`` reads the source).
"""

from __future__ import annotations

import decimal
import math

__all__ = ["down", "percent", "up"]


def up(value: float, digits: int = 4) -> str:
    """Write a number in a few digits, rounded up: a privacy loss is not to look smaller than it is.

    Examples
    --------
    >>> up(0.123412), up(0.1), up(1234567.0), up(float("inf")), up(0.0834, 2)
    ('0.1235', '0.1', '1.235e+06', 'inf', '0.084')
    """
    return _rounded(value, digits, decimal.ROUND_CEILING)


def down(value: float) -> str:
    """Write a number with four digits, rounded down: what is left is not to look larger than it is.

    Examples
    --------
    >>> down(0.12349), down(0.1)
    ('0.1234', '0.1')
    """
    return _rounded(value, 4, decimal.ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(exact):.{max(digits, 4)}g}"


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
