"""What each column adds to a model, as pictures: curves for numbers, bars for categories, and what noise leaves.

Everything is read off a release; no row is looked at. What a column adds is shown around its mean over the picture, as
the constant takes up the rest.

*The band.* Noise b moves a coefficient that no row bears on by b_j/(nλ), and others the less the more rows there are:
how much less depends on the rows, which are not shown. The band is what nine draws of ten leave where there are hardly
any rows, for noise of its typical size that is shared out evenly among the columns that the model was drawn with: an
estimate, and said to be one. (The bound of `expost.release.card` is on all parameters together, and far wider.)
Releases that do not state their typical noise have no band.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.release.scoring import SchemaScorer, scorer_of

if TYPE_CHECKING:
    from expost.release.release import Release

BAND = "band: what noise typically leaves of a value with hardly any rows, less where there are many (an estimate)"
_WIDTH = 1.64  # standard deviations: nine draws of ten
_POINTS = 101


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
        Half its height; None if nothing is known of it.
    steps, dated, logarithmic
        Whether it jumps, what x is, and how it is best shown.
    """

    column: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    labels: tuple[str, ...] = ()
    band: float | None = None
    steps: bool = False
    dated: bool = False
    logarithmic: bool = False


def effects(release: Release) -> list[Effect]:
    """Return what each column of a table with a schema adds to the model, in the order of the schema.

    What is added is in units of the target (after its transform), or of the sum whose sign decides.
    """
    scorer = scorer_of(release)
    if not isinstance(scorer, SchemaScorer):
        raise ValueError("only models of tables with a schema are drawn")
    if "coef" not in release.parameters:
        raise ValueError("this release states no coefficients")
    coefficients = dict(zip(release.parameters["columns"], release.parameters["coef"], strict=True))
    made = dict(_parts(release, scorer, coefficients))
    return [made[name] for name in scorer.encoding.schema.columns]


def _parts(release: Release, scorer: SchemaScorer, coefficients: dict[str, float]) -> Iterator[tuple[str, Effect]]:
    kinds, band = scorer.encoding.schema.kinds, _band(release, scorer)
    for column, kind in kinds.items():
        values = [(part, [coefficients[name] for name in part.names(column)]) for part in kind.parts]
        if hasattr(kind, "bounds"):
            yield column, _number(column, kind, values, band)
            continue
        (_, bars) = values[-1]
        names = [name.removeprefix(f"{column}=") for name in kind.names(column)]
        if not hasattr(kind, "categories"):  # true or false
            names, bars = ["false", "true", *names[1:]], [0.0, *bars]
        shown = tuple((np.array(bars) - np.mean(bars)).tolist())
        yield column, Effect(column, tuple(map(float, range(len(bars)))), shown, tuple(names), band)


def _number(column: str, kind: Any, values: Sequence[tuple[Any, list[float]]], band: float | None) -> Effect:
    """Return the curve of a number: its parts added up along its bounds."""
    low, high = float(kind.scaled.lower[0]), float(kind.scaled.upper[0])
    inner = [] if kind.shape is None else list(kind.shape.knots)
    jumps = kind.shape is not None and kind.shape.steps
    at = np.unique([*np.linspace(low, high, _POINTS), *inner, *(np.nextafter(inner, -np.inf) if jumps else [])])
    at = at[(at >= low) & (at <= high)]
    total = np.zeros(len(at))
    for part, found in values:
        if part.shape is None:
            total += found[0] * at
        elif part.shape.steps:
            total += np.array(found)[np.searchsorted(np.array(part.shape.knots)[1:-1], at, side="right")]
        else:
            total += np.interp(at, part.shape.knots, found[: part.shape.width])
    own = kind.own_units(at)
    dated = kind.counted_as == "date"
    skewed = kind.transform in ("log1p", "log")
    return Effect(column, tuple(own), tuple((total - total.mean()).tolist()), (), band, jumps, dated, skewed)


def _band(release: Release, scorer: SchemaScorer) -> float | None:
    """Return the estimate that the module's text explains, in the units that coefficients are shown in."""
    noise, shrinkage = (release.parameters.get(name) for name in ("typical_noise", "regularization"))
    if noise is None or shrinkage is None:
        return None
    columns = release.parameters.get("noisy_columns", len(scorer.theta))
    half = 1.0 if scorer.target is None else (scorer.target[1] - scorer.target[0]) / 2
    return float(_WIDTH * noise / math.sqrt(columns) / shrinkage / scorer.encoding.scale * half)


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
    if effect.band is not None:
        around = " ".join([*line(y - effect.band), *reversed(line(y + effect.band))])
        shade = f'<polygon points="{around}" fill="currentColor" opacity="0.15"/>'
    zero = height + lowest / span * height
    axis = f'<line x1="0" x2="{width:g}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="currentColor" opacity="0.3"/>'
    curve = f'<polyline points="{" ".join(line(y))}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" aria-hidden="true">'
        f"{shade}{axis}{curve}</svg>"
    )


def plot(release: Release, columns: Sequence[str] | None = None) -> Any:
    """Draw what each column adds; see :meth:`expost.AccuracyFirstModel.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'expost[plot]'") from None
    found = effects(release)
    if columns is not None:
        known = {effect.column: effect for effect in found}
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise ValueError(f"there is no column {unknown[0]!r} in the model; known are {', '.join(known)}")
        found = [known[name] for name in columns]
    across = min(3, len(found))
    down = math.ceil(len(found) / across)
    figure = Figure(figsize=(4.2 * across, 2.9 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    reach = [abs(value) + (effect.band or 0.0) for effect in found for value in effect.y]
    most = 1.05 * max([*reach, 1e-12])  # one scale for all, so that columns can be compared
    for axis, effect in zip(axes.flat, found, strict=False):
        _draw(axis, effect)
        axis.set_title(effect.column, fontsize=10, loc="left")
        axis.set_ylim(-most, most)
        axis.axhline(0.0, color="0.8", lw=0.8, zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    schema = release.preparation.get("schema", {})
    what = release.target or "the target"
    what = f"{schema['target_transform']}({what})" if "target_transform" in schema else what
    if "classes" in schema:
        what = f"the sum that says {schema['classes'][1]} where it is positive"
    banded = any(effect.band is not None for effect in found)
    figure.suptitle(f"what each column adds to {what}, around its mean", fontsize=11, x=0.01, ha="left")
    figure.supxlabel(BAND if banded else "what noise leaves is not stated in this release", fontsize=8, color="0.4")
    return figure


def _draw(axis: Any, effect: Effect) -> None:
    if effect.labels:
        shown = [label if len(label) <= 22 else f"{label[:21]}…" for label in effect.labels]
        if len(shown) > 16:  # names would lie on top of each other
            shown = [""] * len(shown)
            axis.set_xlabel(f"{len(effect.labels)} categories", fontsize=8)
        axis.bar(
            effect.x, effect.y, yerr=effect.band, color="#0072B2", alpha=0.8, error_kw={"lw": 0.8, "ecolor": "0.4"}
        )
        axis.set_xticks(effect.x, shown, rotation=40, ha="right", rotation_mode="anchor")
        return
    x: Any = np.array(effect.x)
    if effect.dated:
        x = (x * 86_400_000).round().astype("datetime64[ms]")
        axis.tick_params(axis="x", rotation=30)
    if effect.logarithmic:
        axis.set_xscale("symlog" if effect.x[0] < 1 else "log")
    y = np.array(effect.y)
    if effect.band is not None:
        axis.fill_between(x, y - effect.band, y + effect.band, color="#0072B2", alpha=0.18, lw=0)
    axis.plot(x, y, color="#0072B2", lw=1.6)
