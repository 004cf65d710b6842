"""Numbers that have to hold: error bounds and safe rounding, public grids, array types, and what is private.

*Rounding.* The model is the standard one (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., chapters
2-3): each operation has relative error at most ``u = 2**-53``, and an inner product of ``k`` terms, summed in any order
and with or without fused multiply-add, has error at most ``gamma(k)`` times the sum of the absolute products. "Any
order" is what makes the bounds independent of the BLAS and of its threads.

*Grids.* Statistics are whole multiples of a public unit, and rounding to it adds to a sensitivity. Neighbours differ
in one replaced row; the number of rows n is public. A sensitivity may err on the large side only.

*Grids on which predictions are exact in float64, whatever the order of summation.* Rows are multiples of 2⁻²⁰ with ‖x‖₁
≤ 1. Let θ be a multiple of a power of two g with ‖θ‖_∞ ≤ 2³³·g. Then every product and every partial sum of xᵀθ is a
multiple of 2⁻²⁰g of at most 2⁵³ such units: float64 holds it exactly, in any order and with or without fused
multiply-add. Under ‖x‖₂ ≤ 1 it takes ‖θ‖_∞ ≤ 2ᵇ·g, b = 33 − ⌈½log₂ p⌉, as ‖x‖₁ ≤ √p.

*Any θ* is the sum of two such vectors, the second on a grid finer by 2⁻ᵇ, and a rest of at most 2⁻²ᵇ‖θ‖_∞ a
coordinate. So xᵀθ is computed as the sum of two exact numbers, rounded once: the same bits on every machine, off by
(2⁻⁵³ + √p·2⁻²ᵇ)·‖θ‖₂ at most (:func:`prediction_rounding`).

*Private*: what every object that holds private values has in common; it cannot be pickled or printed by accident.

*Threads*: BLAS is kept to one processor while a search runs or a pass is made. A search is thousands of small products:
on a shared machine BLAS threads cost far more there than they bring.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

UNIT = 2.0**-53
#: Rows summed in one go; block sums are added afterwards, so errors grow like BLOCK + n/BLOCK and not like n.
BLOCK = 8192
#: Final inflation of an error bound: covers second-order terms, the rounding of the bound's own evaluation,
#: and rows whose computed norm is above one by a rounding error (at most ``ROW_SLACK``).
INFLATION = 1.0 + 1e-6
ROW_SLACK = 1e-9


def gamma(k: int) -> float:
    """Return Higham's constant k·u / (1 − k·u)."""
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


def geometric_levels(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return ``count`` levels from ``first`` to ``last``, each the same factor above the one before.

    Examples
    --------
    >>> geometric_levels(0.25, 4.0, 3)
    (0.25, 1.0, 4.0)
    """
    if count < 1:
        raise ValueError(f"n_levels must be at least 1, got {count}")
    if not 0 < first <= last < math.inf:
        raise ValueError(f"levels need 0 < first <= last < inf, got {first} and {last}")
    if count == 1 or first == last:
        return (float(last),)
    step = math.log(last / first) / (count - 1)
    inner = [first * math.exp(step * t) for t in range(1, count - 1)]
    levels = (float(first), *inner, float(last))
    if any(lower >= upper for lower, upper in pairwise(levels)):
        raise ValueError(f"{count} levels between {first} and {last} are more than floating point can tell apart")
    return levels


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
    """
    check(p=coordinates)
    exact_delta, exact_grid = Fraction(delta), Fraction(grid)
    if exact_delta < 0 or exact_grid <= 0:
        raise ValueError("delta must be non-negative and grid positive")
    return math.floor(exact_delta / exact_grid) + coordinates


_STEPS_BITS = 33  # 2²⁰ units of a row times 2³³ steps of θ is 2⁵³


def exact_bits(p: int, norm: Literal["l1", "l2"]) -> int:
    """Return how many binary digits θ may have for predictions to be exact.

    Examples
    --------
    >>> exact_bits(100, "l1"), exact_bits(100, "l2"), exact_bits(5000, "l2")
    (33, 29, 26)
    """
    return _STEPS_BITS - (math.ceil(math.log2(max(1, p)) / 2) if norm == "l2" else 0)


def to_grid(theta: FloatArray, radius: float, *, norm: Literal["l1", "l2"] = "l1") -> FloatArray:
    """Round θ with ‖θ‖_∞ ≤ radius to the public grid on which predictions are exact; a finer θ is never needed."""
    bits = exact_bits(np.size(theta), norm)
    step = math.ldexp(1.0, math.frexp(radius * (1.0 + 1e-6))[1] - bits)
    steps = np.clip(np.rint(np.asarray(theta) / step), -(2.0**bits), 2.0**bits)
    return np.asarray(steps * step)


def exact_parts(theta: FloatArray) -> FloatArray:
    """Return θ as one or two columns, predictions of which are exact for rows with ‖x‖₂ ≤ 1."""
    largest = float(np.abs(theta).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return np.asarray(theta, dtype=np.float64)[:, None]
    coarse = to_grid(theta, largest, norm="l2")
    rest = theta - coarse  # exact: what a number is rounded by has no more digits than the number
    if not rest.any():
        return coarse[:, None]
    step = math.ldexp(1.0, math.frexp(largest * (1.0 + 1e-6))[1] - exact_bits(theta.size, "l2"))
    return np.column_stack([coarse, to_grid(rest, 0.5 * step, norm="l2")])


def prediction_rounding(p: int) -> float:
    """Return r such that computed predictions are off by at most r·‖θ‖₂ for rows with ‖x‖₂ ≤ 1; p below 2²⁰."""
    # |xᵀrest| ≤ ‖rest‖₂ ≤ √p·2^−2b·‖θ‖_∞, twice that for steps that are clipped at the end of the grid
    return INFLATION * (UNIT + 2.0 * math.sqrt(p) * 2.0 ** (-2 * exact_bits(p, "l2")))


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds: once is enough


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


def processors() -> int:
    """Return how many processors this process may use; not every system can tell that from how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
