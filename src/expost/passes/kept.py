"""Rows that come but once, kept so that every pass finds them again.

A stream (:mod:`expost.table.databases_and_streams`) gives its rows once, and a search makes several passes. So the
cells of the columns that are needed are kept as they came: in memory while they take up no more than rows may there,
and from then on in an encrypted file without a name, about which the promises of :mod:`expost.passes.scratch` hold.
What is written is as private as the rows, and gone with the process. Where nothing may be written, or there is too
little room, the stream is refused in words before anything is spent.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from expost.exceptions import UnreadableFile
from expost.passes.engine import Engine, LocalEngine, note
from expost.passes.first_pass import KEPT
from expost.passes.scratch import STATED, UNSTATED, read_into, usual_folder
from expost.table.columns import NamedColumns, places_of
from expost.table.csv_lines import TableFile
from expost.table.databases_and_streams import Cells, Stream, taken
from expost.table.files import Disk

_ROWS, _BYTES = 1 << 16, 1 << 25  # of a record
_NONCE = 12  # bytes, which say where a record stands


def kept(disk: Disk, names: Sequence[str], engine: Engine | None = None) -> Disk:
    """Return a table that can be read again and again; columns of a stream that are not named are dropped.

    Examples
    --------
    >>> from expost.table.files import open_disk
    >>> disk = kept(open_disk(pa.table({"age": [31, 47], "town": ["Bern", None]}).to_reader()), ["age"])
    >>> [columns["age"].cells() for _ in range(2) for columns in disk.read(disk.pieces()[0], ["age"], frozenset(), 9)]
    [[31, 47], [31, 47]]
    """
    streams = [file for file in disk.files if isinstance(file, Stream)]
    engine = LocalEngine() if engine is None else engine
    if streams and not isinstance(engine, LocalEngine):
        raise ValueError(
            f"pass engine='local': {streams[0].path} is read by this process, and a cluster has workers elsewhere"
        )
    if not disk.once or not isinstance(engine, LocalEngine):
        return disk
    disk.require(names)
    [stream] = streams
    file = KeptStream(stream, names, engine)
    if file.n == 0:
        raise ValueError(f"{stream.path} has no rows; one that has been read before has none left, so pass a fresh one")
    return Disk([file])


class KeptStream(TableFile):
    """The rows of a stream, read to its end; private."""

    def __init__(self, stream: Stream, names: Sequence[str], engine: LocalEngine) -> None:
        places = list(places_of(stream.names, list(dict.fromkeys(names))).values())
        self.path, self.names = stream.path, [stream.names[j] for j in places]
        self.claims = stream.claims
        self.types = None if stream.types is None else [stream.types[j] for j in places]
        self._most = KEPT if engine.kept is None else engine.kept
        self._folder: Path | None = engine.scratch if engine.scratch or not engine.writes else usual_folder()
        self._spare = UNSTATED if engine.scratch is None else STATED
        self._records: list[bytes | tuple[int, int]] = []  # or where they stand in the file
        self._file: Any = None
        self._key, self._end, self.n = secrets.token_bytes(32), 0, 0
        for piece in stream.pieces():
            self._keep(piece, places)
        self.guess = self.n
        where = "in memory" if self._file is None else f"encrypted in {self._folder} until the end"
        note(f"{self.path} gives its rows once; they are kept {where}, {self._end / 1e6:,.0f} MB")

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()  # which ends it

    def __getstate__(self) -> dict[str, Any]:
        raise ValueError(f"{self.path} was read by this process, and its rows do not travel: engine='local'")

    def parts(self) -> range:
        """Return numbers of the records."""
        return range(len(self._records))

    def read(self, part: int, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        """Yield some columns of a record."""
        yield from taken(_unpacked(self._found(self._records[part]), self.names), names, rows)

    def _keep(self, piece: Any, places: list[int]) -> None:
        if isinstance(piece, Cells):
            piece = Cells(self.names, [piece.columns[j] for j in places])
        else:
            piece = piece.select(places)
        size = 0 if isinstance(piece, Cells) else piece.nbytes
        step = max(1, min(_ROWS, piece.num_rows * _BYTES // max(1, size)))
        for start in range(0, piece.num_rows, step):
            record = _packed(piece.slice(start, step))
            self._end += len(record)
            self._records.append(record)
        self.n += piece.num_rows
        if self._end > self._most:
            self._write()

    def _write(self) -> None:
        """Write what is in memory to the file, or say that it does not fit."""
        failed = self._folder is None
        try:
            if self._file is None and self._folder is not None:
                self._file = tempfile.TemporaryFile(dir=self._folder, prefix="expost-")  # noqa: SIM115
            for k, record in enumerate(self._records):
                if isinstance(record, bytes) and not failed:
                    self._records[k] = self._written(record)
        except OSError:
            failed = True
        if failed:
            where = "nothing may be written" if self._folder is None else f"there is too little room in {self._folder}"
            raise ValueError(
                f"{self.path} gives its rows once, they take up more than {self._most / 2**20:,.0f} MB, and {where}: "
                f"pass a function without arguments that hands them out anew, LocalEngine(memory=...) with more "
                f"megabytes, or a Parquet file of them"
            )

    def _written(self, record: bytes) -> tuple[int, int]:
        assert self._folder is not None
        if shutil.disk_usage(self._folder).free < self._spare * len(record):
            raise OSError("too little room")
        place = self._file.seek(0, 2)
        sealed = self._cipher().encrypt(place.to_bytes(_NONCE, "big"), record, None)
        self._file.write(sealed)
        self._file.flush()
        return place, len(sealed)

    def _found(self, record: bytes | tuple[int, int]) -> bytes:
        from cryptography.exceptions import InvalidTag

        if isinstance(record, bytes):
            return record
        place, size = record
        sealed = np.empty(size, dtype=np.uint8)
        read_into(self._file.fileno(), sealed, place)
        try:
            return bytes(self._cipher().decrypt(place.to_bytes(_NONCE, "big"), sealed.data, None))
        except InvalidTag:
            pass
        raise UnreadableFile("the scratch file is not what was written to it; is the disk damaged?")

    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # few tables need it

        return AESGCM(self._key)


#: What cells of SQLite are, and as what they are kept: nothing that is read again can be code, as a pickle can.
_CELLS = {
    type(None): pa.null(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
}


def _packed(piece: Any) -> bytes:
    """Return a batch, or cells of Python's own plain types, as bytes."""
    cells = isinstance(piece, Cells)
    batch = pa.record_batch([_union(column) for column in piece.columns], piece.names) if cells else piece
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return (b"C" if cells else b"A") + bytes(sink.getvalue())


def _unpacked(record: bytes, names: list[str]) -> Any:
    batch = pa.ipc.open_stream(pa.py_buffer(record)[1:]).read_next_batch()
    return batch if record[:1] == b"A" else Cells(names, [*map(_cells, batch.columns)])


def _union(cells: list[Any]) -> Any:
    """Return cells as an array that knows the type of each."""
    kind_of = dict(zip(_CELLS, range(len(_CELLS)), strict=True))
    kinds = np.fromiter((kind_of[type(cell)] for cell in cells), dtype=np.int8, count=len(cells))
    places, children = np.empty(len(cells), dtype=np.int32), []
    for kind, (of, stored) in enumerate(_CELLS.items()):
        same = kinds == kind
        places[same] = np.arange(same.sum(), dtype=np.int32)
        children.append(pa.array([cell for cell in cells if type(cell) is of], stored))
    return pa.UnionArray.from_dense(pa.array(kinds), pa.array(places), children)


def _cells(union: Any) -> list[Any]:
    """Return the cells of such an array; of each type they stand in their order."""
    if not len(union):  # PyArrow crashes over the types of none
        return []
    of_kind = [iter(union.field(kind).to_pylist()) for kind in range(len(_CELLS))]
    return [next(of_kind[kind]) for kind in union.type_codes.tolist()]
