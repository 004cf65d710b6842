"""Sums of clipped gradients over rows, in integers: the same for every order of summation, and moved by one row only.

A row's gradient is φ′(t)·x, t its margin y·xᵀθ or its residual xᵀθ − y. Here φ′ is read off a public table: t is cut
into steps of 2⁻⁹ (beyond ±8 the last step counts) and each step has one slope, or one for each label where labels have
weights, a multiple of 2⁻¹² truncated towards zero. A loss with such slopes is convex and piecewise linear, within 2⁻⁹
of the smooth one in slope; any table would be as private. A row's slope is then moved towards zero until |s|·‖x̃‖ ≤ C,
x̃ the row in its frame (below): gradients are clipped by their length, so no row has to be as long as the longest there
might be.

*Exact.* Let θ be a multiple of a power of two that `expost.numeric.to_grid` allows: then xᵀθ is exact in float64
in any order of summation, and so is ‖x̃‖², so a row's slope s is a function of that row, of θ and of the frame alone.
s·x is an integer vector in units of 2⁻³², and sums of integers are exact. *Released* never: only with noise.
*Sensitivity*: replacing one row moves the sum, seen in the frame, by s·x̃ − s′·x̃′, which is at most 2C long.
*Rounding*: a limit is ⌊C/‖x̃‖·(1 − 2⁻⁴⁰)⌋; root and quotient are off by 2⁻⁵² of themselves, so s·‖x̃‖ ≤ C holds
exactly.

Coordinates in which rows are short, so that clipping their gradients by length costs little.

Rows as they are encoded are long for two reasons that say nothing about a model: a number that fills a small part of
its bounds adds nearly the same to every row, and so does an indicator that most rows have. In a frame a row is x̃ =
ω·x − m: columns times whole weights ω, minus a centre m that was released before (zero for the constant, which stays).
The more a number is stretched, the less noise its coefficient gets.

*Linear.* Every row has the same constant c in one column, so Σ s·x̃ = ω·Σ s·x − m·Σ s, and Σ s = (Σ s·x_c)/c: sums over
rows as they are encoded are enough, and all of it is whole. A model ψ in the frame predicts x̃ᵀψ = xᵀθ with θ = ω·ψ,
and θ_c = ψ_c − mᵀψ/c for the constant.

*Exact.* With |m_j| ≤ ω_j·c and ω ≤ 4 the sums Σ ω²x² and Σ ω·m·x over a row are whole numbers below 2⁴⁵, partial sums
included (Σ x² ≤ 2⁴⁰; blocks of norm c, of which c²·B ≤ 2⁴⁰): float64 adds them exactly in any order. So a row's length
is a function of that row and the frame alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy import sparse

from expost.numeric import FloatArray, Private, to_grid
from expost.passes.engine import Engine, LocalEngine, Totals, predictions, weighted, whole
from expost.solve.losses import Loss
from expost.solve.row_sums import BlockSums
from expost.table.rows import ONE, Rows, RowSource, as_source
from expost.table.shape import Geometry

Whole = NDArray[np.int64]

# what a column or block is guessed to add to a row's squared length, in squares of its bound: steers, and any is sound
_SPREAD, _NUMBER = 0.04, 0.25  # a number, before it is stretched: around its centre, and around zero
_MIXED, _BALL = 0.7, 0.5  # a category around its centre; a block that is bounded as a whole


@dataclass(frozen=True, eq=False)
class Frame:
    """Where rows are looked at from; public, or released.

    Attributes
    ----------
    weights
        ω.
    centre
        m, in units of 2⁻²⁰.
    constant, value
        Which column is the same in every row, and its value in units of 2⁻²⁰; None and 0 if there is none.
    """

    weights: Whole
    centre: Whole
    constant: int | None
    value: int

    @classmethod
    def of(cls, geometry: Geometry, stretch: int = 1) -> Frame:
        """Return the frame to start with: numbers stretched by at most that, and centred at zero.

        Examples
        --------
        >>> from expost.table.shape import Block
        >>> shape = Geometry((Block(3, "box", 0.5), Block(2, "l1", 0.5)), 1.0, "blocks", constant=0)
        >>> Frame.of(shape, stretch=3).weights.tolist()
        [1, 3, 3, 1, 1]
        """
        constant, p = geometry.constant, geometry.columns
        if constant is None:
            return cls(np.ones(p, dtype=np.int64), np.zeros(p, dtype=np.int64), None, 0)
        times = _stretch(geometry, stretch)
        weights = np.concatenate([np.full(b.size, times if b.norm == "box" else 1) for b in geometry.blocks])
        weights[constant] = 1
        return cls(weights.astype(np.int64), np.zeros(p, dtype=np.int64), constant, round(_block_of(geometry) * ONE))

    @property
    def movable(self) -> bool:
        """Whether it can be centred elsewhere."""
        return self.constant is not None

    def moved(self, mean: FloatArray) -> Frame:
        """Return the frame centred at a released mean of ω·x, in units of 1, as far as rows can reach."""
        most = self.weights * self.value
        centre = np.clip(np.rint(np.asarray(mean) * ONE), -most, most).astype(np.int64)
        centre[self.constant] = 0
        return Frame(self.weights, centre, self.constant, self.value)

    def lengths(self, x: Any) -> FloatArray:
        """Return ‖x̃‖ of rows in units of 2⁻²⁰, in the same units."""
        weights, centre = self.weights.astype(np.float64), self.centre.astype(np.float64)
        squares = x * x if isinstance(x, np.ndarray) else x.multiply(x)
        found = np.asarray(squares @ (weights * weights)).ravel()
        if self.centre.any():
            found = (found - 2.0 * np.asarray(x @ (weights * centre)).ravel()) + float(centre @ centre)
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def coordinates(self, total: Any) -> list[int]:
        """Return Σ s·x̃ of Σ s·x: whole numbers."""
        sums = [int(value) for value in total]
        slopes = 0 if self.constant is None else sums[self.constant] // self.value
        weights, centre = self.weights.tolist(), self.centre.tolist()
        return [w * value - m * slopes for w, value, m in zip(weights, sums, centre, strict=True)]

    def hypothesis(self, psi: FloatArray) -> FloatArray:
        """Return θ of ψ."""
        theta = self.weights * psi
        if self.constant is not None:
            theta[self.constant] -= float(self.centre @ psi) / self.value
        return np.asarray(theta)

    def hypotheses(self, psi: FloatArray) -> FloatArray:
        """Return θ of each column of ψ."""
        theta = self.weights[:, None] * psi
        if self.constant is not None:
            theta[self.constant] -= self.centre.astype(np.float64) @ psi / self.value
        return np.asarray(theta)

    def parameters(self, theta: FloatArray) -> FloatArray:
        """Return ψ of θ."""
        psi = np.asarray(theta) / self.weights
        if self.constant is not None:
            psi[self.constant] += float(self.centre @ psi) / self.value
        return psi


def _block_of(geometry: Geometry) -> float:
    """Return the radius of the block that the constant is in."""
    assert geometry.constant is not None
    place = 0
    for block in geometry.blocks:
        place += block.size
        if geometry.constant < place:
            return block.radius
    raise ValueError("the constant is in no block")


def _parts(geometry: Geometry) -> tuple[int, float, float]:
    """Return how many numbers there are, and what the constant and all other blocks are guessed to add, centred."""
    boxed = sum(block.size for block in geometry.blocks if block.norm == "box")
    radius = _block_of(geometry)
    return boxed - 1, radius**2, math.fsum(_MIXED * b.radius**2 for b in geometry.blocks if b.norm != "box")


def _stretch(geometry: Geometry, most: int) -> int:
    """Return ω of numbers: together they are not to be longer than everything else, where they are many."""
    numbers, constant, others = _parts(geometry)
    if not numbers:
        return 1
    return max(1, min(most, round(math.sqrt((constant + others) / (numbers * constant * _SPREAD)))))


def typical_length(geometry: Geometry, stretch: int = 1, *, centred: bool) -> float:
    """Return how long rows are guessed to be in their frame, before it is centred or after; public."""
    if geometry.constant is None:
        return math.sqrt(_BALL) * geometry.radius
    numbers, constant, others = _parts(geometry)
    each = constant * _stretch(geometry, stretch) ** 2 * (_SPREAD if centred else _NUMBER)
    return math.sqrt(constant + numbers * each + (others if centred else others / _MIXED))


#: One, in the units that slopes are written in.
SLOPE_ONE = 2**12
_FINE = 512  # steps of the table for each unit of t
_REACH = 8  # the table covers ±8
_SPARSE = 0.25  # of entries are not zero: below, rows are kept without the others
_DOWN = 1.0 - 2.0**-40  # rounding of a limit
_LARGEST_SUM = 2**42  # rows times the largest slope: sums of slopes times entries of 2²⁰ stay within 62 bits


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
    negative
        For margins the slopes at y = −1, which are others where labels have weights.
    """

    slopes: npt.NDArray[np.int64]
    margins: bool
    largest: int
    negative: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, loss: Loss) -> SlopeTable:
        """Read the slopes off a loss whose slope is bounded.

        Examples
        --------
        >>> from expost.solve.losses import HuberLoss, LogisticLoss
        >>> SlopeTable.of(HuberLoss(0.25)).largest, SlopeTable.of(LogisticLoss()).largest
        (1024, 4094)
        """
        middle = (np.arange(-_REACH * _FINE, _REACH * _FINE) + 0.5) / _FINE
        margins = loss.labels == "binary"
        target = np.ones_like(middle) if margins else np.zeros_like(middle)
        # at a margin t a label y has u = y·t, and its slope in t is y·φ′
        slopes, negative = (
            np.trunc(y * loss.derivative(y * middle, y * target) * SLOPE_ONE).astype(np.int64) for y in (1.0, -1.0)
        )
        if not margins:
            return cls(slopes, margins, int(np.abs(slopes).max()))
        return cls(slopes, margins, max(int(np.abs(found).max()) for found in (slopes, negative)), negative)

    def at(self, u: FloatArray, y: FloatArray) -> npt.NDArray[np.int64]:
        """Return the slope of each row for predictions u and targets y."""
        t = y * u if self.margins else u - y
        step = np.floor(np.clip(t, -_REACH, _REACH) * _FINE).astype(np.int64)
        place = np.clip(step + _REACH * _FINE, 0, len(self.slopes) - 1)
        if self.negative is None:
            return self.slopes[place]
        return np.where(y > 0, self.slopes[place], -self.negative[place])


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
class ClippedSums(BlockSums):
    """Σ s·x at θ, which is on its grid, in units of 2⁻³²; a pass."""

    table: SlopeTable
    theta: FloatArray
    clip: Clip

    def _block(self, x: Any, y: FloatArray, counts: FloatArray | None) -> Totals:
        slopes = self.table.at(predictions(x, self.theta[:, None]), y).astype(np.float64)
        limits = self.clip.limits(x, self.table.largest)
        slopes = np.clip(slopes, -limits, limits, out=slopes)
        # slopes of at most 2²²: exact
        return (weighted(x, (slopes if counts is None else slopes * counts)[None])[0],)


@dataclass(frozen=True, eq=False)
class LengthSums(BlockSums):
    """Σ of rows' squared lengths in a frame, each cut at ``most`` and counted in whole parts of it; a pass.

    One row moves the sum by at most :data:`PARTS`.
    """

    frame: Frame
    most: float

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
        if rows.n * largest >= _LARGEST_SUM:
            raise ValueError(f"at most {_LARGEST_SUM // largest - 1:,} rows can be summed")
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
