"""What both estimators share: checking arguments, preparing rows, running a method, keeping only the release.

Public numbers decide which shape of rows the noise follows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from expost import defaults, validation
from expost.account.account import Spending, released, unspent, warn_if_large
from expost.account.ledger import Ledger
from expost.estimators.inputs import (
    AUTO,
    LIFTED,
    WHEN_SHORT,
    forget,
    is_usual,
    open_features,
    reject_fit_parameters,
    require_single,
    score_of,
    settled_budget,
    settled_regularization,
    warn_if_likely,
    warn_if_shrunk,
)
from expost.estimators.pipeline import CountedClones, PipelineCheck, check_pipeline
from expost.exceptions import warn
from expost.goals import ExcessRisk, Goal
from expost.goals.goal import as_goal, as_tested, excess_risk_of, is_tested, square_unit
from expost.mechanisms.mechanism import Mechanism
from expost.passes.dask import as_engine, from_dask
from expost.passes.engine import one_search
from expost.passes.first_pass import in_memory
from expost.release.release import Release
from expost.release.scoring import scorer_of
from expost.search import METHODS
from expost.search.kept_path_refinement import KeepPath
from expost.search.request import Request, chain_request, risk_request, staged_request
from expost.search.run import CuratorView, carry_out, compare_with_optimum, settle
from expost.solve.losses import Loss, weighted
from expost.solve.problem import Problem
from expost.table.bounds import resolve_bounds
from expost.table.bounds_encoding import Preparation, resolve_feature_bound
from expost.table.columns import Column, RawRows
from expost.table.entrance import OnInvalid, open_column
from expost.table.files import table_claims
from expost.table.misfits import CLIPPED_LABELS, CLIPPED_TARGETS
from expost.table.rows import ONE, Rows, RowSource
from expost.table.shape import ball, block_geometry, cheapest_geometry, l2_ball
from expost.table.streamed import ColumnsOnDisk, PreparedSource

PROMISE_SCOPE = "accuracy is promised about the clipped, rounded rows, not about values outside the bounds"
BAD_ROWS_NOT_COVERED = (
    "an error about bad rows (NaN, infinite, unknown label) would have depended on single rows; "
    "clipping them removes that"
)
COUNTED_WIDTH = (
    "the rows came as a list, and the number of cells that most of them have is taken to be public; bounds for each "
    "column state it"
)

# options that a chain of releases has no use for
_GRADUAL = frozenset(
    {
        "method",
        "perturbation",
        "noise",
        "calibration",
        "radius",
        "n_levels",
        "loss",
        "full_matrix",
        "on_failure",
        "keep_path",
        "keep_statistics",
        "regularization",
    }
)


@dataclass(kw_only=True, eq=False, repr=False)
class AccuracyFirstEstimator(CountedClones):
    """Common parts; see the two subclasses, which say what the arguments mean."""

    _default_loss: ClassVar[Loss]
    coef_: NDArray[np.float64] = field(init=False)
    intercept_: Any = field(init=False)
    excess_risk: float | None = None
    goal: Goal | None = None
    loss: Loss | None = None
    regularization: float | str = AUTO
    failure_probability: float = defaults.FAILURE_PROBABILITY
    bounds: Any = None
    feature_bound: float | None = None
    perturbation: str | None = None
    method: str = "auto"
    calibration: str = "tight"
    noise: str = "laplace"
    radius: float | None = None
    n_levels: int | None = None
    max_epsilon: float | str | None = AUTO
    delta: float = 0.0
    fit_intercept: bool = True
    intercept_weight: float = 0.25
    on_failure: str = "refuse"
    on_invalid: OnInvalid = "error"
    random_state: Any = None
    keep_path: KeepPath | None = None
    ledger: Ledger | None = None
    when_short: str = "raise"

    @unspent()
    def fit(self, X: ArrayLike, y: ArrayLike, **unsupported: Any) -> Self:
        """Search for the most private model that meets the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private features.
        y : array-like of shape (n_samples,)
            Private targets, or labels of two kinds.
        **unsupported
            Nothing else is taken; ``sample_weight`` and ``groups`` raise an error that says why.

        Returns
        -------
        self

        Raises
        ------
        AccuracyNotReached
            No level qualified, or none was tried since a constant meets the goal. The exception's ``release`` says
            what that cost, and holds the best model if anything was shown of it.
        TargetUnreachable
            No data set of this size could meet the target within ``max_epsilon``; nothing was spent.
        LedgerRefused
            The ledger did not let the search begin; nothing was spent.
        """
        reject_fit_parameters(type(self).__name__, unsupported)
        require_single(self)
        forget(self)
        if any(type(given).__module__.startswith("dask.array") for given in (X, y)):
            X, y = from_dask(X, y)
        if self.keep_path is not None:
            validation.instance("keep_path", self.keep_path, KeepPath, "None or KeepPath(file, key, later=...)")
        found = check_pipeline(self)
        if self._repeats:
            self._warn_if_repeated(settled_budget(self.max_epsilon, self.method))
        return Spending(self.ledger).guard(lambda spending: self._or_forget(X, y, found, spending))

    def _open(self, X: ArrayLike, y: ArrayLike, *, reset: bool = True) -> tuple[RawRows, Column]:
        """Check shapes and declared types; what is in the cells is left to the preparation."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        validation.one_of("on_invalid", self.on_invalid, ("error", "clip"))
        validation.one_of("when_short", self.when_short, WHEN_SHORT)
        # of a single row nothing can be said that hides it
        least = 2 if reset else 1
        rows = open_features(self, X, reset=reset, on_invalid=self.on_invalid, bounds=self.bounds, least=least)
        target, dimensions = open_column(y, on_invalid=self.on_invalid)
        if dimensions == 2:
            warn(
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                "(n_samples, ), for example using ravel().",
                DataConversionWarning,
            )
        if len(rows) != len(target):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(rows), len(target)]}")
        return rows, target

    @property
    def _chained(self) -> bool:
        """Whether a goal in people's units is searched for by a chain in which noise and λ shrink together.

        It is unless the caller stated a λ, or an option of a gradual release, which has one λ for all levels.
        """
        # with a δ there is a choice of mechanism for such goals
        gradual = _GRADUAL - {"perturbation"} if self.delta else _GRADUAL
        options = [option for option in fields(self) if option.name in gradual]
        return is_tested(self.goal) and all(is_usual(getattr(self, each.name), each.default) for each in options)

    @property
    def _estimator_loss(self) -> Loss:
        """What is minimised: the caller's loss, if it is one for such targets, with weights of classes if stated."""
        if self.loss is None:
            return weighted(self._default_loss, self._weights)
        if not isinstance(self.loss, Loss) or self.loss.labels != self._default_loss.labels:
            kind = "real targets" if self._default_loss.labels == "real" else "labels"
            raise ValueError(f"loss must be a Loss for {kind}, see expost.solve; got {self.loss!r}")
        return weighted(self.loss, self._weights)

    @property
    def _weights(self) -> tuple[float, float]:
        """What a row of the negative class counts for, and one of the positive."""
        return 1.0, 1.0

    def _preparation(self, n_columns: int) -> Preparation:
        validation.columns(n_columns)
        weight = validation.number("intercept_weight", self.intercept_weight) if self.fit_intercept else 0.0
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
        bound = None if self.feature_bound is None else validation.number("feature_bound", self.feature_bound)
        target = self._target_bounds()
        if not self._chained:
            return Preparation(bounds, resolve_feature_bound(bound, bounds, n_columns), target, weight, n_columns)
        if bound is None:
            return Preparation(bounds, 1.0, target, weight, n_columns, "box")
        return Preparation(bounds, resolve_feature_bound(bound, bounds, n_columns), target, weight, n_columns, "l1")

    def _request(self, n: int, preparation: Preparation, spending: Spending | None = None) -> Request:
        """Check everything that can be checked without the rows; a ledger may lower the budget."""
        calibration = validation.calibration(self.calibration)
        validation.one_of("method", self.method, list(METHODS))
        goal = self._goal(preparation)
        budget = settled_budget(self.max_epsilon, self.method)
        delta = validation.delta(self.delta)
        if spending is not None and not (budget is None and self.method == "fixed"):  # which has to be stated
            budget = spending.ceiling(budget, delta)
        several = delta > 0 and self.ledger is not None and self.ledger.adds_in_squares
        if preparation.shape is not None:
            goal = as_tested(goal)
            most, gamma = LIFTED if budget is None else budget, self.failure_probability
            geometry = cheapest_geometry(preparation, preparation.typical_divisor)
            if delta:
                shape, pure = block_geometry(preparation, preparation.typical_divisor), None if several else geometry
                asked = (self.perturbation, goal, shape, n, gamma, most, delta)
                return staged_request(*asked, pure=pure, weights=self._weights)
            return chain_request(goal, geometry, n, gamma, most, weights=self._weights)
        lam = settled_regularization(self.regularization, preparation)
        problem = Problem.of(
            self._estimator_loss,
            n=n,
            p=preparation.n_parameters,
            regularization=lam,
            radius=None if self.radius is None else validation.number("radius", self.radius),
            paper_constants=calibration in validation.PAPER_CALIBRATIONS,
        )
        if not problem.paper_constants:
            warn_if_shrunk(problem.regularization, preparation)
        chosen_for = self.method == "auto" and excess_risk_of(goal) is not None and self.on_failure == "refuse"
        keep_statistics = getattr(self, "keep_statistics", False)
        # noise on a gradient has neither a path to go on with nor moments to release
        around = ball("l1", problem.p) if chosen_for and self.keep_path is None and not keep_statistics else None

        def made(mechanism: Mechanism, at: float) -> Request:
            return Request(
                problem,
                goal,
                METHODS[self.method],
                mechanism,
                self.failure_probability,
                calibration,
                n_levels=self.n_levels,
                max_epsilon=budget if spending is None or at == delta else spending.ceiling(budget, at),
                on_failure=self.on_failure,  # type: ignore[arg-type]  # checked by the request
                keep_statistics=keep_statistics,
                delta=at,
            )

        return risk_request(
            made,
            self.perturbation,
            problem,
            l2_ball(problem.p, preparation.longest),
            delta,
            around=around,
            in_squares=several,
            noise=self.noise,
            full_matrix=getattr(self, "full_matrix", False),
        )

    def _goal(self, preparation: Preparation) -> Goal | None:
        """Return the goal in scaled units."""
        if self.excess_risk is not None and self.goal is not None:
            raise ValueError("excess_risk and goal both state the accuracy; pass one of them")
        if self.excess_risk is not None:
            return ExcessRisk(validation.number("excess_risk", self.excess_risk))
        if self.goal is None and self.method != "fixed":
            raise ValueError(
                "excess_risk must be given: how much worse than the best model may the released one be? It is in "
                "scaled units, where targets lie in [-1, 1]. Or pass goal=RelativeExcessRisk(...), ErrorRate(...) "
                "or MeanSquaredError(...)"
            )
        if self.goal is None:
            return None
        goal = as_goal(
            self.goal,
            f"goal must be ErrorRate(...), LogLoss(...), R2(...), MeanSquaredError(...) or RelativeExcessRisk(...), "
            f"got {self.goal!r}; a plain number is an excess_risk",
        )
        goal.require(self._estimator_loss)
        return goal.in_scaled_units(square_unit(preparation.target))

    @one_search()
    def _or_forget(self, X: ArrayLike, y: ArrayLike, found: PipelineCheck, spending: Spending) -> Self:
        """Search; leave nothing behind of a search that has no model to show."""
        try:
            return self._search(X, y, found, spending)
        except BaseException:
            forget(self)
            raise

    def _search(self, X: ArrayLike, y: ArrayLike, found: PipelineCheck, spending: Spending) -> Self:
        """Settle what is public, look at the rows, search, and keep the release and nothing else."""
        raw, wanted = self._open(X, y)
        self.preparation_ = preparation = self._preparation(raw.width)
        request = self._request(raw.n, preparation, spending)
        plan = settle(request) if self.keep_path is None else self.keep_path.settle(request)
        warn_if_likely(request.delta, raw.n, request.unit)
        rows, not_covered = self._rows(raw, wanted)
        not_covered = (*not_covered, *found.not_covered)
        claims = (*((COUNTED_WIDTH,) if raw.counted else ()), *found.claims, *table_claims(getattr(raw, "disk", None)))
        known = {"target": _name_of(y), "columns": tuple(map(str, getattr(self, "feature_names_in_", ())))}
        if self.on_invalid == "error":
            not_covered = (*not_covered, BAD_ROWS_NOT_COVERED)
        else:
            claims = (CLIPPED_LABELS if preparation.target is None else CLIPPED_TARGETS, *claims)
        spending.labels = self._labels()
        release = carry_out(
            request,
            plan,
            rows,
            self.random_state,
            spending,
            lambda release: _describe(release, preparation, request, not_covered, claims).with_details(**known),
            discard=self.when_short == "discard",
        )
        if self.keep_path is not None:
            self.keep_path.store(plan, request, release)
        if release.hypothesis is not None:
            coef, intercept = preparation.to_caller_units(np.asarray(release.hypothesis))
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(coef))])
            model = {"columns": list(names), "coef": coef, "intercept": intercept, **self._labels()}
            self._keep_model(coef, intercept)
            # the model in the caller's units is written into the release, so that its JSON is complete by itself
            release = spending.release = release.with_details(parameters={**release.parameters, **model})
        warn_if_large(release)
        self.release_ = released(release, keep_short=self.when_short == "keep")
        return self

    def prepared(self, X: ArrayLike, y: ArrayLike) -> Rows:
        """Return rows as ``fit`` made them, for who may see them: private, bounded, in fixed point."""
        check_is_fitted(self, "release_")
        copied = copy.copy(self)  # reading rows must not change what the model says of itself
        if "classes" in self.release_.parameters:  # which the fit may have inferred
            copied.set_params(classes=self.release_.parameters["classes"])
        rows = copied._rows(*copied._open(X, y, reset=False))[0]
        return rows if isinstance(rows, Rows) else in_memory(rows)

    def _from_disk(self, raw: ColumnsOnDisk, classes: tuple[Any, Any] | None) -> PreparedSource:
        """Return where rows are read from, and made as the preparation says, whenever a pass is made."""
        preparation, names = self.preparation_, raw.names
        source = PreparedSource(raw.disk, preparation, raw.features, raw.target, classes)
        source.n, source.engine = raw.n, as_engine(raw.engine)
        complain = self.on_invalid == "error"
        source.judge = lambda cells, n: preparation.require_usable(cells, n, names) if complain else None
        return source

    def _rows(self, raw: RawRows, target: Column) -> tuple[Rows | RowSource, tuple[str, ...]]:
        """Prepare the rows; returns what the guarantee does not cover about that as well."""
        raise NotImplementedError

    def _target_bounds(self) -> tuple[float, float] | None:
        """Return the bounds of a regression target."""
        return None

    def _labels(self) -> dict[str, Any]:
        """Return what the release says about class labels."""
        return {}

    def _keep_model(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def _margins(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return xᵀθ of rows, bounded and rounded as those of the fit: what the promise is about."""
        check_is_fitted(self, "release_")  # n_features_in_ alone, left by a fit that failed, is no model
        rows = open_features(self, X, reset=False, on_invalid=self.on_invalid)
        return scorer_of(self.release_).margins(rows, self.on_invalid)

    def _score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> float:
        rows = self.prepared(X, y)
        margins = rows.x / ONE @ np.asarray(self.release_.hypothesis)
        labels, within = self.preparation_.target is None, scorer_of(self.release_).within
        return score_of(margins, rows.y / ONE, labels=labels, within=within, sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = self.on_invalid == "clip"
        return tags


def _name_of(y: Any) -> str | None:
    """Return the name of a target that has one, as a column of a frame does."""
    name = getattr(y, "name", None)
    return name if type(name) is str else None


def _describe(
    release: Release,
    preparation: Preparation,
    request: Request,
    not_covered: tuple[str, ...],
    claims: tuple[str, ...],
) -> Release:
    promise = release.promise
    if request.goal is not None:
        promise = request.goal.in_caller_units(promise, square_unit(preparation.target))
    half = np.ones(preparation.n_columns) if preparation.bounds is None else preparation.bounds.half_range
    # The penalty (λ/2)‖θ‖² in the caller's units is ½·Σ wⱼ·coefⱼ² + ½·w₀·d², where d is the prediction at the middle
    # of the bounds less the middle of the target bounds; these are the wⱼ and w₀.
    # With a chain of releases they are those of its last level, around the model before.
    chain = preparation.shape is not None
    lam = release.parameters.get("regularization") if chain else request.problem.regularization
    weights: dict[str, Any] = {}
    if lam is not None:
        weights["regularization_per_column"] = lam * (preparation.divisor * half) ** 2
        if preparation.has_intercept:
            weights["regularization_constant"] = lam / (preparation.constant / ONE) ** 2
    return release.with_details(
        promise=promise,
        preparation={**preparation.describe(), **weights, "scope": PROMISE_SCOPE},
        claims=tuple(dict.fromkeys((*release.claims, *claims))),
        not_covered=(*release.not_covered, *not_covered),
    )


def curator_view(model: AccuracyFirstEstimator, X: ArrayLike, y: ArrayLike) -> CuratorView:
    """Compare what a fitted model released with the true optimum on the same rows. Do not publish it.

    ``excess_risk`` of what is returned is how much worse than the optimum the release is, ``null_excess_risk`` what
    θ = 0 would have missed it by, both in scaled units; ``optimum`` is the non-private reference. It prints nothing of
    that.

    Examples
    --------
    >>> import numpy as np
    >>> from expost import AccuracyFirstRidge
    >>> from expost.estimators import curator_view
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
