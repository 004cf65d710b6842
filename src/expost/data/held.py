"""Files held open while they are read again and again: one that is moved away does not stop a search."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa

from expost.exceptions import UnreadableFile

__all__ = ["Held"]

_MOST = 64  # files held open; others are opened anew for each pass
_LOCK = threading.Lock()
_COUNT = [0]


class Held:
    """A file, opened when it is first read and the same to the end: a change in between is noticed.

    It travels to other machines as its path, and is opened there.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None
        self._stamp = self._look()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            with _LOCK:
                _COUNT[0] -= 1

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_stamp": self._stamp, "_file": None}

    def _look(self) -> tuple[int, int]:
        try:
            state = os.stat(self.path)
        except OSError:
            raise UnreadableFile(f"there is no file {self.path}, or it is out of reach") from None
        return state.st_size, state.st_mtime_ns

    def opened(self) -> Any:
        """Return the file, open for reading at any place, from any thread."""
        with _LOCK:
            if self._file is not None:
                file = self._file
                if self.path.exists() and self._look() != self._stamp:
                    raise UnreadableFile(f"{self.path} has changed since it was first looked at")
            else:
                if self._look() != self._stamp:
                    raise UnreadableFile(f"{self.path} has changed since it was first looked at")
                file = _open(self.path)
                if _COUNT[0] < _MOST:
                    self._file = file
                    _COUNT[0] += 1
        return file


def _open(path: Path) -> Any:
    try:
        return pa.OSFile(str(path), "rb")
    except OSError:
        pass
    raise UnreadableFile(f"{path} could not be opened")
