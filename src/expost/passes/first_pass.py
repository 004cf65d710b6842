"""The first look at a table on disk: how many rows there are, whether they fit, and where they stay between passes.

A survey counts in pieces how the table fits its schema: for the curator, of private rows, covered by no guarantee.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from expost.passes.engine import Engine, LocalEngine, Totals, note, watched_pass
from expost.passes.scratch import STATED, UNSTATED, Scratch, usual_folder
from expost.table.columns import NamedColumns
from expost.table.encoding import Encoding
from expost.table.files import Disk
from expost.table.findings import Finding, Looked
from expost.table.misfits import Tally
from expost.table.persons import PersonTally, count_persons
from expost.table.rows import Batch, Rows, RowSource, declared, given_up
from expost.table.streamed import EncodedSource, StreamedSource

#: Bytes of rows that are kept in memory instead of being read again for every pass.
KEPT = 128 << 20
_WORKED = 20  # bytes a cell of rows that are worked on in memory: integers, floats and a copy in between
_MUCH = 1 << 30  # bytes that are not taken silently
_FEW = 1 << 16  # rows; a table without any is never guessed to have as many


@dataclass(frozen=True)
class CellCounts:
    """How many rows there are, and whether their cells fit; a pass that may keep the rows on its way."""

    scratch: Scratch | None = None

    @property
    def again(self) -> CellCounts:
        """What a pass does that is made once more: it keeps nothing."""
        return CellCounts()

    def __call__(self, batch: Batch) -> Totals:
        """Return both counts."""
        if self.scratch is not None:
            self.scratch.keep(batch)
        return batch.rows, batch.cells


def look_at(source: StreamedSource, engine: Engine | None = None) -> tuple[Rows | RowSource, npt.NDArray[np.int64]]:
    """Return rows, in memory if they are few, and counts of cells that fit; private.

    The number of rows of the source is settled here. As many bytes stay in memory as the engine states, or
    :data:`KEPT`, which changes nothing but memory and speed.
    """
    source.engine = LocalEngine() if engine is None else engine
    local = source.engine if isinstance(source.engine, LocalEngine) else None
    if local is not None:
        kept = KEPT if local.kept is None else local.kept
        few = 4 * source.disk.guess * (source.p + 1) <= kept
        found = _collected(source, local.threads, kept) if few else None
        if found is not None:
            return found
    scratch = None if local is None else _scratch(local, source)
    source.n, cells = source.engine.total(source, CellCounts(scratch))
    if scratch is None:
        note("rows are written nowhere: the table is read again for every pass")
        return source, cells
    if scratch.failed:
        if local is not None and local.scratch is not None:
            warnings.warn(
                f"there is too little room in {local.scratch} for {source.n:,} rows of {source.p} columns; the table "
                f"is read again for every pass instead",
                stacklevel=2,
            )
        note(f"there is too little room in {scratch.folder}: the table is read again for every pass")
        return source, cells
    note(f"rows are kept encrypted in {scratch.folder} until the end, {scratch.size / 1e6:,.0f} MB")
    return scratch.like(source), cells


def _scratch(engine: LocalEngine, source: StreamedSource) -> Scratch | None:
    """Return a file to keep rows in where the engine may write, and where that is."""
    if engine.scratch is not None:
        return Scratch(engine.scratch, source.p, source.disk.guess, STATED)
    folder = usual_folder() if engine.writes else None
    return None if folder is None else Scratch(folder, source.p, source.disk.guess, UNSTATED)


def counted(source: StreamedSource, engine: Engine) -> tuple[npt.NDArray[np.int64], int]:
    """Return counts of cells that fit and of rows, keeping nothing; private."""
    n, cells = engine.total(source, CellCounts())
    return cells, n


def judged(source: RowSource) -> Rows | RowSource:
    """Return rows, in memory if they are few, after somebody has complained about cells if there is reason to."""
    if not isinstance(source, StreamedSource) or source.judge is None:
        return source
    judge, source.judge = source.judge, None
    rows, cells = look_at(source, source.engine)
    judge(cells, rows.n)
    return rows


def in_memory(source: RowSource) -> Rows:
    """Return all rows, for what cannot be had by passes; private. Says what that takes, or that it is too much."""
    rows = judged(source)
    if isinstance(rows, Rows):
        return rows
    if not isinstance(rows.engine, LocalEngine | None):
        raise ValueError(
            "perturbation='output' needs all rows in the memory of one process, and rows of a cluster stay with its "
            "workers. Pass engine='local', or leave perturbation out"
        )
    needed, there = _WORKED * rows.n * (rows.p + 1), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    said = (
        f"{rows.n:,} rows of {rows.p} columns take about {needed / 2**30:.1f} GB of memory with perturbation='output'"
    )
    if needed > there:
        raise ValueError(f"{said}, and there are {there / 2**30:.1f} GB. Leave perturbation out, to read in pieces")
    if needed > _MUCH:
        warnings.warn(f"{said}; leave perturbation out, to read in pieces", stacklevel=2)
    return _together([batch.repeated() for part in rows.parts() for batch in rows.read(part)], rows)


def _collected(source: StreamedSource, threads: int, kept: int) -> tuple[Rows, npt.NDArray[np.int64]] | None:
    """Return rows in memory; None if they turn out to be more than that."""
    batches: list[Batch] = []
    size = 0
    with watched_pass(source.n, lambda: _collected(source, threads, kept)) as told:
        for some in _in_order(source, threads):
            batch = some.repeated()
            batches.append(batch)
            size += batch.x.nbytes + batch.y.nbytes
            told(len(batch))
            if size > 2 * kept:
                return None
    if not any(len(batch) for batch in batches):
        raise ValueError("there are no rows; pass at least one")
    cells: Any = sum(batch.cells for batch in batches)
    return _together(batches, source), cells


def _together(batches: list[Batch], source: RowSource) -> Rows:
    """Return all rows, and empty the list on the way, so that they are not held twice."""
    y = np.concatenate([batch.y for batch in batches])
    # row by row: what is worked on in floats is the same to the bit only if it stands in the same order
    x = np.empty((len(y), source.p), dtype=np.int32)
    place = 0
    while batches:
        some = batches.pop(0).x
        x[place : place + len(some)] = some
        place += len(some)
    return Rows(given_up(x), given_up(y), **declared(source))


def _in_order(source: StreamedSource, threads: int) -> Iterator[Batch]:
    parts = source.parts()
    with ThreadPoolExecutor(threads) as pool:
        for some in range(0, len(parts), 2 * threads):
            for batches in pool.map(lambda part: list(source.read(part)), parts[some : some + 2 * threads]):
                yield from batches


@dataclass(frozen=True)
class Survey:
    """What was counted; private.

    Attributes
    ----------
    rows
        How many there are.
    columns, target
        Cells that fit, of each column in the order of the schema and of the target.
    persons
        Persons and their rows, where the schema names them.
    uneven
        Lines of CSV files that have another number of cells than the first.
    findings
        What to look at, and what to type next.
    """

    rows: int
    columns: list[Tally]
    target: Tally
    persons: PersonTally | None
    uneven: int
    findings: list[Finding]


class _Surveyed(EncodedSource):
    """Rows that are looked at before they are encoded."""

    def __init__(self, disk: Disk, encoding: Encoding) -> None:
        super().__init__(disk, encoding)
        self.looked = Looked(encoding.schema)

    def made(self, columns: NamedColumns) -> Batch:
        self.looked.at(columns)
        return super().made(columns)


def survey(disk: Disk, encoding: Encoding) -> Survey | None:
    """Count what fits, holding a few batches at a time, and what tells persons apart; None if there are no rows.

    A table whose rows come but once has to be kept first (:mod:`expost.passes.kept`).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from expost.table import Numeric, Schema
    >>> from expost.table.files import open_disk
    >>> encoding = Encoding(Schema("y", {"x": Numeric((0, 10))}, classes=("no", "yes")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "t.csv")
    ...     _ = file.write_text("x,y\\n1,yes\\n20,no\\ntwo\\n")
    ...     found = survey(open_disk(file), encoding)
    >>> found.rows, found.columns[0].readable, found.columns[0].outside, found.target.missing, found.uneven
    (3, 2, 1, 1, 1)
    """
    disk.require(encoding.schema.needed)
    if disk.guess < _FEW and disk.count() == 0:
        return None
    source = _Surveyed(disk, encoding)
    rows, cells, uneven = LocalEngine().total(source, lambda batch: (batch.rows, batch.cells, batch.uneven))
    columns, target = encoding.tallied(cells, rows)
    schema, persons = encoding.schema, None
    if schema.person is not None and schema.rows_per_person is not None:
        found = (disk.read(part, [schema.person], frozenset(), source.batch_rows) for part in source.parts())
        cells_of = (cell for read in found for some in read for cell in some[schema.person].cells())
        persons = count_persons(cells_of, schema.rows_per_person, schema.missing)
    names = dict.fromkeys(name for file in disk.files for name in file.names)
    return Survey(rows, columns, target, persons, uneven, source.looked.findings(columns, target, list(names)))
