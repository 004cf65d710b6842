"""What the model in a release says of rows, from the release alone.

A release holds everything this takes: the schema or the bounds, θ and the labels. Rows are encoded as they were for the
search (moved into their bounds, rounded to fixed point), because that is what its promise is about. Predicting is a
function of the release and of the rows to predict for; it touches no private value and costs no privacy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expost import validation
from expost.exceptions import InvalidRows
from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation
from expost.table.columns import NamedColumns, labels_array
from expost.table.encoding import Encoding
from expost.table.entrance import OnInvalid, open_rows
from expost.table.files import is_on_disk, open_disk, open_named
from expost.table.kinds import BACK
from expost.table.schema import Schema
from expost.table.streamed import usual_rows
from expost.table.views import View, parts_of, views_of

if TYPE_CHECKING:
    from expost.release.release import Release

#: Deviations of room for predictions of a model as good as a goal of R² asks for: targets may have long tails.
ROOM = 5.0


class InTurn:
    """Columns of a table on disk, a few rows at a time; knows where the present ones stand.

    ``numbers`` are those that are likely to hold some, unless they are to ``keep``, as they stand; ``width`` is how
    many cells a row has, or becomes. A line of a CSV file with more or fewer cells than the first is an error, which
    names it, unless ``on_invalid="clip"``: about private rows it would tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = pathlib.Path(folder, name).write_text("age\\n31\\n47\\n")
    ...     rows = InTurn(folder, ["age"], set(), 1, "error")
    ...     [(len(columns), rows.named(1).replace(folder, "")) for columns in rows]
    [(2, 'row 2 (counting from 1) of /a.csv'), (2, 'row 2 (counting from 1) of /b.csv')]
    """

    def __init__(
        self,
        table: Any,
        names: Sequence[str],
        numbers: set[str],
        width: int,
        on_invalid: OnInvalid,
        keep: Sequence[str] = (),
    ) -> None:
        self._disk, self._names = open_disk(table), list(dict.fromkeys([*names, *keep]))
        self._numeric = frozenset(numbers - set(keep))
        self._disk.require(self._names)
        self._rows, self._whole_lines = usual_rows(max(1, width, len(self._names))), on_invalid == "error"
        self._file = self._before = 0

    def __iter__(self) -> Iterator[NamedColumns]:
        self._file = self._before = 0
        for piece in self._disk.pieces():
            if piece.file != self._file:
                self._file, self._before = piece.file, 0
            for columns in self._disk.read(piece, self._names, self._numeric, self._rows):
                if self._whole_lines and len(columns.uneven):
                    self._complain(columns.uneven[0])
                for start in range(0, len(columns), self._rows):
                    stop = min(start + self._rows, len(columns))
                    # a piece of short lines has many rows, and each may become a long one
                    yield columns if stop - start == len(columns) else columns.taken(np.arange(start, stop))
                    self._before += stop - start

    def named(self, row: int) -> str:
        """Name one of the present rows, counted from 0: where it stands in its file."""
        said = f"row {self._before + row + 1} (counting from 1)"
        return said if len(self._disk.files) == 1 else f"{said} of {self._disk.files[self._file].path}"

    def _complain(self, row: int) -> None:
        place = self._before + row
        raise InvalidRows(
            f"row {place + 1} (line {place + 2}) of {self._disk.files[self._file].path} has not as many cells as the "
            f'first line has names; mend it, or pass on_invalid="clip" to treat cells it lacks as missing'
        )


Floats = npt.NDArray[np.float64]


class Scorer(ABC):
    """A released model, ready to predict.

    Parameters
    ----------
    release : Release
        One that holds a model.

    Attributes
    ----------
    theta : ndarray of float64
        Parameters of encoded rows.
    classes : pair or None
        Negative and positive label, for classification.
    target : (float, float) or None
        Bounds of what is predicted, for regression: of the target, or of its transform.
    largest_odds : float or None
        What log odds are moved to if they are larger; None where the model estimates no probabilities.
    within : (float, float)
        What predictions of numbers are moved into, targets scaled to [−1, 1]: what the promise is about.
    """

    def __init__(self, release: Release) -> None:
        self.release = release
        self.theta = np.asarray(release.hypothesis, dtype=np.float64)
        classes = release.parameters.get("classes")
        self.classes: tuple[Any, Any] | None = None if classes is None else (classes[0], classes[1])
        bounds = release.preparation.get("target")
        self.target = None if bounds is None else (float(bounds[0]), float(bounds[1]))
        low, high = release.parameters.get("predicted_within", (-1.0, 1.0))
        self.within = (float(low), float(high))
        self.transform: str | None = None  # of the target, which is undone at the end
        self.own_bounds = self.target or (-1.0, 1.0)
        self.largest_odds: float | None = release.parameters.get("largest_odds")
        if self.classes is not None and release.parameters.get("loss") == "logistic" and self.largest_odds is None:
            self.largest_odds = float("inf")

    @abstractmethod
    def design(self, rows: Any, on_invalid: OnInvalid) -> Floats:
        """Return encoded rows."""

    @abstractmethod
    def designs(
        self, table: Any, on_invalid: OnInvalid, keep: Sequence[str] = ()
    ) -> Iterator[tuple[NamedColumns, Floats]]:
        """Yield a table on disk some rows at a time, raw and encoded; ``keep`` names further columns, as they stand."""

    def pieces(
        self, table: Any, on_invalid: OnInvalid = "error", keep: Sequence[str] = ()
    ) -> Iterator[tuple[NamedColumns, Floats]]:
        """Yield the columns to keep and the margins of a table on disk, some rows at a time.

        Whoever writes them out has to take them back if it ends in :class:`~expost.exceptions.InvalidRows`.
        """
        _check(on_invalid)
        for raw, design in self.designs(table, on_invalid, keep):
            yield raw, np.asarray(design @ self.theta)

    def margins(self, rows: Any, on_invalid: OnInvalid = "error") -> Floats:
        """Return xᵀθ: positive for the positive class, or the target scaled to [−1, 1]."""
        _check(on_invalid)
        if is_on_disk(rows):
            return np.concatenate([np.zeros(0), *(margins for _, margins in self.pieces(rows, on_invalid))])
        return np.asarray(self.design(rows, on_invalid) @ self.theta)

    def answers(self, margins: Floats, cut_off: float | None = None) -> npt.NDArray[Any]:
        """Return what margins mean: labels, or targets within their bounds.

        A ``cut_off`` is the probability above which the positive label is given, where one is estimated.
        """
        least = 0.0
        if cut_off is not None:
            self.require_odds()
            share = validation.share("cut_off", cut_off)
            least = math.log(share / (1.0 - share))
        if self.classes is not None:
            chosen: npt.NDArray[Any] = labels_array(list(self.classes))[(margins > least).astype(np.intp)]
            return chosen
        low, high = self.target or (-1.0, 1.0)
        moved = np.clip(margins, *self.within)
        scaled = np.clip(Bounds((low,), (high,)).unscale(moved[:, None])[:, 0], low, high)
        return scaled if self.transform is None else np.clip(BACK[self.transform](scaled), *self.own_bounds)

    def require_odds(self) -> None:
        """Complain if the model estimates no probabilities."""
        if self.largest_odds is None:
            raise ValueError(no_chances(self.classes is None))

    def chances(self, margins: Floats) -> Floats:
        """Return the probability of each class, from margins; columns in the order of ``classes``."""
        assert self.largest_odds is not None
        odds = np.clip(margins, -self.largest_odds, self.largest_odds)
        with np.errstate(over="ignore"):  # e^(-odds) may be infinite, and 1/∞ is what is meant
            return np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])


class SchemaScorer(Scorer):
    """A model of a table with a schema."""

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        schema = Schema.from_dict(_thawed(release.preparation["schema"]))
        self.encoding, self.classes, self.target = Encoding(schema), schema.classes, schema.scaled_target
        self.transform, self.own_bounds = schema.target_transform, schema.target_bounds or (-1.0, 1.0)

    @property
    def views(self) -> dict[int, View]:
        """How levels of a search may have seen its curves, by how finely; all of it public."""
        return {view.intervals: view for view in views_of(self.encoding)}

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """First parameter and width of each part of a row."""
        return tuple(parts_of(self.encoding))

    def design(self, rows: Any, on_invalid: OnInvalid) -> Floats:
        """Return encoded rows."""
        return self.encoding.design(_by_name(rows, tuple(self.encoding.schema.columns)), on_invalid)

    def designs(
        self, table: Any, on_invalid: OnInvalid, keep: Sequence[str] = ()
    ) -> Iterator[tuple[NamedColumns, Floats]]:
        """Yield rows, raw and encoded."""
        columns = self.encoding.schema.columns
        numbers = {name for name, kind in columns.items() if kind.parsed}
        rows = InTurn(table, list(columns), numbers, len(self.encoding.names), on_invalid, keep)
        return self.encoding.designs(rows, on_invalid, rows.named)


class BoundsScorer(Scorer):
    """A model of columns of numbers, with bounds or a bound on rows."""

    def __init__(self, release: Release) -> None:
        super().__init__(release)
        self.preparation = Preparation.described(release.preparation)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as far as they have any."""
        return self.release.columns or tuple(map(str, self.release.parameters["columns"]))

    def designs(
        self, table: Any, on_invalid: OnInvalid, keep: Sequence[str] = ()
    ) -> Iterator[tuple[NamedColumns, Floats]]:
        """Yield rows, raw and encoded."""
        rows = InTurn(table, self.names, set(self.names), len(self.names), on_invalid, keep)
        for columns in rows:
            yield columns, self._prepared(_values(columns, self.names), on_invalid, rows.named)

    def design(self, rows: Any, on_invalid: OnInvalid) -> Floats:
        """Return encoded rows."""
        width, names = self.preparation.n_columns, self.names
        # a frame is read by position where the model was fitted to columns without names
        if _is_named(rows) and (self.release.columns or not hasattr(rows, "shape")):
            values = _values(open_named(rows, names), names)
        else:
            raw = open_rows(rows, on_invalid=on_invalid, width=width)
            if raw.width != width:
                raise ValueError(f"the rows have {raw.width} columns; the model is for {width}")
            values = raw.floats(slice(None))
        return self._prepared(values, on_invalid, lambda row: f"row {row + 1} (counting from 1)")

    def _prepared(self, values: Floats, on_invalid: OnInvalid, named: Callable[[int], str]) -> Floats:
        bad = ~np.isfinite(values)
        if on_invalid == "error" and bad.any():
            i, j = np.argwhere(bad)[0]
            raise InvalidRows(
                f"{named(int(i))} cannot be read: column {self.names[j]!r} is missing, "
                f"infinite or no number; pass decimal=',' if numbers have a decimal comma, mend it, or pass "
                f'on_invalid="clip" to put such values in the middle of their bounds'
            )
        return self.preparation.design(values)


def no_chances(numbers: bool) -> str:
    """Say why a model, of numbers or of labels, estimates no probabilities."""
    what = "predicts numbers" if numbers else "was asked for few errors and predicts labels alone"
    return f"this model {what}; models for a log loss estimate probabilities"


def scorer_of(release: Release) -> Scorer:
    """Return the released model.

    Raises
    ------
    ValueError
        If the release holds none: a refusal, or parameters of rows that were prepared by hand.
    """
    if release.hypothesis is None:
        raise ValueError("this release was refused: it holds no model, only what the search cost")
    if "evaluation" in release.parameters:
        raise ValueError("this is an evaluation, which holds counts and no model; name the release of the model")
    if "schema" in release.preparation:
        return SchemaScorer(release)
    if "feature_bound" in release.preparation:
        return BoundsScorer(release)
    raise ValueError("this release does not say how rows were prepared; fit a model with a schema or an estimator")


def check_model(release: Release) -> None:
    """Complain about a release from a file whose schema, bounds, names, labels and parameters are not of one size."""
    said, made, theta = release.preparation, release.parameters, release.hypothesis
    names = made.get("columns", ())
    agree = "coef" not in made or ("intercept" in made and len(made["coef"]) == len(names))
    width = None
    try:
        if "schema" in said:
            encoding = Encoding(Schema.from_dict(_thawed(said["schema"])))
            schema, width = encoding.schema, len(encoding.names)
            agree &= (release.target, release.columns) == (schema.target, tuple(schema.columns))
            agree &= made.get("classes", schema.classes) == schema.classes
            agree &= names in ((), encoding.names[1:])
        elif "feature_bound" in said or (said and "statistics" in made):  # which are fitted to anew
            recipe = Preparation.described(said)
            width = recipe.n_parameters
            agree &= len(release.columns) in (0, recipe.n_columns) and len(names) in (0, recipe.n_columns)
            agree &= theta is None or "coef" in made
    except KeyError as error:
        raise ValueError(f"not a release: its preparation has no {error}") from None
    except ValueError as error:
        raise ValueError(f"not a release: in its preparation {error}") from None
    if "statistics" in made:
        p = len(made["statistics"]["first"])
        agree &= width in (p, None) and len(names) <= p and len(made["statistics"]["second"]) == p * (p + 1) // 2
        agree &= "n" in made and release.promise.failure_probability is not None
    if width is not None and theta is not None:
        agree &= (
            isinstance(theta, tuple) and len(theta) == width and not any(isinstance(value, tuple) for value in theta)
        )
    if not agree:
        raise ValueError("not a release: its model, columns, labels and statistics do not belong together")


def _by_name(rows: Any, names: tuple[str, ...]) -> Any:
    """Give columns of an array or list the names they stand for, in order; leave what has names as it is."""
    if _is_named(rows):
        return rows
    array = np.asarray(rows, dtype=object if isinstance(rows, list | tuple) else None)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise ValueError(
            f"pass a frame, a dictionary of columns or the path of a file, or an array of {len(names)} columns: "
            f"{', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
        )
    return {name: array[:, j] for j, name in enumerate(names)}


def _values(table: NamedColumns, names: Sequence[str]) -> Floats:
    return np.column_stack([table[name].floats(slice(None)) for name in names])


def _check(on_invalid: OnInvalid) -> None:
    if on_invalid not in ("error", "clip"):
        raise ValueError('on_invalid must be "error" or "clip"')


def _is_named(rows: Any) -> bool:
    if isinstance(rows, np.ndarray | list | tuple):
        return False
    return isinstance(rows, Mapping | NamedColumns) or hasattr(rows, "columns")


def _thawed(value: Any) -> Any:
    """Return frozen values as the dictionaries and lists they were made of."""
    if isinstance(value, Mapping):
        return {key: _thawed(item) for key, item in value.items()}
    return [_thawed(item) for item in value] if isinstance(value, tuple) else value
