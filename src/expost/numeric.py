"""Floating-point error bounds and safe rounding, used wherever a bound has to hold and not just be close.

The model is the standard one (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapters
2-3): each operation has relative error at most ``u = 2**-53``, and an inner product of ``k`` terms, summed
in any order and with or without fused multiply-add, has error at most ``gamma(k)`` times the sum of the
absolute products. "Any order" is what makes the bounds independent of the BLAS and of its threads.

Names for the array types this room passes around.

What every object that holds private values has in common: it cannot be pickled or printed by accident.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

UNIT = 2.0**-53
#: Rows summed in one go; block sums are added afterwards, so errors grow like BLOCK + n/BLOCK and not like n.
BLOCK = 8192
#: Final inflation of an error bound: covers second-order terms, the rounding of the bound's own evaluation,
#: and rows whose computed norm is above one by a rounding error (at most ``ROW_SLACK``).
INFLATION = 1.0 + 1e-6
ROW_SLACK = 1e-9


def gamma(k: int) -> float:
    """Return Higham's constant k·u / (1 − k·u).

    Examples
    --------
    >>> gamma(8192) < 1e-12
    True
    """
    if not 0 <= k * UNIT < 0.5:
        raise ValueError("too many operations for a floating-point error bound")
    return k * UNIT / (1.0 - k * UNIT)


def summation_length(n: int) -> int:
    """Return k such that a blocked sum over n rows has relative error at most ``gamma(k)``.

    One is for multiplying by a count where equal rows are taken together: fewer terms, each rounded once more.
    """
    return min(n, BLOCK) + -(-n // BLOCK) + 1


def round_up(value: float, ulps: int = 8) -> float:
    """Return ``value`` moved up by ``ulps`` units in the last place.

    A sensitivity may err on the large side only; eight units cover the handful of roundings in its formula.

    Examples
    --------
    >>> 1.0 < round_up(1.0) < 1.0 + 1e-14
    True
    """
    for _ in range(ulps):
        value = math.nextafter(value, math.inf)
    return value


FloatArray = npt.NDArray[np.float64]
#: int64, or Python integers (object dtype) where 64 bits would not be enough.
IntegerArray = npt.NDArray[np.int64] | npt.NDArray[np.object_]
AnyArray = npt.NDArray[Any]


class Private:
    """Base of objects that hold values no privacy guarantee covers (sums, minimisers, true risks)."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied: private values leave only through a release."""
        raise TypeError(f"{type(self).__name__} holds private values and is never pickled")
