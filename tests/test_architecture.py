"""Rooms import only rooms to their left: private values have one way out, and no way back."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import expost

SOURCE = Path(expost.__file__).parent
TESTS = Path(__file__).parent
ORDER = ["data", "engines", "erm", "noise", "privacy", "report", "tails", "stopping", "goals", "mechanisms", "search"]
ORDER += ["estimators", "planning", "exploring", "experiments", "cli"]
# Packages outside the rooms: whose place they share, or that all may import them (and they import no room).
SHARES = {"datasets": "data"}
FOR_ALL = {"exceptions", "lazy", "rounding", "threads", "validation", "visible"}


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
    assert found == {*ORDER, *FOR_ALL}
    for name in (*ORDER, *SHARES):
        assert (SOURCE / name / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("noise", "from expost.search.run import run_search"),
        ("erm", "import expost.noise.laplace"),
        ("privacy", "from expost import search"),
        ("report", "from expost.search.run import run_search"),
        ("tails", "from expost.stopping.calibration import calibrate"),
        ("stopping", "from expost.goals import ErrorRate"),
        ("goals", "from expost.mechanisms import Covariance"),
        ("mechanisms", "from expost.search.request import Request"),
        ("search", "def f():\n    from expost.estimators import AccuracyFirstRidge"),
        ("estimators", "from expost.experiments.plan import Task"),
        ("estimators", "from expost.planning import plan"),
        ("planning", "from expost.exploring import page"),
        ("exploring", "from expost.experiments.plan import Task"),
        ("experiments", "from expost.cli.options import print_text"),
        ("data", "if True:\n    from expost.erm import Sums"),
        ("datasets", "from expost.erm import Sums"),
        ("exceptions", "from expost.privacy.release import Release"),
        ("validation", "from expost.erm.losses import Loss"),
    ],
)
def test_a_way_back_is_noticed(room, line):
    path = SOURCE / f"{room}.py" if room in FOR_ALL else SOURCE / room / "made_up.py"
    assert len(offences(path, line)) == 1


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("search", "from expost.noise.path import NoisePath\nfrom expost.erm import Sums\nimport numpy"),
        (
            "privacy",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from expost.search.run import run_search",
        ),
        ("noise", "from expost.exceptions import TargetUnreachable"),
        ("data", "from expost import validation"),
        ("mechanisms", "from expost.stopping.certificates.ridge import RidgeCertificate"),
    ],
)
def test_the_way_on_is_open(room, line):
    assert offences(SOURCE / room / "made_up.py", line) == []


def test_noise_and_privacy_know_nothing_of_regression():
    """The search builds on them with any generator: neither may need rows, sums or losses.

    A released model reads tables to predict for, in two files of their own.
    """
    for room in ("noise", "privacy"):
        for path in (SOURCE / room).rglob("*.py"):
            mine = [module for module in imports(ast.parse(path.read_text())) if module.startswith("expost")]
            tables = {"data"} if path.name in ("scoring.py", "to_sklearn.py") else set()
            assert {room_of(module) for module in mine} <= {room, *FOR_ALL, *tables}


def test_tests_stand_where_their_subjects_do():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    assert len(folders) > 8
    assert [str(folder) for folder in sorted(folders) if not (SOURCE / folder).is_dir()] == []


def functions(kind: type[ast.AST], name: str) -> set[str]:
    """Return the functions in which a class is called (``ast.Call``) or raised (``ast.Raise``), as "file: function"."""

    def visit(node: ast.AST, inside: str) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{inside}.{node.name}".lstrip(".")
        if isinstance(node, kind):
            made = node.func if isinstance(node, ast.Call) else node.exc
            made = made.func if isinstance(made, ast.Call) and kind is ast.Raise else made
            if made is not None and ast.unparse(made).split(".")[-1] == name:
                yield inside
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    found = set()
    for path in SOURCE.rglob("*.py"):
        found |= {f"{path.relative_to(SOURCE).as_posix()}: {place}" for place in visit(ast.parse(path.read_text()), "")}
    return found


def test_releases_are_made_in_one_place():
    """Of what was booked on an account; otherwise only read back from JSON, or copied with other details."""
    assert functions(ast.Call, "Release") == {"privacy/account.py: Account._part"}
    read = {place for place in functions(ast.Call, "cls") if place.startswith("privacy/release.py: Release.")}
    assert read == {"privacy/release.py: Release.from_json"}


def test_refusals_are_raised_in_one_place():
    """Inside a search a refusal is a release like any other, so that whoever is in between can add to it."""
    assert functions(ast.Raise, "AccuracyNotReached") == {"privacy/account.py: released"}


def test_public_names_are_where_the_package_says():
    block = next(node for node in ast.parse((SOURCE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module.removeprefix("expost.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == expost._HOMES
    assert set(typed) == set(expost.__all__)
    for name in expost.__all__:
        assert f"{getattr(expost, name).__module__}.".startswith(f"expost.{expost._HOMES[name]}.")
    with pytest.raises(AttributeError, match="no attribute 'Problem'"):
        expost.Problem  # noqa: B018


LOADED = """
import contextlib, io, json, sys
from expost.cli.command import main

with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
    if sys.argv[1:]:
        main(sys.argv[1:])
print(json.dumps({"said": said.getvalue(), "loaded": sorted(sys.modules)}))
"""


def loaded(*arguments: str) -> tuple[str, set[str]]:
    """Return what the command line prints in a process of its own, and the modules that are imported by then."""
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, encoding="utf-8", check=True)
    answer = json.loads(done.stdout)
    return answer["said"], set(answer["loaded"])


def below(modules: set[str], *packages: str) -> list[str]:
    return sorted(name for name in modules if any(name == root or name.startswith(f"{root}.") for root in packages))


@pytest.mark.parametrize(("arguments", "said"), [((), ""), (("--version",), "expost "), (("--help",), "usage: expost")])
def test_the_command_line_starts_light(arguments, said):
    text, modules = loaded(*arguments)
    assert text.startswith(said)
    assert "expost.cli.command" in modules
    assert below(modules, "numpy", "scipy", "sklearn", "pyarrow", "expost.experiments") == []
    rooms = {name.split(".")[1] for name in below(modules, "expost") if "." in name}
    assert rooms <= {"cli", "exceptions", "goals", "lazy", "rounding", "validation", "visible"}


def test_fit_needs_no_experiments():
    text, modules = loaded("fit", "--help")
    assert "--excess-risk" in text
    assert "expost.cli.fit" in modules
    assert below(modules, "expost.experiments", "expost.datasets") == []


def packages() -> list[str]:
    """Return every package of the library."""
    found = [path.parent.relative_to(SOURCE.parent) for path in SOURCE.rglob("__init__.py")]
    return sorted(".".join(path.parts) for path in found)


@pytest.mark.parametrize("package", packages())
def test_no_name_hides_a_module(package):
    """``import expost.erm.x`` must not give something else than the module x."""
    room = importlib.import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(room.__path__)}
    assert modules.isdisjoint(getattr(room, "__all__", ()))
