"""``expost key``: a key for what only the curator may open."""

from __future__ import annotations

import argparse
from pathlib import Path

from expost.cli.terminal import complain, print_line

DESCRIPTION = (
    "Write a new key to a new file that its owner alone may read. Paths kept by expost fit --keep-path are sealed with "
    "it: keep it apart from them."
)
EXAMPLES = ("expost key curator.key",)
EXITS = {0: "written", 2: "a mistake in the arguments; nothing was written"}


def add_arguments(key: argparse.ArgumentParser) -> None:
    """Add the options."""
    key.add_argument("file", type=Path, help="where to; a file that is there already is not replaced")


def run(options: argparse.Namespace) -> int:
    """Write a key; returns the exit status."""
    from expost.release.kept_path import write_key

    try:
        write_key(options.file)
    except FileExistsError:
        return complain(f"{options.file} is there already; name another file")
    except OSError as error:
        return complain(f"{options.file} could not be written ({error.strerror})")
    print_line(f"{options.file} is a new key. Whoever has it can open the paths that are sealed with it.")
    return 0
