"""Public class weights in the loss, beside a cut-off that is found: what they do to the price of goals on a rare label.

    EXPOST_DATA=... python benchmarks/class_weights.py [--seeds 10]

A row of the common label weighs so much in the loss, one of the rare label 1 (`class_weight`); all weights are stated
before a row is read. Everything else is a default but for max_epsilon = 6. Simulation: the noise is seeded and protects
nobody.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from panel import generated
from reach import bending, table
from threadpoolctl import threadpool_limits

from expost import F1, AccuracyFirstModel, MeanCost, Precision, Recall, __version__
from expost.exceptions import AccuracyNotReached

PAGE = Path(__file__).parent / "results" / "class_weights.md"
WEIGHTS = (1.0, 0.5, 0.2, 0.05)
CAP = 6.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    crash = table("crash")
    made = generated(20_000, 4, (20, 12, 5), seed=3, signal=0.6, positive=0.06)
    tables = {"crash": crash[:2], "generated": (bending(made[0]), made[1])}
    goals = {
        "crash": [Recall(0.7) & Precision(0.15), F1(0.3), MeanCost(0.5, 1.0, 15.0)],
        "generated": [Recall(0.7) & Precision(0.12), F1(0.25), MeanCost(0.6, 1.0, 12.0)],
    }
    head = ["table", "goal", *(f"common rows × {weight:g}" for weight in WEIGHTS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, (schema, rows) in tables.items():
        common, rare = schema.classes
        for goal in goals[name]:
            cells = []
            for weight in WEIGHTS:
                found = []
                for seed in range(options.seeds):
                    model = AccuracyFirstModel(
                        schema, goal, max_epsilon=CAP, random_state=seed, class_weight={common: weight, rare: 1.0}
                    )
                    with threadpool_limits(1), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        try:
                            found.append(model.fit(rows).release_)
                        except AccuracyNotReached as short:
                            found.append(short.release)
                met = sum(release.status == "released" for release in found)
                cells.append(f"{np.mean([release.epsilon for release in found]):.3g} ({met} of {options.seeds})")
            lines.append(f"| {name} | {goal.words} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    PAGE.write_text(
        f"# Public class weights\n\nexpost {__version__}; mean ε, pure, and how many of {options.seeds} seeded runs "
        f"met their goal for at most ε = {CAP:g}; γ = 0.1.\nThe cut-off is found in every column. Simulation on data "
        f"one may look at.\n`EXPOST_DATA=... python benchmarks/class_weights.py --seeds {options.seeds}`\n\n"
        + "\n".join(lines)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
