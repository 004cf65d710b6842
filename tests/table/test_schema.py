"""The public description of a table: every mistake is named, and what is written is what is read."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

from expost import Schema
from expost.table.kinds import Boolean, Categorical, Numeric

GOOD = {
    "target": "income",
    "classes": ["<=50K", ">50K"],
    "missing": ["", "?"],
    "columns": {
        "age": {"bounds": [17, 90]},
        "capital-gain": {"bounds": [0, 100000], "transform": "log1p"},
        "workclass": {"categories": ["Private", "State-gov"], "other": True},
        "member": {"boolean": True},
    },
}


def changed(**changes):
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not None}


def column(**options):
    return changed(columns={"age": options})


def test_from_dict():
    schema = Schema.from_dict(GOOD)
    assert schema.task == "classification"
    assert schema.columns["age"] == Numeric((17, 90))
    assert schema.columns["workclass"] == Categorical(["Private", "State-gov"], other=True)
    assert schema.columns["member"] == Boolean()
    assert schema.missing == ("", "?")


def test_regression():
    assert Schema.from_dict(changed(classes=None, target_bounds=[0, 9])).task == "regression"


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (changed(clases=["a", "b"]), "unknown key 'clases' in the schema; did you mean 'classes'"),
        (changed(age={"bounds": [0, 1]}), "below a line \\[columns\\]"),
        (changed(target=None), "the schema has no target; write target ="),
        (changed(columns=None), "the schema has no columns"),
        (changed(columns={}), "at least one column"),
        (changed(target=" "), "target must be the name of a column"),
        (changed(target=3), "target must be the name of a column"),
        (changed(target="age"), "column 'age' is the target"),
        (changed(classes=None), "neither of them is there: state either classes"),
        (changed(target_bounds=[0, 1]), "both are there"),
        (changed(classes=["a"]), "classes must be two labels"),
        (changed(classes=["a", " a "]), "classes: 'a' appears twice"),
        (changed(classes=[1, "1.0"]), "classes: '1.0' appears twice"),
        (changed(classes="ab"), "classes must be a list"),
        (changed(classes=["?", "b"]), "classes hold '\\?', which missing says is no value"),
        (changed(classes=None, target_bounds=[1, 0]), "target_bounds = \\[0, 1\\]"),
        (changed(missing=[None]), "missing must hold text"),
        (changed(missing=["no"]), "column 'member': a mark in missing is a word for true or false"),
        (column(), "column 'age': it says nothing of its values; write { bounds"),
        (column(bounds=[0, 1], boolean=True), "column 'age': it has bounds and boolean"),
        (column(bound=[0, 1]), "column 'age': unknown option 'bound'; did you mean 'bounds'"),
        (column(bounds=[0, 1], other=True), "other is no option beside bounds; there it may be transform or missing"),
        (column(bounds=[90, 17]), "column 'age': bounds must have the lower one first; write bounds = \\[17, 90\\]"),
        (column(bounds=[17, 17]), "bounds must not be equal"),
        (column(bounds=[17]), "bounds must be two numbers"),
        (column(bounds=["a", "b"]), "bounds must be two numbers"),
        (column(bounds=[True, 3]), "bounds must be two numbers"),
        (column(bounds=3), "bounds must be two numbers"),
        (column(bounds=[0, float("inf")]), "bounds must be finite"),
        (column(bounds=[0, float("nan")]), "bounds must be finite"),
        (column(bounds=[0, 10**400]), "bounds must be two numbers"),
        (column(bounds=[-1, 3], transform="log1p"), "needs a lower bound above -1"),
        (column(bounds=[-1, 3], transform="sqrt"), "needs a lower bound of at least 0"),
        (column(bounds=[0, 3], transform="exp"), 'transform must be "log1p" or "sqrt" or "log"'),
        (column(bounds=[0, 3], transform="log"), "needs a lower bound above 0"),
        (column(bounds=[0, 3], curve="yes"), 'curve must be true, false or "auto"'),
        (column(bounds=[0, 3], knots=1), "knots must be between 2 and 1000"),
        (column(bounds=[0, 3], knots=[0, 2, 1]), "each larger than the one before"),
        (column(bounds=[0, 3], knots=[0, 5]), "knots must lie within the bounds"),
        (column(bounds=[0, 3], steps="many"), "steps must be a whole number or a list"),
        (column(bounds=[0, 3], knots=4, steps=4), "state one of them"),
        (column(bounds=[0, 3], knots=4, curve=False), "curve = false takes none"),
        (column(bounds=[0, 3], knots=[1, 2], curve="auto"), "how many there are at most"),
        (column(bounds=["1950-01-01", "2020-13-31"]), "'2020-13-31' is no date"),
        (column(bounds=["1950-01-01", "2020-12-31"], transform="sqrt"), "a date has no transform"),
        (column(bounds=["1950-01-01", 2020]), "column 'age': bounds must be dates, and 2020 is a number"),
        (column(bounds=["1950-01-01", 1e50]), "bounds must be dates, and 1e\\+50 is a number"),
        (column(bounds=["1950-01-01", "2020-12-31"], knots=[2000, 2010]), "knots must be dates, and 2000 is a number"),
        (column(bounds=["1950-01-01", "2020-12-31"], steps=["2000-01-01", 0.5]), "steps must be dates, and 0.5 is a"),
        (column(categories=["a", "b"], ordered=1), "ordered must be true or false"),
        (column(categories=["a"], ordered=True), "needs two categories or more"),
        (changed(curves=True), 'curves must be "auto"'),
        (column(bounds=[0, 3], missing="zero"), 'missing must be "middle" or "indicator"'),
        (column(categories=[]), "categories must not be empty"),
        (column(categories="abc"), "categories must be a list"),
        (column(categories=["a", "a"]), "categories: 'a' appears twice"),
        (column(categories=[True, 1]), "categories: 1 appears twice"),
        (column(categories=[["a"]]), "categories must hold text"),
        (column(categories=["\ud800"]), "can be written to a file"),
        (column(categories=["a", "?"]), "column 'age': categories hold '\\?'"),
        (column(categories=["a"], other="yes"), "other must be true or false"),
        (column(categories=["a"], missing="other"), "needs other = true"),
        (column(boolean=False), "boolean must be true"),
        (column(bounds=[0, 1], decimal=";"), 'decimal must be "." or ","'),
        (column(bounds=["2020-01-01", "2020-12-31"], decimal=","), "a date has no decimal mark"),
        (changed(columns={"age": [0, 1]}), "column 'age': list is no description"),
        (changed(columns={"a": {"boolean": True}, " a": {"boolean": True}}), "column 'a' is described twice"),
        (changed(columns={"": {"boolean": True}}), "columns must have names"),
        ([], "must be a table"),
    ],
)
def test_mistakes(stated, said):
    with pytest.raises(ValueError, match=said):
        Schema.from_dict(stated)


def write(folder, text):
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_from_toml(tmp_path):
    text = """
        target = "income"
        classes = ["<=50K", ">50K"]
        missing = ["", "?"]
        [columns]
        age = { bounds = [17, 90] }
        capital-gain = { bounds = [0, 100000], transform = "log1p" }
        workclass = { categories = ["Private", "State-gov"], other = true }
        member = { boolean = true }
    """
    assert Schema.from_toml(write(tmp_path, text)) == Schema.from_dict(GOOD)
    assert Schema.from_toml(write(tmp_path, "\ufeff" + text)) == Schema.from_dict(GOOD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('target = "y"\n[columns]\nx = { bounds = [ , ] }', "line 3 has a blank"),
        ("target = y", "not TOML"),
        ('target = "y"\nclasses = ["a", "b"]\n[columns]\nx = { }', "schema.toml: column 'x'"),
    ],
)
def test_mistakes_in_a_file(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        Schema.from_toml(write(tmp_path, text))


def test_no_file_or_not_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="expost init"):
        Schema.from_toml(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="UTF-8"):
        Schema.from_toml(tmp_path / "latin.toml")


written = (
    st.text(min_size=1, max_size=6)
    .map(str.strip)
    .filter(bool)
    .filter(lambda text: all(not 0xD800 <= ord(letter) <= 0xDFFF for letter in text))
)
numbers = st.floats(-1e50, 1e50, allow_subnormal=False)
bounds = st.tuples(numbers, numbers).map(sorted).filter(lambda pair: pair[1] / 2 - pair[0] / 2 >= 1e-50)
numeric = st.builds(Numeric, bounds, missing=st.sampled_from(["middle", "indicator"]))
categorical = st.builds(
    Categorical, st.lists(written.map("c{}".format), min_size=1, max_size=4, unique=True), other=st.booleans()
)
kinds = numeric | categorical | st.builds(Boolean)


@given(columns=st.dictionaries(written.map("n{}".format), kinds, min_size=1, max_size=4))
def test_round_trip(tmp_path_factory, columns):
    schema = Schema("target", columns, classes=(0, True))
    read = Schema.from_toml(write(tmp_path_factory.mktemp("round"), schema.to_toml()))
    assert read == schema
    assert read.fingerprint() == schema.fingerprint()
    assert list(read.columns) == list(columns)


def test_fingerprint_knows_the_order_and_every_value():
    base = Schema.from_dict(GOOD)
    turned = Schema.from_dict(changed(columns=dict(reversed(GOOD["columns"].items()))))
    other = Schema.from_dict(changed(missing=[""]))
    assert len({base.fingerprint(), turned.fingerprint(), other.fingerprint()}) == 3
    assert base != turned
    assert hash(base) == hash(Schema.from_dict(copy.deepcopy(GOOD)))


def test_can_be_copied_and_not_changed():
    schema = Schema.from_dict(GOOD)
    assert copy.deepcopy(schema) == schema == pickle.loads(pickle.dumps(schema))
    with pytest.raises(TypeError):
        schema.columns["age"] = Boolean()  # type: ignore[index]


def test_labels_of_numpy():
    assert Categorical(np.array(["a", "b"])).categories == ("a", "b")
    assert Categorical(np.array([1, 2])).to_dict() == {"categories": [1, 2]}
