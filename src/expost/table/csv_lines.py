"""A CSV file of which every line is a row, whatever stands in it.

An ordinary reader lets one row speak for others: a quote that is not closed swallows the lines after it, a row with a
cell too few or a byte that is no UTF-8 makes the whole file unreadable, an empty line disappears, and the type of a
column is guessed from all of its cells. Here the header is public and each line after it is one row, taken apart by
itself into text. So a value cannot contain a line break. A line of more than 4 MB (2²² bytes) is a row whose cells
cannot be read, whatever stands in it, and no more of it is held in memory than shows that; as first line it is an
error.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "LONGEST_LINE",
    "CsvHeader",
    "CsvLines",
    "LineCells",
    "check_options",
    "read_as_it_stands",
    "whole_lines",
]

LONGEST_LINE = 1 << 22  # bytes, its end not counted
_TOO_LONG = "(a line that is too long)"  # what stands for each of its cells
_CHUNK = 1 << 23

_SEPARATORS = (",", ";", "\t")
_ASCII = bytes(range(128))
_BY_BYTES = ("iso8859-", "cp125")  # encodings in which each byte is a letter, as their names begin


class LineCells:
    """How a line is taken apart into cells; public.

    Parameters
    ----------
    separator, encoding, strip
        As in :class:`CsvLines`; the separator is known.
    """

    def __init__(self, separator: str, encoding: str, strip: bool) -> None:
        self.separator, self.encoding, self.strip = separator, encoding, strip

    def cells(self, lines: Iterable[bytes], columns: Sequence[int]) -> list[list[str | None]]:
        """Return the cells of some columns, row by row.

        A line that is too short lacks its last cells (None), further cells of a longer one are left out, and bytes
        that are not in the encoding become U+FFFD. Cells of one that is too long for any are text that says so.
        """
        return self.apart(lines, columns, 0)[0]

    def apart(
        self, lines: Iterable[bytes], columns: Sequence[int], many: int
    ) -> tuple[list[list[str | None]], list[int]]:
        """Return the cells of some columns, and which lines have another number of cells than ``many``, from 0."""
        rows: list[list[str | None]] = []
        uneven = []
        for i, line in enumerate(lines):
            if len(line) > LONGEST_LINE:
                rows.append([_TOO_LONG] * len(columns))
                uneven.append(i)
                continue
            cells = self.split(line)
            rows.append([cells[j] if j < len(cells) else None for j in columns])
            if len(cells) != many:
                uneven.append(i)
        return rows, uneven

    def split(self, line: bytes) -> list[str]:
        """Return all cells of a line."""
        text = line.decode(self.encoding, "replace")
        if '"' not in text:
            cells = text.split(self.separator)
        else:
            try:
                # a reader of its own, so that none remembers another's line
                cells = next(csv.reader([text], delimiter=self.separator, skipinitialspace=self.strip))
            except csv.Error:  # a cell of more than 131,072 letters, or a carriage return in one
                return []
        return [cell.strip() for cell in cells] if self.strip else cells


class CsvHeader:
    """The first line of a CSV file, which is public.

    Parameters
    ----------
    line : bytes
        As it stands in the file, its end included.
    separator, encoding, strip
        As in :class:`CsvLines`.

    Attributes
    ----------
    names : list of str
        Its cells.
    reader : LineCells
        How other lines are read.
    """

    def __init__(self, line: bytes, *, separator: str, encoding: str, strip: bool) -> None:
        header = line.removesuffix(b"\n").removesuffix(b"\r")
        if len(header) > LONGEST_LINE:
            raise ValueError(
                f"the first line has more than {LONGEST_LINE:,} bytes; it must hold the names of the columns"
            )
        if not header or b"\r" in header:
            # Old files end lines in carriage returns alone: all of it would be taken for the header.
            raise ValueError("the first line must hold the names of the columns and end in a line feed")
        header = header.removeprefix(b"\xef\xbb\xbf")  # the mark some programs put before UTF-8
        first = _decoded(header, encoding)
        self.reader = LineCells(separator or _recognised(first), encoding, strip)
        self.names = self.reader.split(header)


class CsvLines:
    """The lines of a CSV file.

    Parameters
    ----------
    path : Path
        A file ending in ``.csv``, or compressed in ``.gz``.
    separator : str, default=","
        What stands between cells, one letter. ``""`` means whichever of comma, semicolon and tab the first line has.
    encoding : str, default="utf-8"
        Any in which ASCII is ASCII, so that lines can be told apart before they are read.
    strip : bool, default=False
        Whether spaces around cells and names are left out, also before a quote.
    header_only : bool, default=False
        Read the first line alone, as if no other followed.

    Attributes
    ----------
    names : list of str
        The cells of the first line.
    separator : str
        What stands between cells.

    Raises
    ------
    OSError
        If the file cannot be read or unpacked.
    ValueError
        If it has no first line, one with a carriage return in it, one that the encoding cannot read, or one that does
        not tell the separator; or if an option is none.

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

    def __init__(
        self,
        path: Path,
        *,
        separator: str = ",",
        encoding: str = "utf-8",
        strip: bool = False,
        header_only: bool = False,
    ) -> None:
        check_options(separator, encoding)
        data = _bytes_of(path, header_only=header_only)
        header, *self._lines = (line.removesuffix(b"\r") for line in data.split(b"\n"))
        if self._lines and not self._lines[-1]:
            self._lines.pop()
        first = CsvHeader(header, separator=separator, encoding=encoding, strip=strip)
        self._reader, self.names, self.separator = first.reader, first.names, first.reader.separator

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"CsvLines(n={len(self)}, names={self.names})"

    def cells(self, part: slice, columns: Sequence[int]) -> list[list[str | None]]:
        """Return the cells of some columns, row by row; see :meth:`LineCells.cells`."""
        return self._reader.cells(self._lines[part], columns)


def _bytes_of(path: Path, *, header_only: bool) -> bytes:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as stream:
            return stream.readline(LONGEST_LINE + 2) if header_only else b"".join(whole_lines(stream, _CHUNK))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        pass
    raise OSError("the file cannot be unpacked")


def whole_lines(stream: Any, size: int) -> Iterator[bytes]:
    """Yield the bytes of a stream, read so many at a time, in whole lines; of one that is too long only a part.

    Examples
    --------
    >>> import io
    >>> list(whole_lines(io.BytesIO(b"one\\ntwo\\nthree"), 6))
    [b'one\\n', b'two\\n', b'three']
    """
    rest = b""
    while chunk := stream.read(size):
        rest += chunk
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]
        rest = rest[cut : cut + LONGEST_LINE + 2]  # which shows, a carriage return aside, that it is too long
    if rest:
        yield rest


def check_options(separator: str, encoding: str) -> None:
    """Complain about an option that is none."""
    if len(separator) > 1 or separator in ('"', "\n", "\r", "\0"):
        raise ValueError("separator must be one letter, such as a semicolon or a tab, and no quote or line break")
    try:
        plain = _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except (LookupError, UnicodeError):
        plain = False
    if not plain:
        raise ValueError(
            f"encoding {encoding!r} is unknown or not one in which ASCII is ASCII, such as utf-8 or latin-1; "
            "save the file as UTF-8"
        )


def read_as_it_stands(block: bytes, encoding: str) -> bool:
    """Whether bytes are, without decoding them, what decoding them would give: UTF-8, or plain ASCII.

    Not all that is ASCII to look at is plain: some encodings change what follows by an escape.

    Examples
    --------
    >>> read_as_it_stands(b"a,b", "latin-1"), read_as_it_stands(b"a,b", "iso2022_jp")
    (True, False)
    """
    name = codecs.lookup(encoding).name
    return name == "utf-8" or (block.isascii() and (name == "ascii" or name.startswith(_BY_BYTES)))


def _decoded(header: bytes, encoding: str) -> str:
    """Decode the first line, which is public and has to be right."""
    if b"\0" in header or header.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("the first line is not text in which ASCII is ASCII (UTF-16?); save the file as UTF-8")
    try:
        return header.decode(encoding)
    except UnicodeDecodeError:
        pass
    raise ValueError(f"the first line is not in {encoding}; state the encoding, for example latin-1")


def _recognised(header: str) -> str:
    """Return the separator that the first line has, quoted names aside."""
    bare = re.sub(r'"[^"]*"', "", header)
    found = [mark for mark in _SEPARATORS if mark in bare]
    if len(found) > 1:
        raise ValueError("the first line has more than one of comma, semicolon and tab; state the separator")
    return found[0] if found else ","
