"""Utility theorems solved for ε: by hand, and whether what they promise in expectation holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.curves import output_ridge_as_printed_epsilon, private_sgd_epsilon, private_sgd_rows_needed
from expost import ExcessRisk, validation
from expost.exceptions import TargetUnreachable
from expost.mechanisms import Covariance, Output, mechanism_of
from expost.mechanisms.output import laplace_epsilon, paper_logistic_epsilon
from expost.search import compare_with_optimum, run_search
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from expost.table.rows import ONE, Rows
from tests.helpers import N, logistic_rows, regression_rows, regression_sums

LAM = 0.005
R = LAM**-0.5  # 14.142
PAPER_N = 100_000


def paper(loss, p):
    """Return a problem of the paper's experiments."""
    return Problem.of(loss, n=PAPER_N, p=p, regularization=LAM, paper_constants=True)


class TestTheoryInversions:
    def test_covariance(self):
        """4√2·(2·√77·14.142 + 77·200)/(100,000·0.05) = 17.70."""
        value = Covariance().theory_epsilon(paper(SquaredLoss(), 77), 0.05)
        assert value == pytest.approx(17.70, abs=0.005)
        assert value == pytest.approx(4 * math.sqrt(2) * (2 * math.sqrt(77 / LAM) + 77 / LAM) / (PAPER_N * 0.05))

    def test_output_logistic(self):
        """With a = 2√2·38/500 = 0.21496 and b = 4·38²/(10¹⁰·0.005) = 1.1552e-4, a/ε + b/ε² = 0.05 at ε = 4.2997."""
        value = paper_logistic_epsilon(paper(LogisticLoss(), 38), 0.05)
        assert value == Output().theory_epsilon(paper(LogisticLoss(), 38), 0.05)
        assert value == pytest.approx(4.2997, abs=2e-4)
        assert 0.214960 / value + 1.1552e-4 / value**2 == pytest.approx(0.05, rel=1e-5)

    def test_output_ridge_corrected(self):
        """(1 + λp)(R+1)²p/(nλε²) = α: ε = 15.1421·√(1.385·77/(500·0.05)) = 31.27."""
        value = Output().theory_epsilon(paper(SquaredLoss(), 77), 0.05)
        assert value == pytest.approx(31.274, abs=2e-3)
        assert (1 + LAM * 77) * (R + 1) ** 2 * 77 / (PAPER_N * LAM * value**2) == pytest.approx(0.05)

    def test_output_ridge_as_printed(self):
        """(1/n + λ)(R+1)²p²/(nλε²) = α: ε = 15.1421·77·√(0.00501/25) = 16.505."""
        value = output_ridge_as_printed_epsilon(0.05, n=PAPER_N, p=77, regularization=LAM, radius=R)
        assert value == pytest.approx(16.505, abs=2e-3)

    def test_output_smooth(self):
        """Δ₁·√((c + λp)/α), c = ¼ for the logistic loss; by the same for the constants of both kinds."""
        for paper_constants in (False, True):
            problem = Problem.of(LogisticLoss(), n=900, p=3, regularization=0.05, paper_constants=paper_constants)
            delta = problem.output_sensitivity
            assert laplace_epsilon(problem, 0.01) == pytest.approx(delta * math.sqrt(0.4 / 0.01))
        proved = Problem.of(LogisticLoss(), n=900, p=3, regularization=0.05)
        assert Output().theory_epsilon(proved, 0.01) == laplace_epsilon(proved, 0.01)

    def test_private_sgd_needs_enough_rows(self):
        n = private_sgd_rows_needed(0.05, diameter=2 * R, lipschitz=1.0)
        settings = {"p": 10, "delta": 1e-6, "diameter": 2 * R, "lipschitz": 1.0}
        assert math.isinf(private_sgd_epsilon(0.05, n=n - 1, **settings))
        assert math.isfinite(private_sgd_epsilon(0.05, n=n, **settings))

    @pytest.mark.parametrize("perturbation", ["covariance", "output"])
    @pytest.mark.parametrize("calibration", ["theorem", "tight"])
    def test_what_it_promises_in_expectation_holds(self, perturbation, calibration, record_property):
        """On rows of all directions the theorems are generous: 20 runs are enough to see it."""
        alpha, lam = 0.02, 0.05
        problem = Problem.of(
            SquaredLoss(), n=N, p=4, regularization=lam, paper_constants=calibration in validation.PAPER_CALIBRATIONS
        )
        rows = regression_rows()
        given = regression_sums() if perturbation == "covariance" else rows
        options = {"perturbation": perturbation, "method": "theory", "calibration": calibration}
        excess = []
        for seed in range(20):
            release = run_search(given, problem, ExcessRisk(alpha), **options, random_state=seed)
            excess.append(compare_with_optimum(rows, release, SquaredLoss(), regularization=lam).excess_risk)
        record_property("mean_excess_risk", float(np.mean(excess)))
        assert np.mean(excess) < alpha
        needed = mechanism_of(perturbation).theory_epsilon(problem, alpha)
        assert release.epsilon == release.epsilon_worst_case == pytest.approx(needed, rel=1e-5)

    @pytest.mark.parametrize("noise", ["laplace", "spherical"])
    @pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=lambda loss: loss.name)
    def test_it_is_inverted_at_the_sensitivity_that_noise_is_scaled_by(self, noise, loss):
        """Which is above the exact minimiser's by what solver and rounding are charged."""
        p, lam, alpha = 4, 0.05, 0.02
        rows = regression_rows() if loss.name == "squared" else logistic_rows(N, p, 0)
        problem = Problem.of(loss, n=N, p=p, regularization=lam)
        release = run_search(
            rows, problem, ExcessRisk(alpha), method="theory", perturbation="output", noise=noise, random_state=0
        )
        length = release.parameters["noise_sensitivity"] / release.epsilon
        times = 1.0 if noise == "laplace" else (p + 1) / 2
        assert times * length**2 * (loss.curvature + lam * p) <= alpha
        assert release.epsilon == pytest.approx(Output(noise).theory_epsilon(problem, alpha), rel=1e-5)
        with pytest.raises(TargetUnreachable, match="finer than the minimiser is found"):
            run_search(rows, problem, ExcessRisk(1e-40), method="theory", perturbation="output", noise=noise)

    def test_the_printed_ridge_theorem_is_violated_and_the_corrected_one_is_not(self, record_property):
        """Rows ±e_j attain the corrected bound. 200 runs: the mean's relative error is 0.11, allowed are 0.6."""
        n, alpha, lam = 2000, 0.02, 0.05
        x = np.zeros((n, 2), dtype=np.int32)
        x[np.arange(n), np.arange(n) % 2] = ONE
        rows = Rows(x, np.full(n, ONE // 2, dtype=np.int32))
        problem = Problem.of(SquaredLoss(), n=n, p=2, regularization=lam, paper_constants=True)
        printed = output_ridge_as_printed_epsilon(alpha, n=n, p=2, regularization=lam, radius=problem.radius)

        generator = Output().on(rows, problem)

        def mean_excess(**settings):
            options = {"calibration": "theorem", **settings}
            found = [
                run_search(generator, problem, ExcessRisk(alpha), **options, random_state=seed).hypothesis
                for seed in range(200)
            ]
            return np.mean([generator.risk.excess(np.asarray(theta)) for theta in found])

        corrected = mean_excess(method="theory")
        record_property("mean_excess_risk_over_target", float(corrected / alpha))
        assert 0.4 * alpha < corrected < 1.6 * alpha
        assert mean_excess(method="fixed", max_epsilon=printed) > 4 * alpha

    def test_theory_releases_the_noisy_minimiser_as_it_is(self):
        """Its theorem is about θ* + b; in the ball it would be another mechanism."""
        problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.05, paper_constants=True)
        options = {"perturbation": "output", "method": "theory", "calibration": "theorem"}
        norms = [
            np.linalg.norm(
                run_search(regression_rows(), problem, ExcessRisk(400.0), **options, random_state=seed).hypothesis
            )
            for seed in range(5)
        ]
        assert max(norms) > problem.radius
