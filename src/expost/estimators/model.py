"""A table with a schema, a goal in people's units, and the most private linear model that meets it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from expost import defaults, validation
from expost.account.account import Spending, released, unspent, warn_if_large
from expost.account.composition import ROW, Unit
from expost.account.ledger import Ledger
from expost.estimators.inputs import (
    LIFTED,
    WHEN_SHORT,
    OnlyIf,
    as_schema,
    by_sorted_labels,
    forget,
    margins_and_targets,
    reject_fit_parameters,
    require_single,
    score_of,
    settled_budget,
    sorted_labels,
    warn_if_likely,
    with_target,
)
from expost.estimators.pipeline import CountedClones, PipelineCheck, check_pipeline
from expost.estimators.table_refinement import Continuation
from expost.goals.goal import TASKS, Goal, TestedGoal, as_tested, is_tested, square_unit
from expost.mechanisms import WITH_SCHEMA
from expost.noise.source import resolve_source
from expost.passes.dask import as_engine, stream_of
from expost.passes.engine import one_search
from expost.passes.first_pass import counted, look_at
from expost.release.effects import plot
from expost.release.release import Release
from expost.release.scoring import no_chances, scorer_of
from expost.release.words import ALIKE
from expost.search.new_rows import NewRowsPlan, Parting, require_mean
from expost.search.request import CheckedPlan, Request, chain_request, staged_request
from expost.search.run import carry_out, settle
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.table.columns import labels_array
from expost.table.encoding import Encoding
from expost.table.entrance import OnInvalid
from expost.table.files import is_on_disk, table_claims
from expost.table.misfits import CLIPPED_LABELS, CLIPPED_TARGETS, Tally
from expost.table.rows import ONE, Rows, RowSource
from expost.table.schema import Schema
from expost.table.shape import block_geometry, cheapest_geometry
from expost.table.streamed import PersonSource
from expost.table.views import with_views

SCOPE = "accuracy is promised about the bounded, rounded rows, not about values outside the schema"
BAD_ROWS = (
    "an error about cells that do not fit the schema would have depended on single rows; clipping them removes that"
)


@dataclass(eq=False, repr=False)
class AccuracyFirstModel(CountedClones):
    """The most private linear model of a table that is accurate enough.

    Numbers, text columns, missing cells: the schema says publicly what can be in the table, and the goal how good the
    model must be. How strongly it is regularised follows from how much noise there is, level by level
    (:mod:`expost.mechanisms.objective.chain`); nobody has to guess a λ.

    Parameters
    ----------
    schema : Schema, mapping, or path of a TOML file
        What is publicly known about the table; names the target.
    goal : ErrorRate, LogLoss, Recall & Precision, F1, MeanCost, R2 or MeanSquaredError
        How good the model must be, on the rows it is fitted to; a mean squared error in squared units of the target.
        Where the schema has a ``target_transform``, it is about the transformed target.
    failure_probability : float, default=0.1
        γ: the chance, over the noise, that a model is released which misses the goal.
    max_epsilon : float, default=2.0
        No outcome of the search may cost more; a release above the default warns. Infinity lifts it.
    delta : float, default=0.0
        0 is pure privacy. A δ such as 1e-6 (far below one over the number of rows) lets noise be Gaussian, which is
        cheaper, above all for several fits: for every row and whatever it may be replaced by, the chance that the
        outcome speaks for that row, against the other, by more than e^ε is then at most δ
        (:mod:`expost.account.composition`).
    perturbation : {None, "objective", "descent", "covariance"}, default=None
        Where the noise goes: on the objective once a level; or with a δ on every gradient of a descent, or on the
        second moments, from which a model by least squares is made in one pass. By default what is predicted to be
        cheapest from public numbers; the release says why.
    on_invalid : {"error", "clip"}, default="error"
        What cells that do not fit the schema do: an error for the curator, which the guarantee does not cover, or
        they count as missing. With ``"clip"`` a table that hardly fits at all is refused after two noisy counts,
        which cost ε = 40/n each.
    engine : None, "local", "dask" or an engine, default=None
        Who carries out passes over the rows: threads of this process, or the workers of a Dask cluster
        (``DaskEngine("tcp://…")``). The result is the same to the bit.
    random_state : None, int or RandomState, default=None
        ``None`` is the cryptographic source. Anything else is simulation: the release says it protects nobody.
    person : str, optional
        The column that says whose a row is, where a person has several rows; the schema may say so too. The privacy
        loss is then about one person replaced, with all of their rows (:class:`~expost.account.Unit`). Rows without one
        are taken to be a person each.
    rows_per_person : int, optional
        How many rows of each person count: the first in the order of the table, repeated in turn if there are fewer,
        so that every person counts alike. The loss hardly depends on it, so it may be generous.
    ledger : Ledger, optional
        The budget that every ``fit`` is charged to, or refused by before anything is spent; clones share it.
    when_short : {"raise", "keep", "discard"}, default="raise"
        What becomes of the best model of a search that does not meet its goal, if anything was shown of it. It is in
        the release that :class:`~expost.exceptions.AccuracyNotReached` carries; or ``fit`` keeps it and warns
        (:class:`~expost.exceptions.ShortOfGoalWarning`); or it is not in the release either. The cost is the same.
    class_weight : dict of label to float, optional
        For classification: how much a row counts for in what is minimised, by its label, ``{"yes": 5, "no": 1}``; only
        the quotient matters. Public numbers, so ``"balanced"``, which would be read off the rows, is refused. The goal
        stays about rows that count alike, and a cut-off is found for it anyway, so weights rarely make it cheaper.
        :class:`~expost.solve.losses.WeightedLoss` says why they cost nothing by themselves.
    holdout : float, default=0.0
        The part of the rows that models are tested on and not fitted to, 0.2 say; the goal is then promised about *new
        rows*, drawn independently from the population that the rows of the table are taken to be drawn from, and of
        what models and tests cost the larger counts (:mod:`expost.search.new_rows`). Which rows those are is drawn at
        random, and no release tells it. Where ``person`` is stated, persons are held out instead, and the goal is about
        new persons. 0: it is about the rows themselves, and nothing is assumed of them.

    Attributes
    ----------
    release_ : Release
        What was paid and what is promised.
    held_out_ : HeldOut
        With ``holdout``, who was held out: private, in no pickle, for ``release_.evaluate(..., new_rows=...)`` and its
        ``save(path)``; ε says nothing of what whoever knows it learns (:mod:`expost.release.held_out`).
    encoding_ : Encoding
        How the table became rows; public.
    coef_ : dict of str to float
        Coefficients in the table's own units, by encoded column (``workclass=Private``); for classification of the log
        odds of the schema's positive class.
    coef_series_ : pandas.Series
        The same, labelled by column and value; needs pandas.
    intercept_ : float
        The constant.
    classes_ : ndarray of shape (2,)
        Both labels, sorted as scikit-learn expects, for classification; the schema says which is the positive one.
    n_features_in_, feature_names_in_
        Number and names of the columns that the model reads, in the schema's order; tables may have more of them, in
        any order.

    Notes
    -----
    Every ``fit`` on the same rows spends privacy anew; :func:`expost.compose` adds releases up. The pickle of a fitted
    model holds the release and nothing else about the rows; so does the model, but for ``held_out_``.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> from expost import AccuracyFirstModel, ErrorRate
    >>> rng = np.random.default_rng(0)
    >>> hours, sector = rng.uniform(0, 80, 20_000), rng.choice(["public", "private"], 20_000)
    >>> high = hours + 10 * (sector == "private") + rng.normal(0, 8, 20_000) > 45
    >>> table = pa.table({"hours": hours, "sector": sector, "income": np.where(high, "high", "low")})
    >>> schema = {
    ...     "target": "income",
    ...     "classes": ["low", "high"],
    ...     "columns": {"hours": {"bounds": [0, 80]}, "sector": {"categories": ["public", "private"]}},
    ... }
    >>> model = AccuracyFirstModel(schema, ErrorRate(0.2), random_state=0).fit(table)
    >>> model.release_.status, bool(model.release_.epsilon < 0.5)
    ('released', True)
    >>> model.predict(table)[:2].tolist() == table["income"].to_pylist()[:2]
    True
    """

    schema: Any = None
    goal: Goal | None = None
    _: KW_ONLY
    failure_probability: float = defaults.FAILURE_PROBABILITY
    max_epsilon: float = defaults.MAX_EPSILON
    delta: float = 0.0
    perturbation: str | None = None
    on_invalid: OnInvalid = "error"
    engine: Any = None
    random_state: Any = None
    person: str | None = None
    rows_per_person: int | None = None
    ledger: Ledger | None = None
    when_short: str = "raise"
    holdout: float = 0.0
    class_weight: Mapping[Any, float] | None = None

    @unspent()
    def fit(self, table: Any, y: Any = None, **unsupported: Any) -> Self:
        """Search for the most private model that meets the goal.

        Parameters
        ----------
        table : frame of pandas, Polars or PyArrow, mapping of names to columns, path, Dask DataFrame, or stream
            Private rows, the target among the columns. A path names a file, a folder of them or a pattern
            (``"2024-*.parquet"``); such a table is read in pieces and need not fit into memory. A stream is anything
            that hands out batches of Arrow (a relation of DuckDB, a ``RecordBatchReader``): it is read once, and the
            columns that the schema names are kept until the search ends, in memory or encrypted on a disk. A function
            without arguments that returns a stream is called for every pass instead, and is trusted to return the same
            rows in the same order (:mod:`expost.table.databases_and_streams`).
        y : array-like of shape (n_rows,), optional
            The target, where it is not among the columns: what scikit-learn's tools pass.
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
            No data set of this size could meet the goal within ``max_epsilon``; nothing was spent.
        LedgerRefused
            The ledger did not let the search begin; nothing was spent.
        InvalidRows
            The table does not fit the schema (``on_invalid="error"``); nothing was spent.
        """
        reject_fit_parameters(type(self).__name__, unsupported)
        require_single(self)
        forget(self)
        pipeline = check_pipeline(self)
        if self._repeats:
            self._warn_if_repeated(self._most)
        return Spending(self.ledger).guard(lambda spending: self._search(table, y, pipeline, spending))

    @unspent()
    def refine(
        self,
        table: Any,
        y: Any = None,
        *,
        goal: Goal,
        release: Release | None = None,
        max_epsilon: float | None = None,
    ) -> Self:
        """Go on from a released model to a stricter goal, and pay what that adds.

        :mod:`expost.estimators.table_refinement` says why that is sound.

        Parameters
        ----------
        table, y
            The same rows as in the ``fit``, with the same schema.
        goal : ErrorRate, LogLoss, Recall & Precision, F1, MeanCost, R2 or MeanSquaredError
            Of the kind that the first search had, beyond what it has shown.
        release : Release, optional
            What to go on from: that of this model, unless another is stated, as one that is ``"short"`` of its goal.
        max_epsilon : float, optional
            No outcome may cost more, what was paid before included; by default as the model states it.

        Returns
        -------
        AccuracyFirstModel
            Another model; this one stays. ``epsilon`` of its release is that of both searches, ``epsilon_increment``
            what is new.

        Raises
        ------
        AccuracyNotReached
            As in ``fit``.
        TargetUnreachable
            What is left of ``max_epsilon`` could not do; nothing was spent.
        ValueError
            The release is no model of such a search, or of another schema, or has been changed, or the table has
            another number of rows; nothing was spent.
        """
        if release is None:
            check_is_fitted(self, "release_")
            release = self.release_
        stated = {"goal": goal} | ({} if max_epsilon is None else {"max_epsilon": max_epsilon})
        other: Self = clone(self).set_params(**stated)
        pipeline = check_pipeline(other)
        return Spending(other.ledger).guard(lambda spending: other._search(table, y, pipeline, spending, release))

    @one_search()
    def _search(
        self, table: Any, y: Any, pipeline: PipelineCheck, spending: Spending, before: Release | None = None
    ) -> Self:
        validation.one_of("on_invalid", self.on_invalid, ("error", "clip"))
        validation.one_of("when_short", self.when_short, WHEN_SHORT)
        schema = as_schema(self.schema).with_person(self.person, self.rows_per_person)
        encoding = Encoding(schema)
        validation.class_weights(self.class_weight, schema.classes)
        clip, delta = self.on_invalid == "clip", validation.delta(self.delta)
        going_on = None if before is None else Continuation.of(before, encoding, self._stated_goal(schema), delta)
        if going_on is None:
            most = spending.ceiling(self._most, delta) or self._most
        else:
            most = going_on.ceiling(self._most, spending)
            self.class_weight = going_on.class_weight(self.class_weight, schema.classes)
        source = self.random_state if going_on is None else going_on.source(self.random_state)
        parting = self._parting(schema, before)
        if parting is not None:
            source = parting.words
        rows, held_rows, tallies, target = self._looked_at(table, y, encoding, parting)
        n = rows.n if held_rows is None else rows.n + held_rows.n
        unit = unit_of(schema, n)
        if going_on is not None:
            going_on.require_rows(n, unit)
        left = CheckedPlan.left(n, most, unit) if clip else most
        request = self.request_for(rows.n, schema, encoding, left)
        request = dataclasses.replace(request, continues=before, held_out=n - rows.n, unit=unit)
        plan = settle(request)
        if held_rows is not None:
            plan = NewRowsPlan.of(plan, held_rows)
        warn_if_likely(self.delta, n, request.unit)
        if clip:
            columns = tuple(tally.readable for tally in tallies)
            plan = CheckedPlan(plan, columns, target.readable, n, unit.share(most), unit)
        not_covered, claims = (
            (BAD_ROWS, *pipeline.not_covered),
            (*pipeline.claims, *validation.engine_claims(self.engine)),
        )
        claims = (*claims, *table_claims(table))
        if clip:
            not_covered = pipeline.not_covered
            claims = (CLIPPED_TARGETS if schema.classes is None else CLIPPED_LABELS, *claims)

        def described(release: Release) -> Release:
            release = _explained(release, request, encoding, not_covered, claims)
            return release if going_on is None else going_on.described(release)

        release = carry_out(
            request,
            plan,
            rows,
            source,
            spending,
            described,
            discard=self.when_short == "discard",
        )
        model: dict[str, Any] = {}
        if release.hypothesis is not None:
            model = {**in_table_units(encoding, np.asarray(release.hypothesis)), **self._odds}
            release = spending.release = release.with_details(parameters={**release.parameters, **model})
        warn_if_large(release)
        released(release, keep_short=self.when_short == "keep")
        self.coef_, self.intercept_ = dict(zip(model["columns"], model["coef"], strict=True)), model["intercept"]
        self.encoding_ = encoding
        self.feature_names_in_ = np.array(list(schema.columns), dtype=object)
        self.n_features_in_ = len(schema.columns)
        if schema.classes is not None:
            self.classes_ = sorted_labels(labels_array(list(schema.classes)))
        self.release_ = release
        if parting is not None and parting.held is not None:
            self.held_out_ = parting.held
            self.held_out_.release_id = release.id
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: who was held out is not, as privacy rests on it."""
        return {name: value for name, value in super().__getstate__().items() if name != "held_out_"}

    def _looked_at(
        self, table: Any, y: Any, encoding: Encoding, parting: Parting | None
    ) -> tuple[Rows | RowSource, Rows | RowSource | None, list[Tally], Tally]:
        """Return rows, or where to read them, those held out, and how many cells fit.

        Raises for cells that do not, unless they are clipped.
        """
        clip, source = self.on_invalid == "clip", None
        in_pieces = y is None and (is_on_disk(table) or type(table).__module__.startswith("dask."))
        if in_pieces or self.engine is not None:
            engine = as_engine(self.engine, table)
            source = stream_of(table, encoding, engine) if y is None else None
        if source is None:
            made = with_target(table, encoding.schema, y)
            rows, tallies, target = encoding.encode_and_count(made, self.on_invalid)
            return *((rows, None) if parting is None else parting.of(rows)), tallies, target
        if isinstance(source, PersonSource) and not clip:  # all rows are judged, also those that fill no slot
            encoding.require_fit(*encoding.tallied(*counted(source.every_row(), engine)))
            encoding.require_persons(source.unreadable, source.undecoded)
        sources = (source,) if parting is None else parting.before_reading(source)
        looked = [look_at(one, engine) for one in sources]
        cells, n = np.sum([cells for _, cells in looked], axis=0), sum(found.n for found, _ in looked)
        tallies, target = encoding.tallied(cells, n)
        if not clip:
            encoding.require_fit(tallies, target)
        if len(looked) == 2:
            return looked[0][0], looked[1][0], tallies, target
        [(found, _)] = looked
        return *((found, None) if parting is None else parting.of(found)), tallies, target

    def _parting(self, schema: Schema, before: Release | None) -> Parting | None:
        """Return how rows are held out, if some are, or say why none can be."""
        if validation.number("holdout", self.holdout) == 0.0:
            return None
        part = validation.share("holdout", self.holdout)
        if before is not None:
            raise ValueError("a search that is gone on from has fitted all rows; for new rows fit anew, with holdout")
        require_mean(self._stated_goal(schema))
        words = resolve_source(self.random_state)
        return Parting(part, words, "row" if schema.person is None else "person", schema.rows_per_person or 1)

    @property
    def _most(self) -> float:
        stated: float | None = self.max_epsilon
        return defaults.MAX_EPSILON if stated is None else settled_budget(stated, "auto") or LIFTED

    def request_for(self, n: int, schema: Schema, encoding: Encoding, max_epsilon: float | None = None) -> Request:
        """Return what would be searched for in n rows: everything that is public about a fit.

        ``max_epsilon`` is the estimator's own unless a ledger has lowered it.
        """
        delta = validation.delta(self.delta)
        several = delta > 0 and self.ledger is not None and self.ledger.adds_in_squares
        geometry = None if several else with_views(encoding, cheapest_geometry)
        goal = self._stated_goal(schema).in_scaled_units(square_unit(schema.scaled_target))
        unit, weights = unit_of(schema, n), validation.class_weights(self.class_weight, schema.classes)
        budget = unit.share(self._most if max_epsilon is None else max_epsilon)
        gamma = self.failure_probability
        if self.perturbation is not None:
            validation.one_of("perturbation", self.perturbation, WITH_SCHEMA)
        if delta or geometry is None:
            shape = with_views(encoding, block_geometry)
            asked = (self.perturbation, goal, shape, n, gamma, budget, delta, unit)
            return staged_request(*asked, pure=geometry, weights=weights)
        if self.perturbation in ("descent", "covariance"):
            raise ValueError(f"perturbation={self.perturbation!r} has Gaussian noise: pass a delta, say delta=1e-6")
        return chain_request(goal, geometry, n, gamma, budget, unit, weights)

    def _stated_goal(self, schema: Schema) -> TestedGoal:
        """Return the goal, if it is one for the schema's target."""
        labels = schema.task == "classification"
        kinds = TASKS["binary" if labels else "real"][1]
        stated = as_tested(self.goal, f"goal must be {kinds}: how good must the model be? Got {self.goal!r}")
        stated.require(LogisticLoss() if labels else SquaredLoss())
        return stated

    def _task(self) -> str | None:
        """Return the kind of the target, as the schema says; None while there is no schema that says it."""
        try:
            return self.encoding_.schema.task if hasattr(self, "encoding_") else as_schema(self.schema).task
        except (OSError, ValueError):  # which fit says
            return None

    def _predicts_labels(self) -> bool:
        if self._task() != "classification":
            raise AttributeError("a decision function is for classes; this model predicts numbers")
        return True

    @OnlyIf(_predicts_labels)
    def decision_function(self, table: Any) -> NDArray[np.float64]:
        """Return xᵀθ of each row of a table as in :meth:`fit`, which needs no target; positive for ``classes_[1]``."""
        check_is_fitted(self, "release_")
        return by_sorted_labels(self, scorer_of(self.release_).margins(table, self.on_invalid))

    @property
    def _odds(self) -> dict[str, float]:
        """What a release says of log odds, where its goal is about probabilities."""
        most = self.goal.largest_odds if is_tested(self.goal) else None
        return {} if most is None else {"largest_odds": most}

    def _estimates_probabilities(self) -> bool:
        if not self._odds:
            raise AttributeError(no_chances(self._task() == "regression"))
        return True

    @OnlyIf(_estimates_probabilities)
    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return the probability of each class, for a model that was asked for a log loss.

        Columns are in the order of ``classes_``, log odds moved into [−4, 4], as they were judged.
        """
        check_is_fitted(self, "release_")
        return by_sorted_labels(self, self.release_.predict_proba(table, on_invalid=self.on_invalid))

    def predict(self, table: Any) -> NDArray[Any]:
        """Predict the label of each row of a table as in :meth:`fit`, or its target within the bounds."""
        check_is_fitted(self, "release_")
        return self.release_.predict(table, on_invalid=self.on_invalid)

    @property
    def coef_series_(self) -> Any:
        """The coefficients as a series of pandas, labelled by column and value: ``model.coef_series_["sector"]``.

        The value is empty where the column itself counts. Needs pandas, which nothing else here does.
        """
        check_is_fitted(self, "release_")
        try:
            from pandas import MultiIndex, Series
        except ImportError:
            raise ImportError("coef_series_ needs pandas: pip install pandas. coef_ has the same as a dict") from None
        labels = []
        for column, kind in self.encoding_.parts:
            for name in kind.names(column):
                value = next((name.removeprefix(column + mark) for mark in "=@" if name.startswith(column + mark)), "")
                labels.append((column, value))
        index = MultiIndex.from_tuples(labels, names=["column", "value"])
        return Series(list(self.coef_.values()), index=index, name=self.release_.target)

    def plot(self, columns: Sequence[str] | None = None, reference: Mapping[str, str] | None = None) -> Any:
        """Draw what each column adds to the model, or some of them: curves of numbers and bars of categories.

        Categories are drawn against the first that the schema lists, or the one that ``reference`` names by column:
        ``model.plot(reference={"sector": "private"})``. Returns a figure of matplotlib (``pip install
        'expost[plot]'``): ``model.plot().savefig("model.png")``. It is made of the release alone and costs no privacy.
        :mod:`expost.release.effects` says what the band around it is.
        """
        check_is_fitted(self, "release_")
        return plot(self.release_, columns, reference)

    def score(self, table: Any, y: Any = None) -> float:
        """Return the share of rows predicted right, or R², on rows with their target: every row counts once.

        It looks at the rows, so it is covered by no guarantee unless they are public or held by whoever sees it. R² is
        about targets moved into their bounds, after their transform if they have one.
        """
        check_is_fitted(self, "release_")
        schema = dataclasses.replace(self.encoding_.schema, person=None, rows_per_person=None)
        theta = np.asarray(self.release_.hypothesis)
        if y is None and is_on_disk(table):
            margins, target = margins_and_targets(table, Encoding(schema), theta, self.on_invalid)
        else:
            rows = Encoding(schema).encode(with_target(table, schema, y), self.on_invalid)
            margins, target = rows.x / ONE @ theta, rows.y / ONE
        within = scorer_of(self.release_).within
        return score_of(margins, target, labels=schema.classes is not None, within=within)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        task = self._task()
        if task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        elif task is not None:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags


def unit_of(schema: Schema, n: int) -> Unit:
    """Return what neighbours differ in, for a table that has become n rows."""
    k = schema.rows_per_person
    return ROW if schema.person is None or k is None else Unit(k, n // k, schema.person)


def in_table_units(encoding: Encoding, theta: NDArray[np.float64]) -> dict[str, Any]:
    """Return a model as its release states it: coefficients by encoded column, the constant, and labels if any."""
    coefficients, intercept = encoding.to_caller_units(theta)
    model = {"columns": list(coefficients), "coef": list(coefficients.values()), "intercept": intercept}
    classes = encoding.schema.classes
    return model if classes is None else {**model, "classes": list(classes)}


def names_of(schema: Schema) -> dict[str, Any]:
    """Return what a release says of the table's columns."""
    return {
        "target": schema.target,
        "columns": tuple(schema.columns),
        "schema_fingerprint": schema.fingerprint(),
    }


def _explained(
    release: Release, request: Request, encoding: Encoding, not_covered: tuple[str, ...], claims: tuple[str, ...]
) -> Release:
    schema = encoding.schema
    promise = release.promise
    if request.goal is not None and schema.target_bounds is not None:
        promise = request.goal.in_caller_units(promise, square_unit(schema.scaled_target))
    if schema.target_transform is not None:
        promise = dataclasses.replace(promise, statement=f"{promise.statement}; all of it about {schema.predicted}")
    scope = SCOPE
    if schema.person is not None:
        first = f"the first {schema.rows_per_person} rows" if request.unit.rows > 1 else "the first row"
        scope = f"{SCOPE}; of each person {first} count, repeated in turn if there are fewer"
        promise = dataclasses.replace(promise, statement=f"{promise.statement}; {ALIKE}")
    return release.with_details(
        promise=promise,
        preparation={
            "schema": schema.to_dict(),
            "target": None if schema.target_bounds is None else list(schema.target_bounds),
            "scale": encoding.scale,
            "scope": scope,
        },
        **names_of(schema),
        claims=tuple(dict.fromkeys((*release.claims, *claims))),
        not_covered=(*release.not_covered, *not_covered),
    )
