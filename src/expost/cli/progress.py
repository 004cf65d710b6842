"""Signs of life on stderr for work that takes more than a second: stages, passes over the rows and time.

Nothing is said about what is in the rows. How many passes there are does depend on them, as does the time they take: it
is for the curator who runs the command.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import AbstractContextManager
from typing import TextIO

from expost.cli.terminal import Losing
from expost.shown import one_line

_PATIENCE = 1.0


class Progress:
    """Report the current stage once a run has lasted a second, and keep the clock going on a terminal.

    It watches passes over rows (`expost.passes.engine`): of one that takes longer than a second it says how fast it is
    and how long it will take, on a terminal or if ``passes`` asks for it.
    """

    def __init__(self, stream: TextIO | None = None, *, passes: bool = False) -> None:
        self._stream = Losing(sys.stderr if stream is None else stream)
        self._stage, self._shown = "", ""
        self._started = time.monotonic()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._live = self._stream.isatty()
        self._asked = passes
        self._watching: AbstractContextManager[None] | None = None
        self._lock = threading.Lock()
        self._pass, self._rows, self._done, self._since = 0, 0, 0, 0.0

    def stage(self, name: str) -> None:
        """Name what is being done now."""
        self._stage = name

    def begin(self, rows: int) -> None:
        """Note that a pass over so many rows begins."""
        with self._lock:
            self._pass, self._rows, self._done, self._since = self._pass + 1, rows, 0, time.monotonic()

    def advance(self, rows: int) -> None:
        """Note that so many more rows are done."""
        with self._lock:
            self._done += rows

    def end(self) -> None:
        """Note that the pass is over, and say what it took if that was long."""
        elapsed = time.monotonic() - self._since
        if self._asked and not self._live and elapsed >= _PATIENCE:
            self._stream.write(f"pass {self._pass}: {self._done:,} rows in {elapsed:.1f} s, {self._rate()}\n")
            self._stream.flush()
        with self._lock:
            self._rows = 0

    def note(self, text: str) -> None:
        """Say where rows are between passes."""
        if self._asked or self._live:
            text = one_line(text)
            self._stream.write(f"{chr(13)}\033[K{text}\n" if self._live else f"{text}\n")
            self._stream.flush()

    def _rate(self) -> str:
        elapsed = max(time.monotonic() - self._since, 1e-9)
        return f"{self._done / elapsed:,.0f} rows/s"

    def _passing(self) -> str:
        """Say how far the pass has come, if it is a long one."""
        with self._lock:
            elapsed = time.monotonic() - self._since
            if not self._rows or elapsed < _PATIENCE or not self._done:
                return ""
            left = max(0.0, elapsed * (self._rows / self._done - 1.0))
            part = min(1.0, self._done / self._rows)
            return f", pass {self._pass}: {part:.0%} of {self._rows:,} rows, {self._rate()}, {left:.0f} s left"

    def _tick(self) -> None:
        while not self._finished.wait(_PATIENCE if not self._live else 0.5):
            elapsed = time.monotonic() - self._started
            if elapsed < _PATIENCE:
                continue
            if self._live:
                self._stream.write(f"\r\033[K{self._stage} … {elapsed:.0f} s{self._passing()}")
                self._shown = self._stage
            elif self._shown != self._stage:
                self._shown = self._stage
                self._stream.write(f"{self._stage} … ({elapsed:.0f} s)\n")
            self._stream.flush()
        if self._live and self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def __enter__(self) -> Progress:
        from expost.passes.engine import watching

        self._watching = watching(self)
        self._watching.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()
        if self._watching is not None:
            self._watching.__exit__(None, None, None)
        if self._pass and (self._asked or self._live) and time.monotonic() - self._started >= _PATIENCE:
            self._stream.write(f"{self._pass} pass{'es' if self._pass > 1 else ''} over the rows\n")
            self._stream.flush()
