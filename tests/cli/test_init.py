"""``expost init``: a draft in a new file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .helpers import call, write


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_writes_a_draft(tmp_path, capsys, kind):
    out = tmp_path / "schema.toml"
    said = call(capsys, "init", write(tmp_path, kind), "--output", out)
    assert said.status == 0
    assert "expost check" in said.out
    text = out.read_text(encoding="utf-8")
    assert "age = {" in text
    assert "churn = {" in text
    stated = [line for line in text.splitlines() if not line.startswith("#")]
    assert "yes" not in "\n".join(stated)  # a label: no row is looked at


def test_overwrites_nothing(tmp_path, capsys):
    out = tmp_path / "schema.toml"
    out.write_text("mine")
    said = call(capsys, "init", write(tmp_path), "--output", out)
    assert said.status == 2
    assert "is there already" in said.err
    assert out.read_text() == "mine"


def test_default_place(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call(capsys, "init", write(tmp_path)).status == 0
    assert (tmp_path / "schema.toml").is_file()


def test_options_of_csv_files(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes("größe|x,y;z\n".encode("latin-1"))
    said = call(capsys, "init", path, "--output", tmp_path / "a.toml")
    assert (said.status, said.out) == (2, "")
    assert "state the encoding" in said.err
    assert (
        call(capsys, "init", path, "--encoding", "latin-1", "--separator", "|", "--output", tmp_path / "a.toml")[0] == 0
    )
    assert '"größe" = {  }\n"x,y;z" = {  }' in (tmp_path / "a.toml").read_text(encoding="utf-8")


def test_no_file_or_folder(tmp_path, capsys):
    assert "there is no file" in call(capsys, "init", tmp_path / "none.csv", "--output", tmp_path / "a.toml").err
    assert call(capsys, "init", write(tmp_path), "--output", tmp_path / "none" / "a.toml").status == 2


def test_the_next_command_reads_the_file_as_this_one_did(tmp_path, capsys):
    data = tmp_path / "stays.csv"
    data.write_bytes("Größe;Kosten\n1;2,5\n".encode("latin-1"))
    said = call(capsys, "init", data, "--output", tmp_path / "s.toml", "--encoding", "latin-1")
    assert said.status == 0, said.err
    assert f"expost check {data} --schema {tmp_path / 's.toml'} --encoding latin-1 --decimal ," in said.out
    data.write_text("size,costs\n1,2.5\n", encoding="utf-8")
    said = call(capsys, "init", data, "--output", tmp_path / "s.toml", "--force")
    assert said.out.endswith(f"expost check {data} --schema {tmp_path / 's.toml'}\n")
    draft = (tmp_path / "s.toml").read_text(encoding="utf-8")
    assert '{ bounds = ["1950-01-01", "2020-12-31"] }' in draft
    assert "true or false, yes or no, 1 or 0" in draft
    assert 'transform = "log1p" or "sqrt"' in draft


def test_dates_in_a_parquet_file(tmp_path, capsys):
    table = pa.table({"day": pa.array([0], pa.date32()), "when": pa.array([0], pa.timestamp("s")), "n": [1]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert call(capsys, "init", tmp_path / "t.parquet", "--output", tmp_path / "s.toml").status == 0
    draft = (tmp_path / "s.toml").read_text(encoding="utf-8")
    for name in ("day", "when"):
        assert f"{name} = {{ bounds = [ , ] }}  # first and last possible date" in draft
    assert 'transform = "log1p" or "sqrt"' in draft
