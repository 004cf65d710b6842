"""Coarser views of rows: straight lines and wide curves while noise is large, finer ones as it falls.

Rows are encoded once, with every curve at its finest. A level of a search that could not tell fine knots apart sees
x_v = P·x instead, P public: fewer hats, or the number itself (`expost.table.curves`). It trains on rows of that shape,
with noise for that shape and for nothing else, and its model θ_v, lifted to θ = Pᵀθ_v, says of x what θ_v says of P·x:
that is what is tested, released and predicted with. The next level may start from it, in a finer view.

*Sensitivity.* What a level sees of a row is a function of that row alone, so neighbours stay neighbours. *Claim*: it
has the shape that its noise is made for, exactly, in integers. *Proof.* P is a whole matrix Q in units of 2⁻¹². Every
block of the view, and every number of its box, is made of one part of the row, a block with ‖x_b‖₁ ≤ c or one number
with |x_j| ≤ c, and no part makes two. Column by column the sizes of Q's entries add up to at most 2¹² (both is checked
when a view is made), so ‖Q·x_b‖₁ ≤ 2¹²·c; a number of the box is at most that. Products are below 2⁵³ and exact in
float64, and dividing by 2¹² and truncating toward zero makes no entry larger. Of B parts of the row the view has m, so
‖x_v‖₂² ≤ m·c² ≤ m/B in units of 2⁻⁴⁰ (`expost.table.shape`). ∎ Truncation makes θᵀx and θ_vᵀx_v differ by units: what
is tested is θ.

Which view a level has is a matter of how much noise it has, a public number (:func:`seen_at`); nothing rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from expost.table.curves import RESOLUTIONS
from expost.table.rows import Batch
from expost.table.shape import BlockRows, Geometry

if TYPE_CHECKING:
    from expost.table.encoding import Encoding

Floats = npt.NDArray[np.float64]

_ONE = 2**12  # what 1 is in a map
_SLICE = 1 << 14  # rows that are seen at once
#: A curve of so many intervals is seen from a level of so much times (N_v/N)² on, in units of the table, its noise
#: being N_v and that of straight lines N: earlier it would drown, later it is missed. Any numbers are sound.
SEEN_FROM = {4: 16.0, 8: 80.0, 16: 300.0}


@dataclass(frozen=True, eq=False)
class View(BlockRows):
    """A public map of encoded rows, and the shape of what it makes.

    Attributes
    ----------
    intervals
        Of curves, at most; 1 for straight lines.
    pieces
        For each block of rows, a number of the box being one: first column, the map, and whether it makes a number of
        the view's box.
    rows
        The shape of the rows that are seen.

    Examples
    --------
    >>> from expost.table import Encoding, Schema
    >>> columns = {"age": {"bounds": [0, 100]}, "sex": {"categories": ["F", "M"]}}
    >>> encoding = Encoding(Schema("y", columns, target_bounds=(0, 1), curves="auto"))
    >>> line, wide, fine = views_of(encoding)
    >>> encoding.blocks, line.blocks, wide.blocks
    (((1, 'box'), (18, 'l1'), (3, 'l1')), ((2, 'box'), (3, 'l1')), ((1, 'box'), (6, 'l1'), (3, 'l1')))
    """

    intervals: int
    pieces: tuple[tuple[int, Floats, bool], ...]
    rows: BlockRows = field(repr=False)
    constant_column: int | None = 0
    _lifts: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whole = [(first, np.trunc(made * _ONE), boxed) for first, made, boxed in self.pieces]
        parts = {(first, width) for first, width in parts_of(self.rows)}
        for first, made, boxed in whole:
            if np.abs(made).sum(axis=0).max() > _ONE or (boxed and len(made) != 1):
                raise ValueError("a view must not make rows longer: a column adds at most 1 to a block")
            if (first, made.shape[1]) not in parts:
                raise ValueError("a block of a view is made of one block of the rows")
        whole = [piece for piece in whole if len(piece[1])]
        # numbers of the box first, as in rows
        ordered = [piece for piece in whole if piece[2]] + [piece for piece in whole if not piece[2]]
        width = sum(size for size, _ in self.rows.blocks)
        place, blocks = 0, []
        rows: list[int] = []
        for first, made, boxed in ordered:
            blocks.append((place, first, made / _ONE, np.linalg.pinv(made.T / _ONE)))
            place += len(made)
            rows += [] if boxed else [len(made)]
        numbers = sum(boxed for _, _, boxed in whole)
        put = object.__setattr__
        put(self, "blocks", ((numbers, "box"), *((size, "l1") for size in rows)))
        put(self, "_lifts", (place, width, tuple(blocks)))

    @property
    def square(self) -> int:  # type: ignore[override]
        """B, as of the rows: what 1 is in fixed point stays the same."""
        return self.rows.square

    @property
    def radius(self) -> float:
        """No row is longer than that: it has as many parts as the view has, each at most c."""
        parts = self.blocks[0][0] + len(self.blocks) - 1
        return float(np.sqrt(parts / self.square)) * (1 + 1e-12)

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return int(self._lifts[0])

    @cached_property
    def map(self) -> Any:
        """Qᵀ, by which rows are multiplied, in units of 2⁻¹²."""
        rows, columns, blocks = self._lifts
        found = sparse.lil_array((columns, rows))
        for place, first, made, _ in blocks:
            found[first : first + made.shape[1], place : place + len(made)] = (made * _ONE).T
        return found.tocsr()

    def seen(self, x: Any) -> Any:
        """Return what is seen of rows in fixed point: arrays of int32, or sparse ones of the same integers."""
        if sparse.issparse(x):
            made = sparse.csr_array(x @ self.map)
            made.data = np.trunc(made.data / _ONE)
            return made
        found = np.empty((len(x), self.columns), dtype=np.int32)
        for start in range(0, len(x), _SLICE):
            some = np.asarray(x[start : start + _SLICE], dtype=np.float64) @ self.map
            found[start : start + _SLICE] = np.trunc(some / _ONE)
        return found

    def batch(self, batch: Batch) -> Batch:
        """Return what is seen of some rows."""
        return replace(batch, x=self.seen(batch.x))

    def lifted(self, theta: Floats) -> Floats:
        """Return θ, for rows as they are, of a model of what is seen: Pᵀθ_v."""
        _, columns, blocks = self._lifts
        found = np.zeros(columns)
        for place, first, made, _ in blocks:
            found[first : first + made.shape[1]] = theta[place : place + len(made)] @ made
        return found

    def part(self, first: int, width: int) -> tuple[int, Floats, Floats]:
        """Return of the part of rows that begins there: first column in the view, Pᵀ and the map back (`nearest`)."""
        for place, begins, made, back in self._lifts[2]:
            if begins == first:
                return place, made.T, back
        return 0, np.zeros((width, 0)), np.zeros((0, width))

    def nearest(self, theta: Floats) -> Floats:
        """Return the shortest θ_v that lifts to θ, or nearest to it."""
        rows, _, blocks = self._lifts
        found = np.zeros(rows)
        for place, first, made, back in blocks:
            found[place : place + len(made)] = back @ theta[first : first + made.shape[1]]
        return found

    @cached_property
    def stretch(self) -> tuple[float, float]:
        """How many times longer lifting, and going back, makes a vector at most."""
        blocks = self._lifts[2]
        norms = [(float(np.linalg.norm(m, 2)), float(np.linalg.norm(b, 2))) for _, _, m, b in blocks]
        return max(up for up, _ in norms) * (1 + 1e-9), max(down for _, down in norms) * (1 + 1e-9)


def parts_of(rows: BlockRows) -> Iterator[tuple[int, int]]:
    """Yield first column and width of each part of rows: every number of the box, every block."""
    numbers = rows.blocks[0][0]
    yield from ((j, 1) for j in range(numbers))
    place = numbers
    for width, _ in rows.blocks[1:]:
        yield place, width
        place += width


def views_of(encoding: Encoding) -> tuple[View, ...]:
    """Return coarser views of a table, from straight lines on; none where no column bends."""
    kinds = [kind for _, kind in encoding.parts]
    if not any(kind.bends for kind in kinds):
        return ()
    parts = list(parts_of(encoding))
    found: list[View] = []
    for intervals in RESOLUTIONS:
        pieces = [(0, np.eye(1), True)]
        for kind, (first, width) in zip(kinds, parts[1:], strict=True):
            made, boxed = kind.view(intervals, width)
            pieces.append((first, made, boxed))
        view = View(intervals, tuple(pieces), encoding)
        if view.blocks == encoding.blocks:  # as fine as rows are encoded
            break
        if not found or view.blocks != found[-1].blocks:
            found.append(view)
    return tuple(found)


def with_views(encoding: Encoding, shape: Callable[[BlockRows], Geometry]) -> Geometry:
    """Return the shape of a table's rows, and beside it the shapes of what coarser views see of them."""
    coarser = tuple(replace(shape(view), view=view, radius=view.radius) for view in views_of(encoding))
    return replace(shape(encoding), coarser=coarser)


def seen_at(geometry: Geometry, level: float, noise: Callable[[Geometry], float], sharper: float = 1.0) -> Geometry:
    """Return the finest shape that a level can bear, where noise on a mean gradient is 1/level in the coarsest one.

    ``noise`` says how much a shape has beside others, ``sharper`` how many times less it has to be than usually.
    """
    first = noise(geometry.coarsest)
    best, intervals = geometry.coarsest, 1
    for shape in (*geometry.coarser[1:], geometry):
        following = [k for k in SEEN_FROM if k > intervals]
        intervals = following[0] if shape.view is None and following else getattr(shape.view, "intervals", intervals)
        if shape is not best and level >= sharper * SEEN_FROM[intervals] * (noise(shape) / first) ** 2:
            best = shape
    return best
