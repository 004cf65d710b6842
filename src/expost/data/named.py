"""Columns by name, from a frame, a dictionary or a file, each to be read cell by cell.

Which columns there are is public, so it may be complained about; what is in them is not looked at here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from expost.data.columns import Column
from expost.data.entrance import open_column
from expost.data.files import CSV, PARQUET
from expost.data.frames import frame_column, names_of_frame
from expost.data.kinds import suggestion
from expost.data.lines import CsvLines
from expost.data.text_columns import CommaColumn

__all__ = ["NamedColumns", "open_named", "read_columns"]


class NamedColumns:
    """Raw columns by name; like all private values it prints nothing of what they hold.

    Parameters
    ----------
    columns : mapping of str to Column
    n : int
        Number of rows.
    uneven : sequence of int, optional
        Rows, from 0, whose line in a CSV file has another number of cells than the first line has names.
    """

    def __init__(self, columns: Mapping[str, Column], n: int, uneven: Sequence[int] = ()) -> None:
        self.columns, self.n, self.uneven = dict(columns), n, uneven

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def taken(self, places: npt.NDArray[np.intp]) -> NamedColumns:
        """Return the rows at some places, in that order, some of them more than once perhaps."""
        return NamedColumns({name: column.taken(places) for name, column in self.columns.items()}, len(places))

    def __repr__(self) -> str:
        return f"NamedColumns(n={self.n}, names={list(self.columns)})"


def open_named(frame: Any, names: Sequence[str]) -> NamedColumns:
    """Take columns out of a table by their names.

    Parameters
    ----------
    frame : frame of pandas, Polars or PyArrow, mapping of names to columns, path of a file, or NamedColumns
        See :func:`read_columns` for files.
    names : sequence of str
        Which columns. Spaces around names in the table do not count.

    Examples
    --------
    >>> open_named({"age": [31, "47"], " city": ["Bern", None], "when": [1, 2]}, ["city", "age"])
    NamedColumns(n=2, names=['city', 'age'])
    """
    if isinstance(frame, NamedColumns):
        places_of(list(frame.columns), names)
        return frame
    if isinstance(frame, str | os.PathLike):
        return read_columns(frame, names)
    there = names_of_frame(frame)
    if there is not None:
        places = places_of(there, names)
        return NamedColumns({name: frame_column(frame, j, name) for name, j in places.items()}, int(frame.shape[0]))
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


def read_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    *,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
) -> NamedColumns:
    """Read columns of a CSV or Parquet file, so that no row changes how another is read.

    Parameters
    ----------
    path : str or path
        A file ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``. In a CSV file every line is one row.
    names : sequence of str
        Which columns.
    separator : str, optional
        What stands between the cells of a CSV file; by default the comma, semicolon or tab of its first line.
    decimal : {".", ","}, default="."
        What a CSV file has before the fraction of a number.
    encoding : str, default="utf-8"
        Of a CSV file. Cells that are not in it have replacement marks where they are not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("age; weight\\n31; 70,5\\n47; 1.000,5\\n")
    ...     columns = read_columns(file, ["weight"], decimal=",")
    >>> columns["weight"].floats(slice(None))
    array([70.5,  nan])
    """
    file = Path(path)
    if decimal not in (".", ","):
        raise ValueError('decimal must be "." or ","')
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    kind = file.name.lower()
    if kind.endswith(PARQUET):
        table = _parquet(file)
        return NamedColumns(open_named(table, names).columns, table.num_rows)
    if not kind.endswith(CSV):
        raise ValueError(f"cannot tell the type of {file}; its name must end in {', '.join(CSV + PARQUET)}")
    try:
        lines = CsvLines(file, separator=separator or "", encoding=encoding, strip=True)
    except (OSError, ValueError) as error:  # which speak of the first line and of options alone
        raise ValueError(f"{file} could not be read as CSV: {error}") from None
    places = places_of(lines.names, names)
    rows = lines.cells(slice(None), list(places.values()))
    made = CommaColumn if decimal == "," else Column
    listed = zip(*rows, strict=True) if rows else [()] * len(places)
    return NamedColumns({name: made(list(cells)) for name, cells in zip(places, listed, strict=True)}, len(lines))


def _parquet(file: Path) -> Any:
    try:
        return pa.parquet.ParquetFile(file).read()
    except (pa.ArrowException, OSError, ValueError):
        pass  # raised out here, because the reader's own message may quote cells
    raise ValueError(f"{file} could not be read as Parquet")


def places_of(there: Sequence[Any], wanted: Sequence[str], file: Path | None = None) -> dict[str, int]:
    """Say where each column is, after complaining about those that are not there or there twice.

    A file is named where a table has several.
    """
    plain = [str(name).strip() for name in there]
    places, many = {name: j for j, name in enumerate(plain)}, Counter(plain)
    for name in wanted:
        if many[name] != 1:
            if name in many:
                raise ValueError(f"there are {many[name]} columns {name!r} in {file or 'the table'}; rename them")
            if file is not None:
                raise ValueError(f"{file} has no column {name!r}; {suggestion(name, plain)}")
            raise ValueError(f"there is no column {name!r} in the table; {suggestion(name, plain)}")
    return {name: places[name] for name in wanted}
