"""How far a pass has come, for whoever runs it: rows, not what is in them.

How many passes a search makes depends on the rows, so it is for the curator who watches, and stands in no release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

__all__ = ["Watcher", "note", "watched_pass", "watching"]


class Watcher(Protocol):
    """Is told about passes, from any thread."""

    def begin(self, rows: int) -> None:
        """Say that a pass over so many rows begins."""

    def advance(self, rows: int) -> None:
        """Say that so many more rows are done."""

    def end(self) -> None:
        """Say that the pass is over."""

    def note(self, text: str) -> None:
        """Say where rows are between passes."""


_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let somebody watch the passes made inside."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def note(text: str) -> None:
    """Tell whoever watches where rows are between passes."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher.note(text)


@contextmanager
def watched_pass(rows: int) -> Iterator[Callable[[int], None] | None]:
    """Announce a pass to whoever watches; yields whom to tell of rows that are done."""
    watcher = _WATCHER.get()
    if watcher is None:
        yield None
        return
    watcher.begin(rows)
    try:
        yield watcher.advance
    finally:
        watcher.end()
