"""``expost evaluate`` and ``expost fit --evaluate``: what they print, save and charge, and how they refuse."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import subprocess
import sys
from fractions import Fraction

import pyarrow as pa
import pyarrow.csv
import pytest

from expost import ErrorRate, Ledger, LogLoss, Release
from expost.release import Evaluation
from expost.release.held_out import HeldOut
from expost.shown import up
from tests.cli.helpers import call
from tests.estimators.model_helpers import LABELS, N, model, table

SCHEMA = """
target = "income"
classes = ["low", "high"]
[columns]
hours = { bounds = [0, 80] }
sector = { categories = ["public", "private"] }
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    release = model(LABELS, LogLoss(0.5)).fit(table()).release_
    (folder / "m.json").write_text(release.to_json(), encoding="utf-8")
    pa.csv.write_csv(pa.table(table()), folder / "t.csv")
    (folder / "s.toml").write_text(SCHEMA, encoding="utf-8")
    return folder


@pytest.fixture
def folder(kept, tmp_path, monkeypatch):
    for path in kept.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_a_table_and_saves_it_with_a_page(folder, capsys):
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--cut-off", "0.3", "0.7", "--seed", "1")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert len(lines) < 20
    assert "known before a row was read" in said.out
    assert "AUC 0." in said.out
    assert "SEEDED SIMULATION" in said.out
    assert any(line.split()[0] == "0.3" for line in lines)
    found = Evaluation.from_json((folder / "m-evaluation.json").read_text(encoding="utf-8"))
    assert found.margin == 0.1
    page = (folder / "m-evaluation.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert "http" not in page


def test_the_report_of_the_model_takes_it_in(folder, capsys):
    assert call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--seed", "1").status == 0
    alone = call(capsys, "report", "m-evaluation.json", "--output", "r.html")
    assert alone.status == 2
    assert "expost report MODEL.json --evaluation m-evaluation.json" in alone.err
    assert call(capsys, "report", "m.json", "--evaluation", "m-evaluation.json").status == 0
    page = (folder / "m.html").read_text(encoding="utf-8")
    assert page.count('<main class="sheet">') == 3
    assert "How good the model is" in page
    other = Release.from_json((folder / "m.json").read_text(encoding="utf-8"))
    (folder / "other.json").write_text(dataclasses.replace(other, id="0" * 16).to_json(), encoding="utf-8")
    wrong = call(capsys, "report", "other.json", "--evaluation", "m-evaluation.json")
    assert wrong.status == 2
    assert "is of another release" in wrong.err
    assert not (folder / "other.html").exists()
    assert "is no evaluation" in call(capsys, "report", "m.json", "--evaluation", "m.json", "--force").err


def test_a_second_one_has_a_name_of_its_own_and_a_named_one_is_not_written_over(folder, capsys):
    for _ in range(2):
        assert call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1").status == 0
    assert (folder / "m-evaluation-2.html").is_file()
    for name in ("m.json", "m-evaluation.json", "x.html"):
        said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--output", name)
        assert said.status == 2, name
        assert "nothing was spent" in said.err.lower()


def test_json_goes_to_standard_output(folder, capsys):
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--json")
    assert Evaluation.from_json(said.out).epsilon > 0


def test_a_ledger_books_it_and_refuses(folder, capsys):
    Ledger.create(folder / "b.db", "d", cap=0.2)
    on = ("--ledger", "b.db", "--dataset", "d")
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", *on)
    assert said.status == 0, said.err
    assert "charged;" in said.out
    [entry] = Ledger(folder / "b.db", "d").budget.entries
    assert entry.loss.epsilon == Evaluation.from_json((folder / "m-evaluation.json").read_text("utf-8")).epsilon
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.05", *on)
    assert said.status == 2
    assert "nothing was spent" in said.err.lower()
    assert "income" in call(capsys, "ledger", "show", "b.db").out
    assert call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--seed", "1", *on).status == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--margin", "0.001"), "State a larger margin"),
        (("--margin", "0"), "--margin must be"),
        (("--new-rows",), "only a fit with holdout"),
        (("--held-out", "m.held-out"), "--held-out goes with --new-rows"),
        (("--new-rows", "--public-rows"), "not allowed with"),
        (("--bins", "5"), "bins must be"),
        (("--residuals-within", "5"), "predict numbers"),
        (("--cut-off", "2"), "between 0 and 1"),
    ],
)
def test_mistakes_cost_nothing(folder, capsys, options, said):
    found = call(capsys, "evaluate", "m.json", "t.csv", *options)
    assert found.status == 2
    assert said in found.err
    assert "nothing was spent" in found.err.lower()
    assert not (folder / "m-evaluation.json").exists()


def test_public_rows_are_exact_and_said_so(folder, capsys):
    said = call(capsys, "evaluate", "m.json", "t.csv", "--public-rows")
    assert said.status == 0
    assert "PUBLIC ROWS" in said.out
    assert json.loads((folder / "m-evaluation.json").read_text("utf-8"))["epsilon"] == 0


def test_a_fit_evaluates_what_it_made(folder, capsys):
    """Charged beside the fit, within the same --max-epsilon; on rows held out where there are some."""
    Ledger.create(folder / "b.db", "d", cap=3.0)
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3")
    said = call(capsys, *fit, "--evaluate", "0.1", "--ledger", "b.db", "--dataset", "d", "--output", "r.json")
    assert said.status == 0, said.err
    assert "AUC" in said.out
    first, second = (Release.from_json((folder / name).read_text("utf-8")) for name in ("r.json", "r-evaluation.json"))
    assert sorted(e.loss.epsilon for e in Ledger(folder / "b.db", "d").budget.entries) == sorted(
        [first.epsilon, second.epsilon]
    )
    assert second.parameters["evaluation"]["of"] == first.id
    said = call(capsys, *fit, "--evaluate", "0.0131", "--output", "q.json", "--seed", "1")
    assert said.status == 1
    assert (folder / "q.json").is_file()
    assert "State a larger" in said.err
    said = call(capsys, *fit, "--evaluate", "0.3", "--new-rows", "0.3", "--output", "n.json", "--seed", "1")
    assert said.status == 0, said.err
    assert "rows that no model was fitted to" in said.out
    assert "who was held out is in n.held-out: keep it as the table is kept, or delete it" in said.out
    assert (folder / "n.held-out").stat().st_mode & 0o077 == 0
    assert call(capsys, *fit, "--evaluate", "--json").status == 2
    assert call(capsys, *fit, "--evaluate", "2").status == 2


@pytest.mark.parametrize("persons", [False, True])
def test_those_held_out_are_found_again(folder, capsys, persons):
    fit = ["fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--new-rows", "0.3", "--max-epsilon", "9"]
    if persons:
        pa.csv.write_csv(pa.table({**table(), "who": [str(k % 1500) for k in range(N)]}), folder / "t.csv")
        fit += ["--person", "who", "--rows-per-person", "2"]
    said = call(capsys, *fit)
    assert said.status == 0, said.err
    assert {path.name for path in folder.glob("t-*")} == {"t-income.json", "t-income.held-out"}
    assert call(capsys, *fit).status == 0
    first, second = Release.from_json((folder / "t-income.json").read_text("utf-8")), folder / "t-income-2.held-out"
    assert second.exists()
    evaluate = ["evaluate", "t-income.json", "t.csv", "--new-rows", "--margin", "0.2"]
    said = call(capsys, *evaluate)
    assert said.status == 0, said.err
    found = Evaluation.from_json((folder / "t-income-evaluation.json").read_text("utf-8"))
    assert (found.n, found.rows) == (first.held_out, "held out")

    def refused(what, *options):
        said = call(capsys, *evaluate, *options)
        assert (said.status, what in said.err, "nothing was spent" in said.err.lower()) == (2, True, True), said.err

    refused("belongs to another release", "--held-out", second)
    refused("is read, so it is not written over", "--output", "t-income.held-out", "--force")
    (folder / "t-income.held-out").rename(folder / "elsewhere")
    refused("there is no t-income.held-out")
    assert call(capsys, *evaluate, "--held-out", "elsewhere").status == 0


def test_where_it_is_kept_who_was_held_out_is_looked_at_before_the_fit(folder, capsys, monkeypatch):
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--new-rows", "0.3", "--seed", "1")
    (folder / "r.held-out").write_text("of an earlier fit")
    said = call(capsys, *fit, "--output", "r.json")
    assert (said.status, "r.held-out is there already" in said.err, list(folder.glob("r.json"))) == (2, True, [])
    said = call(capsys, *fit, "--output", "q.json", "--report", "q.held-out")
    assert (said.status, "must name different files" in said.err) == (2, True)
    assert call(capsys, *fit, "--output", "r.json", "--force").status == 0
    assert (folder / "r.held-out").read_bytes().startswith(b"expost held out 1")
    said = call(capsys, *fit[:4], "--error-rate", "0.05", *fit[6:], "--output", "s.json")
    assert (said.status, (folder / "s-short.held-out").exists()) == (5, True), said.err
    assert call(capsys, *fit, "--json").status == 0  # nothing is saved, nor who was held out
    assert {path.stem for path in folder.glob("*.held-out")} == {"r", "s-short"}
    for name in ("m.v1", "m.v2"):
        said = call(capsys, *fit, "--output", name)
        assert (said.status, (folder / f"{name}.held-out").is_file()) == (0, True), said.err
        said = call(capsys, "evaluate", name, "t.csv", "--new-rows", "--margin", "0.2", "--output", f"{name}.json")
        assert said.status == 0, said.err

    def full(*_, **__):
        raise OSError(28, "no space left")

    monkeypatch.setattr(HeldOut, "save", full)
    said = call(capsys, *fit, "--output", "w.json")
    assert (said.status, (folder / "w.json").is_file()) == (1, True)
    assert "w.held-out could not be written (no space left); the release is in w.json" in said.err


def test_a_file_that_cannot_be_written_loses_nothing(folder, capsys, monkeypatch):
    import expost.cli.evaluate

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(expost.cli.evaluate, "write_new", full)
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1")
    assert said.status == 1
    assert Evaluation.from_json(said.out).epsilon > 0
    assert "keep the evaluation above" in said.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_what_can_be_neither_saved_nor_printed_goes_to_standard_error(folder):
    """The disk is full and so is what standard output goes to: the evaluation was paid for all the same."""
    resource = pytest.importorskip("resource")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "expost.cli", "evaluate", "m.json", "t.csv", "--margin", "0.1"],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    told, _, said = done.stderr.decode().partition("\n}\n")
    assert (done.returncode, Evaluation.from_json(f"{told}\n}}").epsilon > 0) == (1, True)
    assert "standard output failed; keep the evaluation above" in said


def test_a_place_that_could_not_be_written_costs_nothing(folder, capsys, monkeypatch):
    """Beside the release is where it goes; a name may leave no room there, and a folder may not be written to."""
    Ledger.create(folder / "b.db", "d", cap=9.0)
    charged = ("--ledger", "b.db", "--dataset", "d", "--margin", "0.1")
    long = "x" * 240 + ".json"
    (folder / long).write_bytes((folder / "m.json").read_bytes())
    fit = (
        "fit",
        "t.csv",
        "--schema",
        "s.toml",
        "--error-rate",
        "0.3",
        "--when-short",
        "discard",
        "--output",
        f"y{long}",
    )
    for command in (("evaluate", long, "t.csv", *charged), (*fit, "--evaluate", "0.1", *charged[:4])):
        said = call(capsys, *command)
        assert (said.status, "leaves no room for the -evaluation" in said.err) == (2, True), said.err
        assert "Nothing was spent" in said.err
    access = os.access
    monkeypatch.setattr("expost.cli.evaluate.os.access", lambda path, mode: mode != os.W_OK | os.X_OK)  # root may
    said = call(capsys, "evaluate", "m.json", "t.csv", *charged)
    assert (said.status, "the folder of m.json cannot be written to; say with --output" in said.err) == (2, True)
    monkeypatch.setattr("expost.cli.evaluate.os.access", access)
    assert not Ledger(folder / "b.db", "d").budget.entries


def test_a_page_that_is_there_is_left_and_the_new_one_called_otherwise(folder, capsys):
    (folder / "m-evaluation.html").write_text("mine")
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1", "--seed", "1")
    assert (said.status, "page with pictures: m-evaluation-2.html" in said.out) == (0, True)
    assert (folder / "m-evaluation.html").read_text() == "mine"


def test_a_database_is_not_written_over(folder, capsys):
    with contextlib.closing(sqlite3.connect("rows.db")) as base:
        base.execute("CREATE TABLE t (hours)")
    before = (folder / "rows.db").read_bytes()
    query = ("--query", "select * from t", "--output", "rows.db", "--force")
    said = call(capsys, "evaluate", "m.json", "sqlite:rows.db", *query)
    assert (said.status, "rows.db is read, so it is not written over" in said.err) == (2, True)
    assert (folder / "rows.db").read_bytes() == before


def test_an_interruption_says_what_it_cost(folder, capsys, monkeypatch):
    import expost.release.evaluation_count

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(expost.release.evaluation_count, "discrete_laplace", stopped)
    said = call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1")
    assert said.status == 3
    assert "has to be counted as spent" in said.err
    assert json.loads(said.out)["parameters"]["interrupted"] is True


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError("a cell"), KeyError("a cell"), ValueError("why")])
def test_what_ends_an_evaluation_does_not_unsay_what_the_fit_before_it_cost(folder, capsys, monkeypatch, error):
    """The evaluation ends before it costs anything; the fit in front of it was paid for, and the ledger says so."""
    import expost.release.evaluation_count

    def ended(*_, **__):
        raise error

    Ledger.create(folder / "b.db", "d", cap=3.0)
    monkeypatch.setattr(expost.release.evaluation_count, "_counts", ended)
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--evaluate", "0.1", "--output", "r.json")
    said = call(capsys, *fit, "--ledger", "b.db", "--dataset", "d")
    assert said.status == 1, said.err
    assert "expost: the model in r.json is not evaluated: " in said.err
    assert "Nothing more was spent" in said.err
    assert "nothing was spent" not in said.err.lower()
    assert "a cell" not in said.err
    charged = [entry.loss.epsilon for entry in Ledger(folder / "b.db", "d").budget.entries]
    assert [loss for loss in charged if loss > 0] == [Release.from_json((folder / "r.json").read_text("utf-8")).epsilon]


@pytest.mark.parametrize("at", ["report", "shown"])
def test_nothing_more_is_spent_after_an_interruption(folder, capsys, monkeypatch, at):
    """Somebody stops the command while the release is handed over: it went on, and paid for an evaluation."""
    import expost.release.page
    import expost.release.words

    def ended(*_, **__):
        raise KeyboardInterrupt

    where = (expost.release.page, "report") if at == "report" else (expost.release.words, "summary")
    monkeypatch.setattr(*where, ended)
    Ledger.create(folder / "b.db", "d", cap=3.0)
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--evaluate", "0.1", "--output", "r.json")
    said = call(capsys, *fit, "--ledger", "b.db", "--dataset", "d", "--report", "r.html")
    assert (said.status, "is not evaluated: interrupted. Nothing more was spent" in said.err) == (1, True), said.err
    charged = [entry.loss.epsilon for entry in Ledger(folder / "b.db", "d").budget.entries]
    assert charged == [Release.from_json((folder / "r.json").read_text("utf-8")).epsilon]


def test_that_nothing_was_spent_is_said_once(folder, capsys, monkeypatch):
    import expost.release.evaluation_count

    def ended(*_, **__):
        raise KeyError("a cell")

    monkeypatch.setattr(expost.release.evaluation_count, "price_of", ended)
    said = call(capsys, "evaluate", "m.json", "t.csv")
    assert (said.status, said.err.lower().count("nothing was spent")) == (4, 1)


def test_a_margin_that_nothing_is_left_for_is_no_fit_for_nothing(folder, capsys):
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--seed", "1", "--output", "r.json")
    said = call(capsys, *fit, "--evaluate", "0.0131")  # which all of the budget would pay for
    assert (said.status, said.err.count("Nothing more was spent"), said.err.count("othing was spent")) == (1, 1, 0)


NUMBERS = ("--task", "regression", "--target", "hours", "--bounds", "0", "1", "--target-bounds", "0", "80")
CLASSES = ("--task", "classification", "--target", "income", "--bounds", "0", "80", "--classes", "low", "high")


@pytest.mark.parametrize(
    ("fit", "margin"),
    [
        (("--schema", "s.toml", "--error-rate", "0.3"), "0.012"),
        (("--schema", "s.toml", "--log-loss", "0.6", "--new-rows", "0.2"), "0.05"),
        ((*CLASSES, "--columns", "hours", "--error-rate", "0.3"), "0.012"),
        ((*CLASSES, "--columns", "hours", "--error-rate", "0.3", "--memory", "100"), "0.012"),
        ((*NUMBERS, "--columns", "ones", "--mean-squared-error", "800"), "0.03"),
    ],
    ids=["schema", "held out", "columns", "in pieces", "numbers"],
)
@pytest.mark.parametrize("gamma", ["0.1", "1e-7"])
def test_what_no_budget_pays_for_is_told_before_the_fit(folder, capsys, fit, margin, gamma):
    """It follows from the number of rows: the fit would be paid for, and its model not evaluated."""
    pa.csv.write_csv(pa.table({**table(), "ones": [1.0] * len(table()["hours"])}), folder / "t.csv")
    stated = (*fit, "--output", "r.json", "--failure-probability", gamma)
    said = call(capsys, "fit", "t.csv", *stated, "--evaluate", margin if gamma == "0.1" else "0.5")
    assert (said.status, list(folder.glob("r*"))) == (2, [])
    words = "State a larger margin" if gamma == "0.1" else "--failure-probability of an evaluation must be at least"
    assert words in said.err
    assert said.err.endswith("Nothing was spent\n")


def test_a_table_without_a_schema_that_is_read_in_pieces_is_evaluated_as_well(folder, capsys):
    stated = (*CLASSES, "--columns", "hours", "--error-rate", "0.3", "--memory", "100", "--output", "r.json")
    said = call(capsys, "fit", "t.csv", *stated, "--evaluate", "0.2")
    assert (said.status, (folder / "r-evaluation.json").is_file()) == (0, True), said.err


def test_a_fit_and_its_evaluation_keep_to_one_budget_to_the_last_bit(folder, capsys, monkeypatch):
    """What is left is rounded down: a plain difference of floats may be larger than what there is."""
    import expost.cli.evaluate

    left = []

    def noted(release, options, ledger):
        left.append(Fraction(options.max_epsilon) + Fraction(release.epsilon))
        return 0

    monkeypatch.setattr(expost.cli.evaluate, "evaluate_and_show", noted)
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.3", "--evaluate", "0.2", "--seed", "1")
    caps = [0.9 + k / 70 for k in range(6)]
    for cap in caps:
        assert call(capsys, *fit, "--max-epsilon", repr(cap)).status == 0
    assert [together <= Fraction(cap) for together, cap in zip(left, caps, strict=True)] == [True] * len(caps)


def test_a_refusal_holds_no_model_to_evaluate(folder, capsys):
    release = model(LABELS, ErrorRate(0.25)).fit(table()).release_
    said = json.loads(release.to_json()) | {"status": "refused", "hypothesis": None, "level": None}
    (folder / "no.json").write_text(json.dumps(said), encoding="utf-8")
    found = call(capsys, "evaluate", "no.json", "t.csv")
    assert found.status == 2
    assert "holds no model" in found.err


def test_an_evaluation_is_no_model_and_public_rows_are_no_private_release(folder, capsys):
    assert call(capsys, "evaluate", "m.json", "t.csv", "--margin", "0.1").status == 0
    said = call(capsys, "report", "m-evaluation.json", "--registry")
    assert said.status == 2
    assert "is an evaluation and no model" in said.err
    assert call(capsys, "evaluate", "m.json", "t.csv", "--public-rows", "--output", "p.json").status == 0
    release = Release.from_json((folder / "p.json").read_text(encoding="utf-8"))
    assert "nobody in them is protected" in " ".join(str(release).split())
    ledger = Ledger.create(folder / "book.db", "d", cap=1.0)
    with pytest.raises(ValueError, match="cost no budget"):
        ledger.book(release)
    assert not ledger.budget.entries


def test_a_fit_does_not_begin_that_could_not_tell_rows_held_out_from_others(folder, capsys):
    """A query is run again, and may give its rows in another order."""
    fit = ("fit", "sqlite:t.db", "--query", "select 1", "--schema", "s.toml", "--log-loss", "0.5")
    said = call(capsys, *fit, "--new-rows", "0.2", "--evaluate", "0.1")
    assert said.status != 0
    assert "a query may give them in another order" in said.err
    assert "Nothing was spent" in said.err


def test_the_usual_margin_never_costs_more_than_the_model_unasked(folder, capsys):
    """Before a row is read: what it would cost, the margin that costs as much as the model, how to ask for either."""
    said = call(capsys, "evaluate", "m.json", "t.csv", "--seed", "1")
    paid = Release.from_json((folder / "m.json").read_text("utf-8")).epsilon
    assert (said.status, list(folder.glob("*evaluation*"))) == (2, [])
    assert f"and the model cost {up(paid)}. State --margin 0." in said.err
    assert "or --margin 0.02 to pay for that all the same. Nothing was spent" in said.err
    named = said.err.split("--margin ")[1].split(",")[0]
    assert call(capsys, "evaluate", "m.json", "t.csv", "--seed", "1", "--margin", named).status == 0
    assert 0.8 * paid < Evaluation.from_json((folder / "m-evaluation.json").read_text("utf-8")).epsilon <= paid
    assert call(capsys, "evaluate", "m.json", "t.csv", "--seed", "1", "--margin", "0.02").status == 0
    assert call(capsys, "evaluate", "m.json", "t.csv", "--public-rows").status == 0


def test_a_fit_chooses_the_margin_that_costs_no_more_than_its_model(folder, capsys):
    fit = ("fit", "t.csv", "--schema", "s.toml", "--error-rate", "0.2", "--seed", "1", "--output", "r.json")
    said = call(capsys, *fit, "--evaluate")
    assert said.status == 0, said.err
    made, found = (json.loads((folder / name).read_text("utf-8")) for name in ("r.json", "r-evaluation.json"))
    assert found["parameters"]["evaluation"]["margin"] > 0.02
    assert found["epsilon"] <= made["epsilon"]
