"""Rows of a large table, kept in encrypted files without names so that later passes need not make them again.

Making bounded integers of cells costs several times what reading integers does, and a minimiser makes ten passes. Rows
that are too many for memory are kept on disk in between, unless whoever runs the search forbids it. They are private,
and a disk remembers, so this is promised about the files:

- What is written is encrypted (AES-256-GCM). The key is drawn for these rows and is nowhere but in the memory of the
  process: once that has ended nobody can read what lies in the blocks, on this disk or a copy of it, unless the system
  had written the process's own memory to a disk. Each record has a nonce of its own, its file and its place in it, as
  no place is written twice.
- What is read is what was written: tags are kept in memory, and a record that does not match its own is an error, not
  rows. (Rows beyond their bounds would break every sensitivity.)
- They have no names: where the system can they are made without (``O_TMPFILE``), elsewhere a name is removed as soon as
  its file is open. They may be read and written by their owner only, and are gone when the process ends, however that
  happens.
- Only bounded integers are in them, four bytes a cell, some rows after the other in the order in which threads came by
  them, and each time column by column, as they are made and worked on.
- If there is too little room, rows are read from the table again instead.

There are as many files as threads that write at a time: a system lets one thread at a time write to a file, and those
that wait for it burn their processors meanwhile.

Sums do not depend on the order of rows, so where rows are kept changes no bit of a result.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from expost.exceptions import UnreadableFile
from expost.table.rows import Batch, PrivateRows, RowSource, declared

_CELLS = 1 << 21  # read at a time, as many as of a table: threads that read little wait for each other
_ROWS = 1 << 11  # of which as many as can be are read, as sums are over so many
#: Room that has to be there, in sizes of the file: where somebody said that it may be used, and where nobody did.
STATED, UNSTATED = 1.1, 3.0
_BLOCK = 16  # bytes that AES encrypts at a time
_NONCE = 4, 8  # bytes that say which file it is, and which place in it
_IN_MEMORY = (b"tmpfs", b"ramfs", b"rootfs")  # file systems that are no disk


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
    """Return the system's folder for files that do not last; None if there is none, or it is kept in memory.

    The variable EXPOST_SCRATCH names another, or says "no".
    """
    stated = os.environ.get("EXPOST_SCRATCH", "")
    if stated:
        return None if stated == "no" else scratch_folder(stated)
    try:
        folder = Path(tempfile.gettempdir()).resolve()
    except OSError:
        return None
    try:
        lines = Path("/proc/self/mounts").read_bytes().split(b"\n")
    except OSError:  # not Linux, where it is on a disk
        lines = []
    mounts = [line.split(b" ") for line in lines]
    places = {os.fsdecode(_unescaped(mount[1])): mount[2] for mount in mounts if len(mount) > 2}
    around = next((str(place) for place in (folder, *folder.parents) if str(place) in places), "")
    return None if places.get(around) in _IN_MEMORY else folder


def _unescaped(name: bytes) -> bytes:
    """Return a name in which spaces and the like were written as octal numbers."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), name)


class Record(NamedTuple):
    """Where some rows stand, how many they are, and what tells that they are still the same."""

    file: int
    place: int
    rows: int
    tag: bytes


class Scratch(PrivateRows, RowSource):
    """Encrypted files without names that rows are written to, from any thread.

    Parameters
    ----------
    folder, p, n
        Where there is room, columns of a row, and rows that are expected.
    spare : float
        Room that has to be there, in sizes of all files together.

    Attributes
    ----------
    failed : bool
        Whether rows did not fit; nothing is kept then.
    size : int
        Bytes that were written.
    """

    def __init__(self, folder: Path, p: int, n: int, spare: float = STATED) -> None:
        self.folder, self.n, self.p, self.size = folder, n, p, 0
        self._parts: list[list[Record]] = []
        self._lock, self._most = threading.Lock(), 0.0
        self._files: list[Any] = []
        self._idle: list[tuple[int, int]] = []  # files nobody writes to, and where they end
        self._rooms: list[npt.NDArray[np.uint8]] = []  # memory of records nobody works on: new pages are dear
        self._key = secrets.token_bytes(32)
        self.failed = True
        try:
            self._most = shutil.disk_usage(folder).free / spare
            if self._most >= self._size(n):
                self._idle.append(self._opened())
                self.failed = False
        except OSError:
            pass

    def __repr__(self) -> str:
        return f"Scratch(p={self.p})"

    def __del__(self) -> None:
        for file in getattr(self, "_files", ()):
            file.close()  # which ends it

    def keep(self, batch: Batch) -> None:
        """Write rows, each as often as it counts."""
        size = self._size(batch.rows)
        if not size:
            return
        try:
            with self._lock:
                if self.failed:
                    return
                self.size += size
                if self.size > self._most:  # n was a guess
                    raise OSError("rows are more than was expected")
                file, place = self._idle.pop() if self._idle else self._opened()
            part = []
            step = _step(batch.rows, self.p)
            room = self._borrowed(step)
            for some in batch.pieces(step):
                part.append(Record(file, place, len(some), self._written(some, file, place, room)))
                place += self._size(len(some))
            self._rooms.append(room)
        except OSError:
            self._give_up()
            return
        with self._lock:
            if not self.failed:
                self._parts.append(part)
                self._idle.append((file, place))

    def _opened(self) -> tuple[int, int]:
        """Make one more file; returns which it is, and where it ends."""
        self._files.append(tempfile.TemporaryFile(dir=self.folder, prefix="expost-"))  # noqa: SIM115
        return len(self._files) - 1, 0

    def _written(self, some: Batch, file: int, place: int, room: npt.NDArray[np.uint8]) -> bytes:
        """Write a record, by way of some room for it; returns its tag."""
        raw, x, y = self._cells(room, len(some))
        np.copyto(x, some.x)
        np.copyto(y, some.y)
        cipher = self._cipher(file, place).encryptor()
        cipher.update_into(raw.data, room.data)  # at once, for which it lets other threads go on
        cipher.finalize()
        _write(self._files[file].fileno(), raw, place)
        tag: bytes = cipher.tag
        return tag

    def like(self, source: RowSource) -> Scratch:
        """Say of the rows, once all are kept, what the source says that they were made by."""
        self.n, self.engine = source.n, source.engine
        vars(self).update(declared(source))
        return self

    def parts(self) -> Sequence[Sequence[Record]]:
        """Return runs of rows."""
        return self._parts

    def read(self, part: Sequence[Record]) -> Iterator[Batch]:
        """Yield the rows of a part, some at a time."""
        for record in part:
            yield self._found(record, self._room(record.rows))

    def lent(self, part: Sequence[Record]) -> Iterator[Batch]:
        """Yield the rows of a part, some at a time, each time in the same memory."""
        room = self._borrowed(max(record.rows for record in part))
        for record in part:
            yield self._found(record, room)
        self._rooms.append(room)

    def _found(self, record: Record, room: npt.NDArray[np.uint8]) -> Batch:
        """Read a record into some room for it."""
        from cryptography.exceptions import InvalidTag

        raw, x, y = self._cells(room, record.rows)
        read_into(self._files[record.file].fileno(), raw, record.place)
        cipher = self._cipher(record.file, record.place).decryptor()
        cipher.update_into(raw.data, room.data)
        try:
            cipher.finalize_with_tag(record.tag)
        except InvalidTag:
            raise UnreadableFile("the scratch file is not what was written to it; is the disk damaged?") from None
        return Batch(x, y)

    def _borrowed(self, rows: int) -> npt.NDArray[np.uint8]:
        """Return room for a record that nobody else uses; whoever is done with it puts it back."""
        try:
            room = self._rooms.pop()
        except IndexError:
            return self._room(rows)
        return room if len(room) >= self._size(rows) + _BLOCK - 1 else self._room(rows)

    def _room(self, rows: int) -> npt.NDArray[np.uint8]:
        """Return room for a record, and for what the library asks for beyond it."""
        return np.empty(self._size(rows) + _BLOCK - 1, dtype=np.uint8)

    def _size(self, rows: int) -> int:
        """Return how many bytes a record has."""
        return 4 * rows * (self.p + 1)

    def _cells(
        self, room: npt.NDArray[np.uint8], rows: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the bytes of a record of so many rows, and x and y in them."""
        cells = rows * self.p
        raw = room[: self._size(rows)]
        both = raw.view(np.int32)
        return raw, both[:cells].reshape(self.p, rows).T, both[cells:]

    def _cipher(self, file: int, place: int) -> Any:
        """Return what encrypts and decrypts the record at a place."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # few tables need it

        nonce = b"".join(number.to_bytes(size, "big") for number, size in zip((file, place), _NONCE, strict=True))
        return Cipher(algorithms.AES(self._key), modes.GCM(nonce))

    def _give_up(self) -> None:
        """Keep nothing; other threads may be writing still, so files are emptied and not yet closed."""
        with self._lock:
            self.failed = True
            self._parts = []
            for file in self._files:
                file.truncate(0)


def _step(rows: int, p: int) -> int:
    """Return how many rows a record has, so that records are about as long as each other.

    Examples
    --------
    >>> _step(100_000, 51), _step(32_768, 51), _step(100, 51)
    (34816, 32768, 100)
    """
    most = max(256, _CELLS // p)
    many = -(-rows // (most - most % _ROWS or most))
    step = -(-rows // many)
    return min(rows, step + -step % _ROWS if step > _ROWS else step)


def _write(descriptor: int, array: npt.NDArray[np.uint8], place: int) -> None:
    left = array.data
    while left:
        done = os.pwrite(descriptor, left, place)
        left, place = left[done:], place + done


def read_into(descriptor: int, array: npt.NDArray[np.uint8], place: int) -> None:
    """Fill an array with what stands at a place of a scratch file."""
    left = array.data
    while left:
        done = os.preadv(descriptor, [left], place)
        if not done:
            raise UnreadableFile("the scratch file has come to its end too early")
        left, place = left[done:], place + done
