"""Curves: a number as values at knots with straight lines in between, or as steps, instead of one straight line.

*Hats.* Knots t₀ < … < t_k are public, the first and the last one are the bounds. A number v between t_i and t_{i+1}
becomes h_i = (t_{i+1} − v)/(t_{i+1} − t_i) and h_{i+1} = 1 − h_i, all other hats are 0: a linear model of hats is the
curve that has its coefficients as values at the knots. *Steps*: the indicator of the interval that v lies in.

*Sensitivity.* Hats and steps are not negative and add up to 1, so a number is a block of ℓ₁ and Euclidean norm at most
1: the shape of a category, which mechanisms charge as one (`expost.table.shape`). In fixed point 1 is c, the
right hat is h·c truncated toward zero and the left one is c minus that: whole, not negative, and exactly c together. A
missing number has every hat 0 and its own mark, in the same block, 1. (Hats of a number put in its place *and* a mark
would have norm 2: a row could move a gradient twice as far as was charged.)

*Fewer knots, or none, are a public linear map.* Where knots are every second one, a hat of theirs is a sum of the finer
ones, each times what the wide hat is at its knot; the number itself, scaled to [−1, 1], is Σ_k τ_k·h_k, τ_k a knot's
place. All weights are at most 1 in size, and of the wide hats they add up to 1 at every fine knot
(`expost.table.views`). Ordered categories are numbers, their ranks, with a knot at each. (A cumulative coding, a 1 for
every category up to a cell's, would have ℓ₁ norm up to their number.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Knots of a curve that says nothing else: eight intervals, which noise that most goals allow can tell apart.
USUAL = 9
#: Intervals of curves that bend as noise falls, from a straight line on: any are sound, and finer ones cost more noise.
RESOLUTIONS = (1, 4, 8, 16)
_COLUMNS = 600  # that all such curves become at most: with many numbers each is coarser, or rows would be long
MOST = 1000  # knots of a column; more are a mistake


@dataclass(frozen=True)
class Curve:
    """Where a curve bends, or jumps; public.

    Attributes
    ----------
    knots
        On the scale of the number after its transform, growing; the first and the last are its bounds.
    steps
        Whether it jumps at the knots in between, and is constant elsewhere.

    Examples
    --------
    >>> out = np.zeros((3, 3), dtype=np.int32)
    >>> Curve((0.0, 5.0, 10.0)).write(np.array([1.0, 10.0, np.nan]), out, 1000)
    >>> out.tolist()
    [[800, 200, 0], [0, 0, 1000], [0, 0, 0]]
    """

    knots: tuple[float, ...]
    steps: bool = False

    @property
    def width(self) -> int:
        """How many columns it becomes."""
        return len(self.knots) - self.steps

    def write(self, within: Floats, out: npt.NDArray[np.int32], unit: int) -> None:
        """Write numbers within the bounds, where 1 is ``unit``; all zeros where there is none. Cell by cell."""
        out[...] = 0
        rows = np.flatnonzero(~np.isnan(within))
        values, knots = within[rows], np.array(self.knots)
        place = np.searchsorted(knots[1:-1], values, side="right")
        if self.steps:
            out[rows, place] = unit
            return
        share = np.clip((values - knots[place]) / (knots[place + 1] - knots[place]), 0.0, 1.0)
        right = np.trunc(share * unit).astype(np.int32)
        out[rows, place] = unit - right
        out[rows, place + 1] = right


def even_knots(low: float, high: float, intervals: int) -> tuple[float, ...]:
    """Return knots of equal intervals; the ends are exact."""
    inner = (low + (high - low) * (i / intervals) for i in range(1, intervals))
    return (low, *inner, high)


def coarser(places: int, intervals: int) -> Floats:
    """Return the map from hats at so many places, evenly apart, to those of fewer intervals; for 1 to the number.

    Examples
    --------
    >>> coarser(5, 2)
    array([[1. , 0.5, 0. , 0. , 0. ],
           [0. , 0.5, 1. , 0.5, 0. ],
           [0. , 0. , 0. , 0.5, 1. ]])
    >>> coarser(5, 1)
    array([[-1. , -0.5,  0. ,  0.5,  1. ]])
    >>> coarser(3, 4).tolist() == np.eye(3).tolist()  # there are no finer ones
    True
    """
    if intervals == 1:
        return np.linspace(-1.0, 1.0, places)[None, :]
    if intervals >= places - 1:
        return np.eye(places)
    at = np.linspace(0.0, intervals, places)
    return np.maximum(0.0, 1.0 - np.abs(at[None, :] - np.arange(intervals + 1)[:, None]))


def fewer_steps(places: int, intervals: int) -> Floats:
    """Return the map from so many steps to about twice as many as intervals, each the sum of some; none for 1 interval.

    Examples
    --------
    >>> fewer_steps(4, 1).shape, fewer_steps(16, 4).shape, fewer_steps(16, 4)[0, :4].tolist()
    ((0, 4), (8, 16), [1.0, 1.0, 0.0, 0.0])
    """
    many = 0 if intervals == 1 else min(2 * intervals, places)
    group = np.arange(places) * many // places
    return np.asarray(group[None, :] == np.arange(many)[:, None], dtype=np.float64)


def finest_of(numbers: int) -> int:
    """Return how many intervals each of so many curves may have.

    Examples
    --------
    >>> finest_of(5), finest_of(60), finest_of(1000)
    (16, 8, 1)
    """
    return max(k for k in RESOLUTIONS if k == 1 or numbers * (k + 2) <= _COLUMNS)


def stated_knots(stated: Any, name: str) -> int | tuple[float, ...] | None:
    """Check a number of knots or steps, or a list of them; dates have been turned into numbers before."""
    if stated is None:
        return None
    example = f"write {name} = 8, or {name} = [lowest, …, highest]"
    if isinstance(stated, bool | str | bytes):
        raise ValueError(f"{name} must be a whole number or a list of numbers; {example}")
    if isinstance(stated, int | np.integer):
        if not 2 <= stated <= MOST:
            raise ValueError(f"{name} must be between 2 and {MOST}, not {stated}")
        return int(stated)
    try:
        listed = [float(value) + 0.0 for value in stated if not isinstance(value, bool | str | bytes)]
        every = len(listed) == len(stated)
    except (TypeError, ValueError, OverflowError):
        every = False
    if not every or not all(np.isfinite(listed)):
        raise ValueError(f"{name} must be a whole number or a list of finite numbers; {example}")
    if not listed or len(listed) > MOST or any(b <= a for a, b in pairwise(listed)):
        raise ValueError(f"{name} must be a list of at most {MOST} numbers, each larger than the one before")
    return tuple(listed)
