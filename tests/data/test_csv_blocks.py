"""CSV files cut anywhere between lines, read as if they had not been."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from expost.data import csv_blocks
from expost.data.csv_blocks import CsvFile
from expost.data.lookup import Lookup
from expost.data.named import read_columns

MARKS = Lookup([["", "?", -9]])
PLACES = Lookup([["Bern"], ["Oslo"], ["", "?"]])
HOSTILE = (
    b'age;city\n31;Bern\n;Oslo\n47\n\n-9;Rome\n1e3; Bern \r\n"52;Oslo\n+5;x;y;z\nnan;Oslo\ninf;Bern\n0x10;\n1_0;Bern\n'
    b"\xff;\xff\n ;?\n1e400;Oslo\n5\rBern\n00.5;Bern\n 7 ;Oslo"
)
LINES = [f"{k / 7!r},{('Bern', 'Oslo', '')[k % 3]}" for k in range(60)]
PLAIN = "\n".join(["age,city", *LINES, ",Oslo", "-9,Rome", ""]).encode()


def read(file: CsvFile) -> tuple[bytes, bytes, list[int]]:
    """Return everything that is made of the cells, in order."""
    floats, missing, codes = [], [], []
    for part in file.parts():
        for columns in file.read(part, ["age", "city"], frozenset(["age"]), 10):
            values, gone = columns["age"].numbers(MARKS)
            floats.append(values)
            missing.append(gone)
            codes += columns["city"].codes(PLACES).tolist()
    return np.concatenate(floats).tobytes(), np.concatenate(missing).tobytes(), codes


def expected(path) -> tuple[bytes, bytes, list[int]]:
    columns = read_columns(path, ["age", "city"])
    values, gone = columns["age"].numbers(MARKS)
    return values.tobytes(), gone.tobytes(), columns["city"].codes(PLACES).tolist()


@pytest.mark.parametrize("content", [HOSTILE, HOSTILE + b"\n", HOSTILE + b"\n\n", PLAIN, PLAIN[:-1]])
def test_every_cut_gives_the_same_cells(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    whole = expected(path)
    for size in [1, 2, 3, 5, 8, 13, 21, 34, 100, 10_000]:
        file = CsvFile(path, part_bytes=size)
        assert read(file) == whole
        assert file.count() == len(whole[2])
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(content))
    for size in (1, 7, 10_000):
        assert read(CsvFile(packed, part_bytes=size)) == whole
        assert CsvFile(packed, part_bytes=size).count() == len(whole[2])


def test_plain_blocks_are_read_by_arrow_and_others_are_not(tmp_path, monkeypatch):
    """The quick way is taken where it may be, so that the test above is about both."""
    taken = []
    plain = csv_blocks._plain
    monkeypatch.setattr(csv_blocks, "_plain", lambda *given: taken.append(plain(*given)) or taken[-1])
    others = [b'"1",Bern\n', b"nan,Oslo\n", b"\n", b"\r\n", b"1\n", b"5\r,Bern\n", b"\xff,\xff\n"]
    for content, quick in ((PLAIN, True), (HOSTILE, False), *((PLAIN + line, False) for line in others)):
        (tmp_path / "t.csv").write_bytes(content)
        taken.clear()
        read(CsvFile(tmp_path / "t.csv"))
        assert (taken[0] is not None) == quick


def test_a_reader_that_guesses_would_be_noticed(tmp_path, monkeypatch):
    """The broken variant: blocks that are not plain given to Arrow all the same."""
    (tmp_path / "t.csv").write_bytes(b"age,city\nnan,Bern\n1,Oslo\n")
    whole = expected(tmp_path / "t.csv")
    assert read(CsvFile(tmp_path / "t.csv")) == whole
    monkeypatch.setattr(csv_blocks.np, "isfinite", lambda values: np.ones(len(values), dtype=bool))
    assert read(CsvFile(tmp_path / "t.csv")) != whole


def test_decimal_commas_and_other_encodings(tmp_path):
    (tmp_path / "t.csv").write_bytes("weight;city\n70,5;Zürich\n1.000,5;Bern\n3;Oslo\n".encode("latin-1"))
    options = {"decimal": ",", "encoding": "latin-1"}
    (columns,) = CsvFile(tmp_path / "t.csv", **options).read((12, 60), ["weight", "city"], frozenset(["weight"]), 10)
    assert np.array_equal(columns["weight"].numbers(MARKS)[0], [70.5, np.nan, 3.0], equal_nan=True)
    assert columns["city"].cells() == ["Zürich", "Bern", "Oslo"]
