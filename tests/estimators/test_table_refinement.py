"""Going on from a released model of a table: what was paid counts, and everything is checked before more is."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from scipy import stats

from expost import (
    R2,
    AccuracyFirstModel,
    ErrorRate,
    Ledger,
    LogLoss,
    MeanCost,
    Precision,
    Recall,
    Release,
    Specificity,
    compose,
)
from expost.account.account import Account
from expost.cli import main
from expost.exceptions import AccuracyNotReached, BudgetExceeded, SearchInterrupted, TargetUnreachable
from expost.mechanisms.objective.chain import PerturbedLevels
from expost.noise.source import SecureSource
from expost.search import noisy_test as looks
from expost.table.schema import Schema
from tests.estimators.model_helpers import AMOUNT, COLUMNS, LABELS, columns, table, written

GAMMA, RUNS, RARE = 0.2, 50, 1e-6


def fitted(goal=None, **options) -> AccuracyFirstModel:
    stated = {"random_state": 0, "failure_probability": GAMMA, **options}
    return AccuracyFirstModel(LABELS, goal or ErrorRate(0.2), **stated).fit(table())


def short(**options) -> tuple[AccuracyFirstModel, Release]:
    model = AccuracyFirstModel(LABELS, ErrorRate(0.11), **{"random_state": 1, "max_epsilon": 0.06, **options})
    with pytest.raises(AccuracyNotReached) as stopped:
        model.fit(table())
    assert stopped.value.release.status == "short"
    return model, stopped.value.release


def nothing_is_drawn(monkeypatch):
    def draw(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(PerturbedLevels, "stage", draw)
    monkeypatch.setattr(SecureSource, "words", draw)


def booked_for(monkeypatch, model) -> tuple[Release, float]:
    """Return the release that a model is refined to, and what the new search has booked."""
    booked, usual = [], Account.book

    def noted(self, part, step):
        booked.append(step.most)
        return usual(self, part, step)

    monkeypatch.setattr(Account, "book", noted)
    return model.refine(table(), goal=ErrorRate(0.12)).release_, sum(booked)


class TestCost:
    def test_what_was_paid_counts(self, monkeypatch):
        first = fitted()
        one, (two, new) = first.release_, booked_for(monkeypatch, first)
        assert (two.status, two.continues) == ("released", one.id)
        assert two.promise.at_most == 0.12
        assert two.epsilon_increment == pytest.approx(new, rel=1e-12)
        assert two.epsilon == pytest.approx(one.epsilon + new, rel=1e-12)
        assert compose([one, two]).epsilon == pytest.approx(two.epsilon)
        assert f"beside release {one.id}" in " ".join(str(two).split())
        assert Release.from_json(two.to_json()) == two
        assert first.release_ is one  # the model that was gone on from stays

    def test_control_an_account_that_forgets(self, monkeypatch):
        first = fitted()
        monkeypatch.setattr(Account, "carry_on", lambda *_: None)
        two, new = booked_for(monkeypatch, first)
        assert two.epsilon < 0.9 * (first.release_.epsilon + new)

    def test_no_outcome_exceeds_the_budget_for_both(self):
        first = fitted()
        for budget in (0.3, 0.4, 0.6):
            with pytest.raises(AccuracyNotReached) as stopped:
                first.refine(table(), goal=ErrorRate(0.05), max_epsilon=budget)
            assert first.release_.epsilon < stopped.value.release.epsilon <= budget
            assert stopped.value.release.epsilon_worst_case == pytest.approx(budget)

    def test_an_interruption_is_charged_for_both(self, monkeypatch):
        first = fitted()
        monkeypatch.setattr(PerturbedLevels, "stage", lambda *_: 1 / 0)
        with pytest.raises(SearchInterrupted) as stopped:
            first.refine(table(), goal=ErrorRate(0.12), max_epsilon=0.5)
        assert stopped.value.release.epsilon == pytest.approx(0.5)
        assert stopped.value.release.continues == first.release_.id

    def test_for_persons(self):
        people = [str(k // 2) for k in range(len(table()["hours"]))]
        options = {"person": "who", "rows_per_person": 2, "random_state": 0, "max_epsilon": 3.0}
        first = AccuracyFirstModel(LABELS, ErrorRate(0.2), **options).fit({**table(), "who": people})
        second = first.refine({**table(), "who": people}, goal=ErrorRate(0.11))
        one, two = first.release_, second.release_
        assert two.unit == "person"
        for part in ("epsilon_generation", "epsilon_test", "epsilon_probe"):
            assert getattr(two, part) >= getattr(one, part)
        assert two.epsilon == pytest.approx(one.epsilon + two.epsilon_increment)


class TestSearch:
    def test_it_begins_at_the_model_and_at_the_level_after_it(self, monkeypatch):
        first, drawn = fitted(), []
        usual = PerturbedLevels.stage

        def noted(self, level, source):
            drawn.append((level, tuple(self.theta)))
            return usual(self, level, source)

        monkeypatch.setattr(PerturbedLevels, "stage", noted)
        first.refine(table(), goal=ErrorRate(0.12))
        last = 1.0 / first.release_.parameters["typical_noise"]
        assert drawn[0] == (pytest.approx(2.0 * last), tuple(first.release_.hypothesis))

    @pytest.mark.parametrize(
        ("goal", "then"),
        [
            (MeanCost(0.21, 1, 1.01), MeanCost(0.13, 1, 1.01)),
            (Recall(0.7) & Precision(0.7), Precision(0.8) & Recall(0.65)),
        ],
    )
    def test_of_costs_and_of_several_goals(self, goal, then):
        """One of several may ask for less if another asks for more, in whichever order they are stated."""
        second = fitted(goal).refine(table(), goal=then).release_
        assert second.status == "released"
        assert second.promise.costs == then.costs
        assert Release.from_json(second.to_json()) == second

    def test_from_a_model_that_was_short(self):
        model, before = short()
        after = model.refine(table(), goal=ErrorRate(0.11), release=before, max_epsilon=2.0).release_
        assert (after.status, after.continues) == ("released", before.id)
        assert after.parameters["noise_reach"] > before.parameters["noise_reach"]
        assert after.parameters["noise_reach_coverage"] == pytest.approx(0.8)

    def test_again_and_again(self):
        first = fitted()
        second = first.refine(table(), goal=ErrorRate(0.13))
        third = second.refine(table(), goal=ErrorRate(0.105))
        assert third.release_.continues == second.release_.id
        releases = [model.release_ for model in (first, second, third)]
        assert compose(releases).epsilon == pytest.approx(third.release_.epsilon)

    def test_of_numbers(self):
        first = AccuracyFirstModel(AMOUNT, R2(0.5), random_state=0, max_epsilon=5.0).fit(table())
        second = first.refine(table(), goal=R2(0.8))
        assert second.release_.shown >= 0.8
        assert second.score(table()) >= 0.8


def false_bounds(monkeypatch) -> int:
    """Return in how many runs a continued search states what is false of its model."""
    false = 0
    first = fitted()
    for seed in range(RUNS):
        model = first.set_params(random_state=seed)
        try:
            release = model.refine(table(), goal=ErrorRate((0.05, 0.11)[seed % 2]), max_epsilon=0.5).release_
        except AccuracyNotReached as stopped:
            release = stopped.release
        truth = float(np.mean(release.predict(table()) != np.array(columns()["income"])))
        false += release.shown is not None and release.shown < truth
    return false


class TestBound:
    """Seeded; a false alarm has probability 10⁻⁶."""

    def test_it_holds(self, monkeypatch):
        assert false_bounds(monkeypatch) <= stats.binom.isf(RARE, RUNS, GAMMA)

    def test_without_margins_it_does_not(self, monkeypatch):
        first = fitted()
        monkeypatch.setattr(looks, "laplace_deviations", lambda *_: 0.0)
        monkeypatch.setattr("tests.estimators.test_table_refinement.fitted", lambda: first)
        assert false_bounds(monkeypatch) > stats.binom.isf(RARE, RUNS, GAMMA)


class TestRefused:
    """Before anything is drawn, and in words."""

    @pytest.mark.parametrize(
        ("goal", "options", "said"),
        [
            (ErrorRate(0.3), {}, "has that already"),
            (LogLoss(0.3), {}, "was searched for by its error rate"),
            (ErrorRate(0.1), {"schema": {**LABELS, "columns": {**COLUMNS, "hours": {"bounds": [0, 81]}}}}, "schema"),
            (ErrorRate(0.1), {"delta": 1e-6}, "without a delta"),
            (ErrorRate(0.1), {"max_epsilon": 0.01}, "is about both searches"),
            (R2(0.5), {}, "R2 is for regression"),
        ],
    )
    def test_what_does_not_go_together(self, monkeypatch, goal, options, said):
        model = fitted()
        before = model.release_
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match=said) as refused:
            model.set_params(**options).refine(table(), goal=goal, release=before)
        assert "othing was spent" in " ".join([str(refused.value), *getattr(refused.value, "__notes__", ())])

    @pytest.mark.parametrize(
        ("first", "then", "said"),
        [
            (MeanCost(0.21, 1, 1.01), MeanCost(0.2, 1, 20), "cost false_positive=1 and false_negative=1.01, which"),
            (MeanCost(0.21, 1, 1.01), MeanCost(0.2), "which cannot change, not false_positive=1 and false_negative=1"),
            (Recall(0.7) & Precision(0.7), Recall(0.7) & Precision(0.7), "has that already: recall and precision"),
            (Recall(0.7) & Precision(0.7), Precision(0.6) & Recall(0.5), "has that already: recall and precision"),
            (Recall(0.7) & Precision(0.7), Recall(0.9) & Specificity(0.8), "searched for by its recall and precision"),
            (Recall(0.7) & MeanCost(0.3, 1, 2), Recall(0.8) & MeanCost(0.3, 2, 2), "which cannot change"),
        ],
    )
    def test_a_goal_that_is_not_the_same_goal_or_asks_for_no_more(self, monkeypatch, first, then, said):
        """Numbers are compared of goals that mean the same, each with its own."""
        model = fitted(first)
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match=said):
            model.refine(table(), goal=then)

    def test_costs_that_nobody_stated(self, monkeypatch):
        """As in files of before there was a field for them."""
        model = fitted(MeanCost(0.21, 1, 1.01))
        stated = model.release_.to_dict()
        del stated["promise"]["costs"]
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match="what is not stated, which cannot change"):
            model.refine(table(), goal=MeanCost(0.2, 1, 1.01), release=Release.from_json(json.dumps(stated)))

    def test_other_rows(self, monkeypatch):
        model = fitted()
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match="is about other rows: n = 3000, not 2999"):
            model.refine({name: cells[:-1] for name, cells in table().items()}, goal=ErrorRate(0.1))

    @pytest.mark.parametrize(
        "changed",
        [
            {"hypothesis": (0.1, 0.2, 0.3, 0.4, 0.5)},
            {"parameters": {"typical_noise": None}},
            {"schema_fingerprint": "0" * 64},
        ],
    )
    def test_an_edited_release(self, monkeypatch, changed):
        model = fitted()
        kept = dict(model.release_.parameters)
        if "parameters" in changed:
            changed = {"parameters": {**kept, **changed["parameters"]}}
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match=r"was it changed|another search|another schema"):
            model.refine(table(), goal=ErrorRate(0.1), release=dataclasses.replace(model.release_, **changed))

    def test_a_refusal_and_what_is_no_release(self, monkeypatch):
        model = fitted()
        refused = Release(status="refused", method="auto")
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match="no model to go on from"):
            model.refine(table(), goal=ErrorRate(0.1), release=refused)
        with pytest.raises((TypeError, ValueError), match="release must be"):
            model.refine(table(), goal=ErrorRate(0.1), release="first.json")

    def test_what_is_left_must_do(self, monkeypatch):
        model = fitted()
        nothing_is_drawn(monkeypatch)
        with pytest.raises(TargetUnreachable, match="Nothing was spent") as refused:
            model.refine(table(), goal=ErrorRate(0.01), max_epsilon=model.release_.epsilon * 1.01)
        assert "is left of max_epsilon after what was spent before" in " ".join(refused.value.__notes__)


class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path):
        return Ledger.create(tmp_path / "book.db", "d", cap=1.0)

    @staticmethod
    def stricter(first: AccuracyFirstModel, **options) -> Release:
        """Go on to a little more than was shown: noise is secure here, so a run may end short, and is charged alike."""
        try:
            return first.refine(table(), goal=ErrorRate(first.release_.shown * 0.999), **options).release_
        except AccuracyNotReached as stopped:
            return stopped.release

    def test_the_difference_is_charged(self, ledger):
        first = fitted(ledger=ledger, random_state=None, max_epsilon=0.9)
        one, two = first.release_, self.stricter(first, max_epsilon=0.99)
        charged = [entry.loss.epsilon for entry in ledger.budget.entries]
        assert charged == [one.epsilon, two.epsilon_increment]
        assert ledger.budget.total.epsilon == pytest.approx(two.epsilon)

    def test_one_that_the_ledger_does_not_know_is_charged_with_it(self, ledger):
        first = fitted(random_state=None, max_epsilon=0.9)
        second = self.stricter(first.set_params(ledger=ledger))
        assert [entry.loss.epsilon for entry in ledger.budget.entries] == [second.epsilon]

    def test_what_is_advised_where_too_little_is_left_can_be_done(self, ledger):
        """A max_epsilon is about both searches, and the ledger has charged the first."""
        first = fitted(ledger=ledger, random_state=None, max_epsilon=0.9)
        with pytest.raises(BudgetExceeded, match=r"has .* of 1 left, and this search may cost up to") as refused:
            self.stricter(first, max_epsilon=5.0)
        advised = re.search(r"Pass max_epsilon=([\d.]+), ", str(refused.value))
        assert advised is not None
        assert 0.99 < float(advised[1]) <= refused.value.remaining <= 1.0
        two = self.stricter(first, max_epsilon=float(advised[1]))
        assert [entry.release_id for entry in ledger.budget.entries] == [first.release_.id, two.id]

    def test_nothing_is_advised_where_nothing_would_do(self, tmp_path):
        """The first search was not charged there, and cost more than is left by itself."""
        first = fitted(random_state=None, max_epsilon=0.9)
        small = Ledger.create(tmp_path / "book.db", "d", cap=first.release_.epsilon * 0.9)
        with pytest.raises(BudgetExceeded) as refused:
            self.stricter(first.set_params(ledger=small), max_epsilon=5.0)
        assert "max_epsilon" not in str(refused.value)
        assert "Nothing was spent" in str(refused.value)

    @pytest.mark.parametrize("left", [0.31 + 0.01 * k for k in range(8)] + [1e-6])
    def test_what_a_ledger_has_left_is_what_it_may_cost(self, tmp_path, monkeypatch, left):
        """Lowered to what is left, whatever that is: neither what is paid nor what is new of a sum may exceed it."""
        tried = (fitted(random_state=None) for _ in range(9))
        first = next(model for model in tried if model.release_.shown > 0.06)  # one fit in 75 has shown what is asked
        ledger = Ledger.create(tmp_path / "book.db", "d", cap=first.release_.epsilon + left)
        ledger.book(first.release_)
        first.set_params(ledger=Ledger(ledger.path, "d", when_short="lower"))
        monkeypatch.setattr(PerturbedLevels, "stage", lambda *_: 1 / 0)  # what an interruption is charged was reserved
        with pytest.raises(SearchInterrupted if left > 0.01 else TargetUnreachable):
            first.refine(table(), goal=ErrorRate(0.06))
        assert ledger.budget.total.epsilon <= ledger.budget.cap.epsilon

    def test_an_edited_cost_is_refused(self, ledger, monkeypatch):
        first = fitted(ledger=ledger, random_state=None, max_epsilon=0.9)
        cheaper = dataclasses.replace(first.release_, epsilon_test=0.0)
        nothing_is_drawn(monkeypatch)
        with pytest.raises(ValueError, match="not what the ledger has under that id"):
            first.refine(table(), goal=ErrorRate(0.05), release=cheaper)
        assert len(ledger.budget.entries) == 1


class TestCommand:
    @pytest.fixture
    def first(self, tmp_path, capsys):
        source, schema = written("csv", tmp_path), tmp_path / "schema.toml"
        schema.write_text(Schema.from_dict(LABELS).to_toml())
        asked = [
            "--schema",
            str(schema),
            "--error-rate",
            "0.2",
            "--seed",
            "0",
            "--output",
            str(tmp_path / "first.json"),
        ]
        assert main(["fit", str(source), *asked]) == 0
        capsys.readouterr()
        return tmp_path

    def refine(self, folder, *more):
        return main(["refine", str(folder / "first.json"), str(folder / "table.csv"), *more])

    def test_released_and_short(self, first, capsys):
        assert self.refine(first, "--error-rate", "0.12", "--seed", "0") == 0
        made = json.loads((first / "first-0.12.json").read_text())
        assert made["parameters"]["continues"] == json.loads((first / "first.json").read_text())["id"]
        assert "of it is new, beside release" in capsys.readouterr().out
        assert self.refine(first, "--error-rate", "0.05", "--seed", "0", "--max-epsilon", "0.5") == 5
        assert json.loads((first / "first-0.05-short.json").read_text())["status"] == "short"

    @pytest.mark.parametrize(
        ("goal", "then", "called"),
        [
            (["--recall", "0.7", "--precision", "0.7"], ["--recall", "0.75", "--precision", "0.7"], "0.75-0.7"),
            (["--recall", "0.7", "--specificity", "0.7"], ["--recall", "0.7", "--specificity", "0.75"], "0.7-0.75"),
            (["--cost-at-most", "0.21"], ["--cost-at-most", "0.14"], "0.14"),
        ],
    )
    def test_every_goal_that_fit_takes(self, first, capsys, goal, then, called):
        costs = ["--cost", "fp=1,fn=1.01"] if "--cost-at-most" in goal else []
        read = [str(first / "table.csv"), "--schema", str(first / "schema.toml")]
        made = ["--seed", "0", "--output", str(first / "first.json"), "--force"]
        assert main(["fit", *read, *goal, *costs, *made]) == 0
        assert self.refine(first, *then, *costs, "--seed", "0") in (0, 5)
        capsys.readouterr()
        second = json.loads(next(first.glob(f"first-{called}*.json")).read_text())
        assert second["parameters"]["continues"] == json.loads((first / "first.json").read_text())["id"]
        assert self.refine(first, *goal, *costs) == 2
        assert "has that already" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (["--error-rate", "0.3"], "has that already"),
            (["--error-rate", "0.1", "--r2", "0.2"], "are no goal together"),
            (["--cost-at-most", "0.1"], "--cost-at-most and --cost go together"),
            (["--excess-risk", "0.1"], "how good must the model of the table be now"),
            ([], "how good must the model of the table be now"),
            (["--error-rate", "0.1", "--key", "key"], "--key goes with a path"),
            (["--error-rate", "0.1", "--max-epsilon", "0.01"], "--max-epsilon = 0.01 is about both"),
            (["--error-rate", "2"], "--error-rate must be"),
        ],
    )
    def test_mistakes(self, first, capsys, more, said):
        assert self.refine(first, *more) == 2
        err = capsys.readouterr().err
        assert said in err
        assert "othing was spent" in err

    def test_neither_a_table_nor_a_path(self, first, capsys):
        assert main(["refine", str(first / "first.json"), "--error-rate", "0.1"]) == 2
        assert "name the table to go on with" in capsys.readouterr().err
