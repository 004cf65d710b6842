"""A run that is killed goes on where it stopped: nothing lost, nothing run twice, the same bytes at the end."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments import run_experiment
from experiments.runner import stream
from experiments.table import FINAL, HEADER, PARTIAL, Journal, Row, read_rows
from tests.experiments.helpers import contents, small_plan, small_task

GRID = {"alphas": (0.05, 0.1, 0.15, 0.2), "trials": 6, "n_levels": 60}
RUN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.experiments.helpers import small_plan, small_task
from experiments import run_experiment
run_experiment(small_task(), small_plan(**{GRID!r}), sys.argv[1], processes=2)
"""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run_experiment(small_task(), small_plan(**GRID), folder, processes=1)
    return contents(folder)


def complete_lines(path):
    return path.read_bytes().count(b"\n") - 1 if path.exists() else 0


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2)])
def test_killed_at_a_random_moment(tmp_path, uninterrupted, seed):
    jobs = list(small_plan(**GRID).jobs())
    stop_after = random.Random(seed).randrange(1, len(jobs) // 2)
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)])
    try:
        deadline = time.monotonic() + 60
        while complete_lines(tmp_path / PARTIAL) < stop_after:
            assert time.monotonic() < deadline
            assert process.poll() is None, "the run was over before it could be killed"
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert not (tmp_path / FINAL).exists()
    kept = {row.key: row for row in read_rows(tmp_path)}
    assert stop_after <= len(kept) < len(jobs)

    steps = []
    task, plan = small_task(), small_plan(**GRID)
    rows = run_experiment(task, plan, tmp_path, processes=1, progress=lambda done, total: steps.append(done))
    assert len(steps) == len(jobs) - len(kept)  # no finished trial was run again
    assert all(kept.get(row.key, row) == row for row in rows)
    assert contents(tmp_path) == uninterrupted


def test_a_torn_line_is_run_again(tmp_path, uninterrupted):
    for name, content in uninterrupted.items():
        (tmp_path / name).write_bytes(content)
    task, plan = small_task(), small_plan(**GRID)
    rows = read_rows(tmp_path)
    (tmp_path / FINAL).unlink()
    half = rows[1].line()[:-4]  # cut inside its last number: still a number, but a wrong one
    (tmp_path / PARTIAL).write_text(HEADER + rows[0].line() + half)
    assert [row.key for row in read_rows(tmp_path)] == [rows[0].key]
    run_experiment(task, plan, tmp_path, processes=1)
    assert contents(tmp_path) == uninterrupted


@pytest.mark.parametrize("left", ["", HEADER[:10]])
def test_killed_before_the_first_row(tmp_path, left):
    (tmp_path / PARTIAL).write_text(left)
    assert read_rows(tmp_path) == []
    row = Row("d", "m", "published", "output", 0.1, 0, 7, "released", 1.5, 0.5, 1.0, 3, 40, 0.01, 2.0, 0.3)
    with Journal(tmp_path) as journal:
        journal.append(row)
    assert read_rows(tmp_path) == [row]


def test_more_trials_keep_the_ones_there(tmp_path):
    task = small_task()
    first = run_experiment(task, small_plan(trials=2), tmp_path, processes=1)
    steps = []
    more = run_experiment(task, small_plan(trials=4), tmp_path, processes=1, progress=lambda d, t: steps.append(d))
    assert set(first) <= set(more)
    assert len(steps) == len(more) - len(first)
    with pytest.raises(ValueError, match="trials beyond the grid"):
        run_experiment(task, small_plan(trials=2), tmp_path, processes=1)
    assert read_rows(tmp_path) == more


@pytest.mark.parametrize(
    ("other_task", "other_plan", "named"),
    [({"seed": 1}, {}, "rows"), ({}, {"seed": 1}, "seed"), ({}, {"regularization": 0.1}, "regularization")],
)
def test_another_experiment_is_left_alone(tmp_path, other_task, other_plan, named):
    run_experiment(small_task(), small_plan(trials=1), tmp_path, processes=1)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=f"another experiment.*{named}"):
        run_experiment(small_task(**other_task), small_plan(trials=1, **other_plan), tmp_path, processes=1)
    assert contents(tmp_path) == before


def test_a_foreign_file_is_left_alone(tmp_path):
    (tmp_path / PARTIAL).write_text("something,else\n1,2\n")
    with pytest.raises(ValueError, match="not a table of trials"):
        run_experiment(small_task(), small_plan(trials=1), tmp_path, processes=1)
    assert (tmp_path / PARTIAL).read_text().startswith("something")


def test_an_error_in_a_worker_is_shown():
    plan = small_plan(trials=1)
    jobs = [job for job in plan.jobs() if job.method.perturbation == "covariance"]
    with pytest.raises(RuntimeError, match="covariance perturbation needs the squared loss"):
        list(stream(small_task("classification"), plan, jobs, 2))


def test_lines_survive_the_round_trip():
    row = Row("d", "m", "published", "output", 0.1, 3, 7, "refused", 1.5, 0.1 + 0.2, 1.2, None, 40, None, None, 1e-300)
    assert Row.parse(row.line()) == row
    with pytest.raises(ValueError, match="not a whole row"):
        Row.parse(row.line()[:-1])
