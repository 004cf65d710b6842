"""``expost fit --person COL --rows-per-person K``: the unit is a person, from the file to the printed loss."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from expost import AccuracyFirstModel, ErrorRate, Release
from tests.cli.helpers import call, write

SCHEMA = 'target = "income"\nclasses = ["low", "high"]\n[columns]\nhours = { bounds = [0, 80] }\n'
UNIT = ["--person", "patient", "--rows-per-person", "3"]
PERSONS, ROWS = 1000, 2417


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    patient = np.concatenate([np.arange(PERSONS), rng.integers(0, PERSONS, ROWS - PERSONS)]) + 2**53
    hours = rng.uniform(0, 80, ROWS)
    income = np.where(hours + rng.normal(0, 8, ROWS) > 45, "high", "low")
    made = tmp_path_factory.mktemp("persons")
    for kind in ("csv", "parquet"):
        write(made, kind, pa.table({"patient": patient, "hours": hours, "income": income}))
    (made / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    stated = f'person = "patient"\nrows_per_person = 3\n{SCHEMA}'
    (made / "stated.toml").write_text(stated, encoding="utf-8")
    return made


def fit(capsys, folder, *options, schema="schema", data="data.csv"):
    goal = ["--error-rate", "0.25", "--on-invalid", "clip", "--seed", "1"]
    return call(capsys, "fit", folder / data, "--schema", folder / f"{schema}.toml", *goal, *options)


def test_the_loss_is_about_persons(folder, capsys):
    said = fit(capsys, folder, *UNIT, "--verbose")
    assert said.status == 0, said.err
    printed = " ".join(said.out.split())
    assert "(one person replaced)" in printed
    assert f"{PERSONS:,} persons" in printed
    assert "every person counts alike" in printed
    assert str(ROWS) not in printed
    assert f"{ROWS:,}" not in printed
    release = Release.from_json(fit(capsys, folder, *UNIT, "--json").out)
    assert (release.unit, release.parameters["persons"], release.parameters["n"]) == ("person", PERSONS, 3 * PERSONS)
    plain = Release.from_json(fit(capsys, folder, "--json").out)
    assert plain.unit == "row"
    assert release.epsilon > 1.5 * plain.epsilon


def test_every_way_of_saying_it_is_the_same(folder, capsys):
    outs = [
        Release.from_json(fit(capsys, folder, *unit, "--json", schema=schema, data=data).out)
        for unit, schema in ((UNIT, "schema"), ((), "stated"), (UNIT, "stated"))
        for data in ("data.csv", "data.parquet")
    ]
    model = AccuracyFirstModel(
        folder / "schema.toml", ErrorRate(0.25), on_invalid="clip", person="patient", rows_per_person=3, random_state=1
    )
    assert all(out == model.fit(folder / "data.csv").release_ for out in outs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--person", "patient"], "--rows-per-person is missing"),
        (["--rows-per-person", "3"], "--rows-per-person says nothing without --person"),
        (["--person", "pateint", "--rows-per-person", "3"], "did you mean 'patient'"),
        (["--person", "hours", "--rows-per-person", "3"], "take it out of columns"),
        (["--person", "patient", "--rows-per-person", "0"], "at least 1"),
        ([*UNIT, "--max-epsilon", "0.01"], "at 1,000 persons"),
    ],
)
def test_mistakes(folder, capsys, options, said):
    answer = fit(capsys, folder, *options)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_without_a_schema_the_unit_is_a_row(folder, capsys):
    answer = call(capsys, "fit", folder / "data.csv", "--target", "income", "--task", "classification", *UNIT)
    assert answer.status == 2
    assert "--person and --rows-per-person go with --schema" in answer.err


def test_the_curator_sees_how_many_rows_persons_have(folder, capsys):
    for options, schema in ((UNIT, "schema"), ([], "stated")):
        answer = call(capsys, "check", folder / "data.csv", "--schema", folder / f"{schema}.toml", *options)
        assert answer.status == 0
        assert "1,000 persons by patient" in answer.out
        assert "rows are left out" in answer.out
    holed = (folder / "data.csv").read_text().splitlines()
    (folder / "holed.csv").write_text("\n".join([*holed[:5], ",12,low"]) + "\n")
    answer = call(capsys, "check", folder / "holed.csv", "--schema", folder / "stated.toml")
    assert "1 rows have no patient; each is taken to be a person of its own" in answer.out


@pytest.mark.parametrize("delta", [[], ["--delta", "1e-6"]])
def test_a_promise_about_new_persons(folder, capsys, tmp_path, delta):
    options = [*UNIT, "--new-rows", "0.4", "--max-epsilon", "9", "--output", tmp_path / "r.json", *delta]
    said = fit(capsys, folder, *options, "--report", tmp_path / "r.html")
    assert said.status == 0, said.err
    assert "on new persons drawn like these, every person counting alike, by their first 3 rows, as asked" in " ".join(
        said.out.split()
    )
    release = Release.from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (release.held_out, release.parameters["persons"]) == (400 * 3, PERSONS)
    report = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Tests read 400 persons that no model was fitted to" in report
    assert "the file that says it (.held-out) is kept as the data are, or deleted" in report
    said = fit(capsys, folder, *options, "--force", "--evaluate", "0.2")
    assert said.status == 0, said.err
    assert "rows that no model was fitted to of 400 persons" in said.out
