import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.utils.estimator_checks import parametrize_with_checks

from expost import PublicBoundsScaler


@parametrize_with_checks([PublicBoundsScaler(bounds=(-100, 100)), PublicBoundsScaler(bounds=100, clip=False)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@given(hnp.arrays(np.float64, (3, 2), elements=st.floats()), hnp.arrays(np.float64, (2, 2), elements=st.floats()))
def test_nothing_is_learned_from_rows(one, two):
    X = [[1.0, 2.0]]
    first, second = (PublicBoundsScaler(bounds=([0, 0], [4, 8])).fit(rows) for rows in (one, two))
    assert vars(first) == vars(second)
    assert first.transform(X).tolist() == second.transform(X).tolist() == [[-0.5, -0.5]]


def test_clip_and_inverse():
    scaler = PublicBoundsScaler(bounds=(0, 10)).fit([[0.0]])
    X = [[2.5], [25.0], [-np.inf], [np.nan]]
    assert np.array_equal(scaler.transform(X), [[-0.5], [1], [-1], [np.nan]], equal_nan=True)
    assert scaler.inverse_transform([[-0.5], [1.0]]).tolist() == [[2.5], [10.0]]
    open_ended = PublicBoundsScaler(bounds=(0, 10), clip=False).fit([[0.0]])
    assert open_ended.inverse_transform(open_ended.transform([[25.0]])).tolist() == [[25.0]]
    with pytest.raises(ValueError, match="X has 2 columns; this scaler is for 1"):
        scaler.inverse_transform([[1.0, 1.0]])


def test_bounds_by_column_name():
    frame = pd.DataFrame({"a": [1.0], "b": [1.0]})
    scaler = PublicBoundsScaler(bounds={"b": (0, 1), "a": (0, 2)}).fit(frame)
    assert scaler.transform(frame).tolist() == [[0.0, 1.0]]
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]
    assert scaler.set_output(transform="pandas").transform(frame).columns.tolist() == ["a", "b"]


def test_errors():
    with pytest.raises(ValueError, match="never read off the data"):
        PublicBoundsScaler().fit([[1.0]])


def test_cells_that_are_not_numbers_become_nan():
    scaler = PublicBoundsScaler(bounds=(0, 2)).fit(np.array([["Bern"]], dtype=object))
    cells = np.array([["Bern"], ["1.5"], [None], [2j], [True]], dtype=object)
    assert np.array_equal(scaler.transform(cells), [[np.nan], [0.5], [np.nan], [np.nan], [0.0]], equal_nan=True)


def test_rows_of_a_list_are_filled_and_cut():
    scaler = PublicBoundsScaler(bounds=1).fit([[0.0, 0.0], [0.5], [1.0, 1.0]])
    assert scaler.n_features_in_ == 2
    assert np.array_equal(
        scaler.transform([[0.5], [1, 0, 7], None]), [[0.5, np.nan], [1, 0], [np.nan] * 2], equal_nan=True
    )


def test_nothing_is_said_of_numbers_too_large():
    scaler = PublicBoundsScaler(bounds=4, clip=False).fit([[0.0]])
    with np.errstate(all="raise"):
        assert scaler.inverse_transform([[1e308], [np.inf], [np.nan]])[:2].tolist() == [[np.inf], [np.inf]]
        assert scaler.transform([[1e308], [np.inf], [10**400]])[1:].tolist() == [[np.inf], [np.inf]]
