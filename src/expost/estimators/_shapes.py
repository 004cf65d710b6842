"""Which shape of rows the noise should follow; public numbers decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from expost.data.fixed_point import ONE
from expost.erm.geometry import Block, Geometry

__all__ = ["block_geometry", "cheapest_geometry"]


class _Blocks(Protocol):
    """Rows of ``square`` parts, each of norm at most 1, divided by ``ONE/unit`` to lie in the Euclidean ball."""

    @property
    def blocks(self) -> Sequence[tuple[int, Literal["box", "l1"]]]: ...
    @property
    def square(self) -> int: ...
    @property
    def unit(self) -> int: ...
    @property
    def constant_column(self) -> int | None: ...


def block_geometry(rows: _Blocks, steering: float | None = None) -> Geometry:
    """Return the shape of rows block by block, as they are made."""
    scale = ONE / rows.unit
    blocks = tuple(Block(size, norm, 1.0 / scale) for size, norm in rows.blocks)
    divided = scale if steering is None else steering
    return Geometry(blocks, 1.0, "blocks", scale=divided, constant=rows.constant_column)


def cheapest_geometry(rows: _Blocks, steering: float | None = None) -> Geometry:
    """Return the shape of rows whose noise is smallest: blocks, a Euclidean or an ℓ₁ ball.

    Parameters
    ----------
    rows : Encoding or BlockPreparation
        What makes them.
    steering : float, optional
        What rows were divided by in units that people think in; only steers a search.

    Examples
    --------
    >>> from expost.data.encode import Encoding
    >>> from expost.data.schema import Schema
    >>> schema = {"target": "y", "target_bounds": [0, 1], "columns": {"a": {"bounds": [0, 1]}}}
    >>> encoding = Encoding(Schema.from_dict(schema))
    >>> cheapest_geometry(encoding).name
    'blocks'
    """
    p, scale = sum(size for size, _ in rows.blocks), ONE / rows.unit
    s = scale if steering is None else steering
    shapes = [
        block_geometry(rows, s),
        Geometry((Block(p, "l2", 1.0),), 1.0, "Euclidean ball", scale=s),
        Geometry((Block(p, "l1", rows.square / scale),), 1.0, "ℓ₁ ball", scale=s),
    ]
    best = min(shapes, key=lambda shape: shape.noise)
    others = ", ".join(f"{shape.name} {shape.noise / best.noise:.2g} times" for shape in shapes if shape is not best)
    return Geometry(best.blocks, best.radius, best.name, f"the least noise ({others} as much)", s)
