"""``expost init``: a draft in a new file."""

from __future__ import annotations

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
    assert "yes" not in text.split("[columns]\n", 2)[-1]


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
