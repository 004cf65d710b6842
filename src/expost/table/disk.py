"""Tables on disk, read in pieces: files of CSV or Parquet, folders of them, and patterns such as ``2024-*.parquet``.

What is public about a table is settled when it is opened: which files, their columns, how they are cut into parts. Rows
are read part by part, a batch at a time, columns that nobody asked for not at all, so that memory depends neither on
the size of a file nor on that of its row groups. A part is described by public values only and may be read anywhere,
also on another machine that sees the same files.

A Parquet file is read a row group at a time, small ones together; a CSV file in runs of lines
(:mod:`expost.table.csv_lines`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from expost.exceptions import UnreadableFile
from expost.table.columns import NamedColumns, places_of
from expost.table.csv_lines import CsvFile, Held
from expost.table.files import found_files, is_parquet, open_named

_PARQUET_PART = 1 << 17  # rows: small row groups are read together
_BUFFER = 1 << 17  # bytes of each column that are read at a time, however large its row group is


class _Last(threading.local):
    """What the file that a thread has read last says of its row groups: of one file, however many a table has."""

    metadata: Any = None
    of: Any = staticmethod(lambda: None)


_LAST = _Last()


class ParquetTable:
    """A Parquet file whose rows are not in memory.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path, self._held = path, Held(path)
        try:
            metadata = pa.parquet.read_metadata(self._held.opened())
        except (pa.ArrowException, OSError, ValueError):
            metadata = None
        if metadata is None:  # raised out here, because the reader's own message may quote cells
            raise ValueError(f"{path} could not be read as Parquet")
        self._sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        self.n = self.guess = metadata.num_rows
        schema = metadata.schema.to_arrow_schema()
        self.names: list[str] = list(schema.names)
        self.types = list(schema.types)
        self._texts = [field.name for field in schema if pa.types.is_string(field.type)]

    def __repr__(self) -> str:
        return f"ParquetTable({self.path})"

    def parts(self) -> list[tuple[int, ...]]:
        """Return runs of row groups."""
        runs: list[tuple[int, ...]] = []
        held = 0
        for k, size in enumerate(self._sizes):
            if not runs or held + size > _PARQUET_PART:
                runs.append(())
                held = 0
            runs[-1] += (k,)
            held += size
        return runs

    def _metadata(self) -> Any:
        """Return what the file says of its row groups, which is read once by each thread and not for every part."""
        if _LAST.of() is not self:
            _LAST.metadata, _LAST.of = pa.parquet.read_metadata(self._held.opened()), weakref.ref(self)
        return _LAST.metadata

    def read(
        self, part: tuple[int, ...], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of some row groups."""
        wanted = [self.names[j] for j in places_of(self.names, names).values()]
        batches = iter(())
        failed = False
        try:
            file = pa.parquet.ParquetFile(
                self._held.opened(),
                metadata=self._metadata(),
                read_dictionary=[name for name in wanted if name in self._texts],  # each text once, as it is written
                pre_buffer=False,
                buffer_size=_BUFFER,
            )
            batches = file.iter_batches(batch_size=rows, row_groups=list(part), columns=wanted, use_threads=False)
        except UnreadableFile:
            raise
        except (pa.ArrowException, OSError, ValueError):
            failed = True
        while not failed:
            batch: Any = None
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, ValueError):
                failed = True
            if batch is None:
                break
            yield open_named(batch, names)
        if failed:  # out here: the reader's own message may quote cells and would ride along as the context
            groups = ", ".join(map(str, part))
            raise UnreadableFile(f"{self.path} could not be read: row group(s) {groups} are damaged or out of reach")


@dataclass(frozen=True)
class Piece:
    """What can be read by itself: a number of a file, and which part of it."""

    file: int
    part: Any


class Disk:
    """Files that together are one table.

    Parameters
    ----------
    files : sequence of ParquetTable and CsvFile
        In the order of their rows.

    Attributes
    ----------
    n : int or None
        Number of rows, if files state it.
    guess : int
        Number of rows, or a guess of it, for whoever waits.
    """

    def __init__(self, files: Sequence[ParquetTable | CsvFile]) -> None:
        self.files = list(files)
        known = [file.n for file in self.files]
        self.n = None if None in known else sum(n for n in known if n is not None)
        self.guess = sum(file.guess for file in self.files)

    def __repr__(self) -> str:
        return f"Disk({len(self.files)} file(s))"

    def pieces(self) -> list[Piece]:
        """Return what can be read by itself, in the order of rows."""
        return [Piece(k, part) for k, file in enumerate(self.files) for part in file.parts()]

    def count(self) -> int:
        """Count the rows; of a CSV file that is its lines."""
        return sum(file.count() if isinstance(file, CsvFile) else file.n for file in self.files)

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that a file lacks or has twice, and name the first such file if there are several."""
        for file in self.files:
            places_of(file.names, names, None if len(self.files) == 1 else file.path)

    def read(self, piece: Piece, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        """Yield columns, at most about so many rows at a time; ``numeric`` ones are likely to hold numbers."""
        return self.files[piece.file].read(piece.part, names, numeric, rows)


def is_on_disk(table: Any) -> bool:
    """Whether a table is stated by where it is."""
    return isinstance(table, str | os.PathLike | Disk)


def open_disk(path: str | os.PathLike[str] | Disk, **options: Any) -> Disk:
    """Open a file, a folder or a pattern.

    Parameters
    ----------
    path : str or path
        A file, a folder or a pattern, as in :func:`~expost.table.files.found_files`.
    **options
        How CSV files are written: ``separator``, ``decimal``, ``encoding``, as for
        :func:`~expost.table.files.read_columns`, and ``strip``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for month in ("01", "02"):
    ...         _ = Path(folder, f"{month}.csv").write_text("age,city\\n31,Bern\\n")
    ...     disk = open_disk(Path(folder, "*.csv"))
    ...     [columns for piece in disk.pieces() for columns in disk.read(piece, ["age"], frozenset(), 100)]
    [NamedColumns(n=1, names=['age']), NamedColumns(n=1, names=['age'])]
    """
    if isinstance(path, Disk):
        return path
    decimal = options.get("decimal", ".")
    if decimal not in (".", ","):
        raise ValueError('decimal must be "." or ","')
    files = found_files(path)
    return Disk([ParquetTable(file) if is_parquet(file) else CsvFile(file, **options) for file in files])
