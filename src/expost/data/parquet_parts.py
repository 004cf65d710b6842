"""A Parquet file in parts: row groups, read a batch at a time."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from expost.data.held import Held
from expost.data.named import NamedColumns, open_named, places_of
from expost.exceptions import UnreadableFile

__all__ = ["ParquetTable"]

_PART = 1 << 17  # rows: small row groups are read together
_BUFFER = 1 << 17  # bytes of each column that are read at a time, however large its row group is


class _Last(threading.local):
    """What the file that a thread has read last says of its row groups: of one file, however many a table has."""

    metadata: Any = None
    of: Any = staticmethod(lambda: None)


_LAST = _Last()


class ParquetTable:
    """A Parquet file whose rows are not in memory.

    Parameters
    ----------
    path : Path
    """

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

    def places(self, names: Sequence[str]) -> dict[str, int]:
        """Say where columns are."""
        return places_of(self.names, names)

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
        places = self.places(names)
        wanted = [self.names[j] for j in places.values()]
        batches = iter(())
        failed = False
        try:
            file = pa.parquet.ParquetFile(
                self._held.opened(),
                metadata=self._metadata(),
                read_dictionary=[name for name in wanted if name in self._texts],  # each text once, as it is written
                pre_buffer=False,
                buffer_size=_BUFFER,
            )
            batches = file.iter_batches(batch_size=rows, row_groups=list(part), columns=wanted, use_threads=False)
        except UnreadableFile:
            raise
        except (pa.ArrowException, OSError, ValueError):
            failed = True
        while not failed:
            batch: Any = None
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, ValueError):
                failed = True
            if batch is None:
                break
            yield open_named(batch, names)
        if failed:  # out here: the reader's own message may quote cells and would ride along as the context
            groups = ", ".join(map(str, part))
            raise UnreadableFile(f"{self.path} could not be read: row group(s) {groups} are damaged or out of reach")
