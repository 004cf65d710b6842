"""The accuracy promise from end to end: of many releases, at most a share γ may miss the target.

Every task is one where the null model θ = 0 misses the target by three times or more, so that meeting it takes
something. Shares are compared with γ by a one-sided binomial test of level RARE; the same test refutes a search whose
threshold is broken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from expost import ExcessRisk, validation
from expost.exceptions import AccuracyNotReached
from expost.mechanisms import mechanism_of
from expost.search import compare_with_optimum, cov_nr, gradual as tested, output_nr, run_search
from expost.solve.losses import HuberLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import N, at_most_by_chance, classification_rows, regression_rows, regression_sums

GAMMA = 0.1
LAM = 0.01
RIDGE_TARGET = 0.02
OUTPUT = {
    "logistic": (LogisticLoss(), classification_rows, 0.05),
    "smoothed hinge": (SmoothedHingeLoss(0.5), classification_rows, 0.1),
    "huber": (HuberLoss(0.3), regression_rows, 0.02),
    "squared": (SquaredLoss(), regression_rows, 0.02),
}


class Truth:
    """The true excess risk of hypotheses of one task, and that of the null model."""

    def __init__(self, rows, loss, perturbation):
        problem = Problem.of(loss, n=N, p=rows.p, regularization=LAM)
        self._risk = mechanism_of(perturbation).on(rows, problem).risk

    def of(self, release):
        return self._risk.excess(np.asarray(release.hypothesis))

    @property
    def null(self):
        return self._risk.excess(np.zeros(self._risk.p))


def achieved(search, truth, trials):
    """Return the excess risks of what was released in so many seeded searches; refusals release nothing."""
    out = []
    for seed in range(trials):
        try:
            out.append(truth.of(search(seed)))
        except AccuracyNotReached:
            continue
    return np.array(out)


def check(excess, target, trials, record_property):
    record_property("released", float(len(excess)))
    record_property("mean_achieved_over_target", float(excess.mean() / target))
    record_property("share_above_target", float(np.count_nonzero(excess > target) / trials))
    assert len(excess) >= 0.8 * trials
    assert excess.mean() < target
    assert np.count_nonzero(excess > target) <= at_most_by_chance(trials, GAMMA)


def covariance_search(calibration):
    def search(seed):
        return cov_nr(
            regression_sums(),
            excess_risk=RIDGE_TARGET,
            regularization=LAM,
            failure_probability=GAMMA,
            calibration=calibration,
            random_state=seed,
        )

    return search


def output_search(loss, rows, target, calibration="tight"):
    def search(seed):
        return output_nr(
            rows(),
            loss=loss,
            excess_risk=target,
            regularization=LAM,
            failure_probability=GAMMA,
            calibration=calibration,
            random_state=seed,
        )

    return search


def doubled_search(given, loss, perturbation, target, calibration="tight"):
    paper = calibration in validation.PAPER_CALIBRATIONS
    problem = Problem.of(loss, n=N, p=given.p, regularization=LAM, paper_constants=paper)

    def search(seed):
        return run_search(
            given,
            problem,
            ExcessRisk(target),
            method="doubling",
            perturbation=perturbation,
            failure_probability=GAMMA,
            calibration=calibration,
            random_state=seed,
        )

    return search


def test_the_null_models_miss_their_targets_threefold(record_property):
    tasks = {"ridge": (SquaredLoss(), regression_rows, RIDGE_TARGET), **OUTPUT}
    for name, (loss, rows, target) in tasks.items():
        miss = Truth(rows(), loss, "output").null / target
        record_property(f"null_over_target_{name}", float(miss))
        assert miss >= 3


@pytest.mark.parametrize("calibration", [pytest.param("theorem", marks=pytest.mark.slow), "published", "tight"])
def test_covariance(calibration, record_property):
    truth = Truth(regression_sums(), SquaredLoss(), "covariance")
    assert truth.null >= 3 * RIDGE_TARGET
    trials = 300 if calibration == "tight" else 120
    check(achieved(covariance_search(calibration), truth, trials), RIDGE_TARGET, trials, record_property)


def by_name(name):
    return pytest.param(name, marks=[pytest.mark.slow] if name in ("huber", "smoothed hinge", "logistic") else [])


@pytest.mark.parametrize("name", [by_name(name) for name in OUTPUT])
def test_output(name, record_property):
    loss, rows, target = OUTPUT[name]
    truth = Truth(rows(), loss, "output")
    assert truth.null >= 3 * target
    trials = 300
    check(achieved(output_search(loss, rows, target), truth, trials), target, trials, record_property)


@pytest.mark.parametrize("perturbation", [pytest.param("covariance", marks=pytest.mark.slow), "output"])
def test_doubling(perturbation, record_property):
    given = regression_sums() if perturbation == "covariance" else regression_rows()
    truth = Truth(given, SquaredLoss(), perturbation)
    trials = 300
    search = doubled_search(given, SquaredLoss(), perturbation, RIDGE_TARGET)
    check(achieved(search, truth, trials), RIDGE_TARGET, trials, record_property)


def test_a_threshold_a_thousand_times_too_high_is_caught(monkeypatch):
    """It accepts the first hypothesis, which is all noise."""

    def high(name, *, target, **settings):
        return replace(calibrate(name, target=target, **settings), threshold=1000 * target)

    calibrate = tested.calibrate
    monkeypatch.setattr(tested, "calibrate", high)
    truth = Truth(regression_sums(), SquaredLoss(), "covariance")
    excess = achieved(covariance_search("theorem"), truth, 60)
    assert np.count_nonzero(excess > RIDGE_TARGET) > at_most_by_chance(60, GAMMA)


def test_the_curator_sees_the_same_truth():
    release = covariance_search("tight")(0)
    view = compare_with_optimum(regression_rows(), release, SquaredLoss(), regularization=LAM)
    truth = Truth(regression_sums(), SquaredLoss(), "covariance")
    assert view.excess_risk == pytest.approx(truth.of(release))
    assert view.null_excess_risk == pytest.approx(truth.null)
    assert repr(view) == "CuratorView(private)"


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["theorem", "published", "tight"])
def test_covariance_at_length(calibration, record_property):
    truth = Truth(regression_sums(), SquaredLoss(), "covariance")
    check(achieved(covariance_search(calibration), truth, 600), RIDGE_TARGET, 600, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["theorem", "published", "tight"])
@pytest.mark.parametrize("name", OUTPUT)
def test_output_at_length(name, calibration, record_property):
    loss, rows, target = OUTPUT[name]
    truth = Truth(rows(), loss, "output")
    check(achieved(output_search(loss, rows, target, calibration), truth, 300), target, 300, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["theorem", "published"])
@pytest.mark.parametrize("perturbation", ["covariance", "output"])
def test_doubling_at_length(perturbation, calibration, record_property):
    given = regression_sums() if perturbation == "covariance" else regression_rows()
    search = doubled_search(given, SquaredLoss(), perturbation, RIDGE_TARGET, calibration)
    truth = Truth(given, SquaredLoss(), perturbation)
    check(achieved(search, truth, 300), RIDGE_TARGET, 300, record_property)
