"""Tables that a schema counts by person, read in pieces: the release is that of the table in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from expost.exceptions import InvalidRows
from expost.passes import engine as local, first_pass as look
from expost.passes.dask import DaskEngine
from expost.passes.engine import LocalEngine
from expost.passes.first_pass import counted
from expost.solve.losses import LogisticLoss
from expost.solve.row_sums import Passes
from expost.table import streamed
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.persons import Persons, slots, times
from expost.table.rows import MemorySource
from expost.table.schema import Schema
from expost.table.streamed import PersonSource
from tests.passes.helpers import LABELS, fitted, table, told

N = 3000


@pytest.fixture(scope="module")
def visits():
    """Return the table with 900 persons, some of whom are not named."""
    rng = np.random.default_rng(4)
    who = [None if rng.random() < 0.02 else f"p{k}" for k in rng.integers(0, 900, N)]
    return table().append_column("who", pa.array(who))


@pytest.mark.parametrize("k", [1, 5, 5000])
def test_rows_count_as_often_as_they_fill_slots(k):
    rng = np.random.default_rng(k)
    names = rng.choice(["ann", "bob", "cat", None], 30, p=[0.6, 0.2, 0.1, 0.1]).tolist()
    numbers = Persons().numbers(names)
    filled = np.zeros(30, dtype=int)
    for person in set(numbers.tolist()):
        own = np.flatnonzero(numbers == person)[:k]
        for slot in range(k):
            filled[own[slot % len(own)]] += 1
    assert times(numbers, k).tolist() == np.bincount(slots(names, k)[0], minlength=30).tolist() == filled.tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_in_pieces_gives_what_memory_gives(visits, tmp_path, monkeypatch, kind):
    options = {"person": "who", "rows_per_person": 4, "on_invalid": "clip"}
    whole = told(fitted(visits, **options))
    if kind == "csv":
        pa.csv.write_csv(visits, tmp_path / "t.csv", pa.csv.WriteOptions(quoting_style="none"))
    else:
        pa.parquet.write_table(visits, tmp_path / "t.parquet", row_group_size=500)
    file = tmp_path / f"t.{kind}"
    assert told(fitted(file, **options)) == whole
    monkeypatch.setattr(look, "KEPT", 0)
    monkeypatch.setattr(streamed, "_MOST_ROWS", 301)
    monkeypatch.setattr(local, "_SMALL", 0)
    assert told(fitted(file, engine=LocalEngine(2, scratch=False), **options)) == whole
    assert told(fitted(file, engine=LocalEngine(2, scratch=tmp_path), **options)) == whole


def test_many_slots_are_counted_exactly(visits, tmp_path):
    """Counts beyond 2¹¹ are written in digits; a row that fills 3,000 slots is not 3,000 rows in memory."""
    pa.parquet.write_table(visits.slice(0, 40), tmp_path / "t.parquet")
    encoding = Encoding(Schema.from_dict({**LABELS, "person": "who", "rows_per_person": 3000}))
    source = PersonSource(open_disk(tmp_path / "t.parquet"), encoding)
    rows, *wanted = encoding.encode_and_count(visits.slice(0, 40), "clip")
    whole = MemorySource(rows)
    assert max(len(batch) for part in source.parts() for batch in source.read(part)) <= 40
    theta = np.linspace(-1, 1, source.p)
    found, expected = (Passes(LogisticLoss(), rows) for rows in (source, whole))
    assert found.n == expected.n
    assert found.slopes(theta).gradient.tobytes() == expected.slopes(theta).gradient.tobytes()
    assert found.errors(theta) == expected.errors(theta)
    assert [*encoding.tallied(*counted(source, LocalEngine()))] == wanted


def test_rows_that_fill_no_slot_are_judged_too(visits, tmp_path):
    """What is wrong with a table is said about all of its rows, as it is in memory."""
    lines = visits.select(["age", "label", "who"]).to_pylist()
    lines[-1] = {**lines[-1], "who": lines[0]["who"], "label": "perhaps"}  # the second row of somebody
    pa.csv.write_csv(pa.Table.from_pylist(lines), tmp_path / "t.csv")
    schema = {"target": "label", "classes": ["no", "yes"], "columns": {"age": {"bounds": [0, 100]}}}
    from expost import AccuracyFirstModel, ErrorRate

    model = AccuracyFirstModel(schema, ErrorRate(0.35), person="who", rows_per_person=1, random_state=0)
    with pytest.raises(InvalidRows, match="label"):
        model.fit(tmp_path / "t.csv")


def test_a_cluster_is_refused_and_not_left_out_silently(visits, tmp_path):
    pa.parquet.write_table(visits, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="a schema that names persons is for engine='local'"):
        fitted(tmp_path / "t.parquet", person="who", rows_per_person=2, engine=DaskEngine())
