"""The public recipe that turns raw columns into bounded rows, and parameters back into the caller's units.

A :class:`Preparation` holds only what the caller stated (bounds, never statistics), so it can be published with the
model. Each row is prepared from that row alone, in elementwise operations and integers: the result is the same to the
bit for every chunk size, and replacing one row changes one row.

Features and constant go into one ℓ₁ ball, where a constant takes room from the features and k dense columns keep 1/k of
their signal. Objective perturbation asks for less: ‖x‖₂ ≤ 1 and a bound on each block of columns
(`expost.table.shape`). So rows may also be made of blocks (:class:`~expost.table.shape.BlockRows`), each as long as the
constant.

- *Box* (columns with bounds): every column lies in [−c, c]. B is the number of columns, the constant among them.
- *ℓ₁ ball* (rows with a stated bound F on their ℓ₁ norm): features are divided by F and clipped to ℓ₁ norm c in
  integers. B is 2, or 1 without a constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.exceptions import InvalidRows
from expost.shown import listed
from expost.table.bounds import Bounds
from expost.table.cells import resolve_classes
from expost.table.columns import Booleans, Column, RawRows
from expost.table.entrance import OnInvalid, open_column, open_rows
from expost.table.kinds import PLAIN_NUMBERS, TEXT_COLUMNS, Units
from expost.table.rows import FRACTION_BITS, MAX_COLUMNS, ONE, Norm, Rows, clip_l1, given_up, room_for, to_fixed_point
from expost.table.shape import BlockRows

_CHUNK_ROWS = 4096  # a chunk that stays in cache is two to three times faster than a large one
_HUGE = float(np.finfo(np.float64).max)


def resolve_feature_bound(feature_bound: float | None, bounds: Bounds | None, n_columns: int) -> float:
    """Settle the largest ℓ₁ norm a row may have before it is clipped.

    ``feature_bound`` is the caller's choice, in scaled units if there are bounds and in the caller's units otherwise.
    With bounds and no choice the answer is ``n_columns``: no row within its bounds is ever clipped.
    """
    if feature_bound is None:
        if bounds is None:
            raise ValueError("pass feature_bound (the largest ℓ₁ norm a row may have) or bounds")
        return float(n_columns)
    return validation.positive("feature_bound", feature_bound)


@dataclass(frozen=True)
class Preparation(BlockRows):
    """How raw columns become rows: public, and computed without looking at any row.

    Parameters
    ----------
    bounds : Bounds or None
        Columns are moved into these and scaled to [−1, 1]; None leaves them as they are.
    feature_bound : float
        F: rows are divided by it, and those whose ℓ₁ norm is then still too large are clipped.
    target : (float, float) or None
        Bounds of a regression target; None for classification.
    intercept_weight : float
        c: value of a constant last column, which takes c of the unit ℓ₁ norm and leaves 1 − c to the
        features. 0 means no such column; otherwise at least 2⁻²⁰ and at most 1 − 2⁻²⁰. In rows of blocks the
        constant is as long as any block, whatever the number.
    n_columns : int
        Number of raw columns.
    shape : {"box", "l1"}, optional
        Rows of blocks: whether each feature is bounded by itself, which takes bounds and ``feature_bound=1``, or their
        ℓ₁ norm is. By default features and constant share one ℓ₁ ball.

    Notes
    -----
    With ``on_invalid="error"`` a row with NaN, an infinite value, a cell that is not a number or an unknown label
    raises :class:`~expost.exceptions.InvalidRows`, which counts the bad rows and names their columns. That message is
    for the curator: whether it appears depends on single rows, so it is **not covered by the privacy guarantee**. With
    ``on_invalid="clip"`` no row can raise, warn or change another: what is missing or not a number goes to the middle
    of the bounds (0 without bounds), an infinite value to the nearest bound, an unknown label to ``classes[0]``, and
    rows of a list that are too short or too long are filled up or cut.

    Examples
    --------
    >>> recipe = Preparation(Bounds((0.0,), (10.0,)), 1.0, target=(0.0, 4.0), intercept_weight=0, n_columns=1)
    >>> rows = recipe.prepare_regression([[10.0], [5.0]], [4.0, 1.0])
    >>> rows
    Rows(n=2, p=1)
    >>> recipe.to_caller_units([1.0])  # 0 at x = 0 and 4 at x = 10
    (array([0.4]), 0.0)
    >>> boxed = Preparation(Bounds((0.0,), (10.0,)), 1.0, (0.0, 4.0), intercept_weight=1, n_columns=1, shape="box")
    >>> rows = boxed.prepare_regression([[10.0], [5.0]], [4.0, 1.0])
    >>> (rows.x / ONE).round(3).tolist(), rows.norm
    ([[0.707, 0.707], [0.0, 0.707]], 'l2')
    """

    bounds: Bounds | None
    feature_bound: float
    target: tuple[float, float] | None
    intercept_weight: float
    n_columns: int
    shape: Literal["box", "l1"] | None = None

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        if not 1 <= self.n_parameters <= MAX_COLUMNS or self.n_columns < 1:
            raise ValueError(f"n_columns must lie between 1 and {MAX_COLUMNS}, a constant column included")
        if self.bounds is not None and self.bounds.n_columns != self.n_columns:
            raise ValueError(f"bounds are for {self.bounds.n_columns} columns, not n_columns={self.n_columns}")
        put("feature_bound", validation.positive("feature_bound", self.feature_bound))
        if self.shape == "box" and (self.bounds is None or self.feature_bound != 1.0):
            raise ValueError("a box is made of bounds, with feature_bound=1")
        put("square", (self.n_columns if self.shape == "box" else 1) + bool(self.intercept_weight))
        if self.shape is not None and self.intercept_weight:
            put("intercept_weight", self.unit / ONE)
        c = float(self.intercept_weight)
        if c != 0 and not 1 / ONE <= c <= 1 - 1 / ONE:
            raise ValueError("intercept_weight must be 0 (no intercept) or lie between 2**-20 and 1 - 2**-20")
        put("intercept_weight", c)
        put("constant_column", self.n_columns if self.has_intercept else None)
        constant = ((1, "box"),) if self.has_intercept else ()
        box = ((self.n_parameters, "box"),)
        put("blocks", box if self.shape == "box" else ((self.n_columns, "l1"), *constant))
        if self.target is not None:
            low, high = self.target
            Bounds((low,), (high,))  # finite, in order
            put("target", (float(low), float(high)))

    @property
    def norm(self) -> Norm:
        """The norm that prepared rows are bounded in; a single ℓ₁ block lies in the unit ℓ₁ ball."""
        return "l1" if self.shape is None or (self.shape == "l1" and not self.has_intercept) else "l2"

    @property
    def declares(self) -> dict[str, Any]:
        """What holds of every row that it makes (:class:`~expost.table.rows.Rows`)."""
        if self.shape is None:
            return {"norm": self.norm, "longest": self.longest}
        return {**super().declares, "norm": self.norm}

    @property
    def typical_divisor(self) -> float:
        """How far rows of blocks were shrunk, for numbers that only steer a search (any value is sound).

        With bounds, columns of [−1, 1] are what people think in. Without, F may be the size of one entry or the sum of
        k equal ones: the geometric middle.
        """
        return self.scale * (math.sqrt(self.n_columns) if self.bounds is None else self.feature_bound)

    @property
    def factor(self) -> float:
        """What columns, scaled to their bounds if there are any, are multiplied by for a prepared row."""
        return (1 - self.intercept_weight if self.shape is None else self.unit / ONE) / self.feature_bound

    @property
    def divisor(self) -> float:
        """The inverse of the factor."""
        return 1.0 / self.factor

    @property
    def has_intercept(self) -> bool:
        """Whether rows end in a constant column."""
        return self.intercept_weight > 0

    @property
    def n_parameters(self) -> int:
        """Number of columns of a prepared row; the constant column, if any, is the last."""
        return self.n_columns + int(self.has_intercept)

    @property
    def constant(self) -> int:
        """Value of the constant column in fixed-point units, 0 if there is none."""
        return math.floor(self.intercept_weight * ONE)

    @property
    def feature_limit(self) -> int:
        """Largest norm of a prepared row without its constant column, in its shape and in fixed-point units."""
        # ⌊(1−c)·2²⁰⌋ + ⌊c·2²⁰⌋ ≤ 2²⁰: the whole row keeps within ONE.
        return math.floor((1 - self.intercept_weight) * ONE) if self.shape is None else self.unit

    @property
    def longest(self) -> float:
        """Z ≤ 1: no prepared row has ‖x‖₂ above it.

        Proof. Features have ‖·‖₁ ≤ F, and with bounds each is at most f in size, one unit for rounding included; so
        their ‖·‖₂² ≤ ‖·‖_∞·‖·‖₁ ≤ min(f, F)·min(F, p·f). The constant adds its square. ∎
        """
        most = self.feature_limit / ONE
        each = most if self.bounds is None else min(most, self.factor * (1.0 + 1e-12) + 1.0 / ONE)
        square = each * min(most, self.n_columns * each) + (self.constant / ONE) ** 2
        return min(1.0, math.sqrt(square) * (1.0 + 1e-12))

    def prepare_regression(self, X: Any, y: Any, *, on_invalid: OnInvalid = "error") -> Rows:
        """Bound, scale and clip features and targets.

        Parameters
        ----------
        X : array-like of shape (n, n_columns)
        y : array-like of shape (n,)
        on_invalid : {"error", "clip"}, default="error"
            See the class.
        """
        if self.target is None:
            raise ValueError("this preparation has no target bounds; it prepares classification")
        return self._prepare(X, _single(y, on_invalid, "y"), None, on_invalid)

    def prepare_classification(
        self,
        X: Any,
        labels: Any,
        classes: Sequence[Any] | npt.NDArray[Any],
        *,
        on_invalid: OnInvalid = "error",
    ) -> Rows:
        """Bound, scale and clip features as above, and turn labels into −1 and +1.

        ``classes`` is a pair, the negative label (−1) and the positive label (+1). Public: stated, not collected from
        the rows.
        """
        if self.target is not None:
            raise ValueError("this preparation has target bounds; it prepares regression")
        return self._prepare(X, _single(labels, on_invalid, "labels"), resolve_classes(classes), on_invalid)

    def prepared(
        self,
        raw: RawRows,
        cells: Column,
        classes: tuple[Any, Any] | None,
        *,
        by_column: bool = False,
    ) -> tuple[Units, Units, npt.NDArray[np.int64]]:
        """Return some rows and counts of what cannot be used in them, which add up (:meth:`require_usable`)."""
        n, columns = raw.n, raw.width
        x = room_for(n, self.n_parameters, columns=by_column)
        y = np.empty(n, dtype=np.int32)
        x[:, self.n_columns :] = self.constant
        counts = np.zeros(2 + 2 * columns, dtype=np.int64)
        for start in range(0, n, _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            values = raw.floats(part)
            bad_cell, bad_y = ~np.isfinite(values), self._targets(cells, classes, part, y)
            self._features(values, x[part, : self.n_columns])
            counts[0] += np.count_nonzero(bad_cell.any(axis=1) | bad_y)
            counts[1] += np.count_nonzero(bad_y)
            counts[2 : 2 + columns] += bad_cell.sum(axis=0)
        if counts[2:].any():
            counts[2 + columns :] = raw.not_numbers()
        return x, y, counts

    def require_usable(self, counts: npt.NDArray[np.int64], n: int, names: Sequence[Any] | None) -> None:
        """Raise if there are rows that cannot be used; for the curator, not covered by the guarantee."""
        if not counts[0]:
            return
        bad, strange = counts[2:].reshape(2, -1)
        called = range(len(bad)) if names is None else names

        def where(many: npt.NDArray[np.int64]) -> str:
            return listed(f"{called[j]} ({many[j]})" for j in np.flatnonzero(many).tolist())

        reasons = []
        if (bad > strange).any():
            reasons.append(f"NaN or infinite in column(s) {where(bad - strange)}")
        if strange.any():
            reasons.append(
                f"cells that are not numbers in column(s) {where(strange)} (drop or encode such columns: what "
                f"goes in as an argument must be a string or a number; {PLAIN_NUMBERS}; {TEXT_COLUMNS})"
            )
        clipped = ["move such values into their bounds"] if bad.any() else []
        if counts[1]:
            labels = self.target is None
            reasons.append(f"target {'in neither class' if labels else 'NaN or infinite'} ({counts[1]})")
            clipped.append("count rows in neither class as the first" if labels else "put such targets in the middle")
        raise InvalidRows(
            f"{counts[0]} of {n} rows cannot be used: {'; '.join(reasons)}. This message depends on single rows "
            f"and is not covered by the privacy guarantee; "
            f'remove these rows, or pass on_invalid="clip" to {" and ".join(clipped)} instead'
        )

    def _targets(self, cells: Column, classes: tuple[Any, Any] | None, part: slice, y: Units) -> Booleans:
        """Write the targets of a part, and say which of its cells are none."""
        if classes is not None:
            positive, unknown = cells.signs(part, classes)
            y[part] = np.where(positive, ONE, -ONE)
            return unknown
        assert self.target is not None
        values = cells.floats(part)
        Bounds(self.target[:1], self.target[1:]).to_units(values, ONE, y[part])
        return ~np.isfinite(values)

    def design(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return rows to predict for, bounded and rounded as those of a fit are; NaN is the middle of the bounds."""
        x = np.full((len(values), self.n_parameters), self.constant, dtype=np.int32)
        self._features(values, x[:, : self.n_columns])
        return x / ONE

    def to_caller_units(self, theta: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], float]:
        """Express parameters of prepared rows as coefficients of raw columns, and an intercept.

        ``X @ coef + intercept`` is the prediction in the caller's units (the decision value for classification) for
        every row within its bounds.
        """
        parameters = np.asarray(theta, dtype=np.float64)
        if parameters.shape != (self.n_parameters,):
            raise ValueError(f"theta must have shape ({self.n_parameters},); got {parameters.shape}")
        middle, half = 0.0, 1.0
        if self.target is not None:
            y_bounds = Bounds(self.target[:1], self.target[1:])
            middle, half = float(y_bounds.center[0]), float(y_bounds.half_range[0])
        coef = parameters[: self.n_columns] * (self.factor * half)
        intercept = middle
        if self.bounds is not None:
            coef = coef / self.bounds.half_range
            intercept -= float(coef @ self.bounds.center)
        if self.has_intercept:
            intercept += float(parameters[-1]) * (self.constant / ONE) * half
        return coef, intercept

    def describe(self) -> dict[str, Any]:
        """Say everything about the recipe in plain values that JSON can hold.

        Examples
        --------
        >>> Preparation(None, 2.0, target=None, intercept_weight=0, n_columns=3).describe()
        {'bounds': None, 'feature_bound': 2.0, 'target': None, 'intercept_weight': 0.0,
         'n_columns': 3, 'fraction_bits': 20}
        """
        bounds = self.bounds
        return {
            "bounds": bounds and {"lower": list(bounds.lower), "upper": list(bounds.upper)},
            "feature_bound": self.feature_bound,
            "target": None if self.target is None else list(self.target),
            "intercept_weight": self.intercept_weight,
            "n_columns": int(self.n_columns),
            "fraction_bits": FRACTION_BITS,
            **({} if self.shape is None else {"shape": self.shape}),
        }

    @classmethod
    def described(cls, plain: Mapping[str, Any]) -> Preparation:
        """Return the recipe that :meth:`describe` says."""
        bounds, target = plain["bounds"], plain["target"]
        return cls(
            None if bounds is None else Bounds(tuple(bounds["lower"]), tuple(bounds["upper"])),
            plain["feature_bound"],
            None if target is None else (target[0], target[1]),
            intercept_weight=plain["intercept_weight"],
            n_columns=plain["n_columns"],
            shape=plain.get("shape"),
        )

    def _prepare(self, X: Any, cells: Column, classes: tuple[Any, Any] | None, on_invalid: OnInvalid) -> Rows:
        if on_invalid not in ("error", "clip"):
            raise ValueError('on_invalid must be "error" or "clip"')
        raw = open_rows(X, on_invalid=on_invalid, width=self.n_columns)
        if raw.width != self.n_columns:
            raise ValueError(f"X has {raw.width} columns; this preparation is for {self.n_columns}")
        if raw.n != len(cells):
            raise ValueError(f"X has {raw.n} rows, but there are {len(cells)} targets")
        if raw.n == 0:
            raise ValueError("there are no rows; pass at least one")
        x, y, counts = self.prepared(raw, cells, classes)
        if on_invalid == "error":
            self.require_usable(counts, raw.n, raw.names)
        return Rows(given_up(x), given_up(y), **self.declares)

    def _features(self, values: npt.NDArray[np.float64], out: Units) -> None:
        """Write rows without their constant column, within :attr:`feature_limit`."""
        if self.bounds is not None and self._boxed:
            # times ``factor`` and then a power of two, which is exact, is times their product
            self.bounds.to_units(values, self.factor * ONE, out)
            return
        scaled = values if self.bounds is None else self.bounds.scale(values)
        with np.errstate(all="ignore"):
            # Infinite (or overflowing) values without bounds become the largest float: the clip makes of it
            # what it makes of any very long row. With bounds none are left.
            scaled = np.nan_to_num(scaled * self.factor, nan=0.0, posinf=_HUGE, neginf=-_HUGE)
        out[...] = clip_l1(to_fixed_point(scaled), self.feature_limit)

    @property
    def _boxed(self) -> bool:
        """Whether no row within its bounds can be too long: in a box, or if all entries of at most ``factor`` fit."""
        return self.shape == "box" or self.n_columns * math.floor(self.factor * ONE) <= self.feature_limit


def _single(y: Any, on_invalid: OnInvalid, name: str) -> Column:
    column, dimensions = open_column(y, on_invalid=on_invalid, name=name)
    if dimensions != 1:
        raise ValueError(f"{name} must be a dense array of shape (n_rows,)")
    return column
