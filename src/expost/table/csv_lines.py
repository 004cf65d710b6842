"""A CSV file of which every line is a row, whatever stands in it, read in parts: runs of whole lines.

An ordinary reader lets one row speak for others: a quote that is not closed swallows the lines after it, a row with a
cell too few or a byte that is no UTF-8 makes the whole file unreadable, an empty line disappears, and the type of a
column is guessed from all of its cells. Here the header is public and each line after it is one row, taken apart by
itself into text. So a value cannot contain a line break. A line of more than 4 MB (2²² bytes) is a row whose cells
cannot be read, whatever stands in it, and no more of it is held in memory than shows that; as first line it is an
error.

So a file may be cut at any line feed, and a line belongs to the part in which it begins. Most blocks are plain: quotes
around whole cells if at all, no stray carriage return, as many cells in every line, and numbers where numbers are
expected. Such a block is given to Arrow's reader, which is faster by far. It is used only if what it read is what cell
by cell would have read: numbers in full precision, finite or empty, and text as it stands. Which way a block took does
not show in its rows. A file is held open while it is read again and again: one that is moved away does not stop a
search, and one that is changed is noticed.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from expost.exceptions import UnreadableFile
from expost.table.columns import Column, CommaColumn, FirstLine, NamedColumns, ParsedColumn, places_of
from expost.table.entrance import arrow_column

LONGEST_LINE = 1 << 22  # bytes, its end not counted
_TOO_LONG = "(a line that is too long)"  # what stands for each of its cells

_SEPARATORS = (",", ";", "\t")
_ASCII = bytes(range(128)) + rb" \x41\u0041"  # which some take for a letter
_BY_BYTES = ("iso8859-", "cp125")  # encodings in which each byte is a letter, as their names begin


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


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines of a block, without their ends."""
    return block.removesuffix(b"\n").split(b"\n")


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


_MOST = 64  # files held open; others are opened anew for each pass
_LOCK = threading.Lock()


class Held:
    """A file, opened when it is first read and the same to the end: a change in between is noticed.

    It is noticed by its size and its times: that of its content, which who changes it can set back, and that of its
    entry in the file system, which nobody can. It travels to other machines as its path, and is opened there, where it
    may be a copy, whose entry has a time of its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None
        self._stamp = self._look()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_stamp": self._stamp[:2], "_file": None}

    def _look(self) -> tuple[int, ...]:
        try:
            state = os.stat(self.path)
        except OSError:
            raise UnreadableFile(f"there is no file {self.path}, or it is out of reach") from None
        return state.st_size, state.st_mtime_ns, state.st_ctime_ns

    def opened(self) -> Any:
        """Return the file, open for reading at any place, from any thread."""
        with _LOCK:
            # one that is held open may have been moved away meanwhile
            if (self._file is None or self.path.exists()) and self._look()[: len(self._stamp)] != self._stamp:
                raise UnreadableFile(f"{self.path} has changed since it was first looked at")
            if self._file is not None:
                return self._file
            try:
                file = pa.OSFile(str(self.path), "rb")
            except OSError:
                raise UnreadableFile(f"{self.path} could not be opened") from None
            if len(_OPEN) < _MOST:
                self._file = file
                _OPEN.add(self)
        return file


def unless_damaged(read: Callable[..., Any], *what: Any) -> Any:
    """Return what a package reads, or None where it cannot: its own message may quote cells, and goes nowhere.

    Whoever gets None complains, outside of any handler, so that the message does not ride along as the context.
    """
    try:
        return read(*what)
    except UnreadableFile:
        raise
    except (pa.ArrowException, OSError, ValueError):
        return None


class TableFile:
    """What a table is read from, with names of its columns; what it does not say otherwise holds of each."""

    path: Any  # or what it is called in messages
    types: list[Any] | None = None  # of the columns, where they are declared
    n: int | None = None  # rows, where that is known before they are read; ``guess`` is a guess
    named = True  # whether names of columns are those of the table, and not of each row
    once = False  # whether rows come but once
    claims: tuple[str, ...] = ()  # what is taken as given of rows that the caller's own function or query hands out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path})"

    def count(self) -> int:
        """Count the rows."""
        assert self.n is not None
        return self.n


_AT_ONCE = 1 << 17  # rows: small batches of a file are read together


class BatchFile(TableFile):
    """A file that declares types, and whose rows come in batches of known sizes."""

    def __init__(self, path: Path, schema: Any, sizes: Sequence[int]) -> None:
        self.path, self._schema, self._sizes, self.n = path, schema, sizes, sum(sizes)
        self.guess, self.names, self.types = self.n, list(schema.names), list(schema.types)

    def parts(self) -> list[tuple[int, ...]]:
        """Return runs of batches."""
        runs: list[tuple[int, ...]] = []
        held = 0
        for k, size in enumerate(self._sizes):
            if not runs or held + size > _AT_ONCE:
                runs.append(())
                held = 0
            runs[-1] += (k,)
            held += size
        return runs


#: Those held open. They leave it as they are collected, which may be at any moment: no lock is waited for then.
_OPEN: WeakSet[Held] = WeakSet()


_MOST_LINES = 1 << 16  # taken apart one by one at a time: some hundred bytes each for every cell
_USUAL = 1 << 16  # bytes read beyond a part, which as a rule end its last line
_SAMPLE = 1 << 16  # bytes that lines are guessed by
_BLOCK = 1 << 20  # bytes that the reader takes apart at a time
_FEED, _RETURN, _QUOTE = 10, 13, 34  # as bytes
_LONG = 1 << 17  # bytes of a line with quotes, beyond which a reader line by line gives up
#: How some programs begin a file in UTF-8. Arrow's reader leaves it out at the start of what it is given, nowhere else.
MARK = b"\xef\xbb\xbf"


class LinesFile(TableFile):
    """A file of which every line is a row, cut into runs of whole lines; packed in ``.gz``, it is one run."""

    part_bytes = 1 << 23  # of a run, about; changes nothing but memory and speed

    def __init__(self, path: Path) -> None:
        self.path = path
        self._packed = path.name.lower().endswith(".gz")
        self._held = Held(path)
        self._start, self._end = 0, self._held.opened().size()  # of the rows

    @cached_property
    def guess(self) -> int:
        """About how many lines there are, by the first of them."""
        if self._packed:
            return int(self._end) // 8
        sample = self._held.opened().read_at(_SAMPLE, self._start)
        length = len(sample) / max(1, sample.count(b"\n"))
        return int((self._end - self._start) / max(1.0, length))

    def parts(self) -> list[tuple[int, int]]:
        """Return runs of bytes, between the first line and the end; a packed file is one."""
        if self._packed:
            return [(0, 0)]
        size = self.part_bytes
        return [(start, min(start + size, self._end)) for start in range(self._start, self._end, size)]

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

    def _lines(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the lines that begin from ``start`` on and before ``stop``; as they stand, but for a last too long."""
        file = self._held.opened()
        # a byte before, which says whether a line begins at start, and as a rule the end of the last line
        size, within = stop - start + 1 + _USUAL, stop - start
        data = self._at(file, size, start - 1) if start else b"\n" + self._at(file, size - 1, 0)
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

    def _unpacking(self) -> gzip.GzipFile:
        """Return what is in a packed file, of the file that is held; complains if it has changed."""
        return gzip.GzipFile(fileobj=io.BufferedReader(_FromStart(self._held.opened()), _USUAL), mode="rb")

    def _unpacked(self) -> Iterator[bytes]:
        stream, first = self._unpacking(), True
        try:
            with stream:
                for block in whole_lines(stream, self.part_bytes):
                    yield block.partition(b"\n")[2] if first and self._start else block  # without a header
                    first = False
            return
        except (OSError, EOFError, zlib.error, pa.ArrowException):
            pass
        raise UnreadableFile(f"{self.path} cannot be unpacked")

    def _blocks(self, part: tuple[int, int]) -> Iterator[bytes]:
        return filter(None, self._unpacked() if self._packed else self._lines(*part))

    def _every_line(self, called: str) -> list[bytes]:
        """Return all lines, or say that the file, as what it is ``called``, could not be read."""
        try:
            return [line for part in self.parts() for block in self._blocks(part) for line in split_lines(block)]
        except UnreadableFile:
            pass
        raise ValueError(f"{self.path} could not be read as {called}")


class CsvFile(LinesFile):
    """A CSV file whose rows are not in memory.

    Parameters
    ----------
    path : Path
        A file ending in ``.csv``, or compressed in ``.gz``.
    separator : str, optional
        What stands between cells, one letter. By default whichever of comma, semicolon and tab the first line has.
    decimal : {".", ","}, default="."
        What stands before the fraction of a number.
    encoding : str, default="utf-8"
        Any in which ASCII is ASCII, so that lines can be told apart before they are read.
    strip : bool, default=True
        Whether spaces around cells and names are left out, also before a quote.

    Attributes
    ----------
    names : list of str
        The cells of the first line.
    separator : str
        What stands between cells.

    Raises
    ------
    UnreadableFile
        If the file is not there.
    ValueError
        If it cannot be unpacked, has no first line, one with a carriage return in it, one that the encoding cannot
        read, or one that does not tell the separator; or if an option is none.

    Notes
    -----
    Lines end in a line feed, before which there may be a carriage return. Where the file ends in one, no line follows;
    everywhere else one does, and an empty line is a row of missing cells. Quotes are as usual, and end with the line if
    they are not closed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_bytes(b'age,city\\n31,"Bern, BE"\\n47\\n"52,Oslo\\n\\n\\xff,Rome,7\\n')
    ...     file = CsvFile(path)
    ...     columns = file.whole(["city", "age"])
    >>> file.names, columns["city"].cells(), columns["age"].cells()
    (['age', 'city'], ['Bern, BE', None, None, None, 'Rome'], ['31', '47', '52,Oslo', '', '�'])
    """

    def __init__(
        self,
        path: Path,
        *,
        separator: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
        strip: bool = True,
    ) -> None:
        if decimal not in (".", ","):
            raise ValueError('decimal must be "." or ","')
        super().__init__(path)
        self.decimal, self.encoding, self._strip = decimal, encoding, strip
        try:
            _check_options(separator or "", encoding)
            first = self._first_line()
            header = first.removesuffix(b"\n").removesuffix(b"\r").removeprefix(MARK)
            named = _decoded(header, encoding)
            self.separator = separator or _recognised(named)
        except UnreadableFile:
            raise
        except (OSError, ValueError) as error:  # which speak of the first line and of options alone
            raise ValueError(f"{path} could not be read as CSV: {error}") from None
        self.names = FirstLine(self._split(header))
        self._start = len(first)

    def read(
        self, part: tuple[int, int], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of the lines that begin in a part."""
        places = places_of(self.names, names)
        for block in self._blocks(part):
            found = _plain(block, places, numeric, self)
            if found is not None:
                yield found
            else:  # a line may be a byte, and is a list here
                for piece in _pieces(block, _MOST_LINES):
                    yield self._one_by_one(split_lines(piece), list(places.values()), names)

    def whole(self, names: Sequence[str], places: Sequence[int] | None = None) -> NamedColumns:
        """Return some columns of all lines, each cell as text by itself; ``places`` where names do not say which."""
        where = list(places_of(self.names, names).values()) if places is None else places
        return self._one_by_one(self._every_line("CSV"), where, names)

    def _first_line(self) -> bytes:
        if self._packed:
            try:
                with self._unpacking() as stream:
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

    def _one_by_one(self, lines: list[bytes], places: Sequence[int], names: Sequence[str]) -> NamedColumns:
        rows: list[list[str | None]] = []
        uneven = []
        for i, line in enumerate(line.removesuffix(b"\r") for line in lines):
            too_long = len(line) > LONGEST_LINE
            cells = [_TOO_LONG] * len(self.names) if too_long else self._split(line)
            if too_long or len(cells) != len(self.names):
                uneven.append(i)
            # a line that is too short lacks its last cells, and further cells of a longer one are left out
            rows.append([cells[j] if j < len(cells) else None for j in places])
        made = CommaColumn if self.decimal == "," else Column
        columns = zip(*rows, strict=True) if rows else [()] * len(places)
        found = {name: made(list(cells)) for name, cells in zip(names, columns, strict=True)}
        return NamedColumns(found, len(lines), uneven)

    def _split(self, line: bytes) -> list[str]:
        """Return all cells of a line; bytes that are not in the encoding become U+FFFD."""
        text = line.decode(self.encoding, "replace")
        if '"' not in text:
            cells = text.split(self.separator)
        else:
            try:
                # a reader of its own, so that none remembers another's line
                cells = next(csv.reader([text], delimiter=self.separator, skipinitialspace=self._strip))
            except csv.Error:  # a cell of more than 131,072 letters, or a carriage return in one
                return []
        return [cell.strip() for cell in cells] if self._strip else cells


class _FromStart(io.RawIOBase):
    """A file that is held open, read from its start by whoever asks: threads share the file, and no place in it."""

    def __init__(self, file: Any) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._file.read_at(len(buffer), self._place)
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)


def _pieces(block: bytes, lines: int) -> Iterator[bytes]:
    """Yield a block in pieces of so many lines."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _FEED)[lines - 1 :: lines] + 1
    start = 0
    for end in (*map(int, ends), len(block)):
        if end > start:
            yield block[start:end]
        start = end


def _check_options(separator: str, encoding: str) -> None:
    """Complain about an option that is none."""
    if len(separator) > 1 or separator in ('"', "\n", "\r", "\0"):
        raise ValueError("separator must be one letter, such as a semicolon or a tab, and no quote or line break")
    try:
        plain = _ASCII.decode(encoding, "replace") == _ASCII.decode("ascii")  # as rows are read
    except (LookupError, UnicodeError, Warning):
        plain = False
    if not plain:
        raise ValueError(
            f"encoding {encoding!r} is unknown or not one in which ASCII is ASCII, such as utf-8 or latin-1; "
            "save the file as UTF-8"
        )


def _decoded(header: bytes, encoding: str) -> str:
    """Decode the first line, which is public and has to be right."""
    if len(header) > LONGEST_LINE:
        raise ValueError(f"the first line has more than {LONGEST_LINE:,} bytes; it must hold the names of the columns")
    if not header or b"\r" in header:
        # Old files end lines in carriage returns alone: all of it would be taken for the header.
        raise ValueError("the first line must hold the names of the columns and end in a line feed")
    if b"\0" in header or header.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("the first line is not text in which ASCII is ASCII (UTF-16?); save the file as UTF-8")
    try:
        return header.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(f"the first line is not in {encoding}; state the encoding, for example latin-1") from None


def _recognised(header: str) -> str:
    """Return the separator that the first line has, quoted names aside."""
    bare = re.sub(r'"[^"]*"', "", header)
    found = [mark for mark in _SEPARATORS if mark in bare]
    if len(found) > 1:
        raise ValueError("the first line has more than one of comma, semicolon and tab; state the separator")
    return found[0] if found else ","


def _plain(block: bytes, places: dict[str, int], numeric: frozenset[str], file: CsvFile) -> NamedColumns | None:
    """Return the columns of a plain block; None if it is not one."""
    if block.startswith(MARK) or not read_as_it_stands(block, file.encoding):
        return None
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return None
    raw = np.frombuffer(block, np.uint8)
    feeds = np.flatnonzero(raw == _FEED)
    quoted = b'"' in block
    if quoted and not _around_cells(raw, feeds, ord(file.separator)):
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
                delimiter=file.separator,
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
                decimal_point=file.decimal,
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
        return arrow_column(read, "text")
    empty = read.is_null().to_numpy() if read.null_count else None
    values = np.asarray((pc.fill_null(read, 0.0) if read.null_count else read).to_numpy())
    # what is not finite was written in letters, which are read one by one
    return ParsedColumn(values, empty) if np.isfinite(values).all() else None
