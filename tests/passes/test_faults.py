"""Files that disappear, change or are damaged: an error that names them, and nothing charged for it."""

from __future__ import annotations

import re
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from expost.cli import main
from expost.exceptions import SearchInterrupted, UnreadableFile
from expost.passes import first_pass as look
from expost.passes.engine import LocalEngine, watching
from expost.table.files import open_disk
from expost.table.streamed import TableOnDisk
from tests.passes.helpers import fitted, table, told, write


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(look, "KEPT", 0)
    return write(tmp_path)["parquet"]


def damaged(file):
    """Overwrite the header of a page in the fourth row group."""
    place = pa.parquet.read_metadata(file).row_group(3).column(0).data_page_offset
    with file.open("r+b") as stream:
        stream.seek(place)
        stream.write(b"\xff" * 32)


def test_a_damaged_row_group_is_named_and_nothing_is_charged(file, tmp_path, capsys):
    damaged(file)
    with pytest.raises(UnreadableFile, match=r"t\.parquet could not be read: row group\(s\) .*3.* are damaged"):
        fitted(file)  # and no SearchInterrupted, which would carry a charge
    schema = tmp_path / "schema.toml"
    schema.write_text('target = "label"\nclasses = ["no", "yes"]\n[columns.age]\nbounds = [0, 100]\n')
    assert main(["fit", str(file), "--schema", str(schema), "--error-rate", "0.3"]) == 2
    said = capsys.readouterr()
    assert "t.parquet could not be read" in said.err
    assert "Traceback" not in said.err
    assert not said.out


def test_a_file_that_disappears_before_it_is_read(file, tmp_path):
    many = open_disk(tmp_path / "mixed" / "*")
    first = tmp_path / "mixed" / "a.parquet"
    many.files[0]._held._file = None  # as if there were too many files to hold open
    first.unlink()
    with pytest.raises(UnreadableFile, match=r"a\.parquet"):
        fitted(many)


class After:
    """Does something when a pass is over."""

    def __init__(self, passes: int, act) -> None:
        self._left, self._act = passes, act

    def begin(self, rows: int) -> None:
        pass

    def advance(self, rows: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def end(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._act()


@pytest.mark.parametrize("kind", ["parquet", "csv", "packed"])
def test_a_file_that_is_moved_away_while_it_is_read_changes_nothing(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(look, "KEPT", 0)
    file = write(tmp_path)[kind]
    whole = told(fitted(table()))
    with watching(After(2, file.unlink)):
        assert told(fitted(file, engine=LocalEngine(scratch=False))) == whole
    assert not file.exists()


def test_a_file_that_changes_while_it_is_read_is_named_and_charged_for(file, tmp_path):
    """Noise has been drawn by then; where a search stops may depend on the rows, so its worst case is charged."""

    def change():
        shutil.copy(file, tmp_path / "copy")
        with file.open("ab") as stream:
            stream.write(b"more")

    with watching(After(2, change)), pytest.raises(SearchInterrupted, match=r"t\.parquet has changed") as caught:
        fitted(file, engine=LocalEngine(scratch=False))
    assert caught.value.release.epsilon == 200.0


def test_a_file_that_changes_once_its_rows_are_kept_is_not_read_again(file):
    whole = told(fitted(table()))
    with watching(After(2, lambda: file.write_bytes(b"more"))):
        assert told(fitted(file)) == whole


def test_what_is_not_there(tmp_path):
    for what, message in (
        (tmp_path / "no.parquet", "there is no file"),
        (tmp_path / "no*.parquet", "there is no file"),
        (tmp_path, "there is no file ending in"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            fitted(what)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match=r"t\.parquet could not be read as Parquet"):
        fitted(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("age,label\n")
    with pytest.raises(ValueError, match="there is no column"):
        fitted(tmp_path / "t.csv")


def test_the_first_file_that_lacks_a_column_is_named(tmp_path):
    for name, gone in (("part1", []), ("part2", ["unused"]), ("part3", ["city"]), ("part4", ["city"])):
        pa.csv.write_csv(table().drop_columns(gone), tmp_path / f"{name}.csv")
    for what in (tmp_path, tmp_path / "part*.csv"):
        with pytest.raises(ValueError, match=r"part3\.csv has no column 'city'; known are") as found:
            fitted(what)
        assert not hasattr(found.value, "release")  # nothing was charged
    with pytest.raises(ValueError, match=r"part3\.csv has no column 'city'"):
        TableOnDisk(tmp_path, "spend", columns=["age", "city"])


def test_a_folder_of_both_types_is_refused(tmp_path):
    (tmp_path / "deeper").mkdir()
    pa.csv.write_csv(table(), tmp_path / "t.csv")
    pa.parquet.write_table(table(), tmp_path / "deeper" / "t.parquet")
    with pytest.raises(ValueError, match="holds both CSV and Parquet files") as found:
        fitted(tmp_path)
    patterns = re.findall("'([^']*)'", str(found.value))
    assert patterns == [f"{tmp_path}/**/*.csv", f"{tmp_path}/**/*.parquet"]
    assert told(fitted(patterns[0])) == told(fitted(patterns[1]))  # what is proposed can be passed


def test_no_rows(tmp_path):
    pa.parquet.write_table(table().slice(0, 0), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="there are no rows"):
        fitted(tmp_path / "t.parquet")
