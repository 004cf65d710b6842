"""What a constant reaches, for labels: released, charged, said, and enough to stop a search that it makes idle."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from expost import AccuracyFirstModel, ErrorRate, LogLoss, MeanCost, Precision, Recall, Release
from expost.account.account import Account
from expost.exceptions import AccuracyNotReached, LargeEpsilonWarning
from expost.goals import labels_and_base_rate as counts
from expost.goals.labels_and_base_rate import BaseRate, BaseRatePath
from expost.noise.source import SeededSource
from expost.release.page import report
from tests.goals.helpers import too_many
from tests.goals.test_counts import SCHEMA, rare, reached


class Labels:
    """Rows of which so many are positive, as far as a base rate asks."""

    def __init__(self, n, positive):
        self.n, self._positive = n, positive

    def target_mean(self):
        return 2.0 * self._positive / self.n - 1.0


def found(n=20_000, positive=900, seed=0, budget=2.0, enough=lambda base, price: False):
    account = Account("by hand", budget, secure=False)
    return BaseRatePath(Labels(n, positive), account, SeededSource(seed), 0.01).first(enough), account


class TestReleased:
    def test_it_is_booked_as_far_as_it_was_walked(self):
        first, account = found(enough=lambda base, price: True)
        assert account.probe == pytest.approx(20 / 20_000)
        closely, account = found()
        assert closely.scale <= counts._FINEST
        assert account.probe == pytest.approx(1.0 / (closely.scale * min(closely.rate, 1 - closely.rate) * 20_000))
        assert closely.off < 0.1 * first.off

    def test_a_small_budget_is_kept(self):
        base, account = found(budget=0.02)
        assert base is not None
        assert 0 < account.probe <= 0.02 * counts._MOST_OF_BUDGET
        none, account = found(budget=0.99 * 20 / 20_000)
        assert none is None
        assert account.probe == 0.0

    def test_it_is_off_by_no_more_than_it_says(self):
        """1 % may be; with a tenth of what is stated many are."""
        errors = []
        for seed in range(200):
            base, _ = found(seed=seed)
            errors.append(abs(base.rate - 900 / 20_000) / base.off)
        assert not too_many(sum(error > 1 for error in errors), 200, 0.01)
        assert too_many(sum(error > 0.1 for error in errors), 200, 0.01)

    def test_what_is_shown_beside_it_holds_in_most_runs(self, monkeypatch):
        """Where what was released says when to stop: five runs of six are held to it; half as wide is caught."""

        def missed(runs=300, n=30_000, share=0.021):
            goal, shown = ErrorRate(0.03), []
            for seed in range(runs):
                account, labels = Account("by hand", 2.0, secure=False), Labels(n, round(n * share))
                base = goal.measured(labels, account, SeededSource(seed), 0.1, 0.0)[0].base
                shown.append(base.about(lambda share: share).split(" ± "))
            return sum(abs(float(value) - share) > float(off) for value, off in shown)

        assert not too_many(missed(), 300, 1 / 6)
        monkeypatch.setattr(counts, "_LIKELY", counts._LIKELY / 2)
        assert too_many(missed(), 300, 1 / 6)

    def test_one_row_moves_it_by_one(self):
        """Between neighbours the same noise gives counts that differ by one: the sensitivity that is charged."""
        one, other = (found(positive=positive, enough=lambda base, price: True)[0] for positive in (900, 901))
        assert abs(one.rate - other.rate) * 20_000 == pytest.approx(1.0)


def test_what_a_constant_misses():
    base = BaseRate(0.05, 0.04, 0.2 / np.log(10))
    assert ErrorRate(0.07).constants(0.05, base) == pytest.approx({"no": -0.02, "yes": 0.88})
    assert Precision(0.3).constants(0.05, base)["no"] == 0.0  # met emptily, which is not met
    both = (Recall(0.7) & Precision(0.04)).constants(0.05, base)
    assert both["yes"] < 0 < both["no"]
    assert MeanCost(0.3, 1, 20).compared("no", base) == "always saying no has mean cost 1.0 ± 0.3"
    assert (Recall(0.7) & Precision(0.2)).compared("yes", base) == (
        "always saying yes has recall 1 and precision 0.05 ± 0.02"
    )


class TestThroughFit:
    @pytest.mark.parametrize(("goal", "delta"), [(ErrorRate(0.12), 0.0), (ErrorRate(0.12), 1e-6), (LogLoss(0.4), 0.0)])
    def test_a_goal_that_a_constant_meets_is_not_searched_for(self, goal, delta):
        table = rare(20_000)
        share = np.mean(np.asarray(table["readmitted"]) == "yes")
        with pytest.raises(AccuracyNotReached, match="a constant meets the accuracy target") as stopped:
            AccuracyFirstModel(SCHEMA, goal, delta=delta, random_state=0).fit(table)
        release = stopped.value.release
        assert release.epsilon_generation == release.epsilon_test == 0.0
        assert 20 / 20_000 <= release.epsilon < 0.1
        assert abs(release.parameters["base_rate"] - share) <= release.parameters["base_rate_off"]
        assert "clearly better than that" in str(stopped.value)
        assert Release.from_json(release.to_json()) == release
        assert "refused: a constant meets the goal" in str(release)
        assert "as good as was asked for" in report(release)

    def test_one_that_none_meets_is_compared_with_it(self):
        """Where an error rate of 0.12 would have been kept by saying no, this finds who is meant, on new rows too."""
        model = AccuracyFirstModel(SCHEMA, Recall(0.6) & Precision(0.2), random_state=1).fit(rare(20_000))
        said = " ".join(str(model.release_).split())
        assert "to compare always saying yes has recall 1 and precision 0.09" in said
        assert " ± " in said
        assert reached(model, rare(20_000, seed=9))[1] > 0.18

    @pytest.mark.parametrize("max_epsilon", [2, 10])
    def test_a_goal_next_to_what_a_constant_reaches_is_searched_for(self, max_epsilon):
        """Telling them apart would take all there is: it is left when it adds more than a model and its test."""
        n = 4000
        positive = np.arange(n) % 10 == 0
        x = np.random.default_rng(0).uniform(0.0, 0.5, n) + 0.5 * positive
        schema = {"target": "y", "classes": ["no", "yes"], "columns": {"x": {"bounds": [0, 1]}}}
        model = AccuracyFirstModel(schema, ErrorRate(0.1), max_epsilon=max_epsilon, random_state=1)
        release = model.fit({"x": x, "y": np.where(positive, "yes", "no")}).release_
        assert release.epsilon_probe <= 1.5 / (counts._STATED * positive.sum())
        assert release.epsilon_probe <= 3 * (release.epsilon_generation + release.epsilon_test)

    @pytest.mark.parametrize("goal", [Recall(0.6) & Precision(0.2), LogLoss(0.29)], ids=str)
    def test_it_costs_some_tens_over_the_rarer_label(self, goal):
        """What the guide says."""
        table = rare(20_000)
        many = np.sum(np.asarray(table["readmitted"]) == "yes")
        release = AccuracyFirstModel(SCHEMA, goal, random_state=3, when_short="keep").fit(table).release_
        assert 10 / many < release.epsilon_probe < 80 / many

    @pytest.mark.parametrize("person", [{}, {"person": "id", "rows_per_person": 1}])
    @pytest.mark.parametrize("goal", [ErrorRate(0.3), Recall(0.5) & Precision(0.5), LogLoss(0.3)], ids=str)
    def test_a_single_row_has_a_share(self, goal, person):
        """Of one row, or one slot of one person, no share lies strictly between 0 and 1."""
        table = {"a": [3.0, 4.0], "y": ["yes", "no"], "id": ["1", "1"]}
        if not person:
            table = {"a": [3.0], "y": ["yes"]}
        schema = {"target": "y", "classes": ["no", "yes"], "columns": {"a": {"bounds": [0, 10]}}}
        options = {"max_epsilon": 1000, "on_invalid": "clip", "random_state": 0, "when_short": "keep", **person}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LargeEpsilonWarning)
            release = AccuracyFirstModel(schema, goal, **options).fit(table).release_
        assert release.parameters["base_rate"] == 0.5
        assert release.epsilon < 1000

    def test_balanced_labels_cost_next_to_nothing(self):
        model = AccuracyFirstModel(SCHEMA, ErrorRate(0.4), random_state=0).fit(rare(20_000, shift=-2.9))
        assert model.release_.epsilon_probe <= 110 / 20_000
        assert "error rate 0." in model.release_.to_compare


def test_a_model_of_probabilities_is_cut_where_that_is_stated():
    table = rare(20_000)
    release = AccuracyFirstModel(SCHEMA, LogLoss(0.285), random_state=0).fit(table).release_
    chance = release.predict_proba(table)[:, 1]
    for cut_off in (0.1, 0.3):
        assert ((release.predict(table, cut_off=cut_off) == "yes") == (chance > cut_off)).mean() > 0.9999
    assert (release.predict(table) == release.predict(table, cut_off=0.5)).all()
    with pytest.raises(ValueError, match="cut_off must be"):
        release.predict(table, cut_off=1.0)
    labels = AccuracyFirstModel(SCHEMA, Recall(0.5) & Precision(0.15), random_state=0).fit(table).release_
    with pytest.raises(ValueError, match="models for a log loss"):
        labels.predict(table, cut_off=0.3)


@pytest.mark.slow
def test_false_claims_about_a_constant_are_rare():
    """The constant just misses the goal; without its margin the claim would be made in half of the runs."""
    table, claims, naive = rare(3000, seed=2), 0, 0
    share = np.mean(np.asarray(table["readmitted"]) == "yes")
    for seed in range(200):
        try:
            release = AccuracyFirstModel(SCHEMA, ErrorRate(share - 1e-4), random_state=seed).fit(table).release_
        except AccuracyNotReached as refusal:
            release = refusal.release
        claims += "constant" in release.parameters
        naive += release.parameters["base_rate"] < share - 1e-4
    assert not too_many(claims)
    assert too_many(naive)
