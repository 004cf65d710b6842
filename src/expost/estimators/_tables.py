"""Tables and schemas, however they are stated."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.data.disk import open_disk
from expost.data.encode import Encoding
from expost.data.entrance import OnInvalid, open_column
from expost.data.fixed_point import ONE
from expost.data.named import NamedColumns, open_named
from expost.data.schema import Schema
from expost.data.streamed import EncodedSource

__all__ = ["as_schema", "margins_and_targets", "with_target"]

Floats = npt.NDArray[np.float64]


def with_target(table: Any, schema: Schema, y: Any) -> Any:
    """Return a table with its target, which may come by itself; no cell is looked at."""
    if y is None:
        return table
    raw = open_named(table, [name for name in schema.needed if name != schema.target])
    target, _ = open_column(y, on_invalid="clip", name="y")
    if len(target) != len(raw):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(raw), len(target)]}")
    return NamedColumns({**raw.columns, schema.target: target}, len(raw))


def margins_and_targets(table: Any, encoding: Encoding, theta: Floats, on_invalid: OnInvalid) -> tuple[Floats, Floats]:
    """Return xᵀθ and the scaled target of each row of a table on disk, read in pieces; private."""
    source = EncodedSource(open_disk(table), encoding)
    margins, targets, cells = [np.zeros(0)], [np.zeros(0)], []
    for part in source.parts():
        for batch in source.read(part):
            margins.append(np.divide(batch.x, ONE, order="C") @ theta)  # the same bits as rows in memory
            targets.append(batch.y / ONE)
            cells.append(batch.cells)
    made = np.concatenate(margins)
    if len(made) == 0:
        raise ValueError("there are no rows; pass at least one")
    if on_invalid == "error":
        counts: Any = sum(cells)
        encoding.require_fit(*encoding.tallied(counts, len(made)))
    return made, np.concatenate(targets)


def as_schema(stated: Any) -> Schema:
    """Return a schema, however it was stated."""
    if isinstance(stated, Schema):
        return stated
    if isinstance(stated, dict):
        return Schema.from_dict(stated)
    if isinstance(stated, str | PathLike):
        return Schema.from_toml(Path(stated))
    raise ValueError(
        f"schema must be a Schema, a dictionary or the path of a TOML file, which expost init drafts from a table; got "
        f"{type(stated).__name__}. Nothing was spent."
    )
