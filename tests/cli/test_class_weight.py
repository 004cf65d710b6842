"""Weights of labels from the command line."""

from __future__ import annotations

import json
import shlex
import time

import numpy as np
import pyarrow as pa
import pytest

from expost import Release
from expost.cli.options import _weights, class_weight_option
from tests.cli.helpers import call, write

SCHEMA = 'target = "pay"\nclasses = ["<=50K", ">50K, rare"]\n[columns]\nage = { bounds = [17, 90] }\n'
WEIGHTS = ["--class-weight", "<=50K=1,>50K, rare=4"]
GOAL = ["--recall", "0.5", "--precision", "0.2"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    rng = np.random.default_rng(0)
    age = rng.uniform(17, 90, 20_000)
    pay = np.where(age + rng.normal(0, 10, 20_000) > 80, ">50K, rare", "<=50K")
    schema = folder / "pay.toml"
    schema.write_text(SCHEMA)
    table = pa.table({"age": age, "pay": pay, "sum": age})
    return write(folder, "parquet", table), schema


def test_fit_refine_and_report(files, tmp_path, capsys):
    data, schema = files
    first, second, report = (tmp_path / name for name in ("first.json", "second.json", "report.html"))
    fit = ["fit", data, "--schema", schema, *GOAL, "--seed", "1", "--output", first, "--report", report]
    said = call(capsys, *fit, *WEIGHTS)
    assert said.status == 0, said.err
    sentence = "a row of >50K, rare counts 4 times one of <=50K in the loss that was minimised"
    assert sentence in " ".join(said.out.split())
    assert "counts 4 times" in report.read_text(encoding="utf-8")
    assert Release.from_json(first.read_text()).parameters["class_weights"] == (0.25, 1.0)
    stricter = ["refine", first, data, "--recall", "0.6", "--precision", "0.25", "--seed", "1", "--output", second]
    said = call(capsys, *stricter)
    assert said.status == 0, said.err
    assert Release.from_json(second.read_text()).parameters["class_weights"] == (0.25, 1.0)
    said = call(capsys, "predict", second, data)
    assert said.status == 0, said.err


def test_a_ledger_is_charged(files, tmp_path, capsys):
    data, schema = files
    ledger = tmp_path / "budget.db"
    assert call(capsys, "ledger", "create", ledger, "--dataset", "pay", "--cap", "9").status == 0
    booked = ["--ledger", ledger, "--dataset", "pay", "--output", tmp_path / "booked.json"]
    said = call(capsys, "fit", data, "--schema", schema, *GOAL, *WEIGHTS, *booked)
    assert said.status in (0, 5), said.err
    paid = json.loads((tmp_path / "booked.json").read_text())["epsilon"] if said.status == 0 else None
    shown = call(capsys, "ledger", "show", ledger)
    assert shown.status == 0
    assert paid is None or f"{paid:.3g}"[:4] in shown.out


@pytest.mark.parametrize("delta", [[], ["--delta", "1e-6"]])
def test_plan_prices_the_fit_with_its_weights_and_names_them(files, capsys, delta):
    _, schema = files
    asked = ["plan", schema, "--rows", "20000", *GOAL, "--worlds", "3", *delta]
    plain, said = call(capsys, *asked, "--json"), call(capsys, *asked, *WEIGHTS, "--json")
    assert (plain.status, said.status) == (0, 0), said.err
    epsilons = [json.loads(each.out)["goals"] for each in (plain, said)]
    assert epsilons[0] != epsilons[1]
    printed = call(capsys, *asked, *WEIGHTS).out
    assert "--class-weight '<=50K=1,>50K, rare=4'" in printed


def test_explore_prices_the_same_and_its_command_names_them(files, tmp_path, capsys):
    _, schema = files
    page = tmp_path / "page.html"
    wanted = ["explore", schema, *GOAL, *WEIGHTS, "--worlds", "2", "--no-open", "--output", page]
    said = call(capsys, *wanted)
    assert said.status == 0, said.err
    text = page.read_text(encoding="utf-8")
    escaped = " --class-weight '\\u003c=50K=1,\\u003e50K, rare=4'"
    assert f'"option":"{escaped}"' in text
    assert "${DATA.option}" in text


CLASSES = ["--target", "pay", "--task", "classification", "--classes", "<=50K", ">50K, rare", "--columns", "age"]
NUMBERS = ["--target", "sum", "--task", "regression", "--target-bounds", "0", "90", "--columns", "age"]


def test_without_a_schema(files, tmp_path, capsys):
    data, _ = files
    fit = ["fit", data, *CLASSES, "--bounds", "0", "90", *GOAL, *WEIGHTS, "--seed", "1", "--json"]
    said = call(capsys, *fit)
    assert said.status == 0, said.err
    assert Release.from_json(said.out).parameters["class_weights"] == (0.25, 1.0)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("balanced", "'balanced' would be read off the rows"),
        ("yes", "is not a positive weight for each label, such as no=1,yes=5"),
        ("<=50K=0,>50K, rare=1", "is not a positive weight"),
        ("<=50K=-1", "is not a positive weight"),
        ("<=50K=inf", "is not a positive weight"),
        ("<=50K=nan", "is not a positive weight"),
        ("<=50K=1,<=50K=2", "is not a positive weight"),
        ("a=1,b=2,c=3", "names 'a'; the labels are '<=50K' and '>50K, rare'"),
        ("maybe=2", "--class-weight names 'maybe'; the labels are '<=50K' and '>50K, rare'"),
        ("<=50K=1e-60", "--class-weight of '<=50K' must lie between"),
    ],
)
def test_mistakes(files, capsys, stated, message):
    data, schema = files
    said = call(capsys, "fit", data, "--schema", schema, *GOAL, "--class-weight", stated)
    assert said.status == 2
    assert message in said.err
    assert "Nothing was spent" in said.err
    assert said.out == ""


def test_weights_are_for_labels(files, tmp_path, capsys):
    data, schema = files
    numbers = tmp_path / "sum.toml"
    numbers.write_text('target = "sum"\ntarget_bounds = [0, 90]\n[columns]\nage = { bounds = [17, 90] }\n')
    for wrong in (
        ["fit", data, "--schema", numbers, "--r2", "0.5", *WEIGHTS],
        ["fit", data, *NUMBERS, "--bounds", "0", "90", "--r2", "0.5", *WEIGHTS],
        ["plan", numbers, "--rows", "900", *WEIGHTS],
        ["plan", schema, "--rows", "900", "--excess-risk", "0.1", *WEIGHTS],
    ):
        said = call(capsys, *wrong)
        assert (said.status, said.out) == (2, "")
        assert "--class-weight is " in said.err


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("yes=5,no=1", {"yes": 5.0, "no": 1.0}),
        ("1=2", {"1": 2.0}),
        (" a = b = 3 , c=1e-3", {"a = b": 3.0, "c": 0.001}),
        ("<=50K=1,>50K=5", {"<=50K": 1.0, ">50K": 5.0}),
        ("a,b=5,c=1", {"a,b": 5.0, "c": 1.0}),
    ],
)
def test_labels_may_have_commas_and_equals_signs(text, weights):
    assert _weights(text) == weights
    assert class_weight_option(weights).startswith(" --class-weight ")
    assert class_weight_option(None) == ""


def test_a_label_that_begins_with_a_dash(capsys, tmp_path):
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 1, 20_000)
    sign = np.where(age + rng.normal(0, 0.1, 20_000) > 0.6, "1", "-1")
    data, schema = write(tmp_path, "parquet", pa.table({"age": age, "sign": sign})), tmp_path / "sign.toml"
    schema.write_text('target = "sign"\nclasses = ["-1", "1"]\n[columns]\nage = { bounds = [0, 1] }\n')
    asked = ["--schema", schema, "--error-rate", "0.3", "--seed", "1", "--json"]
    option = shlex.split(class_weight_option({"-1": 1.0, "1": 4.0}))  # as plan prints it
    said = call(capsys, "fit", data, *asked, *option)
    assert said.status == 0, said.err
    assert Release.from_json(said.out).parameters["class_weights"] == (0.25, 1.0)


def test_spaces_are_read_once(files, capsys):
    data, schema = files
    began = time.perf_counter()
    said = call(capsys, "fit", data, "--schema", schema, *GOAL, "--class-weight", f"a={' ' * 2_000}b,")
    assert said.status == 2
    assert "is not a positive weight" in said.err
    assert time.perf_counter() - began < 5.0


@pytest.mark.parametrize("labels", [None, [1, "b"]])
def test_a_report_says_what_a_file_says_of_weights(files, tmp_path, capsys, labels):
    data, _ = files
    fit = ["fit", data, *CLASSES, "--bounds", "0", "90", *GOAL, *WEIGHTS, "--seed", "1", "--json"]
    edited = json.loads(call(capsys, *fit).out)
    edited["parameters"]["class_weights"] = [0.25, 0.25]
    if labels is not None:
        edited["parameters"]["classes"] = labels
    release, page = tmp_path / "edited.json", tmp_path / "page.html"
    release.write_text(json.dumps(edited))
    said = call(capsys, "report", release, "--output", page)
    assert said.status == 0, said.err
    assert "counts 1 times" in page.read_text(encoding="utf-8")
