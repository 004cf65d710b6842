"""Recall, precision, F₁, specificity, costs: what they say, how far a row can move them, and that promises are kept."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import expost
from expost import F1, AccuracyFirstModel, ErrorRate, LogLoss, MeanCost, Precision, Recall, Release, Specificity
from expost.exceptions import AccuracyNotReached
from expost.goals.labels_and_base_rate import Added, alarms, noisy_best
from expost.noise.source import SeededSource
from expost.numeric import to_grid
from expost.release.page import report
from expost.solve.losses import LogisticLoss
from expost.solve.objective import Objective
from expost.solve.row_sums import Passes
from expost.table.rows import ONE, Rows
from tests.goals.helpers import too_many

GOALS = [
    Recall(0.7),
    Precision(0.15),
    Precision(0.9),
    F1(0.1),
    F1(0.8),
    Specificity(0.6),
    MeanCost(0.3, false_positive=1, false_negative=20),
    ErrorRate(0.2),
    Recall(0.8) & Precision(0.4),
    F1(0.3) & Specificity(0.9) & MeanCost(0.2, 3, 1),
]


def rows_of(outcomes):
    """Return rows of one column, which θ = 1 predicts as stated: 0 hit, 1 false alarm, 2 miss, 3 none."""
    outcomes = np.asarray(outcomes)
    x = np.where(outcomes < 2, ONE // 2, -ONE // 2).astype(np.int32)[:, None]
    y = np.where(outcomes % 2 == 0, ONE, -ONE).astype(np.int32)
    return Rows(x, y)


def shortfall(goal, outcomes):
    return goal.shortfall(Passes.over(LogisticLoss(), rows_of(outcomes)), np.ones(1))


def held(goal, h, a, m, q):
    """Whether a goal is met by so many hits, false alarms, misses and others, by its definition."""
    n, number = h + a + m + q, goal.number
    if isinstance(goal, MeanCost):
        return goal.false_positive * a + goal.false_negative * m <= number * n
    return {
        "recall": h >= number * (h + m),
        "precision": h >= number * (h + a),
        "F₁": 2 * h >= number * (2 * h + a + m),
        "specificity": q >= number * (q + a),
        "error rate": a + m <= number * n,
    }[goal.name]


def largest_move(goal, n=3):
    """Return the most that one replaced row moves a shortfall by, over all tables of n rows, times n."""
    tables = {outcomes: shortfall(goal, outcomes) for outcomes in itertools.combinations_with_replacement(range(4), n)}
    moves = [
        abs(value - tables[tuple(sorted((*outcomes[:k], other, *outcomes[k + 1 :])))])
        for outcomes, value in tables.items()
        for k in range(n)
        for other in range(4)
    ]
    return n * max(moves)


class UnitGoal(type(F1(0.5))):
    """A broken F₁: in units of 1, whatever a row can add."""

    @property
    def lines(self):
        return (Unscaled(*super().added),)


class Unscaled(Added):
    reach = 1.0


class TestShortfalls:
    @pytest.mark.parametrize("goal", GOALS, ids=repr)
    def test_one_row_moves_them_by_one_over_n_and_some_by_all_of_it(self, goal):
        moved = largest_move(goal)
        assert moved <= 3 * goal.shortfall_sensitivity(3) * (1 + 1e-12)
        assert moved > 0.99

    def test_a_broken_one_is_caught(self):
        assert largest_move(UnitGoal(0.1)) > 1.5

    @pytest.mark.parametrize("goal", GOALS, ids=repr)
    def test_they_say_what_the_goal_does(self, goal):
        rng = np.random.default_rng(3)
        for _ in range(60):
            outcomes = rng.choice(4, rng.integers(1, 40), p=rng.dirichlet(np.ones(4)))
            h, a, m, q = np.bincount(outcomes, minlength=4).tolist()
            each = [held(one, h, a, m, q) for one in goal.each]
            found = shortfall(goal, outcomes)
            if abs(found) > 1e-12:  # at exactly the number stated rounding decides
                assert (found < 0) == all(each)

    def test_passes_and_objectives_count_alike(self):
        rng = np.random.default_rng(0)
        x, y = rng.integers(-(2**17), 2**17, (500, 4)).astype(np.int32), rng.choice([-ONE, ONE], 500).astype(np.int32)
        rows, theta = Rows(x, y), to_grid(rng.normal(size=4), 4.0, norm="l2")
        passes, objective = Passes.over(LogisticLoss(), rows), Objective(LogisticLoss(), x / ONE, y / ONE, 0.1)
        assert tuple(passes.outcomes(theta)) == objective.outcomes(theta)
        assert passes.errors(theta) == objective.errors(theta)
        edges = np.linspace(-0.2, 0.2, 7)
        assert passes.above(theta, edges).tolist() == [(x / ONE @ theta > edge).sum() for edge in edges]


class TestWhatGoesTogether:
    def test_several_are_one(self):
        goal = Recall(0.8) & Precision(0.4) & Specificity(0.5)
        assert repr(goal) == "Recall(at_least=0.8) & Precision(at_least=0.4) & Specificity(at_least=0.5)"
        assert goal.words == "recall ≥ 0.8, precision ≥ 0.4 and specificity ≥ 0.5"
        with pytest.raises(ValueError, match="different kinds"):
            Recall(0.8) & Recall(0.9)
        with pytest.raises(TypeError, match="LogLoss is not tested together"):
            Recall(0.8) & LogLoss(0.4)

    @pytest.mark.parametrize("goal", [Recall(0.9), Specificity(0.9), MeanCost(2.0, 2.0, 9.0)], ids=repr)
    def test_what_a_constant_meets_whatever_the_rows_is_refused(self, goal):
        with pytest.raises(ValueError, match="Nothing was spent"):
            AccuracyFirstModel(SCHEMA, goal).fit(rare(200))


class TestCutOffs:
    def test_recall_and_precision_have_as_much_to_spare(self):
        for r, q, rate in [(0.7, 0.15, 0.046), (0.5, 0.4, 0.2), (0.6, 0.5, 0.3)]:
            assert alarms((Recall(r) & Precision(q)).lines, rate) == pytest.approx(r * rate / q, rel=0.01)
        assert alarms((Recall(0.8) & Specificity(0.7)).lines, 0.1) == pytest.approx(0.8 * 0.1 + 0.3 * 0.9, rel=0.01)

    @pytest.mark.parametrize("goal", [F1(0.4), Precision(0.5), MeanCost(0.2, 1, 10), ErrorRate(0.1)], ids=repr)
    def test_others_call_some_rows_positive(self, goal):
        assert 0.02 < alarms(goal.lines, 0.1) < 0.5

    def test_the_choice_is_as_private_as_stated(self):
        """The law of the choice, by summation, between neighbours whose scores move against each other."""
        epsilon = 0.8
        one, other = chosen([3, 5, 4], epsilon, 2), chosen([4, 4, 5], epsilon, 2)
        loss = np.abs(np.log(one / other)).max()
        assert 0.5 * epsilon < loss <= epsilon
        broken = np.abs(np.log(chosen([3, 5, 4], epsilon, 1) / chosen([4, 4, 5], epsilon, 1))).max()
        assert broken > epsilon

    def test_the_choice_has_that_law(self):
        """False alarms of 10⁻⁶; noise of half the scale is another law."""
        source, runs = SeededSource(5), 3000
        found = np.bincount([noisy_best([3, 5, 4], 0.8, 1, source) for _ in range(runs)], minlength=3)
        assert stats.chisquare(found, runs * chosen([3, 5, 4], 0.8, 2)).pvalue > 1e-6
        assert stats.chisquare(found, runs * chosen([3, 5, 4], 0.8, 1)).pvalue < 1e-6


def chosen(scores, epsilon, scale, most=120):
    """Return the probability of each choice under geometric noise of rate ε/scale."""
    rate = epsilon / scale
    mass = np.exp(-rate * np.arange(most)) * -np.expm1(-rate)
    found = np.zeros(len(scores))
    for best, score in enumerate(scores):
        for noise in range(most):
            won = mass[noise]
            for k, other in enumerate(scores):
                if k != best:  # the first of equal ones is chosen
                    highest = score + noise - other - (k < best)
                    won *= -math.expm1(-rate * (highest + 1)) if highest >= 0 else 0.0
            found[best] += won
    return found / found.sum()


SCHEMA = {
    "target": "readmitted",
    "classes": ["no", "yes"],
    "columns": {"age": {"bounds": [18, 98]}, "days": {"bounds": [0, 30]}, "ward": {"categories": ["a", "b", "c"]}},
}


def rare(n, seed=0, shift=-5.6):
    """Return stays in hospital, about 8 % of them followed by another."""
    rng = np.random.default_rng(seed)
    age, days, ward = rng.uniform(18, 98, n), rng.exponential(6, n).clip(0, 30), rng.choice(["a", "b", "c"], n)
    odds = shift + 0.03 * age + 0.12 * days + 1.2 * (ward == "c")
    again = rng.random(n) < 1 / (1 + np.exp(-odds))
    return pa.table({"age": age, "days": days, "ward": ward, "readmitted": np.where(again, "yes", "no")})


def reached(model, table):
    """Return recall and precision."""
    called, positive = (np.asarray(labels) == "yes" for labels in (model.predict(table), table["readmitted"]))
    return (called & positive).sum() / positive.sum(), (called & positive).sum() / max(1, called.sum())


class TestThroughFit:
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_a_rare_label(self, delta):
        """Calling rows positive where that is likelier than not would call hardly any."""
        table = rare(20_000)
        goal = Recall(0.6) & Precision(0.2)
        model = AccuracyFirstModel(SCHEMA, goal, delta=delta, random_state=1).fit(table)
        recall, precision = reached(model, table)
        assert recall >= 0.6
        assert precision >= 0.2
        release = model.release_
        assert dict(release.promise.goals) == {"recall": 0.6, "precision": 0.2}
        assert Release.from_json(release.to_json()) == release
        printed = " ".join(str(release).split())
        assert "recall and precision at least 0.6 and at least 0.2 on these rows, as asked" in printed
        assert "at least 0.6 and at least 0.2" in report(release)
        exported = release.to_sklearn().predict(table.to_pandas())
        assert (exported == np.asarray(model.predict(table))).all()

    @pytest.mark.parametrize("goal", [F1(0.3), MeanCost(0.6, false_positive=1, false_negative=8), Precision(0.3)])
    def test_others(self, goal):
        table = rare(20_000)
        model = AccuracyFirstModel(SCHEMA, goal, random_state=2).fit(table)
        rows = model.encoding_.encode(table)
        assert goal.shortfall(Passes.over(LogisticLoss(), rows), np.asarray(model.release_.hypothesis)) <= 0

    def test_a_refusal_shows_no_recall(self):
        with pytest.raises(AccuracyNotReached) as refusal:
            AccuracyFirstModel(SCHEMA, Recall(0.9) & Precision(0.8), random_state=0).fit(rare(4000))
        assert "shown" not in refusal.value.release.parameters
        assert "at least 0.9 and at least 0.8 was asked for" in " ".join(str(refusal.value.release).split())


class TestInSharedBudgets:
    """Where costs add in squares: a cut-off takes no room from its test, and is not mostly noise."""

    @staticmethod
    def outcome(goal, seed, epsilon, n):
        with expost.budget(epsilon, 1e-6) as shared:
            model = AccuracyFirstModel(SCHEMA, goal, random_state=seed, max_epsilon=epsilon, delta=1e-6)
            try:
                release = model.fit(rare(n)).release_
            except AccuracyNotReached as refusal:
                release = refusal.release
        return release, shared.epsilon_spent

    def test_no_cap_is_passed(self):
        for seed in range(6):
            release, spent = self.outcome(F1(0.95), seed, 60.0, 600)
            assert "interrupted" not in release.parameters
            assert spent <= 60.0

    def test_goals_are_met(self):
        found = [self.outcome(Recall(0.6) & Precision(0.15), seed, 1.0, 20_000)[0].status for seed in range(4)]
        assert found.count("released") >= 3


@pytest.mark.slow
@pytest.mark.parametrize("goal", [Recall(0.6) & Precision(0.215), F1(0.32)], ids=repr)
def test_promises_are_kept(goal):
    """A goal near the best that there is, so that many models that are tested miss it; false alarms of 10⁻³."""
    table, missed, released = rare(6000, seed=4), 0, 0
    for seed in range(200):
        try:
            model = AccuracyFirstModel(SCHEMA, goal, random_state=seed, max_epsilon=3.0).fit(table)
        except AccuracyNotReached:
            continue
        released += 1
        rows = model.encoding_.encode(table)
        missed += goal.shortfall(Passes.over(LogisticLoss(), rows), np.asarray(model.release_.hypothesis)) > 0
    assert released > 20
    assert not too_many(missed)
