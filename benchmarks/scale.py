"""Time and memory of passes over tables on disk, against reading the same file and forming XᵀX in floats.

``python benchmarks/scale.py`` writes ``benchmarks/results/scale.json``; ``--rows 1e7`` for ten million rows (a file of
4 GB in ``--folder``), ``--keep`` leaves the files. Everything is a ratio of two measurements of one run, each the
median of ``--repeat``, on a warm cache, without imports. Times are of the processor (all threads together) and of the
clock; on a machine that others use only the first says much.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost.data import Bounds, Encoding, Preparation, Rows, Schema
from expost.data.disk import open_disk
from expost.data.streamed import EncodedSource, PreparedSource, Wanted
from expost.engines import LocalEngine
from expost.erm.capped_logistic import CappedLogisticLoss
from expost.erm.passes import Passes
from expost.erm.sums import sums_of, sums_over
from expost.threads import one_thread

HERE = Path(__file__).parent
THREADS = 2


def names(p: int) -> list[str]:
    return [f"x{j}" for j in range(p)]


def write(file: Path, n: int, p: int, group: int) -> None:
    """Write uniform features, a number and a label."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=p)
    writer = None
    for start in range(0, n, group):
        X = rng.uniform(-1, 1, (min(group, n - start), p))
        signal = X @ slopes / np.sqrt(p)
        y = np.clip(signal + rng.normal(0, 0.3, len(X)), -3, 3)
        columns = [*map(pa.array, np.ascontiguousarray(X.T)), pa.array(y), pa.array(np.where(signal > 0, "yes", "no"))]
        part = pa.table(columns, names=[*names(p), "y", "label"])
        writer = writer or pa.parquet.ParquetWriter(file, part.schema, compression="none", use_dictionary=["label"])
        writer.write_table(part, row_group_size=group)
    assert writer is not None
    writer.close()


def measured(work: Callable[[], object], repeat: int) -> dict[str, float]:
    """Return medians of seconds."""
    clock, processor = [], []
    work()  # warm
    for _ in range(repeat):
        begun, used = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - begun)
        processor.append(time.process_time() - used)
    return {"clock": statistics.median(clock), "processor": statistics.median(processor)}


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


def ridge_source(file: Path, p: int) -> PreparedSource:
    recipe = Preparation(Bounds((-1.0,) * p, (1.0,) * p), float(p), (-3.0, 3.0), intercept_weight=0, n_columns=p)
    source = PreparedSource(open_disk(file), recipe, Wanted(tuple(names(p)), "y", None))
    source.n = source.disk.count()
    source.engine = LocalEngine(THREADS)
    return source


def label_passes(file: Path, p: int) -> Passes:
    columns = {name: {"bounds": [-1, 1]} for name in names(p)}
    encoding = Encoding(Schema.from_dict({"target": "label", "classes": ["no", "yes"], "columns": columns}))
    source = EncodedSource(open_disk(file), encoding)
    source.n = source.disk.count()
    return Passes(CappedLogisticLoss(0.5), source, LocalEngine(THREADS))


def peak(file: Path, p: int) -> float:
    """Return megabytes that a fresh process needs at most for the exact sums and one step of a minimiser."""
    code = (
        f"import re, sys; sys.path.insert(0, {str(HERE)!r}); import scale; from pathlib import Path; "
        f"import numpy as np; file = Path({str(file)!r}); scale.sums_over(scale.ridge_source(file, {p})); "
        f"scale.label_passes(file, {p}).slopes(np.zeros({p + 1}), curvature=True); "
        "print(int(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1]) / 1024)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def exact_sums(n: int, p: int, repeat: int) -> dict[str, float]:
    """Compare exact sums with XᵀX in floats on rows in memory."""
    x = (np.random.default_rng(0).uniform(-1, 1, (n, p)) / p * 2**20).astype(np.int32)
    rows, X = Rows(x, x[:, 0].copy()), x / 2**20
    ours = measured(lambda: sums_of(rows, threads=THREADS), repeat)
    theirs = measured(lambda: X.T @ X, repeat)
    return {key: ours[key] / theirs[key] for key in ours}


def exponent(sizes: list[int], times: list[float]) -> float:
    """Return the slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    n, p, repeat = int(options.rows), options.columns, options.repeat
    sizes = [n // 100, n // 10, n]
    files = {size: options.folder / f"scale-{size}-{p}.parquet" for size in sizes}
    for size, file in files.items():
        write(file, size, p, 131_072)
    large, wide = files[n], options.folder / f"scale-{n}-{p}-groups.parquet"
    read, products = measured(lambda: bare_read(large, p), repeat), measured(lambda: bare_products(large, p), repeat)
    source, passes = ridge_source(large, p), label_passes(large, p)
    ridge = measured(lambda: sums_over(source), repeat)
    theta = np.linspace(-1, 1, p + 1)
    newton = measured(lambda: passes.slopes(theta, curvature=True), repeat)
    count = measured(lambda: passes.errors(theta), repeat)
    ridges = [measured(lambda file=file: sums_over(ridge_source(file, p)), repeat) for file in files.values()]
    write(wide, n, p, 1_048_576)
    found = {
        "rows": n,
        "columns": p,
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "seconds": {"bare read": read, "read and XᵀX": products, "ridge": ridge, "newton step": newton, "count": count},
        "ridge against read and XᵀX": {key: ridge[key] / products[key] for key in ridge},
        "a pass of a minimiser against a bare read": {key: newton[key] / read[key] for key in read},
        "a count of errors against a bare read": {key: count[key] / read[key] for key in read},
        "exponent in n": {key: exponent(sizes, [each[key] for each in ridges]) for key in ridge},
        "peak MB by rows": {str(size): peak(file, p) for size, file in files.items()},
        "peak MB with row groups of 1,048,576": peak(wide, p),
        "exact sums against XᵀX in memory": {str(q): exact_sums(2**23 // q, q, repeat) for q in (10, 100, 1000)},
    }
    (HERE / "results" / "scale.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(found, indent=2, ensure_ascii=False))
    if not options.keep:
        for file in (*files.values(), wide):
            file.unlink()


if __name__ == "__main__":
    main()
