"""What looks have shown, for nothing (theory D3): beside what was asked, and of the best model where no goal is met."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from expost import (
    F1,
    R2,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    Ledger,
    LogLoss,
    MeanCost,
    MeanSquaredError,
    Precision,
    Recall,
    Release,
    Specificity,
    compose,
)
from expost.account.account import Account
from expost.cli import main
from expost.exceptions import AccuracyNotReached, ShortOfGoalWarning
from expost.goals.labels_and_base_rate import BaseRate
from expost.goals.yardstick import Yardstick
from expost.noise.source import SeededSource
from expost.release.page import report
from expost.search import noisy_test as pure_looks
from expost.search.noisy_test import NoisyValue
from expost.shown import down
from expost.table.schema import Schema
from tests.estimators.model_helpers import AMOUNT, LABELS, N, columns, table, written

GAMMA, RUNS, RARE = 0.2, 50, 1e-6
#: δ and the way: the chain of pure releases, and at a δ all three.
WAYS = [(0.0, None), (1e-6, "descent"), (1e-6, "objective"), (1e-6, "covariance")]
#: One that is out of reach, one that is hard, one that is easy.
GOALS = (ErrorRate(0.05), ErrorRate(0.11), ErrorRate(0.2))


def outcome(goal, seed=0, schema=LABELS, table_=None, **options) -> Release:
    stated = {"max_epsilon": 0.5, "failure_probability": GAMMA, "random_state": seed, **options}
    try:
        return AccuracyFirstModel(schema, goal, **stated).fit(table_ or table()).release_
    except AccuracyNotReached as stopped:
        return stopped.release


def short(goal, seed=0, schema=LABELS, **options) -> Release:
    release = outcome(goal, seed, schema, **options)
    assert release.status == "short"
    return release


def error_rate(release: Release) -> float:
    """The truth about the model in a release: it is predicted as the promise judges it."""
    return float(np.mean(release.predict(table()) != np.array(columns()["income"])))


def r2(release: Release) -> float:
    target = np.array(columns()["amount"])
    return float(1.0 - np.mean((release.predict(table()) - target) ** 2) / np.var(target))


def false_bounds(truth, goals, above=1.0, runs=RUNS, **options) -> tuple[int, set[str]]:
    """Return how many runs state what is false of the very model in them, whichever way they end; and which ways."""
    false, ways = 0, set()
    for seed in range(runs):
        release = outcome(goals[seed % len(goals)], seed, **options)
        ways.add(release.status)
        false += release.shown is not None and above * release.shown < above * truth(release)
    return false, ways


def without_margins(monkeypatch) -> None:
    monkeypatch.setattr(NoisyValue, "margin", lambda *_: 0.0)
    monkeypatch.setattr(pure_looks, "laplace_deviations", lambda *_: 0.0)


@pytest.mark.parametrize(("delta", "way"), WAYS)
class TestBound:
    """Seeded. Each is false with probability at most γ over runs of all outcomes; a false alarm has probability 10⁻⁶"""

    def test_it_holds(self, delta, way):
        false, ways = false_bounds(error_rate, GOALS, delta=delta, perturbation=way)
        assert false <= stats.binom.isf(RARE, RUNS, GAMMA)
        assert ways == {"released", "short"}

    def test_without_margins_it_does_not(self, monkeypatch, delta, way):
        without_margins(monkeypatch)
        assert false_bounds(error_rate, GOALS, delta=delta, perturbation=way)[0] > stats.binom.isf(RARE, RUNS, GAMMA)

    def test_it_says_something(self, delta, way):
        assert 0.05 < short(ErrorRate(0.05), delta=delta, perturbation=way).shown < 0.4


def test_nothing_below_zero_is_stated():
    """Where a perfect model is tested with a large γ, noise often says that its mean square is less than nothing."""
    exact = {**columns(), "amount": columns()["hours"]}
    shown = []
    for seed in range(20):
        model = AccuracyFirstModel(AMOUNT, MeanSquaredError(100.0), failure_probability=0.9, random_state=seed)
        try:
            shown.append(model.fit(exact).release_)
        except AccuracyNotReached:
            continue
    least = min(shown, key=lambda release: release.shown)
    assert least.shown == 0.0
    assert "at most 0 was shown" in str(least)
    assert least.evaluate(exact, margin=0.2, random_state=0).mean_squared_error.low == 0.0  # it can be asked


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bounds_hold_over_many_runs(delta):
    """As above, 400 runs: all that are false beside margins of a few per cent would be seen."""
    assert false_bounds(error_rate, GOALS, runs=400, delta=delta)[0] <= stats.binom.isf(RARE, 400, GAMMA)


class TestR2:
    """A bound on MSE − (1 − r)·Var(y) speaks of R² by the variance that the yardstick has released."""

    GOALS = (R2(0.9), R2(0.8))

    def test_it_holds(self):
        false, ways = false_bounds(r2, self.GOALS, -1.0, schema=AMOUNT, max_epsilon=2.0)
        assert false <= stats.binom.isf(RARE, RUNS, GAMMA)
        assert ways == {"released", "short"}

    def test_without_margins_it_does_not(self, monkeypatch):
        without_margins(monkeypatch)
        false, _ = false_bounds(r2, self.GOALS, -1.0, schema=AMOUNT, max_epsilon=2.0)
        assert false > stats.binom.isf(RARE, RUNS, GAMMA)

    def test_what_a_bound_says_of_it(self):
        known = dataclasses.replace(R2(0.8), yardstick=Yardstick(0.0, 0.5, 0.01, (0.2, 0.4)))
        assert known.shown(0.02) == {"shown": pytest.approx(0.7)}
        assert known.shown(-0.02) == {"shown": pytest.approx(0.85)}
        assert known.shown(0.2) == {}  # no better than the mean

    def test_nothing_is_known_without_a_variance(self):
        assert R2(0.8).shown(0.02) == {}
        assert R2(0.8).shown(-0.02) == {"shown": pytest.approx(0.82)}  # no variance is above 1


class TestOutcomes:
    """Goals about shares of some rows: a bound on the shortfall speaks of them by the base rate that was released."""

    BEYOND, GAMMA = Recall(0.9) & Precision(0.8), 0.02

    def test_what_is_shown_of_several_holds(self):
        assert self.false() <= stats.binom.isf(RARE, RUNS, self.GAMMA)

    def test_without_margins_it_does_not(self, monkeypatch):
        """Neither those of tests nor those of the base rate."""
        without_margins(monkeypatch)
        monkeypatch.setattr(BaseRate, "ends", property(lambda base: (base.rate, base.rate)))
        assert self.false() > stats.binom.isf(RARE, RUNS, self.GAMMA)

    def false(self) -> int:
        """How many runs state of the very model in them what is false; all end short of the goal."""
        false, ways = 0, set()
        for seed in range(RUNS):
            release = rare(self.BEYOND, seed, failure_probability=self.GAMMA)
            ways.add(release.status)
            if release.status == "short":
                true = outcomes(release)
                false += any(bound > true[name] for name, bound in release.numbers_shown.items())
        assert "short" in ways
        return false

    def test_it_says_something(self):
        for goal in (self.BEYOND, F1(0.9), Recall(0.9) & Specificity(0.995), Recall(0.9) & ErrorRate(0.01)):
            release, true = rare(goal, 0), {}
            assert release.status == "short"
            true = outcomes(release)
            for name, bound in release.numbers_shown.items():
                asked = release.promise.numbers[name]
                if name == "error rate":
                    assert asked < bound
                    assert true[name] <= bound
                else:
                    assert 0.3 * asked < bound <= true[name] + 1e-12
                    assert bound < asked or true[name] >= asked

    def test_what_it_costs_a_user_in_words(self, tmp_path):
        release = rare(self.BEYOND, 1)
        bounds = release.shown
        assert set(bounds) == {"recall", "precision"}
        said = f"recall of at least {down(bounds['recall'])} and precision of at least {down(bounds['precision'])} were"
        assert release.closest == f"closest: {said} shown, 0.9 and 0.8 were asked"
        page = report(release)
        assert release.closest[1:] in page
        assert "recall and precision at least 0." in page
        assert "asked at least 0.9 and at least 0.8; shown at least" in " ".join(str(release).split())
        assert Release.from_json(release.to_json()) == release
        assert Release.from_json(release.to_json()).numbers_shown == dict(bounds)
        assert "is not promised" in release.promise.statement
        assert release.predict(table()).shape == (N,)

    def test_a_released_model_has_it_too(self):
        release = rare(Recall(0.6) & Precision(0.3), 1, max_epsilon=2.0)
        assert release.status == "released"
        true = outcomes(release)
        assert 0.6 <= release.shown["recall"] <= true["recall"]
        assert 0.3 <= release.shown["precision"] <= true["precision"]

    def test_nothing_is_said_of_a_share_of_rows_that_may_not_be(self):
        """Ten positive rows among 4,000: that there is one at all is not known, so nothing is handed over."""
        labels = np.where(np.arange(N) < 10, "high", "low").tolist()
        release = outcome(Recall(0.9) & Precision(0.8), table_=table(income=labels), max_epsilon=0.1)
        assert release.status == "refused"
        assert "known too roughly" in str(release)

    def test_every_model_that_was_paid_for_is_looked_at(self):
        """Finding a cut-off has its part of what a test may cost, and leaves what the test needs at least."""
        for seed in range(5):
            release = rare(self.BEYOND, seed, max_epsilon=0.25)
            made = next(reason for reason in release.parameters["reasons"] if "level(s)" in reason)
            levels, looks = (int(made.split(word)[0].split()[-1]) for word in (" level(s)", " look"))
            assert looks >= levels

    def test_bounds_by_hand(self):
        """Recall r falls by b/π, and beside it precision by the same part; each part of what was asked alike."""
        goal = dataclasses.replace(Recall(0.8) & Precision(0.4), base=BaseRate(0.11, 0.01, 0.01))  # 0.1 at least
        part = 1.0 - 0.02 / (0.8 * 0.1)
        assert goal.shown(0.02) == {
            "shown": {"recall": pytest.approx(0.8 * part), "precision": pytest.approx(0.4 * part)}
        }
        assert goal.shown(0.2) == goal.shown(math.inf) == {}  # no better than a coin
        met = goal.shown(-0.01)["shown"]  # by π₊ where there is something to spare
        assert met["recall"] == pytest.approx(0.8 + 0.01 / 0.12)
        assert met["precision"] > 0.4
        exact = goal.shown(0.0)["shown"]
        assert exact == {"recall": 0.8, "precision": 0.4}
        assert Recall(0.8).shown(0.02) == dataclasses.replace(Precision(0.4), base=goal.base).shown(0.02) == {}
        alone = dataclasses.replace(MeanCost(0.1, false_positive=1, false_negative=5), base=BaseRate(0.1, 0.01, 0.01))
        assert alone.shown(0.01) == {"shown": pytest.approx(0.1 + 0.05)}
        assert alone.shown(0.09) == {}  # always saying no costs as little

    def test_no_outcome_is_worse_than_what_is_shown(self):
        """Outcomes drawn at random that keep the bound; some come close, which a bound that says less would hide."""
        rng, goals = np.random.default_rng(5), (Recall(0.7) & Specificity(0.9), Recall(0.7) & F1(0.5) & ErrorRate(0.2))
        for goal in (*goals, F1(0.6), MeanCost(0.2, false_positive=1.0, false_negative=2.0)):
            known = dataclasses.replace(goal, base=BaseRate(0.3, 0.05, 0.02))
            bound = 0.03
            shown = known.shown(bound)["shown"]
            shown = shown if isinstance(shown, dict) else {goal.name: shown}
            nearest = dict.fromkeys(shown, math.inf)
            for positive, found, alarms in rng.beta(0.5, 0.5, size=(60_000, 3)):
                share = 0.25 + 0.1 * positive
                said = share * found, (1 - share) * alarms**3, share * (1 - found), (1 - share) * (1 - alarms**3)
                if max(line.mean(said, 1.0) for line in known.lines) > bound:
                    continue
                for each in known.each:
                    better = each.number_of(*said) - shown[each.name]
                    nearest[each.name] = min(nearest[each.name], better if each.sign == "≥" else -better)
            assert all(0.0 <= off < 0.02 for off in nearest.values()), nearest

    def test_the_noisy_base_rate_itself_would_not_do(self):
        """Hostile: few positive rows, a known share of them found, and a bound on the shortfall that is exact.

        The base rate has at most a tenth of γ. Its noise is symmetric, so a bound that divides by the rate as it was
        released is false in about half of all runs; a false alarm has probability 10⁻⁶.
        """
        n, positive, gamma, runs = 2_000, 60, 0.5, 300
        judge = Labels(n, positive)
        hits = positive // 2  # of which recall is a half
        false = {"ends": 0, "rate": 0}
        for seed in range(runs):
            account = Account("", 2.0, False)
            goal, _, _ = (Recall(0.9) & Precision(0.5)).measured(judge, account, SeededSource([8, seed]), gamma, 0.1)
            bound = max(line.mean((hits, 0, positive - hits, n - positive), n) for line in goal.lines)
            careless = dataclasses.replace(goal, base=dataclasses.replace(goal.base, off=0.0))
            for name, known in (("ends", goal), ("rate", careless)):
                shown = known.shown(bound).get("shown", {})
                false[name] += shown.get("recall", 0.0) > hits / positive
        assert false["ends"] <= stats.binom.isf(RARE, runs, 0.1 * gamma)
        assert false["rate"] > stats.binom.isf(RARE, runs, 0.1 * gamma)


def rare(goal, seed=0, **options) -> Release:
    """A label that one row in eight has, by the hours worked."""
    return outcome(goal, seed, table_=late(), **{"max_epsilon": 1.0, **options})


@cache
def late() -> dict[str, list]:
    noise = np.random.default_rng(3).normal(0, 4, N)
    return table(income=np.where(np.array(columns()["hours"]) + noise > 70, "high", "low").tolist())


def outcomes(release: Release) -> dict[str, float]:
    """The truth about the model in a release."""
    said, true = release.predict(late()) == "high", np.array(late()["income"]) == "high"
    hits, alarms, positive = np.sum(said & true), np.sum(said), np.sum(true)
    return {
        "recall": hits / positive,
        "precision": hits / alarms if alarms else 1.0,  # of no rows anything holds
        "F₁": 2 * hits / (positive + alarms),
        "specificity": np.sum(~said & ~true) / np.sum(~true),
        "error rate": np.mean(said != true),
    }


class Labels:
    """Rows of which some are positive, as a search sees them."""

    def __init__(self, n: int, positive: int) -> None:
        self.n, self._mean = n, 2.0 * positive / n - 1.0

    def target_mean(self) -> float:
        return self._mean


@pytest.mark.parametrize("goal", [LogLoss(0.15), ErrorRate(0.05)], ids=lambda goal: goal.name)
@pytest.mark.parametrize("kept", ["raise", "discard"])
def test_in_words(goal, kept):
    release = outcome(goal, when_short=kept)
    assert release.status == ("short" if kept == "raise" else "refused")
    assert 0.0 <= float(release.closest.split("at most ")[1].split(" was")[0]) - release.shown < 1e-3
    assert f"{goal.at_most:g} was asked" in release.closest
    page = report(release)
    assert release.closest[1:] in page
    assert "refused or not, at most 0.2 show what is false" in page
    assert release.going_on[1:] in page
    assert Release.from_json(release.to_json()) == release
    assert "going on      the next level and its test would have cost about" in str(release)
    said = "asked at most" if kept == "raise" else release.closest
    assert said in str(release)


def test_squares_are_in_the_targets_units():
    release = short(MeanSquaredError(50.0), schema=AMOUNT, max_epsilon=2.0)
    assert release.parameters["shown"] < 1.0
    assert 50.0 < float(release.closest.split("at most ")[1].split(" was")[0]) < 1000.0
    assert release.shown == pytest.approx(release.parameters["shown"] * 2500.0)
    assert "50 was asked" in release.closest


def test_nothing_is_stated_that_a_constant_does_as_well():
    goal = ErrorRate(0.05)
    assert goal.shown(0.5) == goal.shown(math.inf) == {}
    assert goal.shown(0.1) == {"shown": pytest.approx(0.15)}
    assert ErrorRate(0.6).shown(-1e-3) == {"shown": pytest.approx(0.599)}  # met, whatever a constant does
    assert ErrorRate(0.6).shown(-1e-20) == {"shown": 0.6}
    assert LogLoss(0.4).shown(0.3) == {}


class TestReleased:
    def test_what_was_shown_stands_beside_what_was_asked(self):
        release = AccuracyFirstModel(LABELS, ErrorRate(0.25), random_state=0).fit(table()).release_
        assert release.shown <= 0.25
        assert release.closest == release.going_on == ""
        assert "as asked" in str(release)
        assert f"{release.shown:.3g}"[:4] in str(release)
        assert "its tests have shown it, with the same probability" in report(release)
        assert Release.from_json(release.to_json()).shown == release.shown

    def test_searches_whose_tests_only_pass_say_nothing(self):
        rows = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
        model = AccuracyFirstRidge(excess_risk=0.02, bounds=1.0, target_bound=2.0, random_state=0)
        release = model.fit(rows, rows @ [1.0, -0.5]).release_
        assert release.shown is None
        assert "shown" not in release.parameters


class TestShort:
    def test_the_best_model_is_handed_over(self):
        release = short(ErrorRate(0.05))
        assert release.predict(table()).shape == (N,)
        assert release.epsilon <= 0.5
        assert "is not promised" in release.promise.statement
        assert release.promise.at_most == 0.05
        assert release.to_sklearn() is not None
        assert "short of its goal" in report(release)
        assert "short of the goal" in str(release)
        assert compose([release]).epsilon == release.epsilon

    def test_it_is_the_one_of_the_least_bound(self, monkeypatch):
        """Not the last one: what is said of it is what was said of it then."""
        told, usual = [], pure_looks.NoisyTest.shows

        def noted(self, bound):
            told.append(bound)
            return usual(self, bound)

        monkeypatch.setattr(pure_looks.NoisyTest, "shows", noted)
        release = short(ErrorRate(0.05), seed=4)
        assert release.parameters["shown"] == pytest.approx(0.05 + min(told))

    def test_an_earlier_model_that_was_shown_to_be_better(self, monkeypatch):
        """Bounds that get worse from level to level: the first model is the one."""
        monkeypatch.setattr(pure_looks.NoisyTest, "shows", _worse_and_worse())
        first = short(ErrorRate(0.05))
        assert first.level == 0
        monkeypatch.undo()
        assert first.parameters["typical_noise"] > 1.5 * short(ErrorRate(0.05)).parameters["typical_noise"]

    def test_it_costs_what_a_refusal_costs(self):
        kept, refused = outcome(ErrorRate(0.05)), outcome(ErrorRate(0.05), when_short="discard")
        assert (kept.epsilon, kept.shown, kept.going_on) == (refused.epsilon, refused.shown, refused.going_on)
        assert refused.status == "refused"
        assert refused.hypothesis is None
        assert "coef" not in refused.parameters
        with pytest.raises(ValueError, match="no model"):
            refused.predict(table())

    def test_kept_with_a_warning(self):
        model = AccuracyFirstModel(LABELS, ErrorRate(0.05), max_epsilon=0.5, when_short="keep", random_state=0)
        with pytest.warns(ShortOfGoalWarning, match=r"0\.05 was asked"):
            model.fit(table())
        assert model.release_ == short(ErrorRate(0.05), failure_probability=0.1)
        assert model.score(table()) > 0.8

    def test_arrays_as_well(self):
        rows = np.random.default_rng(0).uniform(-1, 1, size=(20_000, 2))
        target = rows @ [1.0, -0.5] + np.random.default_rng(1).normal(0, 0.3, 20_000)
        stated = {"goal": R2(0.9), "bounds": 1.0, "target_bound": 2.0, "random_state": 0, "max_epsilon": 1.0}
        with pytest.raises(AccuracyNotReached) as stopped:
            AccuracyFirstRidge(**stated).fit(rows, target)
        release = stopped.value.release
        assert release.status == "short"
        assert release.closest[1:] in str(stopped.value)
        assert 0.0 < release.shown < 0.9
        with pytest.warns(ShortOfGoalWarning):
            model = AccuracyFirstRidge(**stated, when_short="keep").fit(rows, target)
        assert model.coef_.tolist() == list(release.parameters["coef"])

    def test_nothing_is_handed_over_of_which_nothing_was_shown(self):
        """Labels by chance: no model is better than a constant, and none is shown to be."""
        labels = np.random.default_rng(0).choice(["low", "high"], N).tolist()
        model = AccuracyFirstModel(LABELS, ErrorRate(0.3), max_epsilon=0.3, random_state=0)
        with pytest.raises(AccuracyNotReached) as stopped:
            model.fit(table(income=labels))
        assert stopped.value.release.status == "refused"
        assert stopped.value.release.shown is None

    @pytest.mark.parametrize("changed", [{"hypothesis": None}, {"parameters": {}}])
    def test_no_other_release_is_short(self, changed):
        release = short(ErrorRate(0.05))
        with pytest.raises(ValueError, match="short of its goal carries"):
            dataclasses.replace(release, **changed)
        with pytest.raises(ValueError, match=r"when_short must be"):
            outcome(ErrorRate(0.05), when_short="lower")


def _worse_and_worse():
    told = iter(range(1, 1000))

    def shows(self, bound):
        self.shown = min(self.shown, 0.1 + 1e-3 * next(told))
        return False

    return shows


class TestCommand:
    @pytest.fixture
    def fit(self, tmp_path, capsys):
        source, schema = written("csv", tmp_path), tmp_path / "schema.toml"
        schema.write_text(Schema.from_dict(LABELS).to_toml())
        stated = ["--schema", str(schema), "--error-rate", "0.05", "--max-epsilon", "0.5", "--seed", "0"]

        def run(*more):
            status = main(["fit", str(source), *stated, *more])
            return (status, *capsys.readouterr())

        return run

    def test_it_is_saved_under_a_name_of_its_own(self, fit, tmp_path):
        status, out, err = fit("--output", str(tmp_path / "income.json"))
        assert status == 5
        assert "asked at most 0.05; shown at most 0." in out
        assert "income-short.json; --when-short discard would keep no model" in out
        assert "Closest: an error rate of at most 0." in err
        assert not (tmp_path / "income.json").exists()
        kept = json.loads((tmp_path / "income-short.json").read_text())
        assert kept["status"] == "short"
        assert 0.05 < kept["parameters"]["shown"] < 1.0
        assert fit("--output", str(tmp_path / "income.json"))[0] == 5
        assert (tmp_path / "income-short-2.json").exists()  # nothing that was paid for is written over

    def test_the_model_can_be_used(self, fit, tmp_path, capsys):
        fit("--output", str(tmp_path / "income.json"))
        kept = str(tmp_path / "income-short.json")
        assert main(["predict", kept, str(tmp_path / "table.csv"), "--output", str(tmp_path / "answers.csv")]) == 0
        assert main(["export", kept, "--output", str(tmp_path / "model.joblib")]) == 0
        assert main(["report", kept, "--output", str(tmp_path / "report.html")]) == 0
        assert "Short of the goal" in (tmp_path / "report.html").read_text()

    def test_discarded_it_is_a_refusal(self, fit, tmp_path):
        status, out, err = fit("--output", str(tmp_path / "income.json"), "--when-short", "discard")
        assert status == 3
        assert "no model is released" in out
        assert "Closest: an error rate of at most 0." in err
        assert json.loads((tmp_path / "income-refused.json").read_text())["status"] == "refused"
        assert not (tmp_path / "income.json").exists()

    def test_a_ledger_shows_it(self, tmp_path, capsys):
        ledger = Ledger.create(tmp_path / "book.db", "d", cap=1.0)
        model = AccuracyFirstModel(LABELS, ErrorRate(0.05), max_epsilon=0.5, when_short="keep", ledger=ledger)
        with pytest.warns(ShortOfGoalWarning):
            model.fit(table())
        assert [entry.loss.epsilon for entry in ledger.budget.entries] == [model.release_.epsilon]
        assert main(["ledger", "show", str(tmp_path / "book.db")]) == 0
        assert "short" in capsys.readouterr().out

    def test_as_json(self, fit):
        status, out, _ = fit("--json")
        assert status == 5
        assert json.loads(out)["status"] == "short"

    def test_its_exit_status_is_in_the_help(self, capsys):
        with pytest.raises(SystemExit):
            main(["fit", "--help"])
        assert "5  short of the goal" in capsys.readouterr().out
