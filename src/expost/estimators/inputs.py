"""What goes into a fit: features as scikit-learn wants them, checked without looking at a cell; tables and schemas.

And what the estimators take where the caller states nothing, with the warnings that go with it: public numbers only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import update_wrapper
from os import PathLike
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import validate_data

from expost import defaults, validation
from expost.account.composition import Unit
from expost.exceptions import LargeDeltaWarning, StrongRegularizationWarning, warn
from expost.shown import up
from expost.table.bounds import stated_width
from expost.table.bounds_encoding import Preparation
from expost.table.cells import Lookup
from expost.table.columns import RECODED, NamedColumns, RawRows
from expost.table.encoding import Encoding
from expost.table.entrance import OnInvalid, open_column, open_rows
from expost.table.files import open_disk, open_named
from expost.table.rows import ONE
from expost.table.schema import Schema
from expost.table.streamed import ColumnsOnDisk, EncodedSource


class OnlyIf:
    """A method that is there only if a check raises no AttributeError; in whose words it is missing otherwise.

    scikit-learn's ``available_if`` says no more than that there is no such attribute.

    Examples
    --------
    >>> class Model:
    ...     def _odd(self):
    ...         raise AttributeError("this model is even")
    ...     halve = OnlyIf(_odd)(lambda self: 1)
    >>> hasattr(Model(), "halve")
    False
    >>> Model().halve
    Traceback (most recent call last):
    ...
    AttributeError: this model is even
    """

    def __init__(self, check: Callable[[Any], object]) -> None:
        self._check = check

    def __call__(self, method: Callable[..., Any]) -> Any:
        """Take the method."""
        self._method = method
        return update_wrapper(self, method)

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self._method
        self._check(model)
        return MethodType(self._method, model)


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
        As in :func:`~expost.table.entrance.open_rows`.
    bounds
        What the caller stated, which may say how many columns there are; after a fit it has said so.
    least
        How many rows there must be.

    Returns
    -------
    RawRows
    """
    rows = open_rows(X, on_invalid=on_invalid, width=stated_width(bounds) if reset else estimator.n_features_in_)
    for amount, what, enough in ((rows.n, "sample(s)", least), (rows.width, "feature(s)", 1)):
        if amount < enough:
            raise ValueError(
                f"Found array with {amount} {what} (shape=({rows.n}, {rows.width})) while a minimum of {enough} is "
                f"required by {type(estimator).__name__}."
            )
    repeated = [name for name, many in Counter(map(str, rows.names or ())).items() if many > 1]
    if repeated:
        raise ValueError(f"column name(s) {', '.join(repeated)} appear more than once in the table; rename them")
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


def forget(estimator: Any) -> None:
    """Drop an earlier fit, so that a refused one does not leave its predecessor's model behind."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


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


def sorted_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return two labels in the order that scikit-learn takes ``classes_`` to have; as they are if they have none."""
    try:
        return np.sort(labels)
    except TypeError:  # text beside bytes
        return labels


def by_sorted_labels(estimator: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log odds of the positive class as those of ``classes_[1]``, and columns in the order of ``classes_``.

    The release states classes as the caller did: the negative one, then the positive one.
    """
    if estimator.classes_[1] == estimator.release_.parameters["classes"][1]:
        return values
    return -values if values.ndim == 1 else values[:, ::-1]


def score_of(
    margins: NDArray[np.float64],
    targets: NDArray[np.float64],
    *,
    labels: bool,
    within: tuple[float, float] = (-1.0, 1.0),
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
    return float(r2_score(targets, np.clip(margins, *within), sample_weight=sample_weight))


Floats = npt.NDArray[np.float64]


def with_target(table: Any, schema: Schema, y: Any) -> Any:
    """Return a table with its target, which may come by itself; no cell is looked at."""
    if y is None:
        return table
    raw = open_named(table, [name for name in schema.needed if name != schema.target])
    target, _ = open_column(y, on_invalid="clip", name="y")
    if len(target) != len(raw):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(raw), len(target)]}")
    texts = (Lookup([[stated]], fold=True).numbers == {} for stated in schema.classes or ())
    if schema.classes is not None and not target.is_loose and all(texts):  # by their type, which is public
        raise ValueError(f"y holds numbers, which the classes {schema.classes} of the schema are not{RECODED}")
    return NamedColumns({**raw.columns, schema.target: target}, len(raw))


def margins_and_targets(table: Any, encoding: Encoding, theta: Floats, on_invalid: OnInvalid) -> tuple[Floats, Floats]:
    """Return xᵀθ and the scaled target of each row of a table on disk, read in pieces; private."""
    source = EncodedSource(open_disk(table), encoding)
    margins, targets, cells = [np.zeros(0)], [np.zeros(0)], []
    for part in source.parts():
        for batch in source.read(part):
            margins.append(np.divide(batch.x, ONE, order="C") @ theta)  # the same bits as rows in memory
            targets.append(batch.y / ONE)
            cells.append(batch.cells)
    made = np.concatenate(margins)
    if len(made) == 0:
        raise ValueError("there are no rows; pass at least one")
    if on_invalid == "error":
        counts: Any = sum(cells)
        encoding.require_fit(*encoding.tallied(counts, len(made)))
    return made, np.concatenate(targets)


def as_schema(stated: Any) -> Schema:
    """Return a schema, however it was stated."""
    if isinstance(stated, Schema):
        return stated
    if isinstance(stated, dict):
        return Schema.from_dict(stated)
    if isinstance(stated, str | PathLike):
        return Schema.from_toml(Path(stated))
    raise ValueError(
        f"schema must be a Schema, a dictionary or the path of a TOML file, which expost init drafts from a table; got "
        f"{type(stated).__name__}. Nothing was spent."
    )


AUTO = "auto"
#: What becomes of the best model of a search that does not meet its goal.
WHEN_SHORT = ("raise", "keep", "discard")
#: A chain of releases needs an end; with the budget lifted this is it.
LIFTED = 1000.0
_LIKELY = 0.1  # δ times the number of persons: one chance in ten that it fails for anybody
_USUAL = 0.01  # λ where it may be: the paper's scale
# λF² is the weight of a coefficient's square in the units of columns in [−1, 1], whose mean square is about ⅓: beyond a
# tenth, shrinkage takes a visible part of every coefficient, and far beyond it all of them
_SHRUNK = 0.1


def is_usual(value: Any, usual: Any) -> bool:
    """Whether an argument is what it is by default."""
    return value is usual or (type(value) is type(usual) and bool(value == usual))


def settled_regularization(stated: Any, preparation: Preparation) -> float:
    """Return λ for a promise that is about one: as stated, or small enough that it does not shrink the model away."""
    if is_usual(stated, AUTO):
        return min(_USUAL, _SHRUNK / preparation.divisor**2)
    if isinstance(stated, str):
        raise ValueError(f"regularization must be a number or 'auto', got {stated!r}")
    return validation.number("regularization", stated)


_FLAGS = ("fit_intercept", "keep_statistics", "full_matrix")
_SINGLE = (
    *("perturbation", "method", "calibration", "noise", "max_epsilon", "delta", "engine", "on_invalid", "on_failure"),
    *("regularization", "radius", "n_levels", "failure_probability", "feature_bound", "random_state", "ledger"),
)


def require_single(model: Any) -> None:
    """Complain about arguments that are arrays, and flags that are no truth values, before they are compared."""
    for name in _FLAGS:
        validation.flag(name, getattr(model, name, False))
    for name in _SINGLE:
        value = getattr(model, name, None)
        if hasattr(value, "__array__") and not np.isscalar(value):
            raise ValueError(f"{name} must be one value, got a {type(value).__name__}")


def settled_budget(stated: Any, method: str) -> float | None:
    """Return ``max_epsilon``, None where it was lifted; a single shot at it is never a default."""
    if is_usual(stated, AUTO):
        return None if method == "fixed" else defaults.MAX_EPSILON
    return None if stated == math.inf else validation.budget(stated)


def warn_if_shrunk(lam: float, preparation: Preparation) -> None:
    """Warn, before anything is spent, about a λ that leaves little but a constant."""
    weight = lam * preparation.divisor**2
    if weight > _SHRUNK:
        fine = _SHRUNK / preparation.divisor**2
        warn(
            f"regularization = {lam:g} shrinks the model towards its constant: rows are divided by "
            f"{preparation.divisor:.3g}, so columns in [-1, 1] are shrunk by {weight:.2g}, and more than {_SHRUNK:g} "
            f"is too much for most tables. Pass regularization = {fine:.1g} or less, fewer columns, a smaller "
            f"feature_bound, or a goal such as ErrorRate(...) or R2(...), which needs no regularization",
            StrongRegularizationWarning,
        )


def warn_if_likely(delta: float, n: int, unit: Unit) -> None:
    """Warn, before anything is spent, about a δ that is not far below one over the number of rows, or of persons."""
    many = n if unit.persons is None else unit.persons
    if delta * many <= _LIKELY:
        return
    warn(
        f"delta={up(delta, 6)} is large for {many:,} {unit.noun}s: it should be far below 1/{many}. With it the "
        f"guarantee may fail for as many as {up(delta * many)} of them on average. Pass delta="
        f"{_LIKELY / many:.0e} or less",
        LargeDeltaWarning,
    )
