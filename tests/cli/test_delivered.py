"""A release that was paid for reaches its caller, whatever fails around it; what would fail is found out before."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from expost import Release
from expost.cli import main
from tests.cli.helpers import BOUNDS, COLUMNS, QUICK, REGRESSION, write

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
