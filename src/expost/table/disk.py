"""Tables on disk, read in pieces: files of CSV or Parquet, folders of them, and patterns such as ``2024-*.parquet``.

What is public about a table is settled when it is opened: which files, their columns, how they are cut into parts. Rows
are read part by part, a batch at a time, columns that nobody asked for not at all, so that memory depends neither on
the size of a file nor on that of its row groups. A part is described by public values only and may be read anywhere,
also on another machine that sees the same files.

Files held open while they are read again and again: one that is moved away does not stop a search.

A CSV file in parts: runs of whole lines, each read by itself.

Every line is one row, whatever stands in it (`expost.table.csv_lines`), so a file may be cut at any line feed. A line
belongs to the part in which it begins. Lines are taken apart one by one where they have to be. Most blocks are plain:
quotes around whole cells if at all, no stray carriage return, as many cells in every line, and numbers where numbers
are expected. Such a block is given to Arrow's reader, which is faster by far. It is used only if what it read is what
cell by cell would have read: numbers in full precision, finite or empty, and text as it stands. Which way a block took
does not show in its rows.

A Parquet file in parts: row groups, read a batch at a time.
"""

from __future__ import annotations

import gzip
import os
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from expost.exceptions import UnreadableFile
from expost.table.columns import Column, CommaColumn, DictionaryColumn, ParsedColumn
from expost.table.csv_lines import LONGEST_LINE, CsvHeader, check_options, read_as_it_stands, whole_lines
from expost.table.files import NamedColumns, found_files, is_parquet, open_named, places_of

_MOST = 64  # files held open; others are opened anew for each pass
_LOCK = threading.Lock()
_COUNT = [0]


class Held:
    """A file, opened when it is first read and the same to the end: a change in between is noticed.

    It travels to other machines as its path, and is opened there.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None
        self._stamp = self._look()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            with _LOCK:
                _COUNT[0] -= 1

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_stamp": self._stamp, "_file": None}

    def _look(self) -> tuple[int, int]:
        try:
            state = os.stat(self.path)
        except OSError:
            raise UnreadableFile(f"there is no file {self.path}, or it is out of reach") from None
        return state.st_size, state.st_mtime_ns

    def opened(self) -> Any:
        """Return the file, open for reading at any place, from any thread."""
        with _LOCK:
            if self._file is not None:
                file = self._file
                if self.path.exists() and self._look() != self._stamp:
                    raise UnreadableFile(f"{self.path} has changed since it was first looked at")
            else:
                if self._look() != self._stamp:
                    raise UnreadableFile(f"{self.path} has changed since it was first looked at")
                file = _open(self.path)
                if _COUNT[0] < _MOST:
                    self._file = file
                    _COUNT[0] += 1
        return file


def _open(path: Path) -> Any:
    try:
        return pa.OSFile(str(path), "rb")
    except OSError:
        pass
    raise UnreadableFile(f"{path} could not be opened")


_CSV_PART = 1 << 23  # bytes
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
        As in :func:`~expost.table.files.read_columns` and :class:`~expost.table.csv_lines.CsvLines`.
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
        part_bytes: int = _CSV_PART,
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

    def places(self, names: Sequence[str]) -> dict[str, int]:
        """Say where columns are."""
        return places_of(self.names, names)

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
        places = self.places(names)
        wanted = [self.names[j] for j in places.values()]
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
