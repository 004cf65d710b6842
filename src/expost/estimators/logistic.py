"""Logistic regression, accuracy first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from expost import validation
from expost.estimators.base import AccuracyFirstEstimator
from expost.estimators.inputs import OnlyIf, by_sorted_labels, sorted_labels
from expost.exceptions import InferredClassesWarning, warn
from expost.release.scoring import scorer_of
from expost.solve.losses import LogisticLoss
from expost.table.cells import resolve_classes
from expost.table.columns import Column, RawRows, labels_array
from expost.table.rows import Rows, RowSource
from expost.table.streamed import ColumnsOnDisk

CLASSES_NOT_COVERED = "the two class labels were read off the data; pass classes=(negative, positive)"


@dataclass(kw_only=True, eq=False, repr=False)
class AccuracyFirstLogisticRegression(ClassifierMixin, AccuracyFirstEstimator):
    """The most private logistic regression that is accurate enough.

    Minimises, over private rows scaled so that ‖x‖₁ ≤ 1, with labels y = ±1,

        L(θ) = (1/n) Σᵢ log(1 + exp(−yᵢ xᵢᵀθ)) + (λ/2) ‖θ‖²

    and releases a θ with L(θ) − min L ≤ ``excess_risk``, as :class:`~expost.AccuracyFirstRidge` does for the
    squared loss.

    Parameters
    ----------
    excess_risk : float
        How much larger than the best model's the released one's regularised mean log loss may be. Always predicting
        ½ has a log loss of ln 2 ≈ 0.69, which says what a small number is. Exactly one of this and ``goal`` is
        required, but for ``method="fixed"``.
    goal : ErrorRate, LogLoss or RelativeExcessRisk, default=None
        A target of another kind: the share of rows misclassified, the mean log loss, or the fraction that may remain
        of what the best constant leaves on the table. With the first two nothing but bounds has to be stated.
    loss : Loss, default=None
        Another loss of labels, :class:`expost.solve.SmoothedHingeLoss` say; the logistic loss by default.
    class_weight : dict of label to float, default=None
        As in :class:`~expost.AccuracyFirstModel`, with ``classes`` stated. An ``excess_risk``, or one as a fraction,
        is then about the mean of weighted losses.
    regularization, failure_probability, bounds, feature_bound
        As in :class:`~expost.AccuracyFirstRidge`.
    classes : (negative, positive), default=None
        The two labels, both text or both numbers. ``None`` reads them off the data, warns, and records in the release
        that the guarantee does not cover them.
    perturbation : {"output"}, default=None
        Where the noise goes. By default on the gradient where that is predicted to be cheaper (an excess risk by
        ``method="auto"``, and goals in people's units), else on the minimiser.
    method, calibration, noise, n_levels, max_epsilon, fit_intercept, intercept_weight, on_failure, random_state, ledger
        As in :class:`~expost.AccuracyFirstRidge`.
    delta : float, default=0.0
        0 is pure privacy. With a δ such as 1e-6 goals in people's units may be searched for with Gaussian noise
        (``perturbation`` may then be ``"descent"``, ``"objective"`` or ``"covariance"``); an ``excess_risk`` has a pure
        way alone, whose ε holds at any δ.
    on_invalid : {"error", "clip"}, default="error"
        As in :class:`~expost.AccuracyFirstRidge`; with ``"clip"`` an unknown label counts as the negative class.
    radius : float, default=None
        Largest ‖θ‖₂ considered: by default √(0.2785/λ), or the paper's √(2 ln 2/λ) with calibrations ``"theorem"``
        and ``"published"``.
    keep_path : KeepPath, optional
        Keep what is left of the noise in a sealed file, so that :func:`expost.refine` can go on to a more accurate
        model later and pay the difference.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Both labels, sorted as scikit-learn expects; which is the positive one ``classes`` and the release say.
    coef_ : ndarray of shape (1, n_features_in_)
        Coefficients in the caller's units, of columns moved into their bounds (and rows into ``feature_bound``): there
        ``X @ coef_.T + intercept_`` are the log odds of ``classes_[1]``, up to rounding, and beyond them it is not.
    intercept_ : ndarray of shape (1,)
        Constant in the caller's units.
    release_ : Release
        What was paid and what is promised.
    n_features_in_, feature_names_in_
        Number of columns, and their names where they have any.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(50_000, 3))
    >>> y = np.where(X @ [2.0, -1.0, 0.5] + rng.logistic(size=50_000) / 4 > 0, "buys", "leaves")
    >>> model = AccuracyFirstLogisticRegression(
    ...     excess_risk=0.02, bounds=1.0, classes=("leaves", "buys"), random_state=0
    ... ).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), bool(model.release_.epsilon < 1)
    (True, True)
    """

    _default_loss = LogisticLoss()
    classes: Sequence[Any] | None = None
    class_weight: Mapping[Any, float] | None = None

    @property
    def _weights(self) -> tuple[float, float]:
        return validation.class_weights(self.class_weight, self.classes)

    def _rows(self, raw: RawRows, target: Column) -> tuple[Rows | RowSource, tuple[str, ...]]:
        classes, not_covered = self._settle_classes(target)
        self.classes_ = classes  # as stated, until there is a model
        if isinstance(raw, ColumnsOnDisk):
            return self._from_disk(raw, resolve_classes(classes)), not_covered
        return self.preparation_.prepare_classification(raw, target, classes, on_invalid=self.on_invalid), not_covered

    def _labels(self) -> dict[str, Any]:
        most = None if self.goal is None else self.goal.largest_odds
        odds = {} if most is None else {"largest_odds": most}
        return {"classes": self.classes_, **odds}

    def _keep_model(self, coef: NDArray[np.float64], intercept: float) -> None:
        sign = 1.0 if sorted_labels(self.classes_)[1] == self.classes_[1] else -1.0
        self.classes_ = sorted_labels(self.classes_)
        self.coef_, self.intercept_ = sign * coef[None, :], sign * np.array([intercept])

    def _settle_classes(self, labels: Column) -> tuple[NDArray[Any], tuple[str, ...]]:
        if self.classes is not None:
            if np.shape(self.classes) != (2,) or self.classes[0] == self.classes[1]:
                raise ValueError("classes must be two different labels: (negative, positive)")
            text = [isinstance(label, str | bytes) for label in self.classes]
            if any(text) and not all(text):
                raise ValueError("classes must be two labels of the same kind, not one text and one number")
            return labels_array(list(self.classes)), ()
        found, missing = labels.distinct()
        if self.on_invalid == "error" and missing:
            raise ValueError(
                "y has missing labels (NaN, infinite or None); remove those rows, or pass on_invalid='clip' and "
                "classes=(negative, positive)"
            )
        if found.dtype.kind == "f" and (found != np.floor(found)).any():
            raise ValueError(
                "Unknown label type: continuous. Maybe you are trying to fit a classifier, which expects discrete "
                "classes, on a regression target with continuous values."
            )
        if len(found) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(found)} different labels."
            )
        if len(found) < 2:
            raise ValueError(
                f"y has {['no', 'only one'][len(found)]} class, so the labels cannot be read off it; pass "
                "classes=(negative, positive)"
            )
        warn(
            "class labels were read off the data, which the privacy guarantee does not cover; pass "
            "classes=(negative, positive)",
            InferredClassesWarning,
        )
        return found, (CLASSES_NOT_COVERED,)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of ``classes_[1]``; exactly zero for a row at the middle of all bounds.

        Rows are moved into their bounds and rounded as those of ``fit`` are: the promise is about such predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return by_sorted_labels(self, self._margins(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels, entries of ``classes_``, as ``release_.predict`` does; a tie counts as the negative one."""
        margins = self._margins(X)
        return scorer_of(self.release_).answers(margins)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows predicted right; labels are read as ``fit`` reads them."""
        return self._score(X, y, sample_weight)

    def _estimates_probabilities(self) -> bool:
        if self._chained and self.goal is not None and self.goal.largest_odds is None:
            raise AttributeError(
                "a model searched for by its error rate predicts labels; pass goal=LogLoss(...) for probabilities"
            )
        if not self._chained and self._estimator_loss.name != self._default_loss.name:
            raise AttributeError("probabilities are those of the logistic loss; a model of another one predicts labels")
        return True

    @OnlyIf(_estimates_probabilities)
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class under the logistic model; not for one searched for by its error rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``; for :class:`~expost.LogLoss` log odds are moved into [−4, 4], as they
            were judged.
        """
        margins = self._margins(X)
        return by_sorted_labels(self, scorer_of(self.release_).chances(margins))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # how well it fits is the caller's choice, stated as excess_risk
        return tags
