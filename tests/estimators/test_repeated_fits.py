"""Unseeded fits of clones, as scikit-learn's tools make them, warn once that each spends; by clones alone, not rows."""

from __future__ import annotations

import multiprocessing
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from expost import AccuracyFirstModel, AccuracyFirstRidge, ErrorRate, Ledger, PublicBoundsScaler, budget
from expost.exceptions import RepeatedFitsWarning
from expost.noise.source import SecureSource, SeededSource

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(400, 2))
Y = X @ [0.5, -0.3]
TABLE = {"a": X[:, 0], "b": X[:, 1]}
FRAME = pd.DataFrame(TABLE)
LABELS = np.where(Y > 0, "yes", "no")
SCHEMA = {
    "target": "answer",
    "classes": ["no", "yes"],
    "columns": {"a": {"bounds": [-1, 1]}, "b": {"bounds": [-1, 1]}},
}


def ridge(**changes):
    """Return an estimator whose fit costs ``max_epsilon``, unseeded."""
    return AccuracyFirstRidge(**{"method": "fixed", "max_epsilon": 0.25, "bounds": 1.0, "target_bound": 1.0, **changes})


def told(work) -> list[str]:
    """Return what is said of repeated fits."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", RepeatedFitsWarning)
        work()
    return [str(each.message) for each in noted if each.category is RepeatedFitsWarning]


def test_cross_validation_says_once_what_it_spends():
    (said,) = told(lambda: cross_val_score(ridge(), X, Y, cv=4))
    assert "each may spend up to epsilon = 0.25, five of them up to 1.25" in said
    assert "ledger=" in said
    assert "expost.budget" in said
    with pytest.warns(RepeatedFitsWarning) as noted:
        cross_validate(ridge(), X, Y, cv=2)
    assert noted[0].filename == __file__  # at the caller's line, not at one of scikit-learn's


@pytest.mark.parametrize(
    "make",
    [
        lambda **seed: GridSearchCV(ridge(**seed), {"regularization": [0.1, 1.0]}, cv=2),
        lambda **seed: make_pipeline(PublicBoundsScaler(bounds=1.0), ridge(**seed)),
        lambda **seed: TransformedTargetRegressor(ridge(**seed)),
    ],
    ids=["searches", "pipelines", "clones of clones"],
)
def test_the_tools_of_scikit_learn(make):
    assert len(told(lambda: cross_val_score(make(), X, Y, cv=3))) == 1
    assert told(lambda: cross_val_score(make(random_state=0), X, Y, cv=3)) == []


def test_a_model_of_a_table():
    def model(**options):
        return AccuracyFirstModel(SCHEMA, ErrorRate(0.4), failure_probability=1e-6, max_epsilon=100.0, **options)

    (said,) = told(lambda: cross_val_score(model(), FRAME, LABELS, cv=3))
    assert "clones of one AccuracyFirstModel" in said
    assert "up to epsilon = 100, five of them up to 500" in said
    assert told(lambda: cross_val_score(model(random_state=0), FRAME, LABELS, cv=3)) == []


def test_what_somebody_counts_or_nobody_pays_for_is_let_be(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=20.0)
    for model in (ridge(ledger=ledger), ridge(random_state=0), ridge(random_state=SeededSource(0))):
        assert told(lambda model=model: cross_val_score(model, X, Y, cv=3)) == []
    assert len(ledger.budget.entries) == 3
    table = {**TABLE, "answer": LABELS}
    model = AccuracyFirstModel(SCHEMA, ErrorRate(0.4), failure_probability=1e-6, max_epsilon=2.0, delta=1e-6)
    with budget(10.0, 1e-6):
        assert told(lambda: [clone(model).fit(table) for _ in range(2)]) == []
    assert len(told(lambda: [clone(model).fit(table) for _ in range(2)])) == 1


def test_one_fit_is_one_fit_however_often_it_was_cloned():
    model = ridge()
    assert told(lambda: clone(clone(model)).fit(X, Y)) == []
    assert told(lambda: model.fit(X, Y).set_params(max_epsilon=0.5).fit(X, Y)) == []
    assert told(lambda: TransformedTargetRegressor(TransformedTargetRegressor(ridge())).fit(X, Y)) == []
    assert len(told(lambda: clone(model).fit(X, Y))) == 1  # another one
    assert told(lambda: clone(model).fit(X, Y)) == []


def test_nothing_of_the_rows_is_looked_at_and_nothing_is_spent_before(monkeypatch):
    drawn = []
    monkeypatch.setattr(SecureSource, "words", lambda *_: drawn.append(True))
    model = ridge()
    clone(model)
    with pytest.raises(RepeatedFitsWarning):  # warnings are errors here
        clone(model).fit(object(), object())
    assert drawn == []


def second_clone():
    model = ridge()
    clone(model)
    return clone(model)


def told_of(pickled: bytes) -> int:
    return len(told(lambda: [pickle.loads(pickled).fit(X, Y) for _ in range(3)]))


def test_other_threads_and_processes():
    with parallel_config(backend="threading", n_jobs=2):
        assert len(told(lambda: cross_val_score(ridge(), X, Y, cv=4))) == 1
    pickled = pickle.dumps(second_clone())
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(told_of, pickled).result() == 1
    assert told_of(pickled) == 1  # nobody knows here what was said there
    assert told_of(pickled) == 0
