"""Numbers as Python integers in units of 2^−bits, of any precision.

Sums and products are not rounded. Arrays have object dtype. A shift rounds down, by less than one
unit.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from expost.erm._types import AnyArray, FloatArray

_GUARD = 40  # further bits inside the exponential: its rounding stays below a thousandth of a unit
_HALVINGS = 8  # the series is summed at a 256th of its argument


def to_units(value: float, bits: int) -> int:
    """Return a finite float in units, rounded down.

    Examples
    --------
    >>> to_units(0.75, 4)
    12
    """
    numerator, denominator = value.as_integer_ratio()
    return (numerator << bits) // denominator


def array_to_units(values: FloatArray, bits: int) -> AnyArray:
    """Return finite floats in units, rounded down."""
    return np.array([to_units(value, bits) for value in values.tolist()], dtype=object)


def to_floats(values: AnyArray, bits: int) -> FloatArray:
    """Return integers in units as the nearest floats: Python divides integers with correct rounding."""
    one = 1 << bits
    return np.array([value / one for value in values.tolist()], dtype=np.float64)


def norm(values: AnyArray) -> int:
    """Return the ℓ₂ norm, rounded down.

    Examples
    --------
    >>> norm(np.array([3, 4], dtype=object))
    5
    """
    return math.isqrt(sum(value * value for value in values.tolist()))


def sigmoid(values: AnyArray, bits: int) -> AnyArray:
    """Return 1/(1 + e^{−z}), off by less than two units.

    Examples
    --------
    >>> to_floats(sigmoid(array_to_units(np.array([0.0, 2.0]), 80), 80), 80).round(8)
    array([0.5       , 0.88079708])
    """
    one = 1 << bits
    small = decay(np.abs(values), bits)
    return np.asarray(np.where(values >= 0, one << bits, small << bits) // (one + small))


def decay(values: AnyArray, bits: int) -> AnyArray:
    """Return e^{−z} for z ≥ 0, off by less than one unit.

    z = k·ln 2 + r; the alternating series at r/256, squared eight times, then halved k times. A term is rounded by one
    unit of the working precision, each squaring doubles the relative error: about 40·2⁸ units of 2^−(bits + 40).
    """
    work = bits + _GUARD
    half = _log_two(work)
    finer = values << _GUARD
    halved = finer // half
    rest = finer - halved * half >> _HALVINGS
    term = np.full(values.shape, 1 << work, dtype=object)
    total, index = term.copy(), 1
    while (np.abs(term) > 1).any():
        term = -(term * rest >> work) // index
        total += term
        index += 1
    for _ in range(_HALVINGS):
        total = total * total >> work
    return np.asarray(total >> halved >> _GUARD)


@lru_cache(maxsize=8)
def _log_two(bits: int) -> int:
    """Return ln 2 = Σ 2/((2k + 1)·3^{2k+1}), rounded down."""
    work = bits + 16
    power, total, odd = (2 << work) // 3, 0, 1
    while power:
        total += power // odd
        power //= 9
        odd += 2
    return total >> 16
