"""What targets people have cost on the paper's data, beside what the null model and the best regularised model reach.

    EXPOST_DATA=... PYTHONPATH=. python benchmarks/goals.py [--runs 60]

n = 100,000, γ = .1, `auto`, everything charged. Achieved values are over releases; a refusal counts with its cost.
Simulation: the noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.datasets import load_kddcup99, load_twitter_buzz
from expost import ErrorRate, MeanSquaredError, RelativeExcessRisk, __version__
from expost.exceptions import AccuracyNotReached
from expost.goals import Goal
from expost.mechanisms import mechanism_of
from expost.noise import SeededSource
from expost.search import run_search
from expost.solve.losses import LogisticLoss, SquaredLoss
from expost.solve.problem import Problem

RESULT = Path(__file__).parent / "results" / "goals.md"
N, GAMMA, ONE = 100_000, 0.1, 2.0**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    options = parser.parse_args()
    head = ["task", "λ", "goal", "null model", "optimum", "mean ε", "of it measuring", "largest achieved", "refused"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    kdd = load_kddcup99().sample(N).rows()
    twitter = load_twitter_buzz(normalisation="q95").sample(N).rows()
    for name, rows, loss, perturbation, lam in (
        ("KDD-99, logistic", kdd, LogisticLoss(), "output", 0.005),
        ("KDD-99, logistic", kdd, LogisticLoss(), "output", 0.0005),
        ("Twitter q95, ridge", twitter, SquaredLoss(), "covariance", 0.005),
    ):
        problem = Problem.of(loss, n=N, p=rows.p, regularization=lam)
        generator = mechanism_of(perturbation).on(rows, problem)
        x, y = rows.x / ONE, rows.y / ONE
        gap = generator.risk.excess(np.zeros(rows.p))
        optimum, zero = generator.risk.optimum, np.zeros(rows.p)

        def error(theta: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> float:
            return float(np.mean((x @ theta > 0) != (y > 0)))

        def square(theta: np.ndarray, x: np.ndarray = x, y: np.ndarray = y) -> float:
            return float(np.mean((y - x @ theta) ** 2))

        def relative(theta: np.ndarray, risk=generator.risk, gap: float = gap) -> float:  # type: ignore[no-untyped-def]
            return float(risk.excess(theta) / gap)

        goals: list[tuple[Goal, Callable[[np.ndarray], float], float]] = [
            (RelativeExcessRisk(fraction, baseline="null"), relative, fraction) for fraction in (0.3, 0.1)
        ]
        if loss.labels == "binary":
            best = error(optimum)
            goals += [(ErrorRate(round(part * best, 3), 0.2), error, round(part * best, 3)) for part in (1.5, 2.0)]
        else:
            best = square(optimum)
            goals += [(MeanSquaredError(round(part * best, 3)), square, round(part * best, 3)) for part in (1.25, 1.5)]
        for goal, measure, target in goals:
            spent, probes, achieved, refused = [], [], [], 0
            for seed in range(options.runs):
                try:
                    release = run_search(
                        generator, problem, goal, failure_probability=GAMMA, random_state=SeededSource([11, seed])
                    )
                    achieved.append(measure(np.asarray(release.hypothesis)))
                except AccuracyNotReached as refusal:
                    release, refused = refusal.release, refused + 1
                spent.append(release.epsilon)
                probes.append(release.epsilon_probe)
            most = f"{max(achieved):.3g}" if achieved else "–"
            line = (
                f"| {name} | {lam} | {type(goal).__name__} {target} | {measure(zero):.3g} | {measure(optimum):.3g} "
                f"| {np.mean(spent):.3g} | {np.mean(probes):.2g} | {most} | {refused} of {options.runs} |"
            )
            print(line, flush=True)
            lines.append(line)
    text = (
        f"# Targets people have\n\nexpost {__version__}; n = {N:,}, γ = {GAMMA}, `auto`, {options.runs} seeded runs. "
        f"Simulation on data one may look at.\n`PYTHONPATH=. python benchmarks/goals.py`\n\n" + "\n".join(lines) + "\n"
    )
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
