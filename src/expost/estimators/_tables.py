"""Tables and schemas, however they are stated."""

from __future__ import annotations

from typing import Any

from expost.data.entrance import open_column
from expost.data.named import NamedColumns, open_named
from expost.data.schema import Schema

__all__ = ["as_schema", "with_target"]


def with_target(table: Any, schema: Schema, y: Any) -> Any:
    """Return a table with its target, which may come by itself; no cell is looked at."""
    if y is None:
        return table
    raw = open_named(table, [name for name in schema.needed if name != schema.target])
    target, _ = open_column(y, on_invalid="clip", name="y")
    if len(target) != len(raw):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(raw), len(target)]}")
    return NamedColumns({**raw.columns, schema.target: target}, len(raw))


def as_schema(stated: Any) -> Schema:
    """Return a schema, however it was stated."""
    if isinstance(stated, Schema):
        return stated
    return Schema.from_dict(stated) if isinstance(stated, dict) else Schema.from_toml(stated)
