"""Passes by the workers of a Dask cluster (``pip install expost[dask]``).

A worker reads its part of the table, works on it batch by batch and keeps the rows to itself. What travels are the work
(θ, a loss: public, or a hypothesis not yet released) and sums of the size of θ or of XᵀX, which are private: the
cluster and its network have to be trusted as this machine is. Results are added up on the workers as a tree. A worker
that is lost has its parts done anew by others, and as sums are of integers nothing in the result tells.

Partitions of a Dask DataFrame and chunks of Dask arrays stay where they are, and are read there like a file. Which
engine is meant, and how a table is read in pieces, is settled here as well.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from expost.exceptions import UnreadableFile
from expost.numeric import one_thread
from expost.passes.engine import Engine, LocalEngine, Totals, Work, again, joined, part_totals, watched_pass
from expost.passes.kept import kept
from expost.table.columns import Column, NamedColumns, places_of, require_readable
from expost.table.encoding import Encoding
from expost.table.files import is_on_disk, open_disk, open_named
from expost.table.rows import MemorySource, RowSource
from expost.table.streamed import ColumnsOnDisk, EncodedSource, PersonSource, StreamedSource, TargetOnDisk

_PATIENCE = 10  # seconds for a scheduler to answer
_ALONE, _LOOK = 60.0, 2.0  # seconds for workers to come back once there are none, and between looks
_TARGET = "y"  # what the target of arrays is called
_BRANCHES = 8  # results that are added up in one place
# a scheduler without an address for its dashboard takes port 8787 all the same, and warns if others have it: any free
# port for this machine alone, and no dashboard on it
_QUIET = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}


class DaskEngine:
    """The workers of a Dask cluster.

    Parameters
    ----------
    scheduler : str or distributed.Client, optional
        Address of the cluster's scheduler. By default the client that is there already, or else a cluster of two
        processes on this machine, which is closed with the engine.

    Raises
    ------
    ValueError
        If Dask is not installed.

    Examples
    --------
    >>> DaskEngine("tcp://10.0.0.1:8786")  # connected when it is first used
    DaskEngine('tcp://10.0.0.1:8786')
    """

    def __init__(self, scheduler: Any = None) -> None:
        if find_spec("distributed") is None:  # said before anything is read
            raise ValueError("the dask engine needs Dask: pip install 'expost[dask]'")
        self._stated, self._own = scheduler, False
        self._client: Any = None

    def __repr__(self) -> str:
        return f"DaskEngine({self._stated!r})" if isinstance(self._stated, str) else "DaskEngine()"

    @property
    def client(self) -> Any:
        """The client, connected when it is first asked for."""
        if self._client is None:
            self._client, self._own = _connected(self._stated)
        return self._client

    def close(self) -> None:
        """Disconnect from a cluster that nobody else uses."""
        if self._own and self._client is not None:
            self._client.close()
        self._client = None

    def total(self, source: RowSource, work: Work) -> Totals:
        """Return the sum of a piece of work over all batches; private."""
        if isinstance(source, MemorySource):
            return LocalEngine().total(source, work)  # rows that are here stay here
        assert isinstance(source, StreamedSource)
        client = self.client
        with _as_unreadable(), watched_pass(source.n, again(self, source, work)) as told:
            if hasattr(source.disk, "tasks"):  # chunks and partitions of Dask are where they are
                futures = client.compute(source.disk.tasks(source, work))
            else:
                # with every task, not placed on a worker beforehand: what only a lost worker had could not be made anew
                job = partial(_of_part, source=source, work=work)
                futures = client.map(job, source.parts(), pure=False, retries=2)
            while len(futures) > 1:
                groups = [futures[k : k + _BRANCHES] for k in range(0, len(futures), _BRANCHES)]
                futures = [client.submit(joined, group, pure=False, retries=2) for group in groups]
            found: Totals | None = _result(client, futures[0]) if futures else None
            told(source.n)
        if found is None:
            raise ValueError("there are no rows; pass at least one")
        return found


@contextlib.contextmanager
def _as_unreadable() -> Iterator[None]:
    """Say of a cluster that is lost in the middle of a pass that it was, and not that something is wrong here."""
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except (CancelledError, CommClosedError, KilledWorker) as error:
        lost = "every worker that took up a part" if isinstance(error, KilledWorker) else "its scheduler"
        raise UnreadableFile(f"the Dask cluster has lost {lost}, so nobody reads the rows") from None


def _result(client: Any, future: Any) -> Totals | None:
    """Wait for a result as long as there are workers, and without any for a while: others may come."""
    alone = 0.0
    while not future.done():
        try:
            future.result(timeout=_LOOK)
        except TimeoutError:  # or the work's own, which is raised below
            alone = 0.0 if client.nthreads() else alone + _LOOK
            if alone >= _ALONE:
                raise UnreadableFile(
                    f"the Dask cluster has had no workers for {_ALONE:g} seconds, so nobody reads the rows"
                ) from None
    found: Totals | None = future.result()
    return found


def _of_part(part: Any, source: StreamedSource, work: Work) -> Totals | None:
    with one_thread():
        return part_totals(source, part, work)


class DaskPieces:
    """Partitions of a Dask DataFrame, or chunks of Dask arrays, as a table in pieces; they stay where they are.

    Parameters
    ----------
    names : sequence of str
        Of the columns.
    pieces : callable
        Returns, for names of columns, a partition or features and targets of every piece, none of them computed.
    n : int, optional
        Number of rows, if it is known.
    """

    def __init__(
        self, names: Sequence[str], pieces: Callable[[list[str]], list[tuple[Any, ...]]], n: int | None = None
    ) -> None:
        self.names, self.n, self.guess, self._pieces = list(names), n, n or 0, pieces

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "n": self.n, "guess": self.guess}

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that are not there or there twice."""
        places_of(self.names, names)

    def tasks(self, source: StreamedSource, work: Work) -> list[Any]:
        """Return what is to be done on each piece."""
        from dask.delayed import delayed

        job = delayed(partial(_of_piece, source=source, work=work), pure=False)
        return [job(*piece) for piece in self._pieces(source.names)]


def _of_piece(*piece: Any, source: StreamedSource, work: Work) -> Totals | None:
    source.disk = _Piece(piece)  # type: ignore[assignment]
    return _of_part(None, source, work)


class _Piece:
    """A partition, or a chunk of features and targets, read like a file."""

    def __init__(self, piece: tuple[Any, ...]) -> None:
        self._piece = piece

    def read(self, part: Any, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        for start in range(0, len(self._piece[0]), rows):
            some = slice(start, start + rows)
            if len(self._piece) == 1:
                yield open_named(self._piece[0].iloc[some], names)
                continue
            features, targets = (np.asarray(cells)[some] for cells in self._piece)
            columns = {name: Column(targets if name == _TARGET else features[:, int(name)]) for name in names}
            yield NamedColumns(columns, len(targets))


def from_dask_frame(frame: Any) -> DaskPieces:
    """Return a Dask DataFrame as a table in pieces."""
    names = [str(name) for name in frame.columns]

    def pieces(wanted: list[str]) -> list[tuple[Any, ...]]:
        columns = [frame.columns[j] for j in places_of(names, wanted).values()]
        return [(part,) for part in frame[columns].to_delayed()]

    return DaskPieces(names, pieces)


def is_dask_frame(table: Any) -> bool:
    """Whether a table is a Dask DataFrame; Dask is not imported to find out."""
    module = sys.modules.get("dask.dataframe")
    return module is not None and isinstance(table, module.DataFrame)


def _connected(stated: Any) -> tuple[Any, bool]:
    from distributed import Client, default_client

    if stated is not None and not isinstance(stated, str):
        return stated, False
    if stated is None:
        try:
            return default_client(), False
        except ValueError:
            return Client(n_workers=2, threads_per_worker=1, **_QUIET), True
    try:
        return Client(stated, timeout=_PATIENCE), True
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"no Dask scheduler answers at {stated}: {type(error).__name__}") from None


def from_dask(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and target of Dask arrays as those of a table in pieces; others as they are."""
    module = sys.modules.get("dask.array")
    if module is None or not (isinstance(X, module.Array) or isinstance(y, module.Array)):
        return X, y
    if not (isinstance(X, module.Array) and isinstance(y, module.Array)):
        raise ValueError("X and y must both be Dask arrays, or neither")
    if X.ndim != 2 or y.ndim != 1:
        raise ValueError("X must have two dimensions and y one, as Dask arrays")
    if any(math.isnan(size) for size in (*X.shape, *y.shape)):
        raise ValueError("X and y must have chunks of known sizes; call compute_chunk_sizes() first")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[X.shape[0], y.shape[0]]}")
    require_readable(X.dtype, "X")
    require_readable(y.dtype, "y")
    n, names = int(X.shape[0]), list(map(str, range(X.shape[1])))
    X = X.rechunk({1: -1})  # a row is never cut
    y = y.rechunk({0: X.chunks[0]})
    table: Any = DaskPieces(
        [*names, _TARGET], lambda _: list(zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)), n
    )
    return ColumnsOnDisk(table, n, names, _TARGET, DaskEngine(), named=False), TargetOnDisk(n, y.dtype, None)


def as_engine(stated: Any, table: Any = None) -> Engine:
    """Return the engine that is meant; by default Dask for what is Dask's."""
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
        disk = kept(open_disk(table), encoding.schema.needed, engine)
        return (EncodedSource if encoding.schema.person is None else PersonSource)(disk, encoding)
    if is_dask_frame(table):
        return EncodedSource(from_dask_frame(table), encoding)  # type: ignore[arg-type]
    return None
