"""How far one fit walks through the house: every change of folder is one a reader has to follow."""

from __future__ import annotations

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
