"""Rooms import only rooms to their left: private values have one way out, and no way back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import expost

SOURCE = Path(expost.__file__).parent
ORDER = ["data", "erm", "noise", "privacy", "search", "estimators", "options", "experiments", "cli"]
# Modules outside the rooms: whose place they share, or that all may import them (and they import nothing).
SHARES = {"datasets": "data", "demo": "cli", "summary": "options"}
FOR_ALL = {"exceptions", "progress"}


def room_of(module: str) -> str:
    """Return the room of a dotted module name below ``expost``; the package itself is ``""``."""
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else ""
    return SHARES.get(name, name)


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of this package that code imports when it runs, inside functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide which room is meant"
            # "from expost import data" imports a room as well
            yield from (
                f"{node.module}.{alias.name}" if node.module == "expost" else node.module for alias in node.names
            )
        else:
            yield from imports(node)


def offences(path: Path, text: str) -> list[str]:
    """Return the imports of a file that lead to the right."""
    home = room_of("expost." + ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    wrong = []
    for module in imports(ast.parse(text)):
        if module.split(".")[0] != "expost":
            continue
        target = room_of(module)
        if target == "__version__":
            target = "data"  # metadata, not a room
        if home in FOR_ALL:
            allowed = target in FOR_ALL
        elif target in FOR_ALL:
            allowed = True
        elif target not in ORDER:
            allowed = False
        else:
            allowed = ORDER.index(target) <= ORDER.index(home)
        if not allowed:
            wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    return wrong


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_lead_to_the_left(path):
    assert offences(path, path.read_text()) == []


def test_every_module_has_a_place():
    found = {room_of("expost." + path.relative_to(SOURCE).parts[0].removesuffix(".py")) for path in FILES}
    assert found <= {*ORDER, *FOR_ALL}


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("noise", "from expost.search.run import run"),
        ("erm", "import expost.noise.laplace"),
        ("privacy", "from expost import search"),
        ("search", "def f():\n    from expost.estimators import AccuracyFirstRidge"),
        ("data", "if True:\n    from expost.erm import Sums"),
        ("exceptions", "from expost.privacy.release import Release"),
    ],
)
def test_a_way_back_is_noticed(room, line):
    path = SOURCE / f"{room}.py" if room in FOR_ALL else SOURCE / room / "made_up.py"
    assert len(offences(path, line)) == 1


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("search", "from expost.noise.path import NoisePath\nfrom expost.erm import Sums\nimport numpy"),
        ("privacy", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from expost.search.run import run"),
        ("noise", "from expost.exceptions import TargetUnreachable"),
    ],
)
def test_the_way_on_is_open(room, line):
    assert offences(SOURCE / room / "made_up.py", line) == []


def test_noise_and_privacy_know_nothing_of_regression():
    """The search builds on them with any generator: neither may need rows, sums or losses."""
    for room in ("noise", "privacy"):
        for path in (SOURCE / room).glob("*.py"):
            mine = [module for module in imports(ast.parse(path.read_text())) if module.startswith("expost")]
            assert {room_of(module) for module in mine} <= {room, "exceptions"}
