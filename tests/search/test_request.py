"""What the caller asked for, as one value: what does not go together is refused, all else is settled without rows."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest

from expost import (
    F1,
    ErrorRate,
    ExcessRisk,
    MeanCost,
    MeanSquaredError,
    Precision,
    Recall,
    RelativeExcessRisk,
    Specificity,
    validation,
)
from expost.exceptions import TargetUnreachable
from expost.goals import GOALS, R2, LogLoss
from expost.mechanisms import MECHANISMS, Covariance, Mechanism, Output, mechanism_of
from expost.search import METHODS, Request, cov_nr, output_nr, run_search
from expost.search.doubling import SingleShot
from expost.solve.losses import HuberLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import CountingSource, N, classification_rows, regression_rows, regression_sums

GIVEN = {
    ExcessRisk: ExcessRisk(0.02),
    RelativeExcessRisk: RelativeExcessRisk(0.3, baseline="null"),
    ErrorRate: ErrorRate(0.2),
    MeanSquaredError: MeanSquaredError(0.1),
    R2: R2(0.5),
    LogLoss: LogLoss(0.5),
    Recall: Recall(0.7),
    Precision: Precision(0.7),
    F1: F1(0.6),
    Specificity: Specificity(0.7),
    MeanCost: MeanCost(0.4, false_positive=1, false_negative=2),
}
LOSSES = [SquaredLoss(), LogisticLoss(), HuberLoss(0.5), SmoothedHingeLoss(0.5)]
MECHANISMS_GIVEN = [Covariance(), Covariance(full_matrix=True), Output(), Output("spherical")]


def problem_for(loss=None, **settings) -> Problem:
    return Problem.of(loss or SquaredLoss(), **{"n": N, "p": 4, "regularization": 0.05, **settings})


def request(method="above_threshold", goal=None, mechanism=None, problem=None, **settings) -> Request:
    return Request(
        problem or problem_for(), goal or ExcessRisk(0.02), METHODS[method], mechanism or Covariance(), **settings
    )


class TestCalibrations:
    @pytest.mark.parametrize("calibration", validation.CALIBRATIONS)
    @pytest.mark.parametrize("paper_constants", [False, True])
    def test_the_papers_go_with_the_papers_constants(self, calibration, paper_constants):
        """Either mismatch would calibrate a test for sensitivities that are not those of the search."""
        problem = problem_for(paper_constants=paper_constants)
        paper = calibration in validation.PAPER_CALIBRATIONS
        if paper == paper_constants:
            plan = request(problem=problem, calibration=calibration).plan()
            assert plan.test.calibration.name == calibration
            return
        with pytest.raises(ValueError, match=rf"calibration='{calibration}' goes with .*paper_constants={paper}"):
            request(problem=problem, calibration=calibration)
        source = CountingSource()
        with pytest.raises(ValueError, match="paper_constants"):
            run_search(regression_sums(), problem, ExcessRisk(0.02), calibration=calibration, random_state=source)
        assert source.drawn == 0

    @pytest.mark.parametrize("calibration", validation.CALIBRATIONS)
    def test_named_algorithms_settle_it_themselves(self, calibration):
        options = {"regularization": 0.05, "calibration": calibration, "n_levels": 40, "random_state": 0}
        for release in (
            cov_nr(regression_sums(), excess_risk=0.05, **options),
            output_nr(classification_rows(), excess_risk=0.2, **options),
        ):
            paper = calibration in validation.PAPER_CALIBRATIONS
            assert (release.calibration, release.parameters["paper_constants"]) == (calibration, paper)


class TestArguments:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"failure_probability": 0.0}, "failure_probability must lie strictly"),
            ({"failure_probability": "0.1"}, "failure_probability must be a number"),
            ({"calibration": "loose"}, "calibration must be one of"),
            ({"n_levels": 0}, "n_levels must be a whole number"),
            ({"max_epsilon": 0.0}, "max_epsilon must be a positive finite number"),
            ({"on_failure": "shrug"}, "on_failure must be one of"),
        ],
    )
    def test_senseless_ones(self, bad, message):
        with pytest.raises(ValueError, match=message):
            request(**bad)

    def test_numbers_become_floats(self):
        """Limits are computed from them, and releases written as JSON."""
        made = request(failure_probability=np.float32(0.25), max_epsilon=np.float32(8), n_levels=np.int64(5))
        assert [type(value) for value in (made.failure_probability, made.max_epsilon, made.n_levels)] == [
            float,
            float,
            int,
        ]
        assert (made.budget, request().budget) == (8.0, math.inf)

    @pytest.mark.parametrize("goal", [None, 0.1, "error rate", ErrorRate], ids=repr)
    @pytest.mark.parametrize("method", sorted(METHODS))
    def test_what_is_no_goal(self, goal, method):
        given = {"problem": problem_for(), "method": METHODS[method], "mechanism": Covariance(), "max_epsilon": 1.0}
        if goal is None and method == "fixed":
            assert Request(goal=None, **given).plan() == SingleShot(1.0, rescaled=True)
            return
        with pytest.raises(ValueError, match="a plain number is an excess_risk"):
            Request(goal=goal, **given)

    @pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
    def test_second_moments_are_for_the_squared_loss(self, loss):
        with pytest.raises(ValueError, match="covariance perturbation needs the squared loss"):
            request(problem=problem_for(loss))

    def test_a_stated_radius_and_stationarity(self):
        with pytest.raises(ValueError, match="leave radius out"):
            request("stationarity", problem=problem_for(radius=0.5))
        request("stationarity", problem=problem_for(radius=50.0))  # larger than the optimum's: as if not stated

    def test_fixed_asks_for_its_epsilon(self):
        with pytest.raises(ValueError, match="spends exactly max_epsilon"):
            request("fixed")

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("weights", {}, "perturbation must be one of"),
            ("covariance", {"noise": "gauss"}, "noise must be one of"),
            ("output", {"noise": "gauss"}, "noise must be one of"),
            ("covariance", {"noise": "spherical"}, "spherical noise is for perturbation='output'"),
        ],
    )
    def test_mechanisms_that_do_not_exist(self, name, options, message):
        with pytest.raises(ValueError, match=message):
            mechanism_of(name, **options)


def goes_together(goal, method, loss, mechanism) -> bool:
    """Say by hand what can be met by what."""
    if goal.chained_only:
        return False  # these need the shape of the rows
    if mechanism.name == "covariance" and loss.name != "squared":
        return False
    if isinstance(goal, ErrorRate):
        return loss.labels == "binary" and method in ("auto", "above_threshold")
    if isinstance(goal, MeanSquaredError):
        return loss.labels == "real" and method in ("auto", "above_threshold")
    return isinstance(goal, ExcessRisk) or method not in ("theory", "fixed")


def settled(made: Request):
    """Return the plan, or why there is none."""
    try:
        return made.plan(), ""
    except TargetUnreachable as error:
        return None, str(error)


@pytest.mark.parametrize("goal", GIVEN.values(), ids=lambda goal: type(goal).__name__)
@pytest.mark.parametrize("method", sorted(METHODS))
class TestEveryCombination:
    """Each is refused with a message or settled, whatever goal, method, loss and mechanism; no row is there to see."""

    def test_refuses_or_plans(self, goal, method):
        planned = 0
        for loss, mechanism in product(LOSSES, MECHANISMS_GIVEN):
            settings = {"max_epsilon": 50.0} if method == "fixed" else {}
            given = {"method": method, "goal": goal, "mechanism": mechanism, "problem": problem_for(loss), **settings}
            if not goes_together(goal, method, loss, mechanism):
                with pytest.raises(
                    ValueError, match=r"(cannot be met by|is for|needs the squared loss|shrink together)"
                ):
                    request(**given)
                continue
            plan = request(**given).plan()
            assert plan.worst_case > 0
            bounded = math.isfinite(plan.worst_case)
            assert bounded != isinstance(goal, RelativeExcessRisk)  # the gap being unknown, that has none
            assert callable(plan.search)
            planned += 1
        assert (planned > 0) == (method in goal.methods and not goal.chained_only)

    def test_a_budget_is_kept_or_out_of_reach(self, goal, method):
        for loss, mechanism, budget in product(LOSSES, MECHANISMS_GIVEN, (1e-4, 0.3, 5.0)):
            if not goes_together(goal, method, loss, mechanism):
                continue
            given = {"method": method, "goal": goal, "mechanism": mechanism, "problem": problem_for(loss)}
            plan, message = settled(request(**given, max_epsilon=budget))
            if plan is not None:
                assert plan.worst_case <= budget
            else:
                assert "Nothing was spent" in message
                assert budget < 5.0 or method in ("theory", "doubling", "above_threshold")


def test_every_goal_and_mechanism_is_in_the_table():
    assert set(GIVEN) == set(GOALS)
    assert {mechanism.name for mechanism in MECHANISMS_GIVEN} == set(MECHANISMS)
    assert all(set(goal.methods) <= set(METHODS) for goal in GOALS)


class TestNoRowsAreNeeded:
    """Whatever can be refused without the rows is refused before they are looked at."""

    @pytest.fixture(autouse=True)
    def unseen(self, monkeypatch):
        def looked(self, rows, problem):
            raise AssertionError("the rows were looked at")

        for kind in (Mechanism, Covariance, Output):
            monkeypatch.setattr(kind, "on", looked)

    def test_the_fixture_works(self):
        with pytest.raises(AssertionError, match="looked at"):
            run_search(regression_sums(), problem_for(), ExcessRisk(0.02), random_state=0)

    @pytest.mark.parametrize("method", sorted(set(METHODS) - {"fixed"}))
    @pytest.mark.parametrize("rows", [regression_rows, classification_rows])
    def test_unreachable_targets(self, method, rows):
        loss = SquaredLoss() if rows is regression_rows else LogisticLoss()
        source = CountingSource()
        options = {"method": method, "max_epsilon": 1e-4, "random_state": source}
        for goal in (ExcessRisk(0.001), RelativeExcessRisk(0.1, baseline="null")):
            if method in goal.methods:
                with pytest.raises(TargetUnreachable, match="Nothing was spent"):
                    run_search(rows(), problem_for(loss), goal, **options)
        assert source.drawn == 0

    @pytest.mark.parametrize("method", ["auto", "above_threshold"])
    def test_unreachable_goals_that_are_tested(self, method):
        source = CountingSource()
        for rows, loss, goal in (
            (regression_rows, SquaredLoss(), MeanSquaredError(0.1)),
            (classification_rows, LogisticLoss(), ErrorRate(0.1)),
        ):
            with pytest.raises(TargetUnreachable, match="Nothing was spent"):
                run_search(rows(), problem_for(loss), goal, method=method, max_epsilon=1e-4, random_state=source)
        assert source.drawn == 0

    @pytest.mark.parametrize(
        ("goal", "bad", "message"),
        [
            (ExcessRisk(0.02), {"method": "hope"}, "method must be one of"),
            (ExcessRisk(0.02), {"perturbation": "weights"}, "perturbation must be one of"),
            (ExcessRisk(0.02), {"noise": "gauss"}, "noise must be one of"),
            (ExcessRisk(0.02), {"calibration": "loose"}, "calibration must be one of"),
            (ExcessRisk(0.02), {"n_levels": 0}, "n_levels"),
            (ExcessRisk(0.02), {"method": "above_threshold", "levels": [0.2, 0.1]}, "strictly increasing"),
            (ExcessRisk(0.02), {"method": "above_threshold", "levels": [0.1], "n_levels": 1}, "not both"),
            (ExcessRisk(0.02), {"method": "doubling", "factor": 1.0}, "factor must exceed 1"),
            (ExcessRisk(0.02), {"max_epsilon": -1.0}, "max_epsilon"),
            (ExcessRisk(0.02), {"failure_probability": 1.0}, "failure_probability"),
            (MeanSquaredError(1.0), {}, "costs nothing"),
            (ErrorRate(0.1), {}, "is for classification"),
            (
                RelativeExcessRisk(0.5, baseline="null"),
                {"method": "above_threshold", "levels": [0.2, 0.1]},
                "strictly increasing",
            ),
            (RelativeExcessRisk(0.5, baseline="null"), {"method": "doubling", "factor": 1.0}, "factor must exceed 1"),
            (None, {}, "goal must be"),
        ],
    )
    def test_argument_errors(self, goal, bad, message):
        source = CountingSource()
        with pytest.raises(ValueError, match=message):
            run_search(regression_sums(), problem_for(), goal, **bad, random_state=source)
        assert source.drawn == 0

    def test_a_certificate_about_the_unconstrained_optimum(self):
        with pytest.raises(ValueError, match="leave radius out"):
            run_search(
                classification_rows(), problem_for(LogisticLoss(), radius=0.5), ExcessRisk(0.02), method="certified"
            )


class TestStandingInForRows:
    def test_a_generator_brings_its_own_mechanism(self):
        """Rows, sums and a generator give the same release; what is said about the mechanism beside it is its own."""
        problem, goal = problem_for(), ExcessRisk(0.02)
        by_rows, by_sums = (
            run_search(given, problem, goal, perturbation="covariance", random_state=3)
            for given in (regression_rows(), regression_sums())
        )
        made = Covariance().on(regression_rows(), problem)
        by_made = run_search(made, problem, goal, perturbation="output", random_state=3)
        assert by_rows == dataclasses.replace(by_sums, claims=()) == dataclasses.replace(by_made, claims=())
        spherical = Output("spherical").on(regression_rows(), problem)
        release = run_search(spherical, problem, goal, perturbation="covariance", noise="laplace", random_state=3)
        assert (release.perturbation, release.noise) == ("output", "over the reals")

    def test_of_another_problem(self):
        """Sensitivities would be those of the other one."""
        made = Covariance().on(regression_sums(), problem_for())
        for other in ({"regularization": 0.1}, {"radius": 0.5}, {"n": N - 1}, {"paper_constants": True}):
            calibration = "theorem" if "paper_constants" in other else "tight"
            source = CountingSource()
            with pytest.raises(ValueError, match="made for another problem"):
                run_search(made, problem_for(**other), ExcessRisk(0.02), calibration=calibration, random_state=source)
            assert source.drawn == 0

    def test_one_generator_serves_many_goals(self):
        made = Covariance().on(regression_sums(), problem_for())
        goals = (ExcessRisk(0.02), ExcessRisk(0.2), RelativeExcessRisk(0.5, baseline="null"), MeanSquaredError(0.2))
        for goal in goals:
            shared = run_search(made, problem_for(), goal, failure_probability=0.2, random_state=5)
            alone = run_search(regression_sums(), problem_for(), goal, failure_probability=0.2, random_state=5)
            assert dataclasses.replace(shared, claims=()) == dataclasses.replace(alone, claims=())


class TestReduced:
    def test_all_but_goal_and_what_is_left_stays(self):
        given = request(
            "doubling",
            RelativeExcessRisk(0.5, baseline="null"),
            max_epsilon=4.0,
            factor=3.0,
            on_failure="release_optimum",
        )
        left = given.reduced_to(ExcessRisk(0.01), failure_probability=0.05, max_epsilon=1.0)
        assert left == dataclasses.replace(
            given, goal=ExcessRisk(0.01), failure_probability=0.05, max_epsilon=1.0, on_failure="refuse"
        )

    def test_details_say_what_was_asked_for(self):
        made = request(max_epsilon=30.0)
        release = run_search(regression_sums(), made.problem, made.goal, method="above_threshold", random_state=1)
        details = made.details(release)
        assert (details["method"], details["perturbation"]) == ("above_threshold", "covariance")
        assert details["promise"].excess_risk == 0.02
        assert details["promise"].failure_probability == 0.1
        assert details["promise"].radius == made.problem.radius
        assert details["parameters"]["n"] == N
        assert "generation noise" in details["exact"]
