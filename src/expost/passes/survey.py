"""How a table on disk fits its schema, counted in pieces: for the curator, of private rows, covered by no guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from expost.passes.engine import Engine, LocalEngine, Totals
from expost.table.disk import Disk
from expost.table.encoding import Encoding
from expost.table.persons import PersonTally, count_persons
from expost.table.rows import Batch
from expost.table.streamed import EncodedSource
from expost.table.tallies import Tally

_FEW = 1 << 16  # rows; a table without any is never guessed to have as many


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
    """

    rows: int
    columns: list[Tally]
    target: Tally
    persons: PersonTally | None
    uneven: int


def survey(disk: Disk, encoding: Encoding, engine: Engine | None = None) -> Survey | None:
    """Count what fits, holding a few batches at a time, and what tells persons apart; None if there are no rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from expost.table import Numeric, Schema
    >>> from expost.table.disk import open_disk
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
    source = EncodedSource(disk, encoding)
    rows, cells, uneven = (LocalEngine() if engine is None else engine).total(source, _counts)
    columns, target = encoding.tallied(cells, rows)
    return Survey(rows, columns, target, _persons(source), uneven)


def _counts(batch: Batch) -> Totals:
    return batch.rows, batch.cells, batch.uneven


def _persons(source: EncodedSource) -> PersonTally | None:
    schema = source.encoding.schema
    if schema.person is None or schema.rows_per_person is None:
        return None
    return count_persons(_cells(source, schema.person), schema.rows_per_person, schema.missing)


def _cells(source: EncodedSource, name: str) -> Iterator[Any]:
    for part in source.parts():
        for columns in source.disk.read(part, [name], frozenset(), source.batch_rows):
            yield from columns[name].cells()
