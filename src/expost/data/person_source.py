"""Rows of a large table that a schema counts by person, read in pieces.

Which rows count, and how often, is settled by one look at the column of persons, in the order of the table: a person's
first k rows, in turn until k slots are filled (:mod:`expost.data.persons`). From then on a row is read wherever it
stands and counts as often as it fills a slot, so sums are those over all slots. What is held is a number for each row,
four bytes; while it is settled some sixty bytes a row and 150 for each person: 750 MB for a million persons with ten
rows each. It is held by the process that runs the search; names do not travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from expost.data.batches import Batch, digits
from expost.data.cells import is_undecoded
from expost.data.disk import Disk
from expost.data.encode import Encoding
from expost.data.persons import UNREADABLE, person_of
from expost.data.streamed import EncodedSource

__all__ = ["PersonSource"]


class PersonSource(EncodedSource):
    """Rows of a table with a schema that names persons, each as often as it fills a slot.

    Parameters
    ----------
    disk, encoding, batch_rows
        As in :class:`~expost.data.streamed.EncodedSource`.

    Attributes
    ----------
    unreadable, undecoded : int
        Rows whose person is neither text nor a number, or text in another encoding; private.
    """

    def __init__(self, disk: Disk, encoding: Encoding, batch_rows: int | None = None) -> None:
        super().__init__(disk, encoding, batch_rows)
        schema = encoding.schema
        assert schema.person is not None
        assert schema.rows_per_person is not None
        disk.require([schema.person])
        self._pieces = disk.pieces()
        self.unreadable = self.undecoded = 0
        names, sizes = self._numbered(schema.person)
        self._times = np.split(times(names, schema.rows_per_person), np.cumsum(sizes)[:-1])
        self.n = int(sum(some.sum(dtype=np.int64) for some in self._times))

    def every_row(self) -> EncodedSource:
        """Return the table row by row, whoever's they are."""
        return EncodedSource(self.disk, self.encoding, self.batch_rows)

    def parts(self) -> Sequence[int]:
        """Return numbers of the pieces of the table."""
        return range(len(self._pieces))

    def read(self, part: int) -> Iterator[Batch]:
        """Yield the rows of a piece that count, those that count equally often together."""
        place = 0
        for columns in self.disk.read(self._pieces[part], self.names, self.numeric, self.batch_rows):
            often = self._times[part][place : place + len(columns)]
            place += len(columns)
            for count in np.unique(often[often > 0]).tolist():
                made = self.made(columns.taken(np.flatnonzero(often == count)))
                assert made.cells is not None
                counts = np.full(len(made), float(count))
                first = True
                for batch in digits(made.x, made.y, counts):
                    yield replace(batch, cells=made.cells * (count if first else 0))
                    first = False

    def _numbered(self, person: str) -> tuple[npt.NDArray[np.int64], list[int]]:
        """Return a number for each row that is its person's, and how many rows pieces have; count what is no name."""
        none = {None, *map(person_of, self.encoding.schema.missing)}
        known: dict[object, int] = {}
        numbers: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        sizes: list[int] = []
        alone = 0
        for piece in self._pieces:
            size = 0
            for columns in self.disk.read(piece, [person], frozenset(), self.batch_rows):
                found = []
                cells = columns[person].cells()
                self.undecoded += sum(map(is_undecoded, cells))
                for key in map(person_of, cells):
                    if key in none:
                        alone += 1
                        found.append(-alone)  # a person of its own
                    else:
                        self.unreadable += key is UNREADABLE
                        found.append(known.setdefault(key, len(known)))
                numbers.append(np.array(found, dtype=np.int64))
                size += len(found)
            sizes.append(size)
        return np.concatenate(numbers), sizes


def times(persons: npt.NDArray[np.int64], k: int) -> npt.NDArray[np.int32]:
    """Say how many of their person's k slots each row fills.

    Examples
    --------
    >>> times(np.array([0, 1, 0, 0, -1, 1]), 3).tolist()  # 0 has three rows, 1 has two and −1 one
    [1, 2, 1, 1, 3, 1]
    """
    order = np.argsort(persons, kind="stable")
    placed = persons[order]
    first = np.flatnonzero(np.concatenate([[True], placed[1:] != placed[:-1]])) if len(placed) else np.zeros(0, int)
    sizes = np.diff(np.concatenate([first, [len(placed)]]))
    rank = np.arange(len(placed)) - np.repeat(first, sizes)
    own = np.minimum(np.repeat(sizes, sizes), k)
    filled = np.where(rank < own, k // np.maximum(own, 1) + (rank < k % np.maximum(own, 1)), 0)
    found = np.zeros(len(persons), dtype=np.int32)
    found[order] = filled
    return found
