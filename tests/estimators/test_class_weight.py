"""Public weights of labels through the doors: they reach every mechanism; goals are about rows that count alike."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from expost import (
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    ErrorRate,
    KeepPath,
    LogLoss,
    Precision,
    Recall,
    RelativeExcessRisk,
    Release,
    refine,
)
from expost.estimators import curator_view
from expost.passes.engine import LocalEngine
from expost.release import page
from expost.release.kept_path import write_key
from tests.estimators.model_helpers import AMOUNT, LABELS, table, written

HEAVY = {"high": 4, "low": 1}
WAYS = [{}, *({"delta": 1e-6, "perturbation": way} for way in ("descent", "objective", "covariance"))]
each_way = pytest.mark.parametrize("way", WAYS, ids=["pure", "descent", "objective", "covariance"])


def fitted(goal=None, data=None, schema=None, **options) -> AccuracyFirstModel:
    stated = {"random_state": 0, "max_epsilon": 20.0, **options}
    return AccuracyFirstModel(schema or LABELS, goal or ErrorRate(0.35), **stated).fit(data or table())


def positives(model: AccuracyFirstModel) -> float:
    return float(np.mean(model.predict(table()) == "high"))


def recall_and_precision(model: AccuracyFirstModel, rows, label: str) -> tuple[float, float]:
    said, true = model.predict(rows) == label, np.asarray(rows[model.release_.target]) == label
    return float(np.mean(said[true])), float(np.mean(true[said]))


@each_way
def test_heavier_rows_count_for_more_by_every_way(way):
    light, plain, heavy = (fitted(class_weight=w, **way) for w in ({"low": 4}, None, HEAVY))
    assert positives(light) < positives(plain) - 0.02
    assert positives(plain) < positives(heavy) - 0.02
    assert heavy.release_.parameters["class_weights"] == (0.25, 1.0)
    assert heavy.release_.parameters["loss"].startswith("weighted ")
    assert "class_weights" not in plain.release_.parameters
    # weights change no constant, so nothing is paid for them by themselves
    assert heavy.release_.epsilon_worst_case == plain.release_.epsilon_worst_case


def test_weights_that_are_equal_are_none_and_only_the_quotient_counts():
    plain, same = fitted().release_, fitted(class_weight={"high": 3, "low": 3}).release_
    assert (plain.hypothesis, plain.parameters) == (same.hypothesis, same.parameters)
    three = [fitted(class_weight=w).release_ for w in (HEAVY, {"low": 0.25}, {"low": 5, "high": 20})]
    assert len({release.hypothesis for release in three}) == 1
    assert three[0].hypothesis != plain.hypothesis


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    speed, belt = rng.uniform(0, 100, 30_000), rng.choice(["yes", "no"], 30_000)
    dead = speed + 15 * (belt == "no") + rng.normal(0, 12, 30_000) > 103
    rows = {"speed": speed, "belt": belt, "dead": np.where(dead, "yes", "no")}
    columns = {"speed": {"bounds": [0, 100]}, "belt": {"categories": ["yes", "no"]}}
    return {"target": "dead", "classes": ["no", "yes"], "columns": columns}, rows


@pytest.mark.parametrize("weight", [None, {"yes": 5, "no": 1}])
def test_a_rare_label(rare, weight):
    """The goal is about rows that count alike, whatever the loss: it is met on them as they are."""
    schema, rows = rare
    assert 0.02 < np.mean(rows["dead"] == "yes") < 0.12
    model = fitted(Recall(0.7) & Precision(0.3), rows, schema, class_weight=weight)
    recall, precision = recall_and_precision(model, rows, "yes")
    assert (recall >= 0.7, precision >= 0.3) == (True, True)
    assert 0 < model.release_.epsilon < 2


def test_probabilities_lean_to_the_heavier_label():
    plain, heavy = (fitted(LogLoss(0.6), class_weight=w) for w in (None, {"high": 2}))
    means = [
        float(model.predict_proba(table())[:, list(model.classes_).index("high")].mean()) for model in (plain, heavy)
    ]
    assert means[1] > means[0] + 0.02


def test_the_same_release_wherever_rows_are(tmp_path):
    whole = fitted(class_weight=HEAVY).release_
    for kind, options in (("parquet", {}), ("csv", {"engine": LocalEngine(threads=2, memory=0, scratch=False)})):
        assert (
            fitted(data=written(kind, tmp_path), class_weight=HEAVY, **options).release_.hypothesis == whole.hypothesis
        )


def test_persons_and_new_rows():
    known = {name: cells[:1500] for name, cells in table().items()}
    twice = {name: [cell for cell in cells for _ in range(2)] for name, cells in known.items()}
    twice["who"] = [i // 2 for i in range(3000)]
    for options in ({"person": "who", "rows_per_person": 2}, {"holdout": 0.3}):
        for way in ({}, {"delta": 1e-6}) if "person" in options else ({},):
            release = fitted(data=twice, class_weight=HEAVY, **options, **way).release_
            assert release.parameters["class_weights"] == (0.25, 1.0)
            assert release.status == "released"


def test_what_a_release_says_and_keeps(tmp_path):
    release = fitted(class_weight=HEAVY).release_
    again = Release.from_json(release.to_json())
    assert again == release
    said = "a row of high counts 4 times one of low in the loss that was minimised; the goal is about rows that count"
    assert said in " ".join(str(again).split())
    report = page.report(again)
    assert f"{said} alike; the weights come from public knowledge" in report
    assert f"{said[0].upper()}{said[1:]} alike." in report  # on the model's card
    plain = fitted().release_
    assert "counts 4 times" not in str(plain) + page.report(plain)
    assert again.predict(table()).tolist() == fitted(class_weight=HEAVY).predict(table()).tolist()


@pytest.mark.parametrize(
    ("goal", "about"),
    [
        ({"excess_risk": 0.1}, "an excess risk is that of this loss"),
        ({"goal": RelativeExcessRisk(0.5, baseline="null")}, "an excess risk is that of this loss"),
        ({"goal": ErrorRate(0.3)}, "the goal is about rows that count alike"),
    ],
)
def test_which_goals_are_about_the_loss_with_weights(goal, about):
    """An excess risk is, as a fraction too: it is one of what the same loss leaves to the null model."""
    x = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    lam = {} if isinstance(goal.get("goal"), ErrorRate) else {"regularization": 0.02}
    stated = {"classes": (0, 1), "bounds": (-1, 1), "class_weight": {1: 4}, "max_epsilon": 5.0, "random_state": 0}
    model = AccuracyFirstLogisticRegression(**goal, **lam, **stated).fit(x, (x[:, 0] > 0.1).astype(int))
    said = f"a row of 1 counts 4 times one of 0 in the loss that was minimised; {about}"
    assert said in " ".join(str(model.release_).split())
    raw = json.loads(model.release_.to_json())
    raw["parameters"]["class_weights"] = [0.25, 0.5]  # the quotient counts, whichever they are
    assert said.replace("4 times", "2 times") in " ".join(str(Release.from_json(json.dumps(raw))).split())


@pytest.mark.parametrize("weights", ["0.2", [1.0], [0.0, 1.0], [-1.0, 1.0], [5.0, 1.0], ["a", 1.0], None, [True, 1.0]])
def test_a_release_that_states_no_weights_is_refused(weights):
    raw = json.loads(fitted(class_weight=HEAVY).release_.to_json())
    raw["parameters"]["class_weights"] = weights
    with pytest.raises(ValueError, match=r"class_weights.* must be"):
        Release.from_json(json.dumps(raw))


def test_going_on_keeps_the_weights():
    model = fitted(ErrorRate(0.3), class_weight={"high": 1.5})
    later = model.refine(table(), goal=ErrorRate(0.2))
    assert later.release_.parameters["class_weights"] == model.release_.parameters["class_weights"]
    other = AccuracyFirstModel(LABELS, random_state=0, max_epsilon=20.0)
    same = other.refine(table(), goal=ErrorRate(0.2), release=model.release_)
    assert same.release_.hypothesis == later.release_.hypothesis
    for release, weights in ((model.release_, HEAVY), (fitted(ErrorRate(0.3)).release_, HEAVY)):
        stating = AccuracyFirstModel(LABELS, class_weight=weights, max_epsilon=20.0)
        with pytest.raises(ValueError, match=r"(?s)which cannot change; leave class_weight out.*Nothing was spent"):
            stating.refine(table(), goal=ErrorRate(0.2), release=release)


MISTAKES = [
    ("balanced", r"'balanced' would be read off the rows"),
    ({"maybe": 2}, r"names 'maybe'; the labels are 'low' and 'high'"),
    ({"high": 0}, r"class_weight of 'high' must be a positive finite number, got 0"),
    ({"high": -1}, r"must be a positive finite number"),
    ({"high": math.inf}, r"must be a positive finite number"),
    ({"high": math.nan}, r"must be a positive finite number"),
    ({"high": True}, r"must be a positive finite number"),
    ({"high": "5"}, r"must be a positive finite number"),
    ([1, 5], r"must be weights by label"),
    ("high=5", r"must be weights by label"),
    ({"high": 1e30, "low": 1e-30}, r"the smaller number beside the larger one, must lie between 1e-50"),
]


@pytest.mark.parametrize(("stated", "said"), MISTAKES)
def test_mistakes_cost_nothing(stated, said):
    with pytest.raises(ValueError, match=rf"(?s){said}.*Nothing was spent"):
        fitted(class_weight=stated)


def test_a_label_is_named_once():
    model = AccuracyFirstLogisticRegression(
        bounds=1.0, goal=ErrorRate(0.3), classes=(0, 1), class_weight={"1": 4, 1: 2}
    )
    with pytest.raises(ValueError, match=r"(?s)names 1 twice: '1', 1.*Nothing was spent"):
        model.fit(np.zeros((50, 1)), np.zeros(50))


def test_weights_are_for_labels():
    with pytest.raises(ValueError, match="class_weight is for classification"):
        AccuracyFirstModel(AMOUNT, class_weight=HEAVY).fit(table())
    with pytest.raises(ValueError, match="with classes that are stated"):
        AccuracyFirstLogisticRegression(goal=ErrorRate(0.3), bounds=1.0, class_weight={1: 5}).fit(
            [[0.5]] * 9, [0, 1, 1] * 3
        )


class TestArrays:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = np.where(X @ [2.0, -1.0] + rng.logistic(size=20_000) / 2 > 0, 1, 0)

    def fit(self, **options) -> AccuracyFirstLogisticRegression:
        stated = {"bounds": 1.0, "classes": (0, 1), "random_state": 0, "max_epsilon": 20.0, **options}
        return AccuracyFirstLogisticRegression(**stated).fit(self.X, self.y)

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_goals(self, delta):
        plain, heavy = (self.fit(goal=ErrorRate(0.35), class_weight=w, delta=delta) for w in (None, {1: 4}))
        assert heavy.predict(self.X).mean() > plain.predict(self.X).mean() + 0.02
        assert heavy.release_.parameters["class_weights"] == (0.25, 1.0)

    @pytest.mark.parametrize("perturbation", [None, "output"])
    def test_an_excess_risk_is_that_of_the_weighted_loss(self, perturbation):
        model = self.fit(excess_risk=0.01, class_weight={1: 4, 0: 1}, perturbation=perturbation)
        truth = curator_view(model, self.X, self.y)
        assert truth.excess_risk <= 0.01 < truth.null_excess_risk
        assert "an excess risk is that of this loss" in " ".join(str(model.release_).split())
        assert not hasattr(model, "predict_proba")
        assert Release.from_json(model.release_.to_json()) == model.release_

    def test_a_path_that_was_kept(self, tmp_path):
        key, file = tmp_path / "curator.key", tmp_path / "rows.path"
        write_key(key)
        kept = {"keep_path": KeepPath(file, key, later=0.005), "class_weight": {1: 4}}
        first = self.fit(excess_risk=0.02, **kept)
        second = refine(first.release_, file, key, excess_risk=0.005, max_epsilon=30.0)
        assert second.parameters["class_weights"] == (0.25, 1.0)
        assert second.parameters["loss"] == first.release_.parameters["loss"] == "weighted logistic"
        asked = self.fit(excess_risk=0.005, class_weight={1: 4})
        asked.release_ = second  # judged by the same loss
        assert curator_view(asked, self.X, self.y).excess_risk <= 0.005


def test_arrow_rows_with_numbers_as_labels():
    rows = {**table(), "income": [int(label == "high") for label in table()["income"]]}
    schema = {**LABELS, "classes": [0, 1]}
    by_number, by_text = (fitted(data=pa.table(rows), schema=schema, class_weight=w) for w in ({1: 4}, {"1": 4.0}))
    assert by_number.release_.hypothesis == by_text.release_.hypothesis
