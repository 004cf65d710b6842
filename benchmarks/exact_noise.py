"""What it costs to draw the noise on objectives as exact integers: in ε, and in time, against floating point.

    PYTHONPATH=. python benchmarks/exact_noise.py [--runs 40]

*Before*: uniforms of 52 bits through logarithms and quantiles, no draw larger than they allow, the solver's rounding
bounded for the longest of them, nothing folded back; analysed over the reals. *Now*:
`expost.mechanisms.objective.draws`, with what is left of the noise in what covers the solver. Both minimise over the
same made-up rows in turns, in the same run. Simulation: the noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from expost import __version__
from expost.mechanisms.objective.draws import BlockNoise, NormalNoise
from expost.mechanisms.objective.gaussian_objective import GaussianShot
from expost.mechanisms.objective.perturbation import ObjectiveRows, PerturbedMinimum, Shot
from expost.noise import SeededSource, WordSource
from expost.noise.spherical import normals, spherical_noise, uniforms
from expost.numeric import FloatArray
from expost.solve.losses import CappedLogisticLoss
from expost.solve.perturbed import PerturbedErrors
from expost.table.rows import ONE, Rows
from expost.table.shape import Block, Geometry, l2_ball

RESULT = Path(__file__).parent / "results" / "exact_noise.md"
LOSS = CappedLogisticLoss(0.5)
TABLE = Geometry(
    (Block(6, "box", 0.3), *(Block(size, "l1", 0.3) for size in (9, 16, 7)), Block(1, "box", 0.3)), 1.0, ""
)
SHAPES = {
    "a box, 6 columns": Geometry((Block(6, "box", 0.4),), 1.0, ""),
    "a table, 39 columns in 5 blocks": TABLE,
    "a Euclidean ball, 27 columns": l2_ball(27),
    "a Euclidean ball, 300 columns": l2_ball(300),
}
ROWS = (1000, 45_000)
MOST_EPSILON, MOST_TIME = 0.1, 10  # per cent


class Before(PerturbedMinimum):
    """How it was."""

    kept = math.inf
    largest: float

    @property
    def pull(self) -> float:
        """The longest noise there is."""
        return self.largest / self.n

    @property
    def errors(self) -> PerturbedErrors:  # type: ignore[override]
        """As exact as that asks for."""
        return PerturbedErrors(self.loss, self.n, self.geometry.columns, self.lam, self.center_norm, self.pull)

    @property
    def distance(self) -> float:  # type: ignore[override]
        """The solver's alone."""
        return self.errors.distance


def exponentials(count: int, source: WordSource) -> FloatArray:
    return -np.log(uniforms(count, source))


class FloatBlocks(BlockNoise):
    """Noise in blocks, in floating point."""

    def draw(self, source: WordSource) -> FloatArray:
        """Draw b."""
        draws: dict[str, Any] = {
            "box": lambda d: exponentials(d + 1, source).sum() * (2.0 * uniforms(d, source) - 1.0),
            "l1": lambda d: np.log(uniforms(d, source)) - np.log(uniforms(d, source)),
            "l2": lambda d: spherical_noise(d, source)[0],
        }
        return np.concatenate([draws[norm](size) / weight for size, norm, weight in self._each])


class FloatNormals(NormalNoise):
    """Normal noise, in floating point."""

    def draw(self, source: WordSource) -> FloatArray:
        """Draw b."""
        return np.concatenate([sigma * normals(size, source) for size, sigma in self.blocks])


@dataclass(frozen=True)
class PureBefore(Before, Shot):
    """Noise in blocks."""

    @cached_property
    def law(self) -> FloatBlocks:
        """As it was drawn."""
        now = super().law
        return FloatBlocks(now.blocks, now.weights)

    @property
    def largest(self) -> float:  # type: ignore[override]
        """What uniforms of 52 bits allow."""
        reach = {"box": lambda d: (d + 1) * math.sqrt(d), "l1": math.sqrt, "l2": float}
        return 37.0 * math.hypot(*(reach[norm](size) / weight for size, norm, weight in self.law._each))


@dataclass(frozen=True)
class GaussianBefore(Before, GaussianShot):
    """Normal noise."""

    @cached_property
    def law(self) -> FloatNormals:
        """As it was drawn."""
        return FloatNormals(super().law.blocks)

    @property
    def largest(self) -> float:  # type: ignore[override]
        """What uniforms of 52 bits allow."""
        return 8.3 * math.sqrt(math.fsum(size * sigma**2 for size, sigma in self.law.blocks))


def rows_of(n: int, p: int) -> ObjectiveRows:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (n, p))
    x /= np.abs(x).sum(axis=1, keepdims=True)
    y = np.where(x @ rng.normal(size=p) > 0, ONE, -ONE).astype(np.int32)
    return ObjectiveRows(Rows(np.trunc(x * ONE).astype(np.int32), y, norm="l2"), LOSS)


def cost(shot: Any) -> float:
    """ε, or the least of a curve at its own orders for Gaussian noise: what is compared is the same either way."""
    return float(shot.epsilon if isinstance(shot, Shot) else shot.curve.epsilon(1e-6))


def seconds(shot: Any, rows: ObjectiveRows, seed: int) -> float:
    start = time.process_time()
    shot.draw(rows.perturbed, np.zeros(rows.p), SeededSource(seed))
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    runs = parser.parse_args().runs
    lines = [
        "| rows of shape | n | noise | ε before | ε now | growth | ms before | ms now | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    changes, times = [], []
    for name, shape in SHAPES.items():
        for n in ROWS:
            rows = rows_of(n, shape.columns)
            lam = 0.1 * 2.0 * 0.5 * shape.noise / n
            for noise, level, then, now in (
                ("pure", 1.0, PureBefore, Shot),
                ("normal", 0.05, GaussianBefore, GaussianShot),
            ):
                before, after = (kind(LOSS, shape, n, level, lam) for kind in (then, now))
                spent = np.array([[seconds(shot, rows, seed) for shot in (before, after)] for seed in range(runs)])
                (slow, fast), (old, new) = np.median(spent, axis=0) * 1000, (cost(before), cost(after))
                changes.append(100.0 * (new / old - 1.0))
                times.append(fast / slow)
                lines.append(
                    f"| {name} | {n:,} | {noise} | {old:.6f} | {new:.6f} | {100 * (new / old - 1):+.4f} % | {slow:.2f} "
                    f"| {fast:.2f} | {fast / slow:.3f} |"
                )
                print(lines[-1], flush=True)
    mean = float(np.exp(np.mean(np.log(times))))
    text = (
        "# Noise on objectives as exact integers, against floating point\n\nSimulation on made-up rows. "
        f"`PYTHONPATH=. python benchmarks/exact_noise.py`; expost {__version__}. One level of a search, all of it: "
        "draw, minimise, round. *Before* is noise in floating point, analysed over the reals. ε at δ = 10⁻⁶ with "
        f"normal noise. Times are the processor's, medians of {runs} seeded draws in turns.\n\n"
        + "\n".join(lines)
        + f"\n\nε changes by {min(changes):+.2f} to {max(changes):+.4f} % (allowed: {MOST_EPSILON:+} %): rounding is "
        "bounded only where folding leaves models, which takes off more than what is left of the noise adds. Time "
        f"changes by {100 * (mean - 1):+.1f} % in the geometric mean (allowed: {MOST_TIME:+} %), "
        f"{100 * (max(times) - 1):+.0f} % at most.\n"
    )
    RESULT.write_text(text, encoding="utf-8")
    print(text)
    if max(changes) > MOST_EPSILON or mean > 1 + MOST_TIME / 100:
        raise SystemExit("a target was missed")


if __name__ == "__main__":
    main()
