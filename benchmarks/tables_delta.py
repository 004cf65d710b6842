"""What a goal costs on whole tables under approximate privacy, beside what peers would need if an oracle chose ε.

    EXPOST_DATA=... python benchmarks/tables_delta.py [--runs 10] [--violations 200] [--measure expost peers floor jax]

Numbers are kept in results/tables_delta.json part by part. Simulation: the noise is seeded, the rows are looked at, and
nobody is protected.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from one_shot import GRID, Oracle, meets, quality
from scipy.special import expit, log_ndtr, ndtr, ndtri
from tables import Task, adult, diamonds, environment, summary
from threadpoolctl import threadpool_limits

from expost import R2, AccuracyFirstModel, ErrorRate, __version__
from expost.account.account import Spending
from expost.account.composition import Curve
from expost.noise import SeededSource
from expost.search.run import carry_out, settle

HERE = Path(__file__).parent
KEPT, RESULT = HERE / "results" / "tables_delta.json", HERE / "results" / "tables_delta.md"
DELTA, GAMMA = 1e-6, 0.1
PEERS = {"descent": "noisy gradient descent", "adassp": "AdaSSP", "jax": "jax-privacy"}


# steps and step sizes that the oracle may choose from
PACES = {
    "classification": ((64, 2.0), (160, 2.0), (96, 1.6)),
    "regression": ((64, 2.0), (160, 2.0), (128, 1.0), (256, 1.0)),
}


def tasks(data: Path) -> list[Task]:
    first, (second, third) = adult(data)[0], diamonds(data)
    first.goals, second.goals, third.goals = (0.18, 0.165), (0.80, 0.86), (0.80, 0.86)
    return [first, second, third]


def keep(key: str, value: dict[str, Any] | None) -> dict[str, Any]:
    """Add a part to what is kept, or only return all of it."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    if value is not None:
        kept[key] = value
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    return kept


def expost(task: Task, goal: float, runs: int, violations: int, way: str | None = None) -> None:
    """Search with many seeds on rows encoded once, as AccuracyFirstModel does."""
    asked = ErrorRate(goal) if task.schema.classes else R2(goal)
    model = AccuracyFirstModel(task.schema, asked, max_epsilon=10.0, delta=DELTA, perturbation=way)
    request = model.request_for(task.rows.n, task.schema, task.encoding)
    plan = settle(request)
    generator = request.mechanism.on(task.rows, request.problem)
    spent: list[float] = []
    usually: list[float] = []
    whole: list[float] = []
    train: list[float] = []
    test: list[float] = []
    refused = broken = 0
    start = time.perf_counter()
    for seed in range(max(runs, violations)):
        release = carry_out(request, plan, generator, SeededSource([29, seed]), Spending())
        whole.append(release.epsilon)
        usually.append(release.epsilon_usual)
        reached = elsewhere = math.nan
        if release.status == "released":
            reached, elsewhere = task.reached(np.asarray(release.hypothesis))
            broken += not meets(task.schema.task, reached, goal)
        if seed < runs:
            spent.append(release.epsilon)
            refused += release.status != "released"
            train.append(reached)
            test.append(elsewhere)
        done = seed + 1
        if done in (runs, max(runs, violations)) or done % 20 == 0:
            found = {
                "goal": goal,
                "epsilon": [round(float(v), 4) for v in (np.mean(spent), np.median(spent), max(spent))],
                "usual of all": round(float(np.mean(usually)), 4),
                "epsilon of all": round(float(np.mean(whole)), 4),
                "way": request.mechanism.name,
                "train": summary([value for value in train if not math.isnan(value)]),
                "test": summary([value for value in test if not math.isnan(value)]),
                "refused": refused,
                "runs": len(spent),
                "broken": broken,
                "of": done,
            }
            keep(f"{task.name}|{goal}|{way or 'expost'}", found)
            seconds = (time.perf_counter() - start) / done
            said = f"{task.name} {goal}, {way or 'auto'}: mean ε {np.mean(spent):.3g}, {broken} of {done} broken"
            print(f"{said}, {seconds:.2g} s a fit", flush=True)


def deviations(epsilon: float) -> float:
    """Return the largest μ = Δ/σ of a Gaussian release that is (ε, δ)-private: Balle and Wang's exact condition."""
    low, high = 0.0, 50.0
    for _ in range(80):
        mu = 0.5 * (low + high)
        loss = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        low, high = (mu, high) if loss <= DELTA else (low, mu)
    return low


class Peers:
    """Models at a stated ε (usual hockey-stick δ), with constants that an oracle may choose; over the reals."""

    def __init__(self, task: Task) -> None:
        self.task, (self.x, self.y) = task, task.arrays
        self.n, self.p = self.x.shape
        self.small = self.x.astype(np.float32)

    def descent(self, epsilon: float, pace: tuple[int, float], seed: int) -> np.ndarray:
        """Return what noisy gradient descent releases at a usual ε."""
        return self.descended(deviations(epsilon), pace, seed)

    def descended(self, mu: float, pace: tuple[int, float], seed: int) -> np.ndarray:
        """Full-batch noisy gradient descent with momentum, slopes clipped, mean of the later iterates; μ in all."""
        labels = self.task.schema.task == "classification"
        clip, (steps, size) = 0.5 if labels else 0.25, pace
        sigma = 2.0 * clip * math.sqrt(steps) / mu
        rng = np.random.default_rng([31, seed])
        theta, velocity, later = np.zeros(self.p), np.zeros(self.p), np.zeros(self.p)
        for step in range(steps):
            u = self.small @ theta.astype(np.float32)
            slopes = -self.y * np.minimum(expit(-self.y * u), clip) if labels else np.clip(u - self.y, -clip, clip)
            gradient = slopes.astype(np.float32) @ self.small + rng.normal(0.0, sigma, self.p)
            velocity = 0.9 * velocity - size * gradient / self.n
            theta = theta + velocity
            later += theta if 2 * step >= steps else 0.0
        return later / (steps // 2)

    def adassp(self, epsilon: float, part: float, seed: int) -> np.ndarray:
        """AdaSSP (Wang 2018): noisy second moments, λ from a noisy smallest eigenvalue; ε in three parts."""
        rng = np.random.default_rng([37, seed])
        mu = deviations(epsilon) / math.sqrt(3.0)  # Gaussian costs add in squares: sharper than ε/3 each
        gram, cross = self.x.T @ self.x, self.x.T @ self.y
        tail = math.sqrt(2.0 * math.log(6.0 / DELTA))
        least = max(0.0, float(np.linalg.eigvalsh(gram)[0]) + rng.normal() / mu - tail / mu)
        lam = max(0.0, part * math.sqrt(self.p * math.log(2 * self.p**2 / 0.05)) * math.sqrt(2.0) / mu - least)
        noise = np.triu(rng.normal(0.0, math.sqrt(2.0) / mu, (self.p, self.p)))
        noisy = gram + noise + np.triu(noise, 1).T
        return np.linalg.solve(noisy + lam * np.eye(self.p), cross + rng.normal(0.0, 2.0 / mu, self.p))

    def oracle(self, name: str, goal: float, draws: int) -> dict[str, Any]:
        """Return the smallest ε of the grid at which nine of ten draws meet the goal, and the constant."""
        draw: Callable[[float, Any, int], np.ndarray] = getattr(self, name)
        kind = self.task.schema.task

        def met(epsilon: float, constant: Any, seed: int) -> bool:
            return meets(kind, quality(kind, self.x @ draw(epsilon, constant, seed), self.y), goal)

        constants: Any = PACES[kind] if name == "descent" else (1.0, 0.3, 0.1)
        found = Oracle(met, constants, draws).ask()
        return {"goal": goal, "epsilon": None if found is None else round(found[0], 4), "constant": found and found[1]}


def jax_privacy(task: Task, goal: float, draws: int) -> dict[str, Any]:
    """Return the same for the library's clipped and noisy gradients, in an environment of its own."""
    python = environment("jax-privacy", ["jax-privacy==2.0.0"], "jax_privacy")
    if isinstance(python, str):
        raise SystemExit(f"jax-privacy could not be installed: {python}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=task.arrays[0], y=task.arrays[1])
        asked = {"task": task.schema.task, "goal": goal, "draws": draws, "delta": DELTA}
        command = [python, HERE / "peer_jax_privacy.py", path, json.dumps(asked)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["found"]
    return {"goal": goal, "epsilon": found and round(found[0], 4), "constant": found and found[1]}


def curve_of(peers: Peers, draws: int) -> list[tuple[float, float]]:
    """Return (μ, quality) of noisy gradient descent: the median of draws, with the pace that an oracle likes best."""
    kind = peers.task.schema.task
    best = min if kind == "classification" else max
    found = []
    for step in range(11):
        mu = {"classification": 0.009, "regression": 0.0045}[kind] * 1.22**step
        qualities = [
            float(
                np.median([quality(kind, peers.x @ peers.descended(mu, pace, seed), peers.y) for seed in range(draws)])
            )
            for pace in PACES[kind]
        ]
        found.append((mu, best(qualities)))
    return found


def floor(task: Task, goal: float, curve: list[tuple[float, float]]) -> dict[str, float]:
    """Return what an oracle's training and one honest test of it must cost, if the test passes every other time.

    The oracle knows how good a model of any μ will be, and pays for the best one to test: for Gaussian noise that fails
    with probability γ the gap has to be z deviations wide, for Laplace noise ln(1/2γ) scales.
    """
    asked = ErrorRate(goal) if task.schema.classes else R2(goal)
    variance = 1.0 if task.schema.classes else float(np.var(task.arrays[1]))
    moved = asked.shortfall_sensitivity(task.rows.n)
    found: dict[str, list[float]] = {"usual": [], "gaussian": [], "laplace": []}
    for mu, reached in curve:
        gap = (goal - reached if task.schema.classes else reached - goal) * variance
        if gap > 0:
            whole = math.hypot(mu, -float(ndtri(GAMMA)) * moved / gap)
            pure = moved * math.log(1.0 / (2.0 * GAMMA)) / gap
            found["usual"].append(min(usual(whole), usual(mu) + pure))
            found["gaussian"].append(Curve.gaussian(whole**2 / 2).epsilon(DELTA))
            found["laplace"].append((Curve.gaussian(mu**2 / 2) + Curve.pure(pure)).epsilon(DELTA))
    return {name: round(min(costs), 4) for name, costs in found.items()}


def usual(mu: float) -> float:
    """Return the smallest ε of a Gaussian release at δ, in the usual sense."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if deviations(middle) >= mu else (middle, high)
    return high


def shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{round(value, 3) + 0.0:.3f}"


def asked_for(name: str, goal: float) -> str:
    return f"{'error ≤' if name == 'Adult' else 'R² ≥'} {goal:g}"


def lines_of(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def costs(kept: dict[str, Any], names: dict[str, tuple[float, ...]]) -> str:
    """Return what searches cost and what their models are worth."""
    head = ["table", "n", "p", "goal", "mean ε", "median", "most", "mean of all", "refused", "way", "train", "test"]
    head += ["constant: train", "test", "no privacy: train", "test", "broken promises"]
    rows = []
    for name, goals in names.items():
        about = kept.get(f"{name}|about")
        for goal in goals:
            own = kept.get(f"{name}|{goal}|expost")
            if own is None or about is None:
                continue
            mean, median, most = own["epsilon"]
            cells = [name, f"{about['n']:,}", str(about["p"]), asked_for(name, goal), f"**{mean:.3f}**", shown(median)]
            cells += [
                shown(most),
                f"{own['epsilon of all']:.3f} ({own['of']})",
                f"{own['refused']} of {own['runs']}",
                own["way"],
                shown(own["train"][0]),
            ]
            cells += [shown(own["test"][0])] + [shown(v) for which in ("constant", "best") for v in about[which]]
            rows.append([*cells, f"{own['broken']} of {own['of']}"])
    return lines_of(head, rows)


def comparison(kept: dict[str, Any], names: dict[str, tuple[float, ...]]) -> str:
    """Return what else a goal would cost, as multiples too."""
    head = ["table", "goal", "expost: mean ε, ex post", "usual", "by objective perturbation", *PEERS.values()]
    head += ["floor, usual", "expost over it", "floor, ex post", "expost over it"]
    rows = []
    for name, goals in names.items():
        for goal in goals:
            own, other = (kept.get(f"{name}|{goal}|{way}") for way in ("expost", "objective"))
            if own is None or other is None:
                continue
            mean, usually = own["epsilon of all"], own["usual of all"]
            cells = [
                name,
                asked_for(name, goal),
                f"**{mean:.3f}**",
                f"**{usually:.3f}**",
                shown(other["epsilon of all"]),
            ]
            for peer in PEERS:
                found = kept.get(f"{name}|{goal}|{peer}")
                if found is None:
                    cells.append("–" if peer == "adassp" and name == "Adult" else "not measured")
                elif found["epsilon"] is None:
                    cells.append(f"none up to {GRID[-1]:.0f}")
                else:
                    times = f"{mean / found['epsilon']:.2g}×, {usually / found['epsilon']:.2g}×"
                    cells.append(f"{found['epsilon']:.3g} ({times})")
            peers = [kept.get(f"{name}|{goal}|{peer}") for peer in PEERS]
            best = min((found["epsilon"] for found in peers if found and found["epsilon"]), default=math.nan)
            least = kept.get(f"{name}|{goal}|floor")
            if least is None:
                cells += ["not measured"] * 4
            else:
                ex_post = min(least["gaussian"], least["laplace"])
                for least_cost, cost in ((least["usual"], usually), (ex_post, mean)):
                    cells += [f"{least_cost:.3g} ({least_cost / best:.2g}×)", f"{cost / least_cost:.2g}×"]
            rows.append(cells)
    return lines_of(head, rows)


def table(kept: dict[str, Any], names: dict[str, tuple[float, ...]]) -> str:
    """Write what is kept as two Markdown tables."""
    return (
        f"# Whole tables under approximate privacy\n\nexpost {__version__}; γ = {GAMMA}, δ = 10⁻⁶, max_epsilon = 10, "
        'everything charged, ε ex post (on_invalid="clip" would add 80/n). Simulation on data one may look at: the '
        "noise is seeded and protects nobody.\n`python benchmarks/tables_delta.py`\n\n"
        + costs(kept, names)
        + "\n\nMean, median and most are of the first runs, *mean of all* of those as well that count broken promises. "
        "Quality (error rate or R²) is the mean over models released. Constant: the majority, or the mean. No "
        "privacy: scikit-learn's logistic regression, or least squares, with hardly any regularisation. Way: what was "
        "predicted to be cheapest, from public numbers.\n\n## Beside peers at an oracle's ε, and a floor\n\n"
        + comparison(kept, names)
        + "\n\nPeers release one model at an ε that an oracle names after looking at the rows: the smallest of a grid "
        "at which nine of ten draws meet the goal, with the best of a few constants. Their ε is the usual hockey-stick "
        "one, and they promise nothing; jax-privacy 2.0 clips, noises and accounts by itself (`--measure jax`). In "
        "brackets, what expost costs (means of all runs) as a multiple of it: ex post, and in the usual sense, like "
        "with like but that theirs holds for all outcomes.\n\n"
        "*The floor*: what whoever keeps a promise must pay even if an oracle trains. The oracle's gradient descent, "
        "at whatever noise is best, and one honest test of its model, at γ, that passes every other time; training and "
        "test added up, the least over all noises, with a Gaussian or a Laplace test, whichever is less. No search, no "
        "second look, no level in vain. In brackets, as a multiple of "
        "the best peer's ε: where that is above 2, nobody who trains and tests in this way comes within twice of what "
        "the peer needs. (expost trains otherwise, on gradients that are clipped by their length around a released "
        "mean, so it may cost less.)\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--violations", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parts = ("expost", "peers", "floor")
    parser.add_argument("--measure", nargs="*", choices=(*parts, "jax"), default=parts)
    parser.add_argument("--tables", nargs="+", help="names of the tables to measure (default: all)")
    options = parser.parse_args()
    folder = os.environ.get("EXPOST_DATA")
    if folder is None:
        print("set EXPOST_DATA to the folder with adult_train.csv.gz and diamonds.csv.gz", file=sys.stderr)
        return 2
    found = tasks(Path(folder))
    with threadpool_limits(1):
        for task in found:
            if options.tables is not None and task.name not in options.tables:
                continue
            limits = {name: [round(v, 5) for v in pair] for name, pair in task.limits.items()}
            keep(f"{task.name}|about", {"n": task.rows.n, "p": task.rows.p, "task": task.schema.task, **limits})
            whole = task.name != "Diamonds, 80 %"  # the one with test rows: what a model is worth there
            for goal in task.goals if "expost" in options.measure else ():
                expost(task, goal, options.runs, options.violations if whole else 0)
                if whole:
                    expost(task, goal, options.runs, 0, "objective")
            if "floor" in options.measure and whole:
                curve = curve_of(Peers(task), max(1, options.draws // 2))
                for goal in task.goals:
                    keep(f"{task.name}|{goal}|floor", floor(task, goal, curve))
            for peer in PEERS if whole else ():
                for goal in task.goals if ("jax" if peer == "jax" else "peers") in options.measure else ():
                    if peer != "adassp" or task.schema.task == "regression":
                        draws = options.draws
                        answer = (
                            jax_privacy(task, goal, draws) if peer == "jax" else Peers(task).oracle(peer, goal, draws)
                        )
                        keep(f"{task.name}|{goal}|{peer}", answer)
                        print(f"{task.name} {goal}, {peer}: oracle's ε {answer['epsilon']}", flush=True)
    text = table(keep("", None), {task.name: task.goals for task in found})
    print(text)
    RESULT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
