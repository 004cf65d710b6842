"""Rows of a large table, kept in an encrypted file without a name so that later passes need not make them again.

Making bounded integers of cells costs several times what reading integers does, and a minimiser makes ten passes. Rows
that are too many for memory are kept on disk in between, unless whoever runs the search forbids it. They are private,
and a disk remembers, so this is promised about the file:

- What is written is encrypted (AES-256 in counter mode). The key is drawn for this one file and is nowhere but in the
  memory of the process: once that has ended nobody can read what lies in the blocks, on this disk or a copy of it. No
  byte of the keystream is used twice, as no place is written twice.
- It has no name: where the system can it is made without one (``O_TMPFILE``), elsewhere the name is removed as soon as
  the file is open. It may be read and written by its owner only, and it is gone when the process ends, however that
  happens.
- Only bounded integers are in it, four bytes a cell, in the order in which threads came by them.
- If there is too little room, rows are read from the table again instead.

Sums do not depend on the order of rows, so where rows are kept changes no bit of a result.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, RowSource

__all__ = ["STATED", "UNSTATED", "Scratch", "ScratchSource", "scratch_folder", "usual_folder"]

_CELLS = 1 << 19  # read at a time: two megabytes, which caches hold
_ROWS = 1 << 11  # of which as many as can be are read, as sums are over so many
#: Room that has to be there, in sizes of the file: where somebody said that it may be used, and where nobody did.
STATED, UNSTATED = 1.1, 3.0
_BLOCK, _PIECE = 16, 1 << 18  # bytes that AES encrypts at a time, and that are written at a time
_IN_MEMORY = ("tmpfs", "ramfs")  # file systems that are no disk


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


def usual_folder() -> Path | None:
    """Return the system's folder for files that do not last; None if it is kept in memory, which rows do not fit."""
    folder = Path(tempfile.gettempdir()).resolve()
    try:
        mounts = [line.split(" ") for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:  # not Linux, where it is on a disk
        mounts = []
    places = {Path(where.replace("\\040", " ")): kind for _, where, kind, *_ in mounts}
    return None if places.get(_nearest(folder, places), "") in _IN_MEMORY else folder


def _nearest(folder: Path, places: Mapping[Path, str]) -> Path:
    return next((place for place in (folder, *folder.parents) if place in places), folder)


class Scratch:
    """An encrypted file without a name that rows are written to, from any thread.

    Parameters
    ----------
    folder : Path
        Where there is room.
    p : int
        Columns of a row.
    n : int
        Rows that are expected.
    spare : float
        Room that has to be there, in sizes of the file.

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

    def __init__(self, folder: Path, p: int, n: int, spare: float = STATED) -> None:
        self.p = p
        self.parts: list[tuple[int, int]] = []  # place in the file, rows
        self._lock, self._end = threading.Lock(), 0
        self._file: Any = None
        self._key = secrets.token_bytes(32)
        try:
            if shutil.disk_usage(folder).free >= spare * 4 * n * (p + 1):
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
                self._write(np.ascontiguousarray(array).reshape(-1).view(np.uint8), place)
                place += array.nbytes
        except OSError:
            self._give_up()

    def read(self, part: tuple[int, int]) -> Iterator[Batch]:
        """Yield the rows of a part, some at a time."""
        place, rows = part
        step = max(256, _CELLS // self.p)
        step = step - step % _ROWS or step
        for start in range(0, rows, step):
            size = min(step, rows - start)
            x = self._decrypted(size * self.p, place + 4 * start * self.p)
            yield Batch(x.reshape(size, self.p), self._decrypted(size, place + 4 * (rows * self.p + start)))

    def _decrypted(self, cells: int, place: int) -> npt.NDArray[np.int32]:
        """Return numbers that stand at a place."""
        room = np.empty(4 * cells + _BLOCK - 1, dtype=np.uint8)
        _read(self._file.fileno(), room[: 4 * cells], place)
        self._keystream(place).update_into(room[: 4 * cells].data, room.data)  # where it stands
        return room[: 4 * cells].view(np.int32)

    def _write(self, raw: npt.NDArray[np.uint8], place: int) -> None:
        """Write bytes to a place, encrypted some at a time: in memory that is new each time it takes twice as long."""
        cipher = self._keystream(place)
        room = np.empty(min(raw.size, _PIECE) + _BLOCK - 1, dtype=np.uint8)
        for start in range(0, raw.size, _PIECE):
            done = cipher.update_into(raw[start : start + _PIECE].data, room.data)
            _write(self._file.fileno(), room[:done], place + start)

    def _keystream(self, place: int) -> Any:
        """Return what encrypts from a place on, and decrypts: the same keystream takes itself away."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # few tables need it

        cipher = Cipher(algorithms.AES(self._key), modes.CTR((place // _BLOCK).to_bytes(_BLOCK, "big"))).encryptor()
        cipher.update(bytes(place % _BLOCK))
        return cipher

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


def _write(descriptor: int, array: npt.NDArray[np.uint8], place: int) -> None:
    left = array.data
    while left:
        done = os.pwrite(descriptor, left, place)
        left, place = left[done:], place + done


def _read(descriptor: int, array: npt.NDArray[np.uint8], place: int) -> None:
    left = array.data
    while left:
        done = os.preadv(descriptor, [left], place)
        if not done:
            raise OSError("the scratch file has come to its end too early")
        left, place = left[done:], place + done
