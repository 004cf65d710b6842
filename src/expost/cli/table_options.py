"""Options that say how a CSV file is written."""

from __future__ import annotations

import argparse
from typing import Any


def add_file_options(parser: argparse.ArgumentParser, *, decimal: bool = True) -> None:
    """Add the options of CSV files."""
    group = parser.add_argument_group("CSV files")
    group.add_argument(
        "--separator", metavar="CHAR", help="between cells, or the word tab (default: as the first line has it)"
    )
    if decimal:
        group.add_argument("--decimal", default=".", choices=(".", ","), help="before fractions (default: a point)")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="(default: %(default)s)")


def file_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return them as arguments of the functions that read files."""
    separator = "\t" if options.separator in ("tab", "\\t") else options.separator
    return {name: getattr(options, name) for name in ("decimal", "encoding") if hasattr(options, name)} | {
        "separator": separator
    }
