"""Print the oldest versions that ``pyproject.toml`` says are enough, as constraints for pip: ``make oldest``.

``python tools/oldest.py [EXTRA ...]`` takes what the package needs and what its extras need: by default ``test``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_STATED = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?\s*(?:>=\s*([0-9][0-9.]*))?")


def oldest(project: dict[str, Any], extras: Sequence[str] = ("test",)) -> dict[str, str]:
    """Return the oldest version of each package that a project and its extras need; one without any is an error.

    Examples
    --------
    >>> optional = {"test": ["mine[plot]", "pytest>=8.3"], "plot": ["matplotlib>=3.9"]}
    >>> oldest({"name": "mine", "dependencies": ["numpy>=2.0"], "optional-dependencies": optional})
    {'numpy': '2.0', 'matplotlib': '3.9', 'pytest': '8.3'}
    """
    found: dict[str, str] = {}
    waiting = [*project["dependencies"], *(f"{project['name']}[{extra}]" for extra in extras)]
    while waiting:
        stated = waiting.pop(0)
        match = _STATED.fullmatch(stated)
        if match is None or (match[1] != project["name"] and match[3] is None):
            raise ValueError(f"{stated!r} does not say which version is the oldest that will do")
        if match[1] != project["name"]:
            found[match[1]] = match[3]
        for extra in (match[2] or "").split(",") if match[1] == project["name"] else ():
            waiting = [*project["optional-dependencies"][extra.strip()], *waiting]
    return found


if __name__ == "__main__":
    named = oldest(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"], sys.argv[1:] or ("test",))
    print(*(f"{name}=={version}" for name, version in named.items()), sep="\n")
