"""Tables on disk, read in pieces: files of CSV or Parquet, folders of them, and patterns such as ``2024-*.parquet``.

What is public about a table is settled when it is opened: which files, their columns, how they are cut into parts. Rows
are read part by part, a batch at a time, columns that nobody asked for not at all, so that memory depends neither on
the size of a file nor on that of its row groups. A part is described by public values only and may be read anywhere,
also on another machine that sees the same files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from expost.data.csv_blocks import CsvFile
from expost.data.found import found_files, is_parquet
from expost.data.named import NamedColumns, places_of
from expost.data.parquet_parts import ParquetTable

__all__ = ["Disk", "is_on_disk", "open_disk"]


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
        A file, a folder or a pattern, as in :func:`~expost.data.found.found_files`.
    **options
        How CSV files are written: ``separator``, ``decimal``, ``encoding``, as for
        :func:`~expost.data.named.read_columns`, and ``strip``.

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
