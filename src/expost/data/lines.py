"""A CSV file of which every line is a row, whatever stands in it.

An ordinary reader lets one row speak for others: a quote that is not closed swallows the lines after it, a row with a
cell too few or a byte that is no UTF-8 makes the whole file unreadable, an empty line disappears, and the type of a
column is guessed from all of its cells. Here the header is public and each line after it is one row, taken apart by
itself into text. So a value cannot contain a line break.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CsvLines"]


class CsvLines:
    """The lines of a CSV file.

    Parameters
    ----------
    path : Path
        A file ending in ``.csv``, or compressed in ``.gz``.

    Attributes
    ----------
    names : list of str
        The cells of the first line.

    Raises
    ------
    OSError
        If the file cannot be read or unpacked.
    ValueError
        If it has no first line, or one with a carriage return in it.

    Notes
    -----
    Lines end in a line feed, before which there may be a carriage return. Where the file ends in one, no line follows;
    everywhere else one does, and an empty line is a row of missing cells. Quotes are as usual, and end with the line if
    they are not closed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_bytes(b'age,city\\n31,"Bern, BE"\\n47\\n"52,Oslo\\n\\n\\xff,Rome,7\\n')
    ...     lines = CsvLines(file)
    >>> lines.names
    ['age', 'city']
    >>> lines.cells(slice(None), [1, 0])
    [['Bern, BE', '31'], [None, '47'], [None, '52,Oslo'], [None, ''], ['Rome', '�']]
    """

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        if path.name.lower().endswith(".gz"):
            data = _unpacked(data)
        header, *self._lines = (line.removesuffix(b"\r") for line in data.split(b"\n"))
        if self._lines and not self._lines[-1]:
            self._lines.pop()
        if not header or b"\r" in header:
            # Old files end lines in carriage returns alone: all of it would be taken for the header.
            raise ValueError("the first line must hold the names of the columns and end in a line feed")
        self.names = _cells(header.removeprefix(b"\xef\xbb\xbf"))  # the mark some programs put before UTF-8

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"CsvLines(n={len(self)}, names={self.names})"

    def cells(self, part: slice, columns: Sequence[int]) -> list[list[str | None]]:
        """Return the cells of some columns, row by row.

        A line that is too short lacks its last cells (None), further cells of a longer one are left out, and bytes
        that are not UTF-8 become U+FFFD.
        """
        rows = []
        for line in self._lines[part]:
            cells = _cells(line)
            rows.append([cells[j] if j < len(cells) else None for j in columns])
        return rows


def _unpacked(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error):
        pass
    raise OSError("the file cannot be unpacked")


def _cells(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace")
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader([text]))  # a reader of its own, so that none remembers another's line
    except csv.Error:  # a cell of more than 131,072 letters, or a carriage return in one
        return []
