"""Commands in processes of their own, which are killed at a call or at a moment, and mounts that nobody else sees.

Processes are forked, so that they begin with the command and not with imports. System calls are counted by ``ptrace``
(Linux on x86-64): between two of those that change a file nothing on the disk changes, so a kill before each of them is
a kill at every moment, as far as files tell.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 120  # no command takes that long

_LIBC = ctypes.CDLL(None, use_errno=True)
_COUNTED = sys.platform == "linux" and platform.machine() == "x86_64"
if _COUNTED:
    _LIBC.ptrace.restype = ctypes.c_long
    _LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_TRACEME, _SYSCALL, _OPTIONS, _INFO = 0, 24, 0x4200, 0x420E
_EACH_CALL_AND_NO_ORPHANS = 0x1 | 0x100000
_OPEN, _OPENAT = 2, 257
#: write, pwrite64, writev, fsync, fdatasync, (f)truncate, rename(at, at2), mkdir(at), link(at), unlink(at)
_CHANGING = {1, 18, 20, 74, 75, 76, 77, 82, 83, 86, 87, 258, 263, 264, 265, 316}
_MAKING = os.O_CREAT | os.O_TRUNC | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY


@dataclass(frozen=True)
class Ran:
    """How a process ended: its status (below zero by a signal), the calls counted, and what it said."""

    status: int
    calls: int
    seconds: float
    drawn: bool
    out: str
    err: str


#: Where the processes that were started are read from: what they print, and what they complain of.
_SAID: dict[int, tuple[int, int]] = {}


def start(command: Sequence[str], case: Path, before: Callable[[], None] | None = None, traced: bool = False) -> int:
    """Run a command in a new process in the folder of a case; returns its number."""
    pipes = os.pipe(), os.pipe()  # on which no disk is full
    pid = os.fork()
    if pid:
        for _, writing in pipes:
            os.close(writing)
        _SAID[pid] = pipes[0][0], pipes[1][0]
        return pid
    status = 70
    try:
        signal.alarm(SECONDS)
        for number, (reading, writing) in enumerate(pipes, start=1):
            os.close(reading)
            os.dup2(writing, number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        os.chdir(case)
        os.environ["TMPDIR"], tempfile.tempdir = str(case / "tmp"), None
        _tell_draws(case.parent / f"drawn-{os.getpid()}")
        if before is not None:
            before()
        if traced:
            if _LIBC.ptrace(_TRACEME, 0, None, None):
                os._exit(72)  # it is not allowed here
            os.kill(os.getpid(), signal.SIGSTOP)
        from expost.cli import main

        try:
            status = main(list(command))
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 71
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    except BaseException:
        traceback.print_exc()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
    finally:
        os._exit(status)


def _tell_draws(mark: Path) -> None:
    """Leave a mark before the first noise is drawn in this process, so that it never tells too little."""
    from expost.noise.source import SecureSource

    words = SecureSource.words

    def draw(self: Any, count: int) -> Any:
        SecureSource.words = words
        mark.touch()
        return words(self, count)

    SecureSource.words = draw


def ended(pid: int, case: Path, status: int, calls: int, since: float) -> Ran:
    """Return how a process ended, and what it said."""
    texts = []
    for reading in _SAID.pop(pid):
        with open(reading, encoding="utf-8", errors="replace") as said:
            texts.append(said.read())
    drawn = (case.parent / f"drawn-{pid}").exists()
    return Ran(os.waitstatus_to_exitcode(status), calls, time.monotonic() - since, drawn, *texts)


def run(command: Sequence[str], case: Path, *, after: float | None = None, **options: Any) -> Ran:
    """Run a command to its end, or kill it after so many seconds."""
    since = time.monotonic()
    pid = start(command, case, **options)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)  # nobody has waited for it, so its number is its own
    return ended(pid, case, os.waitpid(pid, 0)[1], 0, since)


def run_traced(command: Sequence[str], case: Path, at: int = 0) -> Ran:
    """Run a command, count the calls that change a file, and kill it before the one numbered ``at``.

    None are counted where that is not allowed.
    """
    if not _COUNTED:
        return run(command, case)
    since, calls = time.monotonic(), 0
    pid = start(command, case, traced=True)
    _, status = os.waitpid(pid, 0)
    _LIBC.ptrace(_OPTIONS, pid, None, _EACH_CALL_AND_NO_ORPHANS)
    said, passed = ctypes.create_string_buffer(88), 0
    while os.WIFSTOPPED(status):
        _LIBC.ptrace(_SYSCALL, pid, None, passed)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            break
        passed = 0 if os.WSTOPSIG(status) in (signal.SIGTRAP | 0x80, signal.SIGSTOP) else os.WSTOPSIG(status)
        if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
            _LIBC.ptrace(_INFO, pid, 88, ctypes.addressof(said))
            number, *given = (int.from_bytes(said.raw[k : k + 8], "little") for k in range(24, 80, 8))
            opens = (number == _OPENAT and given[2] & _MAKING) or (number == _OPEN and given[1] & _MAKING)
            if said.raw[0] == 1 and (opens or number in _CHANGING):
                calls += 1
                if calls == at:
                    os.kill(pid, signal.SIGKILL)
    return ended(pid, case, status, calls, since)


# --- mounts that nobody else sees, if this is root -------------------------------------------------------------------

_NEW_NAMES, _PRIVATE, _BIND, _AGAIN_READ_ONLY = 0x20000, 0x4000 | 1 << 18, 0x1000, 0x20 | 0x1000 | 0x1


def alone() -> None:
    """Let mounts of this process be its own."""
    if sys.platform == "linux" and os.geteuid() == 0 and _LIBC.unshare(_NEW_NAMES) == 0:
        _LIBC.mount(b"none", b"/", None, _PRIVATE, None)
        alone.done = True


def mount(what: bytes | None, place: Path, options: bytes | None) -> bool:
    """Mount something on a folder, or the folder on itself so that it can only be read; returns whether it was."""
    if not getattr(alone, "done", False):
        return False
    name = os.fsencode(place)
    if what is not None:
        return bool(_LIBC.mount(what, name, what, 0, options) == 0)
    return bool(
        _LIBC.mount(name, name, None, _BIND, None) == 0 == _LIBC.mount(None, name, None, _AGAIN_READ_ONLY, None)
    )


def unmount(place: Path) -> bool:
    """Undo the mount on a folder; returns whether there was one."""
    return bool(getattr(alone, "done", False) and _LIBC.umount2(os.fsencode(place), 0) == 0)
