"""Walk through the house with one fit: which files it enters, in which order, and how often it changes rooms.

``python tools/walk.py`` runs a ridge fit with ``auto`` and a logistic fit with an error rate under a call profiler and
prints the files in the order in which each is first entered. A change of room is a step from one file of that order to
the next in another room. Modules directly below ``expost`` are no rooms and are passed over.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import expost
from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, ErrorRate

SOURCE = Path(expost.__file__).parent
FITS = {
    "a ridge fit with auto": (
        AccuracyFirstRidge,
        {"excess_risk": 0.02, "bounds": 1.0, "target_bound": 2.0, "fit_intercept": False},
    ),
    "a logistic fit with an error rate": (
        AccuracyFirstLogisticRegression,
        {"goal": ErrorRate(0.2), "bounds": 1.0, "classes": (False, True)},
    ),
}


def walk(estimator: type, options: dict[str, Any]) -> list[Path]:
    """Return the files one fit enters, each once, in the order of the first visit."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(5000, 4))
    signal = X @ [1.0, -0.8, 0.6, 0.4]
    target = signal > 0 if "classes" in options else signal
    model = estimator(regularization=0.02, random_state=0, **options)
    model.fit(X, target)  # once before: caches are filled and modules imported
    seen: dict[Path, None] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and SOURCE in path.parents:
            seen.setdefault(path.relative_to(SOURCE))

    sys.setprofile(note)
    try:
        model.fit(X, target)
    finally:
        sys.setprofile(None)
    return list(seen)


def rooms(files: list[Path]) -> list[str]:
    """Return the rooms in the order they are entered, each stay once."""
    return [room for room, _ in groupby(path.parts[0] for path in files if len(path.parts) > 1)]


if __name__ == "__main__":
    for name, (estimator, options) in FITS.items():
        files = walk(estimator, options)
        stays = rooms(files)
        print(f"{name}: {len(files)} files, {len(stays) - 1} changes of room")
        print("  " + " → ".join(stays))
        for path in files:
            print(f"    {path}")
