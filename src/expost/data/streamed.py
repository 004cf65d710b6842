"""Rows made of a table on disk, batch by batch: what `Encoding` and `Preparation` make of it, never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, RowSource
from expost.data.columns import Column
from expost.data.disk import Disk
from expost.data.encode import Encoding
from expost.data.files import loose
from expost.data.kinds import Numeric
from expost.data.named import NamedColumns
from expost.data.preparation import Preparation
from expost.data.rows import Norm
from expost.data.tables import Columns

__all__ = ["EncodedSource", "PreparedSource", "StreamedSource", "usual_rows"]

_CELLS = 1 << 21  # of a batch, raw or made
_MOST_ROWS = 1 << 16


def usual_rows(width: int) -> int:
    """Return how many rows of so many cells are read at a time: a power of two, as sums are over so many.

    Examples
    --------
    >>> usual_rows(10), usual_rows(50), usual_rows(1000)
    (65536, 32768, 2048)
    """
    return min(_MOST_ROWS, max(1 << 10, 1 << (_CELLS // width).bit_length() >> 1))


class StreamedSource(RowSource):
    """Rows that are made of a table when they are asked for; holds nothing but what is public.

    Parameters
    ----------
    disk : Disk, or another that has ``pieces`` and ``read``
        The table.
    names : sequence of str
        Which columns.
    p, norm
        Of the rows.
    batch_rows : int, optional
        Rows read at a time; changes nothing but memory and speed.

    Attributes
    ----------
    judge
        Complains about counts of cells, in the first pass; None once that is done, or if nobody is to complain.
    """

    def __init__(self, disk: Disk, names: Sequence[str], p: int, norm: Norm, batch_rows: int | None) -> None:
        disk.require(names)
        self.disk, self.names, self.p, self.norm = disk, list(names), p, norm
        self.n = disk.guess  # until it was looked at
        self.batch_rows = usual_rows(max(p, len(self.names))) if batch_rows is None else batch_rows
        self.numeric: frozenset[str] = frozenset()
        self.judge: Callable[[npt.NDArray[np.int64], int], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": None, "judge": None}  # a worker needs none

    def parts(self) -> Sequence[Any]:
        """Return the pieces of the table."""
        return self.disk.pieces()

    def read(self, part: Any) -> Iterator[Batch]:
        """Yield the rows of a piece."""
        for columns in self.disk.read(part, self.names, self.numeric, self.batch_rows):
            yield self.made(columns)

    def made(self, columns: NamedColumns) -> Batch:
        """Return the rows that columns become, and counts of their cells."""
        raise NotImplementedError


class EncodedSource(StreamedSource):
    """Rows of a table with a schema.

    Parameters
    ----------
    disk, batch_rows
        As above.
    encoding : Encoding
        How the table becomes rows.
    """

    def __init__(self, disk: Disk, encoding: Encoding, batch_rows: int | None = None) -> None:
        schema = encoding.schema
        super().__init__(disk, [*schema.columns, schema.target], len(encoding.names), "l2", batch_rows)
        self.encoding = encoding
        vars(self).update(encoding.declares)
        numbers = {name for name, kind in schema.columns.items() if isinstance(kind, Numeric)}
        self.numeric = frozenset(numbers | ({schema.target} if schema.classes is None else set()))

    def made(self, columns: NamedColumns) -> Batch:
        """Return the rows that columns become, and counts of their cells."""
        x, y, cells = self.encoding.encoded(columns)
        return Batch(x, y, cells=cells, uneven=len(columns.uneven))


@dataclass(frozen=True)
class Wanted:
    """Which columns are features, which is the target, and how labels are told apart."""

    features: tuple[str, ...]
    target: str
    classes: tuple[Any, Any] | None


class PreparedSource(StreamedSource):
    """Rows of a table with bounds.

    Parameters
    ----------
    disk, batch_rows
        As above.
    preparation : Preparation
        How the table becomes rows.
    wanted : Wanted
        Its columns.
    """

    def __init__(self, disk: Disk, preparation: Preparation, wanted: Wanted, batch_rows: int | None = None) -> None:
        super().__init__(
            disk, [*wanted.features, wanted.target], preparation.n_parameters, preparation.norm, batch_rows
        )
        vars(self).update(preparation.declares)
        self.preparation, self.wanted = preparation, wanted
        self._labels = wanted.classes is not None and any(isinstance(c, str | bytes) for c in wanted.classes)
        self.numeric = frozenset(wanted.features if self._labels else self.names)

    def made(self, columns: NamedColumns) -> Batch:
        """Return the rows that columns become, and counts of their cells."""
        wanted = self.wanted
        raw = Columns([loose(columns[name]) for name in wanted.features], len(columns), list(wanted.features))
        target = columns[wanted.target]
        if not self._labels:
            target = Column(loose(target).floats(slice(None)))
        x, y, cells = self.preparation.prepared(raw, target, wanted.classes, by_column=True)
        return Batch(x, y, cells=cells)
