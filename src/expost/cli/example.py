"""``expost example``: a generated table and its schema, to try every other command on."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost.cli.output import check_output
from expost.cli.terminal import print_line
from expost.whole import whole_file

DESCRIPTION = (
    "Write a generated table and its schema to the current folder. The rows are nobody's and the same every time, so "
    "everything may be tried on them."
)
EXAMPLES = ("expost example survey", "expost fit survey.csv --schema survey.toml --error-rate 0.20")
EXITS = {0: "both files are written", 2: "a mistake in the arguments, or a file is there already; nothing was written"}
# every example by its name, and what it is about
EXAMPLE_TABLES = {"survey": "households, with numbers, text and missing cells: are they satisfied?"}


def add_arguments(example: argparse.ArgumentParser) -> None:
    """Add the options."""
    about = "; ".join(f"{name}: {what}" for name, what in EXAMPLE_TABLES.items())
    example.add_argument("name", choices=list(EXAMPLE_TABLES), help=about)
    example.add_argument("--rows", type=int, default=20_000, metavar="N", help="how many rows (default: 20,000)")
    example.add_argument(
        "--output", type=Path, default=Path(), metavar="DIR", help="folder to write to (default: this one)"
    )
    example.add_argument("--force", action="store_true", help="replace the files if they are there already")


def run(options: argparse.Namespace) -> int:
    """Write both files; returns the exit status."""
    table, schema = (options.output / f"{options.name}{ending}" for ending in (".csv", ".toml"))
    for path in (table, schema):
        check_output(path, force=options.force)
    from expost.datasets.survey import survey_csv, survey_toml

    with whole_file(schema, force=options.force) as described, whole_file(table, force=options.force) as rows:
        described.write(survey_toml().encode())
        rows.write(survey_csv(options.rows).encode())
    print_line(f"{table} has {options.rows:,} generated rows, {schema} says what is publicly known about them. Next:")
    print(f"  expost fit {table} --schema {schema} --error-rate 0.20")
    return 0
