"""``expost example``: a table and a schema that every other command takes, and nothing overwritten."""

from __future__ import annotations

import pytest

from expost import Release, Schema
from expost.datasets import SURVEY_SCHEMA, make_survey
from expost.datasets.survey import survey_csv
from tests.cli.helpers import call


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_written_is_checked_and_fitted(folder, capsys):
    said = call(capsys, "example", "survey")
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines()[-1] == "  expost fit survey.csv --schema survey.toml --error-rate 0.20"
    assert Schema.from_toml("survey.toml") == Schema.from_dict(SURVEY_SCHEMA)
    fits = call(capsys, "check", "survey.csv", "--schema", "survey.toml")
    assert fits.status == 0
    assert fits.out.splitlines()[-1].startswith("The table fits the schema, and expost fit takes it")
    command = said.out.splitlines()[-1].split()[1:]
    fitted = call(capsys, *command, "--seed", 0, "--json")
    assert fitted.status == 0, fitted.err
    release = Release.from_json(fitted.out)
    assert release.promise.at_most == 0.2
    assert release.epsilon < 1


def test_the_rows_are_the_generator_s_and_the_same_every_time(folder, capsys):
    call(capsys, "example", "survey", "--rows", 30)
    text = (folder / "survey.csv").read_bytes().decode()
    assert text == survey_csv(30)
    header, *lines = text.splitlines()
    columns = make_survey(30)
    assert header.split(",") == list(columns)
    assert len(lines) == 30
    assert [line.split(",")[3] for line in lines] == list(columns["tenure"])
    assert [line.split(",")[6] for line in lines] == ["yes" if cell else "no" for cell in columns["balcony"]]


@pytest.mark.parametrize("there", ["survey.csv", "survey.toml"])
def test_nothing_is_overwritten_unless_asked(folder, capsys, there):
    (folder / there).write_text("mine")
    said = call(capsys, "example", "survey", "--rows", 3)
    assert said.status == 2
    assert f"{there} is there already" in said.err
    assert [file.name for file in folder.iterdir()] == [there]
    assert (folder / there).read_text() == "mine"
    assert call(capsys, "example", "survey", "--rows", 3, "--force").status == 0
    assert (folder / there).read_text() != "mine"


def test_another_folder_and_mistakes(folder, capsys):
    (folder / "there").mkdir()
    assert call(capsys, "example", "survey", "--rows", 3, "--output", "there").status == 0
    assert sorted(file.name for file in (folder / "there").iterdir()) == ["survey.csv", "survey.toml"]
    for arguments, why in [
        (["survey", "--rows", "0"], "--rows must be a whole number, at least 1, got 0"),
        (["survey", "--output", "nowhere"], "the folder of nowhere/survey.csv does not exist"),
        (["census"], "invalid choice: 'census'"),
        ([], "required: name"),
    ]:
        said = call(capsys, "example", *arguments)
        assert (said.status, said.out) == (2, "")
        assert why in said.err
        assert said.err.count("\n") == 1
