"""``expost plan``: a table of prices, its JSON and its picture."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from expost import Schema
from expost.datasets import SURVEY_SCHEMA

from .helpers import call

QUICK = ["--worlds", "3"]


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "survey.toml"
    path.write_text(Schema.from_dict(SURVEY_SCHEMA).to_toml(), encoding="utf-8")
    return path


def test_shows_a_table(schema, capsys):
    said = call(capsys, "plan", schema, "--rows", "20,000", "--error-rate", 0.3, 0.25, "--max-epsilon", 1, *QUICK)
    assert said.status == 0
    assert "20,000 rows" in said.out
    assert "no data were read" in said.out
    lines = [line for line in said.out.splitlines() if line.startswith("error rate ≤")]
    assert [line.split("   ")[0].split()[-1] for line in lines] == ["0.3", "0.25"]
    assert "within 1?" in said.out
    assert "Your rows decide" in said.out
    assert "leave it out" in said.out
    assert f"next: expost fit DATA.csv --schema {schema} --error-rate 0.25 --max-epsilon 1" in said.out
    assert max(len(line) for line in said.out.splitlines() if "next:" not in line) <= 120


def test_what_was_stated_is_in_the_command(schema, capsys):
    """To the last digit: a probability of failure left out, or a δ rounded up, would promise less."""
    stated = ["--failure-probability", "1e-07", "--delta", "1.2345678e-06"]
    said = call(capsys, "plan", schema, "--rows", 500_000, "--error-rate", 0.4, *stated, *QUICK)
    assert "promised with probability 0.999999;" in said.out
    command = said.out.splitlines()[-1]
    assert "next: " in command
    assert " --failure-probability 1e-07" in command
    assert "--delta" not in command or " --delta 1.2345678e-06" in command


def test_the_command_it_ends_with_is_one(schema, tmp_path, capsys):
    said = call(capsys, "plan", schema, "--rows", 4000, "--error-rate", 0.3, "--on-invalid", "clip", *QUICK)
    command = said.out.splitlines()[-1].removeprefix("next: expost ").split()
    data = tmp_path / "none.csv"
    tried = call(capsys, *(str(data) if word == "DATA.csv" else word for word in command))
    assert tried.status == 2
    assert "none.csv" in tried.err  # nothing else is wrong with it


def test_json(schema, capsys):
    said = call(capsys, "plan", schema, "--rows", 5000, "--log-loss", 0.6, "--json", *QUICK)
    answer = json.loads(said.out)
    assert answer["goals"][0]["option"] == "--log-loss 0.6"
    assert answer["goals"][0]["methods"][0]["worst_case"] == 2


def test_arrays(capsys):
    said = call(
        capsys, "plan", "--rows", 5000, "--task", "classification", "--columns", 4, "--excess-risk", 0.02, *QUICK
    )
    assert said.status == 0
    assert "cheapest" in said.out
    assert "promises the mean only" in said.out
    assert "next:" not in said.out


@pytest.mark.parametrize("kind", ["png", pytest.param("svg", marks=pytest.mark.slow)])
def test_draws(schema, tmp_path, capsys, kind):
    out = tmp_path / f"plan.{kind}"
    arguments = ["plan", schema, "--rows", 5000, "--error-rate", 0.3, "--max-epsilon", 1, "--plot", out, *QUICK]
    assert call(capsys, *arguments).status == 0
    first = out.read_bytes()
    assert first.startswith(b"\x89PNG" if kind == "png" else b"<?xml")
    refused = call(capsys, *arguments)
    assert refused.status == 2
    assert "--force" in refused.err
    assert call(capsys, *arguments, "--force").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "many"], "'many' is not a whole number"),
        (["--rows", "0"], "--rows must be a whole number, at least 1"),
        ([], "--rows"),
        (["--rows", "9", "--error-rate", "1.5"], "--error-rate must be"),
        (["--rows", "9", "--r2", "0.5"], "--r2 is for regression"),
        (["--rows", "9", "--columns", "3"], "a schema says both"),
        (["--rows", "9", "--plot", "plan.txt"], "--plot plan.txt: state a .png, .svg or .pdf file"),
        (["--rows", "9", "--plot", "nowhere/plan.png"], "does not exist"),
        (["--rows", "9", "--max-epsilon", "-1"], "--max-epsilon must be"),
    ],
)
def test_mistakes_get_one_line(schema, capsys, arguments, message):
    said = call(capsys, "plan", schema, *arguments)
    assert said.status == 2
    assert said.out == ""
    assert message in said.err
    assert said.err.count("\n") == 1


def test_a_schema_that_is_not_there(tmp_path, capsys):
    said = call(capsys, "plan", tmp_path / "no.toml", "--rows", 10)
    assert said.status == 2
    assert "expost init drafts one" in said.err


def test_help_has_an_example_and_exit_codes(capsys):
    said = call(capsys, "plan", "--help")
    text = " ".join(said.out.split())
    assert "examples: expost plan survey.toml" in text
    assert "exit status: 0 shown" in text


@pytest.mark.parametrize("name", ["tutorial.md", pytest.param("guide.md", marks=pytest.mark.slow)])
def test_what_the_documents_show_is_what_it_says(name, schema, capsys):
    text = (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8")
    command, shown = re.search(r"\nexpost (plan survey[^\n]*)\n```\n\n```text\n(.*?)```", text, re.DOTALL).groups()
    words = command.replace("survey.toml", str(schema)).replace("--plot plan.png", "").split()
    said = call(capsys, *words).out.replace(str(schema), "survey.toml")
    for line in shown.splitlines():
        assert line.split("…")[0].strip() in said


def test_what_would_be_planned_for_too_long_is_refused_in_words(tmp_path, capsys):
    """9,000 categories at a δ, and an array of 2,000 numbers, were searched for longer than anybody waits."""
    schema = tmp_path / "s.toml"
    listed = ", ".join(f'"c{k}"' for k in range(9_000))
    schema.write_text(f'target = "y"\nclasses = ["no", "yes"]\n[columns]\nk = {{ categories = [{listed}] }}\n')
    at = ["--rows", "20000", "--delta", "1e-6"]
    array = ["--task", "regression", "--columns", "2000", "--excess-risk", "0.1"]
    for command in (
        ["plan", schema, *at, "--error-rate", "0.2"],
        ["explore", schema, *at, "--no-open", "--output", tmp_path / "page.html"],
        ["plan", *at, *array],
        ["plan", *at[:2], *array],
    ):
        said = call(capsys, *command)
        assert (said.status, said.err.count("\n"), "columns, of which each category is one" in said.err) == (2, 1, True)
    assert not (tmp_path / "page.html").exists()
