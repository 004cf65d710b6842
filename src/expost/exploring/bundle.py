"""The page as one file: markup, style, script and numbers together, nothing fetched from anywhere.

The page forbids itself every request (a content security policy of ``default-src 'none'``), so it works from a disk
without a network, and what is moved about on it is told to nobody.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

_SCRIPTS = ("model.js", "chart.js", "watch.js", "main.js")


def page(data: dict[str, Any]) -> str:
    """Return the HTML of the page for what `explorer_data` computed.

    Examples
    --------
    >>> text = page({"target": "</script><b>"})
    >>> text.startswith("<!doctype html>"), "</script><b>" in text
    (True, False)
    """
    home = files("expost.exploring") / "assets"

    def read(name: str) -> str:
        return (home / name).read_text(encoding="utf-8")

    # a name in a schema must not end the script that holds it
    numbers = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    numbers = numbers.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    parts = {"style": read("style.css"), "script": "\n".join(map(read, _SCRIPTS)), "data": numbers}
    text = read("page.html")
    for name, part in parts.items():
        before, after = text.split(f"<!-- {name} -->")
        text = before + part + after
    return text
