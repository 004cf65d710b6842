"""Files to read and folders to write to: what is wrong with one is said before anything is imported.

Nothing is read here but names and permissions, which are public.
"""

from __future__ import annotations

import os
from pathlib import Path

ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


def check_tables(path: Path) -> None:
    """Complain about a file, folder or pattern of tables that cannot be read."""
    if not path.is_dir() and (path.exists() or not any(mark in str(path) for mark in "*?[")):
        check_table(path)


def check_table(path: Path) -> None:
    """Complain about a table that cannot be read: none, a folder, no permission, of an unknown kind."""
    check_input(path)
    if not path.name.lower().endswith(ENDINGS):
        raise ValueError(f"cannot tell the type of {path}; its name must end in {', '.join(ENDINGS)}")


def check_input(path: Path, what: str = "file", hint: str = "") -> None:
    """Complain about a file that cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a {what}")
    if not path.exists():
        raise ValueError(f"there is no {what} {path}{hint}")
    if not path.is_file():
        raise ValueError(f"{path} is not an ordinary file")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path} cannot be read: permission denied")


def check_schema(path: Path) -> None:
    """Complain about a schema that cannot be read."""
    check_input(path, "schema", "; expost init drafts one")


def check_release(path: Path) -> None:
    """Complain about a release that cannot be read."""
    check_input(path, "release", "; expost fit saves one")


def check_folder(path: Path) -> None:
    """Complain about a folder to write to that is a file, or cannot be made."""
    there = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
    if not there.is_dir():
        raise ValueError(f"{there} is a file; --output must name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{there} cannot be written to")
