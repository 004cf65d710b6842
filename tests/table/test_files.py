import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expost.table.files import read_table

TEXT = "age,member,label,income\n31,true,yes,1.5\n,false,no,\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "t.CSV.gz").write_bytes(gzip.compress(TEXT.encode()))
    table = pa.table(
        {
            "age": pa.array([31, None], pa.int8()),
            "member": [True, False],
            "label": pa.array(["yes", "no"]).dictionary_encode(),
            "income": [1.5, None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    pq.write_table(table, tmp_path / "t.pq")
    return tmp_path


@pytest.mark.parametrize("name", ["t.csv", "t.CSV.gz", "t.parquet", "t.pq"])
def test_every_format_reads_the_same(folder, name):
    table = read_table(folder / name, "label")
    assert table.column_names == ("age", "member", "income")
    assert table.X.dtype == np.float64
    assert np.array_equal(table.X, [[31, 1, 1.5], [np.nan, 0, np.nan]], equal_nan=True)
    assert table.y.tolist() == ["yes", "no"]
    chosen = read_table(str(folder / name), "age", columns=["income", "member"])
    assert chosen.column_names == ("income", "member")
    assert np.array_equal(chosen.X, [[1.5, 1], [np.nan, 0]], equal_nan=True)
    assert np.array_equal(chosen.y, [31, np.nan], equal_nan=True)


def test_integer_labels_stay_integers(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,0\n2,1\n")
    assert read_table(tmp_path / "t.csv", "y").y.dtype == np.int64


def test_types_are_settled_by_the_whole_column(tmp_path):
    # more than one of the reader's blocks, and only the last row is not an integer
    (tmp_path / "t.csv").write_text("x,y\n" + "1,1\n" * 600_000 + "0.5,1\n")
    table = read_table(tmp_path / "t.csv", "y")
    assert len(table.y) == 600_001
    assert table.X[-1, 0] == 0.5


def test_wide_numbers_and_empty_columns(tmp_path):
    table = pa.table(
        {
            "big": pa.array([2**63 - 1], pa.int64()),
            "money": pa.array([1], pa.decimal128(10, 2)),
            "none": pa.nulls(1),
            "y": pa.array([2], pa.decimal128(10, 2)),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    got = read_table(tmp_path / "t.parquet", "y")
    assert np.array_equal(got.X, [[2.0**63, 1.0, np.nan]], equal_nan=True)
    assert got.y.tolist() == [2.0]


def test_errors_name_files_and_columns(folder):
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.csv"):
        read_table(folder / "absent.csv", "label")
    (folder / "t.txt").write_text(TEXT)
    with pytest.raises(ValueError, match=r"must end in \.csv, \.csv\.gz, \.parquet, \.pq"):
        read_table(folder / "t.txt", "label")
    with pytest.raises(ValueError, match=r"no target column 'lable'.*age, member, label, income"):
        read_table(folder / "t.csv", "lable")
    with pytest.raises(ValueError, match=r"column\(s\) label are not numeric; drop or encode.*columns="):
        read_table(folder / "t.csv", "income")
    with pytest.raises(ValueError, match=r"no column\(s\) height"):
        read_table(folder / "t.csv", "label", columns=["age", "height"])
    with pytest.raises(ValueError, match="contain the target"):
        read_table(folder / "t.csv", "label", columns=["label"])
    for columns in ([], ["age", "age"]):
        with pytest.raises(ValueError, match="at least one feature column"):
            read_table(folder / "t.csv", "label", columns=columns)
    (folder / "twice.csv").write_text("a,a,y\n1,2,3\n")
    with pytest.raises(ValueError, match=r"first line does not look like names .* or one twice"):
        read_table(folder / "twice.csv", "y")


@pytest.mark.parametrize(
    ("name", "content"),
    [("t.csv", b""), ("t.csv", b"a,y\n1,2\n31415,2,3\n"), ("t.csv.gz", b"31415"), ("t.parquet", b"31415")],
)
def test_unreadable_files_quote_nothing(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="could not be read as") as caught:
        read_table(tmp_path / name, "y")
    assert "31415" not in str(caught.value).replace(str(tmp_path), "")
    assert caught.value.__context__ is None


def test_tables_show_no_value(folder):
    assert repr(read_table(folder / "t.csv", "label")) == "Table(n=2, column_names=['age', 'member', 'income'])"


def test_text_cells_are_missing_if_asked(tmp_path):
    """Each cell by itself: one that is not a number does not touch the others of its column."""
    file = tmp_path / "late.csv"
    file.write_text('a,b,y\n1,2,3\noops,4.5,6\n7,"1,234",-\n')
    with pytest.raises(ValueError, match="not numeric"):
        read_table(file, "y")
    table = read_table(file, "y", text_as_missing=True, target_as="number")
    np.testing.assert_array_equal(table.X, [[1, 2], [np.nan, 4.5], [7, np.nan]])
    np.testing.assert_array_equal(table.y, [3, 6, np.nan])
    assert read_table(file, "y", text_as_missing=True, target_as="text").y.tolist() == ["3", "6", "-"]


def test_no_cell_changes_how_others_are_read(tmp_path):
    """Types are inferred from a whole column: one cell of text must not turn true into missing, or 0x10 into 16."""
    column = ["true", "False", "0x10", "1_0", " 2", "NA", "", "1e400", "-inf", "99999999999999999999"]
    plain, spoilt = tmp_path / "plain.csv", tmp_path / "spoilt.csv"
    for alone in column:
        plain.write_text(f"a,y\n{alone},{alone}\n1,1\n")
        spoilt.write_text(f"a,y\n{alone},{alone}\noops,oops\n")
        options = {"text_as_missing": True, "target_as": "number"}
        first, second = read_table(plain, "y", **options), read_table(spoilt, "y", **options)
        np.testing.assert_array_equal(first.X[0], second.X[0])
        np.testing.assert_array_equal(first.y[0], second.y[0])
        assert read_table(plain, "y", text_as_missing=True, target_as="text").y[0] == alone
