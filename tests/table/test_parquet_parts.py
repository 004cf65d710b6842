"""Parquet files in parts: text by number, however the file has it, and what files say of themselves read once."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expost.exceptions import UnreadableFile
from expost.table.columns import DictionaryColumn
from expost.table.parquet import ParquetTable
from tests.helpers import read_columns

N = 1000
TEXTS = {
    "few": pa.array([["no", "yes", None, " yes "][k % 4] for k in range(N)]),
    "never missing": pa.array([["no", "yes"][k % 2] for k in range(N)]),
    "all different": pa.array([f"text {k}" for k in range(N)]),
    "none": pa.array([None] * N, pa.string()),
    "no text": pa.array([[b"yes", b"\xff\xfe"][k % 2] for k in range(N)], pa.binary()).view(pa.string()),
    "large": pa.array(["a", "b"] * (N // 2), pa.large_string()),
}
WRITTEN = {
    "by number": {},
    "plainly": {"use_dictionary": False},
    "by number as long as that is short": {"dictionary_pagesize_limit": 64, "data_page_size": 256},
}


def cells(table, name, rows):
    return [
        cell
        for part in table.parts()
        for some in table.read(part, [name], frozenset(), rows)
        for cell in some[name].cells()
    ]


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("rows", [7, 300, 5000])
def test_text_is_what_the_file_says_however_it_is_written(tmp_path, options, rows):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(TEXTS), file, row_group_size=400, **options)
    table, whole = ParquetTable(file), read_columns(file, list(TEXTS))
    for name in TEXTS:
        assert cells(table, name, rows) == whole[name].cells()


def test_text_that_repeats_is_looked_up_once(tmp_path):
    """And one whose dictionary is longer than what is read is not taken from there."""
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(TEXTS), file, row_group_size=400)
    table = ParquetTable(file)
    [few, *_] = table.read(table.parts()[0], ["few", "all different"], frozenset(), 100)
    assert isinstance(few["few"], DictionaryColumn)
    assert len(few["few"]._texts) == 4
    assert len(few["all different"]._texts) <= 101


def test_what_a_file_says_of_itself_is_read_once_by_a_thread(tmp_path, monkeypatch):
    files = [tmp_path / f"{k}.parquet" for k in range(2)]
    for k, file in enumerate(files):
        pq.write_table(pa.table({"a": [k] * 10}), file, row_group_size=2)
    tables = [ParquetTable(file) for file in files]
    for table in tables:
        table._sizes = [200_000] * 5  # so that each row group is a part
    seen, read = [], pq.read_metadata
    monkeypatch.setattr(pa.parquet, "read_metadata", lambda file: seen.append(1) or read(file))
    assert [cells(table, "a", 10) for table in tables] == [[0] * 10, [1] * 10]
    assert len(seen) == 2
    other = threading.Thread(target=cells, args=(tables[1], "a", 10))
    other.start()
    other.join()
    assert len(seen) == 3
    pq.write_table(pa.table({"a": [7, 8, 9]}), files[1])
    with pytest.raises(UnreadableFile, match="has changed since"):
        cells(tables[1], "a", 10)
