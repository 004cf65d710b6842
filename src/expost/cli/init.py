"""``expost init``: a schema to fill in."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from expost.cli.options import DATA, add_file_options, check_tables, file_options
from expost.cli.output import check_output
from expost.cli.terminal import print_line
from expost.table.formats import CSV, TABS, TEXT, database_in, ends, file_of
from expost.whole import write_whole

DESCRIPTION = (
    "Draft a schema for a file, from the names of its columns and their declared types. No row is looked at: bounds "
    "and categories are blanks to fill in with what is publicly known."
)
EXAMPLES = ("expost init census.csv --output census.toml",)
EXITS = {0: "the draft is written", 2: "a mistake in the arguments or the file; nothing was written"}


def add_arguments(init: argparse.ArgumentParser) -> None:
    """Add the options."""
    init.add_argument("data", type=Path, help=f"{DATA}, of which the first is looked at")
    init.add_argument(
        "--output", type=Path, default=Path("schema.toml"), metavar="FILE", help="where to (default: %(default)s)"
    )
    init.add_argument("--force", action="store_true", help="replace FILE if it is there already")
    add_file_options(init, decimal=False)


def run(options: argparse.Namespace) -> int:
    """Write the draft to a new file; returns the exit status."""
    check_tables(options.data)
    check_output(options.output, force=options.force, inputs=(file_of(options.data),))
    from expost.table.schema import draft

    write_whole(options.output, draft(options.data, **file_options(options)), force=options.force)
    print_line(f"{options.output} is a draft. Fill in its blanks, then see how the table fits:")
    data, schema = shlex.quote(str(options.data)), shlex.quote(str(options.output))
    print(f"  expost check {data} --schema {schema}{_how_written(options)}")
    return 0


def _how_written(options: argparse.Namespace) -> str:
    """Return the options with which the file has to be read again; semicolons mostly mean decimal commas."""
    said = "" if options.separator is None else f" --separator {shlex.quote(options.separator)}"
    if options.encoding != "utf-8":
        said += f" --encoding {shlex.quote(options.encoding)}"
    for option in ("query", "sheet"):
        stated = getattr(options, option)
        said += "" if stated is None else f" --{option} {shlex.quote(stated)}"
    if database_in(options.data):
        return said
    from expost.table.csv_lines import CsvFile
    from expost.table.files import found_files

    file = found_files(options.data)[0]
    if not ends(file, CSV + TABS + TEXT):
        return said
    separator = "\t" if ends(file, TABS) else file_options(options)["separator"]
    first = CsvFile(file, separator=separator, encoding=options.encoding)
    return f"{said} --decimal ,    (without --decimal if there is a point)" if first.separator == ";" else said
