"""Another λ or fewer columns from released moments: for nothing, and with a promise that holds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, KeepPath, Release, compose, refine, refit
from expost.mechanisms.moments.certificate import Seen
from expost.release.kept_path import write_key
from tests.helpers import CountingSource

N, P = 20_000, 5


@cache
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, P))
    return X, np.clip(X @ [0.6, -0.5, 0.3, 0.1, 0.0] + rng.normal(0, 0.1, N), -1, 1)


def fitted(seed: int = 0, **options: Any) -> AccuracyFirstRidge:
    common = {"excess_risk": 0.004, "bounds": 1.0, "target_bound": 1.0, "keep_statistics": True, "random_state": seed}
    stated = {"regularization": 0.01, "fit_intercept": False, "max_epsilon": None}
    return AccuracyFirstRidge(**{**stated, **common, **options}).fit(*data())


def excess(model: AccuracyFirstRidge, theta: Any, lam: float, places: list[int]) -> float:
    """How much worse than the best model of those columns it is, worked out from the rows."""
    rows = model.prepared(*data())
    x, y = rows.x[:, places] / 2**20, rows.y / 2**20
    part = np.asarray(theta)[places]
    assert np.count_nonzero(theta) == np.count_nonzero(part)

    def risk(t: np.ndarray) -> float:
        return float(0.5 * np.mean((x @ t - y) ** 2) + 0.5 * lam * t @ t)

    best = np.linalg.solve(x.T @ x / N + lam * np.eye(len(places)), x.T @ y / N)
    return risk(part) - risk(best)


CHOICES = [(0.01, range(P)), (0.003, range(P)), (0.1, range(P)), (0.02, [0, 1]), (0.01, [2]), (0.5, [0, 2, 4])]


@pytest.mark.parametrize("seed", range(4))
def test_what_the_moments_prove_is_so(seed):
    """γ = 0.3 and six promises that hold together; four seeds, and the noise is well within its bound in each."""
    model = fitted(seed, failure_probability=0.3)
    for lam, places in CHOICES:
        other = refit(model.release_, regularization=lam, columns=[f"x{j}" for j in places])
        assert other.promise.failure_probability == 0.3
        assert 0 <= excess(model, other.hypothesis, lam, list(places)) <= other.promise.excess_risk
        assert other.promise.regularization == lam


def test_a_certificate_without_the_noise_would_be_caught(monkeypatch):
    """Taking the moments for exact proves too much."""
    genuine = Seen.read.__func__

    def exact(cls, said):
        return genuine(cls, {**said, "noise": 0.0})

    model = fitted()
    monkeypatch.setattr(Seen, "read", classmethod(exact))
    other = refit(model.release_, regularization=0.02)
    assert excess(model, other.hypothesis, 0.02, list(range(P))) > other.promise.excess_risk


def test_it_costs_nothing():
    one = fitted().release_
    two = refit(Release.from_json(one.to_json()), regularization=0.05)
    three = refit(two, columns=["x0"])
    assert (two.continues, three.continues) == (one.id, two.id)
    assert two.epsilon_increment == three.epsilon_increment == 0.0
    assert compose([one, two, three]).epsilon == compose([one]).epsilon == two.epsilon
    assert two.secure is False
    assert "among models of the columns kept" in three.promise.statement
    assert three.parameters["coef"][1:] == (0.0,) * (P - 1)


def test_the_same_question_has_the_same_answer():
    one = fitted().release_
    again = refit(one)
    assert again.hypothesis == one.hypothesis
    assert again.parameters["coef"] == one.parameters["coef"]
    assert again.promise.excess_risk <= one.promise.excess_risk


def test_statistics_change_neither_the_price_nor_the_model():
    with_them, without = (
        fitted(keep_statistics=keep, method="certified", perturbation="covariance").release_ for keep in (True, False)
    )
    assert with_them.hypothesis == without.hypothesis
    assert with_them.epsilon == without.epsilon
    assert "statistics" not in without.parameters
    read = Seen.read(with_them.parameters["statistics"])
    assert read.said == Seen.read(read.said).said


def test_a_constant_stays():
    model = fitted(fit_intercept=True)
    other = refit(model.release_, columns=["x1"])
    assert np.flatnonzero(other.hypothesis).tolist() == [1, P]


def test_a_refined_release_has_finer_moments(tmp_path):
    write_key(tmp_path / "key")
    keep = KeepPath(tmp_path / "path", tmp_path / "key", later=0.001)
    one = fitted(keep_path=keep).release_
    two = refine(one, tmp_path / "path", tmp_path / "key", excess_risk=0.001)
    promised = [refit(release, regularization=0.02).promise.excess_risk for release in (one, two)]
    assert promised[1] < promised[0]


def test_too_much_noise_promises_nothing():
    one = fitted().release_
    noisy = {**one.parameters["statistics"], "noise": 1.0}
    other = refit(one.with_details(parameters={**one.parameters, "statistics": noisy}), regularization=1e-5)
    assert other.promise.statement.startswith("no accuracy is promised")
    assert other.promise.excess_risk is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["x0", "age"]}, "no column.s. age"),
        ({"columns": []}, "at least one"),
        ({"columns": "x0"}, "at least one"),
        ({"columns": ["x0", "x0"]}, "twice"),
        ({"regularization": -1.0}, "regularization"),
        ({"regularization": 1e300}, "regularization must lie between 1e-15 and 1e[+]15"),
    ],
)
def test_mistakes(options, said):
    with pytest.raises(ValueError, match=said):
        refit(fitted().release_, **options)


def test_without_statistics_there_is_nothing_to_fit_to():
    for release in (fitted(keep_statistics=False).release_, fitted(excess_risk=0.6).release_):
        with pytest.raises(ValueError, match="has no statistics"):
            refit(release)


@pytest.mark.parametrize(
    "options",
    [{"perturbation": "output"}, {"method": "above_threshold"}, {"method": "fixed", "max_epsilon": 1.0}],
    ids=str,
)
def test_elsewhere_no_moments_are_revealed(options):
    source = CountingSource()
    with pytest.raises(ValueError, match="keep_statistics goes with"):
        fitted(source, **options)
    assert source.drawn == 0
    assert "keep_statistics" not in AccuracyFirstLogisticRegression().get_params()
