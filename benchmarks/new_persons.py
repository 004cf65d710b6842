"""A promise about new persons, pure and at a δ: what it costs beside the one about the persons themselves.

    python benchmarks/new_persons.py [--seeds 5]

Generated persons with several rows that are much alike; fresh persons are taken for new ones. Simulation: the noise is
seeded, the rows are looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from expost import AccuracyFirstModel, ErrorRate
from expost.exceptions import AccuracyNotReached
from expost.release.release import Release

PAGE = Path(__file__).parent / "results" / "new_persons.md"
PERSONS, ROWS, NEW, PART, CAP, DELTA = 20_000, 4, 5_000, 0.25, 4.0, 1e-6
#: Columns, and an error rate that is asked for.
SETTINGS = ((10, 0.3), (40, 0.3), (40, 0.2))


def persons(seed: int, columns: int) -> dict[str, np.ndarray]:
    """Return a table of them, and of new ones after those."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(PERSONS + NEW), ROWS)
    X = np.clip(rng.uniform(0, 1, (PERSONS + NEW, columns))[whose] + rng.normal(0, 0.1, (len(whose), columns)), 0, 1)
    weights = rng.normal(size=columns)
    signal = (X - 0.5) @ weights / np.linalg.norm(weights)
    y = np.where(signal + rng.logistic(0, 0.06, len(whose)) > 0, "yes", "no")
    return {"whose": whose, "y": y, **{f"x{j}": X[:, j] for j in range(columns)}}


def fitted(columns: int, goal: float, delta: float, part: float, seed: int) -> tuple[Release, float]:
    """Return the release of a fit, and the error rate of its model on new persons."""
    table, n = persons(seed, columns), PERSONS * ROWS
    schema = {
        "target": "y",
        "classes": ["no", "yes"],
        "columns": {f"x{j}": {"bounds": [0, 1]} for j in range(columns)},
        "person": "whose",
        "rows_per_person": ROWS,
    }
    model = AccuracyFirstModel(schema, ErrorRate(goal), delta=delta, holdout=part, max_epsilon=CAP, random_state=seed)
    try:
        release = model.fit({name: column[:n] for name, column in table.items()}).release_
    except AccuracyNotReached as refusal:
        return refusal.release, np.nan
    new = {name: column[n:] for name, column in table.items()}
    return release, float(np.mean(np.asarray(release.predict(new)) != new["y"]))


def line(columns: int, goal: float, delta: float, part: float, seeds: int) -> str:
    """Return a line of the table."""
    found = [fitted(columns, goal, delta, part, seed) for seed in range(seeds)]
    errors = [error for _, error in found if not np.isnan(error)]
    strict, usual = (np.mean([getattr(release, name) for release, _ in found]) for name in ("epsilon", "epsilon_usual"))
    at, about = f"{delta:g}" if delta else "pure", "new persons" if part else "these persons"
    return (
        f"| {columns} | ≤ {goal} | {at} | {about} | "
        f"{strict:.3f} | {usual:.3f} | {len(errors)} of {seeds} | {np.mean(errors) if errors else np.nan:.3f} | "
        f"{sum(error > goal for error in errors)} |"
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for columns, goal in SETTINGS:
        for part in (0.0, PART):
            for delta in (0.0, DELTA):
                lines.append(line(columns, goal, delta, part, options.seeds))
                print(lines[-1], flush=True)
    PAGE.write_text(
        f"""# A promise about new persons

`python benchmarks/new_persons.py --seeds {options.seeds}`

{PERSONS:,} generated persons with {ROWS} rows each that are much alike, γ = 0.1, `max_epsilon` = {CAP:g}; for a promise
about new persons a part {PART:g} of them is held out. ε is about one person with all of their rows. Means over
{options.seeds} seeded runs, refusals counted. {NEW:,} persons that no fit has seen are taken for new ones.

| columns | error rate | δ | promised about | ε | usual sense | released | error on new persons | above the goal there |
|---|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
