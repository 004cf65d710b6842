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
from expost.table.csv_lines import BatchFile, Held, unless_damaged
from expost.table.databases_and_streams import sound
from expost.table.entrance import named_columns


def parquet_whole(file: Path) -> Any:
    """Read a file at once, or say that it is no Parquet and quote nothing of it."""
    table = unless_damaged(lambda: pa.parquet.ParquetFile(file).read())
    if table is None or unless_damaged(lambda: [*map(sound, table.to_batches())]) is None:
        raise ValueError(f"{file} could not be read as Parquet")
    return table


_BUFFER = 1 << 17  # bytes of each column that are read at a time, however large its row group is
_END: Any = object()  # after the last batch


class _Last(threading.local):
    """What the file that a thread has read last says of its row groups: of one file, however many a table has."""

    metadata: Any = None
    of: Any = staticmethod(lambda: None)


_LAST = _Last()


class ParquetTable(BatchFile):
    """A Parquet file whose rows are not in memory; its batches are row groups."""

    def __init__(self, path: Path) -> None:
        self._held = Held(path)
        metadata = unless_damaged(lambda: pa.parquet.read_metadata(self._held.opened()))
        if metadata is None:
            raise ValueError(f"{path} could not be read as Parquet")
        schema = metadata.schema.to_arrow_schema()
        super().__init__(path, schema, [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)])
        self._texts = [field.name for field in schema if pa.types.is_string(field.type)]

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
        while (batch := unless_damaged(next, batches, _END)) is not _END:
            if batch is None:
                groups = f"row group(s) {', '.join(map(str, part))}"
                raise UnreadableFile(f"{self.path} could not be read: {groups} are damaged or out of reach")
            yield named_columns(batch, names)

    def whole(self, names: Sequence[str]) -> NamedColumns:
        """Return some columns of all rows."""
        return named_columns(parquet_whole(self.path), names)

    def _batches(self, part: tuple[int, ...], wanted: list[str], rows: int) -> Iterator[Any]:
        file = pa.parquet.ParquetFile(
            self._held.opened(),
            metadata=self._metadata(),
            read_dictionary=[name for name in wanted if name in self._texts],  # each text once, as it is written
            pre_buffer=False,
            buffer_size=_BUFFER,
        )
        yield from map(
            sound, file.iter_batches(batch_size=rows, row_groups=list(part), columns=wanted, use_threads=False)
        )
