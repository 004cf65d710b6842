"""A promise about new rows beside the one about the rows themselves: what both cost, and whether the first is kept.

    EXPOST_DATA=... python benchmarks/new_rows.py [--seeds 10] [--splits 40]

Adult's training file, the test file as new rows; then splits of three tables, some rows fitted and the others taken for
new ones. Simulation: the noise is seeded, the rows are looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from panel import adult, generated, with_schema

from expost import AccuracyFirstModel, ErrorRate
from expost.account.account import Spending
from expost.noise import SeededSource
from expost.search.new_rows import NewRowsPlan, Parting
from expost.search.run import carry_out, settle
from expost.table.encoding import Encoding
from expost.table.rows import ONE, Rows, declared

PAGE = Path(__file__).parent / "results" / "new_rows.md"
PART, CAP = 0.25, 2.0
#: Tables that are split, with an error rate that is asked for on new rows: between a constant and the limit.
SPLIT = {
    "Adult": (adult, 0.17),
    "credit": (lambda: with_schema("credit"), 0.2),
    "generated": (lambda: generated(20_000, 4, (20, 12, 5), seed=2, signal=0.6, positive=0.4), 0.24),
}


def searched(rows: Rows, encoding: Encoding, goal: float, delta: float, part: float, seed: int):
    """Return the release of one search."""
    model = AccuracyFirstModel(encoding.schema, ErrorRate(goal), max_epsilon=CAP, delta=delta, holdout=part)
    source = SeededSource(seed)
    fitted, held = Parting(part, source).of(rows) if part else (rows, None)
    request = model.request_for(fitted.n, encoding.schema, encoding)
    request = dataclasses.replace(request, held_out=0 if held is None else held.n)
    plan = settle(request)
    return carry_out(request, plan if held is None else NewRowsPlan.of(plan, held), fitted, source, Spending())


def errors(release, rows: Rows) -> float:
    return float(np.mean((rows.x / ONE @ np.array(release.hypothesis) > 0) != (rows.y > 0)))


def line(train: Rows, test: Rows, encoding: Encoding, goal: float, delta: float, part: float, seeds: int) -> str:
    found = [searched(train, encoding, goal, delta, part, seed) for seed in range(seeds)]
    released = [errors(release, test) for release in found if release.status == "released"]
    about = "new rows" if part else "the rows themselves"
    at = f"{delta:g}" if delta else "pure"
    mean = f"{np.mean(released):.4f}" if released else "–"
    return (
        f"| ≤ {goal} | {at} | {about} | {np.mean([release.epsilon for release in found]):.3g} | "
        f"{len(released)} of {seeds} | {mean} | {sum(e > goal for e in released)} |"
    )


def broken(rows: Rows, n: int, encoding: Encoding, goal: float, splits: int) -> tuple[int, int]:
    """Return in how many splits a model is released, and in how many it misses the goal on the other rows."""
    released = missed = 0
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(rows.n)
        fitted, new = (Rows(rows.x[some], rows.y[some], **declared(rows)) for some in (order[:n], order[n:]))
        release = searched(fitted, encoding, goal, 0.0, PART, seed)
        if release.status == "released":
            released, missed = released + 1, missed + (errors(release, new) > goal)
    return released, missed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--splits", type=int, default=40)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    schema, train, test = adult()
    encoding = Encoding(schema)
    rows, new = (encoding.encode(table) for table in (train, test))
    lines = [
        line(rows, new, encoding, goal, delta, part, options.seeds)
        for goal in (0.2, 0.18)
        for delta in (0.0, 1e-6)
        for part in (0.0, PART)
    ]
    broken_lines = []
    for name, (load, goal) in SPLIT.items():
        schema, *parts = load()
        encoding = Encoding(schema)
        all_rows = encoding.encode(pd.concat(parts, ignore_index=True), on_invalid="clip")
        n = 2 * all_rows.n // 3
        released, missed = broken(all_rows, n, encoding, goal, options.splits)
        broken_lines.append(f"| {name} | {n:,} | {all_rows.n - n:,} | ≤ {goal} | {released} | {missed} |")
        print(broken_lines[-1], flush=True)
    PAGE.write_text(
        f"""# A promise about new rows

`EXPOST_DATA=... python benchmarks/new_rows.py --seeds {options.seeds} --splits {options.splits}`

Adult, {rows.n:,} rows, γ = 0.1, `max_epsilon` = {CAP:g}, a part {PART:g} of the rows held out; means over
{options.seeds} seeded runs, refusals counted. The test file ({new.n:,} rows) is taken for new rows.

| error rate | δ | promised about | ε | released | error on the test file | above the goal there |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

{options.splits} splits of each table, two thirds of the rows to fit and to hold out of, one third taken for new ones,
pure. At most γ of the splits may release a model that misses the goal on new rows.

| table | rows | new rows | error rate on new rows | released a model | missed it |
|---|---|---|---|---|---|
{chr(10).join(broken_lines)}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
