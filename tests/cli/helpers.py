"""Files for the command line to read, and a call that collects what it says."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost.cli import main

# a target loose enough that the fixed seed is released, and a calibration that is quick to plan
QUICK = ["--excess-risk", "0.45", "--regularization", "1", "--calibration", "theorem", "--n-levels", "8"]
QUICK += ["--max-epsilon", "10"]
COLUMNS = ["--columns", "age", "income"]
BOUNDS = ["--column-bounds", "age", "0", "100", "--column-bounds", "income", "0", "2e5"]
REGRESSION = ["--target", "spend", "--task", "regression", "--target-bounds", "0", "1000", *COLUMNS, *BOUNDS]
CLASSIFICATION = ["--target", "churn", "--task", "classification", "--classes", "no", "yes", *COLUMNS, *BOUNDS]


class Said(NamedTuple):
    status: int
    out: str
    err: str


def table(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 90, n), rng.integers(0, 200_000, n)
    spend = np.round(2.0 * age + income / 1000 + rng.normal(0, 20, n), 3)
    late = spend > np.median(spend)
    return pa.table(
        {
            "age": age,
            "income": income,
            "spend": spend,
            "churn": np.where(late, "yes", "no"),
            "late": late,
            "sign": np.where(late, 1, -1),
        }
    )


def write(folder: Path, kind: str = "csv", data: pa.Table | None = None) -> Path:
    data = table() if data is None else data
    path = folder / f"data.{kind}"
    if kind in ("parquet", "pq"):
        pa.parquet.write_table(data, path)
    else:
        with pa.output_stream(str(path), compression="gzip" if kind == "csv.gz" else None) as stream:
            pa.csv.write_csv(data, stream)
    return path


def call(capsys, *arguments: object) -> Said:
    """Run the command line in this process."""
    capsys.readouterr()
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse leaves this way
        status = stop.code
    said = capsys.readouterr()
    return Said(status, said.out, said.err)
