"""Passes by the workers of a Dask cluster (``pip install expost[dask]``).

A worker reads its part of the table, works on it batch by batch and keeps the rows to itself. What travels are the work
(θ, a loss: public, or a hypothesis not yet released) and sums of the size of θ or of XᵀX, which are private: the
cluster and its network have to be trusted as this machine is. Results are added up on the workers as a tree. A worker
that is lost has its parts done anew by others, and as sums are of integers nothing in the result tells.

Arrays of Dask as features and target of a fit: chunks stay where they are, and workers make passes over them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from expost.exceptions import UnreadableFile
from expost.passes.engine import LocalEngine, Totals, Work, joined, part_totals, watched_pass
from expost.table.columns import Column, NamedColumns, places_of, require_readable
from expost.table.files import open_named
from expost.table.rows import MemorySource, RowSource
from expost.table.streamed import ColumnsOnDisk, StreamedSource, TargetOnDisk
from expost.threads import one_thread

_PATIENCE = 10  # seconds for a scheduler to answer
_ALONE, _LOOK = 60.0, 2.0  # seconds for workers to come back once there are none, and between looks
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

    name = "dask"

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
        with watched_pass(source.n) as told:
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
            if told is not None:
                told(source.n)
        if found is None:
            raise ValueError("there are no rows; pass at least one")
        return found


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


def _of_frame(frame: Any, source: StreamedSource, work: Work) -> Totals | None:
    source.disk = _Frames(frame)  # type: ignore[assignment]
    with one_thread():
        return part_totals(source, None, work)


class _Frames:
    """A partition, read like a file."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def read(self, part: Any, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        for start in range(0, len(self._frame), rows):
            yield open_named(self._frame.iloc[start : start + rows], names)


class DaskFrame:
    """A Dask DataFrame as a table in pieces; the pieces stay where they are."""

    n = None
    guess = 0

    def __init__(self, frame: Any) -> None:
        self._frame, self.names = frame, [str(name) for name in frame.columns]

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "_frame": None}

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that are not there or there twice."""
        places_of(self.names, names)

    def tasks(self, source: StreamedSource, work: Work) -> list[Any]:
        """Return what is to be done on each partition."""
        from dask.delayed import delayed

        wanted = [self._frame.columns[j] for j in places_of(self.names, source.names).values()]
        return [
            delayed(partial(_of_frame, source=source, work=work), pure=False)(part)
            for part in self._frame[wanted].to_delayed()
        ]


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


_TARGET = "y"


class DaskArrays:
    """Chunks of rows, features and targets, as a table in pieces.

    Parameters
    ----------
    X, y : dask.array.Array
        Of shape (n, p) and (n,).
    """

    def __init__(self, X: Any, y: Any) -> None:
        self.n = self.guess = int(X.shape[0])
        self.names = [*map(str, range(X.shape[1])), _TARGET]
        self._X = X.rechunk({1: -1})  # a row is never cut
        self._y = y.rechunk({0: self._X.chunks[0]})

    def __getstate__(self) -> dict[str, Any]:
        return {"n": self.n, "guess": self.guess, "names": self.names}

    def require(self, names: Sequence[str]) -> None:
        """Complain about columns that are not there."""
        places_of(self.names, names)

    def tasks(self, source: StreamedSource, work: Work) -> list[Any]:
        """Return what is to be done on each chunk."""
        from dask.delayed import delayed

        chunks = zip(self._X.to_delayed().ravel(), self._y.to_delayed().ravel(), strict=True)
        job = delayed(partial(_of_chunk, source=source, work=work), pure=False)
        return [job(features, targets) for features, targets in chunks]


def _of_chunk(features: Any, targets: Any, source: StreamedSource, work: Work) -> Totals | None:
    source.disk = _Chunk(np.asarray(features), np.asarray(targets))  # type: ignore[assignment]
    with one_thread():
        return part_totals(source, None, work)


class _Chunk:
    """A chunk, read like a file."""

    def __init__(self, features: Any, targets: Any) -> None:
        self._features, self._targets = features, targets

    def read(self, part: Any, names: Sequence[str], numeric: frozenset[str], rows: int) -> Iterator[NamedColumns]:
        for start in range(0, len(self._targets), rows):
            some = slice(start, start + rows)
            cells = {
                name: Column(self._targets[some] if name == _TARGET else self._features[some, int(name)])
                for name in names
            }
            yield NamedColumns(cells, len(self._targets[some]))


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
    table = DaskArrays(X, y)
    rows = ColumnsOnDisk(table, table.n, table.names[:-1], _TARGET, DaskEngine(), named=False)  # type: ignore[arg-type]
    return rows, TargetOnDisk(table.n, y.dtype, None)
