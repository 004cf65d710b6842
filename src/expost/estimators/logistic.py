"""Logistic regression, accuracy first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from expost.account.ledger import Ledger
from expost.estimators.base import AccuracyFirstEstimator
from expost.estimators.defaults import chained
from expost.estimators.inputs import reject_fit_parameters
from expost.exceptions import InferredClassesWarning, warn
from expost.goals import Goal
from expost.release.scoring import scorer_of
from expost.search.refinement import KeepPath
from expost.solve.losses import LogisticLoss, Loss
from expost.table.cells import resolve_classes
from expost.table.columns import Column, RawRows, labels_array
from expost.table.rows import Rows, RowSource
from expost.table.streamed import ColumnsOnDisk

CLASSES_NOT_COVERED = "the two class labels were read off the data; pass classes=(negative, positive)"


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
    regularization, failure_probability, bounds, feature_bound
        As in :class:`~expost.AccuracyFirstRidge`.
    classes : (negative, positive), default=None
        The two labels, both text or both numbers. ``None`` reads them off the data, warns, and records in the release
        that the guarantee does not cover them.
    perturbation : {"output"}, default=None
        Where the noise goes. By default on the gradient where that is predicted to be cheaper (an excess risk by
        ``method="auto"``, and goals in people's units; analysed over the reals), else on the minimiser.
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
        Negative and positive label, in the order of ``classes``.
    coef_ : ndarray of shape (1, n_features_in_)
        Coefficients in the caller's units, of columns moved into their bounds (and rows into ``feature_bound``): there
        ``X @ coef_.T + intercept_`` are the log odds, up to rounding, and beyond them it is not.
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

    def __init__(
        self,
        *,
        excess_risk: float | None = None,
        goal: Goal | None = None,
        loss: Loss | None = None,
        regularization: float | str = "auto",
        failure_probability: float = 0.1,
        bounds: Any = None,
        feature_bound: float | None = None,
        classes: Sequence[Any] | None = None,
        perturbation: str | None = None,
        method: str = "auto",
        calibration: str = "tight",
        noise: str = "laplace",
        radius: float | None = None,
        n_levels: int | None = None,
        max_epsilon: float | str | None = "auto",
        delta: float = 0.0,
        fit_intercept: bool = True,
        intercept_weight: float = 0.25,
        on_failure: str = "refuse",
        on_invalid: str = "error",
        random_state: Any = None,
        keep_path: KeepPath | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.excess_risk = excess_risk
        self.goal = goal
        self.loss = loss
        self.regularization = regularization
        self.failure_probability = failure_probability
        self.bounds = bounds
        self.feature_bound = feature_bound
        self.classes = classes
        self.perturbation = perturbation
        self.method = method
        self.calibration = calibration
        self.noise = noise
        self.radius = radius
        self.n_levels = n_levels
        self.max_epsilon = max_epsilon
        self.delta = delta
        self.fit_intercept = fit_intercept
        self.intercept_weight = intercept_weight
        self.on_failure = on_failure
        self.on_invalid = on_invalid
        self.random_state = random_state
        self.keep_path = keep_path
        self.ledger = ledger

    def fit(self, X: ArrayLike, y: ArrayLike, **unsupported: Any) -> AccuracyFirstLogisticRegression:
        """Search for the most private model that meets the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private features.
        y : array-like of shape (n_samples,)
            Private labels, two kinds.
        **unsupported
            Nothing else is taken; ``sample_weight`` and ``groups`` raise an error that says why.

        Returns
        -------
        self

        Raises
        ------
        AccuracyNotReached
            No level qualified. The exception's ``release`` says what the refusal cost.
        TargetUnreachable
            No data set of this size could meet the target within ``max_epsilon``; nothing was spent.
        LedgerRefused
            The ledger did not let the search begin; nothing was spent.
        """
        reject_fit_parameters(type(self).__name__, unsupported)
        return self._fit(X, y)

    def _rows(self, raw: RawRows, target: Column) -> tuple[Rows | RowSource, tuple[str, ...]]:
        classes, not_covered = self._settle_classes(target)
        if isinstance(raw, ColumnsOnDisk):
            self.classes_ = classes
            return self._from_disk(raw, resolve_classes(classes)), not_covered
        rows = self.preparation_.prepare_classification(
            raw,
            target,
            classes,
            on_invalid=self.on_invalid,  # type: ignore[arg-type]  # checked there
        )
        self.classes_ = classes
        return rows, not_covered

    def _as_fitted(self) -> Self:
        self.classes = tuple(self.classes_.tolist())
        return self

    def _labels(self) -> dict[str, Any]:
        most = None if self.goal is None else self.goal.largest_odds
        odds = {} if most is None else {"largest_odds": most}
        return {"classes": self.classes_, **odds}

    def _keep_model(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_, self.intercept_ = coef[None, :], np.array([intercept])

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
        """Return the log odds of the positive class; exactly zero for a row at the middle of all bounds.

        Rows are moved into their bounds and rounded as those of ``fit`` are: the promise is about such predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._margins(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels, as ``release_.predict`` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Entries of ``classes_``.
        """
        positive = self._margins(X) > 0
        predicted: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return predicted

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows predicted right; labels are read as ``fit`` reads them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        return self._score(X, y, sample_weight)

    def _estimates_probabilities(self) -> bool:
        if chained(self) and self.goal is not None and self.goal.largest_odds is None:
            raise AttributeError(
                "a model searched for by its error rate predicts labels; pass goal=LogLoss(...) for probabilities"
            )
        if self.loss is not None and self.loss.name != self._default_loss.name:
            raise AttributeError("probabilities are those of the logistic loss; a model of another one predicts labels")
        return True

    @available_if(_estimates_probabilities)  # type: ignore[untyped-decorator]
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
        return scorer_of(self.release_).chances(margins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # how well it fits is the caller's choice, stated as excess_risk
        return tags
