"""The ε of searches against formulas, by values worked out by hand; worst cases; refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from expost import ExcessRisk
from expost.account import geometric_levels
from expost.exceptions import AccuracyNotReached, NotPrivateWarning
from expost.numeric import Grid
from expost.search import compare_with_optimum, cov_nr, output_nr, run_search
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import N, classification_rows, outcome, plan_of, regression_rows, regression_sums

LAM = 0.005
R = LAM**-0.5  # 14.142
PAPER_N = 100_000
MILLIONTH = 3e-6  # what the grid and the floating-point error add to a sensitivity, relative


def paper_ridge(alpha, calibration, **settings):
    problem = Problem.of(
        SquaredLoss(), n=PAPER_N, p=77, regularization=LAM, paper_constants=calibration != "tight", **settings
    )
    return plan_of(problem, ExcessRisk(alpha), calibration=calibration), problem


class TestThePapersPlan:
    @pytest.mark.parametrize(
        ("calibration", "alpha", "epsilon"),
        [("published", 0.05, 2.2233), ("published", 0.075, 1.4822), ("theorem", 0.05, 7.2663)],
    )
    def test_test_budget(self, calibration, alpha, epsilon):
        plan, _ = paper_ridge(alpha, calibration)
        assert plan.test.epsilon == pytest.approx(epsilon, abs=1e-4)

    def test_tight_uses_half_the_radius(self):
        """Δ = (R/2 + 1)²/n = 6.514e-4 in place of (R + 1)²/n = 2.293e-3, and 32 levels: 0.2831 with everything."""
        plan, problem = paper_ridge(0.05, "tight")
        assert problem.radius == pytest.approx(R / 2)
        assert problem.risk_sensitivity == pytest.approx((R / 2 + 1) ** 2 / PAPER_N)
        assert len(plan.levels) == 32
        # 0.9965 at Δ = 2.293e-3 and T = 32
        assert plan.test.epsilon == pytest.approx(0.99655 * ((R / 2 + 1) / (R + 1)) ** 2, rel=1e-3)

    def test_levels_run_from_one_over_n_to_four_times_the_theory(self):
        plan, _ = paper_ridge(0.05, "published")
        assert len(plan.levels) == 1000
        assert plan.levels[0] == 1 / PAPER_N
        assert plan.levels[-1] == pytest.approx(4 * 17.70, abs=0.02)
        ratios = np.diff(np.log(plan.levels))
        assert np.allclose(ratios, ratios[0])

    def test_the_grid_costs_a_millionth(self):
        for delta in (1e-9, 0.0023, 7.0):
            grid = Grid.of(delta)
            assert delta < grid.effective_sensitivity <= delta * (1 + MILLIONTH)

    def test_the_smaller_radius_costs_063(self):
        """(7.07 + 1)²/(14.14 + 1)² of the published 2.22."""
        plan, _ = paper_ridge(0.05, "published", radius=R / 2)
        assert plan.test.epsilon == pytest.approx(0.63, abs=0.005)


class TestWhatIsReported:
    def test_released_is_test_plus_level(self):
        levels = geometric_levels(0.01, 50.0, 40)
        release = cov_nr(
            regression_sums(),
            excess_risk=0.02,
            regularization=0.05,
            calibration="theorem",
            levels=levels,
            random_state=1,
        )
        delta = Grid.of((0.05**-0.5 + 1) ** 2 / N).effective_sensitivity
        assert release.status == "released"
        assert release.epsilon_generation == levels[release.level]
        assert release.epsilon_test == pytest.approx(16 * delta * math.log(2 * 40 / 0.1) / 0.02, rel=MILLIONTH)
        assert release.epsilon_worst_case == pytest.approx(release.epsilon_test + 50.0)
        assert Fraction(release.epsilon) >= Fraction(release.epsilon_generation) + Fraction(release.epsilon_test)
        assert release.risk_factor == pytest.approx(math.exp(release.epsilon))

    @pytest.mark.parametrize("calibration", ["theorem", "published", "tight"])
    def test_a_refusal_costs_the_threshold_and_the_last_level(self, calibration):
        levels = [1e-6, 1e-5]
        with pytest.raises(AccuracyNotReached) as refused:
            cov_nr(
                regression_sums(),
                excess_risk=0.005,
                regularization=0.01,
                calibration=calibration,
                levels=levels,
                random_state=0,
            )
        release = refused.value.release
        paper = calibration != "tight"
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01, paper_constants=paper)
        plan = plan_of(problem, ExcessRisk(0.005), calibration=calibration, levels=levels)
        e1 = plan.test.calibration.epsilon_threshold
        assert release.epsilon_test == pytest.approx(e1, rel=MILLIONTH)
        assert release.epsilon_generation == 1e-5
        assert release.epsilon == pytest.approx(e1 + 1e-5, rel=MILLIONTH)
        assert release.epsilon < release.epsilon_worst_case
        assert release.hypothesis is None
        assert release.level is None

    def test_fixed_spends_exactly_its_budget(self):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)
        release = run_search(regression_sums(), problem, method="fixed", max_epsilon=0.7, random_state=0)
        assert (release.epsilon, release.epsilon_worst_case, release.epsilon_test) == (0.7, 0.7, 0.0)
        assert release.promise.excess_risk is None
        with pytest.raises(ValueError, match="spends exactly max_epsilon"):
            run_search(regression_sums(), problem, method="fixed")

    @pytest.mark.parametrize("method", ["above_threshold", "doubling"])
    @pytest.mark.parametrize("max_epsilon", [5.7, 6.0, 8.0, 1000.0])
    def test_no_outcome_exceeds_the_budget(self, method, max_epsilon):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)
        costs = []
        for seed in range(5):
            options = {"method": method, "max_epsilon": max_epsilon, "random_state": seed}
            release = outcome(run_search, regression_sums(), problem, ExcessRisk(0.002), **options)
            costs.append(release.epsilon)
            assert release.epsilon_worst_case <= max_epsilon
        assert max(costs) <= max_epsilon

    def test_the_budget_holds_to_the_last_bit(self):
        """Budget less test cost is rounded, up for some; the last level then gives way by a bit."""
        gave_way, problem = 0, Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05)
        for step in range(60):
            plan = plan_of(problem, ExcessRisk(0.002 + step * 1e-6), max_epsilon=14.5)
            assert Fraction(plan.levels[-1]) + Fraction(plan.test.epsilon) <= Fraction(14.5)
            assert plan.worst_case <= 14.5
            gave_way += plan.levels[-1] < 14.5 - plan.test.epsilon
        assert gave_way > 0

    @pytest.mark.parametrize("method", ["above_threshold", "doubling"])
    def test_releasing_the_optimum_has_no_bound(self, method):
        """Whatever happened in this run: the option makes the worst case infinite."""
        settings = {"method": method, "calibration": "tight", "on_failure": "release_optimum", "random_state": 0}
        given = (regression_sums(), Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05))
        met = run_search(*given, ExcessRisk(0.02), **settings)
        assert met.status == "released"
        assert math.isfinite(met.epsilon)
        assert math.isinf(met.epsilon_worst_case)

        cap = {"levels": [1e-6, 2e-6]} if method == "above_threshold" else {"max_epsilon": 3.0}
        with pytest.warns(NotPrivateWarning, match="infinite"):
            optimum = run_search(*given, ExcessRisk(0.002), **settings, **cap)
        assert math.isinf(optimum.epsilon)
        assert math.isinf(optimum.epsilon_worst_case)
        assert math.isinf(optimum.risk_factor)
        assert any("no privacy" in line for line in optimum.not_covered)
        truth = compare_with_optimum(regression_rows(), optimum, SquaredLoss(), regularization=0.05)
        assert np.allclose(optimum.hypothesis, truth.optimum)

    def test_seeds_are_owned_up_to(self):
        settings = {"excess_risk": 0.02, "regularization": 0.05, "calibration": "tight"}
        assert not cov_nr(regression_sums(), **settings, random_state=0).secure
        assert cov_nr(regression_sums(), **settings).secure

    def test_same_seed_same_release(self):
        settings = {"excess_risk": 0.05, "regularization": 0.05, "calibration": "tight"}
        first, again, other = (output_nr(classification_rows(), **settings, random_state=s) for s in (3, 3, 4))
        assert first == again
        assert first.hypothesis != other.hypothesis

    def test_logistic_output_sensitivity(self):
        """At most the paper's 2√p/(nλ)."""
        problem = Problem.of(LogisticLoss(), n=1000, p=9, regularization=0.01, paper_constants=True)
        assert problem.output_sensitivity == pytest.approx(2 * 3 / 10, rel=1e-4)
        assert problem.risk_sensitivity == pytest.approx(2 * math.sqrt(2 * math.log(2) / 0.01) / 1000)
