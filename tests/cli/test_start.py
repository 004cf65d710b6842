"""How quickly the command line answers: what it has *not* imported by the time it says so.

Seconds differ from machine to machine. What takes them is NumPy, SciPy, PyArrow and scikit-learn, so that is asserted.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import get_args

import pytest

from expost.cli.command import COMMANDS
from expost.goals import GOALS
from expost.goals.flags import FLAGS
from expost.mechanisms import MECHANISMS, NOISES, Noise
from expost.search import METHOD_NAMES as NAMES, METHODS
from tests.cli.helpers import call, write

HEAVY = {"numpy", "scipy", "sklearn", "pyarrow", "pandas", "matplotlib", "cryptography", "threadpoolctl"}
LIGHT_ROOMS = {
    "cli",
    "defaults",
    "exceptions",
    "goals",
    "lazy",
    "mechanisms",
    "search",
    "shown",
    "table",
    "validation",
    "whole",
}
LOADED = """
import contextlib, io, json, sys
from expost.cli.command import main
answers = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = stop.code
    answers.append([status, out.getvalue(), err.getvalue(), sorted(sys.modules)])
print(json.dumps(answers))
"""


def answers(*commands, cwd=None):
    """Return status, output, errors and the modules imported by then, for one command after the other."""
    text = json.dumps([[str(argument) for argument in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", LOADED, text], capture_output=True, check=True, cwd=cwd)
    return json.loads(done.stdout)


def heavy(modules):
    return sorted(HEAVY & {name.split(".")[0] for name in modules})


def test_help_is_light():
    for command, (status, out, err, modules) in zip(
        COMMANDS, answers(*([name, "--help"] for name in COMMANDS)), strict=True
    ):
        assert (status, err, heavy(modules)) == (0, "", []), command
        assert out.startswith(f"usage: expost {command}")
        rooms = {name.split(".")[1] for name in modules if name.startswith("expost.")}
        assert rooms <= LIGHT_ROOMS, command


MISTAKES = [
    (["fit", "data.csv", "--epsilon", "1"], "unrecognized arguments: --epsilon"),
    (["fit", "data.csv", "--max-epsilo", "1"], "did you mean --max-epsilon?"),
    (["fit", "data.csv", "--error-rate"], "expected one argument"),
    (["fit", "data.csv", "--error-rate", "low"], "invalid float value: 'low'"),
    (["fit", "data.csv", "--error-rate", "7 %"], "invalid float value: '7 %'; write 0.07 (see"),
    (["fit", "data.csv", "--error-rate", "0,6"], "invalid float value: '0,6'; write 0.6 (see"),
    (["fit", "data.csv", "--error-rate", "1,000,000"], "invalid float value: '1,000,000' (see"),
    (["fit", "data.csv"], "--schema is required"),
    (["fit", "data.csv", "--schema", "schema.toml"], "how good must the model be?"),
    (["fit", "data.csv", "--schema", "schema.toml", "--error-rate", "20"], "--error-rate must be a number strictly"),
    (["fit", "data.csv", "--schema", "schema.toml", "--log-loss", "0.7"], "--log-loss must be a number strictly"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "-1"], "--r2 must be a number strictly between 0 and 1"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "nan"], "--r2 must be a number strictly between 0 and 1"),
    (["fit", "none.csv", "--schema", "schema.toml", "--r2", "0.5"], "there is no file none.csv"),
    (["fit", "data.csv", "--schema", "none.toml", "--r2", "0.5"], "there is no schema none.toml; expost init drafts"),
    (["fit", "schema.toml", "--schema", "schema.toml", "--r2", "0.5"], "cannot tell the type of schema.toml"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "0.5", "--max-epsilon", "0"], "--max-epsilon must be"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "0.5", "--seed", "-1"], "--seed must be"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "0.5", "--margin", "1"], "--margin must be"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "0.5", "--output", "folder"], "folder is a folder"),
    (["fit", "data.csv", "--schema", "schema.toml", "--r2", "0.5", "--target", "y"], "--target goes without a schema"),
    (["check", "none.csv", "--schema", "schema.toml"], "there is no file none.csv"),
    (["check", "data.csv", "--schema", "folder"], "folder is a folder, not a schema"),
    (["check", "data.csv"], "required: --schema"),
    (["init", "none.csv"], "there is no file none.csv"),
    (["init", "data.csv", "--output", "schema.toml"], "schema.toml is there already"),
    (["predict", "none.json", "data.csv"], "there is no release none.json"),
    (["predict", "schema.toml", "none.csv"], "there is no file none.csv"),
    (["export", "none.json", "--output", "model.joblib"], "there is no release none.json"),
    (["report", "none.json"], "there is no release none.json"),
    (["example", "survey", "--rows", "0"], "--rows must be a whole number, at least 1"),
    (["guess"], "there is no command 'guess'; there are example, init"),
    (["fti", "data.csv"], "there is no command 'fti'; did you mean fit?"),
]


def test_mistakes_are_light_and_one_line(tmp_path):
    write(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "schema.toml").write_text("", encoding="utf-8")
    given = [command for command, _ in MISTAKES]
    for (command, why), (status, out, err, modules) in zip(MISTAKES, answers(*given, cwd=tmp_path), strict=True):
        assert (status, out) == (2, ""), (command, err)
        assert err.startswith("expost")
        assert err.count("\n") == 1
        assert why in err
        assert heavy(modules) == [], command
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data.csv", "folder", "schema.toml"]


def test_what_is_heavy_is_noticed(tmp_path):
    """A command that does read its table has imported what the others have not."""
    write(tmp_path)
    ((status, _, _, modules),) = answers(["init", "data.csv"], cwd=tmp_path)
    assert status == 0
    assert "pyarrow" in heavy(modules)


def test_light_tables_say_what_the_rooms_have():
    assert list(FLAGS) == [goal.__name__ for goal in GOALS]
    assert get_args(Noise) == NOISES
    assert [kind.name for kind in MECHANISMS.values()] == list(MECHANISMS)
    assert [method.name for method in METHODS.values()] == list(NAMES) == list(METHODS)


@pytest.mark.parametrize("name", FLAGS)
def test_flags_take_the_numbers_that_their_goals_take(name):
    """The range is checked twice: before anything is imported, and by the goal, which is what protects."""
    goal = {kind.__name__: kind for kind in GOALS}[name]
    for value in (-1.0, 0.0, 1e-9, 0.3, 0.69, 0.6932, 0.999, 1.0, 1.5, 1e9, float("inf"), float("nan")):
        taken = []
        for check in (FLAGS[name].check, goal):
            try:
                check(value)
                taken.append(True)
            except ValueError:
                taken.append(False)
        assert taken[0] == taken[1], value


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_and_what_exit_statuses_mean(capsys, name):
    text = " ".join(call(capsys, name, "--help").out.split())
    assert text.count(f"expost {name}") > 1  # beside the usage
    assert re.search(r"exit status: 0 ", text, flags=re.IGNORECASE)
