"""What scikit-learn wants of features: their number and names, checked without its looking at a cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import validate_data

from expost.data.bounds import stated_width
from expost.data.entrance import OnInvalid, open_rows
from expost.data.on_disk import ColumnsOnDisk
from expost.data.tables import RawRows

__all__ = ["open_features", "reject_fit_parameters", "score_of"]


def open_features(
    estimator: Any, X: Any, *, reset: bool, on_invalid: OnInvalid = "error", bounds: Any = None, least: int = 1
) -> RawRows:
    """Let X in, and set or check ``n_features_in_`` and ``feature_names_in_`` of an estimator.

    Parameters
    ----------
    estimator : scikit-learn estimator
    X : array-like of shape (n, p)
    reset : bool
        Set the attributes (``fit``) or check against them (everything else).
    on_invalid
        As in :func:`~expost.data.entrance.open_rows`.
    bounds
        What the caller stated, which may say how many columns there are; after a fit it has said so.
    least
        How many rows there must be.

    Returns
    -------
    RawRows

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> class Nothing(BaseEstimator):
    ...     pass
    >>> nothing = Nothing()
    >>> open_features(nothing, pa.table({"age": [31, 47]}), reset=True)
    Columns(n=2, width=1)
    >>> nothing.feature_names_in_
    array(['age'], dtype=object)
    """
    rows = open_rows(X, on_invalid=on_invalid, width=stated_width(bounds) if reset else estimator.n_features_in_)
    for amount, what, enough in ((rows.n, "sample(s)", least), (rows.width, "feature(s)", 1)):
        if amount < enough:
            raise ValueError(
                f"Found array with {amount} {what} (shape=({rows.n}, {rows.width})) while a minimum of {enough} is "
                f"required by {type(estimator).__name__}."
            )
    validate_data(estimator, _without_cells(X, rows), reset=reset, skip_check_array=True)
    return rows


def _without_cells(X: Any, rows: RawRows) -> Any:
    """Return a frame, whose columns have names, or else an array of the same shape: a list would be looked into."""
    if isinstance(rows, ColumnsOnDisk) and rows.names is not None:
        return pa.table({str(name): [0.0] for name in rows.names})
    if isinstance(X, pa.RecordBatch):
        return pa.Table.from_batches([X])
    if rows.names is not None or hasattr(X, "__dataframe__"):
        return X
    return np.broadcast_to(0.0, (rows.n, rows.width))


def reject_fit_parameters(name: str, given: dict[str, Any]) -> None:
    """Raise for anything but X and y in ``fit``, saying why weights are not taken."""
    if "sample_weight" in given:
        raise ValueError(
            f"{name} does not take sample_weight: a weighted row would count for more than one row in the privacy "
            f"guarantee. Fit without it"
        )
    if "groups" in given:
        raise ValueError(
            f"{name} protects single rows and does not take groups. Where a person has several rows, pass "
            f"AccuracyFirstModel(schema, goal, person=..., rows_per_person=...)"
        )
    if given:
        raise TypeError(f"{name}.fit() got unexpected keyword argument(s) {sorted(given)}")


def score_of(
    margins: NDArray[np.float64],
    targets: NDArray[np.float64],
    *,
    labels: bool,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the share of rows predicted right, or R², of rows as a promise judges them: bounded, in scaled units.

    Examples
    --------
    >>> score_of(np.array([0.3, -2.0]), np.array([1.0, 1.0]), labels=True)
    0.5
    >>> score_of(np.array([0.5, -2.0]), np.array([0.5, -1.0]), labels=False)  # predictions keep within the bounds
    1.0
    """
    if labels:
        return float(accuracy_score(targets > 0, margins > 0, sample_weight=sample_weight))
    return float(r2_score(targets, np.clip(margins, -1.0, 1.0), sample_weight=sample_weight))
