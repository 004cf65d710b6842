"""Tables from CSV and Parquet files, as arrays the preparation understands.

Reading is the curator's step: its errors name files and columns, never a value. They can still depend on
what is in the file, and are not covered by any privacy guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost.data.cells import numbers

__all__ = ["Table", "read_table"]

_CSV = (".csv", ".csv.gz")
_PARQUET = (".parquet", ".pq")
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Features and target read from a file.

    Attributes
    ----------
    X : ndarray of float64, shape (n, p)
        Feature columns; missing cells are NaN.
    y : ndarray, shape (n,)
        The target column with the type the file gives it.
    column_names : tuple of str
        Names of the feature columns.
    """

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
    target_as: Literal["inferred", "number", "text"] = "inferred",
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
        Read cells of feature columns that are not numbers as missing instead of complaining. In a CSV file every cell
        is then read by itself: the type of a column, which a single cell can change, is not inferred.
    target_as : {"inferred", "number", "text"}, default="inferred"
        Read the target with the type the file gives it, or each cell by itself as a number (else missing) or as text.

    Returns
    -------
    Table
        Integers and booleans among the features become floats, missing cells NaN.

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

    def by_cell(name: str) -> bool:
        return text_as_missing if name != target else target_as != "inferred"

    data = _read(Path(path), by_cell)
    available = data.column_names
    repeated = sorted({name for name in available if available.count(name) > 1})
    if repeated:
        raise ValueError(f"column name(s) {', '.join(repeated)} appear more than once in {path}; rename them")
    listed = f"its columns are {', '.join(available)}"
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
    text = [name for name in names if not _is_numeric(data.schema.field(name).type)]
    if text and not text_as_missing:
        raise ValueError(
            f"feature column(s) {', '.join(text)} are not numeric; drop or encode them, "
            f"or pass columns= with the columns to use"
        )
    X = np.empty((data.num_rows, len(names)), dtype=np.float64)
    for j, name in enumerate(names):
        if name in text:
            X[:, j] = _loose(data.column(name))
            continue
        # Unchecked cast: a checked one complains about integers beyond 2⁵³, and quotes them.
        X[:, j] = data.column(name).cast(pa.float64(), safe=False).to_numpy()
    labels = _labels(data.column(target))
    if target_as == "number" and labels.dtype.kind not in "biuf":
        labels = _loose(data.column(target))
    return Table(X, labels, tuple(names))


def _read(path: Path, as_text: Callable[[str], bool]) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    if not name.endswith(_CSV + _PARQUET):
        raise ValueError(f"cannot tell the type of {path}; its name must end in {', '.join(_CSV + _PARQUET)}")
    try:
        if name.endswith(_PARQUET):
            return pa.parquet.ParquetFile(path).read()
        compression = "gzip" if name.endswith(".gz") else None
        with pa.input_stream(str(path), compression=compression) as stream:
            header = pa.csv.open_csv(stream).schema.names
        text = pa.csv.ConvertOptions(column_types={column: pa.string() for column in header if as_text(column)})
        with pa.input_stream(str(path), compression=compression) as stream:
            return pa.csv.read_csv(stream, convert_options=text)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        pass
    # Raised out here, because the reader's own message may quote cells and would ride along as the context.
    kind = "Parquet" if name.endswith(_PARQUET) else "CSV (a header, then rows of as many cells, in UTF-8)"
    raise ValueError(f"{path} could not be read as {kind}")


def _is_numeric(kind: Any) -> bool:
    is_ = pa.types
    return bool(
        is_.is_integer(kind)
        or is_.is_floating(kind)
        or is_.is_boolean(kind)
        or is_.is_decimal(kind)
        or is_.is_null(kind)  # a column without a single value: all NaN
    )


def _loose(column: Any) -> npt.NDArray[np.float64]:
    """Return numbers where cells are numbers (or true and false), NaN elsewhere; each cell by itself."""
    cells = [_TRUTH.get(cell.lower(), cell) if isinstance(cell, str) else cell for cell in column.to_pylist()]
    return numbers(cells)


def _labels(column: Any) -> npt.NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())
