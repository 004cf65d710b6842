"""Which process holds a reservation, and whether it may still be running.

A decision that charges less than the worst case is right only if the search is over. Nothing is proved by what stands
here: it keeps people from settling a search that is visibly still running.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process by host and number, and by when it was started where the system tells: numbers are used again."""

    host: str
    pid: int
    started: str | None = None

    @classmethod
    def this(cls) -> Process:
        """Return the process that asks."""
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()))

    @property
    def here(self) -> bool:
        """Whether it ran on this host, as far as its name tells."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> bool:
        """Whether it is running on this host now.

        Examples
        --------
        >>> Process.this().alive, Process(socket.gethostname(), os.getpid(), "another boot").alive
        (True, False)
        """
        if not self.here or not _exists(self.pid):
            return False
        now = _started(self.pid)
        return None in (now, self.started) or now == self.started

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Process:
        """Read what :meth:`to_json` wrote; anything else is a ``ValueError``."""
        try:
            read = cls(**json.loads(text))
        except (TypeError, RecursionError):
            raise ValueError("not a process") from None
        named = isinstance(read.host, str) and isinstance(read.started, str | None)
        if not named or type(read.pid) is not int or not 0 < read.pid < 2**31:
            raise ValueError("not a process")
        return read


def user() -> str:
    """Return who is asking, by the name of the account."""
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # an account without a name, as in some containers
        return "unknown"


def _exists(pid: int) -> bool:
    if os.name != "posix":
        return False  # a signal would end it there; it is not seen to be running
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return True


def _started(pid: int) -> str | None:
    """Return the boot and the clock tick at which a process began; Linux alone tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # the name of the command, in brackets, may hold spaces and brackets itself
        return f"{boot} {Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None
