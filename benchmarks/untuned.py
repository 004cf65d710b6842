"""Two real tables on which no constant of the searches was looked at: network connections and posts about a topic.

    EXPOST_DATA=... python benchmarks/untuned.py [--runs 10]

KDD Cup 1999 (attack or not, text columns, half of the 10 % file) and Twitter's buzz (how many authors are active on the
last day, from the six days before). Bounds and categories as somebody would state them who knows the protocol and has
not seen the rows; half of the rows are for the test. Simulation: the noise is seeded and protects nobody.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import Task, summary

from expost import R2, AccuracyFirstModel, ErrorRate, Schema, __version__
from expost.noise import SeededSource
from expost.privacy.account import Spending
from expost.search.run import carry_out, settle

RESULT = Path(__file__).parent / "results" / "untuned.md"
GAMMA, DELTA = 0.1, 1e-6
RATES = [*range(24, 31), *range(33, 41)]  # columns of KDD-99 that are shares
FLAGS = ("SF", "S0", "S1", "S2", "S3", "REJ", "RSTR", "RSTO", "RSTOS0", "SH", "OTH")
SERVICES = ("http", "smtp", "ftp", "ftp_data", "telnet", "domain_u", "private", "ecr_i", "eco_i", "finger", "auth")


def halves(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = np.random.default_rng(3).permutation(len(table))
    return table.iloc[order[: len(table) // 2]], table.iloc[order[len(table) // 2 :]]


def kdd(data: Path) -> Task:
    table = pd.read_csv(data / "kddcup.data_10_percent.gz", header=None)
    table.columns = [f"c{i}" for i in range(41)] + ["label"]
    table["label"] = np.where(table["label"] == "normal.", "normal", "attack")
    columns: dict[str, Any] = {}
    for i in range(41):
        bounds = [0, 1] if i in RATES else [0, 1_000_000_000] if i in (4, 5) else [0, 100_000] if i == 0 else [0, 1000]
        columns[f"c{i}"] = {"bounds": bounds} if i in RATES else {"bounds": bounds, "transform": "log1p"}
    columns["c1"] = {"categories": ["tcp", "udp", "icmp"]}
    columns["c2"] = {"categories": list(SERVICES), "other": True}
    columns["c3"] = {"categories": list(FLAGS)}
    schema = Schema.from_dict({"target": "label", "classes": ["normal", "attack"], "columns": columns})
    train, test = halves(table)
    return Task("KDD-99", schema, train, test, (0.05, 0.02))


def twitter(data: Path) -> Task:
    table = pd.read_csv(data / "twitter_buzz_sample.csv.gz", header=None).iloc[:, :77]
    table.columns = [f"c{i}" for i in range(77)]
    table["active"] = np.log1p(table["c76"])
    used = [f"c{i}" for i in range(77) if i % 7 != 6]  # the last day of each series is not known yet
    counts = {name: {"bounds": [0, 1_000_000], "transform": "log1p"} for name in used}
    schema = Schema.from_dict({"target": "active", "target_bounds": [0, 14], "columns": counts})
    train, test = halves(table[[*used, "active"]])
    return Task("Twitter", schema, train, test, (0.7, 0.85))


def measured(task: Task, goal: float, delta: float, runs: int) -> list[str]:
    asked = ErrorRate(goal) if task.schema.classes else R2(goal)
    model = AccuracyFirstModel(task.schema, asked, delta=delta)
    request = model.request_for(task.rows.n, task.schema, task.encoding)
    plan = settle(request)
    generator = request.mechanism.on(task.rows, request.problem)
    spent, train, test, refused = [], [], [], 0
    for seed in range(runs):
        release = carry_out(request, plan, generator, SeededSource([53, seed]), Spending())
        spent.append(release.epsilon)
        refused += release.status != "released"
        if release.status == "released":
            for kept, value in zip((train, test), task.reached(np.asarray(release.hypothesis)), strict=True):
                kept.append(value)
    broken = sum(value > goal if task.schema.classes else value < goal for value in train)
    sign = "error ≤" if task.schema.classes else "R² ≥"
    (_, constant), (_, best) = task.limits["constant"], task.limits["best"]
    way = f"δ = {delta:g}, {request.mechanism.name}" if delta else "pure"
    cells = [task.name, f"{task.rows.n:,}", f"{task.rows.p}", f"{sign} {goal:g}", way, f"**{np.mean(spent):.3f}**"]
    cells += [f"{max(spent):.3f}", f"{refused} of {runs}", f"{summary(test)[0]:.3f}", f"{constant:.3f}", f"{best:.3f}"]
    return [*cells, f"{broken} of {runs}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    head = [
        "table",
        "n",
        "p",
        "goal",
        "privacy",
        "mean ε",
        "most",
        "refused",
        "test",
        "constant",
        "no privacy",
        "broken",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for make in (kdd, twitter):
        task = make(Path(os.environ.get("EXPOST_DATA", ".")))
        for goal in task.goals:
            for delta in (0.0, DELTA):
                lines.append("| " + " | ".join(measured(task, goal, delta, runs)) + " |")
                print(lines[-1], flush=True)
    RESULT.write_text(
        f"# Tables nobody tuned on\n\nexpost {__version__}; defaults, γ = {GAMMA}, max_epsilon = 10, {runs} seeded "
        "runs, everything charged. Simulation on data one may look at. `python benchmarks/untuned.py`\n\n"
        + "\n".join(lines)
        + "\n\nQuality on the half of the rows that was not fitted to: of released models, of a constant, and of a "
        "linear model without privacy.\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
