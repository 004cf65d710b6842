"""What is printed, whatever is in it: control characters never reach a terminal, and letters that it does not know do.

A release that was paid for must reach its reader, and so must an error. :func:`prepared_streams` gives standard output
and standard error an error handler that spells letters out (ε becomes epsilon, ≤ becomes <=; a terminal that knows them
never asks it), and puts before both what spells control characters out (`expost.visible`).
"""

from __future__ import annotations

import codecs
import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from expost.visible import one_line, visible

HANDLER = "expost-plain"
_PLAIN = {
    "λ": "lambda",  # Unicode calls it LAMDA
    "·": "*",
    "×": "x",
    "±": "+-",
    "−": "-",
    "–": "-",
    "—": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "≠": "!=",
    "∞": "inf",
    "√": "sqrt ",
    "∇": "grad ",
    "∈": " in ",
    "∂": "d",
    "‖": "||",
    "→": "->",
    "←": "<-",
    "↦": "->",
    "ᵀ": "'",
    "′": "'",
    "ℓ": "l",
    "½": "1/2",
    "⌈": "ceil(",
    "⌉": ")",
    "⌊": "floor(",
    "⌋": ")",
    "‘": "'",
    "’": "'",
    "“": "'",
    "”": "'",
    "█": "#",
    "░": ".",
}


def spelled(letter: str) -> str:
    r"""Return a letter in ASCII; one that has no reading is escaped as Python writes it.

    Examples
    --------
    >>> [spelled(letter) for letter in "ε≤λ²₁⁻Δß"]
    ['epsilon', '<=', 'lambda', '^2', '1', '^-', 'Delta', '\\xdf']
    """
    if letter in _PLAIN:
        return _PLAIN[letter]
    name = unicodedata.name(letter, "").split(" ")
    if name[0] == "GREEK" and name[-2:-1] == ["LETTER"]:
        return name[-1].lower() if "SMALL" in name else name[-1].capitalize()
    raised = unicodedata.decomposition(letter)
    if raised.startswith(("<super>", "<sub>")):
        plain = chr(int(raised.split()[1], 16))
        plain = _PLAIN.get(plain, plain)
        if plain.isascii():
            return f"^{plain}" if raised.startswith("<super>") else plain
    return letter.encode("ascii", "backslashreplace").decode()


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(spelled, error.object[error.start : error.end])), error.end


class _Visible:
    """A stream that spells control characters out; what does not is ``behind`` it."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, text: str) -> int:
        self.behind.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.behind.writelines(map(visible, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


def behind(stream: TextIO) -> TextIO:
    """Return the stream itself, for who moves the cursor on purpose, or writes data to a file or a pipe."""
    return cast(TextIO, getattr(stream, "behind", stream))


@contextmanager
def prepared_streams() -> Iterator[None]:
    """Let standard output and standard error spell out control characters, and what they cannot encode."""
    _spell_letters()
    before = sys.stdout, sys.stderr
    shown = cast(TextIO, _Visible(sys.stdout)), cast(TextIO, _Visible(sys.stderr))
    sys.stdout, sys.stderr = shown
    try:
        yield
    finally:
        if sys.stdout is shown[0]:  # and not what took its place when it failed
            sys.stdout = before[0]
        if sys.stderr is shown[1]:
            sys.stderr = before[1]


def _spell_letters() -> None:
    codecs.register_error(HANDLER, _spell_out)
    for stream in (sys.stdout, sys.stderr):
        if not hasattr(stream, "reconfigure"):
            continue  # somebody has put something else in its place
        # a stream that knows every letter and escapes surrogates gives file names back as the system wrote them
        if stream.errors != "surrogateescape" or not _knows(stream.encoding, "ε"):
            stream.reconfigure(errors=HANDLER)


def print_text(text: str) -> None:
    """Print a text; JSON stays JSON, with letters that the terminal does not know escaped."""
    if text.startswith("{") and not _knows(sys.stdout.encoding, text):
        with suppress(ValueError):  # a name may begin with a brace, too
            text = json.dumps(json.loads(text), indent=2)
    print(text)


def print_line(text: str) -> None:
    """Print what is one line, whatever the names of files in it are."""
    print(one_line(text))


def _knows(encoding: str | None, text: str) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
