"""Doubling around a black box, tested by the gradient instead of the risk: no optimum and no radius is needed."""

import numpy as np
import pytest
from scipy import stats

from expost.exceptions import AccuracyNotReached
from expost.goals.measure import GradientLength, gradient_target
from expost.mechanisms import Covariance
from expost.noise import SeededSource
from expost.numeric import Grid
from expost.search import DoublingPlan, doubling_search
from expost.solve.ball import into_ball
from expost.solve.losses import SquaredLoss
from expost.solve.problem import gradient_sensitivity
from tests.helpers import problem_of, ridge_rows

ALPHA, GAMMA = 0.005, 0.1


def plan_of(generator, last):
    """Settle rounds for gradients anywhere in the ball."""
    problem, longest = generator.problem, generator.problem.radius * (1 + 1e-9)
    charged = Grid.of(
        gradient_sensitivity(problem.loss, longest) / problem.n,
        error_bound=generator.mechanism.errors(problem).gradient_error_bound(longest),
    )
    return DoublingPlan.of(
        target=gradient_target(ALPHA, problem.regularization),
        failure_probability=GAMMA,
        sensitivity=charged.effective_sensitivity,
        first=1e-3,
        last=last,
        calibration="tight",
    )


class TestGradientDoubling:
    def search(self, seed, last=4.0):
        rows = ridge_rows(20_000, 3, 27)
        problem = problem_of(rows, SquaredLoss())
        generator = Covariance().on(rows, problem)
        source = SeededSource([28, seed])
        calls = []

        def black_box(epsilon):
            calls.append(epsilon)
            (step,) = generator.path((epsilon,), source)
            return 1.5 * np.asarray(generator.hypothesis(step.values)) / 1.5

        release = doubling_search(
            black_box,
            GradientLength(generator.risk, problem.loss, problem.n),
            plan_of(generator, last),
            project=lambda theta: into_ball(theta, problem.radius),
            random_state=source,
        )
        return release, calls, generator

    def test_costs_are_those_of_the_rounds(self):
        release, calls, generator = self.search(0)
        assert release.epsilon_generation == pytest.approx(1e-3 * (2 ** len(calls) - 1))
        assert calls == [1e-3 * 2**i for i in range(len(calls))]
        assert release.epsilon_test > 0
        assert release.epsilon <= release.epsilon_worst_case
        assert any("ε-private" in claim for claim in release.claims)
        assert generator.risk.excess(np.zeros(4)) > 3 * ALPHA

    def test_the_promise(self):
        excess = []
        for seed in range(60):
            release, _, generator = self.search(seed)
            excess.append(generator.risk.excess(np.asarray(release.hypothesis)))
        above = int((np.array(excess) > ALPHA).sum())
        assert stats.binomtest(above, 60, GAMMA, alternative="greater").pvalue > 1e-3

    def test_refuses_when_no_round_passes(self):
        with pytest.raises(AccuracyNotReached) as caught:
            self.search(0, last=2e-3)
        assert caught.value.release.epsilon > 0
