"""Draw what the same goal costs with more and more rows.

    python docs/pictures/rows.py

Rows and noise are simulated and seeded, so the picture comes out the same and protects nobody.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from expost import AccuracyFirstModel, ErrorRate
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.exceptions import AccuracyNotReached

SIZES = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000)


def cost(n: int, seed: int) -> float:
    """Return ε of a run; a refusal counts with what it cost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some of these are large is what is shown
        try:
            model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(0.20), max_epsilon=10.0, random_state=seed)
            return float(model.fit(make_survey(n)).release_.epsilon)
        except AccuracyNotReached as refusal:
            return float(refusal.release.epsilon)


def draw(path: Path, *, sizes: tuple[int, ...] = SIZES, runs: int = 6) -> None:
    """Draw ε against the number of rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    paid = {n: [cost(n, seed) for seed in range(runs)] for n in sizes}
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for n, values in paid.items():
        axes.plot([n] * len(values), values, "o", color="#0072B2", alpha=0.35, markersize=4, markeredgewidth=0)
    medians = [float(np.median(values)) for values in paid.values()]
    axes.plot(sizes, medians, color="#0072B2", label="median of the runs")
    middle = medians[0] * sizes[0]
    axes.plot(sizes, [middle / n for n in sizes], color="#888888", linestyle="--", linewidth=1, label="1/n")
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="ε paid", xticks=sizes)
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
