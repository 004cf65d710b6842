"""``expost ledger`` and ``expost fit --ledger``: a budget on the command line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from expost import Ledger, Release
from expost.account.account import Account
from expost.account.composition import Curve
from expost.account.events import Event
from expost.account.ledger import Reservation
from expost.account.ledger_file import Store
from expost.account.loss import PureLoss
from expost.exceptions import LedgerUnavailable
from expost.noise.source import SecureSource
from expost.release.release import Promise
from tests.account.ledger_helpers import released
from tests.cli.helpers import REGRESSION, call, write

UNIT = "one row replaced by any other row; the number of rows is public"
FIXED = [*REGRESSION, "--method", "fixed", "--max-epsilon"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a fit saves its release where it is called


@pytest.fixture
def book(tmp_path, capsys) -> Path:
    path = tmp_path / "survey.db"
    said = call(capsys, "ledger", "create", path, "--dataset", "survey", "--cap", "2")
    assert (said.status, said.err) == (0, "")
    return path


def on(book: Path, dataset: str = "survey") -> list[object]:
    return ["--ledger", book, "--dataset", dataset]


def test_a_budget_over_several_fits(tmp_path, capsys, book):
    data = write(tmp_path)
    for epsilon, left in (("0.5", "1.5"), ("1.25", "0.25")):
        said = call(capsys, "fit", data, *FIXED, epsilon, *on(book))
        assert said.status == 0
        assert "expost:" not in said.err
        assert f"ledger survey: {epsilon} charged; {left} of 2 left (entry " in " ".join(said.out.split())
    refused = call(capsys, "fit", data, *FIXED, "0.5", *on(book))
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith(
        "expost: data set 'survey' has 0.25 of 2 left, and this search may cost up to 0.5. Pass --max-epsilon 0.25, or "
        "--lower-max-epsilon to have it lowered. Nothing was spent\n"
    )
    lowered = call(capsys, "fit", data, *FIXED, "0.5", *on(book), "--lower-max-epsilon", "--json")
    assert Release.from_json(lowered.out).epsilon == 0.25
    shown = call(capsys, "ledger", "show", book).out.splitlines()
    assert shown[0] == f"survey · {UNIT} · cap 2"
    assert shown[1].split() == ["date", "id", "what", "status", "ε", "total"]
    assert [line.split()[2:] for line in shown[2:5]] == [
        ["fixed", "released", "0.5", "0.5"],
        ["fixed", "released", "1.25", "1.75"],
        ["fixed", "released", "0.25", "2"],
    ]
    assert shown[5:] == ["remaining 0"]


def test_the_release_in_a_file_is_the_one_in_the_ledger(tmp_path, capsys, book):
    output = tmp_path / "release.json"
    call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book), "--output", output)
    release = Release.from_json(output.read_text())
    (entry,) = Ledger(book, "survey").budget.entries
    assert entry.id == entry.release_id == release.id
    said = call(capsys, "ledger", "book", book, output)
    assert said.out == f"entry {release.id}: was booked before, and is not charged again; 1.5 of 2 left\n"


def test_goals_are_named(tmp_path, capsys, book):
    options = [*REGRESSION, "--excess-risk", "0.45", "--regularization", "1", "--max-epsilon", "2"]
    assert call(capsys, "fit", write(tmp_path), *options, *on(book)).status == 0
    assert "excess risk ≤ 0.45" in call(capsys, "ledger", "show", book).out


def test_an_interrupted_fit_is_charged_in_full(tmp_path, capsys, book, monkeypatch):
    def draw(self, count):
        raise KeyboardInterrupt

    monkeypatch.setattr(SecureSource, "words", draw)
    said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book))
    assert said.status == 3
    assert "survey: 0.5 charged; 1.5 of 2 left" in said.out
    assert "interrupted, worst case  0.5    0.5" in call(capsys, "ledger", "show", book).out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dataset", "survey"], "--dataset goes with --ledger"),
        (["--lower-max-epsilon"], "--lower-max-epsilon goes with --ledger"),
        (["--ledger", "BOOK"], "--ledger goes with --dataset: which data set"),
        (["--ledger", "none.db", "--dataset", "survey"], "there is no ledger"),
        (["--ledger", "BOOK", "--dataset", "census"], "has no data set 'census'; it has 'survey'"),
        (["--ledger", "BOOK", "--dataset", "survey", "--seed", "1"], "books no simulation; leave out --seed, or --led"),
    ],
)
def test_mistakes_are_told_before_anything_is_read(tmp_path, capsys, book, options, words):
    given = [book if option == "BOOK" else option for option in options]
    said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *given)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert words in said.err
    assert Ledger(book, "survey").budget.entries == ()


def test_a_budget_for_another_unit(tmp_path, capsys, book):
    said = call(
        capsys, "ledger", "create", book, "--dataset", "homes", "--cap", "1", "--unit", "one household replaced"
    )
    assert said.status == 0
    refused = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book, "homes"))
    assert refused.status == 2
    assert f"is about 'one household replaced', this search about '{UNIT}'" in refused.err
    both = call(capsys, "ledger", "show", book).out
    assert f"survey · {UNIT} · cap 2\nremaining 2\n\nhomes · one household replaced · cap 1\nremaining 1\n" == both
    assert "name one with --dataset" in call(capsys, "ledger", "settle", book, "a", "--worst-case", "--reason", "x").err


HANGING = """
import sys, time
from expost.cli import main
from expost.noise.source import SecureSource

def draw(self, count):
    print("drawing", flush=True)
    time.sleep(600)

SecureSource.words = draw
main(sys.argv[1:])
"""


@pytest.mark.skipif(os.name != "posix", reason="the process is killed")
def test_a_fit_that_is_killed_is_held_until_somebody_decides(tmp_path, capsys, book):
    command = [sys.executable, "-c", HANGING, "fit", write(tmp_path), *FIXED, "0.5", *on(book)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, env=environment) as fit:
        assert fit.stdout.readline() == "drawing\n"
        assert "running, worst case held  0.5    0.5\n" in call(capsys, "ledger", "show", book).out
        (entry,) = Ledger(book, "survey").budget.entries
        settle = ["ledger", "settle", book, entry.id[:4]]
        early = call(capsys, *settle, "--epsilon", "0", "--reason", "it hangs")
        assert (early.status, early.out) == (2, "")
        assert f"process {fit.pid}, which holds entry {entry.id}, is still running; end it first" in early.err
        fit.send_signal(signal.SIGKILL)
    shown = call(capsys, "ledger", "show", book).out
    assert "not settled, worst case held  0.5    0.5  ← settle\n" in shown
    assert shown.endswith("remaining 1.5, and 0.5 held for searches not settled\n")
    assert "required: --reason" in call(capsys, *settle, "--epsilon", "0").err
    assert "reason must say why" in call(capsys, *settle, "--epsilon", "0", "--reason", " ").err
    assert "more than what is held" in call(capsys, *settle, "--epsilon", "0.75", "--reason", "why").err
    decided = call(capsys, *settle, "--epsilon", "0.25", "--reason", "killed by hand, half of it had been drawn")
    assert decided.out == f"entry {entry.id}: 0.25 is charged; 1.75 of 2 left\n"
    history = call(capsys, "ledger", "history", book).out.splitlines()
    assert [line.split()[1] for line in history[1:]] == ["created", "reserved", "decided"]
    assert history[-1].endswith("because killed by hand, half of it had been drawn")
    assert "is settled: 0.25 is charged" in call(capsys, *settle, "--worst-case", "--reason", "again").err


def test_a_release_that_was_saved_settles_its_search(tmp_path, capsys, book, monkeypatch):
    """A crash between the release and its settlement: the file that was written says what it cost."""
    output = tmp_path / "release.json"
    with monkeypatch.context() as patch:

        def crash(*_):
            raise OSError("the disk is full")

        patch.setattr("expost.account.ledger.Reservation.settle", crash)
        options = [*REGRESSION, "--excess-risk", "0.45", "--regularization", "1", "--max-epsilon", "2"]
        said = call(capsys, "fit", write(tmp_path), *options, *on(book), "--output", output)
    assert said.status == 0
    assert "expost: warning: the disk is full. The worst case of entry" in said.err
    assert "charged, its worst case, until it is settled; " in said.out
    release = Release.from_json(output.read_text())
    stranger = tmp_path / "stranger.json"
    stranger.write_text(released(0.125).to_json())
    settle = ["ledger", "settle", book, release.id, "--reason", "the disk was full", "--release"]
    assert "is not that of the search" in call(capsys, *settle, stranger).err
    assert call(capsys, *settle, output).status == 0
    assert Ledger(book, "survey").budget.total.epsilon == release.epsilon
    assert "not a release" in call(capsys, *settle, book.with_name("data.csv")).err


def test_export(tmp_path, capsys, book):
    ledger = Ledger(book, "survey")
    for _ in range(3):
        ledger.book(released(0.1), reason="before there was a ledger")
    ledger.reserve(1.0)
    said = call(capsys, "ledger", "export", book)
    (dataset,) = json.loads(said.out)["datasets"]
    assert (dataset["dataset"], dataset["unit"]) == ("survey", UNIT)
    losses = [float.fromhex(entry["loss"]["epsilon"]) for entry in dataset["entries"]]
    assert losses == [0.1, 0.1, 0.1, 1.0]
    assert float.fromhex(dataset["total"]["epsilon"]) == ledger.budget.total.epsilon
    assert 3 * Fraction(0.1) + 1 + Fraction(float.fromhex(dataset["remaining"]["epsilon"])) <= 2
    assert dataset["entries"][0]["events"][0]["release"]["epsilon"] == 0.1
    assert dataset["entries"][0]["events"][0]["reason"] == "before there was a ledger"
    output = tmp_path / "all.json"
    assert call(capsys, "ledger", "export", book, "--output", output).status == 0
    assert json.loads(output.read_text()) == json.loads(said.out)
    again = call(capsys, "ledger", "export", book, "--output", output)
    assert again.status == 2
    assert f"{output} is there already; name another file with --output, or pass --force" in again.err
    assert "is not written over" in call(capsys, "ledger", "export", book, "--output", book, "--force").err
    assert call(capsys, "ledger", "export", book, "--output", output, "--force").status == 0


def test_what_was_spent_elsewhere_can_exceed_the_cap(tmp_path, capsys, book):
    path = tmp_path / "release.json"
    path.write_text(released(3.0).to_json())
    said = call(capsys, "ledger", "book", book, path)
    assert "3 is charged; 0 of 2 left; the cap is exceeded, 3 is charged" in said.out
    assert "remaining 0; the cap is exceeded: 3 of 2 is charged" in call(capsys, "ledger", "show", book).out


@pytest.mark.parametrize("action", ["create", "show", "history", "export", "settle", "verify", "repair", "book"])
def test_every_action_has_help_with_an_example(capsys, action):
    said = call(capsys, "ledger", action, "--help")
    text = " ".join(said.out.split())
    assert said.status == 0
    assert f"Example: expost ledger {action} survey.db" in text
    assert "Exit status: 0 done, 1 done but not printed, 2 an error and nothing recorded." in text


def test_an_id_that_is_not_told_from_others(capsys, book):
    with Store(book).adding("survey") as (_, more):
        said = ("booked", PureLoss(0.1), "2026-01-01", "me")
        more += [Event(f"abc{number}", *said, reason="before", release_id=f"{number}") for number in range(2)]
    said = call(capsys, "ledger", "settle", book, "abc", "--worst-case", "--reason", "x")
    assert (said.status, "2 entries of data set 'survey' have an id that begins with 'abc'" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "BOOK", "--dataset", "survey", "--cap", "5"], "has a data set 'survey' already"),
        (["create", "BOOK", "--dataset", "new", "--cap", "-1"], "cap must be a positive finite number"),
        (["create", "BOOK", "--dataset", "new", "--cap", "inf"], "cap must be a positive finite number"),
        (["create", "none/x.db", "--dataset", "new", "--cap", "1"], "does not exist"),
        (["show", "none.db"], "there is no ledger"),
        (["show", "TEXT"], "is no ledger of expost"),
        (["settle", "BOOK", "abc", "--worst-case", "--reason", "x"], "no entry of data set 'survey' has an id"),
        (["book", "BOOK", "TEXT"], "not a release"),
    ],
)
def test_mistakes(tmp_path, capsys, book, arguments, words):
    text = tmp_path / "notes.txt"
    text.write_text("notes " * 1000)
    named = {"BOOK": book, "TEXT": text}
    said = call(capsys, "ledger", *(named.get(argument, argument) for argument in arguments))
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert words in said.err


def test_it_starts_light():
    loaded = "import atexit, sys\nfrom expost.cli import main\n"
    loaded += "heavy = ('sklearn', 'scipy', 'pandas', 'pyarrow', 'numpy')\n"
    loaded += "atexit.register(lambda: print([name for name in heavy if name in sys.modules]))\n"
    loaded += "main(['ledger', '--help'])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_report_says_what_is_left(tmp_path, capsys, book):
    data = write(tmp_path)
    at_once, later = tmp_path / "at_once.html", tmp_path / "later.html"
    kept = tmp_path / "kept.json"
    said = call(capsys, "fit", data, *FIXED, "0.5", *on(book), "--output", kept, "--report", at_once)
    assert said.status == 0, said.err
    assert call(capsys, "fit", data, *FIXED, "0.25", *on(book)).status == 0
    assert call(capsys, "report", kept, *on(book), "--output", later).status == 0
    assert "0.5 of 2" in at_once.read_text("utf-8")
    assert "0.75 of 2" in later.read_text("utf-8")
    other = tmp_path / "other.json"
    other.write_text(released(0.1).to_json(), "utf-8")
    refused = call(capsys, "report", other, *on(book), "--output", tmp_path / "no.html")
    assert refused.status == 2
    assert not (tmp_path / "no.html").exists()
    alone = call(capsys, "report", kept, "--dataset", "survey", "--output", tmp_path / "no.html")
    assert (alone.status, alone.err) == (2, "expost: --dataset goes with --ledger; name its file\n")


def test_a_budget_with_a_delta(tmp_path, capsys):
    """Stated, charged, shown, told, exported and reported in words; a pure one refuses."""
    book, data = tmp_path / "delta.db", write(tmp_path)
    made = call(capsys, "ledger", "create", book, "--dataset", "survey", "--cap", "3", "--delta", "1e-6")
    assert "ε up to 3 at δ = 1e-06" in made.out
    options = [*REGRESSION, "--excess-risk", "0.2", "--regularization", "1", "--delta", "1e-6", "--max-epsilon", "2"]
    said = call(capsys, "fit", data, *options, *on(book), "--report", tmp_path / "report.html", "--force")
    assert said.status == 0, said.err
    assert "of 3 at δ = 1e-06 left (entry " in said.out
    assert call(capsys, "fit", data, *FIXED, "0.5", *on(book), "--force").status == 0
    shown = call(capsys, "ledger", "show", book).out
    assert "cap 3 at δ = 1e-06" in shown
    assert "for one more fit at δ = 1e-06" in shown
    assert "cap 3 at δ = 1e-06" in call(capsys, "ledger", "history", book).out
    (dataset,) = json.loads(call(capsys, "ledger", "export", book).out)["datasets"]
    assert dataset["cap"]["kind"] == "approximate"
    assert [entry["loss"]["kind"] for entry in dataset["entries"]] == ["curve", "curve"]
    assert "of 3 at δ = 1e-06 spent" in (tmp_path / "report.html").read_text("utf-8")
    call(capsys, "ledger", "create", tmp_path / "pure.db", "--dataset", "survey", "--cap", "3")
    refused = call(capsys, "fit", data, *options, "--perturbation", "covariance", *on(tmp_path / "pure.db"), "--force")
    assert refused.status == 2
    assert "is pure" in refused.err


def test_a_report_proposes_only_what_the_budget_takes(tmp_path, capsys, book):
    """A pure budget cannot be charged for a release at a δ, so nobody is told to try."""
    account = Account("by hand", worst_case=1.0, secure=True, delta=1e-6)
    account.book("generation", Curve.gaussian(1e-4))
    for release, proposed in ((released(0.5), True), (account.released([1.0]), False)):
        (tmp_path / "r.json").write_text(release.to_json(), encoding="utf-8")
        said = call(capsys, "report", tmp_path / "r.json", *on(book))
        assert said.status == 2
        assert "leave out --ledger" in said.err
        assert ("expost ledger book" in said.err) == proposed


def vanished(book, how, tmp_path):
    """Let a ledger lose what was reserved while a search draws."""
    if how == "deleted":
        book.unlink()
    elif how == "moved":
        book.rename(tmp_path / "moved.db")
    elif how == "damaged":
        book.write_bytes(b"x" * 8192)
    elif how == "replaced":
        book.unlink()
        Ledger.create(book, "survey", cap=2.0)
    else:
        shutil.copy(tmp_path / "copy.db", book)


@pytest.mark.parametrize("stuck", [False, True])
def test_an_interrupt_while_a_reservation_is_written_gives_it_back(tmp_path, capsys, book, monkeypatch, stuck):
    """It is in the file, and the search does not know it yet; what cannot be given back is told."""
    event, back = Ledger.reserve, Reservation.give_back

    def stopped(*given, **named):
        event(*given, **named)
        raise KeyboardInterrupt

    def busy(reservation, reason):
        if stuck:
            raise LedgerUnavailable("the ledger is busy")
        back(reservation, reason)

    monkeypatch.setattr(Ledger, "reserve", stopped)
    monkeypatch.setattr(Reservation, "give_back", busy)
    said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book))
    assert (said.status, said.err.startswith("expost: interrupted; nothing was spent")) == (130, True)
    (entry,) = Ledger(book, "survey").budget.entries
    assert entry.held == stuck
    assert entry.loss.epsilon == (0.5 if stuck else 0.0)
    assert (f"the ledger is busy. The worst case of entry {entry.id} stays charged" in said.err) == stuck


def test_a_ledger_that_somebody_locks_is_waited_for_once(tmp_path, capsys, book, monkeypatch):
    """By the settlement; the release is saved then, and its report is written without its budget."""
    waited, words, settle = [], SecureSource.words, Reservation.settle
    with contextlib.closing(sqlite3.connect(book, isolation_level=None)) as other:

        def connect(*given, timeout, **named):
            waited.append(timeout)
            return connected(*given, timeout=0, **named)

        def draw(self, count):
            if not other.in_transaction:
                other.execute("BEGIN EXCLUSIVE")
            return words(self, count)

        def settled(reservation, release):
            waited.clear()
            settle(reservation, release)

        connected = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", connect)
        monkeypatch.setattr(SecureSource, "words", draw)
        monkeypatch.setattr(Reservation, "settle", settled)
        output, report = tmp_path / "release.json", tmp_path / "report.html"
        files = ["--output", output, "--report", report]
        said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book), *files)
    assert said.status == 1
    assert waited == [60.0, 1.0]
    assert Release.from_json(output.read_text()).epsilon == 0.5
    assert "survey" not in report.read_text("utf-8")
    assert said.err.count("cannot be used: database is locked") == 1
    assert "keep the release, and charge it with expost ledger book" in said.err


def test_a_report_is_written_where_the_ledger_says_nothing(tmp_path, capsys, book, monkeypatch):
    def unavailable(ledger):
        raise LedgerUnavailable("the ledger is busy")

    settle = Reservation.settle

    def settled(reservation, release):
        settle(reservation, release)
        monkeypatch.setattr(Ledger, "budget", property(unavailable))

    monkeypatch.setattr(Reservation, "settle", settled)
    output, report = tmp_path / "release.json", tmp_path / "report.html"
    files = ["--output", output, "--report", report]
    said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book), *files)
    assert said.status == 1
    assert f"the budget in {report} could not be written (the ledger is busy); the release is in {output}" in said.err
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("how", ["deleted", "moved", "damaged", "replaced", "restored"])
def test_a_ledger_that_loses_the_entry_does_not_lose_the_charge(tmp_path, capsys, book, monkeypatch, how):
    """Booked where there is a ledger; where there is none the exit says that nothing is charged, the model is saved."""
    shutil.copy(book, tmp_path / "copy.db")
    words, seen = SecureSource.words, []

    def draw(self, count):
        if not seen:
            vanished(book, how, tmp_path)
        seen.append(count)
        return words(self, count)

    monkeypatch.setattr(SecureSource, "words", draw)
    output = tmp_path / "release.json"
    said = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book), "--output", output)
    release = Release.from_json(output.read_text())
    assert "stays charged" not in said.err
    if how in ("replaced", "restored"):
        assert said.status == 0
        assert "is booked, but the file had lost what was reserved" in said.err
        assert [(e.id, e.loss.epsilon) for e in Ledger(book, "survey").budget.entries] == [(release.id, 0.5)]
    else:
        assert said.status == 1
        assert "Nothing is charged for it there: keep the release, and charge it with expost ledger book" in said.err


def test_verify_and_repair(tmp_path, capsys, book):
    Ledger(book, "survey").book(released(0.75))
    assert call(capsys, "ledger", "verify", book).out == f"{book} is as it was recorded\n"
    content = book.read_bytes()
    book.write_bytes(content.replace(b"0x1.8000000000000p-1", b"0x1.8000000000000p-3"))
    for arguments in (["show"], ["verify"], ["history"], ["export"]):
        said = call(capsys, "ledger", *arguments, book)
        assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
        assert "was damaged or changed: event 1 is not as it was recorded" in said.err
    fit = call(capsys, "fit", write(tmp_path), *FIXED, "0.5", *on(book))
    assert (fit.status, fit.out) == (2, "")
    repair = ["ledger", "repair", book, "--epsilon", "0.625", "--reason"]
    assert "reason must say why" in call(capsys, *repair, " ").err
    assert "0.8125 is charged, 1.187 of 2 left" in call(capsys, *repair, "the archive says 0.75").out
    assert call(capsys, "ledger", "verify", book).status == 0
    assert "because the archive says 0.75 (a repair: event 1" in call(capsys, "ledger", "history", book).out
    assert "charged by a repair" in call(capsys, "ledger", "show", book).out
    assert "nothing to repair" in call(capsys, *repair, "again").err


POISON = [
    {"target": ["x", 1]},
    {"target": "x\n2026-01-01  a1f0  nothing  released  0  0"},
    {"status": "\x1b[2Jreleased\u202e"},
    {"promise": {"goal": "R²", "at_most": "x", "at_most_caller_units": {}}},
    {"promise": [1], "parameters": 7, "method": None},
    {"promise": {"goal": "error rate", "at_most": 10**400}},
    {"promise": {"excess_risk": True}},
]


@pytest.mark.parametrize("said", [*POISON, [], "x", 7, None], ids=range(len(POISON) + 4))
def test_whatever_a_release_in_the_file_says_it_forges_no_line(capsys, book, said):
    """Control characters do not reach the terminal, and what makes no sense is left out."""
    ledger = Ledger(book, "survey")
    forged = "2026-01-01  booked  ffff  0  ada\n\x1b[31m\x9b\u2028because"
    text = json.dumps({"status": "released", **said} if isinstance(said, dict) else said)
    with Store(book).adding("survey") as (_, more):
        loss, release = PureLoss(0.25), text if said is not None else "[" * 100_000
        more.append(Event(f"a1{forged}", "booked", loss, "2026-03-03", forged, forged, f"b{forged}", release))
        more.append(Event(forged, "reserved", loss, "2026-03-03", "ada", None, None, release))
    for action, lines in (("show", 5), ("history", 4)):
        shown = call(capsys, "ledger", action, book)
        assert (shown.status, shown.err, shown.out.count("\n")) == (0, "", lines)
        assert all(line.isprintable() for line in shown.out.splitlines())
    exported = call(capsys, "ledger", "export", book)
    assert exported.status == 0
    assert all(line.isprintable() for line in exported.out.splitlines())
    assert json.loads(exported.out)["datasets"][0]["entries"][1]["id"] == forged
    assert ledger.budget.total == PureLoss(0.5)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ({"goal": "R²", "at_least": 0.6}, "R² ≥ 0.6"),
        ({"goal": "R²", "at_most": 0.4}, "R² ≥ 0.6"),
        ({"goal": "error rate", "at_most": 0.2}, "error rate ≤ 0.2"),
    ],
)
def test_goals_are_named_as_they_were_stated(capsys, book, promise, words):
    release = released(0.25).with_details(promise=Promise("kept", **promise), method="auto")
    Ledger(book, "survey").book(release)
    assert f"  {words}  released" in call(capsys, "ledger", "show", book).out


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_many_entries_are_shown_in_time_that_grows_with_them(tmp_path, capsys, delta):
    """Each with a running total: work per entry does not grow."""
    ledger = Ledger.create(tmp_path / "many.db", "survey", cap=1e6, delta=delta)
    cap, release, counts = ledger.budget.cap, released(0.1), (250, 4000) if delta else (500, 8000)
    loss, text, taken = cap.charged(release, ()), release.to_json(indent=None), []
    for many in counts:
        with Store(ledger.path).adding("survey") as (budget, more):
            for number in range(len(budget.entries), many):
                more.append(Event(f"{number:016x}", "booked", loss, "2026-03-03", "ada", None, f"{number:016x}", text))
        start = time.process_time()
        shown = call(capsys, "ledger", "show", ledger.path).out.splitlines()
        taken.append(time.process_time() - start)
        assert len(shown) == many + 3
        assert float(shown[-2].split()[-1]) >= many * 0.1
    assert taken[1] < 48 * taken[0]  # sixteen times as many; the square would be 256
