"""Checks of arguments: what passes comes back as a plain value, and every message names the argument."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from expost import validation

NOT_NUMBERS = ["0.1", None, [0.1], True, np.array([0.1]), 1j]


class TestNumbers:
    @pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3), Fraction(3)])
    def test_any_real_number_becomes_a_float(self, value):
        for check in (validation.number, validation.positive):
            found = check("radius", value)
            assert (type(found), found) == (float, 3.0)

    @pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
    def test_what_is_no_number(self, value):
        with pytest.raises(ValueError, match=r"^radius must be a number, got "):
            validation.number("radius", value)
        with pytest.raises(ValueError, match=r"^radius must be a positive finite number, got "):
            validation.positive("radius", value)
        with pytest.raises(ValueError, match=r"^at_most must be a number strictly between 0 and 1, got "):
            validation.share("at_most", value)

    def test_nan(self):
        with pytest.raises(ValueError, match=r"^radius must be a number, got NaN$"):
            validation.number("radius", math.nan)

    def test_infinity_is_a_number(self):
        """Whether it makes sense is for whoever uses it to say."""
        assert validation.number("radius", math.inf) == math.inf

    @pytest.mark.parametrize("value", [0, 0.0, -1.0, math.inf, -math.inf, math.nan])
    def test_not_positive_or_not_finite(self, value):
        with pytest.raises(ValueError, match=f"^radius must be a positive finite number, got {value}$"):
            validation.positive("radius", value)

    def test_messages_show_what_was_passed(self):
        with pytest.raises(ValueError, match=r"got '0.1'"):
            validation.positive("radius", "0.1")


class TestShares:
    @pytest.mark.parametrize("value", [0.25, np.float32(0.25), Fraction(1, 4)])
    def test_between(self, value):
        found = validation.share("at_most", value)
        assert (type(found), found) == (float, 0.25)

    @pytest.mark.parametrize("value", [0, 1, 1.0, -0.5, 2, math.nan, math.inf])
    def test_ends_are_not_between(self, value):
        with pytest.raises(ValueError, match=r"^at_most must be a number strictly between 0 and 1, got "):
            validation.share("at_most", value)

    def test_another_end(self):
        assert validation.share("at_most", 7, end=8) == 7.0
        with pytest.raises(ValueError, match="strictly between 0 and 8"):
            validation.share("at_most", 8, end=8)

    def test_without_an_end(self):
        assert validation.share("at_most", 1e50, end=math.inf) == 1e50
        with pytest.raises(ValueError, match=r"^at_most must be a positive finite number, got inf$"):
            validation.share("at_most", math.inf, end=math.inf)


class TestFailureProbability:
    @pytest.mark.parametrize("value", [1e-9, 0.1, np.float64(0.999)])
    def test_within(self, value):
        assert validation.failure_probability(value) == value

    @pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, -0.1, 2.0, math.inf])
    def test_outside(self, value):
        with pytest.raises(ValueError, match=r"^failure_probability must lie strictly between 0 and 1, got "):
            validation.failure_probability(value)

    def test_too_small_for_floating_point(self):
        with pytest.raises(ValueError, match=r"^failure_probability must be at least 1e-09, got 1e-10$"):
            validation.failure_probability(1e-10)

    @pytest.mark.parametrize("value", ["0.1", None, True, math.nan], ids=repr)
    def test_what_is_no_number(self, value):
        with pytest.raises(ValueError, match=r"^failure_probability must be a number, got "):
            validation.failure_probability(value)


class TestRegularization:
    @pytest.mark.parametrize("value", [1e-15, 0.01, 1, 1e15])
    def test_within(self, value):
        assert validation.regularization(value) == value

    @pytest.mark.parametrize("value", [1e-16, 1e16])
    def test_beyond_floating_point(self, value):
        with pytest.raises(ValueError, match=r"^regularization must lie between 1e-15 and 1e[+]15, got "):
            validation.regularization(value)

    @pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "0.1", True], ids=repr)
    def test_not_positive(self, value):
        with pytest.raises(ValueError, match=r"^regularization must be a positive finite number, got "):
            validation.regularization(value)


class TestOptions:
    def test_a_budget_may_be_left_out(self):
        assert validation.budget(None) is None
        assert validation.budget(np.float32(2)) == 2.0

    @pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", False], ids=repr)
    def test_budgets_that_make_no_sense(self, value):
        with pytest.raises(ValueError, match=r"^max_epsilon must be a positive finite number, got "):
            validation.budget(value)

    def test_a_number_of_levels_may_be_left_out(self):
        assert validation.level_count(None) is None
        found = validation.level_count(np.int64(8))
        assert (type(found), found) == (int, 8)

    @pytest.mark.parametrize("value", [0, -3, 2.5, 2.0, "2", True, math.nan], ids=repr)
    def test_numbers_of_levels_that_make_no_sense(self, value):
        with pytest.raises(ValueError, match=r"^n_levels must be a whole number, at least 1, got "):
            validation.level_count(value)

    @pytest.mark.parametrize("value", validation.CALIBRATIONS)
    def test_calibrations(self, value):
        assert validation.calibration(value) == value

    @pytest.mark.parametrize("value", ["loose", "Tight", "", None, 1], ids=repr)
    def test_other_calibrations(self, value):
        with pytest.raises(ValueError, match=r"^calibration must be one of .*'published', 'theorem', 'tight'.*, got "):
            validation.calibration(value)

    def test_the_papers_are_among_them(self):
        assert set(validation.PAPER_CALIBRATIONS) < set(validation.CALIBRATIONS)

    def test_one_of(self):
        validation.one_of("noise", "laplace", ("laplace", "spherical"))
        with pytest.raises(ValueError, match=r"^noise must be one of \['laplace', 'spherical'\], got 'gauss'$"):
            validation.one_of("noise", "gauss", ("laplace", "spherical"))
