"""A small table with a schema, as every kind of frame and file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost import AccuracyFirstModel, ErrorRate

N = 3000
COLUMNS = {"hours": {"bounds": [0, 80]}, "sector": {"categories": ["public", "private"]}}
LABELS = {"target": "income", "classes": ["low", "high"], "columns": COLUMNS}
AMOUNT = {"target": "amount", "target_bounds": [0, 100], "columns": COLUMNS}


@cache
def columns(n: int = N) -> dict[str, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    hours, sector = np.round(rng.uniform(0, 80, n), 2), rng.choice(["public", "private"], n)
    signal = hours + 10 * (sector == "private") + rng.normal(0, 8, n)
    return {
        "hours": tuple(hours.tolist()),
        "sector": tuple(sector.tolist()),
        "income": tuple(np.where(signal > 45, "high", "low").tolist()),
        "amount": tuple(np.round(np.clip(signal, 0, 100), 2).tolist()),
    }


def table(n: int = N, **changed: Any) -> dict[str, list[Any]]:
    """Plain lists, some of them replaced."""
    return {name: list(changed.get(name, values)) for name, values in columns(n).items()}


def written(kind: str, folder: Path) -> Any:
    """Return the table as one kind of frame, or the path of a file."""
    plain = table()
    if kind == "mapping":
        return plain
    if kind == "pandas":
        return pd.DataFrame(plain)
    if kind == "categorical pandas":
        return pd.DataFrame(plain).astype({"sector": "category", "income": "category"})
    if kind == "polars":
        return pl.DataFrame(plain)
    arrow = pa.table(plain)
    if kind == "arrow":
        return arrow
    path = folder / f"table.{kind}"
    if kind == "csv":
        pa.csv.write_csv(arrow, path)
    else:
        pa.parquet.write_table(arrow, path)
    return path


def model(schema: Any = None, goal: Any = None, **options: Any) -> AccuracyFirstModel:
    """A model that is easily good enough."""
    return AccuracyFirstModel(
        LABELS if schema is None else schema,
        ErrorRate(0.25) if goal is None else goal,
        **{"random_state": 0, **options},
    )
