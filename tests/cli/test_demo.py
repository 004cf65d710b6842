"""``expost demo``, ``--version``, the generated survey, and signs of life."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from importlib import metadata

import numpy as np
import pytest

import expost.cli.demo
import expost.cli.progress
from expost import AccuracyFirstModel, AccuracyFirstRidge, Release, Schema
from expost.cli.progress import Progress
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.datasets.survey import HOUSEHOLD_BOUNDS, TARGET_BOUNDS, make_household_energy
from expost.exceptions import AccuracyNotReached
from expost.table.encoding import Encoding
from tests.cli.helpers import QUICK, REGRESSION, call, write


def test_version(capsys):
    said = call(capsys, "--version")
    assert said.status == 0
    assert said.out == f"expost {metadata.version('expost')}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["demo", "--help"]])
def test_help(capsys, arguments):
    said = call(capsys, *arguments)
    assert said.status == 0
    assert said.out.startswith("usage: expost")
    assert said.err == ""


def test_the_installed_command_runs():
    script = os.path.join(os.path.dirname(sys.executable), "expost")
    if not os.path.exists(script):
        pytest.skip("the package is not installed with its script")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("expost ")


WITHOUT_PANDAS = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Block())
from expost.cli import main
sys.exit(main(["demo"]))
"""


def test_the_demo_runs_without_pandas_and_tells_the_truth_beside():
    done = subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, check=False)
    text = done.stdout.decode()
    if done.returncode == 3:  # the noise is secure, so at most one run of twenty may refuse
        assert "Run it again" in text
        return
    assert done.returncode == 0, done.stderr
    for name in SURVEY_SCHEMA["columns"]:
        assert name in text
    assert "20,000 households" in text
    assert "without privacy" in text
    assert "cryptographic source" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_seeded_demo_meets_its_target_and_beats_the_constant():
    status, text = expost.cli.demo.run_demo(random_state=0)
    assert status == "released"
    rates = [float(line.split("error rate ")[1].split(",")[0]) for line in text.splitlines()[-3:]]
    mine, constant, limit = rates
    assert limit <= mine <= expost.cli.demo.ERROR_RATE < constant
    assert "SEEDED SIMULATION" in text


def test_a_demo_that_is_refused_says_so(capsys, monkeypatch):
    refusal = Release(status="refused", method="auto", epsilon_generation=1.0, epsilon_worst_case=2.0)

    def refuse(self, table):
        raise AccuracyNotReached(refusal)

    monkeypatch.setattr(AccuracyFirstModel, "fit", refuse)
    said = call(capsys, "demo")
    assert said.status == 3
    assert "refused" in said.out
    assert "Run it again" in said.out


def test_the_survey_with_text_is_the_same_every_time_and_fits_its_schema():
    columns, again = make_survey(500), make_survey(500)
    for name, values in columns.items():
        np.testing.assert_array_equal(values, again[name])
    encoding = Encoding(Schema.from_dict(SURVEY_SCHEMA))
    assert encoding.encode(columns).n == 500  # nothing to complain about
    assert set(columns) == {*SURVEY_SCHEMA["columns"], "satisfied"}
    with pytest.raises(ValueError, match="at least 1"):
        make_survey(0)


def test_the_survey_is_the_same_every_time_and_within_its_bounds():
    columns, again = make_household_energy(500), make_household_energy(500)
    assert list(columns) == [*HOUSEHOLD_BOUNDS, "kwh_per_day"]
    for name, values in columns.items():
        np.testing.assert_array_equal(values, again[name])
        assert values.shape == (500,)
    for name, (low, high) in HOUSEHOLD_BOUNDS.items():
        assert low <= columns[name].min() <= columns[name].max() <= high
    share = np.mean((columns["kwh_per_day"] < TARGET_BOUNDS[0]) | (columns["kwh_per_day"] > TARGET_BOUNDS[1]))
    assert share < 0.01
    assert not np.array_equal(columns["residents"], make_household_energy(500, seed=1)["residents"])
    with pytest.raises(ValueError, match="at least 1"):
        make_household_energy(0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_quick_work_is_silent():
    for stream in (io.StringIO(), Terminal()):
        with Progress(stream) as progress:
            progress.stage("reading data")
        assert stream.getvalue() == ""


def wait_for(stream, text):
    limit = time.monotonic() + 10
    while text not in stream.getvalue() and time.monotonic() < limit:
        time.sleep(0.01)
    assert text in stream.getvalue()


def test_long_work_names_each_stage_once_in_a_log(monkeypatch):
    monkeypatch.setattr(expost.cli.progress, "_PATIENCE", 0.02)
    stream = io.StringIO()
    with Progress(stream) as progress:
        for stage in ("reading data", "searching"):
            progress.stage(stage)
            wait_for(stream, stage)
        time.sleep(0.1)
    assert stream.getvalue().count("reading data") == 1
    assert stream.getvalue().count("searching") == 1
    assert "\r" not in stream.getvalue()


def test_a_terminal_gets_one_line_that_is_wiped(monkeypatch):
    monkeypatch.setattr(expost.cli.progress, "_PATIENCE", 0.02)
    stream = Terminal()
    with Progress(stream) as progress:
        progress.stage("searching")
        wait_for(stream, "searching")
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\033[K")


def test_progress_stops_when_the_work_fails(monkeypatch):
    progress = Progress(io.StringIO())
    with pytest.raises(ValueError, match="broken"), progress:
        raise ValueError("broken")
    assert not progress._thread.is_alive()


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_long_fit_shows_life_on_stderr_and_only_there(tmp_path, capsys, monkeypatch, arguments):
    fit = AccuracyFirstRidge.fit

    def slow(self, X, y):
        time.sleep(0.2)
        return fit(self, X, y)

    monkeypatch.setattr(expost.cli.progress, "_PATIENCE", 0.02)
    monkeypatch.setattr(AccuracyFirstRidge, "fit", slow)
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--seed", 1, *arguments)
    assert said.status == 0
    assert "searching (if stopped, it counts by its worst case, ε = 10 or less) … (0 s)\n" in said.err
    assert "searching" not in said.out
    if arguments:
        json.loads(said.out)
