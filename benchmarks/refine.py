"""Whether a kept path pays: two releases, the second stricter, against two fits.

    python benchmarks/refine.py [--runs 5]

Beside the path: two fits with the same noise, and two by `method="auto"` as it stands, which may put the noise on a
gradient. A second moment is noisier the more columns there are; a gradient hardly is. Simulation on generated rows: the
noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from expost import AccuracyFirstLogisticRegression, AccuracyFirstRidge, KeepPath, __version__, compose, refine
from expost.release.kept_path import write_key

RESULT = Path(__file__).parent / "results" / "refine.md"
N, FIRST, SECOND = 100_000, 0.004, 0.0008


def ridge(**options: Any) -> AccuracyFirstRidge:
    return AccuracyFirstRidge(bounds=1.0, target_bound=1.0, regularization=0.005, **options)


def logistic(**options: Any) -> AccuracyFirstLogisticRegression:
    return AccuracyFirstLogisticRegression(bounds=1.0, classes=(False, True), regularization=0.005, **options)


def generated(p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(p)
    X = rng.uniform(-1, 1, size=(N, p))
    weights = rng.normal(size=p)
    u = X @ weights / np.linalg.norm(weights)
    return X, np.clip(u / 2 + rng.normal(0, 0.2, N), -1, 1)


def losses(make: Callable[..., Any], same: str, X: np.ndarray, y: np.ndarray, runs: int) -> list[float]:
    """Return mean ε: of the first release on a path, of both, of two fits alike, of two by `auto`."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        write_key(key)
        for seed in range(runs):
            file = Path(folder, f"{seed}")
            first = make(excess_risk=FIRST, keep_path=KeepPath(file, key, SECOND), random_state=seed).fit(X, y).release_
            both = refine(first, file, key, excess_risk=SECOND)
            fresh = [
                compose(make(excess_risk=risk, random_state=seed, **how).fit(X, y).release_ for risk in (FIRST, SECOND))
                for how in ({"perturbation": same}, {})
            ]
            found.append([first.epsilon, both.epsilon, *(two.epsilon for two in fresh)])
    return np.mean(found, axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    head = [
        "model",
        "columns",
        "noise on",
        "first on a path",
        "both on the path",
        "two fits alike",
        "two fits by `auto`",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for p in (5, 10, 20, 40):
        X, y = generated(p)
        for name, make, same, target in (("ridge", ridge, "covariance", y), ("logistic", logistic, "output", y > 0)):
            numbers = " | ".join(f"{value:.3g}" for value in losses(make, same, X, target, options.runs))
            where = "second moments" if same == "covariance" else "minimiser"
            lines.append(f"| {name} | {p} | {where} | {numbers} |")
            print(lines[-1], flush=True)
    RESULT.write_text(
        f"# A kept path against two fits\n\nexpost {__version__}; mean ε of {options.runs} seeded runs, n = {N:,}, "
        f"λ = 0.005, γ = 0.1: excess risk\n{FIRST}, then {SECOND}. Simulation on generated rows.\n"
        f"`python benchmarks/refine.py`\n\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
