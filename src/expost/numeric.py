"""Numbers that have to hold: error bounds and safe rounding, public grids, array types, and what is private.

*Rounding.* The model is the standard one (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapters
2-3): each operation has relative error at most ``u = 2**-53``, and an inner product of ``k`` terms, summed in any order
and with or without fused multiply-add, has error at most ``gamma(k)`` times the sum of the absolute products. "Any
order" is what makes the bounds independent of the BLAS and of its threads.

*Grids.* Statistics are whole multiples of a public unit, and rounding to it adds to a sensitivity. Neighbours differ
in one replaced row; the number of rows n is public. A sensitivity may err on the large side only.

*Private*: what every object that holds private values has in common; it cannot be pickled or printed by accident.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
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


def round_up(value: float) -> float:
    """Return ``value`` moved up by eight units in the last place, which cover the handful of roundings in a formula.

    Examples
    --------
    >>> 1.0 < round_up(1.0) < 1.0 + 1e-14
    True
    """
    for _ in range(8):
        value = math.nextafter(value, math.inf)
    return value


def bisected(holds: Callable[[float], bool], low: float, high: float, steps: int) -> tuple[float, float]:
    """Halve an interval so many times, around the point up to which something holds, and return its ends.

    Examples
    --------
    >>> bisected(lambda x: x * x <= 2.0, 1.0, 2.0, 3)
    (1.375, 1.5)
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


FloatArray = npt.NDArray[np.float64]
#: int64, or Python integers (object dtype) where 64 bits would not be enough.
IntegerArray = npt.NDArray[np.int64] | npt.NDArray[np.object_]
AnyArray = npt.NDArray[Any]


class Private:
    """Base of objects that hold values no privacy guarantee covers: sums, minimisers, true risks, unrevealed noise."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied: private values leave only through a release."""
        raise TypeError(f"{type(self).__name__} holds private values or unrevealed noise; it cannot be pickled")


def check(*, n: int | None = None, radius: float | None = None, lam: float | None = None, p: int | None = None) -> None:
    """Reject arguments for which a formula would return a number that means nothing."""
    if n is not None and n < 1:
        raise ValueError("n must be at least 1")
    if p is not None and p < 1:
        raise ValueError("the number of coordinates must be at least 1")
    if radius is not None and not radius >= 0.0:
        raise ValueError("radius must be non-negative")
    if lam is not None and not 0.0 < lam < math.inf:
        raise ValueError("lam must be positive and finite")


UNITS = 1 << 20  # units in one sensitivity, where every hypothesis is measured by its own


def public_grid(delta: float) -> float:
    """Return a power of two between Δ·2⁻²¹ and Δ·2⁻²⁰: fine enough to cost a millionth."""
    if not 0 < delta < math.inf:
        raise ValueError(f"sensitivity must be positive and finite, got {delta}")
    return math.ldexp(1.0, math.frexp(delta)[1] - 21)


@dataclass(frozen=True)
class Grid:
    """The public side of a value: the size of one unit, and the sensitivity in units.

    Examples
    --------
    >>> grid = Grid.of(0.001, error_bound=1e-9)
    >>> 0.001 < grid.effective_sensitivity < 0.00101
    True
    """

    unit: float
    units: int

    @classmethod
    def of(cls, sensitivity: float, *, error_bound: float = 0.0) -> Grid:
        """Return the grid, a power of two, for a value of the given sensitivity computed to within ``error_bound``."""
        if not error_bound >= 0:
            raise ValueError(f"error_bound must be non-negative, got {error_bound}")
        unit = public_grid(sensitivity)
        return cls(unit, grid_sensitivity(sensitivity + 2 * error_bound, unit, 1))

    @classmethod
    def by_sensitivity(cls, sensitivity: float, *, error_bound: float) -> Grid:
        """Return the grid on which that value has a sensitivity of UNITS units, rounding included."""
        return cls((sensitivity + 2 * error_bound) / (UNITS - 1), UNITS)

    @property
    def effective_sensitivity(self) -> float:
        """The sensitivity actually charged, rounding and floating point included, in real units."""
        return self.units * self.unit


def grid_sensitivity(delta: float | Fraction, grid: float | Fraction, coordinates: int) -> int:
    """Return ⌊Δ/g⌋ + coordinates, the ℓ₁-sensitivity in grid steps of a vector rounded to multiples of g.

    Proof. Rounding to the nearest multiple moves a coordinate by half a step at most, so two rounded
    vectors differ by at most Δ/g + coordinates steps in ℓ₁; their difference is an integer, so the floor of
    that bound holds too. The same holds for rounding down or towards zero, which never widens a difference
    by a whole step. ∎

    Computed in exact rational arithmetic: a float is the rational number it stands for.

    Examples
    --------
    >>> grid_sensitivity(1.0, 2**-20, 3) == 2**20 + 3
    True
    """
    check(p=coordinates)
    exact_delta, exact_grid = Fraction(delta), Fraction(grid)
    if exact_delta < 0 or exact_grid <= 0:
        raise ValueError("delta must be non-negative and grid positive")
    return math.floor(exact_delta / exact_grid) + coordinates
