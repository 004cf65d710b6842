"""Signs of life on stderr for work that takes more than a second; nothing about the data, only stages and time."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

_PATIENCE = 1.0


class Progress:
    """Report the current stage once a run has lasted a second, and keep the clock going on a terminal.

    Examples
    --------
    >>> with Progress(sys.stdout) as progress:
    ...     progress.stage("quick work")  # over before the first second: silent
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._stage, self._shown = "", ""
        self._started = time.monotonic()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def stage(self, name: str) -> None:
        """Name what is being done now."""
        self._stage = name

    def _tick(self) -> None:
        live = self._stream.isatty()
        while not self._finished.wait(_PATIENCE if not live else 0.5):
            elapsed = time.monotonic() - self._started
            if elapsed < _PATIENCE:
                continue
            if live:
                self._stream.write(f"\r\033[K{self._stage} … {elapsed:.0f} s")
                self._shown = self._stage
            elif self._shown != self._stage:
                self._shown = self._stage
                self._stream.write(f"{self._stage} … ({elapsed:.0f} s)\n")
            self._stream.flush()
        if live and self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finished.set()
        self._thread.join()
