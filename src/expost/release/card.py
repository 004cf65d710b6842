"""The model card: the formula in the caller's units, where it is valid, how much of it is noise, how not to read it.

*How far noise scatters each coefficient by itself* is in `expost.release.effects`.

How far noise may have moved each coefficient, from public numbers alone.

*Noise on the parameters* (output perturbation). What is released is θ* + b, θ* the parameters that the same rows and
regularization give without noise. With Laplace noise |b_j| > (Δ/ε)·ln(1/δ) has probability δ; with spherical noise
‖b‖₂ is Δ/ε times a Gamma(p) variable, which bounds every |b_j|. A search over T levels released one of T draws, so
δ/T is taken for each: whichever was released, all is well with probability 1 − δ for each coefficient. Only where θ was
not rescaled into its ball, which shows in its length: a rescaled θ is nearer to θ* as a whole, but single parameters
need not be. (The noise is discrete, on a grid of far below a ten-thousandth of its scale; widths have that much added.)

*A promised excess risk.* L is λ-strongly convex, so L(θ) − L(θ*) ≤ α gives ‖θ − θ*‖₂ ≤ √(2α/λ) with the probability of
the promise, for the unconstrained optimum. That is a bound over all rows there could be, most of them far kinder.

*Noise on the gradient* (objective perturbation). θ solves ∇L(θ) = −b/n, so ‖θ − θ*‖₂ ≤ ‖b‖₂/(nλ), and a quantile of
the right side is public (`expost.mechanisms.objective.perturbation`). A later level is drawn to the model of the one
before, which has noise too. θ* is a prox point of that centre, and prox points are no further apart than their centres;
so the sum over levels, each failing with half the probability of the last, bounds how far θ is from where the same
levels would have led without noise (``noise_reach``). How much of it one coefficient gets is decided by the curvature
of the loss over the rows, which is not public: again a bound over all rows there could be.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaincinv

from expost.release.effects import BAND, Effect, effects, limits, svg, units
from expost.release.scoring import SchemaScorer, Scorer, scorer_of
from expost.release.words import weighed
from expost.shown import down, number, one_line, up

if TYPE_CHECKING:
    from expost.release.release import Release


# --- HTML and SVG in small pieces; every text that comes from a release goes through `text`


def text(value: object) -> str:
    """Return a text with everything escaped that HTML could take for markup, or a browser for a direction of reading.

    Examples
    --------
    >>> text("<script>")
    '&lt;script&gt;'
    """
    return html.escape(one_line(value), quote=True)


def named(value: object) -> str:
    """Return a name or label as :func:`text` does, in its own direction of reading: what stands around keeps its place.

    Examples
    --------
    >>> named("<a>")
    '<bdi>&lt;a&gt;</bdi>'
    """
    return f"<bdi>{text(value)}</bdi>"


def section(label: str, *content: str) -> str:
    """Return a row of the sheet: a label and what belongs to it (already markup)."""
    return f"<section><h2>{text(label)}</h2><div>{''.join(content)}</div></section>\n"


def bullets(items: Iterable[str]) -> str:
    """Return a list of texts, escaped."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table of texts, escaped; some columns are set as numbers."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}{' class=n' if j in numbers else ''}>{text(cell)}</{tag}>" for j, cell in enumerate(row))

    head = f"<thead><tr>{cells(headings, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def bar(parts: Sequence[tuple[float, str]], whole: float, described: str) -> str:
    """Return a bar of parts, each with a class for its colour, along a whole; what is left of it stays empty."""
    width, height = 600.0, 16.0
    drawn, at = [], 0.0
    for size, kind in parts:
        wide = width * size / whole if whole > 0 else 0.0
        wide = min(max(wide, 2.0), width - at)  # a part that was paid is seen, however small
        drawn.append(f'<rect class="{kind}" x="{at:.2f}" y="0" width="{wide:.2f}" height="{height:g}"/>')
        at += wide
    return (
        f'<svg class="bar" viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(described)}"><rect class="rest" x="0" y="0" width="{width:g}" height="{height:g}"/>'
        f"{''.join(drawn)}</svg>"
    )


# --- how much of it is noise

COVERAGE = 0.9
_REFERENCE = "the coefficient that the same rows, bounds and regularization would have given without noise"

_LEVELS = "the coefficient that the same rows, bounds and levels of the search would have given without noise"


@dataclass(frozen=True)
class Interval:
    """What can be said about the noise in coefficients.

    Attributes
    ----------
    width
        Half the length of the interval in scaled units, the same for every parameter; None if there is none.
    kind
        ``"interval"``, ``"bound"`` (true for all rows there could be, and wide) or ``"none"``.
    statement
        What exactly it covers, or why there is none.
    """

    width: float | None
    kind: str
    statement: str


def noise_interval(release: Release) -> Interval:
    """Say how far noise may have moved the parameters of a released model.

    Examples
    --------
    >>> from expost.release import Release
    >>> release = Release(
    ...     status="released",
    ...     method="fixed",
    ...     perturbation="output",
    ...     epsilon_generation=2.0,
    ...     hypothesis=[0.5, 0.1],
    ...     parameters={"noise_sensitivity": 0.02, "radius": 3.0},
    ... )
    >>> found = noise_interval(release)
    >>> found.kind, round(found.width, 4)
    ('interval', 0.023)
    """
    if math.isinf(release.epsilon):
        return Interval(None, "none", "There is no noise: this is the model of the rows themselves.")
    if release.epsilon_generation == 0:
        return Interval(
            None, "none", "No noise was added: the model is one that was settled before any row was looked at."
        )
    found = _on_parameters(release) or _by_promise(release) or _on_gradient(release)
    return found or Interval(
        None, "none", "The release holds no public number from which the noise in a coefficient could be bounded."
    )


def _on_parameters(release: Release) -> Interval | None:
    sensitivity = release.parameters.get("noise_sensitivity")
    if sensitivity is None or release.perturbation != "output" or release.method == "doubling":
        return None
    if release.continues is not None or release.unit != "row":
        return None  # a level chosen after others were seen; a loss that is charged for several rows
    theta = np.asarray(release.hypothesis, dtype=np.float64)
    radius = release.parameters.get("radius")
    if radius is None or np.linalg.norm(theta) > 0.999 * radius:
        return None  # perhaps rescaled: then single parameters are no longer the noisy ones
    levels = release.n_levels or 1
    scale, rare = sensitivity / release.epsilon_generation, (1 - COVERAGE) / levels
    quantile = math.log(1 / rare) if release.noise == "exact" else float(gammaincinv(theta.size, 1 - rare))
    several = "" if levels == 1 else f", whichever of the {levels} levels was released"
    return Interval(
        scale * quantile * (1 + 1e-4),
        "interval",
        f"Each interval covers {_REFERENCE} with probability {100 * COVERAGE:.0f} % over the noise{several}. It says "
        f"nothing about other rows than these.",
    )


def _by_promise(release: Release) -> Interval | None:
    promise = release.promise
    alpha, lam, chance = promise.excess_risk, promise.regularization, promise.failure_probability
    if alpha is None or not lam or chance is None or "unconstrained optimum" not in promise.statement:
        return None
    return Interval(
        math.sqrt(2 * alpha / lam),
        "bound",
        f"A bound, not an estimate: it follows from the promised excess risk and the regularization alone, and covers "
        f"{_REFERENCE} with probability at least {down(100 * (1 - chance))} % over the noise, for all rows there could "
        f"be. For most rows the noise is far smaller; how much smaller is not public.",
    )


def _on_gradient(release: Release) -> Interval | None:
    reach, coverage = (release.parameters.get(f"noise_reach{name}") for name in ("", "_coverage"))
    if reach is None or coverage is None:
        return None
    length = float(np.linalg.norm(np.asarray(release.hypothesis, dtype=np.float64)))
    return Interval(
        reach,
        "bound",
        f"A bound, not an estimate: the noise went into the fit, and how far it moved one coefficient depends on the "
        f"rows, which are not shown. Each bound covers {_LEVELS} with probability at least {down(100 * coverage)} % "
        f"over the noise, for all rows there could be: all parameters together are moved by at most {up(reach, 3)} in "
        f"scaled units, where their own length is {length:.3g}. For most rows the move is far smaller.",
    )


_TERMS = 12  # a longer formula is read column by column
_LONG = 9  # longer lists of categories may be broken
_TRANSFORMED = {"log1p": "; ln(1 + value) counts", "sqrt": "; its square root counts", "log": "; its logarithm counts"}


def card(release: Release, reference: Mapping[str, str] | None = None) -> str:
    """Return the card as markup; nothing for a release without a model.

    ``reference`` names the category that others of its column are shown against, by column.
    """
    if release.hypothesis is None or "coef" not in release.parameters:
        return ""
    scorer, interval = scorer_of(release), noise_interval(release)
    shown = [] if not isinstance(scorer, SchemaScorer) else effects(release, reference)
    if reference and not shown:
        raise ValueError("this model has no columns of categories, so none is shown against another")
    return "".join(
        [
            f"<header><h1>The model</h1><p>Release <code>{text(release.id)}</code></p></header>\n",
            section("Formula", *_formula(release, scorer, shown)),
            '<div class="pair">',
            section("How not to read it", bullets(_warnings(release, interval))),
            section("Noise", *_noise(interval, shown)),
            "</div>\n",
            *_added(release, scorer, shown, interval),
        ]
    )


def _noise(interval: Interval, shown: Sequence[Effect]) -> list[str]:
    """Say how much of the numbers is noise: of each by itself where that is known, and of all together."""
    said = []
    if any(effect.band for effect in shown):
        said.append(
            "± … typical noise: one standard deviation over the noise, estimated from what is public or released "
            "anyway, so it costs nothing. Often it is up to three times too much, and tens of times where columns tell "
            "much of the target, for it cannot see that from the rows; rarely it is too little. It is no bound, and "
            "says nothing about how other rows would differ."
        )
    if any(effect.worst for effect in shown):
        said.append(
            "± … at worst: drawn again from the same rows at the same levels, a number would have no larger standard "
            "deviation, whatever the rows are. For most rows this is many times too much."
        )
    elif said:
        said.append("What it is at worst, whatever the rows are, is not known for a model that was made this way.")
    return [f"<p>{text(line)}</p>" for line in said or [interval.statement]]


def _added(release: Release, scorer: Scorer, shown: Sequence[Effect], interval: Interval) -> list[str]:
    """Return what each column adds: a small block for each, on one scale; a plain table where there is no schema."""
    if not isinstance(scorer, SchemaScorer):
        found = _coefficients(release, scorer, interval)
        return [section("Coefficients", found), section("Valid for", *_valid(release))]
    bars = [value for effect in shown for value in effect.y]
    reach = {True: (min(bars), max(bars)), False: limits(shown)}
    schema = scorer.encoding.schema
    stated = schema.to_dict()["columns"]
    blocks = "".join(
        f'<div class="effect{" long" if len(effect.labels) > _LONG else ""}"><h3>{named(effect.column)}</h3>'
        f"<p>{text(_domain(stated[effect.column], schema.kinds[effect.column], effect))}</p>"
        f"{_drawn(effect, reach, interval)}</div>"
        for effect in shown
    )
    said = (
        "What each column adds to the sum: curves around their own mean between the bounds, categories against the "
        "reference, which is the first one listed or was chosen. All bars are on one scale, and all curves on another. "
        "Other values are moved to the nearest bound."
    )
    note = (
        f" The {BAND}; it is cut off at the edges."
        if any(effect.band and not effect.labels for effect in shown)
        else ""
    )
    return [
        f'<section class="wide"><h2>What each column adds</h2><p>{text(said + note)}</p>'
        f'<div class="effects">{blocks}</div></section>\n'
    ]


def _drawn(effect: Effect, reach: Mapping[bool, tuple[float, float]], interval: Interval) -> str:
    """Return the picture of a column: a curve with its band, or a row with a bar for each category.

    ``reach`` says between which numbers bars lie, and curves.
    """
    lowest, highest = reach[bool(effect.labels)]
    span = (highest - lowest) or 1.0
    times = 1.0 if effect.straight is None else 2.0  # a line is told from end to end, and drawn from its middle
    noise = [f"± {up(times * max(effect.band), 2)} typical noise"] if effect.band else []
    if effect.worst:
        noise.append(f"± {up(times * max(effect.worst), 2)} at worst")
    elif interval.width is not None:
        noise.append(f"± {up(times * interval.width * max(effect.lengths), 2)} {_sort(interval)}")
    rows = []
    if effect.labels:
        shown = zip(effect.labels, effect.y, strict=True)
        rows = [(name, value, name == effect.reference) for name, value in shown]
    if effect.missing is not None:
        rows.append(("(missing)", effect.missing, False))
    made = "" if effect.labels else f"{svg(effect, lowest, highest)}<p>{text(_ends(effect))}</p>"
    made += f"<p>{text(('each ' if effect.labels else '') + ', '.join(noise))}</p>" if noise else ""
    lines = []
    for name, value, chosen in rows:
        left, right = sorted((100 * (0.0 - lowest) / span, 100 * (min(max(value, lowest), highest) - lowest) / span))
        bar_of = f'<rect class="bars" x="{left:.1f}" y="1" width="{max(right - left, 0.5):.1f}" height="6"/>'
        drawn = f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{bar_of}</svg>'
        figure = "reference" if chosen else number(_as_fine(value, effect), 3)
        lines.append(f"<tr><td>{named(name)}</td><td>{drawn}</td><td class=n>{text(figure)}</td></tr>")
    return made + (f"<table><tbody>{''.join(lines)}</tbody></table>" if lines else "")


def _ends(effect: Effect) -> str:
    """Say between what a number's part in the sum lies."""
    if effect.straight is not None:
        slope, along = effect.straight
        each = "" if along == effect.column else f" of {along}"
        return f"{number(slope, 3)} for each 1{each}; {number(effect.y[-1] - effect.y[0], 3)} from end to end"
    low, high = (number(_as_fine(value, effect), 3) for value in (min(effect.y), max(effect.y)))
    return f"from {low} to {high}"


def _as_fine(value: float, effect: Effect) -> float:
    """Round to what typical noise leaves to be seen: digits far below it would say nothing."""
    noise = max(effect.band, default=0.0)
    return round(value, 1 - math.floor(math.log10(noise))) if noise > 0.0 else value


def _formula(release: Release, scorer: Scorer, shown: Sequence[Effect]) -> list[str]:
    target = named(release.target or "the target")
    target = target if scorer.transform is None else f"{text(scorer.transform)}({target})"
    constant, terms = release.parameters["intercept"], _terms(release, shown)
    if len(terms) > _TERMS:
        constant += math.fsum(effect.level for effect in shown)
        added = "what the columns below add" if shown else "the coefficients below times their columns"
        right = f"{number(constant)} + {added}"
    else:
        constant += math.fsum(effect.level for effect in shown if effect.straight is None)
        right = number(constant) + "".join(terms)
    if scorer.classes is None:
        low, high = scorer.target or (-1.0, 1.0)
        own = (
            "" if scorer.transform is None else f"; {named(release.target or 'the target')} is what has that transform"
        )
        return [f"<p class=formula>{target} = {right}</p><p>kept within {number(low)} and {number(high)}{own}</p>"]
    negative, positive = map(named, scorer.classes)
    said = [f"<p class=formula>{target} = {positive} when {right} &gt; 0,<br>otherwise {negative}</p>"]
    if scorer.largest_odds is not None:
        most = "" if math.isinf(scorer.largest_odds) else f", moved into ±{number(scorer.largest_odds)} first"
        said.append(f"<p>The sum is the log odds of {positive}{most}: its probability is 1/(1 + e<sup>−sum</sup>).</p>")
    return said


def _terms(release: Release, shown: Sequence[Effect]) -> list[str]:
    """Return what is added to the constant, term by term: the lines of numbers, curves, categories but the reference.

    Where terms are written out, the constant holds the references of categories and the means of curves.
    """
    if not shown:
        columns = zip(release.parameters["columns"], release.parameters["coef"], strict=True)
        return [_term(value, named(name)) for name, value in columns]
    terms = []
    for effect in shown:
        column = named(effect.column)
        if effect.straight is not None:
            terms.append(_term(effect.straight[0], named(effect.straight[1])))
        elif not effect.labels:
            terms.append(f" + the curve of {column}")
        of = zip(effect.labels, effect.y, strict=False)
        terms += [_term(y, f"[{column} = {named(label)}]") for label, y in of if label != effect.reference]
        if effect.missing is not None:
            terms.append(_term(effect.missing, f"[{column} missing]"))
    return terms


def _term(value: float, what: str) -> str:
    return f" {'−' if value < 0 else '+'} {number(abs(value))}·<wbr>{what}"


def _coefficients(release: Release, scorer: Scorer, interval: Interval) -> str:
    """Return the coefficients of a model of numbers within bounds."""
    names, values = release.parameters["columns"], release.parameters["coef"]
    rows = [[str(name), number(value)] for name, value in zip(names, values, strict=True)]
    if interval.width is None:
        return table(["column", "coefficient"], rows, numbers=(1,))
    for row, unit in zip(rows, units(scorer), strict=True):
        row.append(f"± {up(interval.width * abs(float(unit)), 2)}")
    return table(["column", "coefficient", f"noise, {_sort(interval)}"], rows, numbers=(1, 2))


def _sort(interval: Interval) -> str:
    return f"{100 * COVERAGE:.0f} %" if interval.kind == "interval" else "at worst"


def _valid(release: Release) -> list[str]:
    bounds = release.preparation.get("bounds")
    if bounds is None:
        limit = number(release.preparation["feature_bound"])
        return [f"<p>Rows whose absolute values add up to at most {limit}; longer ones are shrunk to that.</p>"]
    ends = zip(release.parameters["columns"], bounds["lower"], bounds["upper"], strict=True)
    within = [(str(name), f"{number(low)} to {number(high)}") for name, low, high in ends]
    moved = "<p>Numbers outside their bounds are moved to the nearest bound.</p>"
    return [moved, table(["column", "can hold"], within)]


def _domain(stated: dict[str, Any], kind: Any, effect: Effect) -> str:
    """Say what a column can hold, where that is not a bar, and what becomes of a missing cell."""
    said = []
    if "bounds" in stated:
        transform = _TRANSFORMED.get(stated.get("transform", ""), "")
        low, high = (end if isinstance(end, str) else number(end) for end in stated["bounds"])
        said.append(f"{low} to {high}{transform}{_bend(kind)}")
    said += ["from lowest to highest"] if stated.get("ordered") else []
    if effect.missing is None and "(missing)" not in effect.labels:
        said.append(f"missing: {'(other)' if stated.get('missing') == 'other' else 'the middle'}")
    return "; ".join(said)


def _bend(kind: Any) -> str:
    """Say what a number's part in the model looks like, if it is no straight line."""
    shape = getattr(kind, "shape", None)
    if shape is None:
        return ""
    beside = "a straight line and " if len(kind.parts) > 1 else ""
    return f"; {beside}{shape.width} steps" if shape.steps else f"; a curve with {shape.width} knots"


def _warnings(release: Release, interval: Interval) -> list[str]:
    short = ["It is short of its goal: it is the best model of a search that found none that was good enough."]
    said = [
        *(short if release.status == "short" else []),
        *(f"{found[:1].upper()}{found[1:]}." for found in (weighed(release),) if found),
        "What a column adds is no effect: columns stand for each other, and changing one in the world need not change "
        "the target.",
        "Numbers are drawn towards zero by the regularization, and moved by noise. A small one, of either sign, says "
        "nothing.",
        "The promise is about the rows the model was fitted to. On others it may be better or worse."
        if not release.held_out
        else f"The promise is about new {release.unit}s drawn as these were. On others it may be better or worse.",
    ]
    if interval.kind != "interval":
        said.append("No test of significance can be made of these numbers.")
    said.append(
        f"Using the model costs nothing more. Fitting again to the same rows does: every release about a "
        f"{release.unit} adds to the last."
    )
    return said
