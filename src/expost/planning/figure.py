"""A plan as a picture: each goal, or each method, with what it cost in synthetic tables. Needs matplotlib."""

from __future__ import annotations

import io
import math
from typing import Any

from expost.planning.result import MethodPrice, PricePlan
from expost.shown import down

SUFFIXES = (".png", ".svg", ".pdf")
_BAND, _DOT, _CAP = "#9ecae1", "#08519c", "#a63603"


def picture(plan: PricePlan, suffix: str) -> bytes:
    """Return a plan as a .png, .svg or .pdf file.

    Raises
    ------
    ValueError
        The suffix is another.
    ImportError
        matplotlib is not installed.
    """
    if suffix not in SUFFIXES:
        raise ValueError(f"a plot is a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file, not {suffix}")
    from matplotlib.figure import Figure

    entries = _entries(plan)
    figure: Any = Figure(figsize=(8.0, 1.7 + 0.42 * len(entries)), layout="constrained")
    axes = figure.subplots()
    for place, (_, price) in enumerate(entries):
        _row(axes, place, price)
    axes.set_yticks(range(len(entries)), [label for label, _ in entries])
    axes.set_ylim(len(entries) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.set_xlabel("ε (log scale): band = likely, line = typical, dots = made-up tables, your rows decide")
    if plan.max_epsilon is not None:
        axes.axvline(plan.max_epsilon, color=_CAP, linestyle="--", linewidth=1.2)
        at = (plan.max_epsilon, 1.0)
        axes.annotate(
            f" cap {down(plan.max_epsilon)}",
            at,
            xycoords=("data", "axes fraction"),
            color=_CAP,
            va="bottom",
            ha="center",
        )
    what = f"a model of {plan.columns} columns" if plan.schema is None else f"to predict {plan.schema.target}"
    axes.set_title(f"What it would cost: {what}, {plan.rows:,} rows", loc="left", pad=18)
    axes.grid(axis="x", which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], dpi=150, metadata={"Date": None} if suffix == ".svg" else None)
    return content.getvalue()


def _entries(plan: PricePlan) -> list[tuple[str, MethodPrice]]:
    found = []
    for price in plan.goals:
        alone = len(price.methods) == 1
        for way in price.methods:
            name = price.goal.words if alone else f"{price.goal.words}\n{way.method}, {way.perturbation}"
            found.append((name, way))
    return found


def _row(axes: Any, place: int, price: MethodPrice) -> None:
    paid = [epsilon for epsilon in price.epsilons if math.isfinite(epsilon)]
    if not paid:
        axes.annotate("out of reach", (0.5, place), xycoords=("axes fraction", "data"), ha="center", va="center")
        return
    high = price.high if math.isfinite(price.high) else paid[-1]
    low = min(price.low, high)
    axes.plot([low, high], [place, place], color=_BAND, linewidth=11, solid_capstyle="butt", zorder=1)
    # equal prices are put above one another
    seen: dict[float, int] = {}
    for epsilon in paid:
        seen[epsilon] = seen.get(epsilon, -1) + 1
        shift = 0.08 * ((seen[epsilon] % 7 + 1) // 2) * (-1) ** seen[epsilon]
        axes.plot(epsilon, place + shift, "o", color=_DOT, markersize=2.6, alpha=0.55, zorder=2)
    typical = min(price.typical, high)
    axes.plot([typical, typical], [place - 0.32, place + 0.32], color=_DOT, linewidth=2.0, zorder=3)
