"""The figure of tables.py: quality on test rows against ε, a panel for each table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's colours, told apart by people who see fewer of them; shapes differ as well
LOOKS = {
    "objective": ("objective perturbation", "#D55E00", "s"),
    "output": ("output perturbation", "#009E73", "^"),
    "second moments": ("noisy second moments", "#CC79A7", "D"),
    "diffprivlib": ("diffprivlib", "#E69F00", "v"),
}
PANELS = {"Adult": "Adult", "Diamonds, 80 %": "Diamonds", "generated": "Generated"}


FAR = 10.0  # beyond it a mechanism is only named
TEXT: dict[str, Any] = {"fontsize": 8, "color": "0.35"}


def draw(kept: dict[str, Any], path: Path) -> None:
    """Draw what has been measured so far."""
    names = [name for name in PANELS if f"{name}|about" in kept]
    if not names:
        return
    figure, axes = plt.subplots(1, len(names), figsize=(4.1 * len(names), 4.3), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        panel(axis, name, kept)
    handles: dict[str, Any] = {}
    for axis in axes[0]:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc="lower center", ncols=5, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def panel(axis: Axes, name: str, kept: dict[str, Any]) -> None:
    """Draw one table: the search's curve, the peers' dots and what bounds them."""
    about = kept[f"{name}|about"]
    labels = about["task"] == "classification"
    goals = sorted([*about["goals"], *about["shown"]], reverse=labels)
    own = [kept[key] for key in (f"{name}|{goal}|expost" for goal in goals) if key in kept]
    own = [found for found in own if found["refused"] < found["runs"] / 2]
    epsilon = [found["epsilon"][0] for found in own]
    axis.fill_between(epsilon, *([found["test"][i] for found in own] for i in (1, 2)), color="#0072B2", alpha=0.2, lw=0)
    axis.plot(
        epsilon, [found["test"][0] for found in own], "o-", color="#0072B2", label="expost, with its promise", zorder=5
    )
    for peer, (label, colour, marker) in LOOKS.items():
        found = [kept[key] for key in (f"{name}|{goal}|{peer}" for goal in about["goals"]) if key in kept]
        found = [at for at in found if at["epsilon"] is not None]
        if found and found[0]["epsilon"] > FAR:
            axis.text(
                0.985, 0.08, f"{label}: ε > {FAR:g} →", transform=axis.transAxes, ha="right", fontsize=8, color=colour
            )
            continue
        if found:
            middle = [at["test"][3] for at in found]
            spread = [[abs(at["test"][i] - at["test"][3]) for at in found] for i in (1, 2)]
            axis.errorbar(
                [at["epsilon"] for at in found],
                middle,
                yerr=spread,
                fmt=f"{marker}-",
                color=colour,
                label=f"{label}, oracle's ε",
                capsize=3,
                lw=0.8,
                ms=5,
            )
    axis.set_xscale("log")
    axis.set_xlim(0.02, 10.0)
    axis.margins(y=0.15)
    for goal in about["goals"]:
        axis.axhline(goal, color="0.6", ls=":", lw=1, zorder=0)
        write(axis, f"goal {goal:g}", goal, 0.015, up=True)
    axis.axhline(about["best"][1], color="0.35", ls="--", lw=1)
    write(axis, "no privacy", about["best"][1], 0.985, up=False)
    constant = about["constant"][1]
    if labels:
        axis.axhline(constant, color="0.35", ls="--", lw=1)
        write(axis, "always the same answer", constant, 0.985, up=False)
    else:  # far below everything else
        axis.text(0.985, 0.02, "always the same answer: 0 ↓", transform=axis.transAxes, ha="right", **TEXT)
    axis.set_title(f"{PANELS[name]}: {about['n']:,} rows, {about['p']} encoded columns", fontsize=10)
    axis.set_xlabel("ε (log scale)")
    axis.set_ylabel("error rate on test rows" if labels else "R² on test rows")
    axis.xaxis.set_major_locator(LogLocator(10))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25)


def write(axis: Axes, text: str, value: float, place: float, *, up: bool) -> None:
    """Label a horizontal line."""
    axis.annotate(
        text,
        (place, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3 if up else -3),
        textcoords="offset points",
        ha="left" if place < 0.5 else "right",
        va="bottom" if up else "top",
        **TEXT,
    )
