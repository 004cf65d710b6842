"""A cluster of processes on this machine: the same bits, also after a worker was killed in the middle of a pass."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from expost import AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge, ErrorRate
from expost.exceptions import SearchInterrupted, UnreadableFile
from expost.passes import constant_passes, dask
from expost.passes.dask import DaskEngine
from expost.passes.engine import LocalEngine
from expost.passes.sums import ProductSums
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.schema import Schema
from expost.table.streamed import EncodedSource
from tests.helpers import CountingSource
from tests.passes.helpers import LABELS, fitted, table, told, write

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask's own


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("files"))


@dataclass(frozen=True)
class Deadly:
    """Work that kills the worker that does it, once."""

    mark: Path
    here: int

    def __call__(self, batch):
        if os.getpid() != self.here:
            try:
                self.mark.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return ProductSums()(batch)


def source(file) -> EncodedSource:
    source = EncodedSource(open_disk(file), Encoding(Schema.from_dict(LABELS)))
    source.batch_rows = 100
    return source


def same(first, second) -> bool:
    return all((a == b).all() if hasattr(a, "all") else a == b for a, b in zip(first, second, strict=True))


def test_a_fit_gives_the_same_release(cluster, files):
    whole = told(fitted(table()))
    assert told(fitted(files["folder"], engine=DaskEngine(cluster))) == whole


def test_as_many_passes_over_a_cluster_as_were_settled(cluster, files, monkeypatch):
    begun = []
    submitted = cluster.map
    monkeypatch.setattr(cluster, "map", lambda *given, **named: begun.append(1) or submitted(*given, **named))
    with constant_passes(40):
        found = told(fitted(files["parquet"], engine=DaskEngine(cluster)))
    assert len(begun) == 40
    assert found == told(fitted(table()))


def test_a_dask_frame_gives_the_same_release(cluster):
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(table().to_pandas(), npartitions=3)
    assert told(fitted(frame, engine=DaskEngine(cluster))) == told(fitted(table()))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_curves_are_seen_where_the_rows_are(cluster, files, delta):
    """Coarser views travel as work: the rows stay with the workers, and the release is the same to the bit."""
    schema = {**LABELS, "curves": "auto"}

    def found(what, **options):
        model = AccuracyFirstModel(schema, ErrorRate(0.12), random_state=5, max_epsilon=200.0, delta=delta, **options)
        return told(model.fit(what).release_)

    assert found(files["parquet"], engine=DaskEngine(cluster)) == found(table())


@pytest.mark.parametrize("way", [{}, {"delta": 1e-6}, {"delta": 1e-6, "perturbation": "covariance"}])
def test_weights_of_labels_travel(cluster, files, way):
    """With the loss, with slopes of a descent, with moments."""

    def found(what, **options):
        weights = dict(zip(LABELS["classes"], (1, 4), strict=True))
        stated = {"class_weight": weights, "random_state": 5, "max_epsilon": 200.0, **way, **options}
        return AccuracyFirstModel(LABELS, ErrorRate(0.35), **stated).fit(what).release_

    here = found(table())
    assert here.parameters["class_weights"] == (0.25, 1.0)
    assert told(found(files["parquet"], engine=DaskEngine(cluster))) == told(here)


def test_dask_arrays_give_the_same_release(cluster):
    arrays = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 3))
    y = np.clip(X @ [0.5, -0.3, 0.2], -1, 1)
    cut, other = arrays.from_array(X, chunks=(700, 2)), arrays.from_array(y, chunks=900)
    ridge = AccuracyFirstRidge(excess_risk=0.05, bounds=1, target_bound=1, random_state=3)
    assert told(ridge.fit(cut, other).release_) == told(ridge.fit(X, y).release_)
    options = {"excess_risk": 0.05, "bounds": 1, "classes": (False, True), "random_state": 3}
    logistic = AccuracyFirstLogisticRegression(**options)
    assert told(logistic.fit(cut, other > 0).release_) == told(logistic.fit(X, y > 0).release_)
    for given in ((cut, y), (cut, other[:-1]), (cut[cut[:, 0] > 0], other)):
        with pytest.raises(ValueError, match=r"both be Dask arrays|inconsistent numbers|compute_chunk_sizes"):
            ridge.fit(*given)


def test_an_error_of_a_worker_names_the_file(cluster, files, tmp_path):
    copy = tmp_path / "gone.parquet"
    copy.write_bytes(files["parquet"].read_bytes())
    rows = source(copy)
    copy.unlink()
    with pytest.raises(UnreadableFile, match=r"gone\.parquet"):
        DaskEngine(cluster).total(rows, ProductSums())


def test_rows_in_memory_never_leave(cluster):
    """They are worked on here, whatever the engine: what would travel cannot be pickled."""
    assert told(fitted(table(), engine=DaskEngine(cluster))) == told(fitted(table()))


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr(dask, "_PATIENCE", 0.5)
    with pytest.raises(ValueError, match="no Dask scheduler answers at tcp://127"):
        DaskEngine("tcp://127.0.0.1:9").client  # noqa: B018


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if it were not installed
    for make in (DaskEngine, lambda: fitted(table(), engine="dask")):
        with pytest.raises(ValueError, match=r"pip install 'expost\[dask\]'"):
            make()


def test_a_cluster_of_its_own_leaves_the_usual_port_alone():
    """In a process of its own, where no other client is."""
    code = """
import socket, warnings
from expost import DaskEngine

if __name__ == "__main__":
    warnings.simplefilter("error", UserWarning)
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", 8787))
        taken.listen()
    except OSError:
        pass  # by somebody else, which will do
    engine = DaskEngine()
    server = engine.client.cluster.scheduler.http_server
    print(server.address, server.port != 8787)
    engine.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert "already in use" not in done.stderr
    assert done.stdout.split() == ["127.0.0.1", "True"]


def test_a_worker_that_is_killed_changes_nothing(cluster, files, tmp_path, monkeypatch):
    from expost.table import csv_lines

    monkeypatch.setattr(csv_lines, "_AT_ONCE", 250)  # many parts
    rows, mark = source(files["parquet"]), tmp_path / "killed"
    assert len(rows.parts()) == 12
    expected = LocalEngine(threads=1).total(rows, ProductSums())
    found = DaskEngine(cluster).total(rows, Deadly(mark, os.getpid()))
    assert mark.exists()
    assert same(found, expected)
    assert found[0] == table().num_rows


@pytest.mark.parametrize("begun", [False, True])
def test_a_cluster_without_workers_ends_the_search_and_is_charged(files, monkeypatch, begun):
    monkeypatch.setattr(dask, "_ALONE", 1.0)
    monkeypatch.setattr(dask, "_LOOK", 0.2)
    words = CountingSource()
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):
        given = client.map

        def lost(*arguments, **options):
            if not begun or words.drawn:
                client.retire_workers(list(client.nthreads()))
            return given(*arguments, **options)

        monkeypatch.setattr(client, "map", lost)
        model = AccuracyFirstModel(
            LABELS, ErrorRate(0.3), engine=DaskEngine(client), random_state=words, max_epsilon=9.0
        )
        with pytest.raises(SearchInterrupted if begun else UnreadableFile, match="no workers for 1 seconds") as raised:
            model.fit(files["csv"])
    assert (words.drawn > 0) is begun
    assert not begun or 0 < raised.value.release.epsilon <= 9.0
