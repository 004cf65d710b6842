"""Text as it may be shown: control characters are spelled out, wherever a name, a label or a message came from.

A name from somebody else's file could otherwise move the cursor, colour or overwrite what stands on a terminal, turn
the direction of reading, or begin a line of its own that looks like ours.
"""

from __future__ import annotations

import re

# C0 and C1 (and C1 as undecodable bytes of file names), line separators, marks and overrides of direction
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udc9f]")
_BREAK = re.compile(f"[\t\n{_CONTROL.pattern[1:]}")


def visible(text: str) -> str:
    r"""Return a text with control characters as ``\u001b``, which leaves JSON as it is; tabs and ends of lines stay.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\nc"))
    a\u001b[2Jb
    c
    """
    return _CONTROL.sub(_spelled, text)


def one_line(text: object) -> str:
    r"""Return what is shown of a name or label within a line, which it must not end.

    Examples
    --------
    >>> print(one_line("age\n(years)"))
    age\u000a(years)
    """
    return _BREAK.sub(_spelled, str(text))


def _spelled(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
