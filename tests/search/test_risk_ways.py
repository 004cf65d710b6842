"""An excess risk at a δ: whichever of Gaussian and pure noise is predicted cheaper, and says so."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

import expost
from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, ErrorRate
from tests.cli.helpers import call

DELTA = 1e-6
N = 40_000
STRONG = {"regularization": 0.02}  # with it the Jacobian of pure objective perturbation is cheap
NULL = {"regularization": 0.005}  # with it the null model of 60 columns is good enough


@cache
def numbers(columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(columns)
    X = rng.uniform(0, 1, (N, columns))
    return X, X @ rng.normal(size=columns) / columns + rng.normal(0, 0.1, N)


def ridge(columns: int, **options):
    X, y = numbers(columns)
    common = {"bounds": (0, 1), "target_bounds": (-2, 2), "random_state": 0, "max_epsilon": None}
    return AccuracyFirstRidge(**{"excess_risk": 0.005, **common, **options}).fit(X, y).release_


@pytest.mark.parametrize(
    ("columns", "stated", "pure", "runs"), [(12, {}, False, 10), (12, STRONG, False, 40), (60, NULL, True, 10)]
)
def test_the_cheaper_way_is_taken(columns, stated, pure, runs):
    """Both are measured: what is chosen without looking costs less on average than what is not.

    Single runs may cost more. Paired t-test at 10⁻³; measured values of t are at least 6, so a false alarm is rarer.
    """
    way = {"delta": DELTA, "perturbation": "covariance"} if pure else {}
    chosen = [ridge(columns, **stated, delta=DELTA, random_state=seed) for seed in range(runs)]
    others = [ridge(columns, **stated, **way, random_state=seed) for seed in range(runs)]
    spent = ([release.epsilon for release in both] for both in (chosen, others))
    assert stats.ttest_rel(*spent, alternative="less").pvalue < 1e-3
    for release in chosen:
        assert (release.delta == 0.0) == pure
        said = release.parameters["reasons"]
        assert any("pure noise was predicted to be cheapest" in reason for reason in said) == pure


def test_what_is_stated_is_done_and_shared_budgets_add_in_squares():
    assert ridge(12, delta=DELTA, perturbation="covariance", **STRONG).delta == DELTA
    with expost.budget(epsilon=50.0, delta=DELTA):
        assert ridge(12, delta=DELTA, max_epsilon=40.0, **STRONG).delta == DELTA


class TestLogistic:
    X = np.random.default_rng(1).uniform(0, 1, (20_000, 5))
    LABELS = np.where(X @ [1.0, -1.0, 0.5, 0.0, 0.3] > 0.4, "yes", "no")

    def fit(self, **options):
        model = AccuracyFirstLogisticRegression(bounds=(0, 1), classes=("no", "yes"), random_state=0, **options)
        return model.fit(self.X, self.LABELS)

    @pytest.mark.parametrize("way", [None, "descent", "objective", "covariance"])
    def test_goals_in_peoples_units(self, way):
        fitted = self.fit(goal=ErrorRate(0.25), delta=DELTA, perturbation=way)
        assert fitted.release_.delta == DELTA
        assert fitted.release_.status == "released"
        assert 1 - fitted.score(self.X, self.LABELS) <= 0.25

    def test_an_excess_risk_is_pure(self):
        release = self.fit(excess_risk=0.05, delta=DELTA).release_
        assert (release.delta, release.epsilon) == (0.0, self.fit(excess_risk=0.05).release_.epsilon)
        assert "holds at any delta" in release.parameters["reasons"][0]
        with pytest.raises(ValueError, match="leave perturbation, noise, keep_path and on_failure out"):
            self.fit(excess_risk=0.05, delta=DELTA, perturbation="output")

    def test_on_the_command_line(self, tmp_path, capsys):
        table = tmp_path / "data.csv"
        lines = [f"{','.join(map(str, row.round(4)))},{label}" for row, label in zip(self.X, self.LABELS, strict=True)]
        table.write_text("\n".join(["a,b,c,d,e,y", *lines]) + "\n")
        stated = ["--target", "y", "--task", "classification", "--classes", "no", "yes", "--bounds", 0, 1, "--seed", 0]
        said = call(
            capsys, "fit", table, *stated, "--error-rate", 0.25, "--delta", DELTA, "--output", tmp_path / "r.json"
        )
        assert said.status == 0, said.err
        assert "at δ = 1e-06 paid" in said.out
