"""Every line of a CSV file is a row, whatever stands in it."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from expost.table.csv_lines import CsvFile
from expost.table.files import read_table

BY_CELL = {"text_as_missing": True, "target_as": "number"}


def write(folder, data, name="t.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_lines_that_break_other_readers(tmp_path, end, name):
    lines = [
        b"a,b,y",
        b"1,2,3",
        b"4",  # too short
        b"5,6,7,8,9",  # too long
        b'"10,11,12',  # an open quote
        b"",
        b"\xff,\xc3,13",  # no UTF-8
        b'"1","2","3"',
        b'" 4 ",5"5,"6"6',
        b"true,FALSE,x",
        b"1\r,2,3",
        b'"1\r",2,3',
        b'1\r,"2",3',  # a carriage return outside quotes beside quotes: nothing is read
        b"\0,1e3,-inf",
    ]
    table = read_table(write(tmp_path, end.join(lines) + end, name), "y", **BY_CELL)
    nan, inf = np.nan, np.inf
    expected = [
        [1, 2, 3],
        [4, nan, nan],
        [5, 6, 7],
        [nan, nan, nan],
        [nan, nan, nan],
        [nan, nan, 13],
        [1, 2, 3],
        [4, nan, 66],
        [1, 0, nan],
        [1, 2, 3],
        [1, 2, 3],
        [nan, nan, nan],
        [nan, 1000, -inf],
    ]
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), expected)


def test_a_file_may_end_without_a_line_feed_and_begin_with_a_mark(tmp_path):
    for data in (b"a,y\n1,2\n3,4", b"a,y\n1,2\n3,4\n", b"\xef\xbb\xbfa,y\n1,2\n3,4\n"):
        assert read_table(write(tmp_path, data), "y", **BY_CELL).X.tolist() == [[1], [3]]
    assert CsvFile(write(tmp_path, b"a,y\n")).count() == 0


def test_a_cell_too_long_for_the_reader_is_missing(tmp_path):
    line = b'"' + b"9" * 200_000 + b'",2'
    table = read_table(write(tmp_path, b"a,y\n1,2\n" + line + b"\n3,4\n"), "y", **BY_CELL)
    np.testing.assert_array_equal(table.X[:, 0], [1, np.nan, 3])


@pytest.mark.parametrize("data", [b"", b"\n1,2\n", b"a,y\r1,2\r3,4\r", b"a,y\r31415,2\r3,4\r\n"])
def test_files_without_a_first_line_of_names(tmp_path, data):
    with pytest.raises(ValueError, match="could not be read as CSV") as caught:
        read_table(write(tmp_path, data), "y", **BY_CELL)
    assert "31415" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_broken_archive(tmp_path):
    for data in (b"no archive", gzip.compress(b"a,y\n1,2\n")[:-4]):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(data)
        with pytest.raises(ValueError, match="could not be read as CSV"):
            read_table(path, "y", **BY_CELL)


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        ([b"0", b"1", b"0"], "i", [0, 1, 0]),
        ([b"true", b"false", b"true"], "b", [True, False, True]),
        ([b"0.5", b"1", b"2"], "f", [0.5, 1, 2]),
        ([b"no", b"1", b""], "O", ["no", "1", None]),
    ],
)
def test_an_inferred_target_has_the_type_of_all_its_cells(tmp_path, cells, kind, expected):
    path = write(tmp_path, b"a,y\n" + b"".join(b"1," + cell + b"\n" for cell in cells))
    y = read_table(path, "y", text_as_missing=True).y
    assert y.dtype.kind == kind
    assert y.tolist() == expected


def test_the_declared_type_of_a_parquet_target_stays(tmp_path):
    path = tmp_path / "t.parquet"
    for kind, cells in ((pa.int64(), [1, 2**60 + 1]), (pa.bool_(), [True, False]), (pa.string(), ["a", "b"])):
        for values in (cells, [None, cells[1]]):
            pa.parquet.write_table(pa.table({"x": pa.array([1.0, 2.0]), "y": pa.array(values, kind)}), path)
            y = read_table(path, "y", text_as_missing=True, target_as="inferred").y
            assert y.dtype.kind == {"int64": "i", "bool": "b", "string": "O"}[str(kind)]
            assert y.tolist() == values


def test_declared_types_that_are_no_numbers_are_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"x": pa.array([0], pa.date32()), "y": [1.0]}), path)
    with pytest.raises(ValueError, match=r"column 'x' must hold real numbers; its type is date32"):
        read_table(path, "y", **BY_CELL)


def test_text_that_is_no_utf8_in_a_parquet_file(tmp_path):
    values = pa.py_buffer(b"0.5\xff\xff1")
    broken = pa.StringArray.from_buffers(3, pa.py_buffer(np.array([0, 3, 5, 6], np.int32)), values)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"x": broken, "y": broken}), path)
    table = read_table(path, "y", **BY_CELL)
    np.testing.assert_array_equal(table.X[:, 0], [0.5, np.nan, 1])
    np.testing.assert_array_equal(table.y, [0.5, np.nan, 1])
    pa.parquet.write_table(pa.table({"x": [1, 2, 3], "y": broken}), path)
    assert read_table(path, "y").y.tolist() == ["0.5", None, "1"]


def test_encoded_columns_of_a_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    numbers = pa.array([1, None, 3]).dictionary_encode()
    words = pa.array(["true", None, "0.5"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"a": numbers, "b": words, "y": words}), path)
    table = read_table(path, "y", **BY_CELL)
    np.testing.assert_array_equal(table.X, [[1, 1], [np.nan, np.nan], [3, 0.5]])
    np.testing.assert_array_equal(table.y, [1, np.nan, 0.5])
    assert read_table(path, "y", text_as_missing=True, target_as="text").y.tolist() == ["true", None, "0.5"]
