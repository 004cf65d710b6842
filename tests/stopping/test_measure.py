"""Queries on a grid: what rounding and floating point are charged, and bounds that never change a decision."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import (
    AboveThreshold,
    AccuracyNotReached,
    ErrorQuery,
    LogisticLoss,
    NoisePath,
    Problem,
    SeededSource,
    SquaredLoss,
    search,
)
from expost.erm import SUM_UNIT, Layout
from expost.search import QueryGrid, plan_test
from expost.search.covariance import CovarianceGenerator
from expost.search.lazy import BallMinimum
from expost.search.output import OutputGenerator
from expost.search.query import public_grid

from .tools import N, classification_rows, regression_rows, regression_sums


def smallest_limit(query, hypothesis):
    """Return the answer of a query, in units, by bisection on what it accepts."""
    low, high = -(1 << 60), 1 << 60
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if query.at_most(hypothesis, middle) else (middle, high)
    return high


class TestTheGrid:
    @given(st.floats(1e-12, 1e6))
    def test_a_power_of_two_a_millionth_of_the_sensitivity(self, delta):
        grid = public_grid(delta)
        assert math.frexp(grid)[0] == 0.5
        assert delta * 2.0**-21 <= grid <= delta * 2.0**-20

    @settings(max_examples=300, deadline=None)
    @given(
        value=st.floats(0, 1e3),
        change=st.floats(-1, 1),
        here=st.floats(-1, 1),
        there=st.floats(-1, 1),
        delta=st.floats(1e-3, 10),
        eta=st.sampled_from([0.0, 1e-9, 1e-4]),
    )
    def test_neighbouring_answers_differ_by_at_most_the_charge(self, value, change, here, there, delta, eta):
        """True errors within Δ of each other, each computed with its own error within η."""
        other = max(0.0, value + change * delta)
        if abs(Fraction(other) - Fraction(value)) > Fraction(delta):
            other = value
        computed = [value + here * eta, other + there * eta]
        if any(abs(Fraction(c) - Fraction(t)) > Fraction(eta) for c, t in zip(computed, [value, other], strict=True)):
            computed = [value, other]
        answers = [
            smallest_limit(ErrorQuery(lambda _, c=c: c, sensitivity=delta, error_bound=eta), None) for c in computed
        ]
        charge = QueryGrid.of(delta, error_bound=eta).units
        if eta == 0.0:  # otherwise the sum "computed + η" is rounded too, which η has to cover
            assert abs(answers[0] - answers[1]) <= charge
        assert abs(answers[0] - answers[1]) <= charge + 1
        grid = public_grid(delta)
        assert Fraction(answers[0]) * Fraction(grid) >= Fraction(computed[0])

    def test_the_charge_is_attained(self):
        """A change of exactly Δ across a rounding step: without the extra unit the sensitivity would be wrong."""
        delta = 1.0
        grid = public_grid(delta)
        low, high = 0.5 * grid, 0.5 * grid + delta + 0.6 * grid
        query = ErrorQuery(lambda h: h, sensitivity=delta + 0.6 * grid)
        moved = smallest_limit(query, high) - smallest_limit(query, low)
        assert moved == QueryGrid.of(delta + 0.6 * grid).units == math.floor((delta + 0.6 * grid) / grid) + 1

    def test_floating_point_error_is_charged_twice(self):
        plain, charged = QueryGrid.of(0.01), QueryGrid.of(0.01, error_bound=0.001)
        assert charged.effective_sensitivity == pytest.approx(plain.effective_sensitivity + 0.002, abs=2 * plain.grid)

    @pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
    def test_sensitivities_that_make_no_sense(self, sensitivity):
        with pytest.raises(ValueError, match="sensitivity"):
            ErrorQuery(float, sensitivity=sensitivity)

    @pytest.mark.parametrize("bound", [-1.0, math.nan])
    def test_error_bounds_that_make_no_sense(self, bound):
        with pytest.raises(ValueError, match="error_bound"):
            ErrorQuery(float, sensitivity=1.0, error_bound=bound)


def generator(kind):
    if kind == "output":
        problem = Problem.of(LogisticLoss(), n=N, p=4, regularization=0.01, excess_risk=0.03)
        return OutputGenerator(classification_rows(), problem), problem
    problem = Problem.of(SquaredLoss(), n=N, p=4, regularization=0.01, excess_risk=0.02)
    if kind == "output, squared":
        return OutputGenerator(regression_rows(), problem), problem
    return CovarianceGenerator(regression_sums(), problem), problem


def plain_query(made):
    """The same query without its cheap bounds."""
    query = made.query()
    return ErrorQuery(
        lambda theta: made.risk.excess(np.asarray(theta)),
        sensitivity=made.problem.risk_sensitivity,
        error_bound=query.error_bound,
    )


@pytest.mark.parametrize("kind", ["covariance", "output", "output, squared"])
class TestBoundsChangeNothing:
    def test_on_whole_searches(self, kind):
        """Same seeds, with and without bounds: the same level, hypothesis and cost."""
        made, problem = generator(kind)
        perturbation = "covariance" if kind == "covariance" else "output"
        released = 0
        for seed in range(25):
            outcomes = []
            for query in (made.query(), plain_query(made)):
                plan = plan_test(
                    problem, perturbation, risk_error=query.error_bound, calibration="published", n_levels=100
                )
                rule = AboveThreshold(query, plan.calibration, 100, random_state=seed)
                path = made.path(plan.levels, SeededSource([seed, 1]))
                outcomes.append(search(path, made.hypothesis, rule, on_failure="return"))
            assert outcomes[0] == outcomes[1]
            released += outcomes[0].status == "released"
        assert released > 0

    def test_next_to_the_answer(self, kind):
        """Limits one unit around the answer, on hypotheses from all levels."""
        made, _ = generator(kind)
        bounded, plain = made.query(), plain_query(made)
        path = made.path(tuple(np.geomspace(1e-3, 50, 40)), SeededSource(8))
        for step in path:
            theta = made.hypothesis(step.values)
            answer = smallest_limit(plain, theta)
            for limit in (0, answer // 2, answer - 1, answer, answer + 1, 2 * answer):
                if limit >= 0:
                    assert bounded.at_most(theta, limit) is plain.at_most(theta, limit) is (limit >= answer)

    def test_they_spare_evaluations(self, kind):
        made, _ = generator(kind)
        bounded, plain = made.query(), plain_query(made)
        limit = round(made.problem.excess_risk / plain.grid)
        for step in made.path(tuple(np.geomspace(1e-3, 50, 60)), SeededSource(9)):
            theta = made.hypothesis(step.values)
            bounded.at_most(theta, limit)
            plain.at_most(theta, limit)
        assert plain.evaluations == 60
        assert bounded.evaluations < 50


def test_a_minimum_said_to_lie_on_the_sphere_lies_there():
    """Exactly singular: the noisy matrix plus n·λ has a zero on its diagonal, and a minimum inside exists."""
    layout, radius = Layout(2), 3.0
    values = np.array([-2, 4, 0, 0, 1]) * SUM_UNIT  # A₁₁, A₂₂, 2·A₁₂, moments
    theta = BallMinimum(values, layout, n=4, regularization=0.5, radius=radius)
    assert theta.on_sphere
    assert np.linalg.norm(np.asarray(theta)) == pytest.approx(radius, rel=1e-9)
    nowhere = BallMinimum(values * [1, 1, 1, 0, 0], layout, n=4, regularization=0.5, radius=radius)
    assert np.linalg.norm(np.asarray(nowhere)) == pytest.approx(radius, rel=1e-9)
    inside = BallMinimum(values + SUM_UNIT, layout, n=4, regularization=0.5, radius=radius)
    assert not inside.on_sphere
    assert np.linalg.norm(np.asarray(inside)) < radius


def test_bounds_that_are_none_would_be_noticed():
    """The comparison above does fail for an upper bound that is too low or a lower bound that is too high."""

    def error(h):
        return abs(h - 3.0)

    right = ErrorQuery(error, sensitivity=1.0)
    for wrong in ({"upper": lambda h: error(h) - 0.1}, {"lower": lambda h: error(h) + 0.1}):
        query = ErrorQuery(error, sensitivity=1.0, **wrong)
        answer = smallest_limit(right, 5.0)
        assert any(
            query.at_most(5.0, limit) is not right.at_most(5.0, limit)
            for limit in (answer - 1000, answer - 1, answer, answer + 1000)
        )


def test_a_rule_with_too_few_tests_is_refused_before_anything_is_revealed():
    """Running out half-way would tell that nothing passed, without a release that says what that cost."""
    query = ErrorQuery(lambda h: 1e9, sensitivity=1.0)
    rule = AboveThreshold.with_epsilon(query, epsilon=1.0, threshold=1.0, n_tests=2, random_state=0)
    path = NoisePath(np.array([1]), 1, [0.1, 0.2, 0.3], random_state=0)
    with pytest.raises(ValueError, match="made for 2 hypotheses, the path has 3 levels"):
        search(path, None, rule)
    rule = AboveThreshold.with_epsilon(query, epsilon=1.0, threshold=1.0, n_tests=3, random_state=0)
    with pytest.raises(AccuracyNotReached):
        search(path, None, rule)
