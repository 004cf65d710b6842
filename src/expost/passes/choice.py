"""Which engine is meant, and how a table is read in pieces."""

from __future__ import annotations

from typing import Any

from expost.passes.dask import DaskEngine, DaskFrame, is_dask_frame
from expost.passes.engine import Engine, LocalEngine
from expost.table.disk import is_on_disk, open_disk
from expost.table.encoding import Encoding
from expost.table.streamed import EncodedSource, PersonSource, StreamedSource

__all__ = ["as_engine", "stream_of"]


def as_engine(stated: Any, table: Any = None) -> Engine:
    """Return the engine that is meant; by default Dask for what is Dask's.

    Examples
    --------
    >>> as_engine(LocalEngine(threads=2))
    LocalEngine(threads=2)
    """
    if is_dask_frame(table) and stated is None:
        return DaskEngine()
    if stated is None or stated == "local":
        return LocalEngine()
    if stated == "dask":
        return DaskEngine()
    if not hasattr(stated, "total"):
        raise ValueError(f'engine must be "local", "dask", LocalEngine(...) or DaskEngine(...), not {stated!r}')
    engine: Engine = stated
    return engine


def stream_of(table: Any, encoding: Encoding, engine: Engine) -> StreamedSource | None:
    """Return how a table is read in pieces; None if it is in memory."""
    if encoding.schema.person is not None and (is_dask_frame(table) or isinstance(engine, DaskEngine)):
        raise ValueError(
            "a schema that names persons is for engine='local': all rows of a person are found by one process, and "
            "names do not travel. Pass engine='local', which reads a table of any size in pieces"
        )
    if is_on_disk(table):
        return (EncodedSource if encoding.schema.person is None else PersonSource)(open_disk(table), encoding)
    if is_dask_frame(table):
        return EncodedSource(DaskFrame(table), encoding)  # type: ignore[arg-type]
    return None
