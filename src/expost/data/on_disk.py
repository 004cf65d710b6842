"""Features and target of a table on disk, for estimators: nothing is read but what is public about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.data.columns import Column
from expost.data.disk import Disk, open_disk
from expost.data.files import chosen_columns
from expost.data.parquet_parts import ParquetTable
from expost.data.tables import RawRows

__all__ = ["ColumnsOnDisk", "TableOnDisk", "TargetOnDisk"]


class ColumnsOnDisk(RawRows):
    """Columns that are read when a pass is made, not before."""

    def __init__(
        self, disk: Disk, n: int, features: Sequence[str], target: str, engine: Any, *, named: bool = True
    ) -> None:
        super().__init__(n, len(features), names=list(features) if named else None)
        self.disk, self.features, self.target, self.engine = disk, tuple(features), target, engine


class TargetOnDisk(Column):
    """A target that is read when a pass is made; says how long it is and what its type is."""

    def __init__(self, n: int, dtype: np.dtype[Any], name: str | None) -> None:
        super().__init__([])
        self._n, self.dtype, self.name = n, dtype, name

    def __len__(self) -> int:
        return self._n

    def distinct(self) -> tuple[npt.NDArray[Any], int]:
        """Refuse: that would take a pass of its own, and no guarantee covers it."""
        raise ValueError("labels are not read off a table that is read in pieces; pass classes=(negative, positive)")


class TableOnDisk:
    """A table that need not fit into memory, as features and target.

    Parameters
    ----------
    path : str or path
        A CSV or Parquet file, a folder of them, or a pattern.
    target : str
        Name of the target column.
    columns : sequence of str, optional
        Feature columns. By default all but the target.
    engine : None, "local", "dask" or an engine, default=None
        Who carries out passes over the rows.
    **options
        How CSV files are written; see :func:`expost.data.disk.open_disk`.

    Attributes
    ----------
    X, y
        For ``fit``.
    column_names : tuple of str
        Of the features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> from expost import AccuracyFirstRidge
    >>> x = np.random.default_rng(0).uniform(-1, 1, 20_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table({"x": x, "y": x / 2}), file)
    ...     table = TableOnDisk(file, "y")
    ...     model = AccuracyFirstRidge(excess_risk=0.05, bounds=1, target_bound=1, random_state=0)
    ...     model.fit(table.X, table.y).release_.status
    'released'
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Disk,
        target: str,
        *,
        columns: Sequence[str] | None = None,
        engine: Any = None,
        **options: Any,
    ) -> None:
        disk = open_disk(path, **options)
        self.column_names = tuple(chosen_columns(disk.files[0].names, target, columns, disk.files[0].path))
        disk.require([*self.column_names, target])
        n = disk.n if disk.n is not None else disk.count()
        if n == 0:
            raise ValueError(f"{path} has no rows")
        self.X = ColumnsOnDisk(disk, n, self.column_names, target, engine)
        self.y = TargetOnDisk(n, _dtype(disk, target), target)

    def __repr__(self) -> str:
        return f"TableOnDisk(n={self.X.n}, column_names={list(self.column_names)})"


def _dtype(disk: Disk, target: str) -> np.dtype[Any]:
    first = disk.files[0]
    if not isinstance(first, ParquetTable):
        return np.dtype(object)
    try:
        found: Any = first.types[first.places([target])[target]].to_pandas_dtype()
    except NotImplementedError:
        found = object
    made: np.dtype[Any] = np.dtype(found)
    return made
