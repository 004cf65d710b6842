"""Time and memory of passes over tables of any size, against what others need for the same.

``PYTHONPATH=. python benchmarks/scale.py`` writes ``benchmarks/results/scale.json``; name sections to run only those
(``parquet``, ``csv``, ``sums``, ``minimiser``, ``dask``, ``width``), ``--rows 1e7`` for ten million rows (a file
of 4 GB in ``--folder``). Everything is a ratio of measurements of one run, taken in turn, each the median of
``--repeat``, on a warm cache, without imports. Times are of the processor (all threads together) and of the
clock; on a machine that others use only the first says much, and ``load`` says how many were using it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scale_parts import PARTS, Settings
from scale_tools import (
    HERE,
    THREADS,
    bare_products,
    bare_read,
    exponent,
    label_passes,
    label_source,
    measured,
    peak,
    ratio,
    ridge_source,
    schema,
    timed,
    write,
)

from expost import AccuracyFirstModel, ErrorRate
from expost.passes.engine import LocalEngine, watching
from expost.passes.first_pass import look_at
from expost.passes.sums import sums_over


class Counter:
    """Counts passes."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self, rows: int) -> None:
        """Note that a pass begins."""
        self.count += 1

    def advance(self, rows: int) -> None:
        """Note nothing."""

    def end(self) -> None:
        """Note nothing."""

    def note(self, text: str) -> None:
        """Note nothing."""


def fit(file: Path, p: int, **engine: Any) -> int:
    """Fit a model with an error rate; returns the number of passes."""
    passes = Counter()
    with watching(passes):
        AccuracyFirstModel(schema(p), ErrorRate(0.2), random_state=5, engine=LocalEngine(THREADS, **engine)).fit(file)
    return passes.count


def parquet(settings: Settings) -> dict[str, Any]:
    """Compare passes, sums and a fit with reading the same file."""
    n, p, repeat, folder = settings.rows, 50, settings.repeat, settings.folder
    file = write(folder / f"{n}.parquet", n, p, 131_072)
    source, theta = ridge_source(file, p), np.linspace(-1, 1, p + 1)
    streamed = label_passes(label_source(file, p))
    kept = label_passes(look_at(label_source(file, p), LocalEngine(THREADS, memory=0, scratch=folder))[0])
    sample = max(1, n // 2**17).bit_length() - 1
    seconds = measured(
        {
            "bare read": partial(bare_read, file, p),
            "read and XᵀX": partial(bare_products, file, p),
            "ridge": lambda: sums_over(source),
            "gradient": lambda: streamed.slopes(theta),
            "errors": lambda: streamed.errors(theta),
            "gradient, scratch": lambda: kept.slopes(theta),
            "gradient and sampled second derivatives, scratch": lambda: kept.slopes(
                theta, curvature=True, sample=sample
            ),
            "gradient and all second derivatives, scratch": lambda: kept.slopes(theta, curvature=True),
            "errors, scratch": lambda: kept.errors(theta),
        },
        repeat,
    )
    kept.source._scratch._give_up()  # so that there is room for another
    read = seconds["bare read"]
    fits: dict[str, Any] = {}
    for name, engine in {"by default": {}, "nothing written": {"scratch": False}}.items():
        counted: list[int] = []
        each = measured(
            {
                "bare read": partial(bare_read, file, p),
                "fit": lambda engine=engine, counted=counted: counted.append(fit(file, p, memory=128, **engine)),
            },
            repeat if not engine else 1,
            warm=True,
        )
        fits[name] = {**each, "passes": counted[-1], "ratio": ratio(each["fit"], each["bare read"], counted[-1])}
    sizes = [n // 100, n // 10, n]
    smaller = [write(folder / f"{size}.parquet", size, p, 131_072) for size in sizes[:-1]]
    files = [*smaller, file]
    sources = {str(size): ridge_source(each, p) for size, each in zip(sizes, files, strict=True)}
    grown = measured({size: partial(sums_over, each) for size, each in sources.items()}, repeat)
    work = "from expost.passes.sums import sums_over; f = Path({!r}); sums_over(ridge_source(f, 50)); " + (
        "label_passes(label_source(f, 50)).slopes(np.zeros(51), curvature=True)"
    )
    memory = {str(size): peak(work.format(str(each))) for size, each in zip(sizes, files, strict=True)}
    fitted = f"import scale; scale.fit(Path({str(file)!r}), 50, memory=128)"
    memory["fit"] = peak(fitted)
    for each in files:
        each.unlink()
    wide = write(folder / "groups.parquet", n, p, 1_048_576)
    memory["row groups of 1,048,576"] = peak(work.format(str(wide)))
    wide.unlink()
    return {
        "rows": n,
        "columns": p,
        "seconds": seconds,
        "ridge against read and XᵀX": ratio(seconds["ridge"], seconds["read and XᵀX"]),
        "against a bare read": {name: ratio(each, read) for name, each in seconds.items() if name != "bare read"},
        "fit against its passes times a bare read": fits,
        "exponent in n": exponent(sizes, list(grown.values())),
        "peak MB by rows": memory,
    }


def main() -> None:
    sections = {"parquet": parquet, **PARTS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(sections)}; all by default")
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    results = HERE / "results" / "scale.json"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.sections or sections:
            found: dict[str, Any] = {"load before": os.getloadavg()[0]}
            done = timed(lambda name=name, found=found: found.update(sections[name](_settings(options, folder))))
            found |= {"load after": os.getloadavg()[0], "took": done["clock"], "processors": os.cpu_count()}
            key = f"{name}, {int(options.rows):,} rows" if name == "parquet" else name
            known = json.loads(results.read_text()) if results.exists() else {}
            results.write_text(json.dumps({**known, key: found}, indent=2, ensure_ascii=False) + "\n")
            print(json.dumps({key: found}, indent=2, ensure_ascii=False), flush=True)


def _settings(options: argparse.Namespace, folder: str) -> Settings:
    return Settings(int(options.rows), options.repeat, Path(folder))


if __name__ == "__main__":
    main()
