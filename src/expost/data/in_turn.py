"""Rows to predict for, of a table on disk: some at a time, in the order of the files and their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from expost.data.disk import open_disk
from expost.data.named import NamedColumns
from expost.data.streamed import usual_rows
from expost.exceptions import InvalidRows

__all__ = ["InTurn"]


class InTurn:
    """Columns of a table, a few rows at a time; knows where the present ones stand.

    Parameters
    ----------
    table : path or Disk
        See :func:`~expost.data.disk.open_disk`.
    names : sequence of str
        Which columns.
    numeric : frozenset of str
        Those that are likely to hold numbers.
    width : int
        How many cells a row has, or becomes.
    whole_lines : bool
        Whether a line of a CSV file with more or fewer cells than the first is an error, which names it. About private
        rows it would tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = pathlib.Path(folder, name).write_text("age\\n31\\n47\\n")
    ...     rows = InTurn(folder, ["age"], frozenset(), 1, whole_lines=True)
    ...     [(len(columns), rows.named(1).replace(folder, "")) for columns in rows]
    [(2, 'row 2 (counting from 1) of /a.csv'), (2, 'row 2 (counting from 1) of /b.csv')]
    """

    def __init__(
        self, table: Any, names: Sequence[str], numeric: frozenset[str], width: int, *, whole_lines: bool
    ) -> None:
        self._disk, self._names, self._numeric = open_disk(table), list(names), numeric
        self._disk.require(self._names)
        self._rows, self._whole_lines = usual_rows(max(1, width)), whole_lines
        self._file = self._before = 0

    def __iter__(self) -> Iterator[NamedColumns]:
        self._file = self._before = 0
        for piece in self._disk.pieces():
            if piece.file != self._file:
                self._file, self._before = piece.file, 0
            for columns in self._disk.read(piece, self._names, self._numeric, self._rows):
                if self._whole_lines and len(columns.uneven):
                    self._complain(columns.uneven[0])
                for start in range(0, len(columns), self._rows):
                    stop = min(start + self._rows, len(columns))
                    # a piece of short lines has many rows, and each may become a long one
                    yield columns if stop - start == len(columns) else columns.taken(np.arange(start, stop))
                    self._before += stop - start

    def named(self, row: int) -> str:
        """Name one of the present rows, counted from 0: where it stands in its file."""
        said = f"row {self._before + row + 1} (counting from 1)"
        return said if len(self._disk.files) == 1 else f"{said} of {self._disk.files[self._file].path}"

    def _complain(self, row: int) -> None:
        place = self._before + row
        raise InvalidRows(
            f"row {place + 1} (line {place + 2}) of {self._disk.files[self._file].path} has not as many cells as the "
            f'first line has names; mend it, or pass on_invalid="clip" to treat cells it lacks as missing'
        )
