"""Goals beside excess risk: what is refused with a charge, and what is refused before anything is spent."""

import dataclasses
import math

import numpy as np
import pytest

from expost import (
    AccuracyNotReached,
    ErrorRate,
    HuberLoss,
    LogisticLoss,
    MeanSquaredError,
    NotPrivateWarning,
    Preparation,
    RelativeExcessRisk,
    Release,
    SeededSource,
    SquaredLoss,
    TargetUnreachable,
    run,
)
from expost.privacy.composition import add_losses
from expost.search.generators import make_generator
from expost.search.relative import _left, _with_probe

from .goal_tasks import classification, outcome, regression, settle


class TestRefusals:
    def test_unreachable_before_anything_is_spent(self):
        generator, problem, kind, _ = classification()
        source = SeededSource(0)
        with pytest.raises(TargetUnreachable, match=r"rows\. Nothing was spent"):
            run(generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.01), max_epsilon=0.01)
        with pytest.raises(TargetUnreachable, match="rows"):
            run(
                generator,
                problem,
                method="auto",
                perturbation=kind,
                goal=RelativeExcessRisk(0.1),
                max_epsilon=0.001,
                random_state=source,
            )
        np.testing.assert_array_equal(source.words(4), SeededSource(0).words(4))

    def test_with_the_stated_rows_it_runs(self):
        common = {"method": "auto", "goal": ErrorRate(0.25), "max_epsilon": 0.05, "random_state": 0}
        generator, problem, kind, _ = classification()
        with pytest.raises(TargetUnreachable) as error:
            run(generator, problem, perturbation=kind, **common)
        rows = int(str(error.value).split("about ")[1].split(" rows")[0].replace(",", ""))
        generator, problem, kind, _ = classification(rows)
        assert 0 < outcome(generator, problem, perturbation=kind, **common).epsilon <= 0.05

    def test_nothing_qualifies(self):
        """Labels that no feature tells apart: refused, with the charge."""
        rng = np.random.default_rng(8)
        recipe = Preparation(None, 1.0, target=None, intercept_weight=0, n_columns=2)
        rows = recipe.prepare_classification(rng.uniform(-0.5, 0.5, (2_000, 2)), rng.random(2_000) > 0.5, (False, True))
        generator, problem, kind, _ = settle(rows, LogisticLoss(), 0.05)
        with pytest.raises(AccuracyNotReached) as refusal:
            run(generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.1), random_state=0)
        release = refusal.value.release
        assert release.status == "refused"
        assert release.hypothesis is None
        assert release.epsilon > release.epsilon_test > 0
        assert release.promise.goal == "error rate"
        assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("on_failure", ["refuse", "release_optimum"])
    def test_the_null_model_is_the_optimum(self, on_failure):
        recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
        rows = recipe.prepare_regression(np.random.default_rng(9).uniform(-0.5, 0.5, (500, 2)), np.zeros(500))
        generator, problem, kind, _ = settle(rows, SquaredLoss(), 0.05)
        common = {"perturbation": kind, "method": "auto", "goal": RelativeExcessRisk(0.1), "random_state": 0}
        if on_failure == "release_optimum":
            with pytest.warns(NotPrivateWarning):
                release = run(generator, problem, on_failure=on_failure, **common)
            assert math.isinf(release.epsilon)
            return
        with pytest.raises(AccuracyNotReached) as refusal:
            run(generator, problem, **common)
        release = refusal.value.release
        assert release.epsilon == release.epsilon_probe == 1.0
        assert "null model is the optimum" in release.parameters["reasons"][0]
        assert release.promise.excess_risk is None

    def test_what_the_probe_leaves_is_too_little(self):
        """A refusal and not "nothing was spent": the probe was."""
        generator, problem, kind, _ = regression(20_000)
        with pytest.raises(AccuracyNotReached) as refusal:
            run(
                generator,
                problem,
                method="stationarity",
                perturbation=kind,
                goal=RelativeExcessRisk(0.01),
                max_epsilon=0.4,
                random_state=0,
            )
        release = refusal.value.release
        assert release.epsilon_probe > 0
        assert "what is left of the budget" in release.parameters["reasons"][0]

    def test_a_budget_spent_to_the_last_bit(self):
        """The probe joins the method's own, and what that rounds up to must not break the budget after the fact."""
        rng = np.random.default_rng(13)
        for _ in range(300):
            budget = 10 ** rng.uniform(-3, 2)
            spent = budget * rng.uniform(0.001, 0.5)
            left = _left(budget, spent)
            probe, test = left * rng.uniform(0, 0.3, 2)
            generation = left - probe - test
            while add_losses(generation, test, probe) > left:
                generation = math.nextafter(generation, 0)
            found = Release(
                status="refused",
                method="certified",
                epsilon_generation=generation,
                epsilon_test=test,
                epsilon_probe=probe,
                epsilon_worst_case=left,
            )
            joined = _with_probe(found, spent, budget, "")
            assert budget * (1 - 1e-11) < joined.epsilon <= joined.epsilon_worst_case == budget


class TestArguments:
    @pytest.mark.parametrize("at_most", [1.0, 1e300])
    def test_a_mean_square_that_any_rows_have(self, at_most):
        generator, problem, kind, _ = regression()
        with pytest.raises(ValueError, match="costs nothing"):
            run(generator, problem, goal=MeanSquaredError(at_most), perturbation=kind, random_state=0)

    @pytest.mark.parametrize("number", [np.float16, np.float32])
    def test_numbers_of_less_precision(self, number):
        """They become floats: limits are computed from them, and releases are written as JSON."""
        for goal in (ErrorRate(number(0.25), number(0.5)), MeanSquaredError(number(0.25)), RelativeExcessRisk(0.5)):
            assert all(type(value) is float for value in dataclasses.astuple(goal))
        generator, problem, kind, _ = classification()
        common = {"method": "auto", "perturbation": kind, "random_state": 0}
        first = outcome(generator, problem, goal=ErrorRate(number(0.25), number(0.5)), **common)
        assert first == outcome(generator, problem, goal=ErrorRate(0.25, 0.5), **common)
        assert Release.from_json(first.to_json()) == first

    @pytest.mark.parametrize("max_epsilon", [None, 5.0])
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"method": "above_threshold", "levels": [0.1, 0.2], "n_levels": 2}, "not both"),
            ({"method": "above_threshold", "levels": [0.2, 0.1]}, "increasing"),
            ({"method": "above_threshold", "n_levels": 0}, "n_levels"),
            ({"method": "above_threshold", "calibration": "loose"}, "calibration"),
            ({"method": "doubling", "calibration": "loose"}, "calibration"),
            ({"method": "doubling", "factor": 1.0}, "factor"),
            ({"method": "stationarity", "n_levels": 2.5}, "n_levels"),
            ({"method": "certified"}, "leave radius out"),
        ],
    )
    def test_mistakes_are_found_before_the_gap_is_measured(self, given, message, max_epsilon):
        generator, problem, kind, rows = regression(20_000, loss=HuberLoss(0.5))
        if given["method"] == "certified":
            problem = dataclasses.replace(problem, radius=1.0, radius_stated=True)
            generator = make_generator(rows, problem, kind)
        source = SeededSource(0)
        common = {"perturbation": kind, "max_epsilon": max_epsilon, "random_state": source}
        with pytest.raises(ValueError, match=message):
            run(generator, problem, goal=RelativeExcessRisk(0.5), **common, **given)
        np.testing.assert_array_equal(source.words(4), SeededSource(0).words(4))

    @pytest.mark.parametrize("method", ["stationarity", "doubling", "above_threshold"])
    def test_hopeless_budgets_are_found_before_the_gap_is_measured(self, method):
        generator, problem, kind, _ = regression(20_000)
        source = SeededSource(0)
        common = {"perturbation": kind, "max_epsilon": 0.1, "random_state": source}
        with pytest.raises(TargetUnreachable, match="Nothing was spent"):
            run(generator, problem, method=method, goal=RelativeExcessRisk(0.003), **common)
        np.testing.assert_array_equal(source.words(4), SeededSource(0).words(4))

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
            (lambda: RelativeExcessRisk(1.5), "fraction"),
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
            (classification, {"goal": RelativeExcessRisk(0.1), "method": "theory"}, "stationarity"),
            (classification, {"goal": RelativeExcessRisk(0.1), "method": "fixed"}, "stationarity"),
            (classification, {"goal": ErrorRate(0.1), "calibration": "published"}, "tight"),
            (classification, {"goal": ErrorRate(0.1), "on_failure": "release_optimum"}, "optimum"),
        ],
    )
    def test_what_does_not_go_together(self, task, given, message):
        generator, problem, kind, _ = task(50)
        with pytest.raises(ValueError, match=message):
            run(generator, problem, **{"method": "auto", "perturbation": kind, **given})

    def test_levels_of_ones_own(self):
        generator, problem, kind, _ = regression()
        goal = MeanSquaredError(0.1)
        release = run(
            generator, problem, method="auto", perturbation=kind, goal=goal, levels=[0.5, 1.0, 2.0], random_state=0
        )
        assert release.epsilon_generation in (0.5, 1.0, 2.0)
