"""The other comparisons of ``scale.py``: CSV files, exact sums, minimisers, a Dask cluster, and width."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scale_tools import (
    THREADS,
    Times,
    bare_csv,
    exponent,
    label_source,
    measured,
    peak,
    ratio,
    ridge_source,
    write,
)

from expost.numeric import exact_parts
from expost.passes.engine import LocalEngine
from expost.passes.sums import sums_over
from expost.solve.losses import LogisticLoss
from expost.solve.perturbed import PerturbedErrors, PerturbedObjective
from expost.solve.row_sums import Passes, SlopeSums
from expost.table.rows import Rows


@dataclass(frozen=True)
class Settings:
    """How many rows files have, how often things are measured, and where files may be written."""

    rows: int
    repeat: int
    folder: Path


def csv(settings: Settings) -> dict[str, Any]:
    """Compare ridge regression over a CSV file with PyArrow's bare read of it."""
    file = write(settings.folder / "t.csv", settings.rows, 50, 100_000)
    source = ridge_source(file, 50)
    found = measured({"bare read": partial(bare_csv, file, 50), "ridge": lambda: sums_over(source)}, settings.repeat)
    size = file.stat().st_size
    file.unlink()
    return {
        "rows": settings.rows,
        "bytes": size,
        "seconds": found,
        "ridge against bare read": ratio(found["ridge"], found["bare read"]),
    }


def sums(settings: Settings) -> dict[str, Any]:
    """Compare exact sums with XᵀX in floats on rows in memory, both on two threads."""
    found = {}
    for p in (10, 50, 100, 1000):
        x = (np.random.default_rng(0).uniform(-1, 1, (2**24 // p, p)) / p * 2**20).astype(np.int32)
        rows, X = Rows(x, x[:, 0].copy()), x / 2**20
        works = {
            "exact sums": partial(sums_over, rows, threads=THREADS),
            "X.T @ X": lambda X=X: X.T @ X,
            "X.T @ X, 8192 rows at a time": lambda X=X: sum(
                X[k : k + 8192].T @ X[k : k + 8192] for k in range(0, len(X), 8192)
            ),
        }
        each = measured(works, settings.repeat)
        others = list(works)[1:]
        found[f"p = {p}"] = {"seconds": each, **{name: ratio(each["exact sums"], each[name]) for name in others}}
    return found


class Asked(PerturbedErrors):
    """Errors that ask for a certain gradient norm and no less."""

    @property
    def rounding(self) -> float:
        """A third of it."""
        return self.pull / 3.0


def minimiser(settings: Settings) -> dict[str, Any]:
    """Compare the minimiser with scikit-learn's L-BFGS at the gradient norm that it reaches."""
    from experiments import datasets

    found = {}
    kdd = datasets.load_kddcup99().rows()
    found["KDD-99, λ = 0.005"] = _minimised(kdd, 0.005, settings.repeat)
    found["KDD-99, λ = 0.0001"] = _minimised(kdd, 1e-4, settings.repeat)
    for n, p in ((200_000, 20), (200_000, 50), (100_000, 100), (40_000, 300), (20_000, 1000)):
        rng = np.random.default_rng(p)
        x = (rng.uniform(-1, 1, (n, p)) / np.sqrt(p) * 2**20).astype(np.int32)
        y = np.where(x @ rng.normal(size=p) / 2**20 + rng.normal(0, 0.3, n) > 0, 2**20, -(2**20)).astype(np.int32)
        found[f"{n} × {p}, λ = 0.00001"] = _minimised(Rows(x, y, "l2"), 1e-5, settings.repeat)
    return found


def _minimised(rows: Rows, lam: float, repeat: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression

    X, y, n, p = rows.x / 2**20, rows.y / 2**20, rows.n, rows.p

    def length(theta: Any) -> float:
        return float(np.linalg.norm(-(X.T @ (y / (1.0 + np.exp(y * (X @ theta))))) / n + lam * theta))

    def theirs() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=1 / (lam * n), fit_intercept=False, tol=1e-9, max_iter=10_000)
            return model.fit(X, y).coef_[0]

    reached = length(theirs())
    asked = Asked(LogisticLoss(), n, p, lam, 0.0, 0.9 * reached)

    def ours() -> Any:
        passes = Passes.over(LogisticLoss(), rows)
        return PerturbedObjective(passes).minimiser(asked, np.zeros(p), np.zeros(p))

    seconds = measured({"ours": ours, "lbfgs": theirs}, repeat)
    return {
        "gradient norms": {"ours": length(ours()), "lbfgs": reached},
        "seconds": seconds,
        "ratio": ratio(seconds["ours"], seconds["lbfgs"]),
    }


def dask(settings: Settings) -> dict[str, Any]:
    """Compare a pass by one and by two worker processes."""
    from distributed import Client, LocalCluster

    from expost.passes.dask import DaskEngine

    file = write(settings.folder / "dask.parquet", settings.rows, 50, 131_072)
    source = label_source(file, 50)
    work = SlopeSums(LogisticLoss(), exact_parts(np.linspace(-1, 1, source.p)), 0, 0)
    found: dict[str, Times] = {}
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    for workers in (1, 2):
        with LocalCluster(n_workers=workers, **options) as made, Client(made) as client:
            engine = DaskEngine(client)
            found |= measured({f"{workers} worker(s)": partial(engine.total, source, work)}, settings.repeat)
    local = {f"{k} thread(s)": partial(LocalEngine(k).total, source, work) for k in (1, 2)}
    found |= measured(local, settings.repeat)
    file.unlink()
    clock = {name: times["clock"] for name, times in found.items()}
    return {
        "rows": settings.rows,
        "clock": clock,
        "speed-up": {
            "workers": clock["1 worker(s)"] / clock["2 worker(s)"],
            "threads": clock["1 thread(s)"] / clock["2 thread(s)"],
        },
    }


_RIDGE = (
    "from expost import AccuracyFirstRidge; from expost.table.streamed import TableOnDisk; "
    "t = TableOnDisk({file!r}, 'y', columns=names({p})); "
    "AccuracyFirstRidge(excess_risk=0.2, bounds=1, target_bounds=(-3, 3), max_epsilon=1e6, random_state=0)"
    ".fit(t.X, t.y)"
)
_LABELS = (
    "from expost import AccuracyFirstLogisticRegression; from expost.table.streamed import TableOnDisk; "
    "t = TableOnDisk({file!r}, 'label', columns=names({p})); "
    "AccuracyFirstLogisticRegression(excess_risk=0.1, regularization=0.01, bounds=1, classes=('no', 'yes'), "
    "max_epsilon=1e6, random_state=0).fit(t.X, t.y)"
)


_RATE = (
    "from expost import AccuracyFirstModel, ErrorRate; "
    "AccuracyFirstModel(schema({p}), ErrorRate(0.2), max_epsilon=1000.0, random_state=0).fit({file!r})"
)


def width(settings: Settings) -> dict[str, Any]:
    """Measure time against p, and wide fits from beginning to end with their memory."""
    sizes, n = [10, 100, 1000], 20_000
    files = [write(settings.folder / f"w{p}.parquet", n, p, 16_384) for p in sizes]
    sources = {str(p): ridge_source(file, p) for p, file in zip(sizes, files, strict=True)}
    each = measured({name: partial(sums_over, source) for name, source in sources.items()}, settings.repeat)
    wide = write(settings.folder / "w5000.parquet", n, 5000, 4096)
    ends: dict[str, Any] = {}
    for name, code, file, p in (
        ("ridge, 20,000 × 1,000", _RIDGE, files[-1], 1000),
        ("logistic regression, 20,000 × 5,000", _LABELS, wide, 5000),
        ("error rate, 20,000 × 5,000", _RATE, wide, 5000),
    ):
        begun = time.perf_counter()
        ends[name] = {"peak MB": peak(code.format(file=str(file), p=p))}
        ends[name]["clock, imports included"] = time.perf_counter() - begun
    for file in (*files, wide):
        file.unlink()
    return {"rows": n, "seconds": each, "exponent in p": exponent(sizes, list(each.values())), "fits": ends}


PARTS: dict[str, Callable[[Settings], dict[str, Any]]] = {
    "csv": csv,
    "sums": sums,
    "minimiser": minimiser,
    "dask": dask,
    "width": width,
}
