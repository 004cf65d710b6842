"""Arrays of Dask as features and target of a fit: chunks stay where they are, and workers make passes over them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from expost.data.columns import Column, require_readable
from expost.data.named import NamedColumns, places_of
from expost.data.on_disk import ColumnsOnDisk, TargetOnDisk
from expost.data.streamed import StreamedSource
from expost.engines.dask import DaskEngine
from expost.engines.engine import Totals, Work, part_totals
from expost.threads import one_thread

__all__ = ["DaskArrays", "from_dask"]

_TARGET = "y"


class DaskArrays:
    """Chunks of rows, features and targets, as a table in pieces.

    Parameters
    ----------
    X, y : dask.array.Array
        Of shape (n, p) and (n,).
    """

    def __init__(self, X: Any, y: Any) -> None:
        self.n = self.guess = int(X.shape[0])
        self.names = [*map(str, range(X.shape[1])), _TARGET]
        self._X = X.rechunk({1: -1})  # a row is never cut
        self._y = y.rechunk({0: self._X.chunks[0]})

    def __getstate__(self) -> dict[str, Any]:
        return {"n": self.n, "guess": self.guess, "names": self.names}

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that are not there."""
        places_of(self.names, names)

    def tasks(self, source: StreamedSource, work: Work) -> list[Any]:
        """Return what is to be done on each chunk."""
        from dask.delayed import delayed

        chunks = zip(self._X.to_delayed().ravel(), self._y.to_delayed().ravel(), strict=True)
        job = delayed(partial(_of_chunk, source=source, work=work), pure=False)
        return [job(features, targets) for features, targets in chunks]


def _of_chunk(features: Any, targets: Any, source: StreamedSource, work: Work) -> Totals | None:
    source.disk = _Chunk(np.asarray(features), np.asarray(targets))  # type: ignore[assignment]
    with one_thread():
        return part_totals(source, None, work)


class _Chunk:
    """A chunk, read like a file."""

    def __init__(self, features: Any, targets: Any) -> None:
        self._features, self._targets = features, targets

    def read(self, part: Any, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        for start in range(0, len(self._targets), rows):
            some = slice(start, start + rows)
            cells = {
                name: Column(self._targets[some] if name == _TARGET else self._features[some, int(name)])
                for name in names
            }
            yield NamedColumns(cells, len(self._targets[some]))


def from_dask(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and target of Dask arrays as those of a table in pieces; others as they are."""
    module = sys.modules.get("dask.array")
    if module is None or not (isinstance(X, module.Array) or isinstance(y, module.Array)):
        return X, y
    if not (isinstance(X, module.Array) and isinstance(y, module.Array)):
        raise ValueError("X and y must both be Dask arrays, or neither")
    if X.ndim != 2 or y.ndim != 1:
        raise ValueError("X must have two dimensions and y one, as Dask arrays")
    if any(math.isnan(size) for size in (*X.shape, *y.shape)):
        raise ValueError("X and y must have chunks of known sizes; call compute_chunk_sizes() first")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[X.shape[0], y.shape[0]]}")
    require_readable(X.dtype, "X")
    require_readable(y.dtype, "y")
    table = DaskArrays(X, y)
    rows = ColumnsOnDisk(table, table.n, table.names[:-1], _TARGET, DaskEngine(), named=False)  # type: ignore[arg-type]
    return rows, TargetOnDisk(table.n, y.dtype, None)
