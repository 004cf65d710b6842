"""The model card: the formula in the caller's units, where it is valid, how much of it is noise, how not to read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expost.privacy.scoring import SchemaScorer, Scorer, scorer_of
from expost.privacy.words import unit_of
from expost.report.intervals import COVERAGE, Interval, noise_interval, units
from expost.report.markup import bullets, number, section, table, text

if TYPE_CHECKING:
    from expost.privacy.release import Release

__all__ = ["card"]

_TERMS = 12  # a longer formula is read in the table
_CATEGORIES = 12
_TRANSFORMED = {"log1p": "; ln(1 + value) counts", "sqrt": "; its square root counts"}


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
            section("Valid for", *_valid(release, scorer)),
            section("How not to read it", bullets(_warnings(release, interval))),
        ]
    )


def _formula(release: Release, scorer: Scorer) -> list[str]:
    target = text(release.target or "the target")
    names, values = release.parameters["columns"], release.parameters["coef"]
    right = number(release.parameters["intercept"])
    if len(names) > _TERMS:
        right += " + each coefficient below times its column"
    else:
        right += "".join(_term(name, value) for name, value in zip(names, values, strict=True))
    if scorer.classes is None:
        low, high = scorer.target or (-1.0, 1.0)
        return [f"<p class=formula>{target} = {right}</p><p>kept within {number(low)} and {number(high)}</p>"]
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
        rows.append(row + ([] if interval.width is None else [f"± {number(interval.width * abs(float(unit)), 2)}"]))
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
    if isinstance(scorer, SchemaScorer):
        columns = scorer.encoding.schema.to_dict()["columns"]
        rows = [(name, _domain(stated), _missing(stated)) for name, stated in columns.items()]
        return [
            "<p>Numbers outside their bounds are moved to the nearest bound.</p>",
            table(["column", "can hold", "if it is missing"], rows),
        ]
    bounds = release.preparation.get("bounds")
    if bounds is None:
        limit = number(release.preparation["feature_bound"])
        return [f"<p>Rows whose absolute values add up to at most {limit}; longer ones are shrunk to that.</p>"]
    within = [
        (str(name), f"{number(low)} to {number(high)}")
        for name, low, high in zip(release.parameters["columns"], bounds["lower"], bounds["upper"], strict=True)
    ]
    return [
        "<p>Numbers outside their bounds are moved to the nearest bound.</p>",
        table(["column", "can hold"], within),
    ]


def _domain(stated: dict[str, Any]) -> str:
    if "bounds" in stated:
        transform = _TRANSFORMED.get(stated.get("transform", ""), "")
        return f"{number(stated['bounds'][0])} to {number(stated['bounds'][1])}{transform}"
    if "categories" in stated:
        listed = [str(value) for value in stated["categories"]]
        more = len(listed) - _CATEGORIES
        shown = ", ".join(listed[:_CATEGORIES]) + (f" and {more} more (above)" if more > 0 else "")
        return f"{shown}; others count together" if stated.get("other") else shown
    return "true or false"


def _missing(stated: dict[str, Any]) -> str:
    kind = stated.get("missing", "indicator" if "categories" in stated else "middle")
    return {
        "indicator": "has a coefficient of its own",
        "middle": "counts as the middle",
        "other": "is one of the others",
        "zero": "counts nothing",
    }[kind]


def _warnings(release: Release, interval: Interval) -> list[str]:
    said = [
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
        f"{unit_of(release)} adds to the last."
    )
    return said
