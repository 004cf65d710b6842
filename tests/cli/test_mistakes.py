"""Files that are not what a command asks for: every command says so in one line, writes nothing and spends nothing."""

from __future__ import annotations

import errno
import io
import os
import random
import subprocess
import sys

import pytest

from expost.cli import main
from expost.cli.command import COMMANDS
from expost.noise.source import SecureSource
from tests.cli.helpers import call

GOOD = 'target = "y"\ntarget_bounds = [0, 2]\n[columns]\na = { bounds = [0, 6] }\nb = { bounds = [0, 4] }\n'
BINARY = random.Random(0).randbytes(2000)

TABLES = {
    "empty.csv": b"",
    "newlines.csv": b"\n\n\n",
    "header.csv": b"a,b,y\n",
    "binary.csv": BINARY,
    "binary.parquet": BINARY,
    "empty.parquet": b"",
    "not.csv.gz": b"a,b,y\n1,2,3\n",
    "twice.csv": b"a,a,y\n1,2,3\n",
    "latin.csv": "größe,a,b,y\n1,2,3,4\n".encode("latin-1"),
    "utf16.csv": "a,b,y\n1,2,3\n".encode("utf-16"),
    "other.md": b"a,b,y\n1,2,3\n",
    "binary.feather": BINARY,
    "empty.arrow": b"",
    "binary.xlsx": BINARY,
    "binary.jsonl.gz": BINARY,
}
SCHEMAS = {
    "nothing": ("", "the schema has no target"),
    "brackets": ("]]]", "not TOML: Invalid statement (at line 1"),
    "nested": ("a = " + "[" * 2000 + "]" * 2000, "nested too deeply"),
    "a blank": (GOOD.replace("[0, 6]", "[ , ]"), "line 4 has a blank that is still to be filled in"),
    "a target that is a number": (GOOD.replace('"y"', "3"), "target must be the name of a column"),
    "bounds of text": (GOOD.replace("[0, 2]", '"low"'), "target_bounds must be two numbers"),
    "a date to predict": (GOOD.replace("[0, 2]", "[2020-01-01, 2021-12-31]"), "days since a public day"),
    "a date to predict in quotes": (
        GOOD.replace("[0, 2]", '["2020-01-01", "2021-12-31"]'),
        "a date cannot be predicted",
    ),
    "bounds of no dates": (GOOD.replace("[0, 6]", '["2020-01-01", "2021-12-32"]'), "'2021-12-32' is no date"),
    "bounds reversed": (GOOD.replace("[0, 2]", "[2, 0]"), "write target_bounds = [0, 2]"),
    "columns that are a list": (GOOD.split("[columns]")[0] + "columns = [1]\n", "[columns] and a line for each"),
    "a column that is text": (GOOD.replace("{ bounds = [0, 6] }", '"number"'), "no description of a column"),
    "a key misspelt": (GOOD.replace("target_bounds", "target_bound"), "did you mean 'target_bounds'?"),
    "an option misspelt": (GOOD.replace("a = { bounds", "a = { bonds"), "did you mean 'bounds'?"),
    "a column misspelt": (GOOD.replace("\nb =", "\nbb ="), "there is no column 'bb' in the table; did you mean 'b'?"),
    "categories of dates": (GOOD.replace("bounds = [0, 6]", "categories = [1979-05-27]"), "text, finite numbers"),
    "a transform misspelt": (GOOD.replace("[0, 6]", '[0, 6], transform = "lag1p"'), 'transform must be "log1p"'),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    def draw(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(SecureSource, "words", draw)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(GOOD, encoding="utf-8")
    rows = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(300))
    (tmp_path / "good.csv").write_text(f"a,b,y\n{rows}", encoding="utf-8")
    return tmp_path


def complaint(said):
    """Return the one line that is said, after looking at everything else."""
    *stages, line = said.err.splitlines()
    assert all("… (" in stage or stage.startswith("Simulation") for stage in stages), said.err
    assert line.startswith("expost: ")
    assert (said.status, said.out) == (2, "")
    return line


TABLE_COMMANDS = {
    "check": ["--schema", "schema.toml"],
    "fit": ["--schema", "schema.toml", "--r2", "0.1"],
    "init": ["--output", "new.toml"],
}


@pytest.mark.parametrize("command", TABLE_COMMANDS)
def test_tables_that_are_none(folder, capsys, command):
    (folder / "folder.csv").mkdir()
    before = sorted(folder.iterdir())
    for name in ("folder.csv", "nowhere.csv", "nowhere/good.csv"):
        assert name in complaint(call(capsys, command, name, *TABLE_COMMANDS[command]))
    for name, content in TABLES.items():
        if command == "init" and name in ("header.csv", "twice.csv"):
            continue  # names are all it needs; that one stands there twice is said when the table is read
        (folder / name).write_bytes(content)
        line = complaint(call(capsys, command, name, *TABLE_COMMANDS[command]))
        assert "Traceback" not in line
        assert "codec" not in line
        (folder / name).unlink()
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_that_are_none(folder, capsys, kind):
    text, why = SCHEMAS[kind]
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    for command in (["check", "good.csv"], ["fit", "good.csv", "--r2", "0.1"]):
        line = complaint(call(capsys, *command, "--schema", "mine.toml"))
        assert why in line
        assert "--target" not in line  # what stands in a file is no option


RELEASES = {"empty": b"", "binary": BINARY, "a list": b"[]", "another": b'{"a": 1}', "a half": b'{"format": 1,'}


@pytest.mark.parametrize("kind", RELEASES)
def test_releases_that_are_none(folder, capsys, kind):
    (folder / "release.json").write_bytes(RELEASES[kind])
    before = sorted(folder.iterdir())
    for command, more in RELEASE_COMMANDS.items():
        line = complaint(call(capsys, command, "release.json", *more))
        assert "release.json" in line
        assert "Traceback" not in line
    assert sorted(folder.iterdir()) == before


RELEASE_COMMANDS = {"predict": ["good.csv"], "export": ["--output", "model.joblib"], "report": []}


def test_no_release_at_all(folder, capsys):
    (folder / "folder").mkdir()
    for command, more in RELEASE_COMMANDS.items():
        assert "there is no release none.json; expost fit saves one" in complaint(
            call(capsys, command, "none.json", *more)
        )
        assert "folder is a folder, not a release" in complaint(call(capsys, command, "folder", *more))


def test_a_schema_that_is_not_text(folder, capsys):
    (folder / "mine.toml").write_bytes(BINARY)
    assert "mine.toml is not in UTF-8" in complaint(call(capsys, "check", "good.csv", "--schema", "mine.toml"))


def test_files_without_permission(folder, capsys, monkeypatch):
    monkeypatch.setattr("expost.cli.options.os.access", lambda *_: False)  # root, who may run this, can read everything
    for command, options in TABLE_COMMANDS.items():
        assert "cannot be read: permission denied" in complaint(call(capsys, command, "good.csv", *options))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["fit", "good.csv", *TABLE_COMMANDS["fit"], "--output", "."], ". is a folder; --output must name a file"),
        (["init", "good.csv", "--output", "there"], "there is a folder; --output must name a file"),
        (["init", "good.csv", "--output", "nowhere/schema.toml"], "the folder of nowhere/schema.toml does not exist"),
        (["fit", "good.csv", *TABLE_COMMANDS["fit"], "--encoding", "klingon"], "klingon"),
        (["fit", "good.csv", *TABLE_COMMANDS["fit"], "--separator", "ab"], "separator must be one letter"),
    ],
)
def test_places_and_options_that_are_none(folder, capsys, arguments, why):
    (folder / "there").mkdir()
    before = sorted(folder.iterdir())
    assert why in complaint(call(capsys, *arguments))
    assert sorted(folder.iterdir()) == before


def test_a_reader_who_has_seen_enough_is_no_mistake(folder):
    for arguments in (["fit", "--help"], ["--version"], ["check", "good.csv", "--schema", "schema.toml"]):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "expost.cli", *arguments]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b""), arguments


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.parametrize("many", [1, 400], ids=["at its end", "in the middle of a long print"])
@pytest.mark.parametrize("fits", [True, False])
def test_output_that_cannot_be_written_is_no_success(folder, many, fits):
    """A yes is not given where the print fails, a no stays one; only the print is lost, and that is said."""
    names = [f"a{j}" for j in range(many)]
    columns = "".join(f"{name} = {{ bounds = [0, {6 if fits else 0.1}] }}\n" for name in names)
    (folder / "wide.toml").write_text(f'target = "y"\ntarget_bounds = [0, 2]\n[columns]\n{columns}')
    rows = [",".join(["3"] * many + ["1"])] * 20
    (folder / "wide.csv").write_text("\n".join([",".join([*names, "y"]), *rows]) + "\n")
    command = [sys.executable, "-m", "expost.cli", "check", "wide.csv", "--schema", "wide.toml"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == (1 if fits else 3), done.stderr
    said = "expost: standard output could not be written (No space left on device); what was asked was done\n"
    assert done.stderr.decode() == said


@pytest.mark.parametrize("rows", ["Ann Ek,41.5,52000\nBo Li,38,61000\n", "Ann Ek,Ann Ek,Oslo\nBo Li,Bo,Rome\n"])
@pytest.mark.parametrize(
    "command",
    [
        "init private.csv --output new.toml",
        "check private.csv --schema schema.toml",
        "fit private.csv --schema schema.toml --r2 0.3",
        "fit private.csv --target y --task regression --bounds 0 1 --target-bounds 0 1 --r2 0.3",
        "fit private.csv --target y --task regression --bounds 0 1 --target-bounds 0 1 --r2 0.3 --on-invalid clip",
    ],
)
def test_a_first_row_in_the_place_of_a_header_is_not_quoted(folder, capsys, rows, command):
    (folder / "private.csv").write_text(rows)
    said = call(capsys, *command.split())
    assert said.status == 2
    assert "its first line does not look like names (a number is there, or one twice); is a header missing?" in said.err
    assert not any(cell in said.out + said.err for cell in rows.replace("\n", ",").split(",") if cell)
    assert not (folder / "new.toml").exists()


def test_columns_may_be_called_by_numbers_where_a_schema_names_them(folder, capsys):
    (folder / "years.csv").write_text("2024,2025\n1,2\n" * 1 + "1,2\n" * 20)
    (folder / "years.toml").write_text(
        'target = "2025"\ntarget_bounds = [0, 2]\n[columns]\n2024 = { bounds = [0, 6] }\n'
    )
    assert call(capsys, "check", "years.csv", "--schema", "years.toml").status == 0


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_folder_is_no_ledger(folder, capsys, path):
    for command in (["create", path, "--dataset", "d", "--cap", "1"], ["show", path]):
        said = call(capsys, "ledger", *command)
        assert (said.status, "is a folder; a ledger is a file in one" in said.err) == (2, True)


@pytest.mark.parametrize("encoding", ["unicode_escape", "raw_unicode_escape", "idna", "utf-7", "rot13"])
def test_an_encoding_that_takes_ascii_for_something_else_is_refused(folder, capsys, encoding):
    said = call(capsys, "check", "good.csv", "--schema", "schema.toml", "--encoding", encoding)
    assert (said.status, "is unknown or not one in which ASCII is ASCII" in said.err) == (2, True)


def test_a_working_folder_that_is_gone_is_noticed_before_anything_is_spent(folder, capsys, monkeypatch):
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    said = call(capsys, "fit", folder / "good.csv", "--schema", folder / "schema.toml", "--r2", "0.3")
    assert said.status == 2
    assert "this folder cannot be written to" in said.err
    assert "Nothing was spent" in said.err


class Full(io.StringIO):
    """A stream to a device that is full."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("ledger export l.db", 1),
        ("ledger show l.db", 1),
        ("ledger verify l.db", 1),
        ("plan schema.toml --rows 2000 --r2 0.3 --json --worlds 2", 1),
        ("example survey", 0),  # the files are what was asked for
    ],
)
def test_a_command_whose_result_is_lost_exits_with_what_its_help_says(folder, capsys, monkeypatch, command, status):
    assert call(capsys, "ledger", "create", "l.db", "--dataset", "d", "--cap", "1").status == 0
    assert ("\n  1  " in call(capsys, command.split()[0], "--help").out) == bool(status)
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(command.split()) == status
    assert "standard output could not be written" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_how_it_ends_when_interrupted(capsys, command):
    assert "\n  130  interrupted" in call(capsys, command, "--help").out
