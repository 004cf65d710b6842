"""Public bounds: what is known about each column before anybody looks at the rows.

Everything a row is scaled by comes from here, and nothing here comes from a row. A bound read off the data
is a function of private rows that no one has charged for, so a missing bound is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.numeric import FloatArray
from expost.shown import listed

_CACHED = 1 << 14  # cells that are bounded and scaled together, so that they stay in cache
_PASS_PAIR = "pass bounds=(lower, upper), each a number or one number per column"


@dataclass(frozen=True)
class Bounds:
    """Public lower and upper bounds, one pair per column.

    Parameters
    ----------
    lower, upper : tuple of float
        Finite, of equal length, ``lower[j] < upper[j]`` for every column j.

    Notes
    -----
    Scaling maps x to (x − center) / half_range, which lies in [−1, 1]. Bounds symmetric around zero
    have center 0 and therefore keep zeros at zero.

    Examples
    --------
    >>> ages = Bounds(lower=(0.0,), upper=(120.0,))
    >>> ages.center, ages.half_range
    (array([60.]), array([60.]))
    >>> ages.scale([[30.0], [150.0]])
    array([[-0.5],
           [ 1. ]])
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", tuple(float(v) for v in self.lower))
        object.__setattr__(self, "upper", tuple(float(v) for v in self.upper))
        if len(self.lower) != len(self.upper):
            raise ValueError(
                f"bounds need one lower and one upper value per column; "
                f"got {len(self.lower)} lower and {len(self.upper)} upper values"
            )
        low, high = np.array(self.lower), np.array(self.upper)
        not_finite = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
        if not_finite.size:
            raise ValueError(f"bounds must be finite; they are not in column(s) {listed(not_finite)}")
        # The half range is what rows are divided by; two subnormal bounds can differ and still halve to zero.
        empty = np.flatnonzero(~((low < high) & (self.half_range > 0)))
        if empty.size:
            raise ValueError(
                f"every lower bound must be strictly below its upper bound; "
                f"it is not in column(s) {listed(empty)}. The form is (lower, upper): first all lower "
                f"bounds, then all upper bounds"
            )
        farthest = np.maximum(abs(low), abs(high))
        for j in (np.argmax(farthest), np.argmin(self.half_range)) if farthest.size else ():
            validation.pair("bounds", self.lower[j], self.upper[j])

    @property
    def n_columns(self) -> int:
        """Number of columns the bounds speak of."""
        return len(self.lower)

    @property
    def center(self) -> FloatArray:
        """Midpoint of each column's bounds."""
        # Halve first: lower + upper may overflow although both are finite.
        return np.array(self.lower) / 2 + np.array(self.upper) / 2

    @property
    def half_range(self) -> FloatArray:
        """Half the distance between each column's bounds."""
        half: FloatArray = np.array(self.upper) / 2 - np.array(self.lower) / 2
        return half

    def scale(self, x: npt.ArrayLike, *, clip: bool = True) -> FloatArray:
        """Map columns to [−1, 1] as (x − center) / half_range, in a new array.

        With ``clip`` values outside their bounds are moved to the nearest first; NaN stays NaN. Every operation is
        elementwise, so a row's result depends on that row only.
        """
        values = np.asarray(x, dtype=np.float64)
        with np.errstate(all="ignore"):
            if clip:
                values = np.clip(values, np.array(self.lower), np.array(self.upper))
            scaled = (values - self.center) / self.half_range
            if clip:
                # Rounding of the center can leave a bound of a very narrow interval a little outside.
                np.clip(scaled, -1.0, 1.0, out=scaled)
        return scaled

    @np.errstate(all="ignore")  # a warning would tell of a cell
    def to_units(self, x: FloatArray, unit: float, out: npt.NDArray[np.int32]) -> int:
        """Write numbers, bounded and scaled, in fixed point where 1 is ``unit``; NaN as the middle, which is 0.

        |scaled| ≤ 1, so a product is at most ``unit``, and it is truncated toward zero. Returns how many are NaN or
        were moved into their bounds; private.
        """
        low, high, center, half = np.array(self.lower), np.array(self.upper), self.center, self.half_range
        step = max(256, _CACHED // max(1, self.n_columns))
        room = np.empty((min(step, len(x)), *x.shape[1:]))
        changed = 0
        for start in range(0, len(x), step):
            some = x[start : start + step]
            made = np.clip(some, low, high, out=room[: len(some)])
            moved = int(np.count_nonzero(made != some))  # NaN is not equal to itself
            made -= center
            made /= half
            np.clip(made, -1.0, 1.0, out=made)
            made *= unit
            if moved:
                made[np.isnan(made)] = 0.0
                changed += moved
            out[start : start + step] = made  # the cast truncates
        return changed

    def unscale(self, z: npt.ArrayLike) -> FloatArray:
        """Map scaled columns back: z ↦ z · half_range + center."""
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            unscaled: FloatArray = np.asarray(z, dtype=np.float64) * self.half_range + self.center
        return unscaled


def resolve_bounds(bounds: Any, n_columns: int, column_names: Sequence[Any] | None = None) -> Bounds | None:
    """Turn what a caller writes as ``bounds`` into a :class:`Bounds`.

    Parameters
    ----------
    bounds : None, float, pair, or mapping
        - None: no bounds, returned as None;
        - a number s > 0: (−s, s) for every column;
        - a pair (lower, upper), each a number or one number per column (an array of shape (2, p) is a pair);
        - a mapping {column name or index: (low, high)} that covers every column.
    n_columns : int
        Number of columns p.
    column_names : sequence, optional
        Names the keys of a mapping may use. A key that is both a name and an index is read as a name.

    Raises
    ------
    ValueError
        If the bounds have another form, are not finite, leave out a column or name one that does not exist.

    Examples
    --------
    >>> resolve_bounds(2, 2)
    Bounds(lower=(-2.0, -2.0), upper=(2.0, 2.0))
    >>> resolve_bounds((0, [1, 5]), 2)
    Bounds(lower=(0.0, 0.0), upper=(1.0, 5.0))
    >>> resolve_bounds({"age": (0, 120), 1: (0, 1e5)}, 2, ["age", "income"])
    Bounds(lower=(0.0, 0.0), upper=(120.0, 100000.0))
    """
    if bounds is None:
        return None
    if isinstance(bounds, Bounds):
        if bounds.n_columns != n_columns:
            raise ValueError(f"bounds are for {bounds.n_columns} columns, but there are {n_columns}")
        return bounds
    if isinstance(bounds, Mapping):
        return _from_mapping(bounds, n_columns, column_names)
    if np.ndim(_array_or_pair(bounds)) == 0:
        reach = _numbers(bounds, "bounds")
        if not (np.isfinite(reach) and reach > 0):
            raise ValueError(f"a single number as bounds must be finite and positive; {_PASS_PAIR}")
        return Bounds((-float(reach),) * n_columns, (float(reach),) * n_columns)
    if len(bounds) != 2:
        raise ValueError(f"bounds of length {len(bounds)} are not a pair of lower and upper bounds; {_PASS_PAIR}")
    lower, upper = (_one_side(side, n_columns, word) for side, word in zip(bounds, ("lower", "upper"), strict=True))
    return Bounds(lower, upper)


def stated_width(bounds: Any) -> int | None:
    """Return how many columns ``bounds`` speak of, None if they would do for any number.

    Examples
    --------
    >>> stated_width((0, [1, 5])), stated_width({"age": (0, 120)}), stated_width((0, 1)), stated_width(3.0)
    (2, 1, None, None)
    """
    if isinstance(bounds, Bounds):
        return bounds.n_columns
    if isinstance(bounds, Mapping):
        return len(bounds)
    if bounds is None or np.ndim(_array_or_pair(bounds)) == 0 or len(bounds) != 2:
        return None
    widths = [len(side) for side in bounds if np.ndim(_array_or_pair(side)) == 1]
    return widths[0] if widths else None


def resolve_target_bounds(target_bound: float | None, target_bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Turn the two ways of bounding a regression target, (−B, B) or (low, high), into one pair."""
    if (target_bound is None) == (target_bounds is None):
        raise ValueError(
            "pass exactly one of target_bound=B (targets lie between -B and B) "
            "and target_bounds=(low, high); bounds are never read off the data"
        )
    if target_bound is not None:
        reach = _numbers(target_bound, "target_bound")
        if reach.ndim != 0 or not (np.isfinite(reach) and reach > 0):
            raise ValueError("target_bound must be one finite positive number")
        return -validation.sized("target_bound", float(reach)), float(reach)
    low, high = _low_high(target_bounds, "target_bounds")
    if not (np.isfinite(low) and np.isfinite(high) and high / 2 - low / 2 > 0):
        raise ValueError("target_bounds must be a pair (low, high) of finite numbers with low < high")
    validation.pair("target_bounds", low, high)
    return low, high


def _from_mapping(bounds: Mapping[Any, Any], n_columns: int, column_names: Sequence[Any] | None) -> Bounds:
    names = list(column_names) if column_names is not None else []
    if names and len(names) != n_columns:
        raise ValueError(f"column_names has {len(names)} names, but there are {n_columns} columns")
    pairs: dict[int, tuple[float, float]] = {}
    unknown = []
    for key, pair in bounds.items():
        if key in names:
            if names.count(key) > 1:
                raise ValueError(f"column name {key!r} is not unique; use column indices as keys of bounds")
            index = names.index(key)
        elif isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < n_columns:
            index = int(key)
        else:
            unknown.append(key)
            continue
        if index in pairs:
            raise ValueError(f"bounds give column {index} twice, by name and by index")
        pairs[index] = _low_high(pair, f"bounds[{key!r}]")
    if unknown:
        known = f"known columns: {listed(names)}" if names else f"columns are 0 to {n_columns - 1}"
        raise ValueError(f"bounds name unknown column(s) {listed(unknown)}; {known}")
    missing = [names[j] if names else j for j in range(n_columns) if j not in pairs]
    if missing:
        raise ValueError(f"bounds leave out column(s) {listed(missing)}; give every column a pair (low, high)")
    return Bounds(
        tuple(pairs[j][0] for j in range(n_columns)),
        tuple(pairs[j][1] for j in range(n_columns)),
    )


def _one_side(side: Any, n_columns: int, word: str) -> tuple[float, ...]:
    values = _numbers(side, f"the {word} bounds")
    if values.ndim == 0:
        return (float(values),) * n_columns
    if values.shape != (n_columns,):
        raise ValueError(
            f"the {word} bounds have shape {values.shape}, but there are {n_columns} columns; {_PASS_PAIR}"
        )
    return tuple(values.tolist())


def _low_high(pair: Any, name: str) -> tuple[float, float]:
    values = _numbers(pair, name)
    if values.shape != (2,):
        raise ValueError(f"{name} must be a pair (low, high)")
    return float(values[0]), float(values[1])


def _numbers(values: Any, name: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be made of numbers; {_PASS_PAIR}") from None


def _array_or_pair(bounds: Any) -> Any:
    # np.ndim of a ragged pair such as (0, [1, 5]) would raise; a list or tuple is never one number anyway.
    return (0,) if isinstance(bounds, list | tuple) else bounds
