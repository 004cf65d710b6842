"""A schema to fill in, from the names of a table's columns and their declared types; no cell is looked at.

Bounds and categories are left blank on purpose. They have to be what is known about the table without its rows, and
whatever a program read off the rows would be neither public nor paid for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from expost.data.found import found_files, is_parquet
from expost.data.kinds import NO_DATES
from expost.data.lines import CsvLines
from expost.data.schema import toml_key

__all__ = ["draft"]

_HEAD = """\
# A schema: what is publicly known about the table. Fill in the blanks from a code book or from common knowledge, not
# from the rows: whatever is read off them is not private. Take out lines of columns that are not to be used.

target = ""  # name of the column to predict; take its line out of [columns]
classes = [ , ]  # negative and positive label; for a number to predict write instead: target_bounds = [lowest, highest]
missing = [""]  # what stands for a missing cell, such as "?" or "NA"
# Has a person several rows? Then say whose a row is (and take that line out of [columns]) and how many of them count:
# person = "patient_id"
# rows_per_person = 5

[columns]
"""
_UNKNOWN = """\
# Each column is one of
#   { bounds = [0, 100] }                    a number, with the lowest and highest possible value; for amounts of very
#                                            different size add transform = "log1p" or "sqrt"
#   { categories = ["a", "b"] }              text or codes, with every value that can occur; other = true allows more
#   { boolean = true }                       true or false, yes or no, 1 or 0
# A date cannot be a column: turn it into a number, such as days since a public day, or leave it out.
"""
_KNOWN = '# For amounts of very different size add transform = "log1p" or "sqrt" beside bounds.\n'
_NUMBER = "{ bounds = [ , ] }  # lowest and highest possible value"
_CATEGORY = "{ categories = [] }  # every value that can occur"


def draft(path: str | os.PathLike[str], *, separator: str | None = None, encoding: str = "utf-8") -> str:
    """Draft a schema for a file.

    Parameters
    ----------
    path : str or path
        A file ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``; or a folder or pattern of them, of which the
        first is looked at. The first line of a CSV file has the names of its columns; nothing is known about their
        types.
    separator, encoding
        As for :func:`expost.data.named.read_columns`.

    Returns
    -------
    str
        TOML with blanks to fill in.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("age,home town\\n31,Bern\\n")
    ...     print(*draft(file).splitlines()[-2:], sep="\\n")
    age = {  }
    "home town" = {  }
    """
    file = found_files(path)[0]
    if is_parquet(file):
        return _HEAD + _KNOWN + "".join(f"{_described(field)}\n" for field in _fields(file))
    try:
        names = CsvLines(file, separator=separator or "", encoding=encoding, strip=True, header_only=True).names
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} could not be read as CSV: {error}") from None
    return _HEAD + _UNKNOWN + "".join(f"{toml_key(name)} = {{  }}\n" for name in names if name)


def _fields(file: Path) -> Any:
    try:
        return pa.parquet.read_schema(file)
    except (pa.ArrowException, OSError):
        pass
    raise ValueError(f"{file} could not be read as Parquet")


def _described(field: Any) -> str:
    is_, kind = pa.types, field.type
    name = toml_key(field.name.strip())
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind):
        return f"{name} = {_NUMBER}"
    if is_.is_boolean(kind):
        return f"{name} = {{ boolean = true }}"
    if is_.is_dictionary(kind) or _is_text(kind):
        return f"{name} = {_CATEGORY}"
    if is_.is_temporal(kind):
        return f"# {name} cannot be used: {NO_DATES}"
    return f"# {name} cannot be used: its type is {kind}"


def _is_text(kind: Any) -> bool:
    is_ = pa.types
    text = is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind)
    return bool(text or is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind))
