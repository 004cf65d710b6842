"""Draw what an error rate costs on a generated survey.

    python docs/pictures/price_of_accuracy.py

Rows and noise are simulated and seeded, so the picture comes out the same and protects nobody.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from expost import AccuracyFirstModel, ErrorRate
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.exceptions import AccuracyNotReached

RATES = (0.30, 0.27, 0.24, 0.22, 0.20, 0.19, 0.18, 0.175)


def costs(rate: float, n: int, runs: int) -> list[float]:
    """Return ε of several runs; a refusal counts with what it cost."""
    paid = []
    for seed in range(runs):
        model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(rate), max_epsilon=10.0, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that some of these are large is what is shown
            try:
                paid.append(model.fit(make_survey(n)).release_.epsilon)
            except AccuracyNotReached as refusal:
                paid.append(refusal.release.epsilon)
    return paid


def limits(n: int) -> tuple[float, float]:
    """Return the error rates of always the same answer and of a model without privacy."""
    survey = make_survey(n)
    model = AccuracyFirstModel(SURVEY_SCHEMA, ErrorRate(0.25), random_state=0).fit(survey)
    rows, labels = model.encoding_.design(survey), survey["satisfied"] == "yes"
    best = LogisticRegression(C=1e3, max_iter=2000).fit(rows, labels)
    return float(1 - labels.mean()), float(np.mean(best.predict(rows) != labels))


def draw(path: Path, *, n: int = 20_000, runs: int = 6, rates: tuple[float, ...] = RATES) -> None:
    """Draw ε against the error rate asked for."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    paid = {rate: costs(rate, n, runs) for rate in rates}
    constant, best = limits(n)
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for rate, values in paid.items():
        axes.plot([rate] * len(values), values, "o", color="#0072B2", alpha=0.35, markersize=4, markeredgewidth=0)
    axes.plot(list(paid), [np.median(values) for values in paid.values()], color="#0072B2", label="median of the runs")
    for place, label in ((constant, "always the\nsame answer"), (best, "without\nprivacy")):
        axes.axvline(place, color="#888888", linestyle="--", linewidth=1)
        axes.annotate(
            label,
            (place, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            va="top",
            fontsize=8,
            textcoords="offset points",
            color="#555555",
        )
    axes.set(xlabel="error rate asked for", ylabel="ε paid", yscale="log")
    axes.invert_xaxis()
    axes.legend(frameon=False, loc="upper center")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
