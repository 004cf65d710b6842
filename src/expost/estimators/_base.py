"""What both estimators share: checking arguments, preparing rows, running a method, keeping only the release."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from expost.data import Preparation, Rows, resolve_bounds, resolve_feature_bound
from expost.erm.losses import Loss
from expost.noise.source import resolve_source
from expost.privacy.release import Release
from expost.search.plan import Problem
from expost.search.run import run

PROMISE_SCOPE = "accuracy is promised about the clipped, rounded rows, not about values outside the bounds"
BAD_ROWS_NOT_COVERED = (
    "an error about bad rows (NaN, infinite, unknown label) would have depended on single rows; "
    "on_invalid='clip' removes that"
)


class AccuracyFirstEstimator(BaseEstimator):
    """Common parts; see the two subclasses."""

    _estimator_loss: Loss
    # Declared here for type checkers; set by the subclasses' constructors, as scikit-learn wants it.
    excess_risk: float | None
    regularization: float
    failure_probability: float
    bounds: Any
    feature_bound: float | None
    perturbation: str
    method: str
    calibration: str
    noise: str
    radius: float | None
    n_levels: int | None
    max_epsilon: float | None
    fit_intercept: bool
    intercept_weight: float
    on_failure: str
    on_invalid: str
    random_state: Any
    release_: Release
    coef_: NDArray[np.float64]
    intercept_: Any

    def _validate_xy(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Check shapes and types; values are left to the preparation, which knows what to do with bad rows."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        # NaN and infinities pass here: whether they are an error is on_invalid's business
        checked = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        target = column_or_1d(y, warn=True)
        check_consistent_length(checked, target)
        return checked, target

    def _preparation(self, n_columns: int, target: tuple[float, float] | None) -> Preparation:
        names = getattr(self, "feature_names_in_", None)
        bounds = resolve_bounds(self.bounds, n_columns, None if names is None else list(names))
        return Preparation(
            bounds,
            resolve_feature_bound(self.feature_bound, bounds, n_columns),
            target,
            intercept_weight=self.intercept_weight if self.fit_intercept else 0.0,
            n_columns=n_columns,
        )

    def _problem(self, n: int, p: int) -> Problem:
        if self.excess_risk is None:
            raise ValueError(
                "excess_risk must be given: how much worse than the best model may the released one be? It is in "
                "scaled units (targets in [-1, 1])"
            )
        if self.noise != "laplace":
            raise ValueError(f"noise must be 'laplace', got {self.noise!r}")
        return Problem.of(
            self._estimator_loss,
            n=n,
            p=p,
            regularization=_number("regularization", self.regularization),
            excess_risk=_number("excess_risk", self.excess_risk),
            failure_probability=_number("failure_probability", self.failure_probability),
            calibration=self.calibration,
            radius=None if self.radius is None else _number("radius", self.radius),
        )

    def _search(
        self, rows: Rows, problem: Problem, preparation: Preparation, not_covered: tuple[str, ...], **options: Any
    ) -> Release:
        """Run the method and describe the release in the caller's units."""
        from expost.exceptions import AccuracyNotReached

        if self.on_invalid == "error":
            not_covered = (*not_covered, BAD_ROWS_NOT_COVERED)
        try:
            release = run(
                rows,
                problem,
                perturbation=self.perturbation,  # type: ignore[arg-type]  # checked by run
                method=self.method,  # type: ignore[arg-type]
                calibration=self.calibration,
                n_levels=self.n_levels,
                max_epsilon=None if self.max_epsilon is None else _number("max_epsilon", self.max_epsilon),
                on_failure=self.on_failure,  # type: ignore[arg-type]
                random_state=resolve_source(self.random_state),
                **options,
            )
        except AccuracyNotReached as refusal:
            raise AccuracyNotReached(_describe(refusal.release, preparation, problem, not_covered)) from None
        return _describe(release, preparation, problem, not_covered)

    def _keep_model(self, coef: NDArray[np.float64], intercept: float, **more: Any) -> None:
        """Write the model in the caller's units into the release, so that its JSON is complete by itself."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(coef))])
        model = {"columns": list(names), "coef": coef, "intercept": intercept, **more}
        self.release_ = self.release_.with_details(parameters={**self.release_.parameters, **model})

    def _linear(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        checked = validate_data(self, X, dtype=np.float64, reset=False)
        result: NDArray[np.float64] = checked @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return result


def _describe(release: Release, preparation: Preparation, problem: Problem, not_covered: tuple[str, ...]) -> Release:
    scale = 1.0
    if preparation.target is not None:
        low, high = preparation.target
        scale = ((high - low) / 2) ** 2
    promise = release.promise
    if promise.excess_risk is not None:
        promise = dataclasses.replace(promise, excess_risk_caller_units=promise.excess_risk * scale)
    factor = preparation.feature_bound / (1 - preparation.intercept_weight)
    half = np.ones(preparation.n_columns) if preparation.bounds is None else preparation.bounds.half_range
    return release.with_details(
        promise=promise,
        preparation={
            **preparation.describe(),
            # (λ/2)‖θ‖² written as ½·Σ wⱼ·coefⱼ² in the caller's units
            "regularization_per_column": (problem.regularization * (factor * half) ** 2).tolist(),
            "scope": PROMISE_SCOPE,
        },
        not_covered=(*release.not_covered, *not_covered),
    )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got NaN")
    return float(value)


def reject_fit_parameters(name: str, given: dict[str, Any]) -> None:
    """Raise for anything but X and y in ``fit``, saying why weights are not taken."""
    if "sample_weight" in given:
        raise ValueError(
            f"{name} does not take sample_weight: a weighted row would count for more than one row in the privacy "
            f"guarantee. Fit without it"
        )
    if given:
        raise TypeError(f"{name}.fit() got unexpected keyword argument(s) {sorted(given)}")
