"""Rows made of a table on disk, batch by batch: what `Encoding` and `Preparation` make of it, never all at once.

Opening a table reads nothing but what is public about it. Where a schema counts by person, which rows count, and how
often, is settled by one look at the column of persons, in the order of the table: a person's first k rows, in turn
until k slots are filled (:mod:`expost.table.persons`). From then on a row is read wherever it stands and counts as
often as it fills a slot, so sums are those over all slots. What is held are two numbers for each row, twelve bytes;
while they are settled some sixty bytes a row and 150 for each person: 750 MB for a million persons with ten rows each.
They are held by the process that runs the search; names do not travel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.table.bounds_encoding import Preparation
from expost.table.columns import Column, Columns, NamedColumns, RawRows, places_of
from expost.table.encoding import Encoding
from expost.table.files import Disk, chosen_columns, loose, open_disk
from expost.table.persons import Persons, times
from expost.table.rows import Batch, RowSource, digits

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
    names, numeric : sequences of str
        Which columns, and those among them that are likely to hold numbers.
    p, declares
        Number of columns of the rows, and what holds of every one.

    Attributes
    ----------
    batch_rows
        Rows read at a time; changes nothing but memory and speed.
    judge
        Complains about counts of cells, in the first pass; None once that is done, or if nobody is to complain.
    """

    def __init__(
        self,
        disk: Disk,
        names: Sequence[str],
        numeric: Iterable[str],
        p: int,
        declares: dict[str, Any],
    ) -> None:
        disk.require(names)
        self.disk, self.names, self.numeric, self.p = disk, list(names), frozenset(numeric), p
        vars(self).update(declares)
        self.n = disk.guess  # until it was looked at
        self.batch_rows = usual_rows(max(p, len(self.names)))
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
    """Rows of a table with a schema, made as an encoding says."""

    def __init__(self, disk: Disk, encoding: Encoding) -> None:
        schema, self.encoding = encoding.schema, encoding
        numbers = [name for name, kind in schema.columns.items() if kind.parsed]
        numbers += [schema.target] if schema.classes is None else []
        names = [*schema.columns, schema.target]
        super().__init__(disk, names, numbers, len(encoding.names), encoding.declares)

    def made(self, columns: NamedColumns) -> Batch:
        """Return the rows that columns become, and counts of their cells."""
        x, y, cells = self.encoding.encoded(columns)
        return Batch(x, y, cells=cells, uneven=len(columns.uneven))


class PreparedSource(StreamedSource):
    """Rows of a table with bounds, made as a preparation says.

    Parameters
    ----------
    disk
        As above.
    preparation : Preparation
    features, target, classes
        Which columns, and how labels are told apart.
    """

    def __init__(
        self,
        disk: Disk,
        preparation: Preparation,
        features: Sequence[str],
        target: str,
        classes: tuple[Any, Any] | None,
    ) -> None:
        self.preparation, self.features, self.target, self.classes = preparation, list(features), target, classes
        self._labels = classes is not None and any(isinstance(c, str | bytes) for c in classes)
        names = [*features, target]
        numbers = self.features if self._labels else names
        super().__init__(disk, names, numbers, preparation.n_parameters, preparation.declares)

    def made(self, columns: NamedColumns) -> Batch:
        """Return the rows that columns become, and counts of their cells."""
        raw = Columns([loose(columns[name]) for name in self.features], len(columns), self.features)
        target = columns[self.target]
        if not self._labels:
            target = Column(loose(target).floats(slice(None)))
        x, y, cells = self.preparation.prepared(raw, target, self.classes, by_column=True)
        return Batch(x, y, cells=cells)


class PersonSource(EncodedSource):
    """Rows of a table with a schema that names persons, each as often as it fills a slot.

    Attributes
    ----------
    persons : int
        How many there are.
    unreadable, undecoded : int
        Rows whose person is neither text nor a number, or text in another encoding; private.
    """

    def __init__(self, disk: Disk, encoding: Encoding) -> None:
        super().__init__(disk, encoding)
        schema = encoding.schema
        assert schema.person is not None
        assert schema.rows_per_person is not None
        disk.require([schema.person])
        self._pieces = disk.pieces()
        persons = Persons(schema.missing)
        numbers, sizes = [np.zeros(0, dtype=np.int64)], []
        for piece in self._pieces:
            read = disk.read(piece, [schema.person], frozenset(), self.batch_rows)
            found = [persons.numbers(columns[schema.person].cells()) for columns in read]
            numbers += found
            sizes.append(sum(map(len, found)))
        self.unreadable, self.undecoded = persons.unreadable, persons.undecoded
        self._whose, self._ends = np.concatenate(numbers), np.cumsum(sizes)[:-1]
        self._count(times(self._whose, schema.rows_per_person))
        self.persons = persons.persons

    def _count(self, often: npt.NDArray[np.int32]) -> None:
        """Settle how often each row counts."""
        self._times = np.split(often, self._ends)
        self.n = int(often.sum(dtype=np.int64))

    def parted(self, held: npt.NDArray[np.bool_]) -> tuple[PersonSource, PersonSource]:
        """Return the rows of the persons that are not held out, and those of the persons that are."""
        often, fitted, apart = np.concatenate(self._times), copy(self), copy(self)
        fitted._count(np.where(held[self._whose], 0, often))
        apart._count(np.where(held[self._whose], often, 0))
        return fitted, apart

    def every_row(self) -> EncodedSource:
        """Return the table row by row, whoever's they are."""
        return EncodedSource(self.disk, self.encoding)

    def parts(self) -> Sequence[int]:
        """Return numbers of the pieces of the table."""
        return range(len(self._pieces))

    def read(self, part: int) -> Iterator[Batch]:
        """Yield the rows of a piece that count, those that count equally often together."""
        place = 0
        for columns in self.disk.read(self._pieces[part], self.names, self.numeric, self.batch_rows):
            often = self._times[part][place : place + len(columns)]
            place += len(columns)
            for count in np.unique(often[often > 0]).tolist():
                made = self.made(columns.taken(np.flatnonzero(often == count)))
                assert made.cells is not None
                counts = np.full(len(made), float(count))
                first = True
                for batch in digits(made.x, made.y, counts):
                    yield replace(batch, cells=made.cells * (count if first else 0))
                    first = False


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
        What :func:`expost.table.files.open_disk` takes, unless its rows come but once.
    target, columns
        Names of the target column and of feature columns, by default all others.
    engine : None, "local", "dask" or an engine, default=None
        Who carries out passes over the rows.
    **options
        How CSV files are written; see :func:`expost.table.files.open_disk`.

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
        if disk.once:
            raise ValueError(
                f"{disk.files[0].path} gives its rows once, and these are read several times; pass a function without "
                f"arguments that hands them out anew, or read them into a frame for fit"
            )
        first = disk.files[0]
        available = first.names
        if not first.named:  # names are those of a row, which must not decide anything
            if columns is None:
                raise ValueError(f"pass columns= with the columns to use: {first.path} has no header that lists them")
            available = [*columns, target]
        self.column_names = tuple(chosen_columns(available, target, columns, first.path))
        disk.require([*self.column_names, target])
        n = disk.n if disk.n is not None else disk.count()
        if n == 0:
            raise ValueError(f"{path} has no rows")
        self.X = ColumnsOnDisk(disk, n, self.column_names, target, engine)
        self.y = TargetOnDisk(n, _dtype(disk, target), target)

    def __repr__(self) -> str:
        return f"TableOnDisk(n={self.X.n}, column_names={list(self.column_names)})"


def _dtype(disk: Disk, target: str) -> np.dtype[Any]:
    first, found = disk.files[0], object
    types = first.types
    if types is not None:
        with suppress(NotImplementedError):
            found = types[places_of(first.names, [target])[target]].to_pandas_dtype()
    return np.dtype(found)
