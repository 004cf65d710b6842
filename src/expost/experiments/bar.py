"""A progress bar on stderr: how much is done, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_WIDTH = 30
_EVERY = {True: 0.2, False: 15.0}  # seconds between updates, on a terminal and in a log


class Bar:
    """Call it with work done and work in all; it draws no more often than is useful.

    Examples
    --------
    >>> clock = iter([0.0, 30.0]).__next__
    >>> bar = Bar(sys.stdout, clock=clock)
    >>> bar(0.0, 100.0)
    >>> bar(50.0, 100.0)
    [###############...............]  50 %, about 30 s left
    """

    def __init__(self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._live = self._stream.isatty()
        self._first: tuple[float, float] | None = None
        self._next = 0.0

    def __call__(self, done: float, total: float) -> None:
        """Say how far the work is."""
        now = self._clock()
        if self._first is None:  # what came before the first trial says nothing about the rest
            self._first, self._next = (now, done), now + _EVERY[self._live]
            return
        if now < self._next or done <= self._first[1]:
            return
        self._next = now + _EVERY[self._live]
        part = done / total
        left = (now - self._first[0]) * (total - done) / (done - self._first[1])
        filled = int(part * _WIDTH)
        text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {part:4.0%}".replace("%", " %")
        text += f", about {duration(left)} left"
        self._stream.write(f"\r\033[K{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the line empty."""
        if self._live:
            self._stream.write("\r\033[K")
            self._stream.flush()


def duration(seconds: float) -> str:
    """Say a time span in the two units a reader wants.

    Examples
    --------
    >>> duration(8.4), duration(75), duration(7300)
    ('8 s', '1 min 15 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
