"""Excess risks as mechanisms measure them: cheap bounds spare work and never change a decision."""

from __future__ import annotations

import numpy as np
import pytest

from expost.account import geometric_levels
from expost.goals.measure import ErrorMeasure
from expost.mechanisms import Covariance, Output
from expost.noise import SeededSource
from expost.search import search_path
from expost.search.above_threshold import AboveThreshold, calibrate
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem
from tests.helpers import N, classification_rows, outcome, regression_rows, regression_sums, smallest_limit

LAM = 0.01
KINDS = ["covariance", "output", "output, squared"]


def generator(kind):
    """Return hypotheses, and the target they are compared with."""
    loss, target = (LogisticLoss(), 0.03) if kind == "output" else (SquaredLoss(), 0.02)
    problem = Problem.of(loss, n=N, p=4, regularization=LAM)
    if kind == "covariance":
        return Covariance().on(regression_sums(), problem), target
    return Output().on(classification_rows() if kind == "output" else regression_rows(), problem), target


def plain_measure(made):
    """The same measure without its cheap bounds."""
    return ErrorMeasure(
        lambda theta: made.risk.excess(np.asarray(theta)),
        sensitivity=made.problem.risk_sensitivity,
        error_bound=made.excess_risk().error_bound(),
    )


@pytest.mark.parametrize("kind", KINDS)
class TestBoundsChangeNothing:
    def test_on_whole_searches(self, kind):
        """Same seeds, with and without bounds: the same level, hypothesis and cost."""
        made, target = generator(kind)
        last = 4 * made.mechanism.theory_epsilon(made.problem, target)
        levels = geometric_levels(1 / N, last, 100)
        released = 0
        for seed in range(25):
            outcomes = []
            for measure in (made.excess_risk(), plain_measure(made)):
                test = calibrate(
                    "published",
                    target=target,
                    failure_probability=0.1,
                    n_tests=100,
                    sensitivity=measure.effective_sensitivity,
                )
                rule = AboveThreshold(measure, test, 100, random_state=seed)
                path = made.path(levels, SeededSource([seed, 1]))
                outcomes.append(outcome(search_path, path, rule, made.hypothesis))
            assert outcomes[0] == outcomes[1]
            released += outcomes[0].status == "released"
        assert released > 0

    def test_next_to_the_answer(self, kind):
        """Limits one unit around the answer, on hypotheses from all levels."""
        made, _ = generator(kind)
        bounded, plain = made.excess_risk(), plain_measure(made)
        unit = plain.uniform.unit
        assert bounded.uniform == plain.uniform
        path = made.path(tuple(np.geomspace(1e-3, 50, 40)), SeededSource(8))
        for step in path:
            theta = made.hypothesis(step.values)
            answer = smallest_limit(plain, theta)
            for limit in (0, answer // 2, answer - 1, answer, answer + 1, 2 * answer):
                if limit >= 0:
                    passes = limit >= answer
                    assert bounded.at_most(theta, limit, unit) is plain.at_most(theta, limit, unit) is passes

    def test_they_spare_evaluations(self, kind):
        made, target = generator(kind)
        bounded, plain = made.excess_risk(), plain_measure(made)
        unit = plain.uniform.unit
        limit = round(target / unit)
        for step in made.path(tuple(np.geomspace(1e-3, 50, 60)), SeededSource(9)):
            theta = made.hypothesis(step.values)
            bounded.at_most(theta, limit, unit)
            plain.at_most(theta, limit, unit)
        assert plain.evaluations == 60
        assert bounded.evaluations < 50
