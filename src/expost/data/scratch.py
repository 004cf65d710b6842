"""Rows of a large table, written once to a file without a name, so that later passes need not make them again.

Making bounded integers of cells costs several times what reading integers does, and a minimiser makes ten passes. Rows
that are too many for memory may be kept on disk in between, if whoever runs the search says where: they are private,
and a disk remembers. What is promised about the file:

- It has no name: where the system can it is made without one (``O_TMPFILE``), elsewhere the name is removed as soon as
  the file is open. Nobody else can open it, it may be read and written by its owner only, and it is gone when the
  process ends, however that happens. What lay in its blocks is not overwritten: state a folder on an encrypted disk, or
  one that is kept in memory.
- Only bounded integers are in it, four bytes a cell, in the order in which threads came by them.
- If there is too little room, rows are read from the table again instead.

Sums do not depend on the order of rows, so where rows are kept changes no bit of a result.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, RowSource

__all__ = ["Scratch", "ScratchSource", "scratch_folder"]

_CELLS = 1 << 19  # read at a time: two megabytes, which caches hold
_SPARE = 1.1  # room that has to be there, in sizes of the file


def scratch_folder(folder: str | os.PathLike[str]) -> Path:
    """Return a folder that files may be made in, or complain.

    Examples
    --------
    >>> scratch_folder("no such folder")
    Traceback (most recent call last):
    ValueError: scratch must be a folder that can be written to; no such folder is none
    """
    path = Path(folder)
    if not path.is_dir() or not os.access(path, os.W_OK):
        raise ValueError(f"scratch must be a folder that can be written to; {path} is none")
    return path


class Scratch:
    """A file without a name that rows are written to, from any thread.

    Parameters
    ----------
    folder : Path
        Where there is room.
    p : int
        Columns of a row.
    n : int
        Rows that are expected.

    Attributes
    ----------
    failed : bool
        Whether rows did not fit; nothing is kept then.

    Examples
    --------
    >>> scratch = Scratch(Path(tempfile.gettempdir()), 2, 3)
    >>> scratch.keep(Batch(np.arange(6, dtype=np.int32).reshape(3, 2), np.zeros(3, dtype=np.int32)))
    >>> [batch.x.tolist() for part in scratch.parts for batch in scratch.read(part)]
    [[[0, 1], [2, 3], [4, 5]]]
    """

    def __init__(self, folder: Path, p: int, n: int) -> None:
        self.p = p
        self.parts: list[tuple[int, int]] = []  # place in the file, rows
        self._lock, self._end = threading.Lock(), 0
        self._file: Any = None
        try:
            if shutil.disk_usage(folder).free >= _SPARE * 4 * n * (p + 1):
                self._file = tempfile.TemporaryFile(dir=folder, prefix="expost-")  # noqa: SIM115
        except OSError:
            pass
        self.failed = self._file is None

    def __repr__(self) -> str:
        return f"Scratch(p={self.p})"

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()  # which ends it

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")

    def keep(self, batch: Batch) -> None:
        """Write rows, each as often as it counts."""
        batch = batch.repeated()
        size = 4 * len(batch) * (self.p + 1)
        with self._lock:
            if self.failed or not len(batch):
                return
            place, self._end = self._end, self._end + size
            self.parts.append((place, len(batch)))
        try:
            for array in (batch.x, batch.y):
                _write(self._file.fileno(), array, place)
                place += array.nbytes
        except OSError:
            self._give_up()

    def read(self, part: tuple[int, int]) -> Iterator[Batch]:
        """Yield the rows of a part, some at a time."""
        place, rows = part
        step = max(256, _CELLS // self.p)
        for start in range(0, rows, step):
            size = min(step, rows - start)
            x, y = np.empty((size, self.p), dtype=np.int32), np.empty(size, dtype=np.int32)
            _read(self._file.fileno(), x, place + 4 * start * self.p)
            _read(self._file.fileno(), y, place + 4 * (rows * self.p + start))
            yield Batch(x, y)

    def _give_up(self) -> None:
        """Keep nothing; other threads may be writing still, so the file is emptied and not yet closed."""
        with self._lock:
            self.failed = True
            self.parts = []
            self._file.truncate(0)


class ScratchSource(RowSource):
    """Rows on a scratch file.

    Parameters
    ----------
    scratch : Scratch
        Where they are.
    like : RowSource
        What they were made by.
    """

    def __init__(self, scratch: Scratch, like: RowSource) -> None:
        self.n, self.p, self.norm, self.shape, self.engine = like.n, like.p, like.norm, like.shape, like.engine
        self._scratch = scratch

    def parts(self) -> Sequence[tuple[int, int]]:
        """Return runs of rows."""
        return self._scratch.parts

    def read(self, part: tuple[int, int]) -> Iterator[Batch]:
        """Yield rows."""
        return self._scratch.read(part)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("rows are private: they cannot be pickled or copied out of the process")


def _write(descriptor: int, array: npt.NDArray[np.int32], place: int) -> None:
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        done = os.pwrite(descriptor, left, place)
        left, place = left[done:], place + done


def _read(descriptor: int, array: npt.NDArray[np.int32], place: int) -> None:
    left = array.reshape(-1).view(np.uint8).data
    while left:
        done = os.preadv(descriptor, [left], place)
        if not done:
            raise OSError("the scratch file has come to its end too early")
        left, place = left[done:], place + done
