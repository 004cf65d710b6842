"""What stands in front of an estimator in a pipeline, whether it has learned from the rows, and whether fits repeat.

A guarantee is about what ``fit`` is given. A ``StandardScaler`` in front has computed means and scales from the private
rows, and a model published behind it publishes something of them that no ε accounts for. An estimator cannot see that
in its rows (a test for columns of mean zero would read them, and its answer would be private). It can see who called
it: a pipeline calls ``fit`` of its last step, so it is on the call stack, and what its other steps are is public, as
their types and arguments are. Nothing else is looked at.

What is found stands in the release under ``not_covered`` or ``claims``. Not finding anything proves nothing: rows that
were scaled by hand before look like any others.

*Fits that repeat.* ``cross_val_score``, ``GridSearchCV`` and their kin fit clones of one estimator to overlapping rows,
each with a release of its own. A clone knows whether another was made before it, or before what it is a clone of; the
first of a family that does, and would spend what neither a ledger nor a budget counts, says so before it spends. That
follows from calls of ``clone`` and from arguments alone. It goes with a clone to another process, where nothing is
known of what was said elsewhere: there it is said again, once.

A scaler that learns nothing stands here too, for pipelines whose other steps need columns of similar size. The
estimators of this library take ``bounds`` themselves and need no scaler before them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple, Self
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from expost.account.account import in_budget
from expost.estimators.inputs import LIFTED, open_features
from expost.exceptions import NotPrivateWarning, RepeatedFitsWarning, warn
from expost.shown import up
from expost.table.bounds import Bounds, resolve_bounds
from expost.table.entrance import open_rows


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
    Each cell is scaled by itself. NaN passes through, infinite values are treated as any other value outside the
    bounds, and a cell that is not a number becomes NaN, so that no row can raise; what NaN means is for the estimator
    to decide. Rows of a list that are too short lack their last cells, and longer ones are cut.

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
        """Check the bounds against the number and names of the columns of X, an array-like of shape (n, p)."""
        open_features(self, X, reset=True, on_invalid="clip", bounds=self.bounds)
        bounds = resolve_bounds(self.bounds, self.n_features_in_, getattr(self, "feature_names_in_", None))
        if bounds is None:
            raise ValueError("pass bounds=(lower, upper) or another form of bounds; they are never read off the data")
        self.bounds_ = bounds
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Scale the columns of an array-like of shape (n, p) to [−1, 1]."""
        check_is_fitted(self)
        rows = open_features(self, X, reset=False, on_invalid="clip")
        return self.bounds_.scale(rows.floats(slice(None)), clip=self.clip)

    def inverse_transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Undo the scaling of an array-like of shape (n, p); what was clipped stays at its bound."""
        check_is_fitted(self)
        rows = open_rows(X, on_invalid="clip")
        if rows.width != self.n_features_in_:
            raise ValueError(f"X has {rows.width} columns; this scaler is for {self.n_features_in_}")
        return self.bounds_.unscale(rows.floats(slice(None)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True  # what is not a number becomes NaN
        return tags


_told: set[str] = set()  # families of clones that have been warned about in this process


class CountedClones(BaseEstimator):
    """An estimator whose clones know whether they are the first."""

    random_state: Any
    ledger: Any
    _family: str | None = None  # a word that an estimator shares with its clones, and with theirs
    _clones = 0  # how many were made of it
    _repeats = False  # whether another clone was made before it, or before what it is a clone of

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        self._family = self._family or uuid4().hex
        self._clones += 1
        made._family, made._repeats = self._family, self._repeats or self._clones > 1
        return made

    def _warn_if_repeated(self, most: float | None) -> None:
        """Warn about a fit that repeats, before it spends what nobody counts; ``most`` is its budget."""
        counted = self.ledger is not None or in_budget()
        if self.random_state is not None or counted or self._family in _told:  # another source is never a clone's
            return
        _told.add(str(self._family))
        each = "spends without a limit"
        if most is not None and most < LIFTED:
            each = f"may spend up to epsilon = {up(most)}, five of them up to {up(5 * most)}"
        warn(
            f"clones of one {type(self).__name__} are fitted without a ledger, as by cross_val_score or GridSearchCV: "
            f"each {each}, for what they spend on the same rows adds up. Choose parameters on public or generated rows "
            f"with random_state=0; or pass ledger=Ledger(...), which clones share, or fit inside expost.budget(...)",
            RepeatedFitsWarning,
        )


_FITS = frozenset({"fit", "fit_predict", "fit_transform"})
SEARCHED = (
    "parameters were chosen by {kind}, which fits to the same rows several times: which ones were chosen is not "
    "covered, and the other fits have releases of their own"
)


class PipelineCheck(NamedTuple):
    """What a release has to say about who called ``fit``."""

    not_covered: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


def check_pipeline(estimator: Any) -> PipelineCheck:
    """Return what is known about who is calling ``fit`` of an estimator; to be asked from inside it.

    Warns about steps that have learned from the rows; nothing has been spent by then.
    """
    steps: list[Any] = []
    searches: list[str] = []
    inner = estimator
    for caller in _callers(sys._getframe(1)):
        if caller is inner or not isinstance(caller, BaseEstimator):
            continue
        if _is(caller, "pipeline", "Pipeline"):
            if caller.steps[-1][1] is not inner:
                continue  # it is calling one of its transformers, of which a copy is fitted
            steps = [*caller.steps[:-1], *steps]
        elif _is(caller, "compose", "TransformedTargetRegressor"):
            steps = [("transformer of the target", getattr(caller, "transformer_", None)), *steps]
        elif _is(caller, "model_selection._search", "BaseSearchCV"):
            searches.append(SEARCHED.format(kind=type(caller).__name__))
        inner = caller  # one that works with copies of others, or one of the above: itself a step, perhaps
    learned = [
        f"step {found} in front of the model was fitted to the same rows: what it learned from them is not paid for"
        for name, step in steps
        for found in learned_in(name, step)
    ]
    claims = [
        f"the function of step '{found}' in front of the model works on each row by itself"
        for name, step in steps
        for found, part in _leaves(name, step)
        if _is(part, "preprocessing", "FunctionTransformer") and (part.func or part.inverse_func)
    ]
    not_covered = (*learned, *searches)
    if learned:
        warn(
            f"{'; '.join(not_covered)}. Use PublicBoundsScaler, stated categories or a schema instead",
            NotPrivateWarning,
        )
    return PipelineCheck(not_covered, tuple(claims))


def _callers(frame: FrameType | None) -> Iterator[Any]:
    """Yield the objects whose ``fit`` is on the call stack, innermost first."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _FITS and code.co_varnames[:1] == ("self",):
            yield frame.f_locals.get("self")
        frame = frame.f_back


def _is(found: Any, module: str, *names: str) -> bool:
    """Say whether an object is of one of these classes of scikit-learn; what nobody has imported, nobody has made."""
    loaded = sys.modules.get(f"sklearn.{module}")
    return loaded is not None and isinstance(found, tuple(getattr(loaded, name) for name in names))


def _leaves(name: str, step: Any) -> Iterator[tuple[str, Any]]:
    """Yield the transformers that a step is made of, with their names; the step itself if it is made of none."""
    if _is(step, "pipeline", "Pipeline"):
        parts = step.steps
    elif _is(step, "pipeline", "FeatureUnion"):
        parts = step.transformer_list
    elif _is(step, "compose", "ColumnTransformer"):
        parts = [*((inner, part) for inner, part, _ in step.transformers), ("remainder", step.remainder)]
    else:
        yield name, step
        return
    for inner, part in parts:
        yield from _leaves(f"{name}.{inner}", part)


def learned_in(name: str, step: Any) -> list[str]:
    """Return the parts of a step that learn from rows, by their types and arguments alone.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> stated = OneHotEncoder(categories=[["own", "rent"]])
    >>> learned_in("columns", make_column_transformer((StandardScaler(), [0]), (stated, [1]), (Normalizer(), [2])))
    ["'columns.standardscaler' (StandardScaler)"]
    """
    return [f"'{found}' ({type(part).__name__})" for found, part in _leaves(name, step) if _learns(part)]


def _learns(step: Any) -> bool:
    """Say whether a transformer without parts learns from the rows; if in doubt, it does."""
    if step is None or isinstance(step, str | PublicBoundsScaler):  # "passthrough" or "drop"
        return False
    if _is(step, "preprocessing", "OneHotEncoder", "OrdinalEncoder"):
        frequencies = step.min_frequency is not None or step.max_categories is not None
        return frequencies or isinstance(step.categories, str)  # "auto" reads them off the rows
    if _is(step, "impute", "SimpleImputer"):
        # a column without a single value would be dropped
        return step.strategy != "constant" or not step.keep_empty_features or bool(step.add_indicator)
    try:
        return bool(get_tags(step).requires_fit)
    except Exception:  # not a transformer of scikit-learn's kind: nothing is known about it
        return True
