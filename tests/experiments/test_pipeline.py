"""From a file or a task to tables and figures, end to end on generated data."""

import gzip
import json
import struct

import numpy as np
import pytest

from experiments import SIMULATION, Plan, Task, run_experiment
from experiments.__main__ import main
from experiments.datasets import Dataset
from experiments.methods import RIDGE, RescaledCovariance
from experiments.table import COLUMNS, FINAL, read_rows
from expost import ExcessRisk
from expost.noise import SeededSource
from expost.search import run_search
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from tests.experiments.helpers import contents, small_plan, small_task

FILES = {f"{name}.{kind}" for name in ("privacy", "accuracy", "split", "norm", "comparison") for kind in ("png", "svg")}
FILES |= {FINAL, "settings.json", "summary.md"}


def write_csv(path, kind, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    y = X @ [1.0, -0.5, 0.2] + 0.3 * rng.normal(size=n)
    target = [f"{value:.3f}" if kind == "regression" else ("yes" if value > 0 else "no") for value in y]
    lines = [f"{a:.3f},{b:.3f},{c:.3f},{cell}\n" for (a, b, c), cell in zip(X, target, strict=True)]
    path.write_text("a,b,c,y\n" + "".join(lines))


def compare(tmp_path, kind, folder, *more):
    write_csv(tmp_path / "my data.csv", kind)
    target = ["--target-bounds", "-4", "4"] if kind == "regression" else ["--classes", "no", "yes"]
    arguments = ["compare", str(tmp_path / "my data.csv"), "--target", "y", "--task", kind, "--bounds", "-2", "2"]
    arguments += [*target, "--regularization", "0.05", "--alphas", "0.1", "0.05", "--trials", "2", "--n-levels", "20"]
    return main([*arguments, "--output", str(tmp_path / folder), *more])


@pytest.mark.parametrize("kind", [pytest.param("regression", marks=pytest.mark.slow), "classification"])
def test_compare_writes_everything_and_says_what_it_is(tmp_path, capsys, kind):
    assert compare(tmp_path, kind, "one", "--processes", "1") == 0
    out, err = capsys.readouterr()
    assert SIMULATION in err
    assert SIMULATION in out
    assert "| 0.05 |" in out
    found = contents(tmp_path / "one")
    assert set(found) == FILES
    summary = found["summary.md"].decode()
    assert SIMULATION in summary
    assert SIMULATION in json.loads(found["settings.json"])["simulation"]
    assert "simulated" in FINAL
    for text in (summary, found["settings.json"].decode()):
        assert str(tmp_path) not in text
    for name, (width, height) in {
        "privacy": (1650, 900),
        "accuracy": (1650, 900),
        "norm": (960, 720),
        "comparison": (1650, 960),
    }.items():
        image = found[f"{name}.png"]
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", image[16:24]) == (width, height)
        assert len(image) > 20_000  # an empty frame has a tenth of that
        assert found[f"{name}.svg"].count(b"<path") > 20
    assert "## Beside the oracle" in summary
    table = {line.split(" | ")[0].strip("| "): line for line in summary.split("## Beside the oracle")[1].splitlines()}
    main = "covariance" if kind == "regression" else "output"
    assert table[f"oracle, {main}"].strip("| ").split(" | ")[2] == "1"
    assert f"auto, {main}" in table
    if kind == "regression":  # how many processes worked on it makes no difference
        assert compare(tmp_path, kind, "two", "--processes", "2") == 0
        assert contents(tmp_path / "two") == found


def test_table_schema(tmp_path):
    task, plan = small_task(), small_plan()
    rows = run_experiment(task, plan, tmp_path, processes=1)
    with gzip.open(tmp_path / FINAL, "rt") as stream:
        header, *lines = stream.read().splitlines()
    assert header.split(",") == list(COLUMNS)
    expected = {"dataset", "method", "calibration", "perturbation", "alpha", "trial", "seed", "status", "epsilon"}
    expected |= {"epsilon_generation", "epsilon_test", "level", "excess_risk", "norm", "null_excess_risk"}
    assert expected <= set(COLUMNS)
    assert len(lines) == len(rows) == sum(3 * method.trials(3) for method in RIDGE)
    assert len({row.seed for row in rows}) == len(rows)
    assert rows == read_rows(tmp_path)  # floats survive to the last bit
    for row in rows:
        parts = row.epsilon_generation + row.epsilon_test
        assert (row.excess_risk is None) == (row.status == "refused")
        if row.method in ("auto-covariance", "certified-covariance"):  # a certificate has probes and no levels
            assert row.epsilon >= parts * (1 - 1e-12)
            assert row.level is None
        else:
            assert row.epsilon == pytest.approx(parts)
            assert (row.level is None) == (row.status == "refused")


def test_a_row_can_be_run_again_from_its_seed(tmp_path):
    task, plan = small_task(), small_plan(trials=1)
    rows = {row.key: row for row in run_experiment(task, plan, tmp_path, processes=1)}
    row = rows["reduction-covariance", 0.05, 0]
    problem = Problem.of(SquaredLoss(), n=task.n, p=task.p, regularization=0.05, paper_constants=True)
    generator = RescaledCovariance(full_matrix=True).on(task.rows(), problem)
    release = run_search(
        generator,
        problem,
        ExcessRisk(0.05),
        method="above_threshold",
        failure_probability=0.1,
        calibration="published",
        n_levels=40,
        random_state=SeededSource(row.seed),
    )
    assert release.epsilon == row.epsilon
    assert generator.risk.excess(np.asarray(release.hypothesis)) == pytest.approx(row.excess_risk, rel=1e-12)


def test_a_refusal_is_a_row_with_its_cost(tmp_path):
    # One level far below what this target needs: the search has to give up.
    rows = run_experiment(small_task(n=300), small_plan(alphas=(0.004,), n_levels=1), tmp_path, processes=1)
    tight = [row for row in rows if row.status == "refused"]
    assert tight, "the grid was meant to contain refusals"
    assert all(row.epsilon > 0 and row.norm is None and row.excess_risk is None for row in tight)


def test_the_headline_follows_from_the_constants(tmp_path):
    """The paper's size and short rows, as after its normalisation: its ε comes out whatever the rows are."""
    rng = np.random.default_rng(5)
    X = rng.gamma(0.05, 1.0, size=(100_000, 77))
    X /= X.sum(axis=1).max()
    y = np.log1p(1e4 * X[:, -1])
    task = Task.of(Dataset("like-twitter", "regression", X, y / y.max(), ()))
    methods = tuple(method for method in RIDGE if method.name in ("reduction-covariance", "doubling-covariance-ball"))
    plan = Plan(methods, trials=2, alphas=(0.05,))
    rows = run_experiment(task, plan, tmp_path, processes=1)
    reduction = np.mean([row.epsilon for row in rows if row.method == "reduction-covariance"])
    assert 2.2 <= reduction <= 2.45
    (doubling,) = (row.epsilon for row in rows if row.method == "doubling-covariance-ball")
    assert doubling == pytest.approx(6.855, abs=0.001)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--trials", "-1"], "--trials must be a whole number, at least 1"),
        (["--alphas", "0"], "--alphas must be a positive"),
        (["--n-levels", "0"], "--n-levels must be a whole number, at least 1"),
        (["--target-bounds", "4", "-4"], "must"),
        (["--columns", "nothing"], "no column"),
    ],
)
def test_mistakes_take_one_line(tmp_path, capsys, change, message):
    assert compare(tmp_path, "regression", "wrong", "--processes", "1", *change) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("expost: ")
    assert message in lines[-1]


def test_reproduce_without_the_data_says_where_to_get_them(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("EXPOST_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "twitter", "--quick"]) == 2
    assert "Twitter.data" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_reproduce_on_a_generated_file(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(1)
    values = rng.gamma(0.3, 50.0, size=(200, 78))
    np.savetxt(tmp_path / "Twitter.data", values, delimiter=",", fmt="%.3f")
    monkeypatch.setenv("EXPOST_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", "twitter", "--rows", "2000", "--trials", "1", "--alphas", "0.2", "--no-figures"]
    assert main([*arguments, "--processes", "1"]) == 0
    assert "e^ε in the paper" in capsys.readouterr().out
    found = contents(tmp_path / "reproduce-twitter")
    assert set(found) == {FINAL, "settings.json", "summary.md"}
    summary = found["summary.md"].decode()
    assert "2,000 rows drawn with replacement from 200" in summary
    assert "The zero model" in summary
    assert "Which solution" in summary


def test_without_matplotlib_nothing_is_started(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert compare(tmp_path, "regression", "none") == 2
    assert 'pip install "expost[plot]"' in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_an_interrupt_says_that_nothing_is_lost(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.runner.run_experiment", interrupted)
    assert compare(tmp_path, "regression", "stopped") == 130
    assert "the same command goes on from there" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError()])
def test_an_interrupt_in_the_midst_of_a_trial(tmp_path, capsys, monkeypatch, error):
    """By then noise has been drawn, and the search says so; a trial that fails is no interrupt."""
    words, left = SeededSource.words, [100]

    def draw(self, count):
        left[0] -= 1
        if left[0] < 0:
            raise error
        return words(self, count)

    monkeypatch.setattr(SeededSource, "words", draw)
    arguments = (tmp_path, "regression", "stopped", "--processes", "1", "--no-figures")
    if isinstance(error, KeyboardInterrupt):
        assert compare(*arguments) == 130
        assert "the same command goes on from there" in capsys.readouterr().err
        assert read_rows(tmp_path / "stopped")
    else:
        assert compare(*arguments) == 1
        assert "expost: a trial failed (RuntimeError): please report it" in capsys.readouterr().err
