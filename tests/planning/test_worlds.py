"""Made-up rows: they follow the schema, and the best linear model reaches what was stated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from expost import R2, ErrorRate, LogLoss, MeanSquaredError, plan
from expost.goals import TestedGoal
from expost.mechanisms.mechanism import _made_for
from expost.planning.synthetic import draw_array, draw_features, place_of, with_target
from expost.release import Promise
from expost.table.bounds import Bounds
from expost.table.bounds_encoding import Preparation
from expost.table.encoding import Encoding
from expost.table.rows import ONE
from expost.table.shape import cheapest_geometry

from .helpers import STONES, SURVEY

N = 40_000


@pytest.mark.parametrize("schema", [SURVEY, STONES], ids=["labels", "numbers"])
@pytest.mark.parametrize("n", [1, 7, 900])
def test_rows_follow_the_schema(schema, n):
    encoding = Encoding(schema)
    labels = schema.classes is not None
    features = draw_features(encoding, n, np.random.default_rng(1))
    rows, counts = with_target(
        features, ErrorRate(0.2) if labels else R2(0.5), labels, 0.5, 3 * n + 1, np.random.default_rng(2)
    )
    assert counts.sum() == 3 * n + 1
    assert (counts > 0).all()
    assert _made_for(rows, cheapest_geometry(encoding, encoding.scale))
    assert features.x.std(axis=0)[1:].max() > 0 or n == 1


@pytest.mark.parametrize(("seed", "reach"), [(0, 0.5), (1, 0.9)])
def test_the_best_model_reaches_what_was_stated(seed, reach):
    """Best errors are about the part stated of what the goal allows; a constant does worse than the goal."""
    rng = np.random.default_rng(seed)
    features = draw_features(Encoding(SURVEY), 1500, rng)
    rows, counts = with_target(features, ErrorRate(0.2), True, reach, N, rng)
    x, y = rows.x / ONE * Encoding(SURVEY).scale, rows.y > 0
    model = LogisticRegression(C=1e4, max_iter=3000).fit(x, y, sample_weight=counts)
    wrong = float(counts[model.predict(x) != y].sum()) / N
    assert wrong == pytest.approx(reach * 0.2, abs=0.012)  # a standard deviation is 0.002, the loss is another one
    assert min(counts[y].sum(), counts[~y].sum()) / N > 0.205

    rows, counts = with_target(features, LogLoss(0.5), True, reach, N, rng)
    model = LogisticRegression(C=1e4, max_iter=3000).fit(x := rows.x / ONE * 3, rows.y > 0, sample_weight=counts)
    chance = np.where(rows.y > 0, *model.predict_proba(x).T[::-1])
    assert float(-(counts * np.log(chance)).sum() / N) == pytest.approx(reach * 0.5, abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_model_explains_what_was_stated(seed):
    rng = np.random.default_rng(seed)
    features = draw_features(Encoding(STONES), 1500, rng)
    for goal, allowed in ((R2(0.6), 0.4), (MeanSquaredError(0.05), None)):
        rows, counts = with_target(features, goal, False, 0.5, N, rng)
        x, y, root = rows.x / ONE, rows.y / ONE, np.sqrt(counts)
        best = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
        left = float((counts * (y - x @ best) ** 2).sum() / N)
        spread = float((counts * (y - (counts * y).sum() / N) ** 2).sum() / N)
        # targets beyond the bounds are moved to them, which takes a little off
        assert (left / spread / allowed if allowed else left / goal.at_most) == pytest.approx(0.5, abs=0.12)
        assert allowed or spread > goal.at_most


@dataclass(frozen=True)
class AbsoluteError(MeanSquaredError):
    """A goal of somebody's own: the mean of |y − prediction|, predictions moved into bounds."""

    name, power = "absolute error", 1
    idle_variance = TestedGoal.idle_variance

    def shortfall(self, objective, theta):
        return objective.mean_of(lambda u, y: np.abs(np.clip(u, -1, 1) - y), theta, 2.0) - self.at_most


@dataclass(frozen=True)
class MissedPositives(ErrorRate):
    """Another one, about one of the labels."""

    name = "missed positives"

    def shortfall(self, objective, theta):
        return objective.mean_of(lambda u, y: 1.0 * ((u <= 0) & (y > 0)), theta, 1.0) - self.at_most


@pytest.mark.parametrize("reach", [0.5, 0.9])
@pytest.mark.parametrize("goal", [AbsoluteError(0.1), AbsoluteError(0.05), MissedPositives(0.1)], ids=repr)
def test_a_new_goal_says_by_its_shortfall_what_tables_are_like(goal, reach):
    """The best model misses about the part stated of what it allows, and no constant would do."""
    labels = goal.labels == "binary"
    encoding = Encoding(SURVEY if labels else STONES)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, counts = with_target(draw_features(encoding, 1500, rng), goal, labels, reach, N, rng, place_of(seed))
        x, y, root = rows.x / ONE, rows.y / ONE, np.sqrt(counts)
        if labels:
            best = LogisticRegression(C=1e4, max_iter=3000).fit(x, y, sample_weight=counts).decision_function(x)
            share = counts[y > 0].sum() / N
            constant = np.full(len(y), np.log(share / (1 - share)))
        else:
            best = x @ np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
            constant = np.full(len(y), counts @ y / N)
        missed = goal.missed(best, y, counts / N) / goal.at_most + 1  # as a part of what is allowed
        # targets are skewed, and those beyond the bounds are moved to them, which takes something off
        assert missed == pytest.approx(reach, abs=0.12 if labels else 0.3 * reach)
        assert goal.missed(constant, y, counts / N) > 0


def test_a_new_goal_is_priced_in_its_own_units():
    """In units of the target, whose bounds are 20,000 apart."""
    prices = plan(STONES, [AbsoluteError(1000), AbsoluteError(500)], rows=5000, worlds=16).goals
    assert 0 < prices[0].cheapest.typical < prices[1].cheapest.typical < np.inf
    assert "absolute error ≤ 500" in str(plan(STONES, AbsoluteError(500), rows=5000, worlds=2))
    statement = AbsoluteError(0.2).in_caller_units(Promise("it", at_most=0.2), 1e8).statement
    assert statement == "it; that is 2000 in units of the target"


def test_targets_fill_little_or_much_of_their_bounds_and_many_are_skewed():
    """Days of stay within 0 to 30, of mean 3.5 and standard deviation 2.5, are not out of the ordinary."""
    features = draw_features(Encoding(STONES), 1500, np.random.default_rng(0))
    spreads, skews, middles = [], [], []
    for k in range(30):
        rows, counts = with_target(features, R2(0.35), False, 0.9, N, np.random.default_rng(k), place_of(k))
        y, many = rows.y / ONE, counts / counts.sum()
        middles.append(float(many @ y))
        spreads.append(float(many @ (y - middles[-1]) ** 2) ** 0.5)
        skews.append(float(many @ (y - middles[-1]) ** 3) / spreads[-1] ** 3)
    assert min(spreads) < 0.13
    assert max(spreads) > 0.3
    assert 6 <= sum(spread < 0.17 for spread in spreads) <= 12
    assert sum(abs(skew) > 1 for skew in skews) >= 6
    assert min(np.array(skews) * -np.sign(middles)) > -0.5  # what is far is on the other side of the middle


def test_repeated_rows_are_no_easier_to_fit():
    """As many rows as there are features, or eight of each: noise is fitted as n rows allow, not as few kinds would."""
    rng = np.random.default_rng(0)
    fits = []
    for m in (4000, 500):
        features = draw_features(Encoding(STONES), m, np.random.default_rng(3))
        rows, counts = with_target(features, R2(0.5), False, 1.0, 4000, rng)
        x, y, root = rows.x / ONE, rows.y / ONE, np.sqrt(counts)
        fits.append(float((counts * (y - x @ np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]) ** 2).mean()))
    assert len(set(fits)) == 2
    noise = with_target(draw_features(Encoding(STONES), 9, rng), R2(0.5), False, 1.0, 9, rng)
    assert noise[1].tolist() == [1.0] * 9


def test_arrays_are_in_the_ball():
    recipe = Preparation(Bounds((-1.0,) * 7, (1.0,) * 7), 7.0, target=None, intercept_weight=0.25, n_columns=7)
    features = draw_array(recipe, 300, np.random.default_rng(0))
    rows, counts = with_target(features, ErrorRate(0.3), True, 0.5, 300, np.random.default_rng(1))
    assert rows.norm == "l1"
    assert counts.tolist() == [1.0] * 300
    assert set(np.abs(rows.y)) == {ONE}
