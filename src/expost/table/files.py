"""Tables in files, folders of them and patterns such as ``2024-*.parquet``: which files a path means, and their
columns, each to be read cell by cell, whole or in pieces. The name of a file says its type, as
:mod:`expost.table.formats` lists them.

Which files and columns there are is public, so it may be complained about: errors name files and columns, never a
value. Reading a whole table by :func:`read_table` is the curator's step, whose errors can still depend on what is in
the file, and are then not covered by any privacy guarantee; with ``text_as_missing`` they depend on its structure alone
(header, declared types), and every cell is read by itself.

What is public about a table in pieces is settled when it is opened: which files, their columns, how they are cut into
parts. Rows are read part by part, a batch at a time, columns that nobody asked for not at all, so that memory depends
neither on the size of a file nor on that of its row groups. A part is described by public values only and may be read
anywhere, also on another machine that sees the same files. A Parquet file is read by row groups
(:mod:`expost.table.parquet`), a CSV file in runs of lines (:mod:`expost.table.csv_lines`), what else there is as
:mod:`expost.table.databases_and_streams` and :mod:`expost.table.json_lines` say.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from expost.table.columns import Column, FirstLine, NamedColumns, places_of
from expost.table.csv_lines import CsvFile
from expost.table.databases_and_streams import (
    SAME_ROWS,
    ArrowFile,
    query_of,
    stream_of_batches,
    workbook,
)
from expost.table.entrance import (
    arrow_column,
    is_called,
    is_stream,
    named_columns,
    names_of_frame,
    open_column,
    type_is,
)
from expost.table.formats import (
    ARROW,
    CSV,
    ENDINGS,
    EXCEL,
    FOLDERS,
    JSON,
    PARQUET,
    TABS,
    TYPES,
    database_in,
    ends,
)
from expost.table.json_lines import JsonLines
from expost.table.kinds import PLAIN_NUMBERS, TEXT_COLUMNS
from expost.table.parquet import ParquetTable, parquet_whole

_TRUTH = {"true": 1.0, "false": 0.0}
_NUMERIC = ("integer", "floating", "boolean", "decimal", "null")  # the last is a column without a single value: all NaN

TargetAs = Literal["inferred", "number", "text"]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Features, in which missing cells are NaN, and target read from a file, and names of the features."""

    X: npt.NDArray[np.float64]
    y: npt.NDArray[Any]
    column_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Table(n={self.X.shape[0]}, column_names={list(self.column_names)})"


def read_table(
    path: str | Path,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    text_as_missing: bool = False,
    target_as: TargetAs = "inferred",
) -> Table:
    """Read a CSV or Parquet file into features and target.

    Parameters
    ----------
    path : str or Path
        A file ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``.
    target : str
        Name of the target column. Labels keep their type; a missing one is None or NaN.
    columns : sequence of str, optional
        Feature columns, in this order. By default all but the target.
    text_as_missing : bool, default=False
        Read cells of feature columns that are not numbers as missing instead of complaining, and every cell by itself:
        nothing that stands in one row changes what is read in another. In a CSV file each line is then a row
        (:mod:`expost.table.csv_lines`). Declared types of a Parquet file are public, and dates, say, still an error.
    target_as : {"inferred", "number", "text"}, default="inferred"
        Read the target with the type the file gives it, or each cell by itself as a number (else missing) or as text.
        With ``"inferred"`` all cells of the target in a CSV file decide about each.

    Returns
    -------
    Table
        Integers and booleans among the features become floats, missing cells NaN. With ``text_as_missing`` a target
        of numbers in a Parquet file is a masked array, because a missing cell must not change the type of the others.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file type or a column is unknown, or a feature column is not numeric.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("age,member,city\\n31,true,Bern\\n,false,Oslo\\n")
    ...     table = read_table(file, target="city")
    >>> table
    Table(n=2, column_names=['age', 'member'])
    >>> table.X
    array([[31.,  1.],
           [nan,  0.]])
    """
    file = Path(path)
    _require_file(file, CSV + PARQUET)
    data = _opened(file, by_line=text_as_missing, text=[target] if target_as != "inferred" else [])
    try:
        available = data.names if isinstance(data, CsvFile) else list(data.column_names)
    except UnicodeDecodeError:
        raise ValueError(f"the names of the columns of {file} are not in UTF-8; save it as UTF-8") from None
    names = chosen_columns(available if ends(file, PARQUET) else FirstLine(available), target, columns, file)
    if isinstance(data, CsvFile):
        X, y = _from_lines(data, names, target, target_as)
    else:
        X, y = _from_arrow(data, names, target, target_as, by_cell=text_as_missing)
    return Table(X, y, tuple(names))


def _opened(path: Path, *, by_line: bool, text: list[str]) -> Any:
    if ends(path, PARQUET):
        return parquet_whole(path)
    try:
        if by_line:
            return CsvFile(path, separator=",", strip=False)
        options = pa.csv.ConvertOptions(column_types={column: pa.string() for column in text})
        with pa.input_stream(str(path), compression="gzip" if path.name.lower().endswith(".gz") else None) as stream:
            return pa.csv.read_csv(stream, convert_options=options)
    except (pa.ArrowException, OSError, ValueError):
        pass
    # Raised out here, because the reader's own message may quote cells and would ride along as the context.
    rows = "lines" if by_line else "rows of as many cells, in UTF-8"
    raise ValueError(f"{path} could not be read as CSV (a header, then {rows})")


def chosen_columns(available: list[str], target: str, columns: Sequence[str] | None, path: Path) -> list[str]:
    """Return the feature columns, after complaining about those that are not there."""
    doubtful = getattr(available, "doubtful", "")
    repeated = sorted(name for name, many in Counter(available).items() if many > 1)
    if repeated and doubtful:
        raise ValueError(f"{path} cannot be read: {doubtful}")
    if repeated:
        raise ValueError(f"column name(s) {', '.join(repeated)} appear more than once in {path}; rename them")
    listed = doubtful or f"its columns are {', '.join(available)}"
    if target not in available:
        raise ValueError(f"there is no target column {target!r} in {path}; {listed}")
    names = [name for name in available if name != target] if columns is None else list(columns)
    if target in names:
        raise ValueError(f"columns contain the target {target!r}; leave it out of the features")
    unknown = [name for name in names if name not in available]
    if unknown:
        raise ValueError(f"there are no column(s) {', '.join(map(str, unknown))} in {path}; {listed}")
    if not names or len(set(names)) != len(names):
        raise ValueError("pass at least one feature column, and each only once")
    return names


def _from_lines(
    file: CsvFile, names: list[str], target: str, target_as: TargetAs
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    wanted = [*names, target]
    columns = file.whole(wanted, [file.names.index(name) for name in wanted])
    X, labels = _features([columns[name] for name in names], len(columns)), columns[target]
    if target_as == "number":
        return X, loose(labels).floats(slice(None))
    return X, labels.array() if target_as == "text" else _inferred(labels.cells())


def _from_arrow(
    data: Any, names: list[str], target: str, target_as: TargetAs, *, by_cell: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    text = [name for name in names if not type_is(data.schema.field(name).type, *_NUMERIC)]
    if text and not by_cell:
        raise ValueError(
            f"feature column(s) {', '.join(text)} are not numeric; drop or encode them, "
            f"or pass columns= with the columns to use; {TEXT_COLUMNS}. {PLAIN_NUMBERS.capitalize()}"
        )
    X = _features([arrow_column(data.column(name), f"column {name!r}") for name in names], data.num_rows)
    column = data.column(target)
    if type_is(column.type, "decimal"):
        # Unchecked cast: a checked one complains about numbers beyond 2⁵³, and quotes them.
        column = column.cast(pa.float64(), safe=False)
    opened = arrow_column(column, f"column {target!r}")
    # by itself a label has the declared type of its column; else integers are floats if one of them is missing
    whole = not by_cell and type_is(column.type, *_NUMERIC)
    labels = np.asarray(column.to_numpy()) if whole else opened.array()
    if target_as == "number" and labels.dtype.kind not in "biuf":
        labels = loose(opened).floats(slice(None))
    return X, labels


def _features(columns: list[Column], n: int) -> npt.NDArray[np.float64]:
    X = np.empty((n, len(columns)), dtype=np.float64)
    for j, column in enumerate(columns):
        X[:, j] = loose(column).floats(slice(None))
    return X


class _LooseColumn(Column):
    def __init__(self, column: Column) -> None:
        super().__init__(column.cells())
        self._column = column  # which knows how numbers are written in it

    def floats(self, part: slice) -> npt.NDArray[np.float64]:
        read, cells = self._column.floats(part), self._values[part]
        for i in np.flatnonzero(np.isnan(read)):
            if isinstance(cells[i], str):
                read[i] = _TRUTH.get(cells[i].lower(), np.nan)
        return read

    def not_numbers(self) -> int:
        none = np.flatnonzero(np.isnan(self.floats(slice(None)))).tolist()
        return sum(self._values[i] not in (None, "") for i in none)


def loose(column: Column) -> Column:
    """Return a column that reads text as numbers where it is one, or true or false; each cell by itself."""
    return _LooseColumn(column) if column.is_loose else column


def _inferred(cells: list[str | None]) -> npt.NDArray[Any]:
    """Give labels the type that all of them allow; what this tells about single rows is not covered."""
    column = pa.chunked_array([pa.array([cell or None for cell in cells], pa.string())])
    for kind in (pa.int64(), pa.bool_(), pa.float64()):
        try:
            return np.asarray(column.cast(kind).to_numpy())
        except pa.ArrowInvalid:
            pass
    return np.asarray(column.to_numpy())


def found_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return files of a table in the order of their names; nothing is opened.

    The path is a file whose name says its type (:mod:`expost.table.formats`); a folder, of which all files of one of
    its ``TYPES`` are meant, those in folders within it too; or a pattern with ``*``, ``?`` or ``**``. It is an error if
    there is none, if a name does not tell the type, if a folder holds files of two types, or if a link leads nowhere. A
    file that is found under two names is one, too: its rows would count twice, and ε is stated for rows that count
    once.
    """
    path = Path(path)
    if path.is_dir():
        inside = [file for file in path.rglob("*") if ends(file, FOLDERS)]
        files = _each_once(file for file in inside if not file.name.startswith((".", "_")))
        if not files:
            raise FileNotFoundError(f"there is no file ending in {', '.join(FOLDERS)} in the folder {path}")
        _require_one_type(path, files)
    elif path.is_file():
        files = [path]
    elif any(mark in str(path) for mark in "*?["):
        files = _each_once(map(Path, glob.iglob(str(path), recursive=True)))
        if not files:
            raise FileNotFoundError(f"there is no file {path}")
    else:
        raise FileNotFoundError(f"there is no file {path}")
    for file in files:
        _require_file(file)
    return files


def _each_once(names: Iterable[Path]) -> list[Path]:
    """Return the files among names, in their order, or complain about one with two of them or a link to nowhere."""
    found: dict[tuple[int, int], Path] = {}
    for name in names:  # as they come: folders that link to themselves hold names without end
        if name.is_symlink() and not name.exists():
            raise FileNotFoundError(f"{name} is a link that leads nowhere")
        if not name.is_file():
            continue
        file = name.stat()
        first = found.setdefault((file.st_dev, file.st_ino), name)
        if first is not name:
            raise ValueError(
                f"{first} and {name} are one file, whose rows would count twice; remove the link, or pass a pattern "
                f"that finds it once"
            )
    return sorted(found.values())


def _require_file(file: Path, endings: tuple[str, ...] = ENDINGS) -> None:
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    if not ends(file, endings):
        raise ValueError(f"cannot tell the type of {file}; its name must end in {', '.join(endings)}")
    try:
        str(file).encode()
    except UnicodeEncodeError:  # which no reader of tables opens
        raise ValueError(f"the name of {file} is not in UTF-8; rename it") from None


def _require_one_type(folder: Path, files: list[Path]) -> None:
    """Complain about a folder in which the same rows may stand twice, once in each type."""
    types = [name for name, endings in TYPES.items() if any(ends(file, endings) for file in files)]
    if len(types) == 1:
        return
    inner = "" if all(file.parent == folder for file in files) else "**/"
    endings = [ending for ending in FOLDERS if any(ends(file, (ending,)) for file in files)]
    patterns = " or ".join(f"'{folder}/{inner}*{ending}'" for ending in endings)
    both = "both " if len(types) == 2 else ""
    raise ValueError(
        f"{folder} holds {both}{' and '.join(types)} files, and the same rows might count twice; pass a pattern that "
        f"says which are meant, such as {patterns}"
    )


def open_named(frame: Any, names: Sequence[str]) -> NamedColumns:
    """Take columns out of a table by their names; spaces around names in the table do not count.

    The table is a frame of pandas, Polars or PyArrow, whatever else hands out batches of Arrow, a mapping of names to
    columns, NamedColumns, or the path of a file, of which no row changes how another is read.
    """
    if isinstance(frame, NamedColumns):
        places_of(list(frame.columns), names)
        return frame
    if isinstance(frame, str | os.PathLike):
        _require_file(Path(frame))
        found: NamedColumns = _file(Path(frame)).whole(names)
        return found
    if names_of_frame(frame) is not None:
        return named_columns(frame, names)
    if is_stream(frame):
        return stream_of_batches(frame).whole(names)
    if not isinstance(frame, Mapping):
        raise ValueError(
            f"columns are found by their names: pass a frame, a dictionary of columns or the path of a file, "
            f"not {type(frame).__name__}"
        )
    keys = list(frame)
    columns = {
        name: open_column(frame[keys[j]], on_invalid="clip", name=f"column {name!r}")[0]
        for name, j in places_of(keys, names).items()
    }
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError("columns must be of the same length")
    return NamedColumns(columns, lengths.pop() if lengths else 0)


class Piece(NamedTuple):
    """What can be read by itself: a number of a file, and which part of it."""

    file: int
    part: Any


class Disk:
    """Files that together are one table, in the order of their rows.

    Attributes
    ----------
    n : int or None
        Number of rows, if files state it.
    guess : int
        Number of rows, or a guess of it, for whoever waits.
    """

    def __init__(self, files: Sequence[Any]) -> None:
        self.files = list(files)
        known = [file.n for file in self.files]
        self.n = None if None in known else sum(known)
        self.guess = sum(file.guess for file in self.files)

    def __repr__(self) -> str:
        return f"Disk({len(self.files)} file(s))"

    def pieces(self) -> list[Piece]:
        """Return what can be read by itself, in the order of rows."""
        return [Piece(k, part) for k, file in enumerate(self.files) for part in file.parts()]

    def count(self) -> int:
        """Count the rows; of a CSV file that is its lines."""
        return sum(file.count() for file in self.files)

    @property
    def once(self) -> bool:
        """Whether its rows come but once, so that whoever makes several passes has to keep them."""
        return any(file.once for file in self.files)

    @property
    def header(self) -> list[str]:
        """The names of all columns, as far as they are public: in JSON lines each row has names of its own."""
        return list(dict.fromkeys(name for file in self.files if file.named for name in file.names))

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that a file lacks or has twice, and name the first such file if there are several."""
        for file in self.files:
            if file.named:
                places_of(file.names, names, None if len(self.files) == 1 else file.path)

    def read(self, piece: Piece, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        """Yield columns, at most about so many rows at a time; ``numeric`` ones are likely to hold numbers."""
        found: Iterator[NamedColumns] = self.files[piece.file].read(piece.part, names, numeric, rows)
        return found


def is_on_disk(table: Any) -> bool:
    """Whether a table is stated by where it is, or by what hands it out."""
    return isinstance(table, str | os.PathLike | Disk) or is_stream(table)


def table_claims(table: Any) -> tuple[str, ...]:
    """Return what is taken as given of a table that a function hands out anew for every pass, or that a query gives."""
    if isinstance(table, Disk):
        return tuple(dict.fromkeys(claim for file in table.files for claim in file.claims))
    return (SAME_ROWS,) if is_stream(table) and is_called(table) else ()


def open_disk(table: Any, *, query: str | None = None, sheet: str | None = None, **options: Any) -> Disk:
    """Open a file, a folder or a pattern (:func:`found_files`), a query of a database, or what hands out batches.

    Parameters
    ----------
    table : str, path, Disk, or anything that hands out batches of Arrow
        ``sqlite:visits.db`` and ``duckdb:visits.db`` are databases; see :mod:`expost.table.databases_and_streams`.
    query : str, optional
        Which rows of a database.
    sheet : str, optional
        Which sheet of a workbook, by default its first.
    **options
        How CSV files are written: ``separator``, ``decimal``, ``encoding`` and ``strip``, as in
        :class:`~expost.table.csv_lines.CsvFile`.
    """
    if isinstance(table, Disk):
        return table
    if is_stream(table):
        return Disk([stream_of_batches(table)])
    database = database_in(table)
    if database is not None:
        return Disk([query_of(*database, query)])
    if query is not None:
        raise ValueError(f"query= goes with a database, such as sqlite:visits.db or duckdb:visits.db, not {table}")
    files = found_files(table)
    if sheet is not None and not all(ends(file, EXCEL) for file in files):
        raise ValueError(f"sheet= goes with a workbook (.xlsx), not {table}")
    return Disk([_file(file, sheet, **options) for file in files])


def _file(file: Path, sheet: str | None = None, **options: Any) -> Any:
    """Open a file as the type that its name says."""
    if ends(file, PARQUET):
        return ParquetTable(file)
    if ends(file, ARROW):
        return ArrowFile(file)
    if ends(file, JSON):
        return JsonLines(file)
    if ends(file, EXCEL):
        return workbook(file, sheet)
    if ends(file, TABS):
        options = {**options, "separator": options.get("separator") or "\t"}
    return CsvFile(file, **options)
