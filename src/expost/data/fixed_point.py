"""Numbers as whole multiples of 2⁻²⁰, so that norms, clips and sums are exact.

A float norm depends on the order of summation, and a bound that holds "up to rounding" is no sensitivity
bound. So rows are truncated to integers *first* and clipped *afterwards, in integers*: the norm the privacy
proof relies on then holds exactly (theory B3). Products of two such numbers are multiples of 2⁻⁴⁰.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["FRACTION_BITS", "MAX_COLUMNS", "ONE", "clip_l1", "clip_l2", "clip_unit", "to_fixed_point"]

FRACTION_BITS = 20
"""Binary digits after the point."""

ONE = 1 << FRACTION_BITS
"""The number 1 in fixed-point units."""

_REACH_BITS = 22  # |x| ≤ 2²² is at most 2⁴² units, and that times ONE still fits in int64
_MAX_UNITS = 1 << (_REACH_BITS + FRACTION_BITS)

MAX_COLUMNS = (1 << 63) // _MAX_UNITS - 1
"""Most columns whose largest possible ℓ₁ norm, p · 2⁴², still fits in int64."""


def to_fixed_point(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Truncate rows toward zero to multiples of 2⁻²⁰.

    Parameters
    ----------
    x : ndarray of float64, shape (n, p)
        Finite values. A row with an entry beyond 2²² in size is first multiplied by the power of two that
        brings its largest entry into [2²¹, 2²²). Its ℓ₁ norm is beyond 1 before and after, so the clip that
        follows sends it in the same direction.

    Returns
    -------
    ndarray of int64, shape (n, p)
        Units of 2⁻²⁰, none larger than 2⁴² in size. A row's result depends on that row only.

    Examples
    --------
    >>> import numpy as np
    >>> to_fixed_point(np.array([[1.0, -0.5, 1e-9]]))
    array([[1048576, -524288,       0]])
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        # One dimension could mean one row or one column, and the scaling above must never couple two rows.
        raise ValueError("x must have two dimensions, rows and columns")
    largest = np.max(np.abs(x), axis=1, initial=0.0)
    if not np.isfinite(largest).all():
        raise ValueError("x must be finite; replace NaN and infinite values before converting to fixed point")
    _, exponent = np.frexp(largest)
    shift = np.where(largest > 2.0**_REACH_BITS, _REACH_BITS - exponent, 0) + FRACTION_BITS
    with np.errstate(under="ignore"):  # what underflows is far below one unit and truncates to zero
        scaled = np.ldexp(x, shift[:, np.newaxis])
    units: npt.NDArray[np.int64] = scaled.astype(np.int64)  # the cast truncates toward zero
    return units


def clip_l1(x: npt.NDArray[np.int64], bound: int = ONE) -> npt.NDArray[np.int64]:
    """Shrink rows whose ℓ₁ norm exceeds a bound, in integers, so that the bound holds exactly.

    Parameters
    ----------
    x : ndarray of int64, shape (n, p)
        Fixed-point units, at most 2⁴² in size.
    bound : int, default=ONE
        Largest ℓ₁ norm allowed, in the same units, between 0 and ONE.

    Returns
    -------
    ndarray of int64, shape (n, p)
        Rows within the bound as they were; other rows times bound / norm, truncated toward zero.

    Examples
    --------
    >>> import numpy as np
    >>> clip_l1(np.array([[3, 0], [30, -10]]), bound=10)
    array([[ 3,  0],
           [ 7, -2]])
    """
    x = np.asarray(x)
    _check_units(x, bound)
    norm = np.abs(x).sum(axis=1)
    over = norm > bound
    clipped = x.copy()
    if over.any():
        wide = x[over]
        # Floors of non-negative parts: Σⱼ ⌊|xⱼ|·bound/norm⌋ ≤ bound. Products stay below 2⁴² · 2²⁰ = 2⁶².
        clipped[over] = np.sign(wide) * (np.abs(wide) * bound // norm[over, np.newaxis])
    return clipped


def clip_l2(x: npt.NDArray[np.int64], bound: int = ONE) -> npt.NDArray[np.int64]:
    """Shrink rows whose ℓ₂ norm exceeds a bound, in integers, so that the bound holds exactly.

    Parameters
    ----------
    x : ndarray of int64, shape (n, p)
        Fixed-point units, at most 2⁴² in size.
    bound : int, default=ONE
        Largest ℓ₂ norm allowed, in the same units, between 0 and ONE.

    Returns
    -------
    ndarray of int64, shape (n, p)
        Rows within the bound as they were; other rows times bound / ⌈norm⌉, truncated toward zero.

    Examples
    --------
    >>> import numpy as np
    >>> clip_l2(np.array([[3, 4], [30, -40]]), bound=10)
    array([[ 3,  4],
           [ 6, -8]])
    """
    _check_units(x, bound)
    clipped = x.copy()
    largest = np.abs(x).max(axis=1, initial=0)
    huge = largest > ONE
    if huge.any():
        # Longer than any bound by one entry alone. Brought down to it first, so that squares fit in 64 bits.
        wide = x[huge]
        clipped[huge] = np.sign(wide) * (np.abs(wide) * ONE // largest[huge, np.newaxis])
    square = (clipped * clipped).sum(axis=1)  # at most p · 2⁴⁰
    over = (square > bound * bound) | huge
    if over.any():
        wide = clipped[over]
        # Σⱼ ⌊|xⱼ|·bound/⌈norm⌉⌋² ≤ bound² · Σⱼ xⱼ² / ⌈norm⌉² ≤ bound².
        clipped[over] = np.sign(wide) * (np.abs(wide) * bound // _ceil_root(square[over])[:, np.newaxis])
    return clipped


def _ceil_root(square: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ⌈√s⌉ of positive integers, exactly: the float root is off by one at most, which integers settle."""
    root = np.sqrt(square.astype(np.float64)).astype(np.int64)
    root -= root * root > square
    root += (root + 1) * (root + 1) <= square
    return root + (root * root < square)


def _check_units(x: npt.NDArray[np.int64], bound: int) -> None:
    if not 0 <= bound <= ONE:
        raise ValueError(f"bound must lie between 0 and {ONE} units")
    if x.ndim != 2 or x.dtype != np.int64:
        raise ValueError("x must be an int64 array with two dimensions, rows and columns")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"{x.shape[1]} columns are too many: row norms are exact in 64 bits up to {MAX_COLUMNS} columns"
        )
    if x.size and (x.max() > _MAX_UNITS or x.min() < -_MAX_UNITS):
        raise ValueError("x has entries beyond 2**42 units; make it with to_fixed_point")


def clip_unit(y: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Clip numbers to [−1, 1] and truncate them toward zero to multiples of 2⁻²⁰.

    Parameters
    ----------
    y : ndarray of float64
        Infinite values are clipped like any other; NaN is an error.

    Returns
    -------
    ndarray of int64
        Units of 2⁻²⁰, at most ONE in size.

    Examples
    --------
    >>> import numpy as np
    >>> clip_unit(np.array([0.25, -3.0]))
    array([  262144, -1048576])
    """
    y = np.asarray(y, dtype=np.float64)
    if np.isnan(y).any():
        raise ValueError("y must not contain NaN; replace it before converting to fixed point")
    return np.ldexp(np.clip(y, -1.0, 1.0), FRACTION_BITS).astype(np.int64)
