"""How far noise scatters what the columns of a model add: the band that is drawn, the worst case, and paid curvature.

    EXPOST_DATA=... python benchmarks/noise_bands.py [--draws 40]

A model is fitted once with a seed; the levels it went through are then gone through again with fresh noise, as often
as --draws says, and the scatter of what each column adds is compared with what is said of it beforehand: by pure noise
on the objective, at a δ by gradient descent, by descent that turned to pure noise, and by second moments. *Curvature*
is what H = ∇²L + λI would add to the band of pure noise: exact at the released model; or of columns taken for
independent, from counts of each, exact or with noise for a part of the release's ε. Simulation: rows are looked at,
nobody is protected.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from panel import generated
from reach import bending, table
from threadpoolctl import threadpool_limits

import expost.release.effects as effects_module
from expost import R2, AccuracyFirstModel, ErrorRate, Precision, Recall, Schema, __version__
from expost.mechanisms.descent.gradient_descent import ViewedWalk
from expost.mechanisms.moments.gaussian_moments import MomentWalk
from expost.mechanisms.objective.chain import PerturbedLevels
from expost.noise import SeededSource
from expost.table.encoding import Encoding
from expost.table.rows import ONE

PAGE = Path(__file__).parent / "results" / "noise_bands.md"
PARTS = (0.05, 0.2)
DELTA = 1e-6
STAGES = {walk: walk.stage for walk in (PerturbedLevels, ViewedWalk, MomentWalk)}


def drawn_directions(release: Any) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Return what is drawn of a model as directions of its parameters, with the band and the worst case of each."""
    names, columns, seen, genuine = list(release.parameters["columns"]), [], [], effects_module._Model.scatter

    def noted(self: Any, own: Any, weights: Any) -> Any:
        seen.append((own, weights * np.array([self._units[name] for name in own])))
        return genuine(self, own, weights)

    effects_module._Model.scatter = noted  # type: ignore[method-assign]
    shown = {effect.column: effect for effect in effects_module.effects(release)}
    effects_module._Model.scatter = genuine  # type: ignore[method-assign]
    # in the order in which they were made, which is that of the schema's columns
    rows, band, worst = [], [], []
    for effect, (own, weights) in zip(shown.values(), seen, strict=True):
        some = [k for k in range(0, len(weights), max(1, len(weights) // 17)) if np.abs(weights[k]).max() > 0]
        for k in some:
            direction = np.zeros(len(names) + 1)
            direction[[names.index(name) + 1 for name in own]] = weights[k]
            rows.append(direction)
            band.append(effect.band[k])
            worst.append(effect.worst[k] if effect.worst else math.nan)
            columns.append(effect.column)
    return columns, np.array(rows), np.array(band), np.array(worst)


def lifting(view: Any, p: int) -> np.ndarray:
    return np.eye(p) if view is None else np.array([view.lifted(row) for row in np.eye(view.columns)]).T


def scatter(levels: list[Any], n: int, curvature: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the deviations of directions, to first order, where the loss is curved so."""
    p, found, before = len(curvature), None, None
    for drawn, view, anew in levels:
        lift = lifting(view, p)
        inverse = np.linalg.inv(lift.T @ curvature @ lift + drawn.lam * np.eye(lift.shape[1]))
        noise = np.repeat(np.square(drawn.deviations), [block.size for block in drawn.geometry.blocks])
        more = inverse * noise @ inverse / n**2
        if found is not None and not anew:
            through = drawn.lam * inverse @ np.linalg.pinv(lift) @ before
            more = more + through @ found @ through.T
        found, before = more, lift
    made = directions @ before
    return np.sqrt(np.einsum("ij,jk,ik->i", made, found, made))


def fitted(schema: Any, rows: Any, goal: Any, delta: float, way: str | None) -> tuple[Any, list[Any]]:
    """Return a release and what it went through: walk, level and, of perturbed objectives, how it was drawn."""
    walked: list[Any] = []

    def noting(stage: Any) -> Any:
        def noted(self: Any, level: float, source: Any) -> Any:
            found = stage(self, level, source)
            drawn = (self.drawn, self._view, self.stretched == 0.0) if isinstance(self, PerturbedLevels) else None
            walked.append((self, level, drawn))
            return found

        return noted

    for walk, stage in STAGES.items():
        walk.stage = noting(stage)  # type: ignore[assignment,method-assign]
    options = {"max_epsilon": 10.0, "delta": delta, "perturbation": way, "random_state": 0}
    release = AccuracyFirstModel(schema, goal, **options).fit(rows).release_
    for walk, stage in STAGES.items():
        walk.stage = stage  # type: ignore[assignment,method-assign]
    return release, walked


def again(walked: list[Any], source: SeededSource) -> np.ndarray:
    """Return the model that the same levels make of fresh noise."""
    last = walk = model = None
    for noted, level, _ in walked:
        if noted is not last and isinstance(noted, ViewedWalk):
            walk = ViewedWalk(noted._plan, noted._rows)
        elif noted is not last and isinstance(noted, MomentWalk):
            walk = MomentWalk(noted._generator, noted._noise)
        elif noted is not last:
            center = np.zeros(noted._plan.geometry.columns) if model is None else model
            walk = PerturbedLevels(noted._plan, noted._passes, center)
        last, model = noted, walk.stage(level, source)  # type: ignore[union-attr]
    return np.array(model, dtype=float)


def line(name: str, schema: Any, rows: Any, goal: Any, delta: float, way: str | None, draws: int) -> str:
    release, walked = fitted(schema, rows, goal, delta, way)
    models = [again(walked, SeededSource([77, draw])) for draw in range(draws)]
    _, directions, band, worst = drawn_directions(release)
    scattered = np.array(models) @ directions.T
    true = scattered.std(axis=0, ddof=1)
    said = [band, worst]
    if not delta:
        said += by_curvature(release, schema, rows, walked, directions)
    away = np.abs(scattered - scattered.mean(axis=0))
    cells = []
    for each in said:
        low, middle, high = np.quantile(each / true, [0.05, 0.5, 0.95])
        cells.append("" if np.isnan(middle) else f"{np.mean(away <= each):.2f}; {low:.2g}, {middle:.2g}, {high:.2g}")
    cells += [""] * (4 + len(PARTS) - len(cells))
    figures = [name, f"{len(rows):,}", f"{release.epsilon:.2g}", f"{np.median(true):.2g}", *cells]
    return "| " + " | ".join(figures) + " |"


def by_curvature(release: Any, schema: Any, rows: Any, walked: list[Any], directions: np.ndarray) -> list[np.ndarray]:
    """Return what pure noise would scatter if the loss were curved so: exactly, or as counts of columns tell."""
    last = walked[-1][0]
    levels = [kept for walk, _, kept in walked if walk is last]
    encoded = Encoding(schema).encode(rows, "clip")
    x, y, loss, theta = encoded.x / ONE, encoded.y / ONE, last._plan.loss, np.array(release.hypothesis)
    weights = (loss.derivative(x @ theta + 1e-4, y) - loss.derivative(x @ theta - 1e-4, y)) / 2e-4
    exact = (x * weights[:, None]).T @ x / encoded.n
    blocks = last._plan.geometry.blocks
    unit = np.repeat([block.radius for block in blocks], [block.size for block in blocks])

    def independent(part: float | None) -> np.ndarray:
        mean = x.mean(axis=0) / unit
        columns = blocks[0].size + len(blocks) - 2  # each of which a row replaced moves by 2
        if part is not None:
            scale = 2 * columns / (part * release.epsilon * encoded.n)
            mean[1:] = np.clip(mean[1:] + np.random.default_rng(1).laplace(0, scale, len(mean) - 1), 0, 1)
        mean *= unit
        made, place = np.outer(mean, mean), 0
        for block in blocks:
            some = slice(place, place + block.size)
            if block.norm != "box":
                made[some, some] = np.diag(mean[some] * unit[some])
            place += block.size
        squares = np.square(x).mean(axis=0)
        box = range(blocks[0].size)
        made[box, box] = squares[: blocks[0].size]
        return weights.mean() * made

    curved = [exact, *(independent(part) for part in (None, *PARTS))]
    return [scatter(levels, encoded.n, each, directions) for each in curved]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--part", help="only tasks whose name has it; nothing is written")
    options = parser.parse_args()
    smooth = generated(24_000, 5, (8, 5), seed=5, signal=0.7, positive=0.35)
    adult, crash, diamonds = (table(name)[:2] for name in ("adult", "crash", "diamonds"))
    straight = Schema.from_dict({name: part for name, part in diamonds[0].to_dict().items() if name != "curves"})
    found = Recall(0.7) & Precision(0.15)
    tasks: list[tuple[Any, ...]] = [
        ("Adult, error ≤ 0.18", *adult, ErrorRate(0.18), 0.0, None),
        ("Adult, error ≤ 0.158", *adult, ErrorRate(0.158), 0.0, None),
        ("crash, recall and precision", *crash, found, 0.0, None),
        ("Diamonds, R² ≥ 0.95", *diamonds, R2(0.95), 0.0, None),
        ("generated, error ≤ 0.24", bending(smooth[0]), smooth[1], ErrorRate(0.24), 0.0, None),
        ("Adult, error ≤ 0.18, at a δ", *adult, ErrorRate(0.18), DELTA, None),
        ("Adult, error ≤ 0.158, at a δ", *adult, ErrorRate(0.158), DELTA, None),
        ("crash, recall and precision, at a δ", *crash, found, DELTA, None),
        ("Diamonds, R² ≥ 0.86, at a δ", *diamonds, R2(0.86), DELTA, None),
        ("Diamonds, R² ≥ 0.95, at a δ, turned to pure noise", *diamonds, R2(0.95), DELTA, None),
        ("Adult, error ≤ 0.18, second moments", *adult, ErrorRate(0.18), DELTA, "covariance"),
        ("Diamonds, R² ≥ 0.86, second moments", *diamonds, R2(0.86), DELTA, "covariance"),
        ("Diamonds, R² ≥ 0.86, straight lines, second moments", straight, diamonds[1], R2(0.86), DELTA, "covariance"),
    ]
    if options.part:
        tasks = [task for task in tasks if options.part in task[0]]
    head = ["table", "n", "ε", "true scatter", "the band", "worst case", "exact curvature"]
    head += ["independent columns, exact", *(f"for {part:.0%} of ε" for part in PARTS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for task in tasks:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append(line(*task, options.draws))
        print(lines[-1], flush=True)
    if options.part:
        return
    PAGE.write_text(
        f"# How far noise scatters what columns add\n\nexpost {__version__}; {options.draws} draws of fresh noise at "
        f"the levels of one fit. Of each way to say it beforehand: the share of\ndraws within one stated standard "
        f"deviation (0.68 would be right), and what is stated as a multiple of the true one, at the\n5th, 50th and "
        f"95th of 100 of all that is drawn. Pure noise unless a δ is named (10⁻⁶; gradient descent, or second moments "
        f"if they are\nnamed), `curves = auto` unless straight lines are named. Curvature is for pure noise.\n"
        "Simulation. "
        f"`EXPOST_DATA=... python benchmarks/noise_bands.py --draws {options.draws}`\n\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
