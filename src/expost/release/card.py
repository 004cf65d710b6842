"""The model card: the formula in the caller's units, where it is valid, how much of it is noise, how not to read it.

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
the right side is public (`expost.mechanisms.objective.mechanism`). A later level is drawn to the model of the one
before, which has noise too. θ* is a prox point of that centre, and prox points are no further apart than their centres;
so the sum over levels, each failing with half the probability of the last, bounds how far θ is from where the same
levels would have led without noise (``noise_reach``). How much of it one coefficient gets is decided by the curvature
of the loss over the rows, which is not public: again a bound over all rows there could be.
"""

from __future__ import annotations

import decimal
import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from expost.release.effects import BAND, effects, svg
from expost.release.scoring import BoundsScorer, SchemaScorer, Scorer, scorer_of
from expost.shown import down, one_line, up

if TYPE_CHECKING:
    from expost.release.release import Release


# --- HTML and SVG in small pieces; every text that comes from a release goes through `text`

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def text(value: object) -> str:
    """Return a text with everything escaped that HTML could take for markup, or a browser for a direction of reading.

    Examples
    --------
    >>> text("<script>")
    '&lt;script&gt;'
    """
    return html.escape(one_line(value), quote=True)


def number(value: float, digits: int = 4) -> str:
    """Return a number for people, with a proper minus sign.

    Examples
    --------
    >>> number(-1234.5678), number(0.0012345), number(1e6), number(-1.05e-7)
    ('−1,235', '0.001234', '1,000,000', '−1.05·10⁻⁷')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}".replace("-", "−").replace("inf", "∞")
    size = decimal.Context(prec=digits).create_decimal(repr(abs(float(value))))
    sign = "−" if value < 0 else ""
    if -4 <= size.adjusted() < 9:
        shown = f"{size:,f}"
        return sign + (shown.rstrip("0").rstrip(".") if "." in shown else shown)
    mantissa = f"{size.scaleb(-size.adjusted()):f}"
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{sign}{mantissa}·10{str(size.adjusted()).translate(_RAISED)}"


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


def units(scorer: Scorer) -> npt.NDArray[np.float64]:
    """Return what 1 in each scaled parameter is in the coefficient of the caller's column, the constant left out."""
    if isinstance(scorer, SchemaScorer):
        coefficients, _ = scorer.encoding.to_caller_units(np.ones(len(scorer.theta)))
        return np.array(list(coefficients.values()))
    assert isinstance(scorer, BoundsScorer)
    return scorer.preparation.to_caller_units(np.ones(len(scorer.theta)))[0]


_TERMS = 12  # a longer formula is read in the table
_CATEGORIES = 12
_TRANSFORMED = {"log1p": "; ln(1 + value) counts", "sqrt": "; its square root counts", "log": "; its logarithm counts"}


def card(release: Release) -> str:
    """Return the card as markup; nothing for a release without a model."""
    if release.hypothesis is None or "coef" not in release.parameters:
        return ""
    scorer = scorer_of(release)
    interval = noise_interval(release)
    return "".join(
        [
            f"<header><h1>The model</h1><p>Release <code>{text(release.id)}</code></p></header>\n",
            section("Formula", *_formula(release, scorer)),
            section("Coefficients", f"<p>{text(interval.statement)}</p>", _coefficients(release, scorer, interval)),
            *_pictures(release, scorer),
            section("Valid for", *_valid(release, scorer)),
            section("How not to read it", bullets(_warnings(release, interval))),
        ]
    )


def _pictures(release: Release, scorer: Scorer) -> list[str]:
    """Return the curves of numbers, on one scale; nothing where all of them are straight lines."""
    if not isinstance(scorer, SchemaScorer) or not any(
        getattr(k, "shape", None) for k in scorer.encoding.schema.kinds.values()
    ):
        return []
    numbers = [effect for effect in effects(release) if not effect.labels]
    ends = [value + sign * (effect.band or 0.0) for effect in numbers for value in effect.y for sign in (-1, 1)]
    rows = "".join(
        f"<tr><td>{text(effect.column)}</td><td>{svg(effect, min(ends), max(ends))}</td></tr>" for effect in numbers
    )
    said = "What each number adds between its bounds, around its mean, on one scale; those with a logarithm on that. "
    banded = any(effect.band is not None for effect in numbers)
    note = f"The {BAND}." if banded else "What noise leaves of it is not stated in this release."
    return [section("Curves", f"<p>{text(said + note)}</p><table><tbody>{rows}</tbody></table>")]


def _formula(release: Release, scorer: Scorer) -> list[str]:
    target = text(release.target or "the target")
    target = target if scorer.transform is None else f"{text(scorer.transform)}({target})"
    names, values = release.parameters["columns"], release.parameters["coef"]
    right = number(release.parameters["intercept"])
    if len(names) > _TERMS:
        right += " + each coefficient below times its column"
    else:
        right += "".join(_term(name, value) for name, value in zip(names, values, strict=True))
    if scorer.classes is None:
        low, high = scorer.target or (-1.0, 1.0)
        own = "" if scorer.transform is None else f"; {text(release.target or 'the target')} is what has that transform"
        return [f"<p class=formula>{target} = {right}</p><p>kept within {number(low)} and {number(high)}{own}</p>"]
    negative, positive = map(text, scorer.classes)
    said = [f"<p class=formula>{target} = {positive} when {right} &gt; 0,<br>otherwise {negative}</p>"]
    if scorer.largest_odds is not None:
        most = "" if math.isinf(scorer.largest_odds) else f", moved into ±{number(scorer.largest_odds)} first"
        said.append(f"<p>The sum is the log odds of {positive}{most}: its probability is 1/(1 + e<sup>−sum</sup>).</p>")
    return said


def _term(name: str, value: float) -> str:
    shown = text(name)
    column, found, label = name.partition("=")
    if found:
        shown = f"[{text(column)} = {text(label)}]"
    return f" {'−' if value < 0 else '+'} {number(abs(value))}·<wbr>{shown}"


def _coefficients(release: Release, scorer: Scorer, interval: Interval) -> str:
    names, values = release.parameters["columns"], release.parameters["coef"]
    labels = _labels(scorer, names)
    valued = any(value for _, value in labels)
    rows, last = [], None
    for (column, value), coefficient, unit in zip(labels, values, units(scorer), strict=True):
        row = ["" if column == last else column, *([value] if valued else []), number(coefficient)]
        rows.append(row + ([] if interval.width is None else [f"± {up(interval.width * abs(float(unit)), 2)}"]))
        last = column
    headings = ["column", *(["value"] if valued else []), "coefficient"]
    if interval.width is not None:
        headings.append(f"noise ({100 * COVERAGE:.0f} %)" if interval.kind == "interval" else "noise, bound")
    return table(
        headings, rows, numbers=(len(headings) - 2, len(headings) - 1) if interval.width else (len(headings) - 1,)
    )


def _labels(scorer: Scorer, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return column and value of each encoded column; no value where the column itself counts."""
    if not isinstance(scorer, SchemaScorer):
        return [(str(name), "") for name in names]
    columns = scorer.encoding.schema.columns
    # the longest column that fits: a name may hold an equals sign, and one name may begin like another
    known = sorted(columns, key=len, reverse=True)
    found = [next((name for name in known if encoded.startswith(f"{name}=")), None) for encoded in names]
    return [
        (encoded, "") if name is None else (name, encoded.removeprefix(f"{name}="))
        for encoded, name in zip(names, found, strict=True)
    ]


def _valid(release: Release, scorer: Scorer) -> list[str]:
    moved = "<p>Numbers outside their bounds are moved to the nearest bound.</p>"
    if isinstance(scorer, SchemaScorer):
        schema = scorer.encoding.schema
        rows = [
            (name, _domain(stated, schema.kinds[name]), _missing(stated, schema.kinds[name]))
            for name, stated in schema.to_dict()["columns"].items()
        ]
        return [moved, table(["column", "can hold", "if it is missing"], rows)]
    bounds = release.preparation.get("bounds")
    if bounds is None:
        limit = number(release.preparation["feature_bound"])
        return [f"<p>Rows whose absolute values add up to at most {limit}; longer ones are shrunk to that.</p>"]
    ends = zip(release.parameters["columns"], bounds["lower"], bounds["upper"], strict=True)
    within = [(str(name), f"{number(low)} to {number(high)}") for name, low, high in ends]
    return [moved, table(["column", "can hold"], within)]


def _domain(stated: dict[str, Any], kind: Any) -> str:
    if "bounds" in stated:
        transform = _TRANSFORMED.get(stated.get("transform", ""), "")
        low, high = (end if isinstance(end, str) else number(end) for end in stated["bounds"])
        return f"{low} to {high}{transform}{_bend(kind)}"
    if "categories" in stated:
        listed = [str(value) for value in stated["categories"]]
        more = len(listed) - _CATEGORIES
        shown = ", ".join(listed[:_CATEGORIES]) + (f" and {more} more (above)" if more > 0 else "")
        shown += "; from lowest to highest" if stated.get("ordered") else ""
        return f"{shown}; others count together" if stated.get("other") else shown
    return "true or false"


def _bend(kind: Any) -> str:
    """Say what a number's part in the model looks like, if it is no straight line."""
    shape = getattr(kind, "shape", None)
    if shape is None:
        return ""
    beside = "a straight line and " if len(kind.parts) > 1 else ""
    return f"; {beside}{shape.width} steps" if shape.steps else f"; a curve with {shape.width} knots"


def _missing(stated: dict[str, Any], column: Any) -> str:
    marked = getattr(column, "marked", False)
    kind = stated.get("missing", "indicator" if "categories" in stated or marked else "middle")
    return {
        "indicator": "has a coefficient of its own",
        "middle": "counts as the middle",
        "other": "is one of the others",
        "zero": "counts nothing",
    }[kind]


def _warnings(release: Release, interval: Interval) -> list[str]:
    short = ["It is short of its goal: it is the best model of a search that found none that was good enough."]
    said = [
        *(short if release.status == "short" else []),
        "A coefficient is no effect: columns stand for each other, and changing one in the world need not change the "
        "target.",
        "Coefficients are drawn towards zero by the regularization, and moved by noise. A small one, of either sign, "
        "says nothing.",
        "The promise is about the rows the model was fitted to. On others it may be better or worse.",
    ]
    if interval.kind != "interval":
        said.append("No test of significance can be made of these numbers.")
    said.append(
        f"Using the model costs nothing more. Fitting again to the same rows does: every release about a "
        f"{release.unit} adds to the last."
    )
    return said
