"""Which files a path means: a file, all tables in a folder, or those that a pattern fits."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from expost.data.files import CSV, PARQUET

__all__ = ["found_files", "is_parquet"]


def found_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return files of a table in the order of their names; nothing is opened.

    Parameters
    ----------
    path : str or path
        A file ending in ``.csv``, ``.csv.gz``, ``.parquet`` or ``.pq``; a folder, of which all such files are meant,
        those in folders within it too; or a pattern with ``*``, ``?`` or ``**``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If a name does not tell the type, or a folder holds files of both types.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     [file.name for file in found_files(folder)]
    ['a.csv', 'b.csv']
    """
    path = Path(path)
    if path.is_dir():
        inside = [file for file in sorted(path.rglob("*")) if file.is_file() and _ends(file, CSV + PARQUET)]
        files = [file for file in inside if not file.name.startswith((".", "_"))]
        if not files:
            raise FileNotFoundError(f"there is no file ending in {', '.join(CSV + PARQUET)} in the folder {path}")
        _require_one_type(path, files)
        return files
    if path.is_file():
        files = [path]
    elif any(mark in str(path) for mark in "*?["):
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file())
        if not files:
            raise FileNotFoundError(f"there is no file {path}")
    else:
        raise FileNotFoundError(f"there is no file {path}")
    for file in files:
        if not _ends(file, CSV + PARQUET):
            raise ValueError(f"cannot tell the type of {file}; its name must end in {', '.join(CSV + PARQUET)}")
    return files


def is_parquet(file: Path) -> bool:
    """Whether a file is Parquet, by its name."""
    return _ends(file, PARQUET)


def _require_one_type(folder: Path, files: list[Path]) -> None:
    """Complain about a folder in which the same rows may stand twice, once in each type."""
    if len({is_parquet(file) for file in files}) == 1:
        return
    inner = "" if all(file.parent == folder for file in files) else "**/"
    endings = [ending for ending in CSV + PARQUET if any(_ends(file, (ending,)) for file in files)]
    patterns = " or ".join(f"'{folder}/{inner}*{ending}'" for ending in endings)
    raise ValueError(
        f"{folder} holds both CSV and Parquet files, and the same rows might count twice; pass a pattern that says "
        f"which are meant, such as {patterns}"
    )


def _ends(file: Path, endings: tuple[str, ...]) -> bool:
    return file.name.lower().endswith(endings)
