"""Excess risk from Gaussian second moments: promises kept and broken on purpose, what is charged, where levels end."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from expost import AccuracyFirstRidge, ExcessRisk, RelativeExcessRisk
from expost.account.account import Account
from expost.account.composition import Curve
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.mechanisms.moments import risk_at_delta as gaussian_moments
from expost.mechanisms.moments.gaussian_moments import GaussianMoments, MomentNoise, NoiseBound
from expost.mechanisms.moments.risk_at_delta import MomentRiskPlan
from expost.noise import SeededSource
from expost.search import run_search
from expost.search.noisy_test import NoisyValue
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from expost.table.shape import l1_ball, l2_ball
from tests.helpers import RARE, classification_rows, features, regression_rows

N, DELTA, ALPHA = 20_000, 1e-6, 0.01
PROBLEM = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)


def plan(tested, alpha=ALPHA, budget=50.0, gamma=0.1, problem=PROBLEM):
    return MomentRiskPlan.of(problem, alpha, gamma, l2_ball(problem.p), budget=budget, delta=DELTA, tested=tested)


@cache
def private(problem):
    return GaussianMoments(l2_ball(problem.p)).on(regression_rows(N), problem)


def run(settled, seed=0):
    generator = private(settled.problem)
    account = Account("auto", settled.worst_case, secure=False, delta=DELTA)
    return settled.search(generator, account, SeededSource(seed)), generator


@pytest.mark.parametrize("tested", [False, True])
def test_models_are_as_good_as_they_say(tested):
    for seed in range(5):
        release, generator = run(plan(tested), seed)
        assert release.status == "released"
        assert generator.risk.excess(np.array(release.hypothesis)) <= ALPHA
        assert release.delta == DELTA
        assert release.epsilon <= release.epsilon_worst_case


class TestPromise:
    """Noise that is larger than certificates admit to, and looks without margins, break promises: both are caught."""

    RUNS, GAMMA = 20, 0.1

    def broken(self, tested):
        found = [run(plan(tested, alpha=0.002, gamma=self.GAMMA), [3, seed]) for seed in range(self.RUNS)]
        bad = [
            release.status == "released" and generator.risk.excess(np.array(release.hypothesis)) > 0.002
            for release, generator in found
        ]
        return stats.binomtest(sum(bad), self.RUNS, self.GAMMA, alternative="greater").pvalue

    @pytest.mark.parametrize("tested", [False, True])
    def test_it_is_kept(self, tested):
        assert self.broken(tested) > RARE

    def test_control_a_tenth_of_the_noise(self, monkeypatch):
        usual = NoiseBound.of

        def tenth(*public):
            bound = usual(*public)
            return NoiseBound(bound.matrix / 10, bound.vector / 10)

        monkeypatch.setattr(gaussian_moments.NoiseBound, "of", tenth)
        assert self.broken(False) < RARE

    def test_control_looks_that_subtract_their_margins(self, monkeypatch):
        usual = NoisyValue.margin
        monkeypatch.setattr(NoisyValue, "margin", lambda self, rho, failure: -usual(self, rho, failure))
        assert self.broken(True) < RARE


@pytest.mark.parametrize("tested", [False, True])
def test_what_is_charged_is_what_was_drawn(monkeypatch, tested):
    """ρ of every release of moments and of every look, and nothing else."""
    spent = []
    draw, ask = MomentNoise.draw, NoisyValue.ask
    monkeypatch.setattr(MomentNoise, "draw", lambda self, rho, source: (spent.append(rho), draw(self, rho, source))[1])
    monkeypatch.setattr(
        NoisyValue, "ask", lambda self, value, rho, source: (spent.append(rho), ask(self, value, rho, source))[1]
    )
    settled = plan(tested)
    release, _ = run(settled)
    np.testing.assert_allclose(release.account_curve().losses, Curve.gaussian(math.fsum(spent)).losses, rtol=1e-8)
    if not tested:  # going on costs exactly the last precision
        assert math.isclose(math.fsum(spent), settled.rhos[release.level], rel_tol=1e-9)


def test_levels_reach_where_a_certificate_must_come():
    settled = plan(False, budget=1e5)
    longest = PROBLEM.optimum_radius + settled.target / PROBLEM.regularization
    assert settled.bound(settled.rhos[-1]).lever(longest) <= settled.target


def test_public_numbers_decide_whether_gradients_are_tested():
    """Margins of looks do not grow with the columns; the bound on noise does."""
    many = Problem.of(SquaredLoss(), n=N, p=400, regularization=0.05)
    assert not plan(None).tested
    assert plan(None, problem=many, budget=1e4).tested


def test_a_budget_is_kept_and_used():
    settled = plan(False, alpha=1e-5, budget=1.0)
    release, _ = run(settled)
    assert release.status == "refused"
    assert 0.9 < release.epsilon <= release.epsilon_worst_case <= 1.0
    with pytest.raises(TargetUnreachable, match="Nothing was spent"):
        plan(False, alpha=1e-9, budget=0.01)


OPTIONS = {"feature_bound": 1.0, "target_bound": 1.0, "regularization": 0.05, "fit_intercept": False}


def test_a_target_that_zero_meets_costs_nothing():
    release, _ = run(plan(None, alpha=0.5))
    assert (release.epsilon, release.epsilon_worst_case, set(release.hypothesis)) == (0.0, 0.0, {0.0})


class TestDoors:
    X, Y = features(N)

    def model(self, **options):
        return AccuracyFirstRidge(
            **{
                **OPTIONS,
                "excess_risk": ALPHA,
                "random_state": 0,
                "delta": DELTA,
                "perturbation": "covariance",
                **options,
            }
        )

    @pytest.mark.parametrize("method", ["auto", "certified", "stationarity"])
    def test_fit(self, method):
        release = self.model(method=method).fit(self.X, self.Y).release_
        assert (release.perturbation, release.noise, release.delta) == ("covariance", "exact", DELTA)
        assert any("second moments under Gaussian noise" in reason for reason in release.parameters["reasons"])
        assert release.promise.excess_risk == ALPHA
        assert release.parameters["loss"] == "squared"

    def test_bounds_of_columns_are_put_to_use(self):
        """Ten columns of a tenth each have a norm of 0.32 at most, and a tenth of the noise on XᵀX."""
        rng = np.random.default_rng(1)
        X = rng.uniform(-1, 1, size=(5000, 10))
        y = np.clip(X.sum(axis=1) / 6, -1, 1)
        options = {"regularization": 0.05, "feature_bound": None, "max_epsilon": 100.0}
        bounded = self.model(**options, bounds=1.0).fit(X, y).release_
        loose = self.model(**{**options, "feature_bound": 10.0}).fit(X, y).release_
        assert bounded.epsilon < 0.6 * loose.epsilon

    def test_refusal_carries_its_cost(self):
        with pytest.raises(AccuracyNotReached) as caught:
            self.model(excess_risk=1e-4, max_epsilon=0.5).fit(self.X, self.Y)
        assert 0.0 < caught.value.release.epsilon <= 0.5
        assert caught.value.release.delta == DELTA

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"method": "doubling"}, "pure"),
            ({"perturbation": "output"}, "perturbation='covariance'"),
            ({"noise": "spherical"}, "Gaussian"),
            ({"radius": 0.5}, "leave radius out"),
            ({"keep_statistics": True}, "leave them out"),
            ({"excess_risk": None, "goal": RelativeExcessRisk(0.1)}, "pure"),
            ({"delta": 0.7}, "delta must be"),
        ],
    )
    def test_what_does_not_go_with_a_delta(self, options, said):
        with pytest.raises(ValueError, match=said):
            self.model(**options).fit(self.X, self.Y)

    def test_run_search(self):
        release = run_search(
            regression_rows(N), PROBLEM, ExcessRisk(ALPHA), delta=DELTA, perturbation="covariance", random_state=0
        )
        assert (release.status, release.delta) == ("released", DELTA)
        with pytest.raises(ValueError, match="pure"):
            run_search(regression_rows(N), PROBLEM, ExcessRisk(ALPHA), delta=DELTA, perturbation="output")


def test_rows_and_losses_that_are_not_for_it():
    logistic = classification_problem()
    with pytest.raises(ValueError, match="method='auto' alone"):
        run_search(classification_rows(N), logistic, ExcessRisk(ALPHA), delta=DELTA, method="certified", random_state=0)
    with pytest.raises(ValueError, match="alike in every column"):
        MomentRiskPlan.of(PROBLEM, ALPHA, 0.1, l1_ball(4), budget=1.0, delta=DELTA, tested=False)
    with pytest.raises(ValueError, match="ℓ₁ ball"):
        GaussianMoments(l2_ball(4)).require_rows(dataclasses.replace(regression_rows(N), norm="l2"), PROBLEM)


def classification_problem():
    from expost.solve.losses import LogisticLoss

    return Problem.of(LogisticLoss(), n=N, p=4, regularization=0.05)
