"""The exported pipeline predicts what the release does, and is nobody's but scikit-learn's."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from expost import Release
from expost.exceptions import InvalidRows
from expost.release.scoring import scorer_of
from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation
from expost.table.schema import Schema
from tests.release.model_helpers import AMOUNT, LABELS, released, table

TINY = 2.0**-18  # a vectorised logarithm may round otherwise, which moves a value by one of 2²⁰ units


def frame(n: int = 400, seed: int = 1) -> pd.DataFrame:
    return pd.DataFrame(table(n, seed), dtype=object)


def differing(release: Release, model: Pipeline, rows: pd.DataFrame) -> int:
    """Count rows that the two predict differently, other than by rounding."""
    ours, theirs = release.predict(rows, on_invalid="clip"), model.predict(rows)
    if ours.dtype.kind == "f":
        return int((np.abs(ours - theirs) > 80 * TINY).sum())
    sure = np.abs(scorer_of(release).margins(rows, "clip")) > TINY
    return int((ours != theirs)[sure].sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("schema", [LABELS, AMOUNT], ids=["labels", "amount"])
def test_the_same_predictions(schema, seed):
    release = released(schema, seed)
    assert differing(release, release.to_sklearn(), frame(seed=seed)) == 0


def test_the_same_probabilities_and_none_where_there_are_none():
    rows, release = frame(), released(LABELS, largest_odds=1.0)
    ours = release.predict_proba(rows, on_invalid="clip")
    assert release.to_sklearn().predict_proba(rows) == pytest.approx(ours, abs=TINY)
    assert not hasattr(released(LABELS).to_sklearn(), "predict_proba")


def test_text_with_decimal_commas():
    stated = LABELS.to_dict()
    stated["columns"]["age"]["decimal"] = ","
    release, rows = released(Schema.from_dict(stated)), frame()
    model = release.to_sklearn()
    assert differing(release, model, rows) == 0
    written = rows.assign(age=[f"{cell}".replace(".", ",") if type(cell) is float else cell for cell in rows["age"]])
    assert (written["age"] != rows["age"]).mean() > 0.5
    assert (model.predict(written) == model.predict(rows)).all()
    assert differing(release, model, written) == 0
    # which is said of it: text with a point is a number there, and none to the release
    one, pointed = rows[:1].assign(age=[40.5]), rows[:1].assign(age=["40.5"])
    assert (model.predict(pointed) == model.predict(one)).all()
    with pytest.raises(InvalidRows, match=r"not numbers in column\(s\) age"):
        release.predict(pointed)


def test_columns_of_one_type_and_other_frames():
    columns = {
        "age": [1.0, 200.0, np.nan],
        "income": [5, 6, 7],
        "area": [10, 20, 30],
        "sector": ["public", None, "x"],
        "town": ["Bern", "Rome", None],
        "heating": ["gas", "coal", None],
        "code": [1, 2, 3],
        "level": [1, 2, 3],
        "member": [True, False, True],
        "owner": ["yes", "no", None],
    }
    release = released(AMOUNT)
    model, ours = release.to_sklearn(), release.predict(columns, on_invalid="clip")
    assert model.predict(pd.DataFrame(columns)) == pytest.approx(ours, abs=1e-3)
    assert model.predict(pl.DataFrame(columns)) == pytest.approx(ours, abs=1e-3)
    assert model.predict(pd.DataFrame(columns).iloc[:, ::-1].assign(more=1)) == pytest.approx(ours, abs=1e-3)


def test_a_wrong_bound_is_noticed():
    release = released(AMOUNT)
    model = release.to_sklearn()
    scalers = [
        step
        for _, pipeline, _ in model.named_steps["encode"].transformers_
        if isinstance(pipeline, Pipeline)
        for _, step in pipeline.steps
        if isinstance(step, StandardScaler)
    ]
    assert len(scalers) == 3
    scalers[1].mean_ = scalers[1].mean_ * 1.01
    assert differing(release, model, frame()) > 100


def numbers(**options) -> Release:
    settings = {"bounds": Bounds((0.0, -5.0), (10.0, 5.0)), "feature_bound": 2.0, "target": (-4.0, 9.0), **options}
    recipe = Preparation(intercept_weight=0.25, n_columns=2, **settings)
    theta = np.array([1.5, -2.0, 0.5])
    coef, intercept = recipe.to_caller_units(theta)
    labels = {"classes": [0, 1], "loss": "logistic"} if recipe.target is None else {}
    return Release(
        status="released",
        method="fixed",
        epsilon_generation=1.0,
        hypothesis=theta,
        preparation=recipe.describe(),
        parameters={"columns": ["x0", "x1"], "coef": coef, "intercept": intercept, **labels},
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"feature_bound": 0.5}, {"bounds": None, "feature_bound": 3.0}, {"target": None}],
    ids=["bounds", "rows shrunk", "no bounds", "labels"],
)
def test_plain_columns(options):
    release = numbers(**options)
    rows = np.random.default_rng(0).normal(2, 8, (300, 2))
    rows[::7, 0], rows[::11, 1], rows[::13, 0], rows[5] = np.nan, np.inf, -np.inf, [5.0, 0.0]
    model, ours = release.to_sklearn(), release.predict(rows, on_invalid="clip")
    assert model.predict(rows) == pytest.approx(ours, abs=1e-4)
    assert len(set(ours.tolist())) > 1
    if "target" in options:
        assert model.predict_proba(rows) == pytest.approx(release.predict_proba(rows, on_invalid="clip"), abs=1e-5)


def test_named_plain_columns_are_found_by_name():
    release = numbers().with_details(columns=("a", "b"))
    rows = pd.DataFrame({"b": [1.0, 2.0], "a": [3.0, 4.0]})
    assert release.to_sklearn().predict(rows) == pytest.approx(release.predict(rows), abs=1e-5)


def parts(model: object) -> set[str]:
    """Return the packages of everything a pickle refers to."""
    import pickletools

    names = [arg for op, arg, _ in pickletools.genops(pickle.dumps(model, protocol=0)) if op.name == "GLOBAL"]
    return {name.split()[0].split(".")[0] for name in names}


def test_the_pickle_refers_to_nobody_else():
    for model in (
        released(LABELS).to_sklearn(),
        released(LABELS, largest_odds=4.0).to_sklearn(),
        numbers().to_sklearn(),
    ):
        assert isinstance(model, BaseEstimator)
        assert parts(model) <= {"sklearn", "numpy", "copy_reg", "copyreg", "_codecs", "builtins", "__builtin__"}


ALONE = """
import pickle, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "expost":
            raise ImportError("expost is not here")
sys.meta_path.insert(0, Refuse())
try:
    import expost
except ImportError:
    pass
else:
    raise SystemExit("expost could be imported")
model, rows = pickle.load(sys.stdin.buffer)
answers = model.predict(rows)
assert not [name for name in sys.modules if name.split(".")[0] == "expost"]
sys.stdout.buffer.write(pickle.dumps(answers))
"""


def test_it_scores_where_this_library_cannot_be_imported():
    release, rows = released(LABELS), frame(50)
    sent = pickle.dumps((release.to_sklearn(), rows))
    done = subprocess.run([sys.executable, "-c", ALONE], input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert pickle.loads(done.stdout).tolist() == release.predict(rows, on_invalid="clip").tolist()


def test_classes_keep_their_order_and_type():
    schema = {"target": "y", "classes": [True, False], "columns": {"age": {"bounds": [0, 100]}}}
    release = released(Schema.from_dict(schema))
    rows = pd.DataFrame({"age": np.linspace(0, 100, 50)})
    assert release.to_sklearn().predict(rows).tolist() == release.predict(rows).tolist()
    assert {True, False} >= set(release.predict(rows).tolist())
