"""``expost key``: a key for what only the curator may open."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from expost.cli.command import WRONG

DESCRIPTION = (
    "Write a new key to a new file that its owner alone may read. Paths kept by expost fit --keep-path are sealed with "
    "it: keep it apart from them. Example: expost key curator.key. Exit status: 0 written, 2 an error."
)


def add_arguments(key: argparse.ArgumentParser) -> None:
    """Add the options."""
    key.add_argument("file", type=Path, help="where to; a file that is there already is not replaced")


def run(options: argparse.Namespace) -> int:
    """Write a key; returns the exit status."""
    from expost.privacy.sealed import write_key

    try:
        write_key(options.file)
    except FileExistsError:
        print(f"expost: {options.file} is there already; name another file", file=sys.stderr)
        return WRONG
    except OSError as error:
        print(f"expost: {options.file} could not be written ({error.strerror})", file=sys.stderr)
        return WRONG
    print(f"{options.file} is a new key. Whoever has it can open the paths that are sealed with it.")
    return 0
