"""What both estimators share: checking arguments, preparing rows, running a method, keeping only the release."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from expost.data import Preparation, Rows, resolve_bounds, resolve_feature_bound
from expost.data.bounds import stated_width
from expost.data.columns import Column
from expost.data.entrance import open_column
from expost.data.fixed_point import ONE
from expost.data.scikit import open_features
from expost.data.tables import RawRows
from expost.erm.losses import Loss
from expost.exceptions import AccuracyNotReached
from expost.noise.source import resolve_source
from expost.privacy.release import Release
from expost.search.calibration import CalibrationName
from expost.search.goals import Goal, MeanSquaredError, check_goal
from expost.search.plan import Noise, Problem, one_of
from expost.search.run import run
from expost.search.settings import Method

PROMISE_SCOPE = "accuracy is promised about the clipped, rounded rows, not about values outside the bounds"
BAD_ROWS_NOT_COVERED = (
    "an error about bad rows (NaN, infinite, unknown label) would have depended on single rows; "
    "on_invalid='clip' removes that"
)
COUNTED_WIDTH = (
    "the rows came as a list, and the number of cells that most of them have is taken to be public; bounds for each "
    "column state it"
)


class AccuracyFirstEstimator(BaseEstimator):
    """Common parts; see the two subclasses."""

    _estimator_loss: Loss
    # Declared here for type checkers; set by the subclasses' constructors, as scikit-learn wants it.
    excess_risk: float | None
    goal: Goal | None
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

    def _open(self, X: ArrayLike, y: ArrayLike) -> tuple[RawRows, Column]:
        """Check shapes and declared types; what is in the cells is left to the preparation."""
        self._forget()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        one_of("on_invalid", self.on_invalid, ("error", "clip"))
        on_invalid: Any = self.on_invalid
        rows = open_features(self, X, reset=True, on_invalid=on_invalid, width=stated_width(self.bounds))
        target, dimensions = open_column(y, on_invalid=on_invalid)
        if dimensions == 2:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                "(n_samples, ), for example using ravel().",
                DataConversionWarning,
                stacklevel=3,
            )
        if len(rows) != len(target):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(rows), len(target)]}")
        return rows, target

    def _forget(self) -> None:
        """Drop an earlier fit, so that a refused one does not leave its predecessor's model behind."""
        for name in ("coef_", "intercept_", "classes_", "release_"):
            if hasattr(self, name):
                delattr(self, name)

    def _preparation(self, n_columns: int, target: tuple[float, float] | None) -> Preparation:
        one_of("fit_intercept", self.fit_intercept, (True, False))
        weight = _number("intercept_weight", self.intercept_weight) if self.fit_intercept else 0.0
        if self.fit_intercept and weight == 0:
            raise ValueError("intercept_weight must be positive with fit_intercept=True; 0 would mean no intercept")
        if self.bounds is None and self.feature_bound is None:
            raise ValueError(
                "bounds must be given: public bounds of the columns, as a number s for (-s, s), a pair (lower, upper) "
                "or a dict by column; they are never read off the data. Or pass feature_bound alone, the largest "
                "sum of absolute values a row may have, to use the columns as they are"
            )
        names = getattr(self, "feature_names_in_", None)
        bounds = resolve_bounds(self.bounds, n_columns, None if names is None else list(names))
        bound = None if self.feature_bound is None else _number("feature_bound", self.feature_bound)
        return Preparation(
            bounds,
            resolve_feature_bound(bound, bounds, n_columns),
            target,
            intercept_weight=weight,
            n_columns=n_columns,
        )

    def _problem(self, n: int, p: int) -> Problem:
        """Check everything that can be checked without the rows."""
        excess_risk = self.excess_risk
        if excess_risk is not None and self.goal is not None:
            raise ValueError("excess_risk and goal both state the accuracy; pass one of them")
        if excess_risk is None:
            if self.goal is None and self.method != "fixed":
                raise ValueError(
                    "excess_risk must be given: how much worse than the best model may the released one be? It is in "
                    "scaled units, where targets lie in [-1, 1]. Or pass goal=RelativeExcessRisk(...), ErrorRate(...) "
                    "or MeanSquaredError(...)"
                )
            excess_risk = 1.0  # not looked at: a goal takes its place, or a fixed budget promises no accuracy
        one_of("noise", self.noise, get_args(Noise))
        one_of("calibration", self.calibration, get_args(CalibrationName))
        one_of("method", self.method, get_args(Method))
        if self.goal is not None:
            check_goal(
                self.goal,
                self._estimator_loss,
                self.method,
                calibration=self.calibration,
                on_failure=self.on_failure,
            )
        if self.n_levels is not None and not _whole(self.n_levels):
            raise ValueError(f"n_levels must be a positive integer, got {self.n_levels!r}")
        if self.max_epsilon is not None and not 0 < _number("max_epsilon", self.max_epsilon) < math.inf:
            raise ValueError(f"max_epsilon must be positive and finite, got {self.max_epsilon!r}")
        return Problem.of(
            self._estimator_loss,
            n=n,
            p=p,
            regularization=_number("regularization", self.regularization),
            excess_risk=_number("excess_risk", excess_risk),
            failure_probability=_number("failure_probability", self.failure_probability),
            calibration=self.calibration,
            radius=None if self.radius is None else _number("radius", self.radius),
        )

    def _search(
        self,
        raw: RawRows,
        rows: Rows,
        problem: Problem,
        preparation: Preparation,
        not_covered: tuple[str, ...],
        **options: Any,
    ) -> Release:
        """Run the method and describe the release in the caller's units."""
        if self.on_invalid == "error":
            not_covered = (*not_covered, BAD_ROWS_NOT_COVERED)
        claims = (COUNTED_WIDTH,) if raw.counted else ()
        try:
            release = run(
                rows,
                problem,
                perturbation=self.perturbation,  # type: ignore[arg-type]  # checked by run
                method=self.method,  # type: ignore[arg-type]
                goal=_in_scaled_units(self.goal, preparation),
                noise=self.noise,  # type: ignore[arg-type]
                calibration=self.calibration,
                n_levels=self.n_levels,
                max_epsilon=None if self.max_epsilon is None else float(self.max_epsilon),
                on_failure=self.on_failure,  # type: ignore[arg-type]
                random_state=resolve_source(self.random_state),
                **options,
            )
        except AccuracyNotReached as refusal:
            raise AccuracyNotReached(_describe(refusal.release, preparation, problem, not_covered, claims)) from None
        return _describe(release, preparation, problem, not_covered, claims)

    def _keep_model(self, coef: NDArray[np.float64], intercept: float, **more: Any) -> None:
        """Write the model in the caller's units into the release, so that its JSON is complete by itself."""
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(coef))])
        model = {"columns": list(names), "coef": coef, "intercept": intercept, **more}
        self.release_ = self.release_.with_details(parameters={**self.release_.parameters, **model})

    def _finite(self, X: ArrayLike) -> NDArray[np.float64]:
        """Read rows to predict for: finite numbers only."""
        check_is_fitted(self, "coef_")  # n_features_in_ alone, left by a fit that failed, is no model
        values = open_features(self, X, reset=False).floats(slice(None))
        if not np.isfinite(values).all():
            raise ValueError("Input X contains NaN, infinity or cells that are not numbers; predict takes finite ones")
        return values

    def _linear(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            result: NDArray[np.float64] = values @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]
        return result

    def _linear_rounding(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bound the rounding in :meth:`_linear`, that of the intercept included, for rows near the middle of bounds."""
        size = np.abs(values)
        part = (size.shape[1] + 8) * np.finfo(np.float64).eps
        # eps is two roundings, one for the intercept: it is such a sum too, over the middle of the bounds
        with np.errstate(all="ignore"):
            largest = (part * size) @ np.abs(np.ravel(self.coef_)) + part * abs(float(np.ravel(self.intercept_)[0]))
        return np.asarray(largest)


def _square_unit(preparation: Preparation) -> float:
    """Return what 1 in scaled squares is in squared units of the caller's target."""
    if preparation.target is None:
        return 1.0
    low, high = preparation.target
    return ((high - low) / 2) ** 2


def _in_scaled_units(goal: Goal | None, preparation: Preparation) -> Goal | None:
    if not isinstance(goal, MeanSquaredError):
        return goal
    return dataclasses.replace(goal, at_most=goal.at_most / _square_unit(preparation))


def _describe(
    release: Release,
    preparation: Preparation,
    problem: Problem,
    not_covered: tuple[str, ...],
    claims: tuple[str, ...],
) -> Release:
    scale = _square_unit(preparation)
    promise = release.promise
    if promise.excess_risk is not None:
        promise = dataclasses.replace(promise, excess_risk_caller_units=promise.excess_risk * scale)
    if promise.goal == "mean squared error" and promise.at_most is not None:
        stated = promise.at_most * scale
        promise = dataclasses.replace(
            promise,
            statement=f"{promise.statement}; that is {stated:g} in squared units of the target",
            at_most_caller_units=stated,
        )
    factor = preparation.feature_bound / (1 - preparation.intercept_weight)
    half = np.ones(preparation.n_columns) if preparation.bounds is None else preparation.bounds.half_range
    # The penalty (λ/2)‖θ‖² in the caller's units is ½·Σ wⱼ·coefⱼ² + ½·w₀·d², where d is the prediction at the middle
    # of the bounds less the middle of the target bounds; these are the wⱼ and w₀.
    weights: dict[str, Any] = {"regularization_per_column": problem.regularization * (factor * half) ** 2}
    if preparation.has_intercept:
        weights["regularization_constant"] = problem.regularization / (preparation.constant / ONE) ** 2
    return release.with_details(
        promise=promise,
        preparation={**preparation.describe(), **weights, "scope": PROMISE_SCOPE},
        claims=(*release.claims, *claims),
        not_covered=(*release.not_covered, *not_covered),
    )


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got NaN")
    return float(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def reject_fit_parameters(name: str, given: dict[str, Any]) -> None:
    """Raise for anything but X and y in ``fit``, saying why weights are not taken."""
    if "sample_weight" in given:
        raise ValueError(
            f"{name} does not take sample_weight: a weighted row would count for more than one row in the privacy "
            f"guarantee. Fit without it"
        )
    if given:
        raise TypeError(f"{name}.fit() got unexpected keyword argument(s) {sorted(given)}")
