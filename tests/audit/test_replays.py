"""Leaks that are planted where draws are frozen: whatever follows from a row and is not charged for has to be found.

Nothing here is statistical: two replays are the same to the last line, or they are not.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings

import numpy as np
import pytest

from expost.audit import Setting, attacks, replays
from expost.cli import output
from expost.estimators import base
from expost.exceptions import AccuracyNotReached
from expost.goals import LogLoss
from expost.mechanisms import mechanism_of
from expost.mechanisms.objective.perturbation import PerturbedMinimum
from expost.noise import SeededSource
from expost.passes import LocalEngine
from expost.search.request import CheckedPlan
from expost.table.rows import MemorySource, Rows

FIT = replays.fit(LogLoss(0.69))
COMMAND = replays.ENTRIES["command"]["fit"].entry


def differs(entry, cells, target="labels"):
    """What an entry shows on neighbours, in one of which a row has these cells."""
    first, second = replays.neighbours(np.random.default_rng(1), target), None
    second = {name: list(values) for name, values in first[0].items()}
    for name, cell in cells.items():
        second[name][0] = cell
    return replays.compared(entry, [first[0], second], SeededSource([1, 1]))


def planted(monkeypatch, leak):
    """Let a search know whether all cells are readable before it begins: which one row decides."""
    honest = CheckedPlan.search

    def search(self, generator, account, source):
        if min(self.columns) < self.n:
            leak(self, account)
        return honest(self, generator, account, source)

    monkeypatch.setattr(CheckedPlan, "search", search)


def warns(plan, account):
    warnings.warn("some cells are empty", UserWarning, stacklevel=1)


def passes_again(plan, account):
    rows = Rows(np.ones((1, 1), dtype=np.int32), np.ones(1, dtype=np.int32))
    LocalEngine().total(MemorySource(rows), lambda batch: (0,))


def fails(plan, account):
    raise ArithmeticError("a cell is empty")


LEAKS = {
    "a warning": (warns, "warning"),
    "a word on stdout": (lambda *_: print("some cells are empty"), "printed"),
    "a word on stderr": (lambda *_: print("some cells are empty", file=sys.stderr), "printed on stderr"),
    "a pass more": (passes_again, "pass"),
    "another branch": (lambda plan, _: plan.worst_case, "branch"),
    "a reason in the release": (lambda _, account: account.reasons.append("some cells are empty"), "returned"),
    "an exception": (fails, "exception"),
}


@pytest.mark.parametrize(("leak", "kind"), LEAKS.values(), ids=LEAKS)
def test_a_leak_is_found(monkeypatch, leak, kind):
    planted(monkeypatch, leak)
    found = differs(FIT, {"number": None})
    assert f"{kind}: " in found
    monkeypatch.undo()
    assert not differs(FIT, {"number": None})


def test_the_size_of_a_file_is_found(monkeypatch):
    honest, seen = output.write_whole, []
    planted(monkeypatch, lambda *_: seen.append(True))
    monkeypatch.setattr(
        output, "write_whole", lambda path, content, **more: honest(path, content + " " * len(seen), **more)
    )
    found = differs(COMMAND, {"number": None})
    assert "file: model.json" in found
    assert "bytes" in found
    monkeypatch.undo()
    assert not differs(COMMAND, {"number": None})


def test_an_exit_status_is_found(monkeypatch):
    planted(monkeypatch, fails)
    assert "returned: ('exit status', [0]) | ('exit status', [3])" in differs(COMMAND, {"number": None})


def test_a_solver_that_warns_of_a_row_is_found(monkeypatch):
    """What it computes goes behind noise; what it says on the way does not."""
    honest, first = PerturbedMinimum.draw, {}

    def draw(self, objective, center, source):
        rows = objective.passes.source
        total = sum(int(batch.x.sum()) for part in rows.parts() for batch in rows.read(part))
        if total != first.setdefault(repr(self), total):
            warnings.warn("rows are far from the centre", UserWarning, stacklevel=1)
        return honest(self, objective, center, source)

    monkeypatch.setattr(PerturbedMinimum, "draw", draw)
    assert "warning: " in differs(FIT, {"number": 0.125})


def test_a_histogram_that_follows_from_other_rows_is_charged_and_no_finding():
    assert not differs(replays.evaluate(), {"y": "yes", "number": 1.0, "kind": "b"})


def test_errors_about_bad_rows_are_what_is_not_covered():
    """They are asked for by name, and the release says that they tell of a row."""
    found = differs(replays.fit(LogLoss(0.69), on_invalid="error"), {"y": "neither"})
    assert "exception: " in found
    assert not differs(replays.fit(LogLoss(0.69), on_invalid="error"), {"number": 0.25})


def test_a_release_and_a_report_that_show_the_best_model_are_found(monkeypatch):
    """θ*, which no noise was put on, beside the model."""
    honest = base.carry_out

    def carry_out(request, plan, rows, *given, **more):
        release = honest(request, plan, rows, *given, **more)
        best = mechanism_of("output").on(rows, request.problem).risk.optimum
        return release.with_details(claims=(*release.claims, f"the best model is {best.tolist()}"))

    monkeypatch.setattr(base, "carry_out", carry_out)
    entry = replays.command(
        "fit {data} --target y --task regression --columns number --target-bounds 0 1 --bounds 0 1 --excess-risk 0.5 "
        "--max-epsilon 60 --on-invalid clip --seed 1 --report {folder}/a.html --output {folder}/b.json",
        target="numbers",
    )
    found = differs(entry, {"number": 1.0, "y": 0.0}, "numbers")
    assert "file: a.html" in found
    monkeypatch.undo()
    assert not differs(entry, {"number": 1.0, "y": 0.0}, "numbers")


SPHERICAL = {("estimators", "spherical")}
OTHERS = [("containers", "evaluation of columns"), ("goals", "gradient path"), ("goals", "new rows")]
OTHERS += [("goals", "moments"), ("estimators", "refine"), ("estimators", "run_search"), *SPHERICAL]
OTHERS += [("command", "fit of parquet"), ("command", "key, fit and refine")]


@pytest.mark.parametrize(("kind", "name"), OTHERS)
def test_no_release_is_over_the_reals_but_where_such_noise_was_named(tmp_path, kind, name):
    """What the kept releases have none of: evaluations, paths, refinements, and what the command writes and prints."""
    run = replays.ENTRIES[kind][name]
    table = replays.neighbours(np.random.default_rng(4), run.target)[0]
    folders = tmp_path / "left", tmp_path / "data"
    for folder in folders:
        folder.mkdir()
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shown = repr(run.entry(replays.Place(table, *folders, SeededSource(4))))
        except AccuracyNotReached as refusal:
            shown = repr(refusal.release)
    shown += printed.getvalue() + " ".join(file.read_text() for file in folders[0].glob("*.[jh]*"))
    assert len(shown) > 200
    assert ("over the reals" in shown) == ((kind, name) in SPHERICAL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", replays.ENTRIES)
def test_no_entry_shows_anything_else(kind):
    (attack,) = attacks(f"^replay-{kind}$")
    assert attack.carry_out(Setting(3, 1)).differs == ""


def test_nothing_shows_at_a_delta_and_over_the_reals():
    """Two entries, on one pair each: `expost audit` takes all of them."""
    for entry, target in (
        (replays.ENTRIES["goals"]["descent"].entry, "labels"),
        (replays.ENTRIES["estimators"]["spherical"].entry, "numbers"),
    ):
        tables = replays.neighbours(np.random.default_rng(3), target)
        assert replays.compared(entry, tables, SeededSource(3)) == ""
