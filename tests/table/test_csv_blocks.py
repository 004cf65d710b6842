"""CSV files cut anywhere between lines, read as if they had not been."""

from __future__ import annotations

import gzip
import os
import pickle
import threading
import time

import numpy as np
import pytest

from expost.exceptions import UnreadableFile
from expost.table import csv_lines as csv_blocks, csv_lines as lines
from expost.table.cells import Lookup
from expost.table.csv_lines import CsvFile, Held
from tests.helpers import cut, read_columns

MARKS = Lookup([["", "?", -9]])
PLACES = Lookup([["Bern"], ["Oslo"], ["", "?"]])
HOSTILE = (
    b'age;city\n31;Bern\n;Oslo\n47\n\n-9;Rome\n1e3; Bern \r\n"52;Oslo\n+5;x;y;z\nnan;Oslo\ninf;Bern\n0x10;\n1_0;Bern\n'
    b"\xff;\xff\n ;?\n1e400;Oslo\n5\rBern\n00.5;Bern\n 7 ;Oslo"
)
LINES = [f"{k / 7!r},{('Bern', 'Oslo', '')[k % 3]}" for k in range(60)]
PLAIN = "\n".join(["age,city", *LINES, ",Oslo", "-9,Rome", ""]).encode()
QUOTED = b'"age","city"\n"1","Bern"\n"2.5",Oslo\n,"Oslo"\n"","Bern"\r\n"-9"," Bern "\n"7","Be,rn"\n 8 ,"Oslo"\n'
ODD = [b'1,"Be""rn"', b'1, "Bern"', b'1,"Bern" ', b'1,Be"rn', b'1,"Bern', b'1,"""', b'"1,Bern"', b'"1","Bern\n2,Oslo"']
MARKED = b"city,age\n" + b"\xef\xbb\xbfBern,1\nOslo,2\n" * 8  # a byte order mark, which is one at no line's start


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


@pytest.mark.parametrize(
    "content",
    [HOSTILE, HOSTILE + b"\n", HOSTILE + b"\n\n", PLAIN, PLAIN[:-1], MARKED, QUOTED, *(QUOTED + line for line in ODD)],
)
def test_every_cut_gives_the_same_cells(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    whole = expected(path)
    for size in [1, 2, 3, 5, 8, 13, 21, 34, 100, 10_000]:
        file = cut(CsvFile(path), size)
        assert read(file) == whole
        assert file.count() == len(whole[2])
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(content))
    for size in (1, 7, 10_000):
        assert read(cut(CsvFile(packed), size)) == whole
        assert cut(CsvFile(packed), size).count() == len(whole[2])


def test_lines_of_a_byte_are_taken_apart_few_at_a_time(tmp_path):
    """A block of them would be a list for every byte."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"age,city\n" + b"\n" * 70_000))
    file = CsvFile(path)
    counts = [len(columns) for columns in file.read((0, 0), ["age", "city"], frozenset(["age"]), 10)]
    assert (sum(counts), max(counts)) == (70_000, 1 << 16)


@pytest.mark.parametrize("lines_at_once", [1, 2, 3])
def test_every_number_of_lines_at_once_gives_the_same_cells(tmp_path, monkeypatch, lines_at_once):
    monkeypatch.setattr(csv_blocks, "_MOST_LINES", lines_at_once)
    path = tmp_path / "t.csv"
    for content in (HOSTILE, HOSTILE + b"\n\n", PLAIN + b"\n\n\n", QUOTED):
        path.write_bytes(content)
        assert read(CsvFile(path)) == expected(path)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_every_cut_finds_the_same_lines_too_long(tmp_path, monkeypatch, end):
    """Each is a row of cells that cannot be read, and changes no other, wherever the file is cut."""
    for module in (csv_blocks, lines):
        monkeypatch.setattr(module, "LONGEST_LINE", 12)
        monkeypatch.setattr(module, "_USUAL", 3, raising=False)
    rows = [b"1,Bern", b"%s,Oslo" % (b"7" * 7), b"%s,Oslo" % (b"7" * 8), b"2,Oslo", b"x" * 100, b"3,Bern", b"9" * 50]
    path, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    for content in (end.join([b"age,city", *rows]), end.join([b"age,city", *rows, b"4,Bern", b""])):
        path.write_bytes(content)
        packed.write_bytes(gzip.compress(content))
        whole = expected(path)
        assert np.frombuffer(whole[0])[:6].tolist() == pytest.approx([1, 7777777, np.nan, 2, np.nan, 3], nan_ok=True)
        assert not np.frombuffer(whole[1], dtype=np.bool_)[[2, 4]].any()  # not missing: they cannot be read
        for size in (1, 2, 3, 5, 8, 13, 21, 34, 100, 10_000):
            for each in (path, packed):
                file = cut(CsvFile(each), size)
                assert read(file) == whole
                assert file.count() == len(whole[2])


def test_plain_blocks_are_read_by_arrow_and_others_are_not(tmp_path, monkeypatch):
    """The quick way is taken where it may be, so that the test above is about both."""
    taken = []
    plain = csv_blocks._plain
    monkeypatch.setattr(csv_blocks, "_plain", lambda *given: taken.append(plain(*given)) or taken[-1])
    others = [b'"1",Be"rn\n', b"nan,Oslo\n", b"\n", b"\r\n", b"1\n", b"5\r,Bern\n", b"\xff,\xff\n"]
    for content, quick in (
        (PLAIN, True),
        (QUOTED, True),
        (HOSTILE, False),
        *((QUOTED + line, False) for line in ODD[:-2]),
        *((PLAIN + line, False) for line in others),
    ):
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


def test_a_mark_is_left_out_by_arrow_at_the_start_of_a_block(monkeypatch, tmp_path):
    """The broken variant: such blocks given to Arrow all the same."""
    (tmp_path / "t.csv").write_bytes(MARKED)
    whole = expected(tmp_path / "t.csv")
    monkeypatch.setattr(csv_blocks, "MARK", b"\0")
    assert any(read(cut(CsvFile(tmp_path / "t.csv"), size)) != whole for size in (1, 13, 10_000))


@pytest.mark.parametrize("encoding", ["hz", "iso2022_kr", "shift_jisx0213", "utf-7", "utf-16", "klingon"])
def test_encodings_in_which_ascii_is_something_else_are_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes(PLAIN)
    with pytest.raises(ValueError, match="not one in which ASCII is ASCII"):
        CsvFile(tmp_path / "t.csv", encoding=encoding)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii", "iso2022_jp", "utf-8-sig", "cp932", "gbk"])
def test_a_quote_in_one_line_changes_no_other_in_any_encoding(tmp_path, encoding):
    lines = [b"age,city", b"1,Bern", b"2,\\x42ern", b"3,Be\\rn", b"4,\x1b$B%Y\x1b(BBern", b"5,Oslo"]
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
    (tmp_path / "q.csv").write_bytes(b"\n".join([*lines[:-1], b'5,"Oslo"']))
    assert read(CsvFile(tmp_path / "t.csv", encoding=encoding)) == read(CsvFile(tmp_path / "q.csv", encoding=encoding))


def test_a_packed_file_that_changes_is_noticed(tmp_path):
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(PLAIN))
    file = CsvFile(packed)
    packed.write_bytes(gzip.compress(PLAIN + b"1,Bern\n"))
    with pytest.raises(UnreadableFile, match="has changed"):
        read(file)


def test_a_file_that_changes_in_place_is_noticed_though_its_size_and_time_are_as_before(tmp_path):
    """As a tool does that puts times back. A copy elsewhere has the same ones, and an entry that is its own."""
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    before = path.stat()
    file, sent = CsvFile(path), pickle.dumps(CsvFile(path))
    time.sleep(0.02)  # clocks of file systems go in steps
    with path.open("r+b") as stream:
        stream.write(PLAIN)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UnreadableFile, match="has changed"):
        read(file)
    assert read(pickle.loads(sent)) == read(CsvFile(path))


def test_files_that_are_collected_while_another_is_opened_do_not_wait_for_it(tmp_path, monkeypatch):
    """Garbage may be collected at any moment, in the middle of opening too: that ended in a wait for oneself."""
    for name in "ab":
        (tmp_path / name).write_bytes(b"x\n")
    first, second = Held(tmp_path / "a"), Held(tmp_path / "b")
    first.opened()
    look, waiting = Held._look, [first]
    del first

    def collected(self):
        waiting.clear()  # the last reference to the first one
        return look(self)

    monkeypatch.setattr(Held, "_look", collected)
    found = []
    thread = threading.Thread(target=lambda: found.append(second.opened()), daemon=True)
    thread.start()
    thread.join(10.0)
    assert found
