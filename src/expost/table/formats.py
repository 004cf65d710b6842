"""What the name of a table says: which type a file has, or that it is a database; and which packages that needs.

Nothing is opened here, and nothing imported that takes time, so that a mistake in a name is said at once.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")
TABS, ARROW = (".tsv", ".tsv.gz"), (".feather", ".arrow")
JSON = (".jsonl", ".jsonl.gz", ".ndjson")
#: Types of files that a folder may be made of, as how their names end.
TYPES = {"CSV": CSV, "Parquet": PARQUET, "TSV": TABS, "JSON lines": JSON, "Arrow": ARROW}
FOLDERS = tuple(ending for endings in TYPES.values() for ending in endings)
#: Files that are a table if they are named: a folder may hold such texts and workbooks beside its tables.
TEXT, EXCEL = (".txt", ".txt.gz"), (".xlsx",)
ENDINGS = FOLDERS + TEXT + EXCEL

DATABASES = ("sqlite", "duckdb")
_EXTRAS = {"duckdb": "duckdb", "openpyxl": "excel"}  # what installs a package


def ends(file: Path, endings: tuple[str, ...]) -> bool:
    """Whether the name of a file ends in one of these."""
    return file.name.lower().endswith(endings)


def database_in(path: Any) -> tuple[str, Path] | None:
    """Return which database a table is in and its file, of ``sqlite:visits.db``; None for any other path.

    Examples
    --------
    >>> database_in("sqlite:visits.db"), database_in("visits.csv")
    (('sqlite', PosixPath('visits.db')), None)
    """
    kind, mark, file = str(path).partition(":")
    return (kind, Path(file)) if mark and kind in DATABASES else None


def file_of(path: Path) -> Path:
    """Return the file that a table is in."""
    database = database_in(path)
    return path if database is None else database[1]


def require_package_for(path: Path) -> None:
    """Complain if a package that a table needs is not installed, and say what installs it."""
    if str(path).startswith("duckdb:"):
        require_package("duckdb", "reading a database of DuckDB")
    if ends(path, EXCEL):
        require_package("openpyxl", "reading a workbook")


def require_package(name: str, what: str) -> None:
    """Complain if a package is not installed, and say what installs it."""
    if find_spec(name) is None:
        raise ValueError(f"{what} needs {name}: pip install 'expost[{_EXTRAS[name]}]'")
