"""Draw what a suspicion about one row can become at most, for several ε: odds are multiplied by e^ε.

python docs/pictures/suspicion.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

COLOURS = {0.1: "#009E73", 0.5: "#0072B2", 1.0: "#E69F00", 2.0: "#D55E00", 5.0: "#CC79A7"}


def draw(path: Path) -> None:
    """Draw the curves."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    before = np.linspace(0, 1, 400)
    figure, axes = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
    axes.plot(before, before, color="#888888", linewidth=1, linestyle="--", label="nothing is learned")
    for epsilon, colour in COLOURS.items():
        after = before * np.exp(epsilon) / (1 - before + before * np.exp(epsilon))
        axes.plot(before, after, color=colour, label=f"ε = {epsilon:g}")
    axes.set(xlabel="suspicion before", ylabel="at most, afterwards", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
