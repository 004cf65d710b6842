"""``expost key``, ``fit --keep-path``, ``refine`` and ``refit``, end to end."""

from __future__ import annotations

import json
import stat

import numpy as np
import pyarrow as pa
import pytest

from expost import Ledger, Release, compose
from expost.account.ledger import Reservation
from tests.cli.helpers import call, write

TASK = ["--target", "y", "--task", "regression", "--bounds", "-1", "1", "--target-bound", "1", "--seed", "0"]
GOAL = ["--excess-risk", "0.02"]


@pytest.fixture
def folder(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(30_000, 3))
    y = np.clip(X @ [0.6, -0.5, 0.3] + rng.normal(0, 0.1, len(X)), -1, 1)
    write(tmp_path, "csv", pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}))
    assert call(capsys, "key", tmp_path / "curator.key").status == 0
    return tmp_path


def fit(capsys, folder, *options):
    return call(capsys, "fit", folder / "data.csv", *TASK, *GOAL, *options, "--output", folder / "first.json")


def keep(folder):
    return ["--keep-path", folder / "kept", "--key", folder / "curator.key", "--later", "0.004", "0.001"]


def read(path):
    return Release.from_json(path.read_text(encoding="utf-8"))


def test_from_a_key_to_a_finer_model(folder, capsys):
    assert stat.S_IMODE((folder / "curator.key").stat().st_mode) == 0o600
    assert fit(capsys, folder, *keep(folder), "--keep-statistics").status == 0
    opened = ["--path", folder / "kept", "--key", folder / "curator.key"]
    said = call(capsys, "refine", folder / "first.json", *opened, "--excess-risk", "0.004")
    assert said.status == 0, said.err
    one, two = read(folder / "first.json"), read(folder / "first-0.004.json")
    assert two.continues == one.id
    assert two.target == "y"
    assert f"beside release {one.id}" in " ".join(said.out.split())
    assert compose([one, two]).epsilon == pytest.approx(two.epsilon)
    out = folder / "third.json"
    said = call(capsys, "refine", folder / "first-0.004.json", *opened, "--excess-risk", "0.001", "--output", out)
    assert said.status == 0
    assert read(out).continues == two.id
    said = call(capsys, "refit", out, "--regularization", "0.05", "--columns", "a", "c")
    assert said.status == 0, said.err
    other = read(folder / "third-refit.json")
    assert other.epsilon_increment == 0
    assert other.parameters["coef"][1] == 0
    for lam in ("1e300", "1e-300", "-1", "inf"):
        for command in (["refit", out], ["refine", folder / "first.json", *opened, "--excess-risk", "0.002"]):
            answer = call(capsys, *command, "--json", "--regularization", lam)
            assert (answer.status, answer.out) == (2, "")
            assert "regularization must" in answer.err
    printed = call(capsys, "refit", out, "--json")
    assert Release.from_json(printed.out) == Release.from_json(call(capsys, "refit", out, "--json").out)


def test_a_ledger_is_charged_what_is_new(folder, capsys):
    """Noise from the cryptographic source, as a ledger wants it; the certificate holds whatever it is."""
    book = ["--ledger", folder / "ledger.db", "--dataset", "survey"]
    assert call(capsys, "ledger", "create", folder / "ledger.db", "--dataset", "survey", "--cap", "100").status == 0
    unseeded = [word for word in TASK if word not in ("--seed", "0")] + GOAL
    out = ["--output", folder / "first.json"]
    said = call(capsys, "fit", folder / "data.csv", *unseeded, *keep(folder), "--keep-statistics", *book, *out)
    assert said.status == 0, said.err
    opened = ["--path", folder / "kept", "--key", folder / "curator.key"]
    assert f"expost refine {folder / 'first.json'} --path {folder / 'kept'}" in said.out
    assert f"expost refit {folder / 'first.json'}" in said.out
    said = call(capsys, "refine", folder / "first.json", *opened, "--excess-risk", "0.004", *book)
    assert said.status == 0, said.err
    one, two = read(folder / "first.json"), read(folder / "first-0.004.json")
    assert [entry.loss.epsilon for entry in Ledger(folder / "ledger.db", "survey").budget.entries] == [
        one.epsilon,
        two.epsilon_increment,
    ]
    assert "charged; " in said.out
    # where less is left than it may take, nothing is opened
    small = ["--ledger", folder / "ledger.db", "--dataset", "small"]
    assert call(capsys, "ledger", "create", *small[1:2], "--dataset", "small", "--cap", "0.001").status == 0
    said = call(capsys, "refine", folder / "first.json", *opened, "--excess-risk", "0.002", *small)
    assert said.status == 2
    assert "0.001 of 0.001 left" in said.err
    assert "--max-epsilon" not in said.err  # which is about both, and the first cost more by itself
    assert Ledger(folder / "ledger.db", "small").budget.entries == ()
    assert not (folder / "first-0.002.json").exists()


def test_a_budget_for_all_of_it(folder, capsys):
    fit(capsys, folder, *keep(folder))
    opened = ["--path", folder / "kept", "--key", folder / "curator.key", "--excess-risk", "0.001", "--json"]
    cost = read(folder / "first.json").epsilon
    said = call(capsys, "refine", folder / "first.json", *opened, "--max-epsilon", f"{1.3 * cost:.6g}")
    assert said.status == 3
    assert "refused" in said.err
    assert cost <= Release.from_json(said.out).epsilon <= 1.3 * cost


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep-path", "kept"], "--key and --later is missing"),
        (["--keep-path", "kept", "--key", "none", "--later", "0.001"], "there is no key none; expost key makes one"),
        (["--later", "0.001"], "--keep-path and --key is missing"),
    ],
)
def test_half_a_path(folder, capsys, options, said):
    answer = fit(capsys, folder, *options)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert not (folder / "first.json").exists()


def test_mistakes_write_nothing_and_replace_nothing(folder, capsys):
    fit(capsys, folder, *keep(folder))
    before = sorted(folder.iterdir())
    write_other = call(capsys, "key", folder / "other.key")
    assert write_other.status == 0
    good = ["--path", folder / "kept", "--key", folder / "curator.key", "--excess-risk", "0.004"]
    for arguments, said in (
        (["refine", folder / "first.json", *good[:2], "--key", folder / "other.key", *good[4:]], "does not open"),
        (["refine", folder / "none.json", *good], "there is no release"),
        (["refine", folder / "data.csv", *good], "not a release"),
        (["refine", folder / "first.json", *good, "--output", folder / "first.json"], "is not written over"),
        (["refine", folder / "first.json", *good, "--output", folder / "no" / "file"], "folder"),
        (["refine", folder / "first.json", *good[:5], "0.0001"], "at least 0.001"),
        (["refit", folder / "first.json"], "has no statistics"),
        (["key", folder / "curator.key"], "is there already"),
        (["key", folder / "no" / "file"], "could not be written"),
    ):
        answer = call(capsys, *arguments)
        assert (answer.status, answer.out) == (2, ""), arguments
        assert said in answer.err
        assert answer.err.count("\n") == 1
    assert sorted(folder.iterdir()) == sorted([*before, folder / "other.key"])


def test_with_force_a_file_is_replaced(folder, capsys):
    fit(capsys, folder, *keep(folder))
    out = folder / "second.json"
    out.write_text("old")
    good = ["--path", folder / "kept", "--key", folder / "curator.key", "--excess-risk", "0.004"]
    assert call(capsys, "refine", folder / "first.json", *good, "--output", out, "--force").status == 0
    assert read(out).status == "released"


def test_a_release_reaches_the_caller_when_its_file_does_not(folder, capsys, monkeypatch):
    fit(capsys, folder, *keep(folder))
    good = ["--path", folder / "kept", "--key", folder / "curator.key", "--excess-risk", "0.004"]

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr("expost.cli.output.write_whole", full)
    said = call(capsys, "refine", folder / "first.json", *good)
    assert said.status == 1
    assert "no space left" in said.err
    assert Release.from_json(said.out).promise.excess_risk == 0.004


def test_classification_has_no_moments(folder, capsys):
    answer = call(
        capsys, "fit", folder / "data.csv", "--target", "y", "--task", "classification", *GOAL, "--keep-statistics"
    )
    assert answer.status == 2
    assert "--keep-statistics is for --task regression" in answer.err


def test_with_a_schema_nothing_is_kept(folder, capsys):
    (folder / "schema.toml").write_text('target = "y"\ntarget_bounds = [-1, 1]\n[columns]\na = { bounds = [-1, 1] }\n')
    answer = call(
        capsys, "fit", folder / "data.csv", "--schema", folder / "schema.toml", "--r2", "0.2", "--keep-statistics"
    )
    assert answer.status == 2
    assert "--keep-statistics goes without a schema only" in answer.err


def _without_last(raw, *keys):
    for key in keys[:-1]:
        raw = raw[key]
    raw[keys[-1]] = raw[keys[-1]][:-1]


EDITS = {
    "a coefficient less": lambda raw: _without_last(raw, "parameters", "coef"),
    "a column less": lambda raw: _without_last(raw, "parameters", "columns"),
    "a name less": lambda raw: _without_last(raw, "columns"),
    "a parameter less": lambda raw: _without_last(raw, "hypothesis"),
    "a bound less": lambda raw: _without_last(raw, "preparation", "bounds", "upper"),
    "another width": lambda raw: raw["preparation"].update(
        n_columns=2, bounds={"lower": [-1, -1], "upper": [1, 1]}, regularization_per_column=[1, 1]
    ),
    "no columns, another width": lambda raw: (
        raw["preparation"].update(n_columns=2, bounds={"lower": [-1, -1], "upper": [1, 1]}),
        raw["parameters"].update(columns=["a", "b"], coef=[1.0, 2.0]),
        raw.update(columns=["a", "b"], hypothesis=raw["hypothesis"][1:]),
    ),
    "text for a bound": lambda raw: raw["preparation"].update(target=["low", "high"]),
    "text for a number": lambda raw: raw["promise"].update(regularization="0.1"),
    "a column that is a list": lambda raw: raw["parameters"].update(columns=[["a"], "b", "c"]),
    "spent more at a delta": lambda raw: raw.update(
        delta=1e-6,
        epsilon_conversion=0.5,
        epsilon=raw["epsilon"] + 0.5,
        epsilon_usual=raw["epsilon"] + 0.5,
        risk_factor=np.exp(raw["epsilon"] + 0.5),
        curve={},
    ),
}


# what a model's units depend on, and the sealed path knows
UNITS = {
    "another bound on rows": lambda raw: raw["preparation"].update(feature_bound=99.0),
    "other columns": lambda raw: raw.update(columns=["x" + name for name in raw["columns"]]),
}


def test_an_edited_release_is_refused_before_anything_is_spent(folder, capsys):
    book = ["--ledger", folder / "ledger.db", "--dataset", "survey"]
    assert call(capsys, "ledger", "create", folder / "ledger.db", "--dataset", "survey", "--cap", "100").status == 0
    unseeded = [word for word in TASK if word not in ("--seed", "0")] + GOAL
    said = call(capsys, "fit", folder / "data.csv", *unseeded, *keep(folder), *book, "--output", folder / "first.json")
    assert said.status == 0, said.err
    opened = ["--path", folder / "kept", "--key", folder / "curator.key", "--excess-risk", "0.004", *book]
    text = (folder / "first.json").read_text(encoding="utf-8")
    before = Ledger(folder / "ledger.db", "survey").budget.events
    for what, change in {**EDITS, **UNITS}.items():
        raw = json.loads(text)
        change(raw)
        (folder / "edited.json").write_text(json.dumps(raw), encoding="utf-8")
        refit = ["refit", folder / "edited.json"]  # has no sealed path to compare a release with
        for command in (["refine", folder / "edited.json", *opened], *([refit] if what in EDITS else [])):
            answer = call(capsys, *command)
            assert (answer.status, answer.out) == (2, ""), (what, answer)
            assert answer.err.count("\n") == 1
        assert Ledger(folder / "ledger.db", "survey").budget.events == before, what
        assert not (folder / "edited-0.004.json").exists()
    assert call(capsys, "refine", folder / "first.json", *opened).status == 0  # and nothing had been used up


def test_a_path_that_could_not_be_kept(folder, capsys, monkeypatch):
    """The release stands and says so; the status tells, and nothing is proposed that needs the path."""

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("expost.search.kept_path_refinement.write_private", full)
    said = fit(capsys, folder, *keep(folder))
    assert (said.status, "the path could not be kept (No space left on device)" in said.err) == (1, True)
    assert read(folder / "first.json").status == "released"
    assert "expost predict" in said.out
    assert "expost refine" not in said.out


def test_what_a_ledger_says_of_a_refinement_that_was_stopped(folder, capsys, monkeypatch):
    """As of a fit: in one line, each sentence with one stop."""

    def fail(*_, **__):
        raise MemoryError

    def gone(reservation, _):
        reservation.ledger.path.unlink(missing_ok=True)
        raise ValueError("the ledger is gone")

    call(capsys, "ledger", "create", folder / "l.db", "--dataset", "d", "--cap", "50")
    first = ["fit", folder / "data.csv", *TASK[:-2], *GOAL, *keep(folder), "--output", folder / "first.json"]
    assert call(capsys, *first, "--max-epsilon", "20").status == 0
    monkeypatch.setattr("expost.search.kept_path_refinement.certify_from", fail)
    monkeypatch.setattr(Reservation, "settle", gone)
    opened = ["--path", folder / "kept", "--key", folder / "curator.key", "--ledger", folder / "l.db", "--dataset", "d"]
    said = call(capsys, "refine", folder / "first.json", *opened, "--max-epsilon", "20", "--excess-risk", "0.004")
    assert said.status == 1
    assert "expost: the search was stopped (MemoryError) after it had begun: " in said.err
    assert "and the release says so. the ledger is gone. Nothing is charged for it there: keep the release" in said.err
