"""Examples with other libraries: they run where those libraries do, meet what they promise, and say what they cost."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from expost import Release

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(library: str, name: str) -> dict[str, object]:
    """Return the names of an example, or skip with what its library says."""
    try:
        importlib.import_module(library)
    except ImportError as error:  # not installed, or not with this scikit-learn
        pytest.skip(f"{library} cannot be imported: {error}")
    return runpy.run_path(str(EXAMPLES / name))


def run(name: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def opendp():
    return example("opendp", "opendp_doubling.py")


@pytest.fixture
def diffprivlib():
    return example("diffprivlib.models", "diffprivlib_doubling.py")


def check(release: Release, rounds_first: float) -> None:
    assert release.status == "released"
    assert release.method == "doubling"
    assert "the black box is ε-private" in release.claims[0]
    assert release.epsilon_generation == pytest.approx(rounds_first * (2 ** (release.level + 1) - 1))
    assert release.epsilon <= release.epsilon_worst_case


class TestOpenDP:
    ROWS = ["a"] * 700 + ["b"] * 250 + ["c"] * 50

    @pytest.mark.slow
    def test_it_runs(self, opendp):
        assert "for OpenDP's measurements" in run("opendp_doubling.py")

    @pytest.mark.slow
    def test_counts_are_as_accurate_as_asked_for(self, opendp):
        """20 runs, each wrong with probability at most 0.05: more than 9 wrong by chance have less than 10⁻⁶."""
        wrong = 0
        for seed in range(20):
            release = opendp["private_counts"](self.ROWS, ["a", "b"], 60, random_state=seed)
            check(release, 0.001)
            assert release.noise == "exact"
            wrong += np.abs(np.array(release.hypothesis) - [700, 250, 50]).max() > 60
        assert wrong <= 9

    @pytest.mark.parametrize("epsilon", [0.001, 0.064, 2.0])
    def test_a_measurement_costs_its_epsilon_for_a_row_replaced(self, opendp, epsilon):
        assert 0.99 * epsilon <= opendp["counting_at"](["a", "b"], epsilon).map(2) <= epsilon

    def test_a_measurement_for_rows_added_or_removed_is_caught(self, opendp):
        """Had ε been asked for at distance 1, a replaced row would cost twice that."""
        for_one = opendp["counting"](["a", "b"], 1 / 0.064)
        assert for_one.map(1) == pytest.approx(0.064)
        assert for_one.map(2) > 0.12


class TestDiffprivlib:
    def test_it_runs(self, diffprivlib):
        assert "for diffprivlib's models" in run("diffprivlib_doubling.py", "--seed", "1")

    def test_rows_are_in_the_ball_whatever_they_are(self, diffprivlib):
        wild = np.array([[1e300, -1e300, 3.0], [0.0, 0.0, 0.0], [10.0, 10.0, 10.0]])
        rows = diffprivlib["bounded"](wild, np.zeros(3), np.full(3, 10.0))
        assert np.linalg.norm(rows, axis=1).max() <= 1.0

    def test_the_error_rate_is_met(self, diffprivlib):
        """10 seeded runs, each wrong with probability at most 0.1: more than 8 wrong by chance have less than 10⁻⁶."""
        rng = np.random.default_rng(0)
        X = diffprivlib["bounded"](rng.uniform(0, 10, size=(5000, 2)), np.zeros(2), np.full(2, 10.0))
        y = (X @ [2.0, -1.0] > 0).astype(int)
        wrong = 0
        for seed in range(10):
            release = diffprivlib["private_classifier"](X, y, 0.2, random_state=seed)
            check(release, 0.01)
            assert release.noise == "over the reals"
            wrong += np.mean(release.hypothesis.predict(X) != y) > 0.2
        assert wrong <= 8
