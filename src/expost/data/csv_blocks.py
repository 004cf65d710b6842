"""A CSV file in parts: runs of whole lines, each read by itself.

Every line is one row, whatever stands in it (`expost.data.lines`), so a file may be cut at any line feed. A line
belongs to the part in which it begins. Lines are taken apart one by one where they have to be. Most blocks are plain:
quotes around whole cells if at all, no stray carriage return, as many cells in every line, and numbers where numbers
are expected. Such a block is given to Arrow's reader, which is faster by far. It is used only if what it read is what
cell by cell would have read: numbers in full precision, finite or empty, and text as it stands. Which way a block took
does not show in its rows.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from expost.data.columns import Column
from expost.data.held import Held
from expost.data.lines import LONGEST_LINE, CsvHeader, check_options, read_as_it_stands, whole_lines
from expost.data.named import NamedColumns, places_of
from expost.data.text_columns import CommaColumn, DictionaryColumn, ParsedColumn
from expost.exceptions import UnreadableFile

__all__ = ["CsvFile"]

_PART = 1 << 23  # bytes
_USUAL = 1 << 16  # bytes read beyond a part, which as a rule end its last line
_SAMPLE = 1 << 16  # bytes that lines are guessed by
_BLOCK = 1 << 20  # bytes that the reader takes apart at a time
_FEED, _RETURN, _QUOTE = 10, 13, 34  # as bytes
_LONG = 1 << 17  # bytes of a line with quotes, beyond which a reader line by line gives up
_MARK = b"\xef\xbb\xbf"  # which Arrow's reader leaves out at the start of what it is given, and nowhere else


class CsvFile:
    """A CSV file whose rows are not in memory.

    Parameters
    ----------
    path : Path
    separator, decimal, encoding, strip
        As in :func:`~expost.data.named.read_columns` and :class:`~expost.data.lines.CsvLines`.
    """

    n = None

    def __init__(
        self,
        path: Path,
        *,
        separator: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
        strip: bool = True,
        part_bytes: int = _PART,
    ) -> None:
        self.path, self._decimal, self._part_bytes = path, decimal, part_bytes
        self._packed = path.name.lower().endswith(".gz")
        self._held = Held(path)
        try:
            check_options(separator or "", encoding)
            first = self._first_line()
            header = CsvHeader(first, separator=separator or "", encoding=encoding, strip=strip)
        except UnreadableFile:
            raise
        except (OSError, ValueError) as error:  # which speak of the first line and of options alone
            raise ValueError(f"{path} could not be read as CSV: {error}") from None
        self._start, self._reader, self.names = len(first), header.reader, header.names
        self._end = self._held.opened().size()
        self.guess = self._guess()

    def __repr__(self) -> str:
        return f"CsvFile({self.path})"

    def places(self, names: Sequence[str]) -> dict[str, int]:
        """Say where columns are."""
        return places_of(self.names, names)

    def parts(self) -> list[tuple[int, int]]:
        """Return runs of bytes, between the first line and the end; a packed file is one."""
        if self._packed:
            return [(0, 0)]
        size = self._part_bytes
        return [(start, min(start + size, self._end)) for start in range(self._start, self._end, size)]

    def read(
        self, part: tuple[int, int], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of the lines that begin in a part."""
        places = self.places(names)
        for block in self._unpacked() if self._packed else self._lines(*part):
            if block:
                yield _plain(block, places, numeric, self) or self._one_by_one(block, places)

    def count(self) -> int:
        """Count the lines after the first."""
        if self._packed:
            return sum(block.count(b"\n") + (not block.endswith(b"\n")) for block in self._unpacked() if block)
        file, size = self._held.opened(), 1 << 22
        total, last = 0, b"\n"
        for start in range(self._start, self._end, size):
            block = self._at(file, min(size, self._end - start), start)
            total, last = total + block.count(b"\n"), block[-1:]
        return total + (last != b"\n")

    def _first_line(self) -> bytes:
        if self._packed:
            try:
                with gzip.open(self.path, "rb") as stream:
                    return bytes(stream.readline(LONGEST_LINE + 2))
            except (EOFError, zlib.error, gzip.BadGzipFile):
                pass
            raise OSError("the file cannot be unpacked")
        file, found = self._held.opened(), b""
        while b"\n" not in found and len(found) <= LONGEST_LINE + 1:
            more = file.read_at(_USUAL, len(found))
            if not more:
                return found
            found += more
        return found[: found.index(b"\n") + 1] if b"\n" in found else found

    def _guess(self) -> int:
        if self._packed:
            return int(self._end) // 8
        sample = self._held.opened().read_at(_SAMPLE, self._start)
        length = len(sample) / max(1, sample.count(b"\n"))
        return int((self._end - self._start) / max(1.0, length))

    def _lines(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the lines that begin from ``start`` on and before ``stop``; as they stand, but for a last too long."""
        file = self._held.opened()
        # a byte before, which says whether a line begins at start, and as a rule the end of the last line
        data, within = self._at(file, stop - start + 1 + _USUAL, start - 1), stop - start
        first = data.find(b"\n", 0, within)
        if first < 0:
            return
        last = data.find(b"\n", within)
        if last < 0:  # enough to end a line that is not too long, or to show that it is
            data += self._at(file, LONGEST_LINE + 2, start - 1 + len(data))
            last = data.find(b"\n", within)
        yield data[first + 1 : last + 1 if last >= 0 else len(data)]

    def _at(self, file: Any, size: int, place: int) -> bytes:
        try:
            return bytes(file.read_at(size, place))
        except (OSError, pa.ArrowException):
            pass
        raise UnreadableFile(f"{self.path} could not be read at byte {place}")

    def _unpacked(self) -> Iterator[bytes]:
        self._held.opened()  # complains if it has changed
        first = True
        try:
            with gzip.open(self.path, "rb") as stream:
                for block in whole_lines(stream, self._part_bytes):
                    yield block.partition(b"\n")[2] if first else block
                    first = False
            return
        except (OSError, EOFError, zlib.error):
            pass
        raise UnreadableFile(f"{self.path} cannot be unpacked")

    def _one_by_one(self, block: bytes, places: dict[str, int]) -> NamedColumns:
        lines = [line.removesuffix(b"\r") for line in block.split(b"\n")]
        if not lines[-1]:
            lines.pop()
        rows, uneven = self._reader.apart(lines, list(places.values()), len(self.names))
        made = CommaColumn if self._decimal == "," else Column
        columns = zip(*rows, strict=True)
        found = {name: made(list(cells)) for name, cells in zip(places, columns, strict=True)}
        return NamedColumns(found, len(lines), uneven)


def _plain(block: bytes, places: dict[str, int], numeric: frozenset[str], file: CsvFile) -> NamedColumns | None:
    """Return the columns of a plain block; None if it is not one."""
    reader = file._reader
    if block.startswith(_MARK) or not read_as_it_stands(block, reader.encoding):
        return None
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    raw = np.frombuffer(block, np.uint8)
    feeds = np.flatnonzero(raw == _FEED)
    quoted = b'"' in block
    if quoted and not _around_cells(raw, feeds, ord(reader.separator)):
        return None
    lengths = np.diff(feeds, prepend=-1, append=raw.size)
    if (lengths[:-1] == 1).any():
        return None  # an empty line has one empty cell and lacks the others
    if lengths.max() > LONGEST_LINE:
        return None
    if b"\r" in block and (block.startswith(b"\r\n") or b"\n\r\n" in block):
        return None
    names = [str(j) for j in range(len(file.names))]
    kinds = {str(j): pa.float64() if name in numeric else pa.string() for name, j in places.items()}
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(
                delimiter=reader.separator,
                quote_char='"' if quoted else False,
                double_quote=False,
                ignore_empty_lines=False,
                newlines_in_values=False,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=[""],
                strings_can_be_null=False,
                decimal_point=file._decimal,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    lines = len(feeds) + (not block.endswith(b"\n"))
    if table.num_rows != lines:
        return None
    found = {name: _column(table.column(str(j)), name in numeric) for name, j in places.items()}
    columns = {name: column for name, column in found.items() if column is not None}
    return NamedColumns(columns, lines) if len(columns) == len(found) else None


def _around_cells(raw: npt.NDArray[np.uint8], feeds: npt.NDArray[np.intp], separator: int) -> bool:
    """Whether quotes stand in pairs around whole cells, none within one: then all readers agree about them."""
    quotes = np.flatnonzero(raw == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    if quotes.size % 2 or np.diff(feeds, prepend=-1, append=raw.size).max() > _LONG:
        return False
    if (np.searchsorted(feeds, opening) != np.searchsorted(feeds, closing)).any():
        return False  # a line feed ends a line, quoted or not
    end = np.array([_FEED], np.uint8)
    framed = np.concatenate([end, raw, end])  # so that each has a neighbour on both sides; bytes, as raw is large
    before, after = framed[opening], framed[closing + 2]
    return bool(np.isin(before, (separator, _FEED)).all() and np.isin(after, (separator, _FEED, _RETURN)).all())


def _column(read: Any, number: bool) -> Column | None:
    if not number:
        coded = read.combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        return DictionaryColumn(coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False))
    empty = read.is_null().to_numpy() if read.null_count else None
    values = np.asarray((pc.fill_null(read, 0.0) if read.null_count else read).to_numpy())
    # what is not finite was written in letters, which are read one by one
    return ParsedColumn(values, empty) if np.isfinite(values).all() else None
