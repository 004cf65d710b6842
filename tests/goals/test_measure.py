"""Measures on a grid: what rounding and floating point are charged, and bounds that never change a decision."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from expost.goals.measure import ErrorMeasure, Measure
from expost.numeric import UNITS, Grid, public_grid
from tests.helpers import smallest_limit


class TestTheGrid:
    @given(st.floats(1e-12, 1e6))
    def test_a_power_of_two_a_millionth_of_the_sensitivity(self, delta):
        unit = public_grid(delta)
        assert math.frexp(unit)[0] == 0.5
        assert delta * 2.0**-21 <= unit <= delta * 2.0**-20

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
            smallest_limit(ErrorMeasure(lambda _, c=c: c, sensitivity=delta, error_bound=eta), None) for c in computed
        ]
        charge = Grid.of(delta, error_bound=eta).units
        if eta == 0.0:  # otherwise the sum "computed + η" is rounded too, which η has to cover
            assert abs(answers[0] - answers[1]) <= charge
        assert abs(answers[0] - answers[1]) <= charge + 1
        assert Fraction(answers[0]) * Fraction(public_grid(delta)) >= Fraction(computed[0])

    def test_the_charge_is_attained(self):
        """A change of exactly Δ across a rounding step: without the extra unit the sensitivity would be wrong."""
        delta = 1.0
        unit = public_grid(delta)
        low, high = 0.5 * unit, 0.5 * unit + delta + 0.6 * unit
        measure = ErrorMeasure(lambda h: h, sensitivity=delta + 0.6 * unit)
        moved = smallest_limit(measure, high) - smallest_limit(measure, low)
        assert moved == Grid.of(delta + 0.6 * unit).units == math.floor((delta + 0.6 * unit) / unit) + 1

    def test_floating_point_error_is_charged_twice(self):
        plain, charged = Grid.of(0.01), Grid.of(0.01, error_bound=0.001)
        assert charged.effective_sensitivity == pytest.approx(plain.effective_sensitivity + 0.002, abs=2 * plain.unit)

    @pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.nan, math.inf])
    def test_sensitivities_that_make_no_sense(self, sensitivity):
        with pytest.raises(ValueError, match="sensitivity"):
            ErrorMeasure(float, sensitivity=sensitivity)

    @pytest.mark.parametrize("bound", [-1.0, math.nan])
    def test_error_bounds_that_make_no_sense(self, bound):
        with pytest.raises(ValueError, match="error_bound"):
            ErrorMeasure(float, sensitivity=1.0, error_bound=bound)


class Stated(Measure):
    """A measure without one sensitivity for all hypotheses: h is its value, the sensitivity is stated."""

    def __init__(self, delta, eta=0.0):
        self._delta, self._eta = delta, eta

    def value(self, hypothesis):
        return hypothesis

    def sensitivity(self, hypothesis):
        return self._delta

    def error_bound(self, hypothesis):
        return self._eta


class TestGridsOfOneHypothesis:
    """Where every hypothesis has a sensitivity of its own: for a rule that asks about many, and for one question."""

    def test_there_is_none_for_all(self):
        measure = Stated(0.3, 1e-9)
        assert measure.uniform is None
        assert measure.grid(1.0) == Grid.by_sensitivity(0.3, error_bound=1e-9)
        assert measure.fine_grid(1.0) == Grid.of(0.3, error_bound=1e-9)

    def test_a_measure_with_one_sensitivity_is_counted_on_its_grid(self):
        measure = ErrorMeasure(float, sensitivity=0.3, error_bound=1e-9)
        assert measure.grid(1.0) == measure.fine_grid(1.0) == measure.uniform == Grid.of(0.3, error_bound=1e-9)

    @settings(max_examples=200, deadline=None)
    @given(
        value=st.floats(0, 1e3),
        change=st.floats(-1, 1),
        delta=st.floats(1e-3, 10),
        eta=st.sampled_from([0.0, 1e-9, 1e-4]),
    )
    def test_neighbouring_answers_differ_by_at_most_the_charge(self, value, change, delta, eta):
        other = max(0.0, value + change * (delta + 2 * eta))
        if abs(Fraction(other) - Fraction(value)) > Fraction(delta) + 2 * Fraction(eta):
            other = value
        measure = Stated(delta, eta)
        own, fine = measure.grid(value), measure.fine_grid(value)
        # the sum "computed + η" is rounded too: own units have room for that, in fine ones η has to cover it
        for grid, rounding in ((own, 0), (fine, int(eta > 0))):
            answers = [smallest_limit(measure, h, grid.unit) for h in (value, other)]
            assert abs(answers[0] - answers[1]) <= grid.units + rounding
            assert Fraction(answers[0]) * Fraction(grid.unit) >= Fraction(value) * (1 - Fraction(2) ** -50)

    @pytest.mark.parametrize("eta", [0.0, 1e-4])
    def test_a_rule_counts_uniformly_many_units(self, eta):
        """UNITS of them whatever the sensitivity, and a change by all of it moves hardly fewer: a half is refuted."""
        for delta in (1e-6, 0.3, 7.0):
            measure = Stated(delta, eta)
            grid = measure.grid(0.0)
            moved = smallest_limit(measure, delta + 2 * eta, grid.unit) - smallest_limit(measure, 0.0, grid.unit)
            assert grid.units == UNITS
            assert UNITS - 2 <= moved <= UNITS

    def test_measures_are_not_negative(self):
        """So a negative limit rejects, and nothing is looked at."""

        class Unseen(Stated):
            def value(self, hypothesis):
                raise AssertionError("looked at")

        assert not Unseen(1.0).at_most(0.0, -1, 1.0)


def test_bounds_that_are_none_would_be_noticed():
    """Comparing with and without bounds does show an upper bound that is too low and a lower one that is too high."""

    def error(h):
        return abs(h - 3.0)

    right = ErrorMeasure(error, sensitivity=1.0)
    unit = right.uniform.unit
    for wrong in ({"upper": lambda h: error(h) - 0.1}, {"lower": lambda h: error(h) + 0.1}):
        measure = ErrorMeasure(error, sensitivity=1.0, **wrong)
        answer = smallest_limit(right, 5.0)
        assert any(
            measure.at_most(5.0, limit, unit) is not right.at_most(5.0, limit, unit)
            for limit in (answer - 1000, answer - 1, answer, answer + 1000)
        )
