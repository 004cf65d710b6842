"""The ε of every method against its formula, by values worked out by hand; worst cases; refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from expost import (
    AccuracyNotReached,
    LogisticLoss,
    NotPrivateWarning,
    Problem,
    Rows,
    SquaredLoss,
    cov_nr,
    curator_view,
    output_nr,
    run,
)
from expost.data.fixed_point import ONE
from expost.search import QueryGrid, doubling_rounds, geometric_levels, plan_test
from expost.search.generators import make_generator
from expost.search.theory import (
    covariance_epsilon,
    output_logistic_epsilon,
    output_ridge_as_printed_epsilon,
    output_smooth_epsilon,
    private_sgd_epsilon,
    private_sgd_rows_needed,
)

from .tools import N, classification_rows, regression_rows, regression_sums

LAM = 0.005
R = LAM**-0.5  # 14.142
PAPER_N = 100_000
MILLIONTH = 3e-6  # what the grid and the floating-point error add to a sensitivity, relative


def paper_ridge(alpha, calibration, p=77):
    problem = Problem.of(SquaredLoss(), n=PAPER_N, p=p, regularization=LAM, excess_risk=alpha, calibration=calibration)
    return plan_test(problem, "covariance", risk_error=0.0, calibration=calibration)


class TestThePapersPlan:
    @pytest.mark.parametrize(
        ("calibration", "alpha", "epsilon"),
        [("published", 0.05, 2.2233), ("published", 0.075, 1.4822), ("theorem", 0.05, 7.2663)],
    )
    def test_test_budget(self, calibration, alpha, epsilon):
        plan = paper_ridge(alpha, calibration)
        assert plan.calibration.epsilon == pytest.approx(epsilon, abs=1e-4)

    def test_tight_uses_half_the_radius(self):
        """Δ = (R/2 + 1)²/n = 6.514e-4 in place of (R + 1)²/n = 2.293e-3, and 32 levels: 0.2831 with everything."""
        plan = paper_ridge(0.05, "tight")
        assert plan.problem.radius == pytest.approx(R / 2)
        assert plan.problem.risk_sensitivity == pytest.approx((R / 2 + 1) ** 2 / PAPER_N)
        assert len(plan.levels) == 32
        # 0.9965 at Δ = 2.293e-3 and T = 32
        assert plan.calibration.epsilon == pytest.approx(0.99655 * ((R / 2 + 1) / (R + 1)) ** 2, rel=1e-3)

    def test_levels_run_from_one_over_n_to_four_times_the_theory(self):
        plan = paper_ridge(0.05, "published")
        assert len(plan.levels) == 1000
        assert plan.levels[0] == 1 / PAPER_N
        assert plan.levels[-1] == pytest.approx(4 * 17.70, abs=0.02)
        ratios = np.diff(np.log(plan.levels))
        assert np.allclose(ratios, ratios[0])

    def test_the_grid_costs_a_millionth(self):
        for delta in (1e-9, 0.0023, 7.0):
            grid = QueryGrid.of(delta)
            assert delta < grid.effective_sensitivity <= delta * (1 + MILLIONTH)

    def test_the_smaller_radius_costs_063(self):
        """(7.07 + 1)²/(14.14 + 1)² of the published 2.22."""
        problem = Problem.of(
            SquaredLoss(), n=PAPER_N, p=77, regularization=LAM, excess_risk=0.05, calibration="published", radius=R / 2
        )
        plan = plan_test(problem, "covariance", risk_error=0.0, calibration="published")
        assert plan.calibration.epsilon == pytest.approx(0.63, abs=0.005)


class TestTheoryInversions:
    def test_covariance(self):
        """4√2·(2·√77·14.142 + 77·200)/(100,000·0.05) = 17.70."""
        value = covariance_epsilon(0.05, n=PAPER_N, p=77, radius=R)
        assert value == pytest.approx(17.70, abs=0.005)
        assert value == pytest.approx(4 * math.sqrt(2) * (2 * math.sqrt(77 / LAM) + 77 / LAM) / (PAPER_N * 0.05))

    def test_output_logistic(self):
        """With a = 2√2·38/500 = 0.21496 and b = 4·38²/(10¹⁰·0.005) = 1.1552e-4, a/ε + b/ε² = 0.05 at ε = 4.2997."""
        value = output_logistic_epsilon(0.05, n=PAPER_N, p=38, regularization=LAM)
        assert value == pytest.approx(4.2997, abs=2e-4)
        assert 0.214960 / value + 1.1552e-4 / value**2 == pytest.approx(0.05, rel=1e-5)

    def test_output_ridge_corrected(self):
        """(1 + λp)(R+1)²p/(nλε²) = α: ε = 15.1421·√(1.385·77/(500·0.05)) = 31.27."""
        problem = Problem.of(
            SquaredLoss(), n=PAPER_N, p=77, regularization=LAM, excess_risk=0.05, calibration="theorem"
        )
        value = problem.theory_epsilon("output")
        assert value == pytest.approx(31.274, abs=2e-3)
        assert (1 + LAM * 77) * (R + 1) ** 2 * 77 / (PAPER_N * LAM * value**2) == pytest.approx(0.05)

    def test_output_ridge_as_printed(self):
        """(1/n + λ)(R+1)²p²/(nλε²) = α: ε = 15.1421·77·√(0.00501/25) = 16.505."""
        value = output_ridge_as_printed_epsilon(0.05, n=PAPER_N, p=77, regularization=LAM, radius=R)
        assert value == pytest.approx(16.505, abs=2e-3)

    def test_output_smooth(self):
        assert output_smooth_epsilon(0.01, sensitivity=0.002, p=3, curvature=0.25, regularization=0.05) == (
            pytest.approx(0.002 * math.sqrt(0.4 / 0.01))
        )

    def test_private_sgd_needs_enough_rows(self):
        n = private_sgd_rows_needed(0.05, diameter=2 * R, lipschitz=1.0)
        settings = {"p": 10, "delta": 1e-6, "diameter": 2 * R, "lipschitz": 1.0}
        assert math.isinf(private_sgd_epsilon(0.05, n=n - 1, **settings))
        assert math.isfinite(private_sgd_epsilon(0.05, n=n, **settings))

    @pytest.mark.parametrize("perturbation", ["covariance", "output"])
    @pytest.mark.parametrize("calibration", ["theorem", "tight"])
    def test_what_it_promises_in_expectation_holds(self, perturbation, calibration, record_property):
        """On rows of all directions the theorems are generous: 20 runs are enough to see it."""
        sums, rows = regression_sums(), regression_rows()
        alpha, lam = 0.02, 0.05
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=lam, excess_risk=alpha, calibration=calibration)
        given = sums if perturbation == "covariance" else rows
        excess = []
        for seed in range(20):
            release = run(
                given, problem, perturbation=perturbation, method="theory", calibration=calibration, random_state=seed
            )
            excess.append(curator_view(rows, release, SquaredLoss(), regularization=lam).excess_risk)
        record_property("mean_excess_risk", float(np.mean(excess)))
        assert np.mean(excess) < alpha
        assert release.epsilon == release.epsilon_worst_case == problem.theory_epsilon(perturbation)

    def test_the_printed_ridge_theorem_is_violated_and_the_corrected_one_is_not(self, record_property):
        """Rows ±e_j attain the corrected bound. 200 runs: the mean's relative error is 0.11, allowed are 0.6."""
        n, alpha, lam = 2000, 0.02, 0.05
        x = np.zeros((n, 2), dtype=np.int32)
        x[np.arange(n), np.arange(n) % 2] = ONE
        rows = Rows(x, np.full(n, ONE // 2, dtype=np.int32))
        problem = Problem.of(SquaredLoss(), n=n, p=2, regularization=lam, excess_risk=alpha, calibration="theorem")
        printed = output_ridge_as_printed_epsilon(alpha, n=n, p=2, regularization=lam, radius=problem.radius)

        risk = make_generator(rows, problem, "output").risk

        def mean_excess(**settings):
            releases = (run(rows, problem, perturbation="output", random_state=s, **settings) for s in range(200))
            return np.mean([risk.excess(np.asarray(release.hypothesis)) for release in releases])

        corrected = mean_excess(method="theory")
        record_property("mean_excess_risk_over_target", float(corrected / alpha))
        assert 0.4 * alpha < corrected < 1.6 * alpha
        assert mean_excess(method="fixed", max_epsilon=printed) > 4 * alpha

    def test_theory_releases_the_noisy_minimiser_as_it_is(self):
        """Its theorem is about θ* + b; in the ball it would be another mechanism."""
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=400.0, calibration="theorem")
        norms = [
            np.linalg.norm(
                run(
                    regression_rows(),
                    problem,
                    perturbation="output",
                    method="theory",
                    calibration="theorem",
                    random_state=seed,
                ).hypothesis
            )
            for seed in range(5)
        ]
        assert max(norms) > problem.radius


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
        delta = QueryGrid.of((0.05**-0.5 + 1) ** 2 / N).effective_sensitivity
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
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01, excess_risk=0.005, calibration=calibration)
        plan = plan_test(problem, "covariance", risk_error=0.0, calibration=calibration, levels=levels)
        e1 = plan.calibration.epsilon_threshold
        assert release.epsilon_test == pytest.approx(e1, rel=MILLIONTH)
        assert release.epsilon_generation == 1e-5
        assert release.epsilon == pytest.approx(e1 + 1e-5, rel=MILLIONTH)
        assert release.epsilon < release.epsilon_worst_case
        assert release.hypothesis is None
        assert release.level is None

    def test_fixed_spends_exactly_its_budget(self):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=0.02)
        release = run(regression_sums(), problem, method="fixed", max_epsilon=0.7, random_state=0)
        assert (release.epsilon, release.epsilon_worst_case, release.epsilon_test) == (0.7, 0.7, 0.0)
        assert release.promise.excess_risk is None
        with pytest.raises(ValueError, match="spends exactly max_epsilon"):
            run(regression_sums(), problem, method="fixed")

    @pytest.mark.parametrize("method", ["above_threshold", "doubling"])
    @pytest.mark.parametrize("max_epsilon", [5.7, 6.0, 8.0, 1000.0])
    def test_no_outcome_exceeds_the_budget(self, method, max_epsilon):
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=0.002)
        costs = []
        for seed in range(5):
            try:
                release = run(regression_sums(), problem, method=method, max_epsilon=max_epsilon, random_state=seed)
            except AccuracyNotReached as refused:
                release = refused.release
            costs.append(release.epsilon)
            assert release.epsilon_worst_case <= max_epsilon
        assert max(costs) <= max_epsilon

    def test_the_budget_holds_to_the_last_bit(self):
        """Budget less test cost is rounded, up for some; the last level then gives way by a bit."""
        gave_way = 0
        for step in range(60):
            problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=0.002 + step * 1e-6)
            plan = plan_test(problem, "covariance", risk_error=1e-13, max_epsilon=14.5)
            assert Fraction(plan.levels[-1]) + Fraction(plan.calibration.epsilon) <= Fraction(14.5)
            assert plan.epsilon_worst_case <= 14.5
            gave_way += plan.levels[-1] < 14.5 - plan.calibration.epsilon
        assert gave_way > 0

    @pytest.mark.parametrize("method", ["above_threshold", "doubling"])
    def test_releasing_the_optimum_has_no_bound(self, method):
        """Whatever happened in this run: the option makes the worst case infinite."""
        settings = {"method": method, "calibration": "tight", "on_failure": "release_optimum", "random_state": 0}
        easy = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=0.02)
        met = run(regression_sums(), easy, **settings)
        assert met.status == "released"
        assert math.isfinite(met.epsilon)
        assert math.isinf(met.epsilon_worst_case)

        hard = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, excess_risk=0.002)
        cap = {"levels": [1e-6, 2e-6]} if method == "above_threshold" else {"max_epsilon": 3.0}
        with pytest.warns(NotPrivateWarning, match="infinite"):
            optimum = run(regression_sums(), hard, **settings, **cap)
        assert math.isinf(optimum.epsilon)
        assert math.isinf(optimum.epsilon_worst_case)
        assert math.isinf(optimum.risk_factor)
        assert any("no privacy" in line for line in optimum.not_covered)
        truth = curator_view(regression_rows(), optimum, SquaredLoss(), regularization=0.05)
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
        problem = Problem.of(LogisticLoss(), n=1000, p=9, regularization=0.01, excess_risk=0.1, calibration="theorem")
        assert problem.output_sensitivity == pytest.approx(2 * 3 / 10, rel=1e-4)
        assert problem.risk_sensitivity == pytest.approx(2 * math.sqrt(2 * math.log(2) / 0.01) / 1000)


class TestLevels:
    def test_doubling_rounds(self):
        assert doubling_rounds(1e-5, 4 * 17.70) == 23
        assert [doubling_rounds(1.0, 2.0**k) for k in range(1, 60)] == list(range(1, 60))
        assert doubling_rounds(1.0, 2.0**29 * 1.0001) == 30
        assert doubling_rounds(1.0, 0.5) == 1

    @pytest.mark.parametrize("arguments", [(0.0, 1.0, 3), (2.0, 1.0, 3), (1.0, math.inf, 3), (1.0, 2.0, 0)])
    def test_levels_that_make_no_sense(self, arguments):
        with pytest.raises(ValueError, match="levels"):
            geometric_levels(*arguments)
