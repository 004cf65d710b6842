"""A scikit-learn scaler that learns nothing: columns are scaled by bounds the caller states.

For pipelines whose other steps need columns of similar size. The estimators of this library take ``bounds``
themselves and need no scaler before them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from expost.data.bounds import Bounds, resolve_bounds

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
    NaN passes through, and infinite values are treated as any other value outside the bounds, so that no
    row of numbers can raise; what NaN means is for the estimator to decide.

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
        self._validated(X, reset=True)
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
        return self.bounds_.scale(self._validated(X, reset=False), clip=self.clip)

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
        scaled = check_array(X, dtype=np.float64, ensure_all_finite=False)
        if scaled.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {scaled.shape[1]} columns; this scaler is for {self.n_features_in_}")
        return self.bounds_.unscale(scaled)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: Any, *, reset: bool) -> npt.NDArray[np.float64]:
        try:
            return np.asarray(
                validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False),
                dtype=np.float64,
            )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
        # Raised out here, because the original quotes the cell and would ride along as the context.
        raise ValueError("X has cells that are not numbers; drop or encode such columns")
