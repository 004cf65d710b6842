"""What a goal costs on whole tables with a schema, beside what one-shot mechanisms would need if an oracle chose ε.

    EXPOST_DATA=... python benchmarks/tables.py [--runs 20] [--violations 200] [--tables adult ...] [--peer]

Numbers are kept in results/tables.json part by part, so that --measure with nothing after it only writes the table and
draws the figure anew. Simulation: the noise is seeded, the rows are looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from one_shot import GRID, PASS, RATIO, Peers, quality
from sklearn.linear_model import LogisticRegression

from expost import R2, AccuracyFirstModel, ErrorRate, __version__
from expost.account.account import Spending
from expost.noise import SeededSource
from expost.search.run import carry_out, settle
from expost.table.encoding import Encoding
from expost.table.rows import ONE, Rows
from expost.table.schema import Schema

HERE = Path(__file__).parent
KEPT, RESULT = HERE / "results" / "tables.json", HERE / "results" / "tables.md"
GAMMA = 0.1
NAMES = ("Adult", "Diamonds", "Diamonds, 80 %", "generated")
PEERS = {
    "objective": "objective perturbation",
    "output": "output perturbation",
    "second moments": "second moments",
    "diffprivlib": "diffprivlib",
}


@dataclass
class Task:
    """Encoded rows of a table, to fit and to test on, and the goals asked of it."""

    name: str
    schema: Schema
    train: Any
    test: Any
    goals: tuple[float, ...]
    shown: tuple[float, ...] = ()  # further goals, for the figure's curve only

    @cached_property
    def encoding(self) -> Encoding:
        """How the table becomes rows."""
        return Encoding(self.schema)

    @cached_property
    def rows(self) -> Rows:
        """Rows fitted to."""
        return self.encoding.encode(self.train)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The same as floats."""
        return self.rows.x / ONE, self.rows.y / ONE

    @cached_property
    def test_arrays(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows tested on; a cell that does not fit the schema counts as missing."""
        if self.test is None:
            return None
        rows = self.encoding.encode(self.test, on_invalid="clip")
        return rows.x / ONE, rows.y / ONE

    def reached(self, theta: np.ndarray) -> tuple[float, float]:
        """Return the quality on the rows fitted to and on test rows."""
        pairs = (self.arrays, self.test_arrays)
        found = [np.nan if pair is None else quality(self.schema.task, pair[0] @ theta, pair[1]) for pair in pairs]
        return found[0], found[1]

    @cached_property
    def limits(self) -> dict[str, tuple[float, float]]:
        """What a constant and a model without privacy reach; scikit-learn with hardly any regularisation."""
        x, y = self.arrays
        constant = np.zeros(x.shape[1])
        constant[0] = self.encoding.scale * (np.sign(y.mean()) if self.schema.classes else y.mean())
        z = x * self.encoding.scale
        if self.schema.classes:
            best = LogisticRegression(C=1e3, fit_intercept=False, max_iter=2000, tol=1e-6).fit(z, y > 0).coef_.ravel()
        else:
            best = np.linalg.lstsq(z, y, rcond=1e-10)[0]
        return {"constant": self.reached(constant), "best": self.reached(best * self.encoding.scale)}


def adult(data: Path) -> list[Task]:
    test = pd.read_csv(data / "adult_test.csv.gz", skipinitialspace=True)
    test["classification"] = test["classification"].str.rstrip(".")
    schema = Schema.from_toml(HERE / "schemas" / "adult.toml")
    return [Task("Adult", schema, data / "adult_train.csv.gz", test, (0.18, 0.165), (0.21, 0.172, 0.16))]


def diamonds(data: Path) -> list[Task]:
    schema = Schema.from_toml(HERE / "schemas" / "diamonds.toml")
    table = pd.read_csv(data / "diamonds.csv.gz")
    order = np.random.default_rng(7).permutation(len(table))
    cut = int(0.8 * len(table))
    train, test = table.iloc[order[:cut]], table.iloc[order[cut:]]
    goals = (0.80, 0.87)
    return [
        Task("Diamonds", schema, data / "diamonds.csv.gz", None, goals),
        Task("Diamonds, 80 %", schema, train, test, goals, (0.70, 0.84, 0.89)),
    ]


def generated(_: Path) -> list[Task]:
    """Return a table of four numbers and three categories; labels follow a logistic model of a score."""
    rng, n = np.random.default_rng(20), 40_000
    levels = {"region": 20, "trade": 12, "plan": 5}
    columns: dict[str, Any] = {
        "years": rng.integers(0, 41, n),
        "visits": rng.poisson(6, n),
        "distance": rng.lognormal(2.0, 0.8, n).round(1),
        "score": rng.normal(50, 15, n).round(),
    }
    odds = 0.05 * (columns["years"] - 20) - 0.2 * (columns["visits"] - 6) + 0.04 * (columns["score"] - 50)
    odds -= 0.5 * (np.log1p(columns["distance"]) - 2.2) + 0.8
    for name, count in levels.items():
        chances = rng.dirichlet(np.full(count, 2.0))
        cells = rng.choice(count, n, p=chances)
        odds += rng.normal(0, 0.9, count)[cells]
        columns[name] = np.array([f"{name[0]}{i}" for i in range(count)])[cells]
    columns["stays"] = np.where(rng.random(n) < 1 / (1 + np.exp(-1.3 * odds)), "yes", "no")
    stated = """
        target = "stays"
        classes = ["no", "yes"]
        [columns]
        years = { bounds = [0, 40] }
        visits = { bounds = [0, 20] }
        distance = { bounds = [0, 200], transform = "log1p" }
        score = { bounds = [0, 100] }
    """
    schema = tomllib.loads(stated)
    for name, count in levels.items():
        schema["columns"][name] = {"categories": [f"{name[0]}{i}" for i in range(count)]}
    table = pd.DataFrame(columns)
    task = Task("generated", Schema.from_dict(schema), table[: n // 2], table[n // 2 :], ())
    worst, best = task.limits["constant"][0], task.limits["best"][0]
    at = [round(worst + part * (best - worst), 3) for part in (0.5, 0.85, 0.25, 0.7, 0.92)]
    task.goals, task.shown = tuple(at[:2]), tuple(at[2:])
    return [task]


TABLES = {"adult": adult, "diamonds": diamonds, "generated": generated}


def keep(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """Add a part to what is kept, or only return all of it."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    if key:
        kept[key] = value
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    return kept


def summary(values: list[float]) -> list[float]:
    """Return mean, 10 % and 90 % quantile, and median."""
    if not values:
        return [float("nan")] * 4
    return [round(float(v), 5) for v in (np.mean(values), *np.quantile(values, [0.1, 0.9, 0.5]))]


def expost(task: Task, goal: float, runs: int, violations: int) -> dict[str, Any]:
    """Search with many seeds on rows encoded once, as AccuracyFirstModel does."""
    asked = ErrorRate(goal) if task.schema.classes else R2(goal)
    request = AccuracyFirstModel(task.schema, asked, max_epsilon=10.0).request_for(
        task.rows.n, task.schema, task.encoding
    )
    plan = settle(request)
    generator = request.mechanism.on(task.rows, request.problem)
    spent: list[float] = []
    train: list[float] = []
    test: list[float] = []
    refused = broken = 0
    start = time.perf_counter()
    for seed in range(max(runs, violations)):
        release = carry_out(request, plan, generator, SeededSource([23, seed]), Spending())
        on_train, on_test = (np.nan, np.nan)
        if release.status == "released":
            on_train, on_test = task.reached(np.asarray(release.hypothesis))
            broken += bool(on_train > goal if task.schema.classes else on_train < goal)
        if seed < runs:
            spent.append(release.epsilon)
            refused += release.status != "released"
            if release.status == "released":
                train.append(on_train)
                test.append(on_test)
    seconds = (time.perf_counter() - start) / max(runs, violations)
    print(f"{task.name} {goal}: mean ε {np.mean(spent):.3g}, {broken} broken, {seconds:.2g} s per fit of encoded rows")
    return {
        "goal": goal,
        "epsilon": [round(float(v), 4) for v in (np.mean(spent), np.median(spent), max(spent))],
        "train": summary(train),
        "test": summary(test),
        "refused": refused,
        "runs": runs,
        "broken": broken,
        "of": max(runs, violations),
    }


def at_oracle(task: Task, goal: float, found: Any, thetas: list[Any]) -> dict[str, Any]:
    both = [task.reached(np.asarray(theta)) for theta in thetas]
    return {
        "goal": goal,
        "epsilon": None if found is None else round(found[0], 4),
        "lambda": None if found is None else found[1],
        "train": summary([pair[0] for pair in both]),
        "test": summary([pair[1] for pair in both]),
    }


def environment(name: str, wanted: list[str], module: str) -> Path | str:
    """Return the interpreter of an environment with a peer, made if need be, or why there is none."""
    home = Path(tempfile.gettempdir()) / f"expost-benchmark-{name}"
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    try:
        if not python.exists():
            venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, timeout=600, capture_output=True)
        subprocess.run([python, "-c", f"import {module}"], check=True, timeout=60, capture_output=True)
    except (subprocess.SubprocessError, OSError) as problem:
        return type(problem).__name__
    return python


def diffprivlib(task: Task, goal: float, draws: int, python: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=task.arrays[0], y=task.arrays[1])
        asked = {"task": task.schema.task, "goal": goal, "draws": draws, "scale": task.encoding.scale}
        asked["blocks"] = [size for size, _ in task.encoding.blocks]
        command = [python, HERE / "peer_diffprivlib.py", path, json.dumps(asked)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return at_oracle(task, goal, answer["found"], answer["thetas"])


def measure(task: Task, options: argparse.Namespace, python: Path | str | None) -> None:
    keep(
        f"{task.name}|about",
        {
            "n": task.rows.n,
            "p": task.rows.p,
            "task": task.schema.task,
            "goals": task.goals,
            "shown": task.shown,
            **{name: [round(v, 5) for v in pair] for name, pair in task.limits.items()},
        },
    )
    if "expost" in options.measure:
        for goal in task.goals:
            keep(f"{task.name}|{goal}|expost", expost(task, goal, options.runs, options.violations))
        for goal in task.shown:
            keep(f"{task.name}|{goal}|expost", expost(task, goal, options.runs, 0))
    if "oracle" in options.measure:
        peers = Peers(task.schema.task, *task.arrays, task.encoding.blocks, task.encoding.scale)
        for goal in task.goals:
            for name, found, thetas in peers.oracles(goal, options.draws):
                keep(f"{task.name}|{goal}|{name}", at_oracle(task, goal, found, thetas))
                print(f"{task.name} {goal}, {name}: oracle's (ε, λ) {found}", flush=True)
    if isinstance(python, Path):
        for goal in task.goals:
            found = diffprivlib(task, goal, options.draws, python)
            keep(f"{task.name}|{goal}|diffprivlib", found)
            print(f"{task.name} {goal}, diffprivlib: oracle's ε {found['epsilon']}", flush=True)


def table(kept: dict[str, Any], draws: int) -> str:
    """Write what is kept as two Markdown tables."""
    show = lambda v: "–" if v is None or np.isnan(v) else f"{round(v, 3) + 0.0:.3f}"  # noqa: E731
    first = ["table", "n", "p", "goal", "mean ε", "median", "most", "refused", "train", "test"]
    first += ["constant: train", "test", "no privacy: train", "test", "broken promises"]
    second = ["table", "goal", "expost: mean ε", *PEERS.values()]
    tables = [["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] for head in (first, second)]
    for name in NAMES:
        about = kept.get(f"{name}|about", {"goals": []})
        for goal in about["goals"]:
            own = kept.get(f"{name}|{goal}|expost")
            if own is None:
                continue
            sign = "error ≤" if about["task"] == "classification" else "R² ≥"
            cells = [name, f"{about['n']:,}", str(about["p"]), f"{sign} {goal:g}", f"**{own['epsilon'][0]:.3f}**"]
            cells += [show(own["epsilon"][1]), show(own["epsilon"][2]), f"{own['refused']} of {own['runs']}"]
            cells += [show(own["train"][0]), show(own["test"][0])]
            cells += [show(v) for which in ("constant", "best") for v in about[which]]
            tables[0].append("| " + " | ".join([*cells, f"{own['broken']} of {own['of']}"]) + " |")
            cells = [name, f"{sign} {goal:g}", f"**{own['epsilon'][0]:.3f}**"]
            for peer in PEERS:
                found = kept.get(f"{name}|{goal}|{peer}")
                if found is None:
                    cells.append("not measured")
                elif found["epsilon"] is None:
                    cells.append(f"none up to {GRID[-1]:.0f}")
                else:
                    times = found["epsilon"] / own["epsilon"][0]
                    cells.append(f"{found['epsilon']:.3g} ({f'{times:.0f}' if times > 99 else f'{times:.2g}'}×)")
            tables[1].append("| " + " | ".join(cells) + " |")
    missing = kept.get("diffprivlib", {}).get("missing")
    note = f" diffprivlib could not be installed ({missing})." if missing else ""
    return (
        f"# Whole tables with a schema\n\nexpost {__version__}; γ = {GAMMA}, max_epsilon = 10, everything charged "
        '(on_invalid="clip" would add 80/n). Simulation on data one may look at: the noise is seeded and protects '
        "nobody.\n`python benchmarks/tables.py --peer`\n\n" + "\n".join(tables[0]) + "\n\n"
        "Quality (error rate or R²) is the mean over models released. Constant: the majority, or the mean. No privacy: "
        "scikit-learn's logistic regression, or least squares, on the same rows with hardly any regularisation; "
        "it minimises the logistic loss, not the error rate. Broken promises: released models that miss the goal on "
        "the rows fitted to; at most γ of the runs may.\n\n## One-shot mechanisms at an oracle's ε\n\n"
        f"The smallest ε on a grid of ratio {RATIO} at which {100 * PASS:g} % of {draws} draws meet the goal on the "
        "rows fitted to, the λ chosen for it from a grid as well (four to a decade): more than anybody could know, and "
        "nothing is charged for finding it out. In brackets: times what expost pays in the mean, for a search without "
        "an oracle and with a promise.\n\n" + "\n".join(tables[1]) + "\n\n"
        "Objective and output perturbation: Chaudhuri, Monteleoni, Sarwate (2011), spherical noise for the Euclidean "
        "ball, logistic loss or Huber's (slope ¼). Second moments: Laplace noise, squares of labels ±1 for "
        "classification. diffprivlib 0.6.6: LogisticRegression with the oracle's λ (two to a decade); LinearRegression "
        "has no λ and needs columns that are not redundant, so the most frequent level and the unused levels of each "
        "category are left out for it; it fails altogether where noise turns its quadratic form indefinite."
        f"{note}\n\n![Quality against ε](tables.png)\n\n"
        "On test rows: expost's means, the others' medians, and bands or bars from 10 to 90 % of the runs; expost's "
        "curve has further goals than the table. The others are at the oracle's ε for the two goals (dotted).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--violations", type=int, default=200)
    parser.add_argument("--draws", type=int, default=40, help="of a one-shot mechanism, for the oracle")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--measure", nargs="*", choices=("expost", "oracle"), default=["expost", "oracle"])
    parser.add_argument("--peer", action="store_true", help="also diffprivlib, in an environment of its own")
    options = parser.parse_args()
    wanted = ["diffprivlib==0.6.6", "scikit-learn<1.6"]  # later ones lack names that it imports
    python = environment("diffprivlib", wanted, "diffprivlib.models") if options.peer else None
    if isinstance(python, str):
        keep("diffprivlib", {"missing": python})
        print(f"diffprivlib could not be installed: {python}", file=sys.stderr)
    if options.measure or options.peer:
        for name in options.tables:
            for task in TABLES[name](Path(os.environ.get("EXPOST_DATA", "."))):
                measure(task, options, python)
    kept = keep("", {})
    RESULT.write_text(table(kept, options.draws), encoding="utf-8")
    from tables_figure import draw

    draw(kept, RESULT.with_suffix(".png"))


if __name__ == "__main__":
    main()
