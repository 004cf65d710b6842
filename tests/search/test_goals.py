"""Goals beside excess risk: what they promise over many runs, what they cost, and what they refuse.

Statistical tests are seeded, with a false-alarm rate of 10⁻³ each, and each is shown to catch a broken variant.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from expost import (
    AccuracyNotReached,
    ErrorRate,
    HuberLoss,
    LogisticLoss,
    MeanSquaredError,
    NotPrivateWarning,
    Preparation,
    Problem,
    RelativeExcessRisk,
    Release,
    Rows,
    SeededSource,
    SmoothedHingeLoss,
    SquaredLoss,
    TargetUnreachable,
    run,
    sums_of,
)
from expost.erm.measures import MeanSquareByRows, MeanSquareBySums, errors, to_grid
from expost.erm.objective import Objective
from expost.privacy.composition import add_losses
from expost.search import own_units
from expost.search.gap_probe import GapPlan, probe_gap
from expost.search.generators import make_generator
from expost.search.own_units import UNITS, OwnUnitsTest
from expost.search.relative import _left, _with_probe
from expost.search.tested_goal import ErrorShare, SquaredErrorMean

GAMMA, RARE, RUNS = 0.1, 1e-3, 200


def classification(n=3_000, seed=0, loss=None):
    """Labels mostly positive, so that the null model, which predicts negative, is wrong on 60 % of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2)) / 2
    labels = X @ [2.0, -1.0] + 0.2 + 0.02 * rng.logistic(size=n) > 0
    recipe = Preparation(None, 1.0, target=None, intercept_weight=0.25, n_columns=2)
    return settle(recipe.prepare_classification(X, labels, (False, True)), loss or LogisticLoss(), 0.005)


def regression(n=3_000, seed=0, loss=None, lam=0.01):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2)) / 2
    y = X @ [1.5, -1.0] + 0.05 * rng.normal(size=n)
    recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=2)
    return settle(recipe.prepare_regression(X, y), loss or SquaredLoss(), lam)


def settle(rows, loss, lam):
    problem = Problem.of(loss, n=rows.n, p=rows.p, regularization=lam, excess_risk=1.0, failure_probability=GAMMA)
    kind = "covariance" if loss.name == "squared" else "output"
    return make_generator(rows, problem, kind), problem, kind, rows


def truth(rows, theta):
    """Error rate or mean squared error by plain arithmetic on the rows."""
    u, y = rows.x @ np.asarray(theta) / 2**20, rows.y / 2**20
    return float(np.mean((u - y) ** 2)), float(np.mean((u > 0) != (y > 0)))


def outcome(*given, **options):
    """Return the release, be it a refusal."""
    try:
        return run(*given, **options)
    except AccuracyNotReached as refusal:
        return refusal.release


def too_many(bad, runs=RUNS, gamma=GAMMA):
    return stats.binomtest(bad, runs, gamma, alternative="greater").pvalue < RARE


def without_margin(monkeypatch):
    """Break the test: nothing is taken off the target for noise."""
    calibrate = own_units.calibrate
    monkeypatch.setattr(
        own_units,
        "calibrate",
        lambda name, **given: dataclasses.replace(calibrate(name, **given), threshold=given["target"]),
    )


class TestPromise:
    def assert_kept(self, generator, problem, kind, goal, broken):
        """Most runs release something, and what they release is broken no more often than γ allows."""
        options = {"method": "auto", "perturbation": kind, "goal": goal}
        found = [outcome(generator, problem, random_state=seed, **options).hypothesis for seed in range(RUNS)]
        released = [np.asarray(theta) for theta in found if theta is not None]
        assert not too_many(sum(broken(theta) for theta in released))
        assert len(released) > 0.8 * RUNS

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_kept_in_many_runs(self, task):
        """From rows to release; too easy to catch a missing margin, which is what the next test is for."""
        generator, problem, kind, rows = classification() if task == "error rate" else regression()
        which = 1 if task == "error rate" else 0
        null = truth(rows, np.zeros(rows.p))[which]
        limit = null / 3
        goal = (ErrorRate if which else MeanSquaredError)(limit, margin=0.6)
        self.assert_kept(generator, problem, kind, goal, lambda theta: truth(rows, theta)[which] > limit)

    @pytest.mark.parametrize("task", ["error rate", "mean squared error"])
    def test_hypotheses_just_too_bad(self, task, monkeypatch):
        """The hardest case for the test: every hypothesis is a little beyond the target, whatever its sensitivity."""
        rng = np.random.default_rng(6)
        generator, _, _, rows = classification() if task == "error rate" else regression()
        if task == "error rate":
            measure, typical = ErrorShare(generator.risk.objective), 1 / rows.n
            thetas = [to_grid(rng.normal(size=rows.p), 7.0) for _ in range(400)]
            thetas = sorted(thetas, key=lambda theta: errors(generator.risk.objective, theta))
            rates = [errors(generator.risk.objective, theta) / rows.n for theta in thetas]
            bad = [theta for theta, rate in zip(thetas, rates, strict=True) if rate > 0.2][:16]
            target = errors(generator.risk.objective, bad[0]) / rows.n - 1e-9
        else:
            squares = MeanSquareBySums(generator.sums)
            measure, typical, target = SquaredErrorMean(squares, rows.n), 9 / rows.n, 0.1
            bad = [self.at(squares, generator.risk.optimum, rng.normal(size=rows.p), target) for _ in range(16)]
            assert np.ptp([np.abs(theta).max() for theta in bad]) > 0.3

        def accepted():
            rules = (
                OwnUnitsTest(
                    measure,
                    target=target,
                    room=0.5 * target,
                    typical=typical,
                    failure_probability=GAMMA,
                    n_tests=16,
                    random_state=SeededSource([7, seed]),
                )
                for seed in range(RUNS)
            )
            return sum(any(rule.accepts(theta) for theta in bad) for rule in rules)

        assert not too_many(accepted())
        without_margin(monkeypatch)
        assert too_many(accepted())

    @staticmethod
    def at(squares, start, direction, target):
        """Return the point along a direction where the mean square has just passed the target."""
        low, high = 0.0, 100.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if squares.value(start + middle * direction) <= target else (low, middle)
        return start + high * (1 + 1e-9) * direction

    @pytest.mark.parametrize("task", [classification, regression])
    def test_a_fraction_of_the_gap(self, task):
        generator, problem, kind, rows = task(20_000 if task is regression else 3_000)
        gap = generator.risk.excess(np.zeros(rows.p))
        goal = RelativeExcessRisk(1 / 3)
        self.assert_kept(generator, problem, kind, goal, lambda theta: generator.risk.excess(theta) > gap / 3)

    def test_lower_bounds_of_the_gap(self):
        """They hold but for a tenth of γ; without their margin half of them would not."""
        generator, problem, _, rows = regression(20_000)
        gap = generator.risk.excess(np.zeros(rows.p))
        plan = GapPlan.of(problem, generator.risk, None)
        wrong = broken = 0
        for seed in range(RUNS):
            found = probe_gap(generator.risk, rows.p, plan, SeededSource(seed))
            assert found.lower is not None
            assert found.lower >= 0.69 * found.noisy
            wrong += found.lower > gap
            broken += found.noisy > gap
        assert not too_many(wrong, gamma=0.1 * GAMMA)
        assert too_many(broken, gamma=0.1 * GAMMA)


class TestWholeUnits:
    """What the noise is scaled to: integers, as they are computed, on neighbours at random and at corners."""

    @staticmethod
    def neighbours(rng, n, labels):
        x = rng.integers(-(2**19), 2**19 + 1, (n, 2)).astype(np.int32)
        y = (rng.choice([-(2**20), 2**20], n) if labels else rng.integers(-(2**20), 2**20 + 1, n)).astype(np.int32)
        for _ in range(2):
            x, y = x.copy(), y.copy()
            x[0] = np.eye(2, dtype=np.int32)[rng.integers(2)] * rng.choice([-(2**20), 2**20])
            y[0] = rng.choice([-(2**20), 2**20])
            yield Rows(x, y)

    def test_measures(self):
        rng = np.random.default_rng(12)
        moved = {True: 0, False: 0}
        for trial in range(300):
            labels = trial % 2 == 0
            theta = to_grid(rng.normal(size=2) * rng.choice([0.1, 1.0, 3.0]), 15.0)
            found = []
            for rows in self.neighbours(rng, 25, labels):
                if labels:
                    objective = Objective(LogisticLoss(), rows.x / 2**20, rows.y / 2**20, 0.01)
                    measure = ErrorShare(objective)
                else:
                    measure = SquaredErrorMean(MeanSquareBySums(sums_of(rows)), rows.n)
                found.append(measure.units(theta, measure.unit(theta)))
            moved[labels] = max(moved[labels], abs(found[0] - found[1]))
        assert moved[True] == UNITS
        assert 0.9 * UNITS < moved[False] <= UNITS

    def test_heights_of_the_gap(self):
        rng = np.random.default_rng(13)
        for _ in range(60):
            heights = []
            for rows in self.neighbours(rng, 200, labels=False):
                generator, problem, _, _ = settle(rows, SquaredLoss(), 0.05)
                plan = GapPlan.of(problem, generator.risk, max_epsilon=10.0)
                gap = generator.risk.excess(np.zeros(2))
                heights.append(math.floor(plan.scale.height(gap) / plan.grid.grid))
            assert abs(heights[0] - heights[1]) <= plan.grid.units


class TestCosts:
    def test_the_parts_add_up(self):
        generator, problem, kind, _ = regression(20_000)
        common = {"perturbation": kind, "random_state": 3, "max_epsilon": 6.0}
        tested = run(generator, problem, method="auto", goal=MeanSquaredError(0.1), **common)
        assert tested.epsilon_probe == 0
        assert tested.epsilon_test > 0
        assert tested.calibration == "tight"
        relative = run(generator, problem, method="above_threshold", goal=RelativeExcessRisk(0.5), **common)
        assert relative.epsilon_probe > 0
        assert relative.epsilon_test > 0
        for release in (tested, relative):
            assert release.epsilon <= release.epsilon_worst_case <= 6.0
            assert any("epsilon" in reason for reason in release.parameters["reasons"])
            assert Release.from_json(release.to_json()) == release

    @pytest.mark.parametrize("method", ["auto", "certified", "stationarity", "above_threshold", "doubling"])
    def test_every_method_can_go_on_from_the_gap(self, method):
        generator, problem, kind, _ = regression(20_000)
        release = run(
            generator, problem, perturbation=kind, method=method, goal=RelativeExcessRisk(0.5), random_state=1
        )
        assert release.method == method
        assert release.promise.goal == "relative excess risk"
        assert release.promise.at_most == 0.5
        assert generator.risk.excess(np.asarray(release.hypothesis)) <= release.promise.excess_risk
        assert math.isinf(release.epsilon_worst_case)

    def test_the_test_costs_less_with_more_rows_and_more_margin(self):
        def cost(n, margin):
            generator, problem, kind, _ = classification(n)
            release = run(
                generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.2, margin), random_state=0
            )
            return release.epsilon_test

        assert cost(6_000, 0.5) == pytest.approx(cost(3_000, 0.5) / 2)
        assert cost(3_000, 0.25) == pytest.approx(2 * cost(3_000, 0.5))

    def test_the_budget_is_kept(self):
        generator, problem, kind, _ = regression(20_000)
        for budget in (0.3, 1.0, 2.0):
            for goal in (MeanSquaredError(0.04, margin=0.9), RelativeExcessRisk(0.2)):
                common = {"method": "auto", "perturbation": kind, "goal": goal, "max_epsilon": budget}
                release = outcome(generator, problem, random_state=5, **common)
                assert release.epsilon <= release.epsilon_worst_case <= budget

    def test_deterministic(self):
        for task, goal in (
            (classification, ErrorRate(0.2)),
            (regression, MeanSquaredError(0.1)),
            (regression, RelativeExcessRisk(0.5)),
        ):
            generator, problem, kind, rows = task(20_000)
            first = run(generator, problem, method="auto", perturbation=kind, goal=goal, random_state=11)
            again = run(rows, problem, method="auto", perturbation=kind, goal=goal, random_state=11)
            assert first == again


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


def test_other_losses():
    """Huber by rows for the mean square, the smoothed hinge for the error rate."""
    for task, loss, goal, which in (
        (regression, HuberLoss(0.5), MeanSquaredError(0.1), 0),
        (classification, SmoothedHingeLoss(0.5), ErrorRate(0.25), 1),
    ):
        generator, problem, kind, rows = task(loss=loss)
        release = run(generator, problem, method="auto", perturbation=kind, goal=goal, random_state=2)
        assert truth(rows, release.hypothesis)[which] <= goal.at_most


def test_by_rows_and_by_sums_agree():
    by_sums, _, _, rows = regression()
    by_rows = MeanSquareByRows(Objective(SquaredLoss(), rows.x / 2**20, rows.y / 2**20, 0.01))
    theta = np.array([0.3, -2.0])
    assert by_rows.value(theta) == pytest.approx(MeanSquareBySums(by_sums.sums).value(theta), abs=1e-12)


def test_a_released_hypothesis_is_on_the_grid():
    generator, problem, kind, _ = classification()
    release = run(generator, problem, method="auto", perturbation=kind, goal=ErrorRate(0.2), random_state=0)
    theta = np.asarray(release.hypothesis)
    np.testing.assert_array_equal(to_grid(theta, problem.radius), theta)
