"""Goals beside excess risk: what is refused with a charge, and what is refused before anything is spent."""

import dataclasses
import math

import numpy as np
import pytest

from expost import ErrorRate, ExcessRisk, MeanSquaredError, RelativeExcessRisk, Release
from expost.exceptions import AccuracyNotReached, TargetUnreachable
from expost.search import run_search
from expost.solve.losses import LogisticLoss
from expost.table.bounds_encoding import Preparation
from tests.goals.helpers import classification, regression, settle
from tests.helpers import CountingSource, outcome


class TestRefusals:
    def test_unreachable_before_anything_is_spent(self):
        generator, problem, _ = classification()
        source = CountingSource()
        with pytest.raises(TargetUnreachable, match=r"rows\. Nothing was spent"):
            run_search(generator, problem, ErrorRate(0.01), max_epsilon=0.01, random_state=source)
        with pytest.raises(TargetUnreachable, match="rows"):
            run_search(
                generator, problem, RelativeExcessRisk(0.1, baseline="null"), max_epsilon=0.001, random_state=source
            )
        assert source.drawn == 0

    def test_with_the_stated_rows_it_runs(self):
        options = {"max_epsilon": 0.05, "random_state": 0}
        generator, problem, _ = classification()
        with pytest.raises(TargetUnreachable) as error:
            run_search(generator, problem, ErrorRate(0.25), **options)
        rows = int(str(error.value).split("about ")[1].split(" rows")[0].replace(",", ""))
        generator, problem, _ = classification(rows)
        assert 0 < outcome(run_search, generator, problem, ErrorRate(0.25), **options).epsilon <= 0.05

    def test_nothing_qualifies(self):
        """Labels that no feature tells apart: refused, with the charge."""
        rng = np.random.default_rng(8)
        recipe = Preparation(None, 1.0, target=None, intercept_weight=0, n_columns=2)
        rows = recipe.prepare_classification(rng.uniform(-0.5, 0.5, (2_000, 2)), rng.random(2_000) > 0.5, (False, True))
        generator, problem, _ = settle(rows, LogisticLoss(), 0.05)
        with pytest.raises(AccuracyNotReached) as refusal:
            run_search(generator, problem, ErrorRate(0.1), random_state=0)
        release = refusal.value.release
        assert release.status == "refused"
        assert release.hypothesis is None
        assert release.epsilon > release.epsilon_test > 0
        assert release.promise.goal == "error rate"
        assert Release.from_json(release.to_json()) == release


class TestArguments:
    @pytest.mark.parametrize("at_most", [1.0, 1e50])
    def test_a_mean_square_that_any_rows_have(self, at_most):
        generator, problem, _ = regression()
        with pytest.raises(ValueError, match="costs nothing"):
            run_search(generator, problem, MeanSquaredError(at_most), random_state=0)

    @pytest.mark.parametrize("number", [np.float16, np.float32])
    def test_numbers_of_less_precision(self, number):
        """They become floats: limits are computed from them, and releases are written as JSON."""
        goals = (ErrorRate(number(0.25), number(0.5)), MeanSquaredError(number(0.25)), RelativeExcessRisk(number(0.5)))
        for goal in (*goals, ExcessRisk(number(0.25))):
            assert all(type(value) in (float, str) for value in dataclasses.astuple(goal) if value is not None)
        generator, problem, _ = classification()
        first, again = (
            outcome(run_search, generator, problem, goal, random_state=0) for goal in (goals[0], ErrorRate(0.25, 0.5))
        )
        assert first == again
        assert Release.from_json(first.to_json()) == first

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: ErrorRate(0), "at_most"),
            (lambda: ErrorRate(1.0), "at_most"),
            (lambda: ErrorRate("5%"), "at_most"),
            (lambda: ErrorRate(True), "at_most"),
            (lambda: ErrorRate(0.1, margin=1.0), "margin"),
            (lambda: MeanSquaredError(math.inf), "positive finite"),
            (lambda: MeanSquaredError(math.nan), "at_most"),
            (lambda: RelativeExcessRisk(1.5, baseline="null"), "fraction"),
            (lambda: ExcessRisk(0.0), "excess_risk must be a positive finite number"),
            (lambda: ExcessRisk(math.inf), "excess_risk"),
            (lambda: ExcessRisk(True), "excess_risk"),
        ],
    )
    def test_numbers(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    @pytest.mark.parametrize(
        ("task", "given", "message"),
        [
            (regression, {"goal": ErrorRate(0.1)}, "MeanSquaredError"),
            (classification, {"goal": MeanSquaredError(0.1)}, "ErrorRate"),
            (classification, {"goal": 0.1}, "excess_risk"),
            (classification, {"goal": ErrorRate(0.1), "method": "certified"}, "above_threshold"),
            (classification, {"goal": ErrorRate(0.1), "method": "doubling"}, "above_threshold"),
            (classification, {"goal": RelativeExcessRisk(0.1, baseline="null"), "method": "theory"}, "stationarity"),
            (
                classification,
                {"goal": RelativeExcessRisk(0.1, baseline="null"), "method": "fixed", "max_epsilon": 1.0},
                "stationarity",
            ),
            (classification, {"goal": ErrorRate(0.1), "calibration": "published"}, "calibration='tight' only"),
            (classification, {"goal": ErrorRate(0.1), "on_failure": "release_optimum"}, "optimum"),
        ],
    )
    def test_what_does_not_go_together(self, task, given, message):
        generator, problem, _ = task(50)
        paper = "calibration" in given  # whose constants go with it, so that the goal is what does not
        with pytest.raises(ValueError, match=message):
            run_search(generator, dataclasses.replace(problem, paper_constants=paper), **given)

    def test_levels_of_ones_own(self):
        generator, problem, _ = regression()
        options = {"levels": [0.5, 1.0, 2.0], "random_state": 0}
        release = run_search(generator, problem, MeanSquaredError(0.1), **options)
        assert release.epsilon_generation in (0.5, 1.0, 2.0)
