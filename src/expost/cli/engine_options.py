"""Options that say who reads the rows, and which tables are read in pieces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.options import stated_target_type
from expost.cli.table_options import file_options

if TYPE_CHECKING:
    from expost.data.on_disk import TableOnDisk

#: Bytes from which on a file without a schema is read in pieces; smaller ones are read whole.
LARGE = 64 << 20


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
        from expost.engines import LocalEngine

        return LocalEngine(memory=options.memory, scratch=options.scratch)
    for name, stated in (("memory", options.memory), ("scratch", options.scratch or None)):
        if stated is not None:
            raise ValueError(f"--{name} goes with --engine local: workers read their parts of the files anew")
    from expost.engines.dask import DaskEngine

    return DaskEngine(options.scheduler)


def table_on_disk(options: argparse.Namespace) -> TableOnDisk | None:
    """Return a table without a schema that is to be read in pieces; None if it is read whole."""
    engine = stated_engine(options)
    path = options.data
    usual = (options.separator, options.decimal, options.encoding) == (None, ".", "utf-8")
    if engine is None and usual and path.is_file() and path.stat().st_size < LARGE:
        return None
    if not path.exists() and not any(mark in str(path) for mark in "*?["):
        return None
    from expost.data.on_disk import TableOnDisk

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
