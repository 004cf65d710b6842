"""``expost init``: a schema to fill in."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from expost.cli.command import WRONG
from expost.cli.table_options import add_file_options, file_options

DESCRIPTION = (
    "Draft a schema for a file, from the names of its columns and their declared types. No row is looked at: bounds "
    "and categories are blanks to fill in with what is publicly known."
)


def add_arguments(init: argparse.ArgumentParser) -> None:
    """Add the options."""
    init.add_argument("data", type=Path, help="a .csv, .csv.gz or .parquet file")
    init.add_argument(
        "--output", type=Path, default=Path("schema.toml"), metavar="FILE", help="where to (default: %(default)s)"
    )
    add_file_options(init, decimal=False)


def run(options: argparse.Namespace) -> int:
    """Write the draft to a new file; returns the exit status."""
    from expost.data.draft import draft

    try:
        text = draft(options.data, **file_options(options))
        with options.output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        print(f"expost: {options.output} is there already; name another file with --output", file=sys.stderr)
        return WRONG
    except (ValueError, OSError) as error:
        print(f"expost: {' '.join(str(error).split())}", file=sys.stderr)
        return WRONG
    print(f"{options.output} is a draft. Fill in its blanks, then see how the table fits:")
    print(f"  expost check {options.data} --schema {options.output}")
    return 0
