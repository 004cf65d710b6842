"""What the command line says of refusals, of a large δ and of budgets: in its own words, with what to do next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from expost import AccuracyFirstModel, ErrorRate, Ledger, Release
from expost.exceptions import AccuracyNotReached, LargeDeltaWarning, LedgerRefused
from tests.cli.helpers import QUICK, REGRESSION, call, write

SCHEMA = 'target = "income"\nclasses = ["low", "high"]\n[columns]\nhours = { bounds = [0, 80] }\n'
PERSON = ["--person", "patient_id", "--rows-per-person", "2"]


@pytest.fixture
def data(tmp_path):
    return made(tmp_path, 2000)


def made(folder, n):
    rng = np.random.default_rng(0)
    hours = rng.uniform(0, 80, n)
    income = np.where(hours + rng.normal(0, 8, n) > 45, "high", "low")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    return write(folder, "csv", pa.table({"patient_id": np.arange(n) // 2, "hours": hours, "income": income}))


def fit(capsys, data, *options, error_rate="0.25"):
    return call(capsys, "fit", data, "--schema", data.parent / "schema.toml", "--error-rate", error_rate, *options)


def test_a_refusal_speaks_of_what_was_stated(data, tmp_path, capsys):
    for kept, status in (("keep", 5), ("discard", 3)):
        said = fit(capsys, data, "--max-epsilon", "0.5", "--seed", "1", "--when-short", kept, error_rate="0.02")
        assert said.status == status
        assert "or allow a larger --max-epsilon. A goal may also be beyond the best linear model" in said.err
        assert "regularization" not in said.err
    with pytest.raises(AccuracyNotReached) as refusal:
        AccuracyFirstModel(tmp_path / "schema.toml", ErrorRate(0.02), max_epsilon=0.5, random_state=1).fit(data)
    assert "regularization" not in str(refusal.value).split("budget. ")[1]
    stated = ["--regularization", "0.5", "--mean-squared-error", "3000", "--max-epsilon", "1000", "--seed", "1"]
    said = call(capsys, "fit", write(tmp_path), *REGRESSION, *stated)
    assert said.status == 3, said.err
    assert "beyond the best one for the regularization stated" in said.err


def test_a_long_name_has_room_for_what_a_short_model_is_called(data, capsys):
    """Found out before anything is spent, by a fit and by what goes on from one."""
    room = 255 - len("-refused-99.json")
    longest, longer = "x" * room + ".json", "x" * (room + 1) + ".json"
    asked = ["--max-epsilon", "0.5", "--seed", "1"]
    said = fit(capsys, data, *asked, "--output", longest, error_rate="0.02")
    assert (said.status, Release.from_json(Path("x" * room + "-short.json").read_text()).status) == (5, "short")
    refine = ["refine", "x" * room + "-short.json", data, "--error-rate", "0.01", "--seed", "1"]
    for said in (
        fit(capsys, data, *asked, "--output", longer, error_rate="0.02"),
        call(capsys, *refine, "--output", longer),
    ):
        assert said.status == 2
        assert "leaves no room for the -short or -refused" in said.err
        assert "Nothing was spent" in said.err


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_refusal_has_a_name_of_its_own(data, capsys, force):
    """And takes no model's place, whatever its file was to be called."""
    Path("model.json").write_text("a model")
    asked = ["--max-epsilon", "0.5", "--seed", "1", "--when-short", "discard"]
    for output in ([], ["--output", "model.json" if force else "other.json", *force]):
        assert fit(capsys, data, *asked, *output, error_rate="0.02").status == 3
    names = [f"{data.name.split('.')[0]}-income-refused.json", f"{'model' if force else 'other'}-refused.json"]
    assert [Release.from_json(Path(name).read_text()).status for name in names] == ["refused", "refused"]
    assert Path("model.json").read_text() == "a model"


def test_a_plan_in_the_words_of_the_command_line(data, capsys):
    said = call(
        capsys,
        "plan",
        data.parent / "schema.toml",
        *["--rows", "50", "--error-rate", "0.2", "--worlds", "3"],
        "--max-epsilon",
        "0.6",
    )
    assert said.status == 0, said.err
    printed = " ".join(said.out.split())
    assert "Beware: for an ε of 0.6 the first model is" in printed
    assert "max_epsilon" not in printed
    assert "λ" not in printed


def test_where_trying_becomes_possible(tmp_path, capsys, no_noise):
    said = fit(capsys, made(tmp_path, 30), "--max-epsilon", "0.2", *PERSON)
    assert (said.status, said.out) == (2, "")
    assert "persons on it can be tried, which may cost all and fail: expost plan says how many are enough" in said.err


def test_a_delta_that_is_no_small_chance(data, tmp_path, capsys):
    said = fit(capsys, data, "--delta", "0.01", "--report", "report.html")
    assert said.status == 0, said.err
    assert "expost: warning: --delta 0.01 is large for 2,000 rows" in said.err
    leaves = "ver all 2,000 rows n·δ = 20: by chance it may speak for so many by more than ε on average"
    assert leaves in " ".join(said.out.split())
    assert leaves in Path("report.html").read_text(encoding="utf-8")
    said = fit(capsys, data, "--delta", "0.01", "--seed", "1", *PERSON)
    assert "--delta 0.01 is large for 1,000 persons" in said.err
    said = fit(capsys, data, "--delta", "1e-6", "--seed", "1")
    assert "is large" not in said.err
    assert "n·δ = 0.002" in said.out


def test_a_large_delta_is_warned_of_before_anything_is_spent(data, tmp_path, no_noise):
    model = AccuracyFirstModel(tmp_path / "schema.toml", ErrorRate(0.25), delta=0.001)
    with pytest.raises(LargeDeltaWarning, match=r"delta=0.001 is large for 2,000 rows: .* below 1/2000"):
        model.fit(data)  # warnings are errors here


def test_refitting_without_statistics(tmp_path, capsys):
    call(capsys, "fit", write(tmp_path), *REGRESSION, *QUICK, "--seed", "1", "--output", tmp_path / "model.json")
    said = call(capsys, "refit", tmp_path / "model.json")
    assert said.status == 2
    assert "pass --keep-statistics to the first fit, one without a schema" in said.err


def test_a_budget_for_another_unit(data, tmp_path, capsys, no_noise):
    book = tmp_path / "budget.db"
    call(capsys, "ledger", "create", book, "--dataset", "rows", "--cap", "2")
    Ledger.create(book, "persons", cap=2, person="patient_id")
    said = fit(capsys, data, *PERSON, "--max-epsilon", "1", "--ledger", book, "--dataset", "rows")
    assert said.status == 2
    assert "expost ledger create FILE --dataset NAME --cap E --person patient_id. Nothing was spent" in said.err
    said = fit(capsys, data, "--max-epsilon", "1", "--ledger", book, "--dataset", "persons")
    assert "expost ledger create FILE --dataset NAME --cap E. Nothing was spent" in said.err


def test_a_budget_of_persons_in_python(data, tmp_path, capsys):
    book = tmp_path / "budget.db"
    ledger = Ledger.create(book, "python", cap=20, person="patient_id")
    call(capsys, "ledger", "create", book, "--dataset", "shell", "--cap", "20", "--person", "patient_id")
    assert ledger.budget.unit == Ledger(book, "shell").budget.unit
    said = fit(capsys, data, *PERSON, "--ledger", book, "--dataset", "python", "--output", tmp_path / "model.json")
    assert said.status == 0, said.err
    release = Release.from_json((tmp_path / "model.json").read_text(encoding="utf-8"))
    text = str(ledger.budget)
    assert text.startswith("python: ")
    assert " of 20 charged, " in text
    assert "1 entry; one person" in text
    assert release.id not in repr(ledger.budget)
    assert "hypothesis" not in repr(ledger.budget) + repr(ledger.budget.entries)
    with pytest.raises(ValueError, match="person and unit both say"):
        Ledger.create(book, "twice", cap=1, person="patient_id", unit="one household replaced")


def test_a_data_set_that_is_not_there_is_noticed_before_rows_are(data, tmp_path):
    Ledger.create(tmp_path / "budget.db", "stays", cap=1)
    ledger = Ledger(tmp_path / "budget.db", "no-such-set")
    model = AccuracyFirstModel(tmp_path / "schema.toml", ErrorRate(0.25), ledger=ledger)
    with pytest.raises(ValueError, match="has no data set 'no-such-set'; it has 'stays'") as error:
        model.fit(tmp_path / "there is no such table.csv")
    assert not isinstance(error.value, LedgerRefused)


def test_a_report_with_its_budget(data, tmp_path, capsys):
    book, model = tmp_path / "budget.db", tmp_path / "model.json"
    call(capsys, "ledger", "create", book, "--dataset", "big", "--cap", "20")
    said = fit(capsys, data, "--ledger", book, "--dataset", "big", "--output", model)
    assert f"expost report {model} --ledger {book} --dataset big" in said.out
    lines = said.out.splitlines()
    starts = [next(line for line in lines if text in line).index(text) for text in ("big: ", "at most 0.25", "ε = ")]
    assert len(set(starts)) == 1
    other = tmp_path / "other.json"
    fit(capsys, data, "--output", other)
    said = call(capsys, "report", other, "--ledger", book, "--dataset", "big")
    assert said.status == 2
    assert f"expost ledger book {book} {other} --dataset big" in said.err
