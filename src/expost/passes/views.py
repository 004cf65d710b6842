"""Passes over what a coarser view sees of rows (`expost.table.views`), wherever the rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from expost.passes.engine import Engine, LocalEngine, Totals, Work
from expost.table.rows import Batch, MemorySource, Rows, RowSource, given_up
from expost.table.views import View


def seen(rows: Rows | RowSource, view: View) -> Rows | RowSource:
    """Return what is seen of rows, or of a source of them; private."""
    if isinstance(rows, Rows):
        return Rows(given_up(view.seen(rows.x)), rows.y, **view.declares)
    return rows.mapped(view.batch, view.columns, view.declares) if isinstance(rows, MemorySource) else Seen(rows, view)


@dataclass(frozen=True)
class SeenWork:
    """Work on what is seen of a batch; it travels to where rows are."""

    view: View
    work: Work

    @property
    def effort(self) -> float:
        """What a cell costs."""
        return float(getattr(self.work, "effort", 1.0))

    def __call__(self, batch: Batch) -> Totals:
        """Return what the work returns of it."""
        return self.work(self.view.batch(batch))


class Seen(RowSource):
    """What is seen of rows that are read batch by batch; the engine of the rows carries out its passes."""

    def __init__(self, source: RowSource, view: View) -> None:
        self._source, self._view = source, view
        self.n, self.p, self.effort = source.n, view.columns, source.effort
        vars(self).update(view.declares)
        self.engine = self

    def total(self, source: RowSource, work: Work) -> Totals:
        """Return the sum of a piece of work over all batches; private."""
        engine: Engine = self._source.engine or LocalEngine()
        return engine.total(self._source, SeenWork(self._view, work))

    def parts(self) -> Sequence[Any]:
        """Return those of the source."""
        return self._source.parts()

    def read(self, part: Any) -> Iterator[Batch]:
        """Yield what is seen of the rows of a part."""
        return map(self._view.batch, self._source.read(part))
