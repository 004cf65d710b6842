"""Draw the picture of docs/intuition.md: noise leaving a model level by level, and what stopping early is worth.

    python docs/pictures/gradual_release.py

Rows and noise are simulated and seeded, so the picture comes out the same and protects nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from expost import ExcessRisk
from expost.account import geometric_levels
from expost.mechanisms import Generator, mechanism_of
from expost.noise import SeededSource
from expost.search import run_search
from expost.search.above_threshold import AboveThreshold, calibrate
from expost.solve.losses import LogisticLoss
from expost.solve.problem import Problem
from expost.table import Preparation

PICTURE = Path(__file__).with_suffix(".png")
N, ALPHA, GAMMA, LAMBDA = 50_000, 0.01, 0.1, 0.005
WEIGHTS = [4.0, -3.0, 2.0, -1.0, 0.5]
LEVELS = geometric_levels(0.001, 1.0, 60)
OTHERS, RUNS = 20, 10  # faint paths in the middle, and runs that the prices on the right are means of
# Okabe and Ito's colours, which colour-blind readers tell apart
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
INK, FAINT = "#222222", "#bbbbbb"
METHODS = {
    "fresh noise, doubling ε\n(the paper's alternative)": ("doubling", "published"),
    "gradual release, risk tested\n(as in the paper)": ("above_threshold", "published"),
    "the same, with the test\ncalibrated tightly": ("above_threshold", "tight"),
    "certificate: nothing tested\nbut the null model (auto)": ("auto", "tight"),
}


def generator(paper_constants: bool = False) -> Generator:
    """Return noisy minimisers of a logistic regression on simulated rows."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (N, len(WEIGHTS)))
    labels = X @ WEIGHTS + rng.logistic(size=N) > 0
    recipe = Preparation(None, len(WEIGHTS), target=None, intercept_weight=0, n_columns=len(WEIGHTS))
    rows = recipe.prepare_classification(X, labels, (False, True))
    problem = Problem.of(
        LogisticLoss(), n=N, p=rows.p, regularization=LAMBDA, radius=None, paper_constants=paper_constants
    )
    return mechanism_of("output").on(rows, problem)


def path(made: Generator, seed: int) -> Iterator[tuple[np.ndarray, float]]:
    """Yield the hypothesis of every level and its true excess risk, which only a simulation may show."""
    for step in made.path(LEVELS, SeededSource([7, seed])):
        theta = np.asarray(made.hypothesis(step.values))
        yield theta, made.risk.excess(theta)


def stopped_at(made: Generator, hypotheses: list[np.ndarray]) -> int:
    """Return where AboveThreshold stops."""
    risk = made.excess_risk()
    test = calibrate(
        "tight",
        target=ALPHA,
        failure_probability=GAMMA,
        n_tests=len(LEVELS),
        sensitivity=risk.effective_sensitivity,  # type: ignore[attr-defined]  # one sensitivity for all hypotheses
    )
    rule = AboveThreshold(risk, test, len(LEVELS), random_state=SeededSource([8, 1]))
    return next(t for t, theta in enumerate(hypotheses) if rule.accepts(theta))


def prices() -> dict[str, tuple[float, float]]:
    """Return for every method what it costs, and the part of that which buys the model itself."""
    made = {paper: generator(paper) for paper in (False, True)}
    found = {}
    for name, (method, calibration) in METHODS.items():
        chosen = made[calibration == "published"]
        runs = [
            run_search(
                chosen,
                chosen.problem,
                ExcessRisk(ALPHA),
                method=method,
                calibration=calibration,
                failure_probability=GAMMA,
                random_state=SeededSource([9, seed]),
            )
            for seed in range(RUNS)
        ]
        found[name] = (
            float(np.mean([run.epsilon for run in runs])),
            float(np.mean([run.epsilon_generation for run in runs])),
        )
    return found


def draw_model(axes: Any, hypotheses: list[np.ndarray], optimum: np.ndarray, stop: int) -> None:
    """Show each coefficient losing its noise."""
    for j, colour in enumerate(COLOURS):
        values = [theta[j] for theta in hypotheses]
        axes.step(LEVELS[: stop + 1], values[: stop + 1], where="post", color=colour, lw=1.6)
        axes.step(LEVELS[stop:], values[stop:], where="post", color=colour, lw=0.8, alpha=0.35)
        axes.axhline(optimum[j], color=colour, lw=0.9, ls=(0, (1, 2)))
        axes.plot(LEVELS[stop], values[stop], "o", color=colour, ms=4.5, zorder=3)
    axes.set_ylim(-8.6, 8.6)
    axes.set_ylabel("coefficients of the model")
    axes.set_title("1. Noise leaves the model, level by level")
    axes.annotate("dotted: the best\nmodel, never shown", (LEVELS[-1], -8.3), ha="right", va="bottom", color=INK)


def draw_risk(axes: Any, risks: list[float], others: list[list[float]], stop: int) -> None:
    """Show the excess risk falling below the target."""
    for other in others:
        axes.plot(LEVELS, other, color=FAINT, lw=0.6, zorder=1)
    axes.plot(LEVELS[: stop + 1], risks[: stop + 1], color=INK, lw=1.8)
    axes.plot(LEVELS[stop], risks[stop], "o", color=INK, ms=5)
    axes.axhline(ALPHA, color="#D55E00", lw=1.4, ls="--")
    axes.annotate("asked for: α = 0.01", (0.00105, ALPHA * 0.85), color="#D55E00", va="top")
    axes.annotate("faint: the same search\nwith other noise", (0.00105, 2.4e-6), color="#777777", va="bottom")
    axes.set_yscale("log")
    axes.set_ylim(2e-6, 3.0)
    axes.set_ylabel("excess risk (only a simulation knows it)")
    axes.set_title("2. It stops once it is good enough")


def draw_stop(axes: Any, stop: int, top: float) -> None:
    """Mark what is paid and what is never revealed."""
    axes.set_xscale("log")
    axes.set_xlim(LEVELS[0], LEVELS[-1])
    axes.set_xlabel("privacy level ε")
    axes.axvspan(LEVELS[stop], LEVELS[-1], color="#56B4E9", alpha=0.12, lw=0)
    axes.axvline(LEVELS[stop], color="#56B4E9", lw=1.2)
    axes.annotate("paid: the\nlast level", (LEVELS[stop] * 0.9, top), ha="right", va="top", color=INK)
    axes.annotate("never revealed,\nnever paid", (LEVELS[stop] * 1.1, top), ha="left", va="top", color=INK)


def draw_prices(axes: Any, found: dict[str, tuple[float, float]]) -> None:
    """Compare what the same promise costs."""
    for row, (name, (total, model)) in enumerate(found.items()):
        axes.plot([model, total], [row, row], color=COLOURS[0], lw=3, alpha=0.35, solid_capstyle="butt")
        axes.plot(model, row, "o", color="white", mec=COLOURS[0], mew=1.6, ms=7)
        axes.plot(total, row, "o", color=COLOURS[0], ms=7)
        axes.annotate(f"ε = {total:.2g}", (total, row), (8, 0), textcoords="offset points", va="center", color=INK)
        axes.annotate(name, (0.021, row), (0, 9), textcoords="offset points", va="bottom", color=INK)
    axes.plot([], [], "o", color="white", mec=COLOURS[0], mew=1.6, ms=7, label="the model itself")
    axes.plot([], [], "o", color=COLOURS[0], ms=7, label="with tests and looks")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, handletextpad=0.1)
    axes.set_xscale("log")
    axes.set_xlim(0.02, 40)
    axes.set_ylim(len(found) - 0.4, -0.95)
    axes.set_yticks([])
    axes.set_xlabel("privacy loss ε for the same promise")
    axes.set_title("3. Most of the price was for looking")


def main() -> None:
    """Draw and save."""
    import matplotlib
    from matplotlib.figure import Figure

    made = generator()
    hypotheses, risks = (list(part) for part in zip(*path(made, 1), strict=True))
    others = [[risk for _, risk in path(made, 100 + seed)] for seed in range(OTHERS)]
    stop = stopped_at(made, hypotheses)
    settings = {"font.size": 8.5, "axes.titlesize": 9.5, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(11.4, 3.7), dpi=120, facecolor="white", layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        draw_model(left, hypotheses, made.risk.optimum, stop)
        draw_stop(left, stop, 8.3)
        draw_risk(middle, risks, others, stop)
        draw_stop(middle, stop, 2.3)
        draw_prices(right, prices())
        figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
