"""Passes over the rows, counted on neighbours with all draws frozen: as many, whatever the rows, once that is asked."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from expost import R2, AccuracyFirstLogisticRegression, AccuracyFirstModel, ErrorRate, ExcessRisk, LocalEngine
from expost.cli import main, progress
from expost.exceptions import AccuracyNotReached, SearchInterrupted
from expost.passes import constant_passes
from expost.passes.engine import _Settled, watching
from expost.passes.first_pass import CellCounts

N, SETTLED = 3000, 60
SCHEMA = {
    "target": "late",
    "classes": ["no", "yes"],
    "columns": {"age": {"bounds": [18, 90]}, "hours": {"bounds": [0, 80]}},
}
ROWS = [(18.0, 80.0, "no"), (90.0, 80.0, "no"), (18.0, 0.0, "yes"), (90.0, 0.0, "no"), (54.0, 40.0, "yes")]


class Counter:
    """Counts the passes that begin; an interruption may come with one of them."""

    def __init__(self, interrupted_at: int | None = None) -> None:
        self.passes, self._at = 0, interrupted_at

    def begin(self, rows: int) -> None:
        self.passes += 1
        if self.passes == self._at:
            raise KeyboardInterrupt

    def advance(self, rows: int) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def tables():
    """Yield a table and neighbours of it."""
    rng = np.random.default_rng(1)
    age, hours = rng.uniform(18, 90, N), rng.uniform(0, 80, N)
    late = np.where((age - 54) / 20 + (hours - 40) / 25 + rng.normal(size=N) > 0, "yes", "no")
    for row in (None, *ROWS):
        table = {"age": age.copy(), "hours": hours.copy(), "late": late.copy()}
        if row is not None:
            table["age"][0], table["hours"][0], table["late"][0] = row
        yield table


def replayed(seed, settled, goal=None, files=None, **options):
    """Return the passes, and the releases, of one search with the same draws on all those tables."""
    passes, releases = [], []
    for k, table in enumerate(tables()):
        model = AccuracyFirstModel(SCHEMA, goal or ErrorRate(0.25), random_state=seed, max_epsilon=5.0, **options)
        counter, read = Counter(), table
        if files is not None:
            read = files / f"{k}.csv"
            lines = zip(*(table[name] for name in ("age", "hours", "late")), strict=True)
            read.write_text("age,hours,late\n" + "".join(f"{age},{hours},{late}\n" for age, hours, late in lines))
        within = contextlib.nullcontext() if settled is None else constant_passes(settled)
        with watching(counter), within:
            try:
                releases.append(model.fit(read).release_)
            except AccuracyNotReached as refusal:
                releases.append(refusal.release)
        passes.append(counter.passes)
    return passes, [(release.status, release.epsilon, release.hypothesis) for release in releases]


#: Searches in which one row moves the number of passes: one with the same outcome, one with another.
MOVED = {"pure": (0, {}), "at a delta": (79, {"delta": 1e-6})}


@pytest.mark.parametrize("kind", MOVED)
class TestNeighbours:
    def test_as_many_passes_whatever_the_rows_and_the_same_releases(self, kind):
        seed, options = MOVED[kind]
        free, before = replayed(seed, None, **options)
        assert len(set(free)) > 1  # there is something to hide
        settled, after = replayed(seed, SETTLED, **options)
        assert set(settled) == {SETTLED}
        assert after == before

    def test_control_a_search_that_does_not_fill_up_is_caught(self, kind, monkeypatch):
        monkeypatch.setattr(_Settled, "fill", lambda self: None)
        seed, options = MOVED[kind]
        assert len(set(replayed(seed, SETTLED, **options)[0])) > 1

    def test_more_than_were_settled_are_a_multiple_and_nothing_else_changes(self, kind):
        seed, options = MOVED[kind]
        free, before = replayed(seed, None, **options)
        settled, after = replayed(seed, 7, **options)
        assert settled == [7 * -(-each // 7) for each in free]
        assert after == before


def test_the_same_outcome_took_another_number_of_passes():
    """What is hidden is more than where a search stopped, which its release says."""
    passes, releases = replayed(0, None)
    assert len(set(passes)) > 1
    assert len({(status, epsilon) for status, epsilon, _ in releases}) == 1


def test_files_that_are_read_for_every_pass(tmp_path):
    engine = LocalEngine(memory=0, scratch=False)
    free, before = replayed(0, None, files=tmp_path, engine=engine)
    assert len(set(free)) > 1
    settled, after = replayed(0, SETTLED, files=tmp_path, engine=engine)
    assert set(settled) == {SETTLED}
    assert after == before


def test_a_refusal_takes_as_many():
    passes, releases = replayed(0, SETTLED, ErrorRate(0.13))
    assert {status for status, _, _ in releases} == {"short"}
    assert set(passes) == {SETTLED}


def test_a_table_that_hardly_fits_takes_as_many_and_writes_no_row_twice(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("age,hours,late\n" + "old,long,perhaps\n" * N)
    model = AccuracyFirstModel(SCHEMA, ErrorRate(0.25), on_invalid="clip", engine=LocalEngine(memory=0), random_state=0)
    counter = Counter()
    with watching(counter), constant_passes(5), pytest.raises(AccuracyNotReached):
        model.fit(file)
    assert counter.passes == 5
    assert CellCounts(object()).again == CellCounts(None)


def test_other_estimators():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = X @ [1.0, -0.5] + rng.normal(size=N) / 2 > 0
    model = AccuracyFirstLogisticRegression(
        goal=ExcessRisk(0.05), bounds=(-1, 1), classes=(False, True), regularization=0.05, random_state=0
    )
    counter = Counter()
    with watching(counter), constant_passes(SETTLED):
        model.fit(X, y)
    assert counter.passes == SETTLED


def test_each_search_by_itself_and_none_outside():
    table = next(tables())
    model = AccuracyFirstModel(SCHEMA, ErrorRate(0.25), random_state=0)
    counter = Counter()
    with watching(counter):
        with constant_passes(SETTLED):
            release = model.fit(table).release_
            model.refine(table, goal=ErrorRate(0.22), release=release)
        assert counter.passes == 2 * SETTLED
        model.fit(table)
    assert counter.passes < 3 * SETTLED


def test_an_interruption_is_not_held_up():
    counter = Counter(interrupted_at=9)
    with watching(counter), constant_passes(SETTLED), pytest.raises((SearchInterrupted, KeyboardInterrupt)):
        AccuracyFirstModel(SCHEMA, ErrorRate(0.25), random_state=0).fit(next(tables()))
    assert counter.passes == 9


def test_the_command_line(tmp_path, monkeypatch, capsys):
    file, schema, table = tmp_path / "t.csv", tmp_path / "s.toml", next(tables())
    columns = "[columns.age]\nbounds = [18, 90]\n[columns.hours]\nbounds = [0, 80]\n"
    schema.write_text(f'target = "late"\nclasses = ["no", "yes"]\n{columns}')
    lines = zip(*(table[name] for name in ("age", "hours", "late")), strict=True)
    file.write_text("age,hours,late\n" + "".join(f"{age},{hours},{late}\n" for age, hours, late in lines))
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    given = ["fit", str(file), "--schema", str(schema), "--error-rate", "0.25", "--seed", "0", "--json", "--progress"]
    assert main([*given, "--constant-passes", "43"]) == 0
    assert "43 passes over the rows" in capsys.readouterr().err
    assert main([*given, "--constant-passes", "0"]) == 2
    assert "--constant-passes must be a whole number, at least 1, got 0" in capsys.readouterr().err


def test_a_regression_with_many_rows_alike():
    """Rows that are equal are worked on once; a pass is a pass."""
    schema = {"target": "y", "target_bounds": [0, 1], "columns": {"x": {"bounds": [0, 1]}}}
    x = np.repeat([0.0, 0.25, 0.75, 1.0], 2000)
    found = set()
    for last in (1.0, 0.5):
        x[-1], counter = last, Counter()
        with watching(counter), constant_passes(SETTLED):
            AccuracyFirstModel(schema, R2(0.5), random_state=0).fit({"x": x, "y": x})
        found.add(counter.passes)
    assert found == {SETTLED}
