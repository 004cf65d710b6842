"""The paper's four figures for one data set, six of its twelve panels, and a fifth: every method beside the oracle.

Colours are Okabe and Ito's, which colour-blind readers tell apart; line styles differ as well, for print in grey.
Drawn without pyplot, so nothing about a window system or another figure's settings matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.curves import (
    MORE_ROWS,
    Curve,
    Facts,
    compared,
    curve,
    main_perturbation,
    oracle_curve,
    ratio_curve,
    theorem_curve,
)
from experiments.oracle import DRAWS
from experiments.plan import SIMULATION
from experiments.table import Row

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#666666",
)
DPI = 150
EPSILON = "ex-post privacy loss ε"
ALPHA = "excess risk asked for, α"

_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 7.5,
    "legend.columnspacing": 1.0,
    "legend.handlelength": 2.4,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "expost",  # otherwise the identifiers in the file are random
}


def require_matplotlib() -> None:
    """Raise unless figures can be drawn, naming what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError('figures need matplotlib: pip install "expost[plot]"') from None


@dataclass(frozen=True)
class Style:
    """How one method is drawn wherever it appears."""

    color: str
    line: str = "-"
    marker: str = ""


STYLES = {
    "reduction-covariance": Style(BLUE),
    "reduction-covariance-ball": Style(SKY, "--"),
    "reduction-covariance-tight": Style(GREEN, "-."),
    "doubling-covariance": Style(VERMILION),
    "doubling-covariance-ball": Style(ORANGE, "--"),
    "reduction-output": Style(BLUE, ":"),
    "doubling-output": Style(VERMILION, ":"),
    "theory-covariance": Style(PURPLE),
    "theory-output": Style(PURPLE, ":"),
    "reduction-output-tight": Style(GREEN, "-."),
    "auto-covariance": Style(ORANGE),
    "certified-covariance": Style(SKY, "--"),
    "stationarity-covariance": Style(GREY, "-."),
    "oracle-covariance": Style("black", "--"),
    "auto-output": Style(ORANGE),
    "auto-output-spherical": Style(ORANGE, ":"),
    "certified-output": Style(SKY, "--"),
    "stationarity-output": Style(GREY, "-."),
    "oracle-output": Style("black", "--"),
}
# The logistic task has output perturbation only: there its lines are the main ones.
LOGISTIC_STYLES = STYLES | {
    "reduction-output": Style(BLUE),
    "doubling-output": Style(VERMILION),
    "theory-output": Style(PURPLE),
}


class Painter:
    """Draws methods on axes, in the same style everywhere."""

    def __init__(self, rows: Sequence[Row], facts: Facts, labels: dict[str, str]) -> None:
        self.rows, self.facts, self._labels = rows, facts, labels
        self._styles = STYLES if facts.kind == "regression" else LOGISTIC_STYLES

    def has(self, method: str) -> bool:
        """Whether there are trials of a method."""
        return method in self._labels

    def method(self, axes: Any, name: str, column: str, *, label: str | None = None, line: str | None = None) -> None:
        """Draw the mean of a column and the band of the middle 80 % of trials."""
        if self.has(name):
            self.curve(axes, name, curve(self.rows, name, column), label=label, line=line)

    def ratio(self, axes: Any, name: str, oracle: str) -> None:
        """Draw ε as a multiple of the oracle's."""
        if self.has(name) and self.has(oracle):
            self.curve(axes, name, ratio_curve(self.rows, name, oracle, self.facts.n))

    def curve(self, axes: Any, name: str, data: Curve, *, label: str | None = None, line: str | None = None) -> None:
        """Draw numbers in a method's style."""
        style = self._styles[name]
        axes.fill_between(data.alphas, data.low, data.high, color=style.color, alpha=0.18, linewidth=0)
        axes.plot(
            data.alphas,
            data.mean,
            color=style.color,
            linestyle=line or style.line,
            marker="o" if len(data.alphas) == 1 else "",
            label=label or self._labels[name],
        )

    def theorem(self, axes: Any, epsilon: Callable[[float], float], label: str, color: str, line: str) -> None:
        """Draw what a theorem promises; nothing, not even a label, where it promises nothing."""
        alphas, values = theorem_curve(self.facts.alphas, epsilon)
        if alphas:
            axes.plot(alphas, values, color=color, linestyle=line, linewidth=1.2, label=label)


def _privacy(figure: Any, paint: Painter) -> None:
    facts = paint.facts
    theory, doubling = figure.subplots(1, 2)
    for name in ("theory-covariance", "theory-output"):
        paint.method(theory, name, "epsilon")
    if facts.kind == "regression":
        paint.theorem(theory, facts.ridge_output_as_printed, "theory, output, as printed (invalid)", GREY, "--")
    for n, line in ((facts.n, "-."), (MORE_ROWS * facts.n, ":")):
        paint.theorem(theory, partial(facts.sgd_epsilon, n=n), f"theory, private SGD, n = {n:,}", GREY, line)
    for name in ("reduction-output", "reduction-covariance", "reduction-covariance-tight", "reduction-output-tight"):
        paint.method(theory, name, "epsilon")
    theory.set_title("against theory")
    order = (
        "doubling-output",
        "doubling-covariance-ball",
        "doubling-covariance",
        "reduction-output",
        "reduction-covariance-ball",
        "reduction-covariance",
        "reduction-covariance-tight",
        "reduction-output-tight",
    )
    for name in order:
        paint.method(doubling, name, "epsilon")
    doubling.set_title("against doubling")
    for axes in (theory, doubling):
        axes.set_ylabel(EPSILON)


def _accuracy(figure: Any, paint: Painter) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    chosen = {
        "noise reduction": (
            "reduction-covariance",
            "reduction-covariance-ball",
            "reduction-output",
            "reduction-covariance-tight",
            "reduction-output-tight",
        ),
        "doubling, and theory": (
            "doubling-covariance",
            "doubling-covariance-ball",
            "doubling-output",
            "theory-covariance",
            "theory-output",
        ),
    }
    for axes, (title, names) in zip(panels, chosen.items(), strict=True):
        for name in names:
            paint.method(axes, name, "excess_risk")
        alphas = paint.facts.alphas
        axes.plot(alphas, alphas, color="black", linestyle="--", linewidth=1, label="asked for")
        axes.axhline(
            paint.facts.null_excess_risk, color=GREY, linestyle=(0, (1, 3)), linewidth=1.4, label="zero model, θ = 0"
        )
        axes.set_title(title)
        axes.set_ylabel("excess risk achieved")


def _split(figure: Any, paint: Painter) -> None:
    axes = figure.subplots()
    main = "covariance" if paint.facts.kind == "regression" else "output"
    for kind, words in (("reduction", "noise reduction"), ("doubling", "doubling")):
        paint.method(axes, f"{kind}-{main}", "epsilon_test", label=f"{words}: testing", line="-")
        paint.method(axes, f"{kind}-{main}", "epsilon_generation", label=f"{words}: generating", line="--")
    axes.set_ylabel("part of the " + EPSILON)
    axes.set_title(f"where ε goes ({main} perturbation)")


def _norm(figure: Any, paint: Painter) -> None:
    axes, facts = figure.subplots(), paint.facts
    main = "covariance" if facts.kind == "regression" else "output"
    for kind in ("reduction", "doubling", "theory"):
        paint.method(axes, f"{kind}-{main}", "norm")
    formula = "1/√λ" if facts.kind == "regression" else "√(2 ln 2/λ)"
    axes.axhline(facts.radius, color="black", linestyle="--", linewidth=1, label=f"the paper's maximum, {formula}")
    axes.axhline(
        facts.smaller_radius, color=GREY, linestyle="-.", linewidth=1, label="a smaller one that can be proved"
    )
    axes.axhline(facts.optimum_norm, color=GREY, linestyle=(0, (1, 3)), linewidth=1.4, label="the optimum, ‖θ*‖₂")
    axes.set_ylabel("norm of the output, ‖θ‖₂")
    axes.set_title(f"norms ({main} perturbation)")


def _comparison(figure: Any, paint: Painter) -> None:
    epsilon, ratio = figure.subplots(1, 2)
    oracle = f"oracle-{main_perturbation(paint.facts.kind)}"
    for name in compared(paint.facts.kind):
        paint.method(epsilon, name, "epsilon")
        paint.ratio(ratio, name, oracle)
    if paint.has(oracle):
        paint.curve(epsilon, oracle, oracle_curve(paint.rows, oracle, paint.facts.n))
    ratio.axhline(1.0, color="black", linestyle="--", label="the oracle")
    epsilon.set_title("privacy loss")
    epsilon.set_ylabel(EPSILON)
    ratio.set_title("as a multiple of the oracle's")
    ratio.set_ylabel("ε / ε of the oracle")
    for axes in (epsilon, ratio):
        axes.set_xscale("log")


# File name, what draws it, its title, and its size in inches.
FIGURES: dict[str, tuple[Callable[[Any, Painter], None], str, tuple[float, float]]] = {
    "privacy": (_privacy, "Ex-post privacy loss", (11.0, 6.0)),
    "accuracy": (_accuracy, "Accuracy asked for and achieved", (11.0, 6.0)),
    "split": (_split, "Privacy loss by cause", (6.4, 4.8)),
    "norm": (_norm, "Size of the released model", (6.4, 4.8)),
    "comparison": (_comparison, "Methods and the oracle", (11.0, 6.4)),
}


def draw_all(folder: Path, rows: Sequence[Row], facts: Facts, labels: dict[str, str]) -> list[Path]:
    """Write every figure as PNG and SVG; returns the files."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    written = []
    paint = Painter(rows, facts, labels)
    with rc_context(_RC):
        for name, (draw, title, size) in FIGURES.items():
            figure = Figure(figsize=size, dpi=DPI, layout="constrained")
            FigureCanvasAgg(figure)
            draw(figure, paint)
            task = "ridge regression" if facts.kind == "regression" else "logistic regression"
            figure.suptitle(f"{title}: {task} on {facts.title}", fontsize=11)
            for axes in figure.axes:
                _finish(axes)
            figure.supxlabel(_footer(facts, oracle=name == "comparison"), fontsize=7, color=GREY)
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
                file = folder / f"{name}.{kind}"
                figure.savefig(file, metadata=metadata)
                figure.set_layout_engine("none")  # laid out once; the second format takes the same places
                written.append(file)
    return written


def _finish(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set_yscale("log")
    axes.set_xlabel(ALPHA)
    if axes.get_xscale() == "log":
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    low, high = axes.get_ylim()
    if high / low < 300:  # few decades: name the numbers between the powers of ten, too
        steps = (1.0, 2.0, 5.0) if high / low > 6 else (1.0, 1.5, *range(2, 10))
        axes.yaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2 if len(axes.get_lines()) > 3 else 1)


# Methods that run a quarter of the trials, in words, by task and whether the oracle's figure is meant.
_FEWER = {
    ("regression", False): "ball and theory",
    ("regression", True): "theory",
    ("classification", True): "certified and stationarity",
}


def _footer(facts: Facts, *, oracle: bool) -> str:
    fewer = _FEWER.get((facts.kind, oracle))
    trials = f"{facts.trials} trials a point" + (f" ({fewer} {quarter(facts.trials)})" if fewer else "")
    draws = f";\nthe oracle: a single shot at an ε chosen by the truth, {DRAWS} draws, where noise alone is not enough"
    return (
        f"n = {facts.n:,}, p = {facts.p}, λ = {facts.regularization:g}, γ = {facts.failure_probability:g}, {trials}; "
        f"bands: the middle 80 % of trials{draws if oracle else ''}.\n{SIMULATION}"
    )


def quarter(trials: int) -> int:
    """Return how many trials a method with a quarter of them runs."""
    return max(1, round(trials * 0.25))
