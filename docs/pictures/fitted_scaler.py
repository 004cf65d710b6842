"""Draw what one row does to a coefficient: behind a scaler that was fitted to the rows, and behind public bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from expost import PublicBoundsScaler


def draw(path: Path) -> None:
    """Vary one row of 1,000 and draw the coefficient that a reader would be shown."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    ages = rng.uniform(20, 90, size=(1000, 1))
    spending = 3 * ages[:, 0] + rng.normal(0, 20, size=1000)
    values = np.geomspace(90, 1e5, 30)
    lines = {
        "behind a fitted StandardScaler": (StandardScaler(), "C3"),
        "behind PublicBoundsScaler(bounds=(0, 120))": (PublicBoundsScaler(bounds=(0, 120)), "C0"),
    }
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for label, (scaler, colour) in lines.items():
        shown = []
        for value in values:
            ages[0, 0] = value
            shown.append(make_pipeline(scaler, Ridge(alpha=1.0)).fit(ages, spending)[-1].coef_[0])
        axes.plot(values, np.array(shown) / shown[0], color=colour, label=label)
    axes.set(
        xscale="log",
        xlabel="age in one row of 1,000",
        ylabel="coefficient,\nrelative to an ordinary row",
        ylim=(0, 1.1),
    )
    axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.9))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
