"""Sums of clipped gradients over rows, in integers: the same for every order of summation, and moved by one row only.

A row's gradient is φ′(t)·x, t its margin y·xᵀθ or its residual xᵀθ − y. Here φ′ is read off a public table: t is cut
into steps of 2⁻⁹ (beyond ±8 the last step counts) and each step has one slope, a multiple of 2⁻¹² truncated towards
zero. A loss with such slopes is convex and piecewise linear, within 2⁻⁹ of the smooth one in slope; any table would be
as private. A row's slope is then moved towards zero until |s|·‖x̃‖ ≤ C, x̃ the row in its frame (`expost.erm.frame`):
gradients are clipped by their length, so no row has to be as long as the longest there might be.

*Exact.* Let θ be a multiple of a power of two that `expost.erm.measures.to_grid` allows: then xᵀθ is exact in float64
in any order of summation, and so is ‖x̃‖², so a row's slope s is a function of that row, of θ and of the frame alone.
s·x is an integer vector in units of 2⁻³², and sums of integers are exact. *Released* never: only with noise.
*Sensitivity*: replacing one row moves the sum, seen in the frame, by s·x̃ − s′·x̃′, which is at most 2C long.
*Rounding*: a limit is ⌊C/‖x̃‖·(1 − 2⁻⁴⁰)⌋; root and quotient are off by 2⁻⁵² of themselves, so s·‖x̃‖ ≤ C holds exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from expost.data.batches import Batch, RowSource, as_source
from expost.data.fixed_point import ONE
from expost.data.rows import Rows
from expost.engines import Engine, LocalEngine
from expost.engines.engine import Totals
from expost.erm._private import Private
from expost.erm._types import FloatArray
from expost.erm.blocks import blocks, folded, predictions, weighted, whole
from expost.erm.frame import Frame
from expost.erm.losses import Loss
from expost.erm.measures import to_grid

#: One, in the units that slopes are written in.
SLOPE_ONE = 2**12
_FINE = 512  # steps of the table for each unit of t
_REACH = 8  # the table covers ±8
_SPARSE = 0.25  # of entries are not zero: below, rows are kept without the others
_DOWN = 1.0 - 2.0**-40  # rounding of a limit
_MOST = 2**42  # rows times the largest slope: sums of slopes times entries of 2²⁰ stay within 62 bits


class SlopeTable(NamedTuple):
    """Slopes of a loss in units of 2⁻¹², by step of the margin or residual; public.

    Attributes
    ----------
    slopes
        For each step.
    margins
        Whether t is a margin y·u (labels) or a residual u − y.
    largest
        The largest size among the slopes, S.
    """

    slopes: npt.NDArray[np.int64]
    margins: bool
    largest: int

    @classmethod
    def of(cls, loss: Loss) -> SlopeTable:
        """Read the slopes off a loss whose slope is bounded.

        Examples
        --------
        >>> from expost.erm.losses import HuberLoss, LogisticLoss
        >>> SlopeTable.of(HuberLoss(0.25)).largest, SlopeTable.of(LogisticLoss()).largest
        (1024, 4094)
        """
        middle = (np.arange(-_REACH * _FINE, _REACH * _FINE) + 0.5) / _FINE
        margins = loss.labels == "binary"
        target = np.ones_like(middle) if margins else np.zeros_like(middle)
        raw = loss.derivative(middle, target)
        slopes = np.trunc(raw * SLOPE_ONE).astype(np.int64)
        return cls(slopes, margins, int(np.abs(slopes).max()))

    def at(self, u: FloatArray, y: FloatArray) -> npt.NDArray[np.int64]:
        """Return the slope of each row for predictions u and targets y."""
        t = y * u if self.margins else u - y
        step = np.floor(np.clip(t, -_REACH, _REACH) * _FINE).astype(np.int64)
        found = self.slopes[np.clip(step + _REACH * _FINE, 0, len(self.slopes) - 1)]
        return np.where(y > 0, found, -found) if self.margins else found


#: Whole parts that a squared length is counted in.
PARTS = 2**16
#: Slopes that are all one: what is summed are rows, those that are longer than C shortened to it.
ONES = SlopeTable(np.full(2 * _REACH * _FINE, SLOPE_ONE, dtype=np.int64), margins=False, largest=SLOPE_ONE)


@dataclass(frozen=True, eq=False)
class Clip:
    """How long a row's gradient may be, and where rows are looked at from; public, or released.

    Attributes
    ----------
    frame
        The frame.
    most
        C, in units of 2⁻³².
    """

    frame: Frame
    most: int

    @classmethod
    def of(cls, frame: Frame, length: float) -> Clip:
        """Return the clip for gradients of at most that length, in units of 1."""
        return cls(frame, max(1, round(length * ONE * SLOPE_ONE)))

    def limits(self, x: Any, largest: int) -> FloatArray:
        """Return the largest slope of each row in units of 2⁻²⁰: whole, and at most ``largest``."""
        with np.errstate(divide="ignore"):
            return np.floor(np.minimum(self.most * _DOWN / self.frame.lengths(x), float(largest)))


@dataclass(frozen=True, eq=False)
class ClippedSums:
    """Σ s·x at θ, which is on its grid, in units of 2⁻³²; a pass."""

    table: SlopeTable
    theta: FloatArray
    clip: Clip

    def __call__(self, batch: Batch) -> Totals:
        """Return the sum."""
        return folded((self._block(*block) for block in blocks(batch)), batch.shift)

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        slopes = self.table.at(predictions(x, self.theta[:, None]), y).astype(np.float64)
        limits = self.clip.limits(x, self.table.largest)
        slopes = np.clip(slopes, -limits, limits, out=slopes)
        # slopes of at most 2²²: exact
        return (weighted(x, (slopes if counts is None else slopes * counts)[None])[0],)


@dataclass(frozen=True, eq=False)
class LengthSums:
    """Σ of rows' squared lengths in a frame, each cut at ``most`` and counted in whole parts of it; a pass.

    One row moves the sum by at most :data:`PARTS`.
    """

    frame: Frame
    most: float

    def __call__(self, batch: Batch) -> Totals:
        """Return the sum."""
        return folded((self._block(*block) for block in blocks(batch)), batch.shift)

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        parts = self.parts(x)
        return (whole(np.atleast_1d((parts if counts is None else parts * counts).sum())),)

    def parts(self, x: Any) -> FloatArray:
        """Return it for rows in units of 2⁻²⁰: whole numbers up to :data:`PARTS`."""
        return np.asarray(np.floor(np.minimum((self.frame.lengths(x) / (self.most * ONE)) ** 2, 1.0) * PARTS))


class ClippedGradients(Private):
    """Rows, ready for sums of clipped gradients. Private.

    Rows in memory that are mostly zero, as indicators are, are kept as their other entries, which is faster and gives
    the same integers. Others are summed up in passes, wherever they are.
    """

    def __init__(self, rows: Rows | RowSource, table: SlopeTable) -> None:
        largest = max(table.largest, ONES.largest)
        if rows.n * largest >= _MOST:
            raise ValueError(f"at most {_MOST // largest - 1:,} rows can be summed")
        if table.largest > 1 << 22:
            raise ValueError("slopes beyond 2¹⁰ cannot be summed exactly")
        self.n, self.p, self._table = rows.n, rows.p, table
        self._source: RowSource | None = None
        if isinstance(rows, RowSource) or np.count_nonzero(rows.x) > _SPARSE * rows.x.size:
            self._source = as_source(rows)
            self._engine: Engine = self._source.engine or LocalEngine()
            return
        self._y = rows.y.astype(np.float64) / ONE
        self._columns = sparse.csr_array(rows.x.T.astype(np.int64))
        self._rows = sparse.csr_array(rows.x.astype(np.float64))
        self._limited: tuple[Clip, int, FloatArray] | None = None  # limits stay the same from step to step

    def total(self, theta: FloatArray, clip: Clip) -> npt.NDArray[np.int64]:
        """Return Σ s·x at θ, rounded to its grid first, in units of 2⁻³²; private."""
        largest = float(np.abs(theta).max(initial=0.0)) or 1.0
        return self._sum(self._table, to_grid(theta, largest, norm="l2"), clip)

    def rows_total(self, clip: Clip) -> npt.NDArray[np.int64]:
        """Return the sum of rows, those that are longer than C shortened to it, in units of 2⁻³²; private."""
        return self._sum(ONES, np.zeros(self.p), clip)

    def lengths_total(self, frame: Frame, most: float) -> int:
        """Return the sum of squared lengths in a frame, cut at a length, in parts of its square; private."""
        work = LengthSums(frame, most)
        if self._source is not None:
            return int(self._engine.total(self._source, work)[0][0])
        return int(work.parts(self._rows).sum())

    def _sum(self, table: SlopeTable, on_grid: FloatArray, clip: Clip) -> npt.NDArray[np.int64]:
        if self._source is not None:
            return np.asarray(self._engine.total(self._source, ClippedSums(table, on_grid, clip))[0], dtype=np.int64)
        if self._limited is None or self._limited[0] is not clip or self._limited[1] != table.largest:
            self._limited = clip, table.largest, clip.limits(self._rows, table.largest)
        limits = self._limited[2].astype(np.int64)
        slopes = table.at(np.asarray(self._rows @ (on_grid / ONE)), self._y)
        return np.asarray(self._columns @ np.clip(slopes, -limits, limits))
