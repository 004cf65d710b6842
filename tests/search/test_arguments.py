"""Hopeless and senseless requests end before a single random word is drawn, and say what to do instead."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest

from expost import ExcessRisk, validation
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.mechanisms import mechanism_of
from expost.search import DoublingPlan, cov_nr, output_nr, run_search
from expost.search.above_threshold import calibrate
from expost.shown import up
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import CountingSource, N, classification_rows, plan_of, regression_rows, regression_sums

GOOD = {"excess_risk": 0.02, "regularization": 0.05, "calibration": "tight"}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"excess_risk": 0.0}, "excess_risk must be a positive finite number"),
        ({"excess_risk": -0.1}, "excess_risk"),
        ({"excess_risk": math.nan}, "excess_risk"),
        ({"excess_risk": math.inf}, "excess_risk"),
        ({"excess_risk": "0.1"}, "excess_risk"),
        ({"failure_probability": 0.0}, "failure_probability must lie strictly between 0 and 1"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"failure_probability": -0.1}, "failure_probability"),
        ({"failure_probability": math.nan}, "failure_probability"),
        ({"regularization": 0.0}, "regularization must be a positive finite number"),
        ({"regularization": -1.0}, "regularization"),
        ({"regularization": math.nan}, "regularization"),
        ({"regularization": 1e100}, "regularization must lie between 1e-15 and 1e[+]15"),
        ({"regularization": 1e-300}, "regularization must lie between"),
        ({"failure_probability": 1e-308}, "failure_probability must be at least 1e-09"),
        ({"radius": 0.0}, "radius must be a positive finite number"),
        ({"radius": -1.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"n_levels": 0}, "n_levels must be a whole number"),
        ({"n_levels": -3}, "n_levels"),
        ({"n_levels": 2.5}, "n_levels"),
        ({"calibration": "loose"}, "calibration must be one of"),
        ({"calibration": "loose", "method": "fixed", "max_epsilon": 1.0}, "calibration must be one of"),
        ({"method": "hope"}, "method must be one of"),
        ({"on_failure": "shrug"}, "on_failure must be one of"),
        ({"levels": [0.1, 0.1]}, "strictly increasing"),
        ({"levels": [0.2, 0.1]}, "strictly increasing"),
        ({"levels": [0.0, 0.1]}, "positive and finite"),
        ({"levels": [0.1, math.nan]}, "positive and finite"),
        ({"levels": []}, "at least one"),
        ({"levels": [0.1], "n_levels": 1}, "levels or n_levels, not both"),
        ({"max_epsilon": 0.0}, "max_epsilon must be a positive finite number"),
        ({"max_epsilon": -1.0, "method": "theory"}, "max_epsilon"),
        ({"max_epsilon": math.nan, "method": "theory"}, "max_epsilon"),
        ({"max_epsilon": math.nan, "method": "doubling"}, "max_epsilon"),
        ({"method": "doubling", "factor": 1.0}, "factor must exceed 1"),
    ],
)
def test_senseless_arguments(bad, message):
    source = CountingSource()
    with pytest.raises(ValueError, match=message) as raised:
        cov_nr(regression_sums(), **{**GOOD, **bad}, random_state=source)
    assert not isinstance(raised.value, TargetUnreachable)
    assert source.drawn == 0


def test_the_counting_source_counts():
    source = CountingSource()
    cov_nr(regression_sums(), **GOOD, random_state=source)
    assert source.drawn > 100


@pytest.mark.parametrize(
    ("rows", "loss", "perturbation", "message"),
    [
        (classification_rows, LogisticLoss(), "covariance", "covariance perturbation needs the squared loss"),
        (regression_rows, SquaredLoss(), "weights", "perturbation must be one of"),
        (regression_sums, SquaredLoss(), "output", "needs the rows themselves"),
    ],
)
def test_combinations_that_do_not_exist(rows, loss, perturbation, message):
    source = CountingSource()
    problem = Problem.of(loss, n=N, p=4, regularization=0.05)
    options = {"method": "above_threshold", "perturbation": perturbation, "random_state": source}
    with pytest.raises(ValueError, match=message):
        run_search(rows(), problem, ExcessRisk(0.02), **options)
    assert source.drawn == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"name": "loose"}, "calibration must be one of"),
        ({"target": 0.0}, "target"),
        ({"target": math.nan}, "target"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"n_tests": 0}, "number of tests"),
        ({"sensitivity": 0.0}, "sensitivity"),
    ],
)
def test_senseless_calibrations(bad, message):
    given = {"name": "tight", "target": 0.1, "failure_probability": 0.1, "n_tests": 5, "sensitivity": 0.01, **bad}
    with pytest.raises(ValueError, match=message):
        calibrate(given.pop("name"), **given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"target": -1.0}, "target"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"calibration": "loose"}, "calibration"),
        ({"first": 0.0}, "first and last"),
    ],
)
def test_senseless_doubling_plans(bad, message):
    given = {"target": 0.1, "failure_probability": 0.1, "sensitivity": 0.01, "first": 0.01, "last": 1.0, **bad}
    with pytest.raises(ValueError, match=message):
        DoublingPlan.of(**given)


def rows_named(error):
    """Return the number of rows a message asks for."""
    return int(re.search(r"about ([\d,]+) rows", str(error)).group(1).replace(",", ""))


class TestUnreachable:
    @pytest.mark.parametrize("calibration", ["theorem", "published", "tight"])
    def test_testing_alone_exceeds_the_budget(self, calibration):
        source = CountingSource()
        with pytest.raises(TargetUnreachable, match="Nothing was spent") as raised:
            cov_nr(
                regression_sums(),
                excess_risk=0.001,
                regularization=0.01,
                calibration=calibration,
                max_epsilon=0.5,
                random_state=source,
            )
        assert source.drawn == 0
        rows = rows_named(raised.value)
        assert rows > N

        def plan(n):
            paper = calibration in validation.PAPER_CALIBRATIONS
            problem = Problem.of(SquaredLoss(), n=n, p=4, regularization=0.01, paper_constants=paper)
            return plan_of(problem, ExcessRisk(0.001), calibration=calibration, max_epsilon=0.5)

        assert plan(rows).worst_case <= 0.5
        with pytest.raises(TargetUnreachable):
            plan(int(rows * 0.85))  # the number is not just a large one

    @pytest.mark.parametrize("calibration", ["theorem", "tight"])
    @pytest.mark.parametrize("perturbation", ["covariance", "output"])
    def test_theory_exceeds_the_budget(self, perturbation, calibration):
        """With the paper's sensitivity of the ridge minimiser, ε shrinks as 1/√n only."""
        source = CountingSource()
        mechanism, paper = mechanism_of(perturbation), calibration in validation.PAPER_CALIBRATIONS

        def needed(n):
            return mechanism.theory_epsilon(problem(n), 0.01)

        def problem(n):
            return Problem.of(SquaredLoss(), n=n, p=4, regularization=0.01, paper_constants=paper)

        budget = needed(N) / 3
        given = regression_sums() if perturbation == "covariance" else regression_rows()
        with pytest.raises(TargetUnreachable, match="Nothing was spent") as raised:
            run_search(
                given,
                problem(N),
                ExcessRisk(0.01),
                perturbation=perturbation,
                method="theory",
                calibration=calibration,
                max_epsilon=budget,
                random_state=source,
            )
        assert source.drawn == 0
        rows = rows_named(raised.value)
        assert needed(rows) <= budget < needed(int(0.99 * rows))

    def test_one_round_of_doubling_exceeds_the_budget(self):
        source = CountingSource()
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01)
        options = {"method": "doubling", "max_epsilon": 0.5, "random_state": source}
        with pytest.raises(TargetUnreachable, match="Nothing was spent") as raised:
            run_search(regression_sums(), problem, ExcessRisk(0.001), **options)
        assert source.drawn == 0
        rows = rows_named(raised.value)
        enough, too_few = (Problem.of(SquaredLoss(), n=n, p=4, regularization=0.01) for n in (rows, int(0.85 * rows)))

        def plan(problem):
            return DoublingPlan.of(
                target=0.001,
                failure_probability=0.1,
                sensitivity=problem.risk_sensitivity * (1 + 1e-5),
                first=1 / problem.n,
                last=1.0,
                calibration="tight",
                max_epsilon=0.5,
            )

        assert plan(enough).rounds >= 1
        with pytest.raises(TargetUnreachable):
            plan(too_few)

    def test_every_level_exceeds_the_budget(self):
        source = CountingSource()
        with pytest.raises(TargetUnreachable, match="every level exceeds"):
            cov_nr(regression_sums(), **GOOD, levels=[50.0, 60.0], max_epsilon=10.0, random_state=source)
        assert source.drawn == 0

    def test_levels_beyond_the_budget_are_left_out(self):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)
        plan = plan_of(problem, ExcessRisk(0.02), levels=[0.1, 1.0, 50.0], max_epsilon=10.0)
        assert plan.levels == (0.1, 1.0)


class TestRefusal:
    def refusal(self):
        with pytest.raises(AccuracyNotReached) as raised:
            output_nr(classification_rows(), excess_risk=0.01, regularization=0.05, levels=[1e-6], random_state=0)
        return raised.value

    def test_it_carries_a_refused_release(self):
        error = self.refusal()
        release = error.release
        assert (release.status, release.hypothesis) == ("refused", None)
        assert f"epsilon = {up(release.epsilon)} " in str(error)
        assert release.promise.excess_risk == 0.01
        assert release.perturbation == "output"
        assert release.exact

    def test_it_survives_pickling(self):
        error = self.refusal()
        again = pickle.loads(pickle.dumps(error))
        assert again.release == error.release
        assert str(again) == str(error)


def test_a_radius_of_ones_own_is_compared_with():
    problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01, radius=2.0)
    assert problem.radius_stated
    assert "radius you stated" in problem.compared_with
    larger = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01, radius=50.0)
    assert not larger.radius_stated
    assert larger.radius == pytest.approx(5.0)
    release = cov_nr(regression_sums(), **{**GOOD, "regularization": 0.01}, radius=0.7, random_state=0)
    assert np.linalg.norm(release.hypothesis) <= 0.7 * (1 + 1e-12)
    assert release.promise.radius == 0.7
