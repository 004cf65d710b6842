"""A released model as a pipeline of scikit-learn's own parts, which scores where this library is not installed.

Every step is an estimator of scikit-learn or a function of NumPy, so that a pickle of the pipeline refers to nothing
else. It is fitted to a made-up table first, so that scikit-learn sets what it needs, and then given the released
parameters; no row is seen.

Rows are read as :meth:`Release.predict` reads them with ``on_invalid="clip"``: numbers go to the nearest bound and are
truncated to the same fixed point (hats of curves are not: they differ by a millionth), categories that are not listed
are others or missing. What scikit-learn has no part for: text is compared with the spaces around it, and columns of
numbers must hold numbers, or text that NumPy reads as one (or as a date). Times with a zone count as their clocks show
them, from frames of pandas; Polars hands them to NumPy in UTC, so the zone has to be taken off them first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from expost.release.scoring import BoundsScorer, SchemaScorer, Scorer, scorer_of
from expost.table.bounds import Bounds
from expost.table.cells import Lookup
from expost.table.columns import labels_array
from expost.table.curves import Curve
from expost.table.dates import from_days
from expost.table.kinds import BACK, BOOLEAN_WORDS, Boolean, Categorical, ColumnKind, Dated, Kind, Numeric
from expost.table.rows import ONE

if TYPE_CHECKING:
    from expost.release.release import Release

__all__ = ["to_sklearn"]

Floats = npt.NDArray[np.float64]

_VECTORISED = {"log1p": np.log1p, "sqrt": np.sqrt, "log": np.log}
_NAN = "\0nan"  # stands for NaN among objects, where it equals nothing
_FAR = 1e300  # for infinity: row norms must not overflow


def to_sklearn(release: Release) -> Pipeline:
    """Return the released model as a fitted pipeline; see :meth:`Release.to_sklearn`."""
    scorer = scorer_of(release)
    if isinstance(scorer, SchemaScorer):
        return _of_table(scorer)
    assert isinstance(scorer, BoundsScorer)
    return _of_numbers(scorer)


# --- tables with a schema --------------------------------------------------------------------------------------------


def _of_table(scorer: SchemaScorer) -> Pipeline:
    encoding = scorer.encoding
    schema = encoding.schema
    made: list[tuple[str, Any, list[str]]] = []
    for name, kind in encoding.parts:
        for transformer in _transformers(kind, schema.missing, encoding.unit):
            made.append((f"encoded{len(made) + 1}", transformer, [name]))
    example = _frame({name: [_example(kind)] * 2 for name, kind in schema.columns.items()})
    prepare = ColumnTransformer(made, sparse_threshold=0).fit(example)
    for _, transformer, (name,) in prepare.transformers_[: len(made)]:
        kind = schema.columns[name]
        if isinstance(kind, Numeric):
            _give_bounds(transformer, kind.scaled)
    # the constant is the first of the parameters, and takes no column
    constant = float(scorer.theta[0]) * (encoding.unit / ONE)
    return _pipeline([("encode", prepare)], scorer, scorer.theta[1:] / ONE, constant)


def _transformers(kind: ColumnKind, marks: Sequence[Any], unit: int) -> list[Pipeline]:
    """Return a pipeline for each encoded column, in units of fixed point."""
    if isinstance(kind, Numeric):
        number = _number_steps(kind, marks)
        if kind.shape is None:
            made = [make_pipeline(*number, *_scale_steps(kind), *_to_unit(), *_fixed_point(unit))]
        else:
            made = [make_pipeline(*number, *_scale_steps(kind), *part) for part in _curve_steps(kind, kind.shape, unit)]
        return [*made, make_pipeline(*number, _call(np.isnan), _times(unit))] if kind.marked else made
    if isinstance(kind, Boolean):
        groups = _spellings([*BOOLEAN_WORDS, marks], fold=True)
        false, true = groups[0], groups[1]
        if kind.missing == "indicator":
            return [_is_one_of(true, unit), _is_one_of([*false, *true], unit, invert=True)]
        halves = [("true", _is_one_of(true, unit)), ("missing", _is_one_of([*false, *true], unit // 2, invert=True))]
        return [make_pipeline(FeatureUnion(halves), FunctionTransformer(np.sum, kw_args={"axis": 1, "keepdims": True}))]
    assert isinstance(kind, Categorical)
    return _indicators(kind, marks, unit)


def _curve_steps(kind: Numeric, curve: Curve, unit: int) -> Iterator[list[Any]]:
    """Yield, for each hat or step, what makes it of a number within its bounds, after its transform; 0 of NaN."""
    missing = [] if kind.marked else [_call(np.nan_to_num, nan=kind.middle)]
    knots = np.array(curve.knots)
    for i in range(curve.width):
        if curve.steps:
            ends = [knots[i] if i else -np.inf, knots[i + 1] if i < curve.width - 1 else np.inf]
            yield [*missing, _call(np.digitize, bins=ends), _call(np.isin, test_elements=[1]), _times(unit)]
        else:
            hat = np.where(np.arange(len(knots)) == i, float(unit), 0.0)
            yield [*missing, _call(np.interp, xp=knots, fp=hat), _call(np.nan_to_num, nan=0.0)]


def _indicators(kind: Categorical, marks: Sequence[Any], unit: int) -> list[Pipeline]:
    many = len(kind.categories)
    groups = _spellings([*([value] for value in kind.categories), marks])
    made = [_is_one_of(groups[code], unit) for code in range(many)]
    known = [value for code in range(many) for value in groups[code]]
    missing = [*groups[many], None, _NAN]
    if not kind.other:  # what is not listed is missing
        return [*made, *([_is_one_of(known, unit, invert=True)] if kind.missing == "indicator" else [])]
    listed = known if kind.missing == "other" else [*known, *missing]
    made.append(_is_one_of(listed, unit, invert=True))
    return [*made, *([_is_one_of(missing, unit)] if kind.missing == "indicator" else [])]


def _number_steps(kind: Numeric, marks: Sequence[Any]) -> list[Any]:
    """Read numbers, NaN where a cell is missing or holds a mark for it."""
    lookup = Lookup([marks])
    steps: list[Any] = []
    texts = [mark for mark in marks if isinstance(mark, str)]
    dated = isinstance(kind, Dated)
    if texts or dated:
        steps.append(_call(np.asarray, dtype=object))
        steps += [step for text in texts for step in _without(text, None if dated else np.nan)]
    if dated:  # microseconds, of which the smallest stands for none
        steps += [*_without_zone(), _call(np.asarray, dtype="datetime64[us]"), _call(np.asarray, dtype=np.int64)]
        steps += [_call(np.asarray, dtype=np.float64), *_without(-(2.0**63)), StandardScaler(with_mean=False)]
        return steps
    if kind.decimal == ",":  # a point is taken as well, which is what a number becomes as text
        steps += [_call(np.asarray, dtype=str), _call(np.char.replace, old=",", new=".")]
        steps += [step for none in ("None", "<NA>") for step in _without(none, "nan")]
    steps.append(_call(np.asarray, dtype=np.float64))
    return [*steps, *(step for value in lookup.numbers for step in _without(float(value)))]


def _without_zone() -> list[Any]:
    """Write dates as text and drop what follows their time of day: NumPy would turn times with a zone into UTC.

    The first two dashes stand within the date, any other begins a zone.
    """

    def before(mark: str) -> list[Any]:
        return [_call(np.char.partition, sep=mark), _call(np.take, indices=0, axis=-1)]

    return [
        _call(np.asarray, dtype=str),
        *(step for none in ("None", "nan", "<NA>") for step in _without(none, "NaT")),
        _call(np.char.replace, old="-", new="/", count=2),
        *before("-"),
        *before("+"),
        _call(np.char.rstrip, chars="zZ"),
        _call(np.char.replace, old="/", new="-"),
    ]


def _without(value: Any, instead: Any = np.nan) -> list[Any]:
    return [_call(np.ma.masked_equal, value=value), _call(np.ma.filled, fill_value=instead)]


def _scale_steps(kind: Numeric) -> list[Any]:
    transform = [] if kind.transform is None else [_call(_VECTORISED[kind.transform])]
    return [_call(np.clip, a_min=kind.bounds[0], a_max=kind.bounds[1]), *transform]


def _spellings(groups: Sequence[Sequence[Any]], *, fold: bool = False) -> dict[int, list[Any]]:
    """Return, for each group of labels, the cells that are read as one of them, as far as they can be listed."""
    lookup = Lookup(groups, fold=fold)
    found: dict[int, list[Any]] = {code: [] for code in range(len(groups))}
    for cell in _candidates([value for group in groups for value in group], fold=fold):
        code = lookup.code(cell)
        if code >= 0 and not any(type(cell) is type(known) and cell == known for known in found[code]):
            found[code].append(cell)
    return found


def _candidates(labels: Iterable[Any], *, fold: bool) -> Iterable[Any]:
    """Yield ways in which tables write labels: as text, as numbers, as numbers in text, as true and false."""
    for stated in [*labels, 0, 1]:
        text = str(stated)
        yield from (text, text.lower(), text.upper(), text.capitalize()) if fold else (text,)
        try:
            number = float(stated)
        except ValueError:
            continue
        if np.isfinite(number):
            yield from (number, repr(number))
            if number.is_integer():
                yield from (int(number), str(int(number)))
    yield from ("true", "True", "TRUE", "false", "False", "FALSE")


def _is_one_of(cells: Sequence[Any], unit: int, *, invert: bool = False) -> Pipeline:
    listed = np.empty(len(cells), dtype=object)
    listed[:] = list(cells)
    return make_pipeline(
        _call(np.asarray, dtype=object),
        SimpleImputer(missing_values=np.nan, strategy="constant", fill_value=_NAN),
        _call(np.isin, test_elements=listed, invert=invert),
        _times(unit),
    )


def _example(kind: Kind) -> Any:
    """Return a cell that the column could hold."""
    if isinstance(kind, Dated):
        return from_days(kind.bounds[0])
    if isinstance(kind, Numeric):
        return kind.bounds[0]
    return kind.categories[0] if isinstance(kind, Categorical) else True


# --- columns of numbers ----------------------------------------------------------------------------------------------


def _of_numbers(scorer: BoundsScorer) -> Pipeline:
    recipe, names = scorer.preparation, list(scorer.release.columns)
    width = recipe.n_columns
    example = _frame({name: [0.0] * 2 for name in names}) if names else np.zeros((2, width))
    steps: list[Any] = [ColumnTransformer([("columns", "passthrough", names)])] if names else []
    steps.append(_call(np.asarray, dtype=np.float64))
    if recipe.bounds is not None:
        steps.append(_call(np.clip, a_min=np.array(recipe.bounds.lower), a_max=np.array(recipe.bounds.upper)))
        steps += _to_unit()
    steps.append(_times(recipe.factor))
    steps += [_call(np.nan_to_num, nan=0.0, posinf=_FAR, neginf=-_FAR), *_fixed_point(ONE)]
    theta = scorer.theta[:width] / ONE
    boxed = recipe.shape == "box"
    if not boxed and (recipe.bounds is None or recipe.feature_bound < width):
        steps += _within_norm(recipe.feature_limit)
        theta = np.concatenate([[0.0], theta])
    prepare = make_pipeline(*steps).fit(example)
    if recipe.bounds is not None:
        _give_bounds(prepare, recipe.bounds)
    constant = float(scorer.theta[-1]) * (recipe.constant / ONE) if recipe.has_intercept else 0.0
    return _pipeline(prepare.steps, scorer, theta, constant)


def _within_norm(limit: int) -> list[Any]:
    """Divide rows by max(1, ‖x‖₁/limit) and truncate: a first column max(‖x‖₁, limit) is the largest entry of its row.

    Quotients are multiples of 1/‖x‖₁ and at most 2²⁰, so a part in 2⁵⁰ more than makes up for their rounding, and moves
    none to the next unit if ‖x‖₁ < 2²⁹ units: the same integers as in the search for rows up to 512 times too long.
    """
    norm = make_pipeline(
        _call(np.abs), _call(np.sum, axis=1, keepdims=True), _call(np.clip, a_min=float(limit), a_max=None)
    )
    shrunk = [Normalizer("max"), _times(limit * (1.0 + 2.0**-50)), _call(np.trunc)]
    return [FeatureUnion([("norm", norm), ("row", "passthrough")]), *shrunk]


# --- what both share -------------------------------------------------------------------------------------------------


def _call(function: Any, **arguments: Any) -> FunctionTransformer:
    return FunctionTransformer(function, kw_args=arguments or None)


def _times(factor: float) -> FunctionTransformer:
    return _call(np.dot, b=float(factor))  # by a number: elementwise


def _fixed_point(unit: int) -> list[Any]:
    """Truncate toward zero to whole units, as the search did, with missing numbers in the middle."""
    return [_times(unit), _call(np.trunc), _call(np.nan_to_num, nan=0.0)]


def _to_unit() -> list[Any]:
    """Scale to [−1, 1]; :func:`_give_bounds` says from where."""
    return [StandardScaler(), _call(np.clip, a_min=-1.0, a_max=1.0)]


def _give_bounds(fitted: Pipeline, bounds: Bounds) -> None:
    """Scale by stated bounds instead of what a made-up table had: (x − center)/half_range, to the bit.

    A step that divides alone makes days of microseconds.
    """
    for _, step in fitted.steps:
        if isinstance(step, StandardScaler) and not step.with_mean:
            step.scale_, step.var_ = np.array([86_400e6]), np.array([86_400e6]) ** 2
        elif isinstance(step, StandardScaler):
            step.mean_, step.scale_, step.var_ = bounds.center, bounds.half_range, bounds.half_range**2


def _frame(columns: dict[str, list[Any]]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("a model of named columns is exported by way of a pandas frame; install pandas") from None
    return pd.DataFrame(columns)


def _pipeline(steps: list[tuple[str, Any]], scorer: Scorer, theta: Floats, constant: float) -> Pipeline:
    """Add the last step, with the parameters that were released."""
    made_up = np.array([np.zeros(len(theta)), np.ones(len(theta))])
    if scorer.classes is None:
        low, high = scorer.target or (-1.0, 1.0)
        bounds = Bounds((low,), (high,))
        center, half = float(bounds.center[0]), float(bounds.half_range[0])
        low, high = (float(min(max(center + half * end, low), high)) for end in scorer.within)
        within: Any = FunctionTransformer(
            inverse_func=np.clip, inv_kw_args={"a_min": low, "a_max": high}, check_inverse=False
        )
        if scorer.transform is not None:  # undone after predictions are within their bounds
            back = FunctionTransformer(_VECTORISED[scorer.transform], BACK[scorer.transform], check_inverse=False)
            ends = FunctionTransformer(
                inverse_func=np.clip,
                inv_kw_args=dict(zip(("a_min", "a_max"), scorer.own_bounds, strict=True)),
                check_inverse=False,
            )
            within = make_pipeline(ends, back, within)
        last = TransformedTargetRegressor(LinearRegression(), transformer=within, check_inverse=False)
        last.fit(made_up, [1.0, 2.0])  # which have a logarithm
        last.regressor_.coef_, last.regressor_.intercept_ = half * theta, center + half * constant
        return Pipeline([*steps, ("model", last)])
    if scorer.largest_odds is not None and np.isfinite(scorer.largest_odds):
        # log odds are moved into bounds before they become probabilities
        odds = [
            ("times", _call(np.dot, b=theta[:, None])),
            ("plus", StandardScaler(with_std=False).fit([[0.0], [0.0]])),
        ]
        odds[1][1].mean_ = np.array([-constant])
        steps = [*steps, *odds, ("odds", _call(np.clip, a_min=-scorer.largest_odds, a_max=scorer.largest_odds))]
        made_up, theta, constant = made_up[:, :1], np.ones(1), 0.0
    classifier = LinearSVC() if scorer.largest_odds is None else LogisticRegression()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(made_up, [0, 1])
    classifier.coef_, classifier.intercept_ = theta[None, :], np.array([constant])
    classifier.classes_ = labels_array(list(scorer.classes))
    return Pipeline([*steps, ("model", classifier)])
