"""What a release cost, as a picture: what was spent on what, beside what no outcome could have exceeded."""

from __future__ import annotations

import math
from textwrap import fill
from typing import TYPE_CHECKING, Any

from expost.release.words import at_delta, parts, subject
from expost.shown import up

if TYPE_CHECKING:
    from expost.release.release import Release

_COLOURS = {"to look at the table": "#9db8d2", "tests": "#4f81b0", "to state it at δ": "#c9b27c"}


def plot_price(release: Release) -> Any:
    """Draw it; see :meth:`expost.Release.plot_price`."""
    try:
        from expost.release.figure import ShownFigure
    except ImportError:
        raise ImportError("plot_price needs matplotlib: pip install 'expost[plot]'") from None
    total, most = release.epsilon, release.epsilon_worst_case
    if math.isinf(total):
        raise ValueError("this release has no noise, so there is no price to draw")
    figure = ShownFigure(figsize=(6.4, 1.9), layout="constrained")
    axis = figure.subplots()
    end = total if math.isinf(most) else most
    model = "#1f3f66" if figure.bright else "#e2ecf7"
    axis.barh([0], [end], color="0.95" if figure.bright else "0.2", edgecolor="0.6", lw=0.8, height=0.5)
    at = 0.0
    for loss, what in parts(release):
        # what reads other rows counts beside the rest, not after it: the larger of the two is paid
        start = at if not release.held_out or what == "to look at the table" else release.epsilon_probe
        place, height = (0.0, 0.5) if start == at else (-0.125, 0.25)
        axis.barh([place], [loss], left=[start], color=_COLOURS.get(what, model), height=height)
        axis.plot([], [], "s", color=_COLOURS.get(what, model), label=f"{up(loss)} {what}")
        at = max(at, start + loss)
    axis.set_xlim(0, (end or 1.0) * 1.02)
    axis.set_ylim(-0.4, 0.4)
    axis.set_yticks([])
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.set_xlabel(
        "ε" + ("" if math.isinf(most) else f"; no outcome could have cost more than {up(most)}"), fontsize=9
    )
    title = fill(f"{subject(release)}: ε = {up(total)}{at_delta(release)}", 80)
    axis.set_title(title, fontsize=10, loc="left", parse_math=False)
    if parts(release):
        figure.legend(loc="outside lower left", ncols=3, fontsize=8, frameon=False)
    return figure
