"""Public entries that are recorded and replayed with every draw frozen: nothing but what is charged for may differ.

A run is recorded on D with all that it lets out (`expost.audit.transcripts`). Then it is replayed twice, on D and on a
neighbour D′. Both times the same comes out wherever something is released and charged for, so *everything* else that
an observer of the run could see has to be the same as well:

- which lines of the public side are carried out, in which order (`PUBLIC_SIDE`);
- passes over the rows, and what each computes;
- warnings, with their words; what is printed; files, with their names, sizes and bytes; the exit status;
- exceptions, with their words and notes; the release itself.

Two replays are compared, not a record and a replay: in both, whatever is drawn comes from the tape, and what was
settled once and kept stays kept. Ids, keys and dates are the same in all of them.

*What is left out.* What happens between the rows and a draw is private: the lines of solvers, sums, measures and
tables, and how often a solver passes over the rows before noise goes on what it found. That is running time, which
`docs/side_channels.md` measures and `expost.passes.constant_passes` hides. A pass that anything else makes, or leaves
out, is seen, and so is whatever else a solver does.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import itertools
import re
import secrets
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from expost.audit.attack import Attack, Found, Setting
from expost.audit.counting import source_of
from expost.audit.searches import PERSONS, SCHEMAS, extreme_table, other_model
from expost.audit.tape import Differs, Tape
from expost.audit.transcripts import taping
from expost.estimators import AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge
from expost.estimators.gradient import gradient_path
from expost.exceptions import AccuracyNotReached
from expost.goals import R2, ErrorRate, ExcessRisk, LogLoss, Precision, Recall
from expost.noise import WordSource
from expost.passes import LocalEngine
from expost.passes.dask import DaskEngine
from expost.release.kept_path import write_key
from expost.release.release import Release, today
from expost.search.kept_path_refinement import KeepPath, refine
from expost.search.run import run_search
from expost.solve import Problem, SquaredLoss
from expost.table.bounds_encoding import Preparation
from expost.table.schema import Schema

_HOME = Path(__file__).parents[1]
#: Folders in which every line that is carried out follows from what was released.
PUBLIC_SIDE = ("account", "release", "goals", "mechanisms", "search", "estimators", "cli")
#: But for this file, which finds private values and takes the shorter way where one will do.
_MEASURES = Path("goals", "measure.py")

Columns = dict[str, list[Any]]


@dataclass
class Seen:
    """What somebody who watches a run sees, in order."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    private: bool = False

    def note(self, kind: str, *what: Any) -> None:
        """Note something."""
        self.events.append((kind, *what))

    @contextlib.contextmanager
    def solving(self) -> Iterator[None]:
        """Look away from lines and passes, whose number a solver may choose by the rows; from nothing else."""
        tracer = sys.gettrace()
        self.private = True
        sys.settrace(None)
        try:
            yield
        finally:
            self.private = False
            sys.settrace(tracer)

    def differs(self, other: Seen) -> str:
        """Return the first thing of each kind that is not the same, in words; empty if all is."""
        found = []
        for kind in dict.fromkeys(event[0] for event in (*self.events, *other.events)):
            both = ([event[1:] for event in seen.events if event[0] == kind] for seen in (self, other))
            for one, two in itertools.zip_longest(*both, fillvalue=("nothing",)):
                if one != two:
                    found.append(f"{kind}: {_short(one)} | {_short(two)}")
                    break
        return "; ".join(found)


#: What a command that takes long says by the clock: running time.
_SIGN_OF_LIFE = re.compile(r"^.* … \(\d+ s\)\n", re.MULTILINE)


def _short(what: tuple[Any, ...]) -> str:
    text = " ".join(str(part) for part in what)
    return text if len(text) <= 100 else text[:97] + "..."


class _Lines:
    """Notes the lines that are carried out on the public side."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.rooms: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self.rooms:
            path = Path(name).relative_to(_HOME) if name.startswith(str(_HOME)) else Path()
            public = path.parts[:1] and path.parts[0] in PUBLIC_SIDE and path != _MEASURES
            self.rooms[name] = str(path) if public else None
        return self.line if self.rooms[name] else None

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        """Note a line."""
        if event == "line":
            self.seen.note("branch", self.rooms[frame.f_code.co_filename], frame.f_lineno)
        return self.line


def _watched(honest: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def total(self: Any, source: Any, work: Any) -> Any:
        if not seen.private:
            seen.note("pass", type(self).__name__, getattr(work, "__qualname__", type(work).__qualname__))
        return honest(self, source, work)

    return total


@contextlib.contextmanager
def frozen() -> Iterator[None]:
    """Draw ids, keys and nonces anew in the same way; none of them protects anybody here."""
    count = itertools.count()

    def token(size: int | None = None) -> bytes:
        return hashlib.shake_128(str(next(count)).encode()).digest(size or 32)

    with (
        mock.patch.object(secrets, "token_bytes", token),
        mock.patch.object(secrets, "token_hex", lambda size=None: token(size).hex()),
    ):
        yield


@contextlib.contextmanager
def watching(seen: Seen, folder: Path) -> Iterator[None]:
    """Note all that is seen of what is done inside."""
    out, err = io.StringIO(), io.StringIO()
    tracer, before = _Lines(seen), sys.gettrace()
    with contextlib.ExitStack() as stack:
        stack.enter_context(frozen())
        for engine in (LocalEngine, DaskEngine):
            stack.enter_context(mock.patch.object(engine, "total", _watched(engine.total, seen)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        sys.settrace(tracer)
        try:
            yield
        finally:
            sys.settrace(before)
    for warning in caught:
        seen.note("warning", warning.category.__name__, str(warning.message))
    seen.note("printed", out.getvalue())
    seen.note("printed on stderr", _SIGN_OF_LIFE.sub("", err.getvalue()))
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        seen.note("file", path.name, f"{len(content)} bytes", hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Place:
    """Where a run takes place.

    Attributes
    ----------
    table
        Its rows.
    folder
        An empty folder, in which whatever is left behind is seen.
    data
        Another one, in which the table's file may be.
    source
        Where random words come from.
    """

    table: Columns
    folder: Path
    data: Path
    source: WordSource


#: A public entry: carried out in a place, it returns what can be shown to anybody.
Entry = Callable[[Place], Any]


def _described(found: Any) -> Any:
    """Return what a release, or whatever was returned, says."""
    if isinstance(found, Release):
        return {each.name: repr(getattr(found, each.name)) for each in fields(found)}
    return repr(found)


def _carried_out(entry: Entry, table: Columns, source: WordSource, tape: Tape) -> Seen:
    seen = Seen()
    tape.beside = seen.solving
    with tempfile.TemporaryDirectory() as name:
        root, data = Path(name, "left"), Path(name, "data")
        root.mkdir()
        data.mkdir()
        place = Place(table, root, data, source)
        ended: tuple[Any, ...]
        with watching(seen, root), taping(tape):
            try:
                ended = "returned", _described(entry(place))
            except Differs:
                ended = ("stopped",)
            except SystemExit as stopped:
                ended = "exit status", stopped.code
            except Exception as error:
                notes = getattr(error, "__notes__", [])
                ended = "exception", type(error).__name__, str(error).replace(name, "…"), *notes
                ended += (_described(getattr(error, "release", None)),)
    seen.events = [tuple(part.replace(name, "…") if isinstance(part, str) else part for part in one)
                   for one in seen.events]  # fmt: skip
    seen.note(*ended)
    if tape.replaying:
        with contextlib.suppress(Differs):  # which the tape notes
            tape.finish()
    return seen


def compared(entry: Entry, tables: list[Columns], source: WordSource) -> str:
    """Return what differs on the neighbour though all draws are the same; empty if nothing does."""
    other_model()  # is there before anything is recorded
    tape, day = Tape(), today()
    kind, *said = _carried_out(entry, tables[0], source, tape).events[-1]
    if kind == "exception" and said[0] != AccuracyNotReached.__name__:  # it never went as far as it should
        return f"an entry that fails: {_short(tuple(said))}"
    replays: list[Seen] = []
    for table in tables:
        tape.rewind()
        replays.append(_carried_out(entry, table, source, tape))
        if tape.differs and len(replays) == 1:
            return f"not even on the same table: {tape.differs}"
    differs = "; ".join(filter(None, (tape.differs, replays[0].differs(replays[1]))))
    return compared(entry, tables, source) if differs and today() != day else differs  # releases say the day


# --- tables and what they come in -------------------------------------------------------------------------------------

#: What the replaced row may be, beside another corner: cells that fit no schema.
_ODD: tuple[dict[str, Any], ...] = (
    {},
    {"number": None},
    {"number": 1e300},
    {"number": float("nan")},
    {"kind": "neither, and at some length"},
    {"kind": None},
    {"y": None},
)


def neighbours(rng: np.random.Generator, target: str, n: int = 120) -> list[Columns]:
    """Return two tables that differ in one row, whose new cells need not fit."""
    tables = extreme_table(rng, n, target)
    place = next((i for i in range(n) if any(tables[0][name][i] != tables[1][name][i] for name in tables[0])), 0)
    for name, cell in _ODD[int(rng.integers(len(_ODD)))].items():
        tables[1][name][place] = cell
    return tables


def _arrow(table: Columns) -> pa.Table:
    return pa.table({
        "number": pa.array(table["number"], pa.float64()),
        "kind": pa.array(table["kind"], pa.string()),
        "y": pa.array(table["y"], pa.string() if isinstance(table["y"][0] or table["y"][1], str) else pa.float64()),
    })  # fmt: skip


def _csv(place: Place) -> Path:
    path = place.data / "rows.csv"
    pyarrow.csv.write_csv(_arrow(place.table), path)
    return path


def _parquet(place: Place) -> Path:
    path = place.data / "rows.parquet"
    pyarrow.parquet.write_table(_arrow(place.table), path, row_group_size=17)
    return path


def _frame(place: Place) -> Any:
    return _arrow(place.table).to_pandas()


def _polars(place: Place) -> Any:
    import polars

    return polars.from_arrow(_arrow(place.table))


def _stream(place: Place) -> Any:
    return pa.RecordBatchReader.from_batches(
        (whole := _arrow(place.table)).schema, iter(whole.to_batches(max_chunksize=17))
    )


def _dask(place: Place) -> Any:
    import dask.dataframe

    return dask.dataframe.from_pandas(_frame(place), npartitions=3)


def _columns(place: Place) -> Any:
    """Return them, and one that says whose two rows are, for entries about persons."""
    return {**place.table, "whose": [row // 2 for row in range(len(place.table["y"]))]}


#: Containers, with the packages that each needs: one that is not installed is left out.
CONTAINERS: dict[str, tuple[Callable[[Place], Any], str]] = {
    "columns": (_columns, "numpy"),
    "csv": (_csv, "pyarrow"),
    "parquet": (_parquet, "pyarrow"),
    "arrow": (lambda place: _arrow(place.table), "pyarrow"),
    "stream": (_stream, "pyarrow"),
    "pandas": (_frame, "pandas"),
    "polars": (_polars, "polars"),
    "dask": (_dask, "dask.dataframe distributed"),
}


# --- entries ----------------------------------------------------------------------------------------------------------

_GENEROUS: dict[str, Any] = {"max_epsilon": 60.0, "on_invalid": "clip"}


def fit(goal: Any, target: str = "labels", container: str = "columns", **options: Any) -> Entry:
    """Return a fit of a table with a schema."""

    def entry(place: Place) -> Release:
        said = {**_GENEROUS, "random_state": place.source, **options}
        return AccuracyFirstModel(SCHEMAS[target], goal, **said).fit(CONTAINERS[container][0](place)).release_

    return entry


def _numbers(table: Columns) -> tuple[Any, Any]:
    X, y = (np.array([np.nan if cell is None else cell for cell in table[name]]) for name in ("number", "y"))
    return X[:, None], y


def estimator(labels: bool, **options: Any) -> Entry:
    """Return a fit of arrays."""

    def entry(place: Place) -> Release:
        said: dict[str, Any] = {"bounds": (0, 1), "random_state": place.source, **_GENEROUS, **options}
        if labels:
            X, y = np.array([place.table["number"]], object).T, np.array(place.table["y"], object)
            return AccuracyFirstLogisticRegression(classes=("no", "yes"), **said).fit(X, y).release_
        X, y = _numbers(place.table)
        return AccuracyFirstRidge(target_bounds=(0, 1), **said).fit(X, y).release_

    return entry


def evaluate(container: str = "columns", **options: Any) -> Entry:
    """Return an evaluation."""

    def entry(place: Place) -> Any:
        table = CONTAINERS[container][0](place)
        said = {"margin": 0.4, "max_epsilon": 60.0, "bins": 4, "random_state": place.source, **options}
        found = other_model().evaluate(table, **said)
        (place.folder / "evaluation.html").write_text(str(found))
        return found.release

    return entry


def going_on(place: Place) -> Any:
    """Fit with a path that is kept, and go on."""
    X, y = _numbers(place.table)
    key, path = place.folder / "curator.key", place.folder / "rows.path"
    write_key(key)
    kept = KeepPath(path, key, later=0.3)
    said: dict[str, Any] = {"bounds": (0, 1), "target_bounds": (0, 1), "random_state": place.source, **_GENEROUS}
    first = AccuracyFirstRidge(excess_risk=0.5, keep_path=kept, **said).fit(X, y).release_
    return refine(first, path, key, excess_risk=0.35, max_epsilon=60.0)


def by_gradients(place: Place) -> Any:
    """Go along a path of gradients, as far as what it says goes on."""
    said = []
    path = gradient_path(
        place.table, SCHEMAS["labels"], delta=1e-3, max_epsilon=40.0, on_invalid="clip", random_state=place.source
    )
    for release in itertools.islice(path, 4):
        said.append(_described(release))
        if abs(release.parameters["intercept"]) < 0.01:
            break
    return said


def by_rows(**options: Any) -> Entry:
    """Return a search over rows that were prepared by hand."""

    def entry(place: Place) -> Release:
        X, y = _numbers(place.table)
        recipe = Preparation(None, 1.0, target=(-1.0, 1.0), intercept_weight=0, n_columns=1)
        rows = recipe.prepare_regression(X, y, on_invalid="clip")
        problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=1.0)
        said = {"max_epsilon": 60.0, "random_state": place.source, **options}
        return run_search(rows, problem, ExcessRisk(0.4), **said)

    return entry


def command(said: str, container: str = "csv", target: str = "labels") -> Entry:
    """Return calls of the command line, one after the other, with the files that they write."""

    def entry(place: Place) -> Any:
        schema, model = place.data / "schema.toml", place.data / "model.json"
        schema.write_text(Schema.from_dict(SCHEMAS[target]).to_toml())
        model.write_text(other_model().to_json())
        names = {"data": CONTAINERS[container][0](place), "schema": schema, "folder": place.folder, "model": model}
        # called as anybody outside calls it: nothing here imports the command, which comes after the audit
        main = importlib.import_module("expost.cli").main
        statuses = [main([word.format(**names) for word in call.split()]) for call in said.split(";")]
        if 2 in statuses or 4 in statuses:  # a mistake of ours: nothing was attacked
            raise RuntimeError(f"exit statuses {statuses}")
        return "exit status", statuses

    return entry


_ASKED = " --max-epsilon 60 --on-invalid clip --output {folder}/model.json"
_FIT = "fit {data} --schema {schema} --seed 1 --report {folder}/report.html" + _ASKED
_BOOKED = "ledger create {folder}/budget.db --dataset rows --cap 80; fit {data} --schema {schema} --log-loss 0.69"
_BOOKED += " --ledger {folder}/budget.db --dataset rows" + _ASKED + "; ledger show {folder}/budget.db"
_EVALUATE = "evaluate {model} {data} --margin 0.3 --max-epsilon 60 --seed 1 --bins 4 --output {folder}/evaluation.json"
_KEPT = "key {folder}/rows.key; fit {data} --target y --task regression --columns number --target-bounds 0 1 --seed 1"
_KEPT += " --bounds 0 1 --excess-risk 0.5 --keep-path {folder}/rows.path --key {folder}/rows.key --later 0.3" + _ASKED
_KEPT += "; refine {folder}/model.json --path {folder}/rows.path --key {folder}/rows.key --excess-risk 0.35"
_KEPT += " --max-epsilon 60 --output {folder}/refined.json"
_LOSS, _FEW = LogLoss(0.69), ErrorRate(0.45)


class Run(NamedTuple):
    """An entry, the kind of target that its tables have, and the packages that it needs."""

    entry: Entry
    target: str = "labels"
    needs: str = "numpy"


def _regression(entry: Entry) -> Run:
    return Run(entry, "numbers")


#: Every public entry.
ENTRIES: dict[str, dict[str, Run]] = {
    "containers": {
        **{f"fit of {name}": Run(fit(_LOSS, container=name), needs=need) for name, (_, need) in CONTAINERS.items()},
        **{f"evaluation of {name}": Run(evaluate(name), needs=need) for name, (_, need) in CONTAINERS.items()},
        "fit of arrays": _regression(estimator(False, excess_risk=0.4)),
        "fit by threads": Run(fit(_LOSS, container="csv", engine=LocalEngine(threads=2, memory=0, scratch=False))),
        "fit that keeps rows": Run(fit(_LOSS, container="parquet", engine=LocalEngine(threads=2, memory=0))),
    },
    "goals": {
        "errors": Run(fit(_FEW)),
        "hits": Run(fit(Recall(0.8) & Precision(0.6))),
        "squared errors": _regression(fit(R2(0.1), "numbers")),
        "new rows": Run(fit(ErrorRate(0.3), holdout=0.3)),
        "class weights": Run(fit(_LOSS, class_weight={"no": 1, "yes": 2})),
        "new persons": Run(fit(ErrorRate(0.3), holdout=0.3, **PERSONS)),
        "new persons at a delta": Run(fit(_FEW, holdout=0.3, perturbation="descent", delta=1e-3, **PERSONS)),
        "descent": Run(fit(_FEW, perturbation="descent", delta=1e-3)),
        "moments": _regression(fit(R2(0.1), "numbers", perturbation="covariance", delta=1e-3)),
        "objective at a delta": Run(fit(_LOSS, perturbation="objective", delta=1e-3)),
        "gradient path": Run(by_gradients),
        "any model": Run(fit(_LOSS, when_short="keep")),
    },
    "estimators": {
        "above threshold": _regression(estimator(False, excess_risk=0.4, method="above_threshold")),
        "stationarity": _regression(estimator(False, excess_risk=0.4, method="stationarity")),
        "doubling": _regression(estimator(False, excess_risk=0.4, method="doubling")),
        "the best for lack of a good one": _regression(estimator(False, excess_risk=0.02, when_short="keep")),
        "spherical": _regression(estimator(False, excess_risk=0.4, perturbation="output", noise="spherical")),
        "logistic": Run(estimator(True, excess_risk=0.4)),
        "refine": _regression(going_on),
        "run_search": _regression(by_rows()),
        "run_search by theory": _regression(by_rows(method="theory")),
        "run_search by output": _regression(by_rows(perturbation="output", method="doubling")),
    },
    "command": {
        "fit": Run(command(_FIT + " --log-loss 0.69 --json")),
        "fit of parquet": Run(command(_FIT + " --error-rate 0.45 --evaluate 0.4", "parquet")),
        "fit with rows held out": Run(command(_FIT + " --error-rate 0.3 --new-rows 0.5 --evaluate 0.6")),
        "fit that fails": Run(command(_FIT + " --error-rate 0.01")),
        "fit with a ledger": Run(command(_BOOKED)),
        "evaluate": Run(command(_EVALUATE)),
        "key, fit and refine": _regression(command(_KEPT, target="numbers")),
    },
}


def replays(kind: str) -> Callable[[Setting], Found]:
    """Attack entries: each is replayed on so many pairs of tables."""

    def attack(setting: Setting) -> Found:
        entries = {name: run for name, run in ENTRIES[kind].items() if _installed(run.needs)}
        for place, rng in setting.each():
            for name, run in entries.items():
                differs = compared(run.entry, neighbours(rng, run.target), source_of(setting, place))
                if differs:
                    return Found(0.0, 0.0, f"{name}: {differs}")
        return Found(0.0, 0.0)

    return attack


def _installed(packages: str) -> bool:
    try:
        for package in packages.split():
            importlib.import_module(package)
    except ImportError:
        return False
    return True


def _attack(kind: str, attacked: str, runs: int) -> Attack:
    return Attack(f"replay-{kind}", attacked, "replayed", replays(kind), runs, 60, tight=False)


ATTACKS = (
    _attack("containers", "all that shows of fits, in every container", 1),
    _attack("goals", "the same, for goals and mechanisms", 1),
    _attack("estimators", "the same, for methods, kept paths and rows", 1),
    _attack("command", "the same, for the command line", 1),
)
