"""Files from strangers: a release is checked before it is used, what is printed moves no cursor, labels stay labels."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from expost import Ledger, Release
from expost.cli import main
from expost.release.page import report
from expost.release.stored import DEEPEST, LONGEST
from expost.table.schema import Schema
from tests.cli.helpers import REGRESSION, call, write
from tests.helpers import tool
from tests.release.model_helpers import LABELS, released

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
EVIL = "y\x1b[2Jz\u202e\x9b1m\nforged: 0.001"


def deep(levels: int):
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


WRONG = {
    "a list for a name": ("target", ["x", 1]),
    "a line in an id": ("id", "a1f\n2026-01-01  settled"),
    "an escape in an id": ("id", "a\x1b[2J"),
    "a long id": ("id", "a" * 101),
    "a number for a name": ("columns", [1, 2]),
    "a level below the first": ("level", -1),
    "a level that is true": ("level", True),
    "text that is no truth": ("secure", "yes"),
    "a number for versions": ("versions", {"expost": 3}),
    "a text for a list": ("claims", "claim"),
    "another noise": ("noise", "none"),
    "labels in another order": ("parameters.classes", ["yes", "no"]),
    "three labels": ("parameters.classes", ["no", "yes", "perhaps"]),
    "no interval": ("parameters.noise_reach", "far"),
    "rows that are text": ("parameters.n", "1000"),
    "negative rows": ("parameters.n", -4),
    "a reason that is a number": ("parameters.reasons", [1]),
    "a coefficient more": ("parameters.coef", [1.0] * 40),
    "an increment that is text": ("parameters.continues", "a1f", "parameters.epsilon_increment", "x"),
    "a parameter that is text": ("hypothesis", ["1.0"] * 24),
    "too few parameters": ("hypothesis", [1.0, 2.0]),
    "one number": ("hypothesis", 1.0),
    "a matrix": ("hypothesis", [[1.0, 2.0]]),
    "a parameter beyond numbers": ("hypothesis", [1e200] * 24),
    "a schema without columns": ("preparation.schema.columns", {}),
    "a schema that is text": ("preparation.schema", "survey.toml"),
    "a column of no kind": ("preparation.schema.columns.age", {"bounds": ["a", "b"]}),
    "another target": ("preparation.schema.target", "z"),
    "an unknown goal's number": ("promise.goal", "R²", "promise.at_most", "x"),
    "a promise with more": ("promise.more", 1),
    "deep lists": ("parameters.more", deep(DEEPEST + 1)),
    "deeper lists": ("parameters.more", deep(900)),
    "a long text": ("parameters.more", "x" * (LONGEST + 1)),
    "a loss that no float holds": ("epsilon_generation", 10**400),
    "a label that no float holds": ("parameters.classes", [0, 10**400]),
    "half a character": ("promise.statement", "\ud800"),
}


def edited(path, *changes):
    raw = json.loads(released(LABELS).to_json())
    for place, value in zip(changes[::2], changes[1::2], strict=True):
        *outer, last = place.split(".")
        home = raw
        for key in outer:
            home = home[key]
        home[last] = value
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv"
    text = "age,income,area,sector,town,heating,code,level,member,owner\n30,1000,20,public,Bern,gas,1,2,yes,no\n"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("what", list(WRONG))
def test_an_edited_release_is_a_mistake_in_every_command(what, tmp_path, data, capsys):
    book = tmp_path / "book.db"
    Ledger.create(book, "d", cap=10.0)
    path = edited(tmp_path / "r.json", *WRONG[what])
    for command in (
        ["predict", path, data],
        ["export", path, "--output", tmp_path / "m.joblib"],
        ["report", path],
        ["refit", path],
        ["refine", path, "--path", data, "--key", data, "--excess-risk", "0.1"],
        ["explore", "--release", path, "--no-open"],
        ["ledger", "book", book, path],
        ["ledger", "settle", book, "a", "--release", path, "--reason", "x"],
    ):
        said = call(capsys, *command)
        assert (said.status, said.out, said.err.count("\n")) == (2, "", 1), command
        assert "not a release" in said.err
        assert not CONTROL.search(said.err.removesuffix("\n"))
    assert Ledger(book, "d").budget.entries == ()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["book.db", "r.json", "rows.csv"]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": 1, "a": 2}', '{"format": NaN}', '{"format": 1e999}', "\x00", "7" * 5000]
)
def test_texts_that_are_no_releases(text):
    with pytest.raises(ValueError, match="not a release"):
        Release.from_json(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"age": [0, 1' + "0" * 400 + "]}", '{"age": 3}', "\x00"])
def test_bounds_from_a_file(text, tmp_path, capsys):
    (tmp_path / "bounds.json").write_text(text)
    task = ["--target", "spend", "--task", "regression", "--target-bounds", "0", "1000", "--columns", "age"]
    said = call(
        capsys, "fit", write(tmp_path), *task, "--bounds-file", tmp_path / "bounds.json", "--excess-risk", "0.4"
    )
    assert (said.status, said.out) == (2, "")
    assert "must hold" in said.err


def test_every_kind_of_release_is_read_back():
    """Also one of a table of the same columns whose names and labels are odd."""
    odd = Schema.from_dict({"target": EVIL, "classes": ["=cmd()", "\x07"], "columns": {"a\nb": {"boolean": True}}})
    release = released(odd)
    assert Release.from_json(release.to_json()) == release


def test_names_and_labels_do_not_reach_a_terminal(tmp_path, capsys):
    """Through ``check``, ``plan``, ``fit``, ``report`` and a ledger, on both streams, in lines of their own nowhere."""
    columns = {"a\x1b[31m\nx": {"bounds": [0, 1]}, "b": {"categories": ["\x1b]0;title\x07", "\u202eab"]}}
    schema = Schema.from_dict({"target": EVIL, "classes": ["no\r", "yes\x1b[8m"], "columns": columns})
    (tmp_path / "s.toml").write_text(schema.to_toml(), encoding="utf-8")
    rng = np.random.default_rng(0)
    x, labels = rng.random(3000), np.array(["no\r", "yes\x1b[8m"])
    table = pa.table([x, np.full(3000, "\u202eab"), labels[(x > 0.5).astype(int)]], names=[*columns, EVIL])
    data, stated = tmp_path / "\x1b[1mdata.parquet", ["--schema", tmp_path / "s.toml"]
    pa.parquet.write_table(table, data)
    out, goal = tmp_path / "\x9bout.json", ["--error-rate", "0.4", "--seed", "1", "--max-epsilon", "100"]
    for expected, command in (
        (0, ["check", data, *stated]),
        (0, ["plan", tmp_path / "s.toml", "--rows", "400", "--worlds", "2", "--error-rate", "0.4"]),
        (0, ["fit", data, *stated, *goal, "--output", out]),
        (0, ["fit", data, *stated, *goal, "--json"]),
        (0, ["report", out]),
        (0, ["predict", out, data, "--output", tmp_path / "p\n.csv"]),
        (2, ["predict", out, data, "--keep", "none\x1b"]),
        (2, ["fit", data, *stated, "--error-rate", "0.4", "--columns", "\x1b"]),
        (2, ["fit", "\x1bnone.csv", *stated, "--error-rate", "0.4"]),
        (2, ["check", data, *stated, "--\x1bnone\n"]),
        (2, ["\x1b"]),
    ):
        said = call(capsys, *command)
        assert said.status == expected, (command, said)
        for text in (said.out, said.err):
            assert not CONTROL.search(text), command
            assert not any(line.startswith("forged") for line in text.splitlines())
        if "--json" in command:
            assert Release.from_json(said.out).target == EVIL
    page = (tmp_path / "\x9bout.html").read_text(encoding="utf-8")
    assert not CONTROL.search(page)
    assert "\\u202e" in page


def test_a_name_with_a_brace_is_not_json(tmp_path, monkeypatch):
    """On a terminal that does not know every letter."""
    Ledger.create(tmp_path / "book.db", "{d}", cap=1.0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert main(["ledger", "show", str(tmp_path / "book.db")]) == 0
    assert sys.stdout.buffer.getvalue().startswith(b"{d} * one row replaced")


def test_print_in_python_is_as_careful():
    release = released(
        Schema.from_dict({"target": EVIL, "classes": ["a\x1b", "b"], "columns": {"\x9b": {"boolean": True}}})
    )
    for text in (str(release), release._repr_html_(), report(release)):
        assert not CONTROL.search(text)
        assert not any(line.startswith("forged") for line in text.splitlines())


def test_predictions_hold_labels_exactly_but_on_a_terminal(tmp_path, capsys, monkeypatch):
    """A program has to find the labels that the schema states: one that looks like a formula is not changed."""
    labels = ["=cmd()", "+\x1b[2J"]
    schema = Schema.from_dict({"target": "y", "classes": labels, "columns": {"a": {"boolean": True}}})
    (tmp_path / "r.json").write_text(released(schema).to_json(), encoding="utf-8")
    (tmp_path / "rows.csv").write_text("a,id\nyes,=1+1\nno,@x\n", encoding="utf-8")
    command = ["predict", tmp_path / "r.json", tmp_path / "rows.csv", "--keep", "id"]
    expected = released(schema).predict({"a": ["yes", "no"]}).tolist()
    printed = call(capsys, *command).out
    assert call(capsys, *command, "--output", tmp_path / "out.csv").status == 0
    for text in (printed, (tmp_path / "out.csv").read_text(encoding="utf-8")):
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["y"] for row in rows] == expected
        assert [row["id"] for row in rows] == ["=1+1", "@x"]
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    assert not CONTROL.search(call(capsys, *command).out)


@pytest.fixture(scope="module")
def campaign():
    return tool("fuzz")


def test_a_sample_of_the_campaign(campaign, tmp_path):
    """``make fuzz`` runs twenty thousand of these."""
    campaign.material(tmp_path)
    many = {"releases": 40, "evaluations": 12, "projects": 8, "sealed": 4, "doors": 15}
    many |= {"ledgers": 12, "schemas": 15, "csv": 15, "parquet": 8, "arguments": 12}
    assert list(many) == list(campaign.KINDS)
    found = [
        campaign.run_chunk(1, kind, range(number), str(tmp_path), limited=False)[0] for kind, number in many.items()
    ]
    assert found == [[]] * len(many)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["preparation"].pop("feature_bound"),
        lambda raw: raw["parameters"]["statistics"].update(split=0.0),
        lambda raw: raw["parameters"]["statistics"].update(noise=1e200),
        lambda raw: raw["parameters"]["statistics"]["first"].__setitem__(0, 1.7e308),
        lambda raw: raw["parameters"].update(more=[[]] * 200_000),
    ],
)
def test_numbers_and_sizes_that_nothing_can_be_made_of_are_refused(tmp_path, capsys, change):
    made = tmp_path / "release.json"
    data = write(tmp_path)
    fit = ["fit", data, *REGRESSION, "--excess-risk", "0.05", "--regularization", "1", "--perturbation", "covariance"]
    assert call(capsys, *fit, "--keep-statistics", "--max-epsilon", "inf", "--seed", "1", "--output", made).status == 0
    raw = json.loads(made.read_text(encoding="utf-8"))
    change(raw)
    made.write_text(json.dumps(raw), encoding="utf-8")
    said = call(capsys, "refit", made, "--regularization", "0.5")
    assert (said.status, said.err.count("\n")) == (2, 1), said.err


def test_a_schema_of_dots_or_of_many_bytes_is_refused_at_once(tmp_path, capsys):
    schema = tmp_path / "s.toml"
    for text in (".".join("a" * 20_000) + " = 1\n", "# " + "x" * (17 << 20)):
        schema.write_text(text, encoding="utf-8")
        said = call(capsys, "plan", schema, "--rows", "100", "--error-rate", "0.2")
        assert (said.status, "32 parts" in said.err or "bytes" in said.err) == (2, True)
    project = tmp_path / "p.toml"
    project.write_text(".".join("a" * 20_000) + " = 1\n", encoding="utf-8")
    made = tmp_path / "release.json"
    made.write_text(released(LABELS).to_json(), encoding="utf-8")
    said = call(capsys, "report", made, "--project", project)
    assert (said.status, "32 parts" in said.err) == (2, True)
    project.write_bytes(b"\xef\xbb\xbfpurpose = 'plans'\n")  # as editors of Windows mark UTF-8
    assert call(capsys, "report", made, "--project", project).status == 0


def test_names_of_any_length_and_number_take_no_time_and_no_screens(tmp_path, capsys):
    """A name of 200,000 letters took minutes, and 100,000 names were all listed."""
    name = "n" * 200_000
    schema, data = tmp_path / "s.toml", tmp_path / "d.csv"
    schema.write_text(f'target = "y"\ntarget_bounds = [0, 1]\n[columns]\n"{name}" = {{ bounds = [0, 1] }}\n')
    data.write_text(f"{name},y\n1,1\n")
    assert call(capsys, "check", data, "--schema", schema).status == 0
    data.write_text(",".join(f"c{k}" for k in range(100_000)) + ",y\n")
    schema.write_text('target = "y"\ntarget_bounds = [0, 1]\n[columns]\nage = { bounds = [0, 1] }\n')
    said = call(capsys, "check", data, "--schema", schema)
    assert (said.status, said.err.endswith("and 99,981 more\n"), len(said.err) < 400) == (2, True, True), said.err


@pytest.mark.parametrize("name", ["key", "kept", "ledger.db", "data.csv", "release.json"])
def test_no_file_that_is_read_is_written_over(tmp_path, capsys, monkeypatch, name):
    """Nor one among others in a folder, nor one that the same command writes: whatever --force says."""
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path)
    assert call(capsys, "key", "key").status == 0
    assert call(capsys, "ledger", "create", "ledger.db", "--dataset", "d", "--cap", "50").status == 0
    keep = ["--keep-path", "kept", "--key", "key", "--later", "0.02", "--max-epsilon", "50"]
    fit = ["fit", data, *REGRESSION, "--excess-risk", "0.1", "--regularization", "1", *keep, "--force"]
    books = ["--ledger", "ledger.db", "--dataset", "d"]
    if name == "kept":
        assert call(capsys, *fit, "--output", "kept").status == 2
        assert not (tmp_path / "kept").exists()
    assert call(capsys, *fit, *books, "--output", "release.json").status == 0
    before, names = (tmp_path / name).read_bytes(), sorted(path.name for path in tmp_path.iterdir())
    refine = ["refine", "release.json", "--path", "kept", "--key", "key", "--excess-risk", "0.05", "--force", *books]
    if name != "data.csv":
        assert call(capsys, *refine, "--max-epsilon", "50", "--output", name).status == 2
    other = ["fit", str(tmp_path), *REGRESSION, "--excess-risk", "0.1", "--regularization", "1", *books, "--force"]
    assert call(capsys, *other, "--output", name).status == 2
    assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_closed_streams_change_no_exit_status(tmp_path, capsys, monkeypatch, closed):
    data = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, closed, None)
    quick = ["--excess-risk", "0.45", "--regularization", "1", "--max-epsilon", "10", "--seed", "1"]
    assert main(["fit", str(data), *REGRESSION, *quick, "--output", "r.json"]) == 0
    assert Release.from_json((tmp_path / "r.json").read_text(encoding="utf-8")).status == "released"
    assert main(["fit", "nowhere.csv", *REGRESSION, *quick]) == 2
    capsys.readouterr()
    status = main(["fit", str(data), *REGRESSION, *quick, "--json"])
    out, err = capsys.readouterr()
    assert status == (1 if closed == "stdout" else 0)  # a release that is nowhere else goes where it can be read
    assert Release.from_json((err if closed == "stdout" else out).partition("\n}")[0] + "}").status == "released"
