"""Files that are written whole or not at all, whenever the process is killed or the disk is full."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: str | bytes, *, force: bool = False, mode: int = 0o666) -> None:
    """Write a file completely or not at all; FileExistsError if one is there and ``force`` is not given."""
    with whole_file(path, force=force, mode=mode) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def whole_file(path: Path, *, force: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Give a stream to write a file to, which gets its name at the end, and none if something went wrong before.

    Where the system can it is made without a name (``O_TMPFILE``) and gets its own in one step, so that nothing is left
    of it if the process is killed. Elsewhere, and for the moment in which it takes the place of another, it has a
    hidden one, ``.expost-`` and sixteen digits, which a kill may leave.

    ``mode`` says who may read it, from its first moment on, as far as the mask of the process lets them.
    """
    folder = path.absolute().parent
    spare = folder / f".expost-{secrets.token_hex(8)}"  # short: where the file's own name fits, this one does
    try:
        handle, named = _made(folder, spare, mode)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if not named and _linked(handle, path):
                return
            if not named and force:
                _linked(handle, spare)
        if force:
            os.replace(spare, path)
        elif named:
            _put_if_new(spare, path)
        else:
            raise FileExistsError(f"{path} is there already")
    except OSError as error:
        if error.strerror is not None and error.filename in (None, spare, str(spare)):
            error.filename = str(path)
        raise
    finally:
        spare.unlink(missing_ok=True)


def _made(folder: Path, spare: Path, mode: int) -> tuple[int, bool]:
    """Return a new file to write to, without a name if that is possible, and whether it has the spare one."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # a file system that cannot
            return os.open(folder, os.O_TMPFILE | os.O_WRONLY, mode), False
    return os.open(spare, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode), True


def _linked(handle: int, path: Path) -> bool:
    """Give a file without a name one, in one step, and return whether it was free."""
    try:
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle)  # the argument lets it follow the link
    except FileExistsError:
        return False
    return True


def _put_if_new(name: Path, path: Path) -> None:
    """Give a finished file its name, unless that has been taken meanwhile."""
    linked = False
    with contextlib.suppress(OSError):
        os.link(name, path)  # fails, in one step, if the name is taken
        linked = True
    if linked:
        return
    if os.path.lexists(path):
        raise FileExistsError(f"{path} is there already")
    os.replace(name, path)  # a file system without links
