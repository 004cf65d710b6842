"""How far one fit walks through the house: every change of room is one a reader has to follow."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "walk.py"
# changes of room; a minimiser of its own goes to the engines and back for every pass over the rows, and what covers its
# solver, shared with Gaussian noise, is a file of its own that the certificate comes back to
FURTHEST = {"a ridge fit with auto": 20, "a logistic fit with an error rate": 13}


def load():
    spec = importlib.util.spec_from_file_location("walk", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOLS = load()


@pytest.mark.parametrize("name", TOOLS.FITS)
def test_a_fit_changes_rooms_seldom(name):
    estimator, options = TOOLS.FITS[name]
    files = TOOLS.walk(estimator, options)
    stays = TOOLS.rooms(files)
    assert len(files) > 20  # it did walk
    assert {"estimators", "data", "search", "mechanisms", "stopping", "noise", "privacy"} <= set(stays)
    assert len(stays) - 1 <= FURTHEST[name], " → ".join(stays)


def test_there_are_two_walks():
    assert len(TOOLS.FITS) == 2
