"""What is printed, whatever is in it: control characters never reach a terminal, and letters that it does not know do.

A release that was paid for must reach its reader, and so must an error. :func:`prepared_streams` gives standard output
and standard error an error handler that spells letters out (ε becomes epsilon, ≤ becomes <=; a terminal that knows them
never asks it), and puts before both what spells control characters out (`expost.shown`).

Mistakes in the command line's own words: the library speaks of arguments, here they are options.
"""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from expost.exceptions import UNSPENT
from expost.goals.flags import FLAGS
from expost.shown import one_line, visible

if TYPE_CHECKING:
    from expost.release.release import Release


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


class Losing:
    """A stream over another, ``behind`` it; control characters stay, for who moves the cursor on purpose.

    What it cannot write is lost, and nothing else: a command goes on, and what it has done stands. :func:`unwritten`
    says why, in the end.
    """

    def __init__(self, stream: TextIO) -> None:
        self.behind: TextIO = getattr(stream, "behind", stream)
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write, or lose."""
        self._do(self.behind.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose."""
        self._do(self.behind.flush)

    def _do(self, write: Callable[..., Any], *what: Any) -> None:
        try:
            write(*what)
        except OSError as error:
            self.failure = self.failure or error
            with suppress(OSError):  # so that the exit does not fail as well
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.behind.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


class _Visible(Losing):
    """A stream that spells control characters out."""

    def write(self, text: str) -> int:
        return super().write(visible(text))

    def writelines(self, lines: Iterable[str]) -> None:
        self._do(self.behind.writelines, map(visible, lines))

    def write_data(self, lines: Iterable[str]) -> None:
        """Write data: exactly to a file or a pipe; a terminal is spared control characters."""
        self._do(self.behind.writelines, map(visible, lines) if self.behind.isatty() else lines)


class _Closed(io.TextIOBase):
    """A stream that whoever started this has closed: nobody reads it, and what is written to it is not seen."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def unread() -> bool:
    """Whether nothing that is printed can reach anybody: both streams were closed by whoever started this."""
    return all(isinstance(getattr(stream, "behind", stream), _Closed) for stream in (sys.stdout, sys.stderr))


def unwritten() -> OSError | None:
    """Return why standard output could not be written, to the first who asks; None if it could."""
    sys.stdout.flush()
    failure: OSError | None = getattr(sys.stdout, "failure", None)
    if failure is not None:
        sys.stdout.failure = None  # type: ignore[union-attr]
    return failure


@contextmanager
def prepared_streams() -> Iterator[None]:
    """Let standard output and standard error spell out control characters, and what they cannot encode."""
    _spell_letters()
    before = sys.stdout, sys.stderr
    out, err = (cast(TextIO, stream or _Closed()) for stream in before)
    shown = cast(TextIO, _Visible(out)), cast(TextIO, _Visible(err))
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


WRONG = 2  # exit status of a mistake in the arguments or the data; nothing was spent
NOT_WRITTEN = 1  # of a result that was made and shown, but its file could not be written, or its ledger not charged
REFUSED = 3  # of a search that refused or was stopped: not a mistake of the caller's, but no model either
SHORT = 5  # of a search that ended with a model, but one that is short of the goal

# arguments whose option is called otherwise
_OTHER = {
    "random_state": "--seed",
    "cut_offs": "--cut-off",
    "at_most": "the number stated",
    "at_least": "the number stated",
    "when_short='lower'": "--lower-max-epsilon",
}
# names of columns are quoted, and files have points or slashes about them: neither is an argument
_BEFORE, _AFTER = r"(?<![\w'\"./-])", r"(?![\w'\"/-]|\.\w)"


def own_words(text: str, options: argparse.Namespace) -> str:
    """Write a message of the library with options for its arguments.

    What begins with the name of a file is about what stands in the file, and left alone.

    Examples
    --------
    >>> options = argparse.Namespace(max_epsilon=0.1, method="auto", columns=None, seed=None)
    >>> own_words("max_epsilon = 0.1 is too small; pass method='fixed', or columns= with fewer", options)
    '--max-epsilon = 0.1 is too small; pass --method fixed, or --columns with fewer'
    >>> own_words("ErrorRate is for classification; pass MeanSquaredError(...)", options)
    '--error-rate is for classification; pass --mean-squared-error'
    >>> own_words("how good? Got ExcessRisk(at_most=0.1)", options)
    'how good? Got --excess-risk 0.1'
    >>> own_words("pass decimal=',' or keep_statistics=True", argparse.Namespace(decimal=".", keep_statistics=False))
    'pass --decimal , or --keep-statistics'
    >>> own_words("there is no column 'max_epsilon' in max_epsilon.csv", options)
    "there is no column 'max_epsilon' in max_epsilon.csv"
    """
    text = " ".join(text.split())
    if any(isinstance(value, Path) and text.startswith(f"{value}") for value in vars(options).values()):
        return text
    for goal, flag in FLAGS.items():
        text = re.sub(
            rf"{_BEFORE}{goal}\((?:\w+=)?(\d[\d.e+-]*)[^)]*\)", rf"{flag.name} \1", text
        )  # as it prints itself
        text = re.sub(rf"(?:\bgoal=)?{_BEFORE}{goal}(?:\(\.\.\.\))?{_AFTER}", flag.name, text)
    for name, said in _OTHER.items():
        text = re.sub(rf"{_BEFORE}{name}{_AFTER}", said, text)
    for name in vars(options):
        option = f"--{name.replace('_', '-')}"
        text = re.sub(rf"{_BEFORE}{name}=['\"]([\w,-]+)['\"]", rf"{option} \1", text)
        text = re.sub(rf"{_BEFORE}{name}=True{_AFTER}", option, text)
        text = re.sub(rf"{_BEFORE}{name}=\s?(?=[\w(]|$)", f"{option} ", text)
        # a plain word is an argument where something must be done about it
        text = re.sub(rf"{_BEFORE}{name}{_AFTER}" + ("" if "_" in name else r"(?= must\b)"), option, text)
    return text


def complain(error: BaseException | str, options: argparse.Namespace | None = None) -> int:
    """Say what is wrong in one line on standard error; returns the exit status of a mistake."""
    said = in_words(error, options or argparse.Namespace())
    if isinstance(error, BaseException) and getattr(options, "spends", False) and paid() is None:
        said = unspent(said)
    print(f"expost: {said}", file=sys.stderr)
    return WRONG


def in_words(error: BaseException | str, options: argparse.Namespace) -> str:
    """Return what is wrong, in the command line's words."""
    text = f"{error}" if isinstance(error, str) or not isinstance(error, OSError) else _of_system(error)
    return with_notes(own_words(text, options), error)


def with_notes(text: str, error: BaseException | str) -> str:
    """Return what is said about an error, and then what a ledger, or who passed it on, had to add."""
    for note in getattr(error, "__notes__", ()):
        text = text if note.lower() in text.lower() else _then(text, note)
    return text


def unspent(text: str) -> str:
    """Return what is wrong, and that nothing was spent if it does not say so."""
    return text if UNSPENT.lower() in text.lower() else _then(text, UNSPENT)


def _then(text: str, more: str) -> str:
    return f"{text}{' ' if text.endswith(('.', '?')) else '. '}{more}"


def paid() -> Release | None:
    """Return the release of the search that this call has begun, if it cost anything."""
    account = sys.modules.get("expost.account.account")  # without which nothing was searched for
    latest = None if account is None else account.Spending.latest
    made = None if latest is None else latest.release
    return made if made is not None and made.epsilon > 0 else None


def _of_system(error: OSError) -> str:
    """Say what the operating system refused, without its number."""
    if error.strerror is None or error.filename is None:
        return f"{error}"
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
