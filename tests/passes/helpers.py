"""A table with a little of everything, in every container, and fits of it."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost import R2, AccuracyFirstModel, ErrorRate
from expost.exceptions import LargeEpsilonWarning
from expost.release.release import Release

N = 3000
COLUMNS = {
    "age": {"bounds": [0, 100]},
    "pay": {"bounds": [0, 10], "missing": "indicator"},
    "size": {"bounds": [1, 1000], "transform": "log1p"},
    "city": {"categories": ["Bern", "Oslo"], "other": True},
    "member": {"boolean": True},
}
LABELS = {"target": "label", "classes": ["no", "yes"], "columns": COLUMNS}
NUMBERS = {"target": "spend", "target_bounds": [-2, 2], "columns": COLUMNS}


@cache
def table() -> pa.Table:
    """Numbers within and beyond bounds, cells that are missing, text and truth values."""
    rng = np.random.default_rng(0)
    age, pay = rng.uniform(-5, 105, N), rng.uniform(0, 12, N)
    city = rng.choice(["Bern", "Oslo", "Rome", ""], N)
    member = rng.choice([True, False], N)
    spend = np.clip(age / 50 - 1 + 0.4 * member + rng.normal(0, 0.1, N), -2, 2)
    return pa.table(
        {
            "age": age,
            "pay": pa.array(pay, mask=rng.random(N) < 0.1),
            "size": np.exp(rng.uniform(0, 6, N)),
            "unused": rng.normal(size=N),
            "city": city,
            "member": member,
            "label": np.where(spend > 0, "yes", "no"),
            "spend": spend,
        }
    )


def fitted(what: object, *, regression: bool = False, **options: object) -> Release:
    """Return the release of a small fit."""
    schema, goal = (NUMBERS, R2(0.3)) if regression else (LABELS, ErrorRate(0.35))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        return AccuracyFirstModel(schema, goal, random_state=5, max_epsilon=200.0, **options).fit(what).release_


def told(release: Release) -> dict[str, object]:
    """Return everything a release says but when and where it was made, and its number."""
    said = release.to_dict()
    return {key: value for key, value in said.items() if key not in ("versions", "created", "id")}


def write(folder: Path, rows_in_a_group: int = 250) -> dict[str, Path]:
    """Write the table as files of every kind."""
    whole, halves = table(), [table().slice(0, 1300), table().slice(1300)]
    files = {"parquet": folder / "t.parquet", "csv": folder / "t.csv", "packed": folder / "t2.csv.gz"}
    pa.parquet.write_table(whole, files["parquet"], row_group_size=rows_in_a_group, compression="none")
    pa.csv.write_csv(whole, files["csv"], pa.csv.WriteOptions(quoting_style="none"))
    with pa.CompressedOutputStream(str(files["packed"]), "gzip") as stream:
        pa.csv.write_csv(whole, stream)
    files["folder"] = folder / "parts"
    mixed = folder / "mixed"  # which only a pattern may name
    for place in (files["folder"], mixed):
        place.mkdir()
        pa.csv.write_csv(halves[1], place / "b.csv")
    pa.csv.write_csv(halves[0], files["folder"] / "a.csv")
    pa.parquet.write_table(halves[0], mixed / "a.parquet")
    files["pattern"] = mixed / "*"
    return files
