"""Walk through the house with one fit: which files it enters, in which order, and how often it changes rooms.

``python tools/walk.py`` fits a table as the README does, without a δ and with one, under a call profiler, and prints
the files in the order in which each is first entered. A change of room is a step from one file of that order to the
next in another room. Modules directly below ``expost`` are no rooms and are passed over.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import expost
from expost import AccuracyFirstModel, ErrorRate
from expost.datasets import SURVEY_SCHEMA, make_survey

SOURCE = Path(expost.__file__).parent
FITS: dict[str, dict[str, Any]] = {"a table fit": {}, "a table fit with a δ": {"delta": 1e-6}}


def walk(options: dict[str, Any]) -> list[Path]:
    """Return the files one fit enters, each once, in the order of the first visit."""
    table = make_survey(20_000)
    model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(0.25), random_state=0, **options)
    model.fit(table)  # once before: caches are filled and modules imported
    seen: dict[Path, None] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and SOURCE in path.parents:
            seen.setdefault(path.relative_to(SOURCE))

    sys.setprofile(note)
    try:
        model.fit(table)
    finally:
        sys.setprofile(None)
    return list(seen)


def rooms(files: list[Path]) -> list[str]:
    """Return the rooms in the order they are entered, each stay once."""
    return [room for room, _ in groupby(path.parts[0] for path in files if len(path.parts) > 1)]


if __name__ == "__main__":
    for name, options in FITS.items():
        files = walk(options)
        stays = rooms(files)
        print(f"{name}: {len(files)} files, {len(stays) - 1} changes of room")
        print("  " + " → ".join(stays))
        for path in files:
            print(f"    {path}")
