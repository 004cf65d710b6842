"""Ridge regression, accuracy first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from expost.estimators.base import AccuracyFirstEstimator
from expost.release.scoring import scorer_of
from expost.solve.losses import SquaredLoss
from expost.table.bounds import resolve_target_bounds
from expost.table.columns import Column, RawRows
from expost.table.rows import Rows, RowSource
from expost.table.streamed import ColumnsOnDisk


@dataclass(kw_only=True, eq=False, repr=False)
class AccuracyFirstRidge(RegressorMixin, AccuracyFirstEstimator):
    """The most private ridge regression that is accurate enough.

    Minimises, over private rows scaled so that ‖x‖₁ ≤ 1 and |y| ≤ 1,

        L(θ) = (1/2n) ‖y − Xθ‖² + (λ/2) ‖θ‖²

    and releases a θ with L(θ) − min L ≤ ``excess_risk`` (with probability at least 1 − ``failure_probability`` over
    the noise) at the smallest privacy loss the search finds; ``release_`` says what was paid. If no level
    qualifies, nothing is released and :class:`~expost.exceptions.AccuracyNotReached` is raised.

    With ``goal=R2(...)`` or ``goal=MeanSquaredError(...)`` nothing but bounds has to be stated: noise and λ go down
    together from level to level (:mod:`expost.mechanisms.objective.chain`), rows lie in a box or ball of their own
    (:mod:`expost.table.bounds_encoding`), and predictions are judged within the target's bounds, where ``predict``
    keeps them.

    Parameters
    ----------
    excess_risk : float
        How much worse than the best model the released one may be, in scaled units: always predicting the middle of
        the target bounds has a risk of at most 0.5, which says what a small number is. ``release_.promise`` states it
        in squared target units as well. Exactly one of this and ``goal`` is required, but for ``method="fixed"``.
    goal : R2, MeanSquaredError or RelativeExcessRisk, default=None
        A target of another kind: the share of variance explained, the mean squared error in squared units of the
        target, or the fraction that may remain of what the best constant leaves on the table.
    loss : Loss, default=None
        Another loss of real targets, :class:`expost.solve.HuberLoss` say; the squared loss by default.
    regularization : float or "auto", default="auto"
        λ, in scaled units; ``release_.preparation`` states the weight of each column in the caller's. ``"auto"`` lets
        it follow from the noise for goals in people's units. Promises about a regularised risk need one number for
        all levels, and so does any method, perturbation, noise, radius, number of levels or loss that is stated:
        there it is 0.01, or less where rows are divided by so much (F, a public number) that λF² would exceed 0.1 and
        shrink the model to its constant. A stated λ that does so is warned of.
    failure_probability : float, default=0.1
        γ: the chance, over the noise, that the accuracy promise is broken.
    bounds : scalar, (lower, upper) or dict, default=None
        Public bounds of the columns. They are moved into the bounds, shifted and scaled to [−1, 1]; a scalar s means
        (−s, s), lower and upper may be arrays, a dict gives (lower, upper) by column. Symmetric bounds keep zeros
        at zero. ``None`` leaves the columns as they are.
    feature_bound : float, default=None
        ℓ₁ norm that rows are divided by and clipped to, after ``bounds``. By default the number of columns when
        bounds are given (then nothing is clipped); required otherwise. With 1.0 and no bounds rows are used as they
        are and clipped to norm 1, the setting of the paper.
    target_bound, target_bounds : float or (lower, upper)
        Public bounds of the target: B for (−B, B), or a pair. Exactly one is required.
    perturbation : {"covariance", "output"}, default=None
        Where the noise goes: on the second moments or on the minimiser. By default, for an excess risk by
        ``method="auto"``, on the gradient of Huber's loss in the place of the squared one where that is predicted to
        be cheaper (the promise is about the squared loss), else on the second moments.
        Goals in people's units have it on the gradient too.
    method : {"auto", "certified", "stationarity", "above_threshold", "doubling", "theory", "fixed"}, default="auto"
        How the privacy level is found. ``"certified"`` stops by a proof computed from what is released anyway;
        ``"auto"`` chooses the cheapest applicable way to a proof without looking at the data, and the release says
        which and why; ``"above_threshold"`` and ``"doubling"`` are the paper's, which pay for testing the risk.
        ``"fixed"`` searches nothing, spends ``max_epsilon`` and promises no accuracy.
    calibration : {"tight", "theorem", "published"}, default="tight"
        How the test is calibrated; see :func:`expost.search.calibrate`.
    noise : {"laplace", "spherical"}, default="laplace"
        Exact discrete Laplace noise; or, for ``perturbation="output"``, spherical noise: up to √2 times less noise for
        the same ε, with any method, but analysed over the reals and so not exact. ``release_.noise`` says which.
    radius : float, default=None
        Largest ‖θ‖₂ considered. By default the ball the optimum is known to lie in: 1/(2√λ), or the paper's 1/√λ with
        calibrations ``"theorem"`` and ``"published"``. With methods that test the risk a smaller one costs less
        privacy, and accuracy is then promised against the best θ within it. ``"auto"`` and ``"certified"`` prove no
        less by gradients, which have no use for a smaller ball: θ may lie outside.
    n_levels : int, default=None
        How many privacy levels to search: 1000 for the paper's calibrations, 32 for ``"tight"``.
    max_epsilon : float, None or "auto", default="auto"
        No outcome of the search may cost more: 2 by default. ``None`` or infinity lifts it (goals in people's units
        end at 1000). ``method="fixed"`` has no default.
    delta : float, default=0.0
        0 is pure privacy. A δ such as 1e-6 lets noise be Gaussian (`expost.account.composition` says what it means): on
        the second moments for an ``excess_risk`` by ``"auto"``, ``"certified"`` or ``"stationarity"``; for goals in
        people's units on gradients, or on the second moments with ``perturbation="covariance"``. ``"auto"`` takes pure
        noise for an ``excess_risk`` where that is predicted to be cheaper; the release then has no δ.
    fit_intercept : bool, default=True
        Add a constant column, regularised, and counted in p. For goals in people's units it is as long as any column;
        otherwise it takes ``intercept_weight`` of the unit ℓ₁ norm.
    intercept_weight : float, default=0.25
        Share of the unit ℓ₁ norm that the constant column takes; features keep the rest. A larger one shrinks the
        constant less and the coefficients more.
    full_matrix : bool, default=False
        Noise on all p² second moments, as in the paper, instead of the upper triangle at half the variance.
    on_failure : {"refuse", "release_optimum"}, default="refuse"
        ``"release_optimum"`` returns the **non-private** optimum when nothing qualifies, and reports ε = ∞.
    on_invalid : {"error", "clip"}, default="error"
        What NaN, infinite values and cells that are not numbers do: :class:`~expost.exceptions.InvalidRows` for the
        curator, which the guarantee does not cover, or a value within the bounds (an infinite one the nearest bound,
        the others the middle), so that no row can raise, warn or change what becomes of another.
    random_state : None, int or RandomState, default=None
        ``None`` is the cryptographic source. Anything else is simulation: the release says it protects nobody.
    keep_path : KeepPath, optional
        Keep what is left of the noise in a sealed file, so that :func:`expost.refine` can go on to a more accurate
        model later and pay the difference.
    keep_statistics : bool, default=False
        Release the noisy second moments with the model, which they are paid for with, so that :func:`expost.refit` can
        fit another λ or fewer columns at no further cost. For an ``excess_risk`` by ``"auto"`` or ``"certified"``.
    ledger : Ledger, optional
        The budget that every ``fit`` is charged to, or refused by before anything is spent; clones share it, so that
        every fit of a grid search is charged.
    when_short : {"raise", "keep", "discard"}, default="raise"
        What becomes of the best model of a search for a goal in people's units that does not meet it, as in
        :class:`~expost.AccuracyFirstModel`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients in the caller's units, of columns moved into their bounds (and rows into ``feature_bound``): there
        ``X @ coef_ + intercept_`` is what ``predict`` says, up to rounding, and beyond them it is not.
    intercept_ : float
        Constant in the caller's units (not zero without ``fit_intercept`` if bounds shift the columns or the target).
    release_ : Release
        What was paid and what is promised.
    n_features_in_, feature_names_in_
        Number of columns, and their names where they have any.

    Notes
    -----
    Every ``fit`` on the same rows spends privacy anew, those inside ``cross_val_score`` or ``GridSearchCV`` included;
    :func:`expost.compose` adds releases up. The accuracy promise is about the clipped, rounded rows. A fitted
    estimator, and so its pickle, holds the release and nothing else about the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(50_000, 3))
    >>> y = X @ [2.0, -1.0, 0.5] + rng.normal(size=50_000)
    >>> model = AccuracyFirstRidge(
    ...     excess_risk=0.01, bounds=(0, 10), target_bounds=(-15, 30), random_state=0
    ... ).fit(X, y)
    >>> model.release_.status, bool(model.release_.epsilon < 2)
    ('released', True)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    _default_loss = SquaredLoss()
    target_bound: float | None = None
    target_bounds: tuple[float, float] | None = None
    full_matrix: bool = False
    keep_statistics: bool = False

    def _target_bounds(self) -> tuple[float, float]:
        return resolve_target_bounds(self.target_bound, self.target_bounds)

    def _rows(self, raw: RawRows, target: Column) -> tuple[Rows | RowSource, tuple[str, ...]]:
        if isinstance(raw, ColumnsOnDisk):
            return self._from_disk(raw, None), ()
        return self.preparation_.prepare_regression(raw, target, on_invalid=self.on_invalid), ()

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the target in the caller's units, within its bounds, as ``release_.predict`` does.

        Rows are moved into their bounds and rounded as those of ``fit`` are: the promise is about such predictions.
        Targets lie within their bounds, so moving predictions there makes no square larger.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        margins = self._margins(X)
        return scorer_of(self.release_).answers(margins)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R² of rows and targets moved into their bounds, as the promise judges them."""
        return self._score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # how well it fits is the caller's choice, stated as excess_risk
        return tags
