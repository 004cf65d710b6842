"""The same seeds give the same releases as when ``releases.json`` was written, in every field."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.helpers import tool

KEPT = json.loads((Path(__file__).parent / "releases.json").read_text(encoding="utf-8"))
MADE = tool("releases")


def differences(kept, made, where=""):
    """Yield where two nested values differ; floats may differ in the ninth digit, as between two kinds of CPU."""
    if isinstance(kept, dict) and isinstance(made, dict):
        for key in kept.keys() | made.keys():
            yield from differences(kept.get(key), made.get(key), f"{where}.{key}")
    elif isinstance(kept, list) and isinstance(made, list) and len(kept) == len(made):
        for index, pair in enumerate(zip(kept, made, strict=True)):
            yield from differences(*pair, f"{where}[{index}]")
    elif isinstance(kept, float) and isinstance(made, float):
        if not math.isclose(kept, made, rel_tol=1e-9, abs_tol=1e-12):
            yield where
    elif kept != made:
        yield where


@pytest.mark.parametrize("name", sorted(KEPT))
def test_release_is_the_one_kept(name):
    (made,) = json.loads(json.dumps(list(MADE.releases(name).values())))
    assert list(differences(KEPT[name], made)) == []


def test_all_kinds_are_kept():
    assert set(MADE.cases()) == set(KEPT)


def test_noise_is_over_the_reals_where_spherical_noise_was_asked_for_by_name_and_nowhere_else():
    asked = {name for name, case in MADE.cases().items() if case.keywords.get("noise") == "spherical"}
    made = {name: release["noise"] for name, release in KEPT.items() if "noise" in release}
    assert {name for name, noise in made.items() if noise != "exact"} == asked & set(made)
    assert len(asked) > 5
    assert all("over the reals" not in json.dumps(KEPT[name]) for name in set(KEPT) - asked)


def test_a_small_change_is_noticed():
    name = "ridge auto covariance"
    changed = json.loads(json.dumps(KEPT[name]))
    changed["epsilon_test"] *= 1 + 1e-6
    changed["promise"]["statement"] += "."
    assert sorted(differences(KEPT[name], changed)) == [".epsilon_test", ".promise.statement"]
