"""Parquet files: opened, and read whole or a row group at a time, small ones together.

What a file declares (columns, their types, its row groups) is public. What is in it is quoted nowhere: errors name the
file and the row group.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from expost.exceptions import UnreadableFile
from expost.table.columns import NamedColumns, places_of
from expost.table.csv_lines import Held
from expost.table.doors import require_sound
from expost.table.endings import PARQUET, ends
from expost.table.entrance import named_columns


def is_parquet(file: Path) -> bool:
    """Whether a file is Parquet, by its name."""
    return ends(file, PARQUET)


def parquet_whole(file: Path) -> Any:
    """Read a file at once, or say that it is no Parquet and quote nothing of it."""
    try:
        table = pa.parquet.ParquetFile(file).read()
        for batch in table.to_batches():
            require_sound(batch)
        return table
    except (pa.ArrowException, OSError, ValueError):
        pass  # raised out here, because the reader's own message may quote cells
    raise ValueError(f"{file} could not be read as Parquet")


_PART = 1 << 17  # rows: small row groups are read together
_BUFFER = 1 << 17  # bytes of each column that are read at a time, however large its row group is


class _Last(threading.local):
    """What the file that a thread has read last says of its row groups: of one file, however many a table has."""

    metadata: Any = None
    of: Any = staticmethod(lambda: None)


_LAST = _Last()


class ParquetTable:
    """A Parquet file whose rows are not in memory."""

    def __init__(self, path: Path) -> None:
        self.path, self._held = path, Held(path)
        try:
            metadata = pa.parquet.read_metadata(self._held.opened())
        except (pa.ArrowException, OSError, ValueError):
            metadata = None
        if metadata is None:  # raised out here, because the reader's own message may quote cells
            raise ValueError(f"{path} could not be read as Parquet")
        self._sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        self.n = self.guess = metadata.num_rows
        schema = metadata.schema.to_arrow_schema()
        self.names: list[str] = list(schema.names)
        self.types = list(schema.types)
        self._texts = [field.name for field in schema if pa.types.is_string(field.type)]

    def __repr__(self) -> str:
        return f"ParquetTable({self.path})"

    def parts(self) -> list[tuple[int, ...]]:
        """Return runs of row groups."""
        runs: list[tuple[int, ...]] = []
        held = 0
        for k, size in enumerate(self._sizes):
            if not runs or held + size > _PART:
                runs.append(())
                held = 0
            runs[-1] += (k,)
            held += size
        return runs

    def _metadata(self) -> Any:
        """Return what the file says of its row groups, which is read once by each thread and not for every part."""
        if _LAST.of() is not self:
            _LAST.metadata, _LAST.of = pa.parquet.read_metadata(self._held.opened()), weakref.ref(self)
        return _LAST.metadata

    def read(
        self, part: tuple[int, ...], names: Sequence[str], numeric: frozenset[str], rows: int
    ) -> Iterator[NamedColumns]:
        """Yield some columns of some row groups."""
        batches = self._batches(part, [self.names[j] for j in places_of(self.names, names).values()], rows)
        while True:
            try:
                batch = next(batches, None)
            except UnreadableFile:
                raise
            except (pa.ArrowException, OSError, ValueError):
                break
            if batch is None:
                return
            yield named_columns(batch, names)
        # out here: the reader's own message may quote cells and would ride along as the context
        groups = ", ".join(map(str, part))
        raise UnreadableFile(f"{self.path} could not be read: row group(s) {groups} are damaged or out of reach")

    def _batches(self, part: tuple[int, ...], wanted: list[str], rows: int) -> Iterator[Any]:
        file = pa.parquet.ParquetFile(
            self._held.opened(),
            metadata=self._metadata(),
            read_dictionary=[name for name in wanted if name in self._texts],  # each text once, as it is written
            pre_buffer=False,
            buffer_size=_BUFFER,
        )
        for batch in file.iter_batches(batch_size=rows, row_groups=list(part), columns=wanted, use_threads=False):
            require_sound(batch)
            yield batch
