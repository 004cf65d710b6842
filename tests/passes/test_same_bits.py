"""The same release, to the bit, from every source, batch size and number of threads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from expost import R2, AccuracyFirstLogisticRegression, AccuracyFirstModel, AccuracyFirstRidge, ErrorRate
from expost.exceptions import InvalidRows
from expost.passes import engine as local, first_pass as look
from expost.passes.engine import LocalEngine
from expost.release.scoring import scorer_of
from expost.solve import row_sums as passes
from expost.solve.losses import LogisticLoss
from expost.table import streamed
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.rows import MemorySource, Rows
from expost.table.schema import Schema
from expost.table.streamed import EncodedSource, TableOnDisk
from tests.passes.helpers import LABELS, NUMBERS, N, fitted, table, told, write


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("files"))


@pytest.fixture
def always_streamed(monkeypatch):
    """Keep nothing in memory, read few rows at a time, use threads for the smallest table."""
    monkeypatch.setattr(look, "KEPT", 0)
    monkeypatch.setattr(streamed, "_MOST_ROWS", 701)
    monkeypatch.setattr(local, "_SMALL", 0)


@pytest.mark.parametrize(("schema", "goal"), [(LABELS, ErrorRate(0.35)), (NUMBERS, R2(0.3))], ids=["labels", "numbers"])
def test_a_score_of_files_is_that_of_their_rows(files, schema, goal, always_streamed):
    model = AccuracyFirstModel(schema, goal, random_state=5, max_epsilon=1000.0).fit(table())
    whole = model.score(table())
    assert 0 < whole < 1
    margins = scorer_of(model.release_).margins
    for kind in ("parquet", "csv", "packed", "folder", "pattern"):
        assert model.score(files[kind]) == pytest.approx(whole, rel=1e-9)
        assert np.allclose(margins(files[kind]), margins(table()))


def test_a_score_of_a_file_that_does_not_fit(files, tmp_path):
    model = AccuracyFirstModel(LABELS, ErrorRate(0.35), random_state=5, max_epsilon=1000.0).fit(table())
    broken = tmp_path / "t.csv"
    broken.write_text(files["csv"].read_text() + "old,1,1,1,Bern,true,no,0\n")
    with pytest.raises(InvalidRows, match=r"cells that are not numbers in column\(s\) age \(1\)"):
        model.score(broken)


@pytest.mark.parametrize("regression", [False, True], ids=["labels", "numbers"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "packed", "folder", "pattern"])
def test_files_read_whole_or_in_pieces_give_what_memory_gives(files, kind, regression, request):
    whole = told(fitted(table(), regression=regression))
    assert told(fitted(files[kind], regression=regression)) == whole
    request.getfixturevalue("always_streamed")
    assert told(fitted(str(files[kind]), regression=regression, engine=LocalEngine(threads=3, scratch=False))) == whole


@pytest.mark.parametrize("regression", [False, True], ids=["labels", "numbers"])
def test_a_noisy_descent_over_a_file_is_that_over_memory(files, regression, always_streamed):
    """Sums of clipped gradients are passes too, and rows in memory that are mostly zero are the same integers."""
    whole = told(fitted(table(), regression=regression, delta=1e-6))
    assert (
        told(fitted(files["csv"], regression=regression, delta=1e-6, engine=LocalEngine(threads=3, scratch=False)))
        == whole
    )


@pytest.mark.parametrize("make", [lambda t: t.to_pandas(), pl.from_arrow, lambda t: t.to_pydict()])
def test_frames_give_the_same(make):
    assert told(fitted(make(table()))) == told(fitted(table()))


def test_rows_are_streamed_and_not_kept(files, always_streamed, monkeypatch):
    """What the tests above rest on: passes are over batches of the file, and there are several of them."""
    seen = []
    work = passes.SlopeSums.__call__
    monkeypatch.setattr(passes.SlopeSums, "__call__", lambda self, batch: seen.append(len(batch)) or work(self, batch))
    fitted(files["parquet"])
    assert max(seen) <= 701
    assert sum(seen) % N == 0
    assert sum(seen) >= 2 * N


def gradient(file, rows_at_a_time: int) -> bytes:
    source = EncodedSource(open_disk(file), Encoding(Schema.from_dict(LABELS)))
    source.n, source.batch_rows = N, rows_at_a_time
    return passes.Passes(LogisticLoss(), source).slopes(np.linspace(-1, 1, source.p)).gradient.tobytes()


def test_sums_in_floating_point_would_be_noticed(files, monkeypatch):
    """The broken variant: Σφ′x of a batch is rounded, as sums in floating point are, so that batches matter."""
    assert gradient(files["parquet"], 97) == gradient(files["parquet"], 1024)
    work = passes.SlopeSums.__call__

    def rounded(self, batch):
        high, low = work(self, batch)[0].tolist()
        sums = np.array(high, dtype=np.float64) * 2.0**22 + np.array(low)
        return (np.stack([np.zeros(len(low), dtype=object), np.array([int(value) for value in sums], dtype=object)]),)

    monkeypatch.setattr(passes.SlopeSums, "__call__", rounded)
    assert gradient(files["parquet"], 97) != gradient(files["parquet"], 1024)


def test_ridge_and_logistic_regression_from_files(tmp_path, always_streamed):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (4000, 3))
    y = np.clip(X @ [0.5, -0.3, 0.2] + rng.normal(0, 0.05, 4000), -1, 1)
    frame = pa.table([*map(pa.array, X.T.copy()), pa.array(y), pa.array(y > 0)], names=["a", "b", "c", "y", "sign"])
    pa.parquet.write_table(frame, tmp_path / "t.parquet", row_group_size=333)
    pa.csv.write_csv(frame, tmp_path / "t.csv")
    features = frame.select(["a", "b", "c"])
    for perturbation in (None, "covariance", "output"):
        options = {"excess_risk": 0.05, "bounds": 1, "target_bound": 1, "random_state": 3, "max_epsilon": 10.0}
        model = AccuracyFirstRidge(perturbation=perturbation, **options)
        whole = told(model.fit(features, pd.Series(y, name="y")).release_)
        for file in ("t.parquet", "t.csv"):
            table = TableOnDisk(tmp_path / file, "y", columns=["a", "b", "c"])
            assert told(model.fit(table.X, table.y).release_) == whole
            assert told(model.fit(table.X, table.y).release_) == whole  # a table may be read again
    options = {"excess_risk": 0.05, "bounds": 1, "random_state": 3, "max_epsilon": 10.0}
    model = AccuracyFirstLogisticRegression(classes=(False, True), **options)
    whole = told(model.fit(features, pd.Series(y > 0, name="sign")).release_)
    table = TableOnDisk(tmp_path / "t.parquet", "sign", columns=["a", "b", "c"])
    assert told(model.fit(table.X, table.y).release_) == whole


def test_equal_rows_are_counted_exactly():
    """Rows in memory that are equal are worked on once; a file of them is read row by row."""
    rng = np.random.default_rng(2)
    kinds = rng.integers(-(2**19), 2**19, (7, 2)).astype(np.int32)
    which = np.concatenate([np.zeros(5000, int), rng.integers(0, 7, 4000)])
    y = np.where(which % 2, 2**20, -(2**20)).astype(np.int32)
    rows = Rows(kinds[which], y, "l2")
    together = passes.Passes.over(LogisticLoss(), rows)
    apart = passes.Passes(LogisticLoss(), MemorySource(rows))
    assert sum(len(b) for part in together.source.parts() for b in together.source.read(part)) < 20
    theta = np.array([0.3, -1.7])
    for first, second in zip(
        together.slopes(theta, curvature=True)[:2], apart.slopes(theta, curvature=True)[:2], strict=True
    ):
        assert first.tobytes() == second.tobytes()
    assert together.errors(theta) == apart.errors(theta)
    assert together.mean_of(np.hypot, theta) == apart.mean_of(np.hypot, theta)
    assert together.target_variance() == apart.target_variance()


def test_where_rows_are_kept_is_a_matter_of_size(files, monkeypatch):
    monkeypatch.setattr(look, "KEPT", 10_000)
    assert told(fitted(files["csv"])) == told(fitted(table()))


def test_what_holds_rows_in_memory_says_what_it_takes(tmp_path, always_streamed, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 2))
    pa.parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0] > 0}), tmp_path / "t.parquet")
    options = {"excess_risk": 0.05, "bounds": 1, "classes": (False, True), "random_state": 3, "perturbation": "output"}

    def fit(engine=None):
        table = TableOnDisk(tmp_path / "t.parquet", "y", engine=engine)
        return AccuracyFirstLogisticRegression(**options).fit(table.X, table.y)

    monkeypatch.setattr(look, "_MUCH", 1000)
    with pytest.warns(UserWarning, match=r"2,000 rows of 3 columns take about 0\.0 GB of memory"):
        fit()
    monkeypatch.setattr(look, "_WORKED", 10**12)
    with pytest.raises(ValueError, match=r"GB of memory with perturbation='output', and there are .* GB\. Leave"):
        fit()
    with pytest.raises(ValueError, match="rows of a cluster stay with its workers"):
        fit(Elsewhere())


class Elsewhere:
    """An engine that is not this process."""

    def total(self, source, work):
        return LocalEngine().total(source, work)
