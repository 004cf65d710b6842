"""Made-up tables, and measurements that are compared: taken in turn, so that whatever else runs disturbs all alike."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost.numeric import one_thread
from expost.passes.engine import LocalEngine
from expost.solve.losses import CappedLogisticLoss
from expost.solve.row_sums import Passes
from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.schema import Schema
from expost.table.streamed import EncodedSource, PreparedSource

HERE = Path(__file__).parent
THREADS = 2

Times = dict[str, float]


def names(p: int) -> list[str]:
    return [f"x{j}" for j in range(p)]


def write(file: Path, n: int, p: int, group: int) -> Path:
    """Write uniform features, a number and a label, as Parquet or CSV."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=p)
    writer: Any = None
    for start in range(0, n, group):
        X = rng.uniform(-1, 1, (min(group, n - start), p))
        signal = X @ slopes / np.sqrt(p)
        y = np.clip(signal + rng.normal(0, 0.3, len(X)), -3, 3)
        columns = [*map(pa.array, np.ascontiguousarray(X.T)), pa.array(y), pa.array(np.where(signal > 0, "yes", "no"))]
        part = pa.table(columns, names=[*names(p), "y", "label"])
        writer = writer or _writer(file, part.schema)
        writer.write_table(part, **({"row_group_size": group} if file.suffix == ".parquet" else {}))
    writer.close()
    return file


def _writer(file: Path, schema: Any) -> Any:
    if file.suffix == ".parquet":
        return pa.parquet.ParquetWriter(file, schema, compression="none", use_dictionary=["label"])
    return pa.csv.CSVWriter(file, schema, write_options=pa.csv.WriteOptions(quoting_style="none"))


def timed(work: Callable[[], object]) -> Times:
    begun, used = time.perf_counter(), time.process_time()
    work()
    return {"clock": time.perf_counter() - begun, "processor": time.process_time() - used}


def measured(works: Mapping[str, Callable[[], object]], repeat: int, *, warm: bool = False) -> dict[str, Times]:
    """Return medians of seconds; works are done in turn, after each was done once unless things are warm."""
    taken: dict[str, list[Times]] = {name: [] for name in works}
    for turn in range(1 if warm else 0, repeat + 1):
        for name, work in works.items():
            seconds = timed(work)
            if turn:
                taken[name].append(seconds)
    return {name: {key: statistics.median(t[key] for t in each) for key in each[0]} for name, each in taken.items()}


def ratio(one: Times, other: Times, times: float = 1.0) -> Times:
    return {key: one[key] / (times * other[key]) for key in one}


def exponent(sizes: list[int], times: list[Times]) -> Times:
    """Return the slope of log time against log size."""
    return {key: float(np.polyfit(np.log(sizes), np.log([each[key] for each in times]), 1)[0]) for key in times[0]}


def bare_read(file: Path, p: int) -> None:
    """Read the same row groups on two threads."""

    def group(k: int) -> None:
        pa.parquet.ParquetFile(file).read_row_group(k, columns=[*names(p), "y"], use_threads=False)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(group, range(pa.parquet.read_metadata(file).num_row_groups)))


def bare_products(file: Path, p: int) -> None:
    """Read the same row groups on two threads and form XᵀX in floats."""

    def group(k: int) -> object:
        part = pa.parquet.ParquetFile(file).read_row_group(k, columns=[*names(p), "y"], use_threads=False)
        X = np.column_stack([part.column(j).to_numpy() for j in range(p + 1)])
        return X.T @ X

    with one_thread(), ThreadPoolExecutor(THREADS) as pool:
        sum(pool.map(group, range(pa.parquet.read_metadata(file).num_row_groups)))


def bare_csv(file: Path, p: int) -> None:
    """Read the same columns of a CSV file as PyArrow does it."""
    pa.csv.read_csv(file, convert_options=pa.csv.ConvertOptions(include_columns=[*names(p), "y"]))


def ridge_source(file: Path, p: int) -> PreparedSource:
    recipe = Preparation(Bounds((-1.0,) * p, (1.0,) * p), float(p), (-3.0, 3.0), intercept_weight=0, n_columns=p)
    source = PreparedSource(open_disk(file), recipe, names(p), "y", None)
    source.n = source.disk.count()
    source.engine = LocalEngine(THREADS)
    return source


def schema(p: int) -> dict[str, Any]:
    return {"target": "label", "classes": ["no", "yes"], "columns": {name: {"bounds": [-1, 1]} for name in names(p)}}


def label_source(file: Path, p: int) -> EncodedSource:
    source = EncodedSource(open_disk(file), Encoding(Schema.from_dict(schema(p))))
    source.n = source.disk.count()
    return source


def label_passes(rows: Any) -> Passes:
    return Passes(CappedLogisticLoss(0.5), rows, LocalEngine(THREADS))


def peak(code: str) -> float:
    """Return megabytes that a fresh process needs at most for some code."""
    whole = (
        f"import re, sys; sys.path.insert(0, {str(HERE)!r}); from scale_tools import *; {code}; "
        "print(int(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1]) / 1024)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", whole], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])
