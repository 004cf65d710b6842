"""The truth about a fitted model, for the curator alone."""

from __future__ import annotations

from numpy.typing import ArrayLike

from expost.estimators.base import AccuracyFirstEstimator
from expost.estimators.defaults import settled_regularization
from expost.search.run import CuratorView, compare_with_optimum


def curator_view(model: AccuracyFirstEstimator, X: ArrayLike, y: ArrayLike) -> CuratorView:
    """Compare what a fitted model released with the true optimum on the same rows. Do not publish it.

    Parameters
    ----------
    model
        A fitted estimator.
    X, y
        The private rows it was fitted to.

    Returns
    -------
    CuratorView
        ``excess_risk`` is how much worse than the optimum the release is, ``null_excess_risk`` what θ = 0 would have
        missed it by, both in scaled units; ``optimum`` is the non-private optimum. It prints nothing of that.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstRidge, curator_view
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [1.0, -0.5]
    >>> model = AccuracyFirstRidge(excess_risk=0.02, bounds=1.0, target_bound=2.0, random_state=0).fit(X, y)
    >>> truth = curator_view(model, X, y)
    >>> truth, truth.excess_risk <= 0.02
    (CuratorView(private), True)
    """
    if model.preparation_.shape is not None:
        raise ValueError(
            "nothing was promised about a regularised risk, so there is no optimum to compare with; model.score(X, y) "
            "says how good the model is"
        )
    rows, release = model.prepared(X, y), model.release_
    return compare_with_optimum(
        rows,
        release,
        model._estimator_loss,
        regularization=settled_regularization(model.regularization, model.preparation_),
        radius=model.radius,
    )
