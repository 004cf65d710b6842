"""What each column adds to a model, as pictures: curves for numbers, bars for categories, and what noise leaves.

Everything is read off a release; no row is looked at. Numbers are shown around their mean over the picture, categories
against one of them, the *reference*: the first that the schema lists unless another is named (which is the commonest
nobody was told). The constant takes up the rest.

*The band.* Whatever is drawn is a sum a·θ of parameters, less another: a knot's value less the curve's mean, a
category's less the reference's. The release states how far the noise of each level typically scatters each parameter,
and how finely it saw curves (``noise_levels``, for nothing). Each mechanism says how it knows: perturbed objectives
state what noise makes of a parameter that no row holds ("noise alone" of `expost.mechanisms.objective.perturbation`,
mostly too much), gradient descent and second moments what follows from how the loss bends, as released numbers tell it
("typical noise" of `expost.mechanisms.descent.gradient_descent` and `expost.mechanisms.moments.gaussian_moments`). The
band is the standard deviation of a·θ that follows. Going back from the last level, a becomes what it is of the
coefficients of each view, Pa, and each level adds Σ(σ_j a_j)². It is an estimate; on some tables models scatter by
more. *At worst*, whatever the rows are, it is ``noise_spread`` times ‖a‖₂ (theorem "scatter" of perturbed objectives):
√2 times as much for the difference of two categories as for one. Releases that do not state either have no band, or no
worst case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from expost.release.scoring import BoundsScorer, SchemaScorer, Scorer, scorer_of
from expost.shown import listed, up

if TYPE_CHECKING:
    from expost.release.release import Release

BAND = "band: typical noise, one standard deviation; an estimate, no bound, and nothing about other rows"
_POINTS = 101
_ROUNDING = 1e-12  # what rounding leaves between equal numbers, as a part of the coefficients that made them

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """What one column adds.

    Attributes
    ----------
    column
        Its name.
    labels
        Of bars; none for a number.
    x, y
        Values in the column's own units (days since 1970 for dates) and what they add; for bars their places.
    band
        How far noise typically scatters each of them, in standard deviations; empty if nothing is known of it.
    worst
        How far it does at most, whatever the rows are; likewise.
    lengths
        Of each, how long a direction of the parameters it is, in units of what is shown.
    reference
        Of bars: the label that they are shown against.
    level
        What was taken off all of ``y``, and is in the constant.
    straight
        Of a number that counts by a straight line alone: its coefficient, and what the line is along.
    missing
        What missing cells add, where that is neither a bar nor on the curve.
    steps, dated, logarithmic
        Whether it jumps, what x is, and how it is best shown.
    """

    column: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[str, ...] = ()
    band: tuple[float, ...] = ()
    worst: tuple[float, ...] = ()
    lengths: tuple[float, ...] = ()
    reference: str | None = None
    level: float = 0.0
    straight: tuple[float, str] | None = None
    missing: float | None = None
    steps: bool = False
    dated: bool = False
    logarithmic: bool = False


def units(scorer: Scorer) -> Floats:
    """Return what 1 in each scaled parameter is in the coefficient of the caller's column, the constant left out."""
    if isinstance(scorer, SchemaScorer):
        coefficients, _ = scorer.encoding.to_caller_units(np.ones(len(scorer.theta)))
        return np.array(list(coefficients.values()))
    assert isinstance(scorer, BoundsScorer)
    return scorer.preparation.to_caller_units(np.ones(len(scorer.theta)))[0]


def effects(release: Release, reference: Mapping[str, str] | None = None) -> list[Effect]:
    """Return what each column of a table with a schema adds to the model, in the order of the schema.

    What is added is in units of the target (after its transform), or of the sum whose sign decides. ``reference`` names
    the category that others of its column are shown against, by column.
    """
    scorer = scorer_of(release)
    if not isinstance(scorer, SchemaScorer):
        raise ValueError("only models of tables with a schema are drawn")
    if "coef" not in release.parameters:
        raise ValueError("this release states no coefficients")
    chosen = dict(reference or {})
    model = _Model(release, scorer)
    made = dict(_parts(model, scorer, chosen))
    if chosen:
        known = ", ".join(name for name, effect in made.items() if effect.labels)
        raise ValueError(f"{next(iter(chosen))!r} is no column of categories in the model; such are {known or 'none'}")
    return [made[name] for name in scorer.encoding.schema.columns]


class _Model:
    """Coefficients by name, what 1 in a parameter is in each of them, and how far noise scatters a parameter."""

    def __init__(self, release: Release, scorer: SchemaScorer) -> None:
        names = release.parameters["columns"]
        self._coefficients = dict(zip(names, release.parameters["coef"], strict=True))
        self._units = dict(zip(names, np.abs(units(scorer)).tolist(), strict=True))
        self._spread = release.parameters.get("noise_spread")
        self._places = {name: place for place, name in enumerate(names, start=1)}  # behind the constant
        self._noise = _TypicalNoise.of(release, scorer)

    def values(self, names: Sequence[str]) -> Floats:
        return np.array([self._coefficients[name] for name in names])

    def scatter(self, names: Sequence[str], weights: Floats) -> dict[str, Any]:
        """Return how far noise scatters directions, a row for each, and how long they are, in units of coefficients."""
        directions = weights * np.array([self._units[name] for name in names])
        lengths = np.linalg.norm(directions, axis=1)
        band = None if self._noise is None else self._noise.scatter([self._places[name] for name in names], directions)
        worst = None if self._spread is None else self._spread * lengths
        found = {"band": band, "worst": worst, "lengths": lengths}
        return {name: tuple(values.tolist()) for name, values in found.items() if values is not None}


@dataclass(frozen=True)
class _TypicalNoise:
    """How far noise typically scatters parameters.

    Attributes
    ----------
    levels
        Of each level how it saw rows, None if as they are, and the deviation of each of its parameters.
    parts
        First parameter and width of each part of a row, none of which shares noise or a map with another.
    """

    levels: tuple[tuple[Any, Floats], ...]
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, release: Release, scorer: SchemaScorer) -> _TypicalNoise | None:
        """Read it off a release, if it is there."""
        stated = release.parameters.get("noise_levels")
        if stated is None:
            return None
        views, levels = {0: None, **scorer.views}, []
        for level in stated:
            deviations = np.repeat(np.array(level["deviations"], dtype=np.float64), level["sizes"])
            view = views.get(level["intervals"])
            columns = len(scorer.theta) if view is None else view.columns
            if level["intervals"] not in views or len(deviations) != columns:
                raise ValueError("the release states noise of other columns than its schema has; was it changed?")
            levels.append((view, deviations))
        return cls(tuple(levels), scorer.parts)

    def scatter(self, places: Sequence[int], directions: Floats) -> Floats:
        """Return the standard deviation of each row of directions, which are of some parameters."""
        square = np.zeros(len(directions))
        for first, width in self.parts:
            there = [(place - first, column) for column, place in enumerate(places) if first <= place < first + width]
            if there:
                own = np.zeros((len(directions), width))
                own[:, [place for place, _ in there]] = directions[:, [column for _, column in there]]
                square += self._of_part(first, own)
        return np.asarray(np.sqrt(square))

    def _of_part(self, first: int, directions: Floats) -> Floats:
        """Return the variance of directions of the parameters of one part, level by level from the last on."""
        square, width = np.zeros(len(directions)), directions.shape[1]
        seen: Any = self  # no view yet
        for view, deviations in reversed(self.levels):
            if view is not seen:
                place, lift, back = (first, np.eye(width), np.eye(width)) if view is None else view.part(first, width)
                own = directions @ lift  # of the coefficients of the view
                seen, directions = view, own @ back  # of the model that the level before handed over
            square += np.square(own * deviations[place : place + lift.shape[1]]).sum(axis=1)
        return square


def _parts(model: _Model, scorer: SchemaScorer, chosen: dict[str, str]) -> Iterator[tuple[str, Effect]]:
    for column, kind in scorer.encoding.schema.kinds.items():
        if hasattr(kind, "bounds"):
            yield column, _number(column, kind, model)
        else:
            yield column, _bars(column, kind, model, chosen.pop(column, None))


def _bars(column: str, kind: Any, model: _Model, chosen: str | None) -> Effect:
    """Return the bars of categories, or of true and false, less that of the reference."""
    names, listed = kind.names(column), hasattr(kind, "categories")
    weights, labels = np.eye(len(names)), [name.removeprefix(f"{column}=") for name in names]
    if not listed:
        weights, labels = np.vstack([np.zeros(len(names)), weights]), ["false", "true", *labels[1:]]
    if chosen is not None and chosen not in labels:
        raise ValueError(f"{chosen!r} is no category of {column!r} in the model; these are {', '.join(labels)}")
    at = 0 if chosen is None else labels.index(chosen)
    values = weights @ model.values(names)
    return Effect(
        column,
        tuple(map(float, range(len(labels)))),
        tuple((values - values[at]).tolist()),
        tuple(labels),
        **model.scatter(names, weights - weights[at]),
        reference=labels[at],
        level=float(values[at]),
        missing=-float(values[at]) if listed and kind.missing == "zero" else None,
    )


def _number(column: str, kind: Any, model: _Model) -> Effect:
    """Return the curve of a number: its parts added up along its bounds, around their mean."""
    low, high = float(kind.scaled.lower[0]), float(kind.scaled.upper[0])
    inner = [] if kind.shape is None else list(kind.shape.knots)
    jumps = kind.shape is not None and kind.shape.steps
    at = np.unique([*np.linspace(low, high, _POINTS), *inner, *(np.nextafter(inner, -np.inf) if jumps else [])])
    at = at[(at >= low) & (at <= high)]
    names: list[str] = []
    made: list[Floats] = []
    middle: list[Floats] = []
    line = None
    for part in kind.parts:
        own = list(part.names(column))
        columns = np.zeros((len(at), len(own)))
        absent = np.zeros(len(own))
        if part.shape is None:
            columns[:, 0], absent[0], line = at, (low + high) / 2, own[0]
        else:
            knots, width = np.array(part.shape.knots), part.shape.width
            for j in range(width):
                if part.shape.steps:
                    columns[:, j] = np.searchsorted(knots[1:-1], at, side="right") == j
                else:
                    columns[:, j] = np.interp(at, knots, np.arange(width) == j)
        if part.marked:
            absent[-1] = 1.0
        names, made, middle = names + own, [*made, columns], [*middle, absent]
    weights, coefficients = np.hstack(made), model.values(names)
    mean = weights.mean(axis=0)
    level = float(mean @ coefficients)
    missing = float(np.concatenate(middle) @ coefficients) - level
    if abs(missing) < _ROUNDING * np.abs(coefficients).max():
        missing = 0.0
    return Effect(
        column,
        tuple(kind.own_units(at)),
        tuple((weights @ coefficients - level).tolist()),
        **model.scatter(names, weights - mean),
        level=level,
        straight=None if line is None or kind.shape is not None else (float(model.values([line])[0]), line),
        missing=missing if kind.marked else None,
        steps=jumps,
        dated=kind.counted_as == "date",
        logarithmic=kind.transform in ("log1p", "log"),
    )


def limits(shown: Sequence[Effect]) -> tuple[float, float]:
    """Return between which numbers columns are drawn on one scale: bands may be many times as high as curves.

    It is curves that are to be seen, so bands are cut off half their height above and below them.
    """
    values = [value for effect in shown for value in effect.y]
    ends = [v + sign * w for e in shown if e.band for v, w in zip(e.y, e.band, strict=True) for sign in (-1, 1)]
    low, high = min(values), max(values)
    room = (high - low) / 2
    return max(min(values + ends), low - room), min(max(values + ends), high + room)


def svg(effect: Effect, lowest: float, highest: float) -> str:
    """Return a small picture of a number's curve, on a scale that several share; it has no words."""
    width, height = 160.0, 44.0
    span = (highest - lowest) or 1.0
    place = np.arange(len(effect.x)) if effect.logarithmic else np.array(effect.x)
    across = (place - place[0]) / ((place[-1] - place[0]) or 1.0) * width

    def line(values: np.ndarray[Any, Any]) -> list[str]:
        up = height - (np.clip(values, lowest, highest) - lowest) / span * height
        return [f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True)]

    y = np.array(effect.y)
    shade = ""
    if effect.band:
        band = np.array(effect.band)
        around = " ".join([*line(y - band), *reversed(line(y + band))])
        shade = f'<polygon points="{around}" fill="currentColor" opacity="0.25"/>'
    zero = height + lowest / span * height
    axis = f'<line x1="0" x2="{width:g}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="currentColor" opacity="0.3"/>'
    curve = f'<polyline points="{" ".join(line(y))}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" aria-hidden="true">'
        f"{shade}{axis}{curve}</svg>"
    )


def plot(release: Release, columns: Sequence[str] | None = None, reference: Mapping[str, str] | None = None) -> Any:
    """Draw what each column adds; see :meth:`expost.AccuracyFirstModel.plot`."""
    try:
        from expost.release.figure import ShownFigure
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'expost[plot]'") from None
    found = effects(release, reference)
    if columns is not None:
        known = {effect.column: effect for effect in found}
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r} in the model; known are {listed(known, 20)}")
        found = [known[name] for name in columns]
    across = min(3, len(found))
    down = math.ceil(len(found) / across)
    figure = ShownFigure(figsize=(4.2 * across, 2.9 * down + 0.8), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    theme = _Theme.of(figure)
    low, high = limits(found)  # one scale for all, so that columns can be compared
    room = 0.05 * (high - low) or 1e-12
    for axis, effect in zip(axes.flat, found, strict=False):
        _draw(axis, effect, theme)
        against = "" if effect.reference is None else f", against {_cut(effect.reference)}"
        axis.set_title(fill(f"{_cut(effect.column)}{against}", 44), fontsize=10, loc="left", parse_math=False)
        axis.set_ylim(low - room, high + room)
        axis.axhline(0.0, color=theme.quiet, alpha=0.5, lw=0.8, zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    schema = release.preparation.get("schema", {})
    what = _cut(release.target or "the target")
    what = f"{schema['target_transform']}({what})" if "target_transform" in schema else what
    if "classes" in schema:
        what = f"the sum that says {_cut(schema['classes'][1])} where it is positive"
    banded = any(effect.band for effect in found)
    title = fill(f"what each column adds to {what}; curves around their own mean", 50 * across)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left", parse_math=False)
    said = fill(BAND if banded else "how far noise moves this model is not stated in its release", 66 * across)
    worst = max((value for effect in found for value in effect.worst), default=0.0)
    if worst:
        beyond = f"at worst, whatever the rows are: ± {up(worst, 2)}; what is wider is cut off at the edges"
        said += f"\n{fill(beyond, 66 * across)}"
    figure.supxlabel(said, fontsize=8, color=theme.quiet)
    return figure


@dataclass(frozen=True)
class _Theme:
    """Colours that can be read on the ground that the caller's style has: of lines and bars, and of what is beside."""

    shown: str
    quiet: str
    shade: float

    @classmethod
    def of(cls, figure: Any) -> _Theme:
        return cls("#0072B2", "0.4", 0.18) if figure.bright else cls("#56B4E9", "0.7", 0.3)


def _cut(label: str) -> str:
    return label if len(label) <= 22 else f"{label[:21]}…"


def _draw(axis: Any, effect: Effect, theme: _Theme) -> None:
    if effect.labels:
        shown = [_cut(label) for label in effect.labels]
        if len(shown) > 20:  # names would lie on top of each other
            shown = [""] * len(shown)
            axis.set_xlabel(f"{len(effect.labels)} categories", fontsize=8)
        axis.bar(
            effect.x,
            effect.y,
            yerr=effect.band or None,
            color=theme.shown,
            alpha=0.8,
            error_kw={"lw": 0.8, "ecolor": theme.quiet},
        )
        axis.set_xticks(effect.x, shown, rotation=40, ha="right", rotation_mode="anchor", parse_math=False)
        return
    x: Any = np.array(effect.x)
    if effect.dated:
        x = (x * 86_400_000).round().astype("datetime64[ms]")
        axis.tick_params(axis="x", rotation=30)
    if effect.logarithmic:
        axis.set_xscale("symlog" if effect.x[0] < 1 else "log")
    y = np.array(effect.y)
    if effect.band:
        axis.fill_between(
            x, y - np.array(effect.band), y + np.array(effect.band), color=theme.shown, alpha=theme.shade, lw=0
        )
    axis.plot(x, y, color=theme.shown, lw=1.6)
