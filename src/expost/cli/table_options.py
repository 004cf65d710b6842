"""Options that say how a CSV file is written, and whose its rows are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.data.schema import Schema


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
    from expost.data.schema import Schema

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
