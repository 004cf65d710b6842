"""Numbers that no option was made for: every one ends in a line and in the exit status that the help states."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from expost.account.account import Account, Spending
from expost.cli.command import UNEXPECTED
from expost.noise.source import SecureSource
from tests.cli.helpers import call

HOSTILE = ("0", "-1", "5e-324", "1e-300", "1e300", "inf", "-inf", "nan", "1e19", "9" * 30, "")
SCHEMA = 'target = "y"\ntarget_bounds = [-3, 3]\n[columns]\na = { bounds = [-1, 1] }\nb = { boolean = true }\n'
GOALS = ("--r2", "--mean-squared-error", "--excess-risk", "--relative-excess-risk")
TABLE = ("fit", "t.csv", "--schema", "t.toml", "--json")
ARRAY = ("fit", "t.csv", "--target", "y", "--task", "regression", "--columns", "a", "--json")
BOUNDED = (*ARRAY, "--bounds", "-1", "1", "--target-bound", "3")
AT_DELTA = ("--delta", "1e-6")
PLAN = ("plan", "t.toml", "--rows", "500", "--worlds", "1")
COMMANDS = {
    **{f"table {goal}": (*TABLE, goal) for goal in GOALS[:2]},
    **{f"table {goal} at a delta": (*TABLE, *AT_DELTA, goal) for goal in GOALS[:2]},
    **{f"array {goal}": (*BOUNDED, goal) for goal in GOALS},
    **{f"array {goal} at a delta": (*BOUNDED, *AT_DELTA, goal) for goal in GOALS[:3]},
    **{
        f"table {option}": (*TABLE, "--r2", "0.2", option)
        for option in ("--max-epsilon", "--failure-probability", "--margin", "--delta", "--seed", "--memory")
    },
    **{
        f"table {option} at a delta": (*TABLE, *AT_DELTA, "--r2", "0.2", option)
        for option in ("--max-epsilon", "--failure-probability", "--margin")
    },
    **{
        f"array {option}": (*BOUNDED, "--excess-risk", "0.5", option)
        for option in (
            "--max-epsilon",
            "--failure-probability",
            "--regularization",
            "--radius",
            "--n-levels",
            "--intercept-weight",
            "--feature-bound",
        )
    },
    "array --target-bound": (*ARRAY, "--bounds", "-1", "1", "--excess-risk", "0.5", "--target-bound"),
    "array --target-bounds": (*ARRAY, "--bounds", "-1", "1", "--excess-risk", "0.5", "--target-bounds", "0"),
    "array --bounds": (*ARRAY, "--target-bound", "3", "--excess-risk", "0.5", "--bounds", "0"),
    "rows of a person": (*TABLE, "--r2", "0.2", "--person", "p", "--rows-per-person"),
    **{
        f"plan {option}": (*PLAN, "--r2", "0.2", option)
        for option in ("--max-epsilon", "--failure-probability", "--delta", "--rows-per-person")
    },
    "plan --worlds": ("plan", "t.toml", "--rows", "500", "--r2", "0.2", "--worlds"),
    "plan --columns": ("plan", "--task", "regression", "--rows", "500", "--excess-risk", "0.5", "--columns"),
    "explore --worlds": ("explore", "t.toml", "--no-open", "--worlds"),
    "explore --port": ("explore", "t.toml", "--no-open", "--serve", "--port"),
    "ledger --cap": ("ledger", "create", "l.db", "--dataset", "d", "--cap"),
    "audit --runs": ("audit", "--mechanism", "geometric", "--runs"),
    "audit --confidence": ("audit", "--mechanism", "geometric", "--runs", "10", "--confidence"),
    "example --rows": ("example", "survey", "--rows"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b, noise = rng.uniform(-1, 1, 300), rng.integers(0, 2, 300), rng.normal(0, 0.1, 300)
    rows = zip(a, b, a + noise, range(300), strict=True)
    (tmp_path / "t.csv").write_text("a,b,y,p\n" + "".join(f"{x},{z},{y},{i // 2}\n" for x, z, y, i in rows))
    (tmp_path / "t.toml").write_text(SCHEMA)
    return tmp_path


def listed(capsys, command):
    """The exit statuses that a command's help states."""
    said = call(capsys, command, "--help").out
    return {int(number) for number in re.findall(r"^  (\d+)  ", said.split("exit status:")[1], re.MULTILINE)}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_every_number_ends_in_words(folder, capsys, monkeypatch, arguments):
    monkeypatch.setattr("http.server.HTTPServer.serve_forever", lambda *_, **__: None)
    stated = listed(capsys, arguments[0]) - {UNEXPECTED}
    for value in HOSTILE:
        if value == "0" and arguments[-1] == "--port":
            continue  # any that is free
        said = call(capsys, *arguments, value)
        assert said.status in stated, (value, said)
        assert "Traceback" not in said.err
        assert "Error" not in said.err, (value, said.err)
        if said.status == 2:
            assert re.match(r"expost[ \w]*: .", said.err.splitlines()[-1]), (value, said.err)


STATED = [
    ((*TABLE, "--r2", "0.2", "--max-epsilon", "5e-324"), "--max-epsilon must lie between 1e-50 and 1e+50"),
    ((*TABLE, *AT_DELTA, "--mean-squared-error", "1e-300"), "--mean-squared-error must lie between 1e-50 and 1e+50"),
    ((*ARRAY, "--bounds", "1", "2", "--excess-risk", "1", "--target-bound", "1e-300"), "--target-bound must lie"),
    ((*BOUNDED, "--excess-risk", "0.5", "--feature-bound", "1e-300"), "--feature-bound must lie between 1e-50"),
    ((*BOUNDED, "--excess-risk", "0.5", "--n-levels", "100001"), "--n-levels must be a whole number, at most 100,000"),
    (("explore", "t.toml", "--serve", "--port", "99999"), "--port must be a whole number, at most 65,535, got 99999"),
    (("plan", "t.toml", "--rows", "9" * 20), "--rows must be a whole number, at most 1,000,000,000,000,000"),
    ((*TABLE, "--r2", "0.2", "--person", "p", "--rows-per-person", "10001"), "at most 10,000, got 10001"),
]


@pytest.mark.parametrize(("arguments", "says"), STATED, ids=[says for _, says in STATED])
def test_a_limit_is_stated_before_anything_is_spent(folder, capsys, monkeypatch, arguments, says):
    def draw(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(SecureSource, "words", draw)
    said = call(capsys, *arguments)
    assert (said.status, said.out) == (2, "")
    assert says in said.err


def test_a_mark_that_no_integer_holds(folder, capsys):
    import pyarrow as pa
    import pyarrow.parquet

    rows = pa.table({"a": [0.5, 0.1] * 50, "b": [True, False] * 50, "y": [1.0, 2.0] * 50})
    pa.parquet.write_table(rows, "t.parquet")
    for mark in ("1e19", "1" + "0" * 30):
        (folder / "t.toml").write_text(f"missing = [{mark}]\n{SCHEMA}")
        assert call(capsys, "check", "t.parquet", "--schema", "t.toml").status == 0
    (folder / "t.toml").write_text(f"missing = [1{'0' * 400}]\n{SCHEMA}")
    said = call(capsys, "check", "t.parquet", "--schema", "t.toml")
    assert (said.status, "missing must hold text, finite numbers" in said.err) == (2, True)


@pytest.mark.parametrize("error", [MemoryError, RecursionError, OverflowError, KeyError, AssertionError])
class TestWhatNobodyExpected:
    """One line, by the name of its type alone, and whether anything was spent."""

    def test_before_a_search(self, folder, capsys, monkeypatch, error):
        def broken(*_):
            raise error("a private value")

        for command in (PLAN, TABLE):
            monkeypatch.setattr(f"expost.cli.{command[0]}.run", broken)
            said = call(capsys, *command)
            assert said.status == UNEXPECTED
            assert ("nothing was spent" in said.err) == (command is TABLE)  # the other never spends anything
            assert "private" not in said.err
            assert len(said.err.splitlines()) == 1

    def test_after_one_had_begun(self, folder, capsys, monkeypatch, error):
        def broken(*_):
            Spending.latest = Spending()
            Spending.latest.release = Account("by hand", worst_case=0.5, secure=False).interrupted()
            raise error("a private value")

        monkeypatch.setattr("expost.cli.fit.run", broken)
        said = call(capsys, *TABLE)
        *release, last = said.err.splitlines()
        assert said.status == 3
        assert json.loads("\n".join(release))["epsilon_generation"] == 0.5
        assert "0.5 has to be counted as spent" in last
        assert "a private value" not in said.err


@pytest.mark.parametrize("kind", ["categories", "columns"])
@pytest.mark.parametrize("command", ["check", "fit", "plan"])
def test_more_columns_than_a_model_has(folder, capsys, command, kind):
    if kind == "categories":
        columns = f"a = {{ categories = {json.dumps([f'v{i}' for i in range(10_001)])} }}\n"
    else:
        columns = "".join(f"a{i} = {{ boolean = true }}\n" for i in range(10_001))
    (folder / "t.toml").write_text(f'target = "y"\ntarget_bounds = [-3, 3]\n[columns]\n{columns}')
    given = {"check": ("t.csv", "--schema", "t.toml"), "fit": (*TABLE[1:], "--r2", "0.2"), "plan": PLAN[1:]}[command]
    said = call(capsys, command, *given)
    assert (said.status, said.out) == (2, "")
    assert "are too many: a model has 10,000 at most" in said.err


def test_a_traceback_that_was_asked_for_takes_nothing_else_away(tmp_path, capsys, monkeypatch):
    """It may quote rows, so it is shown on request alone, and the exit status says what it says without."""

    def broken(*_):
        raise RuntimeError("a cell of somebody's")

    monkeypatch.setattr("expost.cli.command._parsed", broken)
    for asked in (False, True):
        if asked:
            monkeypatch.setenv("EXPOST_TRACEBACK", "1")
        said = call(capsys, "plan")
        assert said.status == 4
        assert ("a cell of somebody's" in said.err) == asked
        assert "it may quote rows" in said.err
        assert "nothing was spent" in said.err
