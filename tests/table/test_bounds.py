import numpy as np
import pytest
from hypothesis import given, strategies as st

from expost.table.bounds import Bounds, resolve_bounds, resolve_target_bounds

finite = st.floats(-1e50, 1e50)


def test_every_form_says_the_same():
    expected = Bounds((0.0, 0.0), (1.0, 5.0))
    names = ["a", "b"]
    for form in (
        (0, (1, 5)),
        ([0, 0], [1, 5]),
        np.array([[0, 0], [1, 5]]),
        {"a": (0, 1), "b": (0, 5)},
        {"a": (0, 1), 1: [0, 5]},
        {0: (0, 1), np.int64(1): (0, 5)},
        expected,
    ):
        assert resolve_bounds(form, 2, names) == expected


def test_none_stays_none_and_a_number_is_symmetric():
    assert resolve_bounds(None, 3) is None
    for number in (2, 2.0, np.float64(2), np.array(2)):
        assert resolve_bounds(number, 3) == Bounds((-2.0,) * 3, (2.0,) * 3)
    assert resolve_bounds(np.array([-1.0, 3.0]), 2) == Bounds((-1.0, -1.0), (3.0, 3.0))


def test_names_win_over_indices():
    assert resolve_bounds({1: (0, 1), 0: (0, 5)}, 2, [1, 0]) == Bounds((0.0, 0.0), (1.0, 5.0))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (0, "finite and positive"),
        (-1.0, "finite and positive"),
        (np.inf, "finite and positive"),
        ("wide", "made of numbers"),
        (np.zeros((3, 2)), r"pass bounds=\(lower, upper\)"),
        ([(0, 1), (0, 1), (0, 1)], r"pass bounds=\(lower, upper\)"),
        (([0, 0], [1, 1]), "shape"),
        (([0, 0, 0], [1, 0, 1]), r"column\(s\) 1"),
        ((0, np.nan), "finite"),
        ((0, [1, np.inf, 1]), r"column\(s\) 1"),
        ((1, 1), "strictly below"),
        ((0, 5e-324), "strictly below"),
        ({"a": (0, 1), "b": (0, 1)}, r"leave out column\(s\) c"),
        ({"a": (0, 1), "b": (0, 1), "c": (0, 1), "d": (0, 1)}, r"unknown column\(s\) d.*a, b, c"),
        ({"a": (0, 1), "b": (0, 1), -1: (0, 1)}, r"unknown column\(s\) -1"),
        ({"a": (0, 1), 0: (0, 1), "b": (0, 1), "c": (0, 1)}, "twice"),
        ({"a": (0, 1), "b": 1, "c": (0, 1)}, r"pair \(low, high\)"),
    ],
)
def test_bad_bounds_say_what_to_pass(form, message):
    with pytest.raises(ValueError, match=message):
        resolve_bounds(form, 3, ["a", "b", "c"])


def test_bounds_for_another_number_of_columns():
    with pytest.raises(ValueError, match="for 1 columns"):
        resolve_bounds(Bounds((0.0,), (1.0,)), 2)
    with pytest.raises(ValueError, match="1 lower and 2 upper"):
        Bounds((0.0,), (1.0, 1.0))


@given(finite, finite, st.floats())
def test_scaling_lands_in_the_unit_interval(low, high, value):
    if not high / 2 - low / 2 >= 1e-50:
        return
    bounds = Bounds((low,), (high,))
    scaled = bounds.scale([[value]])[0, 0]
    assert np.isnan(scaled) if np.isnan(value) else -1 <= scaled <= 1
    if np.isfinite(value):
        assert np.isfinite(bounds.unscale(bounds.scale([[value]]))).all()


@given(st.floats(min_value=1e-49, max_value=1e49))
def test_symmetric_bounds_keep_zero_at_zero(reach):
    bounds = resolve_bounds(reach, 1)
    assert bounds.scale([[0.0]])[0, 0] == 0
    assert bounds.scale([[reach], [-reach]]).tolist() == [[1.0], [-1.0]]


def test_without_clip_values_keep_going():
    assert Bounds((0.0,), (2.0,)).scale([[4.0]], clip=False)[0, 0] == 3
    assert Bounds((0.0,), (2.0,)).scale([[4.0]])[0, 0] == 1


def test_target_bounds():
    assert resolve_target_bounds(3, None) == (-3.0, 3.0)
    assert resolve_target_bounds(None, (1, 2)) == (1.0, 2.0)
    for both in ((None, None), (1, (0, 1))):
        with pytest.raises(ValueError, match="exactly one of target_bound"):
            resolve_target_bounds(*both)
    for bad in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="target_bound must be"):
            resolve_target_bounds(bad, None)
    for bad in ((1, 1), (2, 1), (0, np.inf), (np.nan, 1), (1, 2, 3), 4):
        with pytest.raises(ValueError, match="target_bounds must be a pair"):
            resolve_target_bounds(None, bad)
