"""What is settled without rows against what a generator charges: sensitivities and errors have to be the same."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from expost import ErrorRate, ExcessRisk, MeanSquaredError
from expost.mechanisms import Covariance, Output
from expost.noise import SeededSource
from expost.solve.problem import Problem
from tests.helpers import LOSSES, classification_rows, plan_of, regression_rows

ALPHA = 0.1


# one for every loss and mechanism, with and without a stated ball
KINDS = [
    (mechanism, loss, radius)
    for mechanism, loss, radius in product((Covariance(), Output(), Output("spherical")), LOSSES, (None, 0.3))
    if mechanism.name == "output" or loss.name == "squared"
]


@pytest.fixture(scope="module", params=KINDS, ids=repr)
def made(request):
    mechanism, loss, radius = request.param
    rows = classification_rows(500) if loss.labels == "binary" else regression_rows(500)
    return mechanism.on(rows, Problem.of(loss, n=rows.n, p=rows.p, regularization=0.05, radius=radius))


class TestPublicAndPrivateAgree:
    def test_errors_of_risks_and_gradients(self, made):
        errors = made.mechanism.errors(made.problem)
        assert errors.distance_bound == made.risk.distance_bound
        for radius in (0.0, 0.1, made.problem.radius, 7.0):
            assert errors.excess_error_bound(radius) == made.risk.excess_error_bound(radius)
            assert errors.gradient_error_bound(radius) == made.risk.gradient_error_bound(radius)

    def test_a_settled_test_covers_the_measure(self, made):
        """Calibrated for exactly the sensitivity charged: less would be refused, more would waste."""
        plan = plan_of(made.problem, ExcessRisk(ALPHA), mechanism=made.mechanism)
        measure = plan.measure(made)
        assert plan.test.calibration.sensitivity == measure.effective_sensitivity
        assert measure.sensitivity() == made.problem.risk_sensitivity
        plan.test.on(measure, 0)

    def test_hypotheses_lie_in_the_ball(self, made):
        """Their sensitivities are charged for it; what a utility theorem is about need not."""
        for step in made.path((1e-3, 1.0, 100.0), SeededSource(3)):
            theta = np.asarray(made.hypothesis(step.values))
            assert np.linalg.norm(theta) <= made.problem.radius * (1 + 1e-9)

    def test_goals_that_are_tested_measure_without_one_sensitivity(self, made):
        loss = made.problem.loss
        goal = ErrorRate(0.3) if loss.labels == "binary" else MeanSquaredError(0.3)
        measure = goal.measure(made)
        assert measure.uniform is None
        theta = goal.hypothesis(made)(next(iter(made.path((1.0,), SeededSource(3)))).values)
        assert measure.value(theta) >= 0
        assert measure.sensitivity(theta) > 0
        assert goal.typical(made.problem) > 0


class TestRefusals:
    def test_a_test_settled_for_more_rows_is_refused_on_fewer(self):
        """The other way round it is sound, and wasteful."""
        rows = regression_rows(500)
        settled = {
            n: plan_of(Problem.of(LOSSES[0], n=n, p=rows.p, regularization=0.05), ExcessRisk(ALPHA)).test
            for n in (499, 500, 501)
        }
        measure = Covariance().on(rows, Problem.of(LOSSES[0], n=500, p=rows.p, regularization=0.05)).excess_risk()
        settled[499].on(measure, 0)
        settled[500].on(measure, 0)
        with pytest.raises(ValueError, match="effective_sensitivity"):
            settled[501].on(measure, 0)

    def test_output_perturbation_needs_rows(self):
        problem = Problem.of(LOSSES[0], n=500, p=4, regularization=0.05)
        made = Covariance().on(regression_rows(500), problem)
        with pytest.raises(ValueError, match="needs the rows themselves"):
            Output().on(made.sums, problem)
