"""How far one fit walks through the house: every change of folder is one a reader has to follow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import tool

# files, changes of folder
FURTHEST = {"a table fit": (42, 14), "a table fit with a δ": (42, 15)}


TOOLS = tool("walk")


@pytest.mark.parametrize("name", FURTHEST)
def test_a_fit_changes_folders_seldom(name):
    files = TOOLS.walk(TOOLS.FITS[name])
    stays = TOOLS.rooms(files)
    assert len(files) > 20  # it did walk
    assert {"estimators", "table", "search", "mechanisms", "noise", "account", "release", "solve"} <= set(stays)
    most_files, most_changes = FURTHEST[name]
    assert len(files) <= most_files, files
    assert len(stays) - 1 <= most_changes, " → ".join(stays)


def test_both_fits_are_walked():
    assert set(TOOLS.FITS) == set(FURTHEST)


def test_the_files_that_explain_a_fit_are_on_its_way():
    text = (Path(__file__).parents[1] / "docs/architecture.md").read_text(encoding="utf-8")
    paragraph = next(part for part in text.split("\n\n") if part.startswith("Twelve files"))
    *named, with_delta, tool_itself = re.findall(r"`([\w/]+\.py)`", paragraph.replace("python ", ""))
    assert (len(named), tool_itself) == (12, "tools/walk.py")
    entered, at_delta = ({path.as_posix() for path in TOOLS.walk(TOOLS.FITS[name])} for name in FURTHEST)
    assert set(named) <= entered
    assert with_delta in at_delta
