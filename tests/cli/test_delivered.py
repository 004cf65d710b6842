"""A release that was paid for reaches its caller, whatever fails around it; what would fail is found out before."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from expost import Ledger, Release
from expost.cli import main
from tests.cli.helpers import BOUNDS, COLUMNS, QUICK, REGRESSION, call, write

SEEDED = [*REGRESSION, *QUICK, "--seed", "1"]
IMPATIENT = """
import sys
from expost.cli import command, progress
progress._PATIENCE, progress.Progress._tick = 0.0, lambda self: None  # passes alone are told
sys.exit(command.main(sys.argv[1:]))
"""


@pytest.fixture
def fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return ["fit", str(write(tmp_path)), *SEEDED]


def saved(path):
    return Release.from_json(path.read_text(encoding="utf-8")).status


def test_messages_that_nobody_reads(fit, tmp_path):
    """Standard error is a pipe whose reader has gone; progress and a warning are written to it."""
    reading, writing = os.pipe()
    os.close(reading)
    more = ["--memory", "64", "--progress", "--output", "release.json"]
    command = [sys.executable, "-c", IMPATIENT, *fit, *more]
    done = subprocess.run(command, stdout=writing, stderr=writing, check=False)
    os.close(writing)
    assert (done.returncode, saved(tmp_path / "release.json")) == (0, "released")


def closing(*numbers):
    def close():
        for number in numbers:
            os.close(number)

    return close


@pytest.mark.skipif(os.name != "posix", reason="streams are closed before the process begins")
@pytest.mark.parametrize(("closed", "status"), [((1, 2), 2), ((2,), 0)])
def test_a_release_that_nothing_could_take_is_not_paid_for(fit, tmp_path, capsys, closed, status):
    """Where standard output alone is open it is printed there; a ledger tells what was spent."""
    call(capsys, "ledger", "create", "L.db", "--dataset", "d", "--cap", "9")
    command = [
        sys.executable,
        "-m",
        "expost.cli",
        *fit[:2],
        *REGRESSION,
        "--method",
        "fixed",
        "--max-epsilon",
        "1",
        "--json",
    ]
    done = subprocess.run(
        [*command, "--ledger", "L.db", "--dataset", "d"],
        stdout=subprocess.PIPE,
        preexec_fn=closing(*closed),
        check=False,
    )
    assert done.returncode == status
    entries = Ledger("L.db", "d").budget.entries
    assert [entry.release_id for entry in entries] == (
        [Release.from_json(done.stdout.decode()).id] if status == 0 else []
    )


def test_an_interrupt_while_warnings_are_told(fit, tmp_path, monkeypatch):
    """A terminal that takes no more may be left by Ctrl-C."""

    class Stopped(io.StringIO):
        def write(self, text):
            if "warning" in text:
                raise KeyboardInterrupt
            return len(text)

    monkeypatch.setattr(sys, "stderr", Stopped())
    inferred = ["--target", "churn", "--task", "classification", *COLUMNS, *BOUNDS, *QUICK, "--seed", "1"]
    assert main([*fit[:2], *inferred, "--output", "release.json"]) == 3
    assert saved(tmp_path / "release.json") == "released"


def test_a_report_of_the_name_that_the_release_would_get(fit, tmp_path, capsys):
    said = call(capsys, *fit, "--report", "data-spend.json", "--force")
    assert (said.status, saved(tmp_path / "data-spend-2.json")) == (0, "released")
    assert "saved to data-spend-2.json" in said.out
    assert (tmp_path / "data-spend.json").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("option", ["--output", "--report", "--keep-path"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_what_is_no_file_of_its_own_is_not_written_over(fit, tmp_path, capsys, option, kind):
    place = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / ("gone" if kind == "dangling link" else "data.csv.bak"))
    (tmp_path / "data.csv.bak").touch()
    call(capsys, "key", "key")
    keep = ["--later", "0.02", "--key", "key"] if option == "--keep-path" else []
    for force in ([], ["--force"]):
        said = call(capsys, *fit, *keep, option, "place", *force)
        assert (said.status, f"place is a link, a device or a pipe; {option} must name" in said.err) == (2, True)
        assert "Nothing was spent" in said.err
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "data.csv.bak").read_bytes() == b""


@pytest.mark.parametrize("many", [240, 244, 245, 256])
def test_long_names(fit, tmp_path, capsys, many):
    """What the disk takes is written, under the name of a refusal as well; what it does not take is told beforehand."""
    name = "x" * (many - 5) + ".json"
    said = call(capsys, *fit, "--output", name)
    assert said.status == (0 if many < 245 else 2), said.err
    assert (tmp_path / name).is_file() if many < 245 else "name too long" in said.err


def test_a_default_name_of_long_names(fit, tmp_path, capsys):
    data = tmp_path / ("é" * 120 + ".csv")
    os.rename(fit[1], data)
    said = call(capsys, "fit", data, *fit[2:])
    assert (said.status, f"saved to {'é' * 60}-spend.json" in said.out) == (0, True)


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_the_companion_of_a_ledger_is_no_place_for_a_release(fit, tmp_path, capsys, ending):
    call(capsys, "ledger", "create", "L.db", "--dataset", "d", "--cap", "9")
    said = call(capsys, *fit[:-2], "--ledger", "L.db", "--dataset", "d", "--output", f"L.db{ending}")
    assert (said.status, "is read, so it is not written over" in said.err) == (2, True)


def test_a_plan_does_not_draw_over_its_schema(tmp_path, capsys):
    schema = tmp_path / "schema.svg"
    schema.write_text('target = "y"\ntarget_bounds = [0, 2]\n[columns]\na = { bounds = [0, 6] }\n')
    before = schema.read_bytes()
    said = call(capsys, "plan", schema, "--rows", "500", "--plot", schema, "--force")
    assert (said.status, "is read, so it is not written over" in said.err) == (2, True)
    assert schema.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "room"),
    [
        (["key", "curator.key"], 0),
        (["ledger", "create", "ledger.db", "--dataset", "d", "--cap", "1"], 0),
        (["ledger", "create", "ledger.db", "--dataset", "d\udcff", "--cap", "1"], 1 << 30),
        (["ledger", "create", "ledger.db", "--dataset", "d", "--cap", "1", "--unit", "d\udcff"], 1 << 30),
        (["example", "survey"], 4096),
    ],
    ids=["a key", "a ledger", "a name that is no text", "a unit that is no text", "a table of two files"],
)
def test_nothing_is_left_where_nothing_was_written(tmp_path, arguments, room):
    resource = pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-m", "expost.cli", *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr[:8]) == (2, b"", b"expost: ")
    assert b"Errno" not in done.stderr
    assert b".expost-" not in done.stderr
    assert list(tmp_path.iterdir()) == []
