"""Generators, goals and methods that do not go together: said before anything is spent, whichever they are."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest

from expost import ErrorRate, ExcessRisk, MeanSquaredError, RelativeExcessRisk
from expost.account import geometric_levels
from expost.exceptions import AccuracyNotReached
from expost.goals import R2, LogLoss
from expost.goals.measure import ErrorMeasure
from expost.mechanisms import Covariance, Output
from expost.mechanisms.descent.gradient_descent import GradientDescent
from expost.mechanisms.moments.gaussian_moments import GaussianMoments
from expost.mechanisms.objective.perturbation import ObjectivePerturbation
from expost.mechanisms.objective.through_huber import ThroughHuber
from expost.noise import NoisePath
from expost.search import METHODS, AboveThreshold, calibrate, run_search, search_path
from expost.solve.losses import CappedLogisticLoss, HuberLoss, LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.table.shape import l1_ball, l2_ball
from tests.helpers import logistic_rows, regression_rows

N, P = 2000, 4
MECHANISMS = [
    Covariance(),
    Output(),
    Output("spherical"),
    ObjectivePerturbation(l1_ball(P)),
    ObjectivePerturbation(l2_ball(P)),
    ObjectivePerturbation(l1_ball(P), gaussian=True),
    ThroughHuber(l1_ball(P)),
    GradientDescent(l1_ball(P)),
    GaussianMoments(l2_ball(P)),
]
GOALS = [
    ExcessRisk(0.05),
    MeanSquaredError(0.2),
    R2(0.5),
    RelativeExcessRisk(0.3),
    RelativeExcessRisk(0.3, baseline="null"),
    ErrorRate(0.2),
    LogLoss(0.5),
    None,
]


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), HuberLoss(0.25), CappedLogisticLoss(0.5)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_search_dies_on_the_way(loss, delta):
    """A release, a refusal, or a ``ValueError`` in words: nothing is charged for what a part does not have."""
    data = regression_rows(N) if loss.name in ("squared", "huber") else logistic_rows(N, P, 0)
    ended, said = 0, []
    for radius, mechanism in product((None, 1.0), MECHANISMS):
        problem = Problem.of(loss, n=N, p=P, regularization=0.05, radius=radius)
        try:
            mechanism.require(problem)
            generator = mechanism.on(data, problem)
        except ValueError:
            continue
        for goal, method, on_failure in product(GOALS, METHODS, ("refuse", "release_optimum")):
            asked = {"method": method, "delta": delta, "on_failure": on_failure, "max_epsilon": 1.0}
            try:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("expost.search.run.warn", lambda *said: None)
                    run_search(generator, problem, goal, random_state=1, **asked)
            except AccuracyNotReached:
                pass
            except ValueError as refused:
                said.append(str(refused))
                continue
            ended += 1
    assert ended > 5 or delta
    assert not any("math domain" in text for text in said)


def test_rows_that_the_way_back_does_not_take():
    """Huber's loss may fall back to second moments, which are for the ℓ₁ ball: Euclidean rows died on that way."""
    rows = dataclasses.replace(regression_rows(N), norm="l2")
    with pytest.raises(ValueError, match="ℓ₁ ball"):
        ThroughHuber(l2_ball(P)).on(rows, Problem.of(SquaredLoss(), n=N, p=P, regularization=0.001))


def test_a_rule_serves_one_search():
    counts = np.array([523, 1012, 77])

    def path():
        return NoisePath(counts, 2, geometric_levels(0.1, 4.0, 8), random_state=0)

    worst = ErrorMeasure(lambda noisy: float(np.abs(noisy - counts).max()), sensitivity=1.0)
    asked = {"failure_probability": 0.05, "n_tests": 8, "sensitivity": worst.effective_sensitivity}
    rule = AboveThreshold(worst, calibrate("tight", target=100.0, **asked), 8, random_state=1)
    assert search_path(path(), rule).status == "released"
    with pytest.raises(ValueError, match="has served a search") as said:
        search_path(path(), rule)
    assert "Nothing was spent" in said.value.__notes__
