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
from expost.goals.flags import FLAGS

SOURCE = Path(expost.__file__).parent
TESTS = Path(__file__).parent
# A folder imports folders to its left, or beside it: account and release are the vocabulary of every answer, mechanisms
# and search take turns in one search. No two files need each other to be imported.
ORDER = [{"table"}, {"passes"}, {"noise"}, {"account", "release"}, {"solve"}, {"goals"}, {"mechanisms", "search"}]
ORDER += [{"estimators"}, {"planning"}, {"audit"}, {"cli"}]
RANKS = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
# Packages outside the rooms: whose place they share, or that all may import them (and they import no room).
SHARES = {"datasets": "table"}
FOR_ALL = {"defaults", "exceptions", "lazy", "numeric", "shown", "validation", "whole"}
# The table of goals' flags and words, which needs no goal: a release from a file names its goal.
WORDS = "expost.goals.flags"


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
        elif target in FOR_ALL or (module == WORDS and home == "release"):
            allowed = True
        elif target not in RANKS:
            allowed = False
        else:
            allowed = RANKS[target] <= RANKS[home]
        if not allowed:
            wrong.append(f"{path.relative_to(SOURCE)} imports {module}")
    return wrong


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_lead_to_the_left(path):
    assert offences(path, path.read_text()) == []


def test_every_module_has_a_place():
    found = {room_of("expost." + path.relative_to(SOURCE).parts[0].removesuffix(".py")) for path in FILES}
    assert found == {*RANKS, *FOR_ALL}
    for name in (*RANKS, *SHARES):
        assert (SOURCE / name / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("table", "if True:\n    from expost.passes.sums import Sums"),
        ("datasets", "from expost.solve import Problem"),
        ("passes", "import expost.noise.laplace"),
        ("noise", "from expost.search.run import run_search"),
        ("account", "from expost.goals import ErrorRate"),
        ("release", "from expost.search.run import run_search"),
        ("solve", "from expost.goals.measure import Measure"),
        ("goals", "from expost.mechanisms import Covariance"),
        ("search", "def f():\n    from expost.estimators import AccuracyFirstRidge"),
        ("estimators", "from expost.planning import plan"),
        ("planning", "from expost.cli.options import check_numbers"),
        ("planning", "from expost.audit import run_audit"),
        ("audit", "from expost.cli.progress import Progress"),
        ("exceptions", "from expost.release.release import Release"),
        ("validation", "from expost.solve.losses import Loss"),
    ],
)
def test_a_way_back_is_noticed(room, line):
    path = SOURCE / f"{room}.py" if room in FOR_ALL else SOURCE / room / "made_up.py"
    assert len(offences(path, line)) == 1


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("search", "from expost.noise.laplace import NoisePath\nfrom expost.solve import Problem\nimport numpy"),
        (
            "account",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from expost.search.run import run_search",
        ),
        ("noise", "from expost.exceptions import TargetUnreachable"),
        ("table", "from expost import validation"),
        ("mechanisms", "from expost.search.levels import StagedPlan"),
        ("account", "from expost.release.release import Release"),
    ],
)
def test_the_way_on_is_open(room, line):
    assert offences(SOURCE / room / "made_up.py", line) == []


def test_no_two_files_import_each_other():
    """Neither directly nor by way of others, when they are imported: every file can be read after those it needs."""
    names = {".".join(("expost", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in FILES}
    needs = {
        name: {module for module in _at_import(ast.parse(path.read_text())) if module in names and module != name}
        for name, path in names.items()
    }
    while needs:
        free = {name for name, modules in needs.items() if not modules & needs.keys()}
        assert free, sorted(needs)
        needs = {name: modules for name, modules in needs.items() if name not in free}


def _at_import(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (HOMES.get(name, name) for name in names)


def _homes() -> dict[str, str]:
    """Return the file that each name of a folder comes from, as its ``__init__.py`` lists them for type checkers."""
    found = {}
    for path in SOURCE.rglob("__init__.py"):
        package = ".".join(path.parent.relative_to(SOURCE.parent).parts)
        for block in ast.parse(path.read_text()).body:
            lines = block.body if isinstance(block, ast.If) else []
            found |= {
                f"{package}.{alias.name}": line.module
                for line in lines
                if isinstance(line, ast.ImportFrom)
                for alias in line.names
            }
    return found


HOMES = _homes()


def test_names_of_a_folder_are_traced_to_their_files():
    assert HOMES["expost.solve.Problem"] == "expost.solve.problem"
    assert "expost.solve.problem" in _at_import(ast.parse("from expost.solve import Problem"))


def test_noise_and_account_know_nothing_of_regression():
    """The search builds on them with any generator: neither may need rows, sums or losses.

    A released model reads tables to predict for, and to be evaluated on, in files of their own.
    """
    for room in ("noise", "account", "release"):
        for path in (SOURCE / room).rglob("*.py"):
            mine = [module for module in imports(ast.parse(path.read_text())) if module.startswith("expost")]
            reads = ("scoring.py", "export.py", "evaluation_count.py", "held_out.py")
            tables = {"table", "passes"} if path.name in reads else set()
            beside = {"account", "release", "noise"} if room != "noise" else set()
            mine = [module for module in mine if (room, module) != ("release", WORDS)]
            assert {room_of(module) for module in mine} <= {room, *beside, *FOR_ALL, *tables}, path


def test_the_words_of_goals_need_no_goal():
    """What is imported with their table, which releases read."""
    code = "import sys, expost.goals.flags; print(*(name for name in sys.modules if name.startswith('expost.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert set(done.stdout.split()) == {"expost.goals", "expost.goals.flags", "expost.lazy", "expost.validation"}


GOALS_SAID = {"Goal", "TestedGoal", *FLAGS}


def asked_which(text: str) -> list[str]:
    """Return where code asks which goal it has: by its class, or by its name in releases."""
    called = {flag.called for flag in FLAGS.values()}
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            kinds = {ast.unparse(part).split(".")[-1] for part in ast.walk(node.args[1])}
            found += [ast.unparse(node)] if kinds & GOALS_SAID else []
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(isinstance(part, ast.Constant) and part.value in called for part in sides)
            kinds = any(ast.unparse(part).split(".")[-1] in GOALS_SAID for part in sides)
            found += [ast.unparse(node)] if named or kinds else []
        elif isinstance(node, ast.Dict):
            keys = {ast.unparse(key) for key in node.keys if key is not None}
            named = {key.value for key in node.keys if isinstance(key, ast.Constant)} & called
            found += [ast.unparse(node)] if keys & GOALS_SAID or named else []
    return found


def test_no_folder_asks_which_goal_it_has():
    """What others want to know of a goal it says itself, so that one more goal is one more file."""
    outside = [path for path in FILES if path.relative_to(SOURCE).parts[0] != "goals"]
    assert {str(path): asked for path in outside if (asked := asked_which(path.read_text()))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(goal, ErrorRate | LogLoss)",
        "issubclass(kind, goals.TestedGoal)",
        "goal == 'R²'",
        "kind is MeanSquaredError",
        "WORDS = {'log loss': 'bounded'}",
        "VALUES = {R2: (0.2, 0.4)}",
    ],
)
def test_asking_is_noticed(line):
    assert len(asked_which(line)) == 1


def test_tests_stand_where_their_subjects_do():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    assert len(folders) > 8
    homes = (SOURCE, TESTS.parent)  # the experiments stand beside the package
    assert [str(folder) for folder in sorted(folders) if not any((home / folder).is_dir() for home in homes)] == []


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
    places = {"account/account.py: Account._made", "release/stored.py: read_release"}
    assert functions(ast.Call, "Release") == places
    read = {place for place in functions(ast.Call, "cls") if place.startswith("release/release.py: Release.")}
    assert read == set()


def test_refusals_are_raised_in_one_place():
    """Inside a search a refusal is a release like any other, so that whoever is in between can add to it."""
    assert functions(ast.Raise, "AccuracyNotReached") == {"account/account.py: released"}


def test_public_names_are_few_and_come_from_where_they_are_defined():
    assert len(expost.__all__) <= 30  # ten of them are goals, and one is the version
    for name in set(expost.__all__) - {"__version__"}:
        assert getattr(expost, name).__module__.startswith("expost.")
    with pytest.raises(AttributeError, match="no attribute 'Problem'"):
        expost.Problem  # noqa: B018


def test_names_that_moved_say_where_they_are():
    """And are still found for one minor version, as docs/releasing.md says."""
    for name, room in expost.MOVED.items():
        vars(expost).pop(name, None)  # said once
        with pytest.warns(DeprecationWarning, match=f"from {room} import {name}$") as said:
            found = getattr(expost, name)
        assert found is getattr(importlib.import_module(room), name)
        assert [warning.filename for warning in said] == [__file__]


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
    assert below(modules, "numpy", "scipy", "sklearn", "pyarrow", "experiments") == []
    rooms = {name.split(".")[1] for name in below(modules, "expost") if "." in name}
    assert rooms <= {"cli", "defaults", "exceptions", "goals", "lazy", "shown", "validation", "whole"}


def test_fit_needs_no_experiments():
    text, modules = loaded("fit", "--help")
    assert "--excess-risk" in text
    assert "expost.cli.fit" in modules
    assert below(modules, "experiments", "expost.datasets") == []


def packages() -> list[str]:
    """Return every package of the library."""
    found = [path.parent.relative_to(SOURCE.parent) for path in SOURCE.rglob("__init__.py")]
    return sorted(".".join(path.parts) for path in found)


@pytest.mark.parametrize("package", packages())
def test_no_name_hides_a_module(package):
    """``import expost.solve.x`` must not give something else than the module x."""
    room = importlib.import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(room.__path__)}
    assert modules.isdisjoint(getattr(room, "__all__", ()))


#: What turns bytes into code when it reads them, whoever wrote them.
CODE = {"pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "runpy", "imp"}
LOADS = {"joblib.load", "np.load", "numpy.load", "pd.read_pickle", "torch.load", "yaml.load", "eval", "exec", "compile"}


def loads_of_code(text: str) -> list[str]:
    """Return where a file could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [f"{node.module}"]
            names = {f"{module}.{alias.name}" for module in modules for alias in node.names}
            found += [name for name in (*modules, *names) if name.split(".")[0] in CODE or name in LOADS]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            asked = any(keyword.arg == "allow_pickle" for keyword in node.keywords)
            if called in LOADS or asked or called.removeprefix("builtins.") in LOADS or "__import__" in called:
                found.append(called)
    return found


def test_nothing_that_is_read_is_run():
    """Releases, ledgers, schemas, tables and rows that are kept are data: no pickle, and nothing like one."""
    files = {path: loads_of_code(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path.name: found for path, found in files.items() if found} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal as m",
        "from joblib import load",
        "import joblib\njoblib.load(file)",
        "np.load(file)",
        "read(file, allow_pickle=True)",
        "exec(file.read_text())",
        "builtins.eval(text)",
        "__import__('pickle').loads(text)",
    ],
)
def test_what_runs_what_it_reads_is_found(text):
    assert loads_of_code(text)
