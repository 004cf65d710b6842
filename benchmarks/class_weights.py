"""Public class weights in the loss, beside a cut-off that is found: what they do to the price of goals on a rare label.

    EXPOST_DATA=... python benchmarks/class_weights.py [--seeds 10]

A row of the common label weighs so much in the loss, one of the rare label 1; all weights are stated before a row is
read. No weight is above 1, so slopes, curvature and with them noise are bounded as without weights: the promise is
unchanged. Everything else is a default but for max_epsilon = 6. Simulation: the noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from panel import generated
from reach import bending, table
from threadpoolctl import threadpool_limits

from expost import F1, AccuracyFirstModel, MeanCost, Precision, Recall, __version__
from expost.exceptions import AccuracyNotReached
from expost.goals.counts import CountedGoal
from expost.solve.losses import CappedLogisticLoss

PAGE = Path(__file__).parent / "results" / "class_weights.md"
WEIGHTS = (1.0, 0.5, 0.2, 0.05)
CAP = 6.0
USUAL = CountedGoal.chain


class Weighted(CappedLogisticLoss):
    """The loss that these goals minimise, times 1 for rows of the positive label and ``common`` ≤ 1 for others.

    It is convex, and its slopes and curvature are at most what they were. A row's loss is what it was but for a
    factor, which is that of its label.
    """

    symmetric = False

    def __init__(self, slope: float, common: float) -> None:
        super().__init__(slope)
        self.name, self.common = f"capped logistic, common rows times {common:g}", common

    def _times(self, y: Any) -> Any:
        return np.where(y > 0, 1.0, self.common)

    def value(self, u: Any, y: Any) -> Any:
        """Return the loss of each row."""
        return self._times(y) * super().value(u, y)

    def derivative(self, u: Any, y: Any) -> Any:
        """Return its slope."""
        return self._times(y) * super().derivative(u, y)

    def second_derivative(self, u: Any, y: Any) -> Any:
        """Return its curvature."""
        return self._times(y) * super().second_derivative(u, y)


def weighing(common: float) -> None:
    """Let goals minimise the weighted loss from now on."""

    def chain(self: Any) -> Any:
        asked = USUAL(self)
        return asked if common == 1.0 else replace(asked, loss=Weighted(0.5, common))

    CountedGoal.chain = chain  # type: ignore[method-assign]


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
        for goal in goals[name]:
            cells = []
            for weight in WEIGHTS:
                weighing(weight)
                found = []
                for seed in range(options.seeds):
                    model = AccuracyFirstModel(schema, goal, max_epsilon=CAP, random_state=seed)
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
