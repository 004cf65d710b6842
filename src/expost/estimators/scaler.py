"""A scikit-learn scaler that learns nothing: columns are scaled by bounds the caller states.

For pipelines whose other steps need columns of similar size. The estimators of this library take ``bounds``
themselves and need no scaler before them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from expost.data.bounds import Bounds, resolve_bounds
from expost.data.entrance import open_rows
from expost.estimators._features import open_features

__all__ = ["PublicBoundsScaler"]


class PublicBoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map columns to [−1, 1] by public bounds, x ↦ (x − center) / half_range.

    A fitted ``StandardScaler`` or ``MinMaxScaler`` leaks: its means, variances and extremes are functions
    of the private rows, they are stored with the model and they shape every output, and nobody has charged
    for them. This scaler reads nothing from the rows; ``fit`` looks at the number (and names) of the
    columns only.

    Parameters
    ----------
    bounds : float, pair, or mapping
        A number s > 0 for (−s, s), a pair (lower, upper) of numbers or of one number per column, or a mapping
        {column name or index: (low, high)}.
    clip : bool, default=True
        Move values outside their bounds to the nearest bound.

    Attributes
    ----------
    bounds_ : Bounds
        The bounds, one pair per column.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the columns have names.

    Notes
    -----
    Each cell is scaled by itself. NaN passes through, infinite values are treated as any other value outside the
    bounds, and a cell that is not a number becomes NaN, so that no row can raise; what NaN means is for the estimator
    to decide. Rows of a list that are too short lack their last cells, and longer ones are cut.

    Examples
    --------
    >>> scaler = PublicBoundsScaler(bounds=([0, 0], [120, 1e5])).fit([[30, 2e4]])
    >>> scaler.transform([[60, 25_000], [90, 300_000]])
    array([[ 0. , -0.5],
           [ 0.5,  1. ]])
    """

    bounds_: Bounds
    n_features_in_: int

    def __init__(self, bounds: Any = None, *, clip: bool = True) -> None:
        self.bounds = bounds
        self.clip = clip

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the bounds against the number and names of the columns.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : ignored

        Returns
        -------
        self

        Examples
        --------
        >>> PublicBoundsScaler(bounds=1).fit([[0.0, 0.0]]).bounds_
        Bounds(lower=(-1.0, -1.0), upper=(1.0, 1.0))
        """
        open_features(self, X, reset=True, on_invalid="clip", bounds=self.bounds)
        bounds = resolve_bounds(self.bounds, self.n_features_in_, getattr(self, "feature_names_in_", None))
        if bounds is None:
            raise ValueError("pass bounds=(lower, upper) or another form of bounds; they are never read off the data")
        self.bounds_ = bounds
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Scale columns to [−1, 1].

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of float64, shape (n, p)

        Examples
        --------
        >>> PublicBoundsScaler(bounds=4, clip=False).fit([[0.0]]).transform([[6.0]])
        array([[1.5]])
        """
        check_is_fitted(self)
        rows = open_features(self, X, reset=False, on_invalid="clip")
        return self.bounds_.scale(rows.floats(slice(None)), clip=self.clip)

    def inverse_transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Undo the scaling; what was clipped stays at its bound.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of float64, shape (n, p)

        Examples
        --------
        >>> PublicBoundsScaler(bounds=(0, 10)).fit([[0.0]]).inverse_transform([[0.5]])
        array([[7.5]])
        """
        check_is_fitted(self)
        rows = open_rows(X, on_invalid="clip")
        if rows.width != self.n_features_in_:
            raise ValueError(f"X has {rows.width} columns; this scaler is for {self.n_features_in_}")
        return self.bounds_.unscale(rows.floats(slice(None)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # what is not a number becomes NaN
        return tags
