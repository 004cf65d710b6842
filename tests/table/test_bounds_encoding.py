import json
import traceback

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from expost.table import bounds_encoding
from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation, resolve_feature_bound
from expost.table.rows import ONE

anything = st.floats()  # NaN, infinities, subnormals, the largest floats
weights = st.one_of(st.just(0.0), st.floats(2**-20, 1 - 2**-20))
moderate = st.floats(-1e6, 1e6)


@st.composite
def recipes(draw, target=None, bounded=None):
    p = draw(st.integers(1, 5))
    bounds = None
    if draw(st.booleans()) if bounded is None else bounded:
        lower = [draw(moderate) for _ in range(p)]
        bounds = Bounds(lower, [low + draw(st.floats(1e-3, 1e6)) for low in lower])
    bound = draw(st.one_of(st.none(), st.floats(1e-50, 1e50))) if bounds else draw(st.floats(1e-50, 1e50))
    return Preparation(bounds, resolve_feature_bound(bound, bounds, p), target, draw(weights), p)


def table(draw, recipe, elements, max_rows=7):
    n = draw(st.integers(1, max_rows))
    X = draw(hnp.arrays(np.float64, (n, recipe.n_columns), elements=elements))
    y = draw(hnp.arrays(np.float64, n, elements=elements))
    return X, y


@given(st.data())
def test_no_row_can_raise_and_every_row_is_bounded(data):
    recipe = data.draw(recipes(target=(-1.0, 3.0)))
    X, y = table(data.draw, recipe, anything)
    # even a caller who turns warnings into errors must not see a row through them
    with np.errstate(all="raise"):
        rows = recipe.prepare_regression(X, y, on_invalid="clip")
    features = rows.x.astype(np.int64)[:, : recipe.n_columns]
    norms = np.abs(features).sum(axis=1)
    assert (norms <= recipe.feature_limit).all()
    assert (norms + recipe.constant <= ONE).all()
    assert (np.abs(rows.y) <= ONE).all()
    if recipe.has_intercept:
        assert (rows.x[:, -1] == recipe.constant).all()
        assert recipe.constant == int(recipe.intercept_weight * ONE) > 0


@given(st.data())
def test_chunks_make_no_difference_to_the_bit(data):
    recipe = data.draw(recipes(target=(-1.0, 3.0)))
    X, y = table(data.draw, recipe, anything, max_rows=12)
    whole = recipe.prepare_regression(X, y, on_invalid="clip")
    chunk = data.draw(st.integers(1, len(X)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds_encoding, "_CHUNK_ROWS", chunk)
        parts = recipe.prepare_regression(X, y, on_invalid="clip")
    assert np.array_equal(whole.x, parts.x)
    assert np.array_equal(whole.y, parts.y)


@given(st.data())
def test_replacing_a_row_changes_that_row_only(data):
    recipe = data.draw(recipes(target=(-1.0, 3.0)))
    X, y = table(data.draw, recipe, anything)
    other_X, other_y = X.copy(), y.copy()
    i = data.draw(st.integers(0, len(X) - 1))
    other_X[i] = data.draw(hnp.arrays(np.float64, recipe.n_columns, elements=anything))
    other_y[i] = data.draw(anything)
    one = recipe.prepare_regression(X, y, on_invalid="clip")
    two = recipe.prepare_regression(other_X, other_y, on_invalid="clip")
    assert np.array_equal(np.delete(one.x, i, axis=0), np.delete(two.x, i, axis=0))
    assert np.array_equal(np.delete(one.y, i), np.delete(two.y, i))


@given(st.data())
def test_the_layout_of_the_array_makes_no_difference(data):
    recipe = data.draw(recipes(target=(-1.0, 3.0)))
    X, y = table(data.draw, recipe, anything)
    plain = recipe.prepare_regression(X, y, on_invalid="clip")
    for form in (np.asfortranarray(X), X.tolist(), X.astype(object), pd.DataFrame(X)):
        assert np.array_equal(recipe.prepare_regression(form, y.tolist(), on_invalid="clip").x, plain.x)


@given(st.data())
def test_predictions_are_the_same_in_both_units(data):
    low, high = data.draw(moderate), data.draw(st.floats(1e-3, 1e6))
    target = data.draw(st.sampled_from([None, (low, low + high)]))
    drawn = data.draw(recipes(target=target, bounded=True))
    bounds = drawn.bounds
    recipe = Preparation(bounds, drawn.n_columns, target, drawn.intercept_weight, drawn.n_columns)
    where = data.draw(hnp.arrays(np.float64, (4, recipe.n_columns), elements=st.floats(-1, 1)))
    X = np.clip(bounds.unscale(where), bounds.lower, bounds.upper)
    theta = data.draw(hnp.arrays(np.float64, recipe.n_parameters, elements=st.floats(-10, 10)))
    if target is None:
        rows, middle, half = recipe.prepare_classification(X, np.ones(4), (0, 1)), 0.0, 1.0
    else:
        rows, middle, half = recipe.prepare_regression(X, np.full(4, low)), low + high / 2, high / 2
    scaled = rows.x / ONE @ theta * half + middle
    coef, intercept = recipe.to_caller_units(theta)
    # Truncation moves a cell by less than one unit. Rounding in (1-c)/p may put a row one unit over,
    # and the clip then takes at most two more from a cell.
    quantisation = 3 / ONE * np.abs(theta).sum() * half
    # Floating point in X @ coef + intercept, where large centres cancel.
    rounding = 1e-14 * (np.abs(X) @ np.abs(coef) + np.abs(coef) @ np.abs(bounds.center) + abs(middle) + half)
    assert (np.abs(X @ coef + intercept - scaled) <= quantisation + 10 * rounding).all()


def test_units_by_hand():
    recipe = Preparation(Bounds((0.0, 10.0), (4.0, 20.0)), 2.0, (0.0, 6.0), 0.25, 2)
    rows = recipe.prepare_regression([[4.0, 15.0], [0.0, 20.0], [99.0, -99.0]], [6.0, 3.0, -5.0])
    unit = 3 * ONE // 8  # (1 - c)/F
    assert rows.x.tolist() == [[unit, 0, ONE // 4], [-unit, unit, ONE // 4], [unit, -unit, ONE // 4]]
    assert rows.y.tolist() == [ONE, 0, -ONE]
    coef, intercept = recipe.to_caller_units([1.0, 2.0, 4.0])
    # x1: 3/8 / 2 * 3; x2: 2 * 3/8 / 5 * 3; constant: 4 * 1/4 * 3 - coef.center + 3
    assert coef == pytest.approx([9 / 16, 9 / 20])
    assert intercept == pytest.approx(3 - 9 / 16 * 2 - 9 / 20 * 15 + 3)


def test_rows_beyond_the_feature_bound_are_clipped_not_rejected():
    recipe = Preparation(None, 2.0, None, 0.0, 2)
    rows = recipe.prepare_classification([[1.0, 1.0], [3.0, -1.0], [1e308, 1e308]], [0, 1, 1], (0, 1))
    assert rows.x.tolist() == [[ONE // 2, ONE // 2], [3 * ONE // 4, -ONE // 4], [ONE // 2, ONE // 2]]
    assert rows.y.tolist() == [-ONE, ONE, ONE]


def test_the_intercept_uses_the_value_the_rows_have():
    recipe = Preparation(None, 1.0, None, 0.1, 1)
    rows = recipe.prepare_classification([[0.0]], [1], (0, 1))
    _, intercept = recipe.to_caller_units([0.0, 1.0])
    assert intercept == rows.x[0, -1] / ONE != 0.1


def test_clip_puts_bad_cells_where_it_says():
    bounded = Preparation(Bounds((0.0, 0.0), (4.0, 4.0)), 2.0, (0.0, 4.0), 0.0, 2)
    X = [[np.nan, 4.0], [np.inf, -np.inf], ["text", None]]
    rows = bounded.prepare_regression(X, [np.nan, np.inf, -np.inf], on_invalid="clip")
    assert rows.x.tolist() == [[0, ONE // 2], [ONE // 2, -ONE // 2], [0, 0]]
    assert rows.y.tolist() == [0, ONE, -ONE]
    unbounded = Preparation(None, 1.0, None, 0.0, 2)
    labels = ["b", "?", None]
    rows = unbounded.prepare_classification(
        [[np.nan, 0.5], [np.inf, 1.0], [-np.inf, np.inf]], labels, ("a", "b"), on_invalid="clip"
    )
    assert rows.x.tolist() == [[0, ONE // 2], [ONE, 0], [-ONE // 2, ONE // 2]]
    assert rows.y.tolist() == [ONE, -ONE, -ONE]


def test_errors_count_and_name_but_show_no_value():
    recipe = Preparation(None, 1.0, (-1.0, 1.0), 0.0, 3)
    X = pd.DataFrame({"a": [31415.5, np.nan, np.inf], "b": [1.0, np.nan, 1.0], "c": [1.0, "Bern", 1.0]})
    with pytest.raises(ValueError, match="2 of 3 rows") as caught:
        recipe.prepare_regression(X, [27182.5, 1.0, np.nan])
    message = str(caught.value)
    for part in (
        "a (2)",
        "b (1)",
        "c (1)",
        "target NaN or infinite (1)",
        'on_invalid="clip"',
        "privacy guarantee",
    ):
        assert part in message
    seen = "".join(traceback.format_exception(caught.value, chain=True))
    assert caught.value.__context__ is None
    for secret in ("31415", "27182", "Bern"):
        assert secret not in message
        assert secret not in seen.replace(__file__, "").split("InvalidRows:")[-1]


def test_unknown_labels_are_counted():
    recipe = Preparation(None, 1.0, None, 0.0, 1)
    with pytest.raises(ValueError, match=r"target in neither class \(2\)") as caught:
        recipe.prepare_classification([[0.0]] * 4, ["yes", "no", "maybe", None], ("no", "yes"))
    assert "maybe" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([0, 1, 1]), (0, 1)),
        (np.array([0.0, 1.0, 1.0]), (0, 1)),
        (np.array([False, True, True]), (False, True)),
        (np.array(["n", "y", "y"]), ("n", "y")),
        (np.array(["n", "y", "y"]), np.array(["n", "y"])),
        (pd.Series(["n", "y", "y"]), ("n", "y")),
        (pd.Series(["n", "y", "y"], dtype="category"), ("n", "y")),
        (np.array([b"n", b"y", b"y"]), (b"n", b"y")),
        ([0, "y", "y"], (0, "y")),
        (np.array([0, 200, 200], dtype=np.uint8), (-1, 200)),
    ],
)
def test_labels_of_every_type(labels, classes):
    recipe = Preparation(None, 1.0, None, 0.0, 1)
    rows = recipe.prepare_classification([[0.0]] * 3, labels, classes, on_invalid="clip")
    assert rows.y.tolist() == [-ONE, ONE, ONE]


def test_a_label_without_truth_value_is_unknown():
    recipe = Preparation(None, 1.0, None, 0.0, 1)
    labels = pd.Series([0, 1, pd.NA], dtype="Int64")
    rows = recipe.prepare_classification([[0.0]] * 3, labels, (0, 1), on_invalid="clip")
    assert rows.y.tolist() == [-ONE, ONE, -ONE]


def test_one_odd_cell_in_a_list_leaves_other_rows_alone():
    # NumPy would turn True into "True" beside a text cell, and 1 into "1" beside a text label
    recipe = Preparation(None, 1.0, None, 0.0, 1)
    rows = recipe.prepare_classification([[True], ["x"], [[1]]], [1, "?", 0], (0, 1), on_invalid="clip")
    assert rows.x.tolist() == [[ONE], [0], [0]]
    assert rows.y.tolist() == [ONE, -ONE, -ONE]


@pytest.mark.parametrize("cell", ["", "1e999", "nan", 10**400, object(), [1, 2], 1j, pd.NaT, b"\xff", np.ones(2)])
def test_no_object_in_a_cell_can_raise(cell):
    recipe = Preparation(Bounds((-1.0,), (1.0,)), 1.0, (-1.0, 1.0), 0.0, 1)
    X, y = np.empty((2, 1), dtype=object), np.empty(2, dtype=object)
    X[0, 0], y[0] = cell, cell
    X[1, 0], y[1] = 1, "1"
    rows = recipe.prepare_regression(X, y, on_invalid="clip")
    assert (rows.x[1, 0], rows.y[1]) == (ONE, ONE)
    classes = Preparation(None, 1.0, None, 0.0, 1)
    assert classes.prepare_classification(X, y, ("0", "1"), on_invalid="clip").y.tolist() == [-ONE, ONE]


def test_structure_errors():
    recipe = Preparation(None, 1.0, (0.0, 1.0), 0.0, 2)
    for X, y, message in (
        ([1.0, 2.0], [1.0], "X must be a dense array"),
        ([[1.0, 2.0], [1.0]], [1.0, 1.0], "X must be a dense array"),
        ([[1.0]], [1.0], "X has 1 columns; this preparation is for 2"),
        ([[1.0, 1.0]], [1.0, 1.0], "X has 1 rows, but there are 2 targets"),
        ([[1.0, 1.0]], [[1.0]], "y must be a dense array"),
        (np.empty((0, 2)), [], "at least one"),
        (np.ones((1, 2)) * 1j, [1.0], "dtype is complex128"),
    ):
        with pytest.raises(ValueError, match=message):
            recipe.prepare_regression(X, y)
    good = ([[1.0, 1.0]], [1.0])
    with pytest.raises(ValueError, match="on_invalid must be"):
        recipe.prepare_regression(*good, on_invalid="drop")
    with pytest.raises(ValueError, match="prepares regression"):
        recipe.prepare_classification(*good, (0, 1))
    with pytest.raises(ValueError, match="theta must have shape"):
        recipe.to_caller_units([1.0])
    classification = Preparation(None, 1.0, None, 0.0, 2)
    with pytest.raises(ValueError, match="prepares classification"):
        classification.prepare_regression(*good)
    for classes in ((0,), (0, 0), (0, 1, 2), (0, np.nan), (None, 1)):
        with pytest.raises(ValueError, match="classes must be a pair"):
            classification.prepare_classification(*good, classes)
    with pytest.raises(ValueError, match="classes cannot match"):
        classification.prepare_classification([[1.0, 1.0]], np.array(["1"]), (0, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_columns": 0}, "n_columns"),
        ({"n_columns": 2**21}, "n_columns"),
        ({"n_columns": 2}, "bounds are for 1 columns"),
        ({"feature_bound": 0.0}, "feature_bound"),
        ({"feature_bound": np.inf}, "feature_bound"),
        ({"feature_bound": 5e-324}, "feature_bound"),
        ({"intercept_weight": 1.0}, "intercept_weight"),
        ({"intercept_weight": -0.1}, "intercept_weight"),
        ({"intercept_weight": 2.0**-21}, "intercept_weight"),
        ({"intercept_weight": np.nan}, "intercept_weight"),
        ({"target": (1.0, 0.0)}, "strictly below"),
    ],
)
def test_bad_recipes(change, message):
    good = {
        "bounds": Bounds((0.0,), (1.0,)),
        "feature_bound": 1.0,
        "target": None,
        "intercept_weight": 0.0,
        "n_columns": 1,
    }
    Preparation(**good)
    with pytest.raises(ValueError, match=message):
        Preparation(**(good | change))


def test_feature_bound_has_a_default_only_with_bounds():
    assert resolve_feature_bound(None, Bounds((0.0,) * 3, (1.0,) * 3), 3) == 3.0
    assert resolve_feature_bound(2, None, 3) == 2.0
    with pytest.raises(ValueError, match=r"pass feature_bound .* or bounds"):
        resolve_feature_bound(None, None, 3)
    for bad in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="feature_bound must be"):
            resolve_feature_bound(bad, None, 3)


def test_description_survives_json():
    recipe = Preparation(Bounds((0.0,), (1.0,)), np.float64(2), (np.float64(0), 1), 0.5, 1)
    assert json.loads(json.dumps(recipe.describe())) == {
        "bounds": {"lower": [0.0], "upper": [1.0]},
        "feature_bound": 2.0,
        "target": [0.0, 1.0],
        "intercept_weight": 0.5,
        "n_columns": 1,
        "fraction_bits": 20,
    }


odd_cells = st.sampled_from(
    [
        1,
        0.25,
        True,
        "0.5",
        "x",
        None,
        pd.NA,
        pd.NaT,
        np.nan,
        10**400,
        1j,
        b"0.125",
        np.float32(0.5),
        np.array(0.5),
    ]
)


@given(st.lists(odd_cells, min_size=1, max_size=6), st.integers(1, 6))
def test_odd_cells_do_not_depend_on_their_neighbours(cells, chunk):
    recipe = Preparation(None, 1.0, (-1.0, 1.0), 0.0, 1)
    X = np.empty((len(cells), 1), dtype=object)
    for i, cell in enumerate(cells):
        X[i, 0] = cell
    whole = recipe.prepare_regression(X, X[:, 0], on_invalid="clip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds_encoding, "_CHUNK_ROWS", chunk)
        parts = recipe.prepare_regression(X, X[:, 0], on_invalid="clip")
    assert np.array_equal(whole.x, parts.x)
    assert np.array_equal(whole.y, parts.y)
