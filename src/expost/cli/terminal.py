"""What is printed where a terminal does not know every letter: ε becomes epsilon, ≤ becomes <=, and nothing fails.

A release that was paid for must reach its reader, and so must an error. :func:`prepare_streams` gives standard output
and standard error an error handler that spells letters out; a terminal that knows them never asks it.
"""

from __future__ import annotations

import codecs
import json
import sys
import unicodedata

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


def prepare_streams() -> None:
    """Let standard output and standard error spell out what they cannot encode."""
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
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def _knows(encoding: str | None, text: str) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
