"""Options that say how a CSV file is written, and whose its rows are.

Options that say who reads the rows, and which tables are read in pieces.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.options import stated_target_type

if TYPE_CHECKING:
    from expost.table.schema import Schema
    from expost.table.streamed import TableOnDisk


#: What may be named where rows are read in pieces.
DATA = "a .csv, .csv.gz or .parquet file, a folder or a 'pattern*' of them"


def add_file_options(parser: argparse.ArgumentParser, *, decimal: bool = True) -> None:
    """Add the options of CSV files."""
    group = parser.add_argument_group("CSV files")
    group.add_argument(
        "--separator", metavar="CHAR", help="between cells, or the word tab (default: as the first line has it)"
    )
    if decimal:
        group.add_argument("--decimal", default=".", choices=(".", ","), help="before fractions (default: a point)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="(default: %(default)s)")


def add_person_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the privacy unit."""
    group = parser.add_argument_group("several rows of one person (with a schema, which may say so too)")
    group.add_argument("--person", metavar="COL", help="whose a row is: the guarantee is then about persons")
    group.add_argument("--rows-per-person", type=int, metavar="K", help="how many rows of each person count")


def stated_schema(options: argparse.Namespace) -> Schema:
    """Return the schema in the file that was named, with the persons that were stated beside it."""
    from expost.table.schema import Schema

    schema = Schema.from_toml(options.schema)
    try:
        return schema.with_person(options.person, options.rows_per_person)
    except ValueError as error:
        said = str(error).replace("rows_per_person", "--rows-per-person").replace("without person", "without --person")
        raise ValueError(said) from None


def file_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return them as arguments of the functions that read files."""
    separator = "\t" if options.separator in ("tab", "\\t") else options.separator
    return {name: getattr(options, name) for name in ("decimal", "encoding") if hasattr(options, name)} | {
        "separator": separator
    }


#: Bytes from which on a file without a schema is read in pieces; smaller ones are read whole.
LARGE = 64 << 20
_PACKED = 20  # tables shrink to a twentieth at the least, and what shrinks further is hardly one


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("large tables")
    group.add_argument(
        "--engine",
        default="local",
        choices=("local", "dask"),
        help="who makes passes over the rows: threads here, or a Dask cluster; same result (default: %(default)s)",
    )
    group.add_argument("--scheduler", metavar="ADDRESS", help="of the Dask cluster, such as tcp://10.0.0.1:8786")
    group.add_argument(
        "--memory",
        type=float,
        metavar="MB",
        help="keep rows in memory that take up at most so many megabytes, at 4 bytes a cell (default: 128)",
    )
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="where rows that are too many for memory are kept between passes: encrypted, in a file without a name "
        "whose key is gone with the process (default: where temporary files go, if that is a disk with room)",
    )
    where.add_argument(
        "--no-scratch",
        dest="scratch",
        action="store_false",
        default=None,
        help="write rows nowhere; read the files again for every pass, which takes several times as long",
    )
    group.add_argument(
        "--progress", action="store_true", help="say on stderr how long passes take, also where it is no terminal"
    )


def stated_engine(options: argparse.Namespace) -> Any:
    """Return the engine that was stated."""
    if options.engine == "local":
        if options.scheduler is not None:
            raise ValueError("--scheduler goes with --engine dask")
        if options.memory is None and options.scratch is None:
            return None
        from expost.passes.engine import LocalEngine

        return LocalEngine(memory=options.memory, scratch=options.scratch)
    for name, stated in (("memory", options.memory), ("scratch", options.scratch or None)):
        if stated is not None:
            raise ValueError(f"--{name} goes with --engine local: workers read their parts of the files anew")
    from expost.passes.dask import DaskEngine

    return DaskEngine(options.scheduler)


def _unpacked(path: Path) -> int:
    """Return how many bytes a file may come to: of a packed one, many times its own."""
    return path.stat().st_size * (_PACKED if path.suffix == ".gz" else 1)


def table_on_disk(options: argparse.Namespace) -> TableOnDisk | None:
    """Return a table without a schema that is to be read in pieces; None if it is read whole."""
    engine = stated_engine(options)
    path = options.data
    usual = (options.separator, options.decimal, options.encoding) == (None, ".", "utf-8")
    if engine is None and usual and path.is_file() and _unpacked(path) < LARGE:
        return None
    if not path.exists() and not any(mark in str(path) for mark in "*?["):
        return None
    from expost.table.streamed import TableOnDisk

    table = TableOnDisk(path, options.target, columns=options.columns, engine=engine, **_csv(options))
    if table.y.dtype.kind == "O" and stated_target_type(options) == "number":
        table.y.dtype = _number()  # a CSV file says nothing; the classes that were stated do
    if options.task == "regression" and table.y.dtype.kind not in "biuf":
        raise ValueError(f"target column {options.target!r} is not numeric; is this --task classification?")
    return table


def _csv(options: argparse.Namespace) -> dict[str, Any]:
    stated = file_options(options)
    return {**stated, "separator": stated.get("separator") or ",", "strip": False}


def _number() -> Any:
    import numpy as np

    return np.dtype(np.float64)
