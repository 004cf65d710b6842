"""A search that does not come to its end: what it cost is shown, with a documented status and without a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from expost import Ledger, Release
from expost.account.ledger_file import Store
from expost.cli import command
from expost.exceptions import LedgerUnavailable
from expost.noise.source import SecureSource, SeededSource
from expost.shown import up
from tests.account.ledger_helpers import new_ledger, released
from tests.account.test_file import change
from tests.cli.helpers import QUICK, REGRESSION, call, write

SEEDED = [*REGRESSION, *QUICK, "--method", "above_threshold", "--seed", "1"]
PRIVATE = "12 Elm Street"


def interrupt(monkeypatch, error, after=2):
    """Let the source of noise fail once it has been drawn from that often."""
    left = [after]

    def failing(words):
        def draw(self, count):
            left[0] -= 1
            if left[0] < 0:
                raise error
            return words(self, count)

        return draw

    for source in (SeededSource, SecureSource):
        monkeypatch.setattr(source, "words", failing(source.words))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(PRIVATE), ValueError(PRIVATE), OSError(PRIVATE)])
def test_the_cost_is_shown(tmp_path, capsys, monkeypatch, error):
    path = write(tmp_path)
    whole = Release.from_json(call(capsys, "fit", path, *SEEDED, "--json").out)
    interrupt(monkeypatch, error)
    said = call(capsys, "fit", path, *SEEDED)
    assert said.status == 3
    by = "" if isinstance(error, KeyboardInterrupt) else f" ({type(error).__name__})"
    assert said.err.startswith(f"expost: the search was stopped{by} after it had begun: ")
    assert f"epsilon = {up(whole.epsilon_worst_case)} has to be counted as spent" in said.err
    assert said.err.count("\n") == 1
    assert " paid " in said.out
    assert "the search did not come to its end" in said.out
    assert "coefficients" not in said.out
    for text in (said.out, said.err):
        assert "Traceback" not in text
        assert PRIVATE not in text


def test_the_release_as_json_and_in_a_file(tmp_path, capsys, monkeypatch):
    path, output = write(tmp_path), tmp_path / "release.json"
    whole = Release.from_json(call(capsys, "fit", path, *SEEDED, "--json").out)
    interrupt(monkeypatch, KeyboardInterrupt())
    said = call(capsys, "fit", path, *SEEDED, "--json", "--output", output)
    assert said.status == 3
    release = Release.from_json(said.out)
    assert release.status == "refused"
    assert release.hypothesis is None
    assert release.epsilon == release.epsilon_worst_case == whole.epsilon_worst_case > whole.epsilon > 0
    assert Release.from_json((tmp_path / "release-refused.json").read_text(encoding="utf-8")) == release


def test_the_status_is_documented(capsys):
    assert "3 refused or interrupted" in " ".join(call(capsys, "fit", "--help").out.split())


def test_an_interrupt_while_the_file_is_written_does_not_lose_the_release(tmp_path, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    path, output = write(tmp_path), tmp_path / "release.json"
    monkeypatch.setattr("expost.cli.fit.os.fsync", stop)
    said = call(capsys, "fit", path, *SEEDED, "--json", "--output", output)
    assert said.status == 1
    assert Release.from_json(said.out).status == "released"
    assert "(interrupted); keep the release above, it was paid for" in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["data.csv"]


def test_the_demo(capsys, monkeypatch):
    interrupt(monkeypatch, KeyboardInterrupt())
    said = call(capsys, "demo")
    assert said.status == 3
    assert " paid " in said.out
    assert "the search was interrupted (KeyboardInterrupt)" in said.out
    assert "Run it again" not in said.out


SIGNAL = """
import signal, sys
from expost.cli.command import main
from expost.noise.source import SeededSource

words, left = SeededSource.words, [2]

def draw(self, count):
    left[0] -= 1
    if left[0] < 0:
        signal.raise_signal(getattr(signal, sys.argv.pop()))
    return words(self, count)

SeededSource.words = draw
sys.exit(main(sys.argv[1:-1]))
"""


@pytest.mark.parametrize("name", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGTERM"])
def test_a_signal_ends_a_process_without_a_traceback(tmp_path, name):
    """Ctrl-C, and what batch queues send: either way the release says what has to be counted."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL, "fit", str(write(tmp_path)), *SEEDED, "--json", name],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["epsilon"] > 0
    assert "the search was stopped after it had begun" in done.stderr
    assert "Traceback" not in done.stderr


LATE = """
import os, signal, sys
from expost.cli import command, output as outcome, progress

place = {"after": (progress.Progress, "__exit__"), "shown": (outcome, "_shown"), "before": (command, "_parsed")}
where, name = place[sys.argv.pop()]
usual = getattr(where, name)

def stopped(*given):
    os.kill(os.getpid(), signal.SIGTERM if name != "_parsed" else signal.SIGINT)
    return usual(*given)

setattr(where, name, stopped)
sys.exit(command.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("where", "status"), [("after", 3), pytest.param("shown", 1, marks=pytest.mark.slow), ("before", 130)]
)
def test_wherever_a_signal_comes_what_was_spent_is_said(tmp_path, where, status):
    """After the search has ended and while its release is shown, not only within it."""
    done = subprocess.run(
        [sys.executable, "-c", LATE, "fit", str(write(tmp_path)), *SEEDED, where],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert ("nothing was spent" in done.stderr) == (where == "before")
    if where == "shown":  # it was saved before it is shown
        assert "interrupted while the release was shown; the release is in data-spend.json" in done.stderr
        assert Release.from_json((tmp_path / "data-spend.json").read_text("utf-8")).status == "released"
    if where == "after":
        text, _, said = done.stderr[done.stderr.index("{\n") :].rpartition("}\n")
        assert Release.from_json(text + "}").status == "released"
        assert "keep the release above, it was paid for" in said


LAST = """
import atexit, os, runpy, signal, sys

leave = sys.exit
sys.exit = lambda status: (os.kill(os.getpid(), signal.SIGINT), leave(status))
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
runpy.run_module("expost.cli", run_name="__main__")
"""


def test_a_signal_after_the_release_is_shown_does_not_change_the_status(tmp_path):
    """130 and 143 would say that nothing was spent."""
    done = subprocess.run(
        [sys.executable, "-c", LAST, "fit", str(write(tmp_path)), *SEEDED, "--output", "release.json"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Keyboard" not in done.stderr
    assert "saved to release.json" in done.stdout


def test_the_command_starts_where_signals_are_seen_to():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"expost": "expost.cli:run_and_exit"}


def test_a_second_interrupt_waits_until_the_first_is_told(tmp_path, capsys, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    def told(*given):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return usual(*given)

    usual = command._ended_by
    monkeypatch.setattr(command, "_ended_by", told)
    monkeypatch.setattr(command, "_parsed", stop)
    said = call(capsys, "fit", write(tmp_path), *SEEDED)
    assert (said.status, said.err) == (130, "expost: interrupted; nothing was spent\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("kind", [ImportError, SystemError, ValueError, OSError])
def test_an_interrupt_that_an_import_made_something_else_of_is_one(tmp_path, capsys, monkeypatch, kind):
    def stop(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise kind("numpy.core failed to import") from (error if kind is ImportError else None)

    monkeypatch.setattr("expost.cli.command._parsed", stop)
    said = call(capsys, "fit", write(tmp_path), *SEEDED)
    assert (said.status, said.err) == (130, "expost: interrupted; nothing was spent\n")


def test_an_earlier_search_of_the_process_is_not_this_ones(tmp_path, capsys, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    assert call(capsys, "fit", write(tmp_path), *SEEDED, "--json").status == 0
    monkeypatch.setattr("expost.cli.command._parsed", stop)
    said = call(capsys, "fit")
    assert (said.status, said.err) == (130, "expost: interrupted; nothing was spent\n")


def action_on_a_ledger(folder, action):
    """Return an action on a ledger that holds a worst case, and has lost its last link if it is to be repaired."""
    ledger = new_ledger(folder)
    held = ledger.reserve(0.5).id
    release = folder / "release.json"
    release.write_text(released(0.25).to_json())
    if action == "repair":
        change(ledger.path, "DELETE FROM chain WHERE position = (SELECT max(position) FROM chain)")
    more = {
        "create": ["--dataset", "census", "--cap", "1"],
        "book": [release],
        "settle": [held, "--worst-case", "--reason", "x"],
        "repair": ["--epsilon", "0.5", "--reason", "x"],
    }
    return ["ledger", action, ledger.path, *more[action]], ledger


@pytest.mark.parametrize("stop", ["signal", "locked"])
@pytest.mark.parametrize(
    ("action", "method"), [("create", "create"), ("book", "adding"), ("settle", "adding"), ("repair", "repair")]
)
def test_what_a_ledger_has_recorded_is_not_denied(tmp_path, capsys, monkeypatch, action, method, stop):
    """Ctrl-C just after it was committed, or somebody who locks the file then."""
    arguments, ledger = action_on_a_ledger(tmp_path, action)
    usual = getattr(Store, method)

    def locked(*_):
        raise LedgerUnavailable("the ledger is locked")

    def and_then():
        if stop == "locked":
            monkeypatch.setattr(Store, "read", locked)
        else:
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)

    @contextlib.contextmanager
    def adding(self, name):
        with usual(self, name) as given:
            yield given
        and_then()

    def whole(*given):
        made = usual(*given)
        and_then()
        return made

    monkeypatch.setattr(Store, method, adding if method == "adding" else whole)
    said = call(capsys, *arguments)
    monkeypatch.undo()
    assert (said.status, said.err) == (0, "")
    assert ("could not be read (the ledger is locked)" in said.out) == (stop == "locked")
    assert len(Ledger.datasets(ledger.path)) + len(ledger.budget.events) == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("action", ["create", "book", "settle", "repair"])
def test_before_a_ledger_has_recorded_anything_an_interrupt_says_so(tmp_path, capsys, monkeypatch, action):
    arguments, ledger = action_on_a_ledger(tmp_path, action)
    before = ledger.path.read_bytes()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.account.ledger_file._transaction", stopped)
    said = call(capsys, *arguments)
    assert (said.status, said.out, said.err) == (130, "", "expost: interrupted; nothing was recorded\n")
    assert ledger.path.read_bytes() == before
    assert "interrupted; nothing was recorded" in call(capsys, "ledger", "--help").out


def test_a_command_that_spends_nothing_does_not_speak_of_it(capsys, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("expost.cli.example.run", stopped)
    said = call(capsys, "example", "survey")
    assert (said.status, said.err) == (130, "expost: interrupted\n")
