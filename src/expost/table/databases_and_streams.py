"""Tables that are neither text nor Parquet: Arrow's own files, streams of Arrow batches, databases and workbooks.

Each becomes what a file of a table is (:class:`~expost.table.files.Disk`): names of columns, parts, and batches of
columns, in the order in which they come. Types that a stream declares are public, like those of a Parquet file. The
cells of a database in SQLite and of a workbook declare none, so each is read by itself, as in a list.

What is read as often as passes need it, and what is read once:

- A file (Arrow's, a workbook) is read again. It is noticed if it has changed meanwhile.
- A function without arguments that returns a fresh stream each time is called again. That it returns the same rows in
  the same order is taken as given, and said so in the release; another number of rows, or other columns, is noticed.
- A query may do anything: that each of its rows follows from one row of the database is taken as given, and said so in
  the release. What it returns is the table that the guarantee is about.
- Whatever hands out a stream is read once, as is a query: without ``order by`` a database may give rows in another
  order the next time, and positions of rows decide which of a person's rows count. A search keeps the rows
  (:mod:`expost.passes.kept`).

A reader's own message may quote cells, so none is passed on once rows are read. What is said before (there is no such
column, a mistake in the query) is about structure.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from expost.exceptions import UnreadableFile
from expost.table.columns import Column, NamedColumns, places_of
from expost.table.csv_lines import BatchFile, Held, TableFile, unless_damaged
from expost.table.entrance import BYTES, TEXT, is_called, named_columns, type_is
from expost.table.formats import require_package

_CELL_ROWS = 1 << 13  # rows of cells that are read at a time

SAME_ROWS = "the function that hands out the table returns the same rows in the same order whenever it is called"
ROW_BY_ROW = (
    "the query makes each of its rows of one row of the database (or of one person's), whatever the others hold, and "
    "how many it gives is public: none is compared with an average, a rank or a limit"
)


class ArrowFile(BatchFile):
    """A file in Arrow's own format (``.feather``, ``.arrow``), whose rows are not in memory."""

    def __init__(self, path: Path) -> None:
        self._held = Held(path)
        found = unless_damaged(self._looked_at)
        if found is None:
            raise ValueError(
                f"{path} could not be read as an Arrow file; write one with pyarrow.feather.write_feather or "
                f"pyarrow.ipc.new_file, which is no stream"
            )
        super().__init__(path, *found)

    def _looked_at(self) -> tuple[Any, list[int]]:
        schema = pa.ipc.open_file(self._held.opened()).schema
        few = self._reader([0]) if schema.names else None  # one column says how many rows there are
        return schema, [] if few is None else [few.get_batch(k).num_rows for k in range(few.num_record_batches)]

    def _reader(self, places: Sequence[int]) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(places), use_threads=False)
        return pa.ipc.open_file(self._held.opened(), options=options)

    def read(
        self, part: tuple[int, ...], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of some batches."""
        for batch in self._batches(part, list(places_of(self.names, names).values())):
            yield from taken(batch, names, rows)

    def whole(self, names: Sequence[str]) -> NamedColumns:
        """Return some columns of all rows."""
        places = sorted(places_of(self.names, names).values())
        batches = list(self._batches(range(len(self._sizes)), places))
        schema = None if batches else pa.schema([self._schema.field(j) for j in places])
        return named_columns(pa.Table.from_batches(batches, schema), names)

    def _batches(self, part: Iterable[int], places: Sequence[int]) -> Iterator[Any]:
        reader = unless_damaged(self._reader, places)
        for k in part:
            batch = unless_damaged(lambda k: sound(reader.get_batch(k)), k) if reader is not None else None
            if batch is None:
                raise UnreadableFile(f"{self.path} could not be read: batch {k} is damaged or out of reach")
            yield batch


_BYTES_OF = {"string": pa.binary(), "large_string": pa.large_binary(), "string_view": pa.binary_view()}


def sound(batch: Any) -> Any:
    """Return a batch, or complain about text beyond its memory, which Arrow does not look for in what it reads.

    So it is with its own files, and with columns of Parquet that are read as dictionaries. Whether text is in UTF-8 is
    not asked: a row in which it is not must not stop the others.
    """
    batch.validate()
    for column in batch.columns:
        if type_is(column.type, "dictionary"):
            places = pc.min_max(column.indices)
            low, high = places["min"].as_py(), places["max"].as_py()
            if low is not None and not 0 <= low <= high < len(column.dictionary):
                raise ValueError("a place that is not in the dictionary")
            column = column.dictionary
        if type_is(column.type, *TEXT, *BYTES):
            column.view(_BYTES_OF.get(f"{column.type}", column.type)).validate(full=True)
    return batch


class Cells(NamedTuple):
    """Columns of cells that declare no types, each a list."""

    names: list[str]
    columns: list[list[Any]]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0]) if self.columns else 0

    def slice(self, start: int, rows: int) -> Cells:
        """Return some of the rows."""
        return Cells(self.names, [column[start : start + rows] for column in self.columns])

    def taken(self, names: Sequence[str]) -> NamedColumns:
        """Return some columns."""
        places = places_of(self.names, names)
        return NamedColumns({name: Column(self.columns[j]) for name, j in places.items()}, self.num_rows)


class Opened(NamedTuple):
    """A stream that nobody has read from: its columns, their types if it declares any, and what it gives."""

    names: list[str]
    types: list[Any] | None
    pieces: Iterator[Any]  # batches of Arrow, or Cells


class Stream(TableFile):
    """A table that comes as a stream.

    Parameters
    ----------
    path : str or Path
        What to call it in messages.
    opened : callable
        Returns the stream from its start.
    again : bool
        Whether it may be called again.
    claims : tuple of str
        What is taken as given of it.
    """

    def __init__(
        self, path: str | Path, opened: Callable[[], Opened], *, again: bool, claims: tuple[str, ...] = ()
    ) -> None:
        self.path, self.claims = path, claims
        self._open, self.once, self.guess = opened, not again, 0
        self._fresh: Opened | None = opened()
        self.names, self.types = self._fresh.names, self._fresh.types

    def __getstate__(self) -> dict[str, Any]:
        raise ValueError(f"{self.path} is read by this process, and a cluster has workers elsewhere: engine='local'")

    def parts(self) -> list[int]:
        """Return the one part."""
        return [0]

    def count(self) -> int:
        """Count the rows, by reading them."""
        self.n = sum(piece.num_rows for piece in self.pieces())
        return self.n

    def pieces(self) -> Iterator[Any]:
        """Yield all batches, from the start; complains if this is not the same table as before."""
        opened, self._fresh = self._fresh, None
        if opened is None and self.once:
            raise ValueError(
                f"{self.path} has been read, and gives its rows once; pass a fresh one, or a function without "
                f"arguments that returns one"
            )
        if opened is None:
            opened = self._open()
        if (opened.names, opened.types) != (self.names, self.types):
            raise UnreadableFile(f"{self.path} has other columns than when it was first looked at")
        many = 0
        while True:
            try:
                piece, failed = next(opened.pieces, None), False
            except (UnreadableFile, MemoryError):
                raise
            except Exception:  # of a package whose errors are not known here, and may quote cells
                piece, failed = None, True
            if piece is None:
                break
            many += piece.num_rows
            yield piece
        if failed:  # out here: the reader's own message would ride along as the context
            raise UnreadableFile(f"{self.path} could not be read to its end")
        if self.n not in (None, many):
            raise UnreadableFile(f"{self.path} has not as many rows as when it was first read")
        self.n = many

    def read(self, part: Any, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        """Yield some columns of all rows."""
        for piece in self.pieces():
            yield from taken(piece, names, rows)

    def whole(self, names: Sequence[str]) -> NamedColumns:
        """Return some columns of all rows."""
        if self.types is not None:
            places = places_of(self.names, names)
            batches = [piece.select(list(places.values())) for piece in self.pieces()]
            kept = [pa.field(self.names[j], self.types[j]) for j in places.values()]
            return named_columns(pa.Table.from_batches(batches, pa.schema(kept)), names)
        every: list[list[Any]] = [[] for _ in self.names]
        for piece in self.pieces():
            for column, more in zip(every, piece.columns, strict=True):
                column += more
        return Cells(self.names, every).taken(names)


def taken(piece: Any, names: Sequence[str], rows: int) -> Iterator[NamedColumns]:
    """Yield some columns of a batch or of cells, so many rows at a time."""
    for start in range(0, piece.num_rows, rows):
        some = piece.slice(start, rows)
        yield some.taken(names) if isinstance(some, Cells) else named_columns(some, names)


def stream_of_batches(table: Any) -> Stream:
    """Return the stream that a table hands out, or a function that returns one."""
    again = is_called(table)
    called = "the function that hands out the table" if again else "the stream"

    def opened() -> Opened:
        handed = table() if again else table
        if isinstance(handed, pa.RecordBatch):
            handed = pa.Table.from_batches([handed])
        if not hasattr(type(handed), "__arrow_c_stream__"):
            raise ValueError(
                f"{called} must return what hands out batches of Arrow, such as a RecordBatchReader, a frame or a "
                f"relation of DuckDB, not {type(handed).__name__}"
            )
        reader = None
        with suppress(Exception):  # whatever stands behind it; its message may quote cells
            reader = pa.RecordBatchReader.from_stream(handed)
        if reader is None:
            raise ValueError(f"{called} could not be read as a table of Arrow batches")
        return Opened(list(reader.schema.names), list(reader.schema.types), iter(reader))

    return Stream(called, opened, again=again, claims=(SAME_ROWS,) if again else ())


def query_of(kind: str, file: Path, query: str | None) -> Stream:
    """Return the rows that a query gives of a database in a file, which is opened for reading alone."""
    called = f"{kind}:{file}"
    if query is None:
        raise ValueError(f"pass query= with a select: {called} is a database, and that says which rows are meant")
    if kind == "duckdb":
        require_package("duckdb", "reading a database of DuckDB")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    opened = _of_sqlite if kind == "sqlite" else _of_duckdb
    return Stream(file, lambda: opened(called, file, query), again=False, claims=(ROW_BY_ROW,))


def _of_sqlite(called: str, file: Path, query: str) -> Opened:
    connection, cursor, said = None, None, ""
    try:
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        connection.text_factory = _text
        connection.set_authorizer(_reads_alone)
        connection.execute(f"explain {query}").close()  # which reads no row, so a mistake is one of structure
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        said = f": {error}"
    if not said and connection is not None:
        try:
            cursor = connection.execute(query)
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            said = " while rows are read"  # the first one has been
    if cursor is None or cursor.description is None:
        raise _not_carried_out(called, connection, said)
    names = [column[0] for column in cursor.description]
    some: Iterator[list[Any]] = iter(lambda: cursor.fetchmany(_CELL_ROWS), [])
    cells = (Cells(names, [list(column) for column in zip(*rows, strict=True)]) for rows in some)
    return Opened(names, None, _until_closed(connection, cells))


_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def _reads_alone(action: int, *_: Any) -> int:
    """Deny all but reading: a query could attach or copy to other files, which read-only databases do not prevent."""
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


def _not_carried_out(called: str, connection: Any, said: str) -> ValueError:
    """Return what to say of a query that gives no rows, and close the connection."""
    if connection is not None:
        connection.close()
    return ValueError(f"the query of {called} cannot be carried out{said or ': it must be a select'}")


def _until_closed(connection: Any, some: Iterable[Any]) -> Iterator[Any]:
    """Yield what a query gives; the connection is closed after the last, or with the iterator."""

    def pieces() -> Iterator[Any]:
        with closing(connection):
            yield None  # the first of all, so that it has begun and ends with the connection closed
            yield from some

    begun = pieces()
    next(begun)
    return begun


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")


def _of_duckdb(called: str, file: Path, query: str) -> Opened:
    import duckdb

    said, connection, relation, reader = "", None, None, None
    try:
        # nothing is fetched from the network for a query
        connection = duckdb.connect(str(file), read_only=True, config={"autoinstall_known_extensions": "false"})
    except Exception:
        said = "; is it a database of DuckDB?"
    try:
        if connection is not None:
            statements = connection.extract_statements(query)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                said = ": it must be one select"  # a copy writes rows to files, a read-only database or not
            else:
                relation = connection.sql(query)  # which reads no row
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
        said = f": {f'{error}'.splitlines()[0]}"
    except Exception:  # which may quote cells
        said = "; is it one select?"
    if relation is not None:
        try:
            reader = pa.RecordBatchReader.from_stream(relation)
        except Exception:
            said = " while rows are read"
    if reader is None:
        raise _not_carried_out(called, connection, said)
    return Opened(list(reader.schema.names), list(reader.schema.types), _until_closed(connection, reader))


def workbook(path: Path, sheet: str | None) -> Stream:
    """Return the rows of a sheet of a workbook, by default its first; the first row of it has the names of columns.

    Cells are what they show, not their formulas. Every row of the sheet after the first is one, also if it is empty.
    """
    require_package("openpyxl", "reading a workbook")
    held = Held(path)
    return Stream(path, lambda: _of_workbook(held, sheet), again=True)


def _of_workbook(held: Held, sheet: str | None) -> Opened:
    from openpyxl import load_workbook

    held.opened()  # complains if it has changed
    book = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they quote cells
        with suppress(Exception):
            book = load_workbook(held.path, read_only=True, data_only=True)
        if book is None:
            raise ValueError(f"{held.path} could not be read as a workbook (.xlsx)")
        if sheet is not None and sheet not in book.sheetnames:
            book.close()
            raise ValueError(f"{held.path} has no sheet {sheet!r}; its sheets are {', '.join(book.sheetnames)}")
        rows = _rows_of_sheet(book, book.worksheets[0] if sheet is None else book[sheet])
        first: Sequence[Any] = next(rows, ())
    names = ["" if name is None else f"{name}" for name in first]
    if not any(names):
        rows.close()
        raise ValueError(f"the first row of the sheet in {held.path} must have the names of the columns")

    def pieces() -> Iterator[Cells]:
        while True:
            some: list[Sequence[Any]] = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for row in rows:
                    some.append([*row[: len(names)], *[None] * (len(names) - len(row))])
                    if len(some) == _CELL_ROWS:
                        break
            if not some:
                return
            yield Cells(names, [list(column) for column in zip(*some, strict=True)])

    return Opened(names, None, pieces())


def _rows_of_sheet(book: Any, sheet: Any) -> Generator[Sequence[Any], None, None]:
    """Yield the row of names, up to the last of them, and then every further row: a stray cell far out widens none."""
    with closing(book):
        first: Sequence[Any] = next(sheet.iter_rows(max_row=1, values_only=True), ())
        width = max((j for j, name in enumerate(first, start=1) if name is not None), default=1)
        yield first[:width]
        yield from sheet.iter_rows(min_row=2, max_col=width, values_only=True)
