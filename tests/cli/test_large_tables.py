"""Folders and patterns of files, tables without a schema that are read in pieces, and what is said about passes."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from functools import partial

import pytest

from expost.cli import main, options as engine_options, progress
from tests.cli.helpers import call
from tests.passes.helpers import write

SCHEMA = """
target = "label"
classes = ["no", "yes"]
[columns]
age = { bounds = [0, 100] }
member = { boolean = true }
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return write(tmp_path)


def fitted(capsys, *given) -> dict:
    assert main(["fit", *map(str, given), "--max-epsilon", "100", "--seed", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    return {key: value for key, value in said.items() if key not in ("versions", "created", "id")}


def test_a_folder_a_pattern_and_a_file_give_the_same(files, tmp_path, capsys):
    options = ["--schema", tmp_path / "schema.toml", "--error-rate", "0.3"]
    whole = fitted(capsys, files["csv"], *options)
    for kind in ("parquet", "folder", "pattern", "packed"):
        assert fitted(capsys, files[kind], *options) == whole


@pytest.mark.parametrize("link", ["latest.csv", "folder", "hard.csv"])
@pytest.mark.parametrize("pattern", ["", "**/*.csv"])
def test_a_file_with_two_names_is_not_read_twice(files, tmp_path, capsys, link, pattern):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "2024.csv").write_bytes(files["csv"].read_bytes())
    if link == "hard.csv":
        (folder / link).hardlink_to(folder / "2024.csv")
    else:
        (folder / link).symlink_to("." if link == "folder" else "2024.csv")
    options = ["--schema", tmp_path / "schema.toml", "--error-rate", "0.3", "--max-epsilon", "100", "--seed", "1"]
    if link == "folder" and not pattern:  # of a folder, links to folders are not followed
        assert call(capsys, "fit", folder, *options, "--json").status == 0
        return
    said = call(capsys, "fit", folder / pattern, *options)
    assert (said.status, "are one file, whose rows would count twice" in said.err) == (2, True)
    assert "Nothing was spent" in said.err


def test_a_link_to_nowhere_is_no_file_less(files, tmp_path, capsys):
    options = ["--schema", tmp_path / "schema.toml", "--error-rate", "0.3", "--max-epsilon", "100", "--seed", "1"]
    (files["folder"] / "zz.csv").symlink_to("gone.csv")
    for data in (files["folder"], files["folder"] / "*.csv"):
        said = call(capsys, "fit", data, *options)
        assert (said.status, "zz.csv is a link that leads nowhere" in said.err) == (2, True)


def test_a_table_that_a_folder_links_to_is_not_written_over(files, tmp_path, capsys):
    options = ["--schema", tmp_path / "schema.toml", "--error-rate", "0.3", "--max-epsilon", "100", "--seed", "1"]
    before = files["csv"].read_bytes()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a.csv").symlink_to(files["csv"])
    said = call(capsys, "fit", tmp_path / "linked", *options, "--output", files["csv"], "--force")
    assert (said.status, "is read, so it is not written over" in said.err) == (2, True)
    assert files["csv"].read_bytes() == before


def test_a_table_without_a_schema_is_read_in_pieces_to_the_same_effect(files, capsys, monkeypatch):
    options = ["--target", "spend", "--task", "regression", "--columns", "age", "size", "--target-bounds", -2, 2]
    options += ["--column-bounds", "age", 0, 100, "--column-bounds", "size", 1, 1000, "--excess-risk", 0.2]
    for kind in ("parquet", "csv"):
        whole = fitted(capsys, files[kind], *options)
        monkeypatch.setattr(engine_options, "LARGE", 0)
        assert fitted(capsys, files[kind], *options) == whole
        monkeypatch.undo()


def test_passes_are_told_if_asked_for(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    given = ["fit", str(files["csv"]), "--schema", str(tmp_path / "schema.toml"), "--error-rate", "0.3", "--json"]
    assert main([*given, "--max-epsilon", "100", "--seed", "1", "--progress"]) == 0
    said = capsys.readouterr()
    assert "pass 1: 3,000 rows in" in said.err
    assert "rows/s" in said.err
    assert "passes over the rows" in said.err
    assert "pass" not in json.loads(said.out)["parameters"]  # how many there were is private


def test_where_rows_stay_between_passes_changes_nothing(files, tmp_path, capsys):
    options = [files["csv"], "--schema", tmp_path / "schema.toml", "--error-rate", "0.3"]
    whole = fitted(capsys, *options)
    assert fitted(capsys, *options, "--memory", 0) == whole
    assert fitted(capsys, *options, "--memory", 0, "--scratch", tmp_path) == whole
    assert fitted(capsys, *options, "--memory", 0, "--no-scratch") == whole


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (["--scratch", "."], "rows are kept encrypted in . until the end, 0 MB"),
        (["--no-scratch"], "rows are written nowhere: the table is read again for every pass"),
    ],
)
def test_where_rows_stay_is_told_if_asked_for(files, tmp_path, capsys, stated, said):
    given = ["fit", str(files["csv"]), "--schema", str(tmp_path / "schema.toml"), "--error-rate", "0.3", "--json"]
    assert main([*given, "--max-epsilon", "100", "--seed", "1", "--memory", "0", *stated]) == 0
    assert said not in capsys.readouterr().err
    assert main([*given, "--max-epsilon", "100", "--seed", "1", "--memory", "0", *stated, "--progress"]) == 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler goes with --engine dask"),
        (["--engine", "dask", "--memory", "5"], "--memory goes with --engine local"),
        (["--scratch", "nowhere/at/all"], "--scratch must be a folder that can be written to"),
        (["--memory", "-1"], "--memory must be a number of megabytes"),
        (["--engine", "dask", "--person", "city", "--rows-per-person", "2"], "names persons is for --engine local"),
    ],
)
def test_options_that_do_not_go_together(files, tmp_path, capsys, wrong, message):
    given = ["fit", str(files["csv"]), "--schema", str(tmp_path / "schema.toml"), "--error-rate", "0.3"]
    assert main([*given, *wrong]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out


@pytest.mark.parametrize("last", ['"0,5";0,25', '0,5;"0,25"', '0,5;0,25;"x"'])
def test_how_one_line_is_written_changes_no_other(tmp_path, capsys, last):
    """Numbers with decimal commas, without a schema: a quote in one line takes its block another way."""
    options = ["--target", "y", "--task", "regression", "--bounds", -1, 1, "--target-bound", 1, "--decimal", ","]
    options += ["--excess-risk", 0.01, "--separator", ";", "--on-invalid", "clip"]
    found = []
    for name, line in (("plain", "0,5;0,25"), ("quoted", last)):
        path = tmp_path / f"{name}.csv"
        path.write_text("x;y\n" + "0,5;0,25\n" * 2000 + line)
        found.append(fitted(capsys, path, *options))
    assert found[0] == found[1]
    assert found[0]["parameters"]["coef"] != [0.0]


ONE = 'target = "y"\nclasses = ["no", "yes"]\n[columns]\nx = { bounds = [0, 1] }\n'
MEASURED = (
    "import sys; from expost.cli import main; status = main(sys.argv[1:]); "
    "peak = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]; "  # of this program, not of who forked it
    "print(int(peak) // 1024, file=sys.stderr); sys.exit(status)"
)


def in_megabytes(*arguments):
    """Run a command; returns what it said and how much memory it took at most."""
    command = [sys.executable, "-c", MEASURED, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    *said, most = done.stderr.splitlines()
    return done.returncode, done.stdout, "\n".join(said), int(most)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_cell_without_end_is_one_unreadable_row(tmp_path, name):
    """A third of a gigabyte in one cell: the row is counted, the others are read, and memory does not notice."""
    path, opened = tmp_path / name, partial(gzip.open, compresslevel=1) if name.endswith("gz") else open
    with opened(path, "wb") as stream:
        stream.write(b"x,y\n0.5,yes\n")
        for _ in range(320):
            stream.write(bytes(1 << 20))
        stream.write(b",no\n0.25,no\n")
    (tmp_path / "t.toml").write_text(ONE, encoding="utf-8")
    status, out, err, most = in_megabytes("check", path, "--schema", tmp_path / "t.toml")
    assert (status, err) == (3, "")
    assert re.search(r"^x +number +2 +0 +1 ", out, re.MULTILINE), out
    assert "3 rows" in out
    assert most < 350, most


def test_a_first_line_without_end(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(320):
            stream.write(b"x" * (1 << 20))
    status, out, err, most = in_megabytes("init", path, "--output", tmp_path / "t.toml")
    assert (status, out) == (2, "")
    assert "the first line has more than 4,194,304 bytes" in err
    assert most < 350, most
