"""Commands that documents show: they run as printed, one after the other, in an empty folder.

A block of commands is marked by a line ``<!-- runs as printed -->`` above it. Its ``expost`` lines run; others, such as
``pip install``, are for the reader. The noise is the cryptographic one, as a reader's would be, so a fit might be
refused; but its goal is far from the limit of its table. Of 100 seeded runs none was refused, and the dearest cost
ε = 0.75 of the 2 that the strictest of them allows.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from expost.cli.command import COMMANDS

ROOT = Path(__file__).parents[1]
MARK = "<!-- runs as printed -->"


def commands(text: str) -> list[list[str]]:
    """Return the arguments of every ``expost`` line in marked blocks."""
    found = []
    for block in re.findall(rf"^{MARK}\n```sh\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            program, *given = shlex.split(line, comments=True) or [""]
            if program == "expost":
                found.append(given)
    return found


SHOWN = {
    path: commands(path.read_text(encoding="utf-8")) for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
}


def marked(path):
    """The tutorial takes a quarter of a minute, and the index repeats the README, which does not wait for the audit."""
    waits = path.name in ("tutorial.md", "index.md")
    return pytest.param(path, id=path.name, marks=[pytest.mark.slow] if waits else [])


@pytest.mark.parametrize("path", [marked(path) for path, found in SHOWN.items() if found])
def test_commands_run_as_printed(path, tmp_path):
    for given in SHOWN[path]:
        before = sorted(tmp_path.iterdir())
        done = subprocess.run(
            [sys.executable, "-m", "expost.cli", *given],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, (given, done.stderr)
        assert done.stdout or sorted(tmp_path.iterdir()) != before, given


def test_the_readme_shows_the_whole_way():
    called = [given[0] for given in SHOWN[ROOT / "README.md"]]
    assert called[0] == "example"
    assert {"check", "fit"} <= set(called) <= set(COMMANDS)


def test_only_marked_blocks_run():
    block = "```sh\npip install expost\nexpost fit a.csv \\\n    --r2 0.5  # why\n```\n"
    assert commands(f"{MARK}\n{block}") == [["fit", "a.csv", "--r2", "0.5"]]
    assert commands(block) == []
    assert commands(f"{MARK}\ntext\n{block}") == []
