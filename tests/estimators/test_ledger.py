"""Estimators with a ledger: every fit is charged, refused before it spends, or held; grid searches included."""

from __future__ import annotations

import math
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from expost import (
    AccuracyFirstLogisticRegression,
    AccuracyFirstModel,
    AccuracyFirstRidge,
    ErrorRate,
    ExcessRisk,
    Ledger,
    RelativeExcessRisk,
    Release,
)
from expost.account.account import Account
from expost.account.composition import Unit
from expost.account.ledger import Reservation
from expost.exceptions import (
    AccuracyNotReached,
    BudgetExceeded,
    LedgerRefused,
    LedgerWarning,
    RepeatedFitsWarning,
    SearchInterrupted,
    TargetUnreachable,
)
from expost.noise.source import SecureSource
from expost.search import run_search
from expost.solve.losses import SquaredLoss
from expost.solve.problem import Problem
from expost.table import Preparation

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2_000, 2))
Y = X @ [1.0, -0.5]
LABELS = np.where(Y > 0, "yes", "no")
TABLE = {"a": X[:, 0], "b": X[:, 1], "answer": LABELS}
COINS = {**TABLE, "answer": np.random.default_rng(1).permutation(LABELS)}
SCHEMA = {
    "target": "answer",
    "classes": ["no", "yes"],
    "columns": {"a": {"bounds": [-1, 1]}, "b": {"bounds": [-1, 1]}},
}
SEARCH = {"method": "above_threshold", "calibration": "theorem", "n_levels": 8, "regularization": 1.0, "bounds": 1.0}
WORST = 100.0  # more than those searches cost at worst


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "survey", cap=200.0)


def fixed(**options) -> AccuracyFirstRidge:
    """Return an estimator whose fit costs ``max_epsilon``, neither more nor less."""
    return AccuracyFirstRidge(**{"method": "fixed", "bounds": 1.0, "target_bound": 2.0, "max_epsilon": 0.1, **options})


def searching(excess_risk: float = 0.4, **options) -> AccuracyFirstRidge:
    return AccuracyFirstRidge(
        **{"excess_risk": excess_risk, "target_bound": 2.0, "max_epsilon": WORST, **SEARCH, **options}
    )


def hopeless(ledger: Ledger) -> AccuracyFirstModel:
    """Return a model that is refused for labels that are coins, but for a chance of 10⁻⁶."""
    return AccuracyFirstModel(SCHEMA, ErrorRate(0.2), failure_probability=1e-6, max_epsilon=50.0, ledger=ledger)


def charged(ledger: Ledger) -> list[float]:
    return [entry.loss.epsilon for entry in ledger.budget.entries]


def only_entry(ledger: Ledger):
    (entry,) = ledger.budget.entries
    return entry


def every_estimator(ledger):
    """Yield each estimator with data to fit it to."""
    classes = {"excess_risk": 0.4, "classes": ("no", "yes"), "max_epsilon": WORST, **SEARCH}
    yield searching(ledger=ledger), (X, Y)
    yield AccuracyFirstLogisticRegression(**classes, ledger=ledger), (X, LABELS)
    yield AccuracyFirstModel(SCHEMA, ErrorRate(0.4), max_epsilon=50.0, ledger=ledger), (TABLE,)


@pytest.mark.filterwarnings("ignore::expost.exceptions.LargeEpsilonWarning")
class TestOneFit:
    def test_every_estimator_settles_what_it_cost(self, ledger):
        for number, (model, data) in enumerate(every_estimator(ledger), start=1):
            release = model.fit(*data).release_
            entry = ledger.budget.entries[-1]
            assert len(ledger.budget.entries) == number
            assert entry.id == entry.release_id == release.id
            assert [event.kind for event in entry.events] == ["reserved", "settled"]
            assert entry.events[0].loss.epsilon == release.epsilon_worst_case
            assert entry.loss.epsilon == release.epsilon < release.epsilon_worst_case
            assert Release.from_json(entry.release) == release  # the model is in it: what was paid for is not lost
            ledger.book(release)  # a second time nothing changes
        assert len(charged(ledger)) == 3

    def test_clones_and_pickles_share_the_budget(self, ledger):
        for number, (model, data) in enumerate(every_estimator(ledger), start=1):
            assert model.get_params()["ledger"] == ledger
            again = pickle.loads(pickle.dumps(clone(model)))
            assert again.ledger == ledger
            again.fit(*data)
            fitted = pickle.loads(pickle.dumps(again))
            assert fitted.release_ == again.release_
            assert len(charged(ledger)) == number
            assert model.set_params(ledger=None).ledger is None

    def test_rows_prepared_by_hand(self, ledger):
        rows = Preparation(None, 2.0, target=(-2.0, 2.0), intercept_weight=0, n_columns=2).prepare_regression(X, Y)
        problem = Problem.of(SquaredLoss(), n=rows.n, p=rows.p, regularization=1.0)
        release = run_search(rows, problem, ExcessRisk(0.4), max_epsilon=50.0, ledger=ledger)
        assert charged(ledger) == [release.epsilon]
        with pytest.raises(BudgetExceeded):
            run_search(rows, problem, method="fixed", max_epsilon=200.0, ledger=ledger)

    def test_a_refusal_is_booked_with_its_cost(self, ledger):
        with pytest.raises(AccuracyNotReached) as refusal:
            hopeless(ledger).fit(COINS)
        entry = only_entry(ledger)
        assert 0 < entry.loss.epsilon == refusal.value.release.epsilon
        assert Release.from_json(entry.release).status in ("short", "refused")  # by whether coins showed anything
        assert not entry.held

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_an_interruption_is_booked_at_the_worst_case(self, ledger, monkeypatch, error):
        def draw(self, count):
            raise error

        monkeypatch.setattr(SecureSource, "words", draw)
        with pytest.raises(SearchInterrupted) as interruption:
            searching(ledger=ledger).fit(X, Y)
        entry, release = only_entry(ledger), interruption.value.release
        assert entry.loss.epsilon == release.epsilon == release.epsilon_worst_case > 0
        assert entry.release_id == release.id
        assert Release.from_json(entry.release).parameters["interrupted"]

    def test_what_ends_before_a_draw_is_returned(self, ledger, monkeypatch):
        def fail(*_):
            raise MemoryError("a private value")

        monkeypatch.setattr("expost.mechanisms.moments.covariance.Covariance.on", fail)
        with pytest.raises(MemoryError):
            searching(ledger=ledger).fit(X, Y)
        entry = only_entry(ledger)
        assert (entry.loss.epsilon, entry.held, entry.events[-1].reason) == (0.0, False, "MemoryError")
        assert "a private value" not in ledger.path.read_bytes().decode(errors="replace")

    def test_bad_arguments_reserve_nothing(self, ledger):
        with pytest.raises(ValueError, match="excess_risk"):
            searching(excess_risk=-1.0, ledger=ledger).fit(X, Y)
        with pytest.raises(TargetUnreachable):
            searching(excess_risk=1e-9, ledger=ledger, max_epsilon=1e-6).fit(X, Y)
        with pytest.raises(ValueError, match="ledger must be a Ledger"):
            searching(ledger="ledger.db").fit(X, Y)
        assert charged(ledger) == []

    def test_a_second_name_in_the_meantime_leaves_the_worst_case_charged(self, ledger, monkeypatch):
        settle = Reservation.settle

        def linked(reservation, release):
            os.link(ledger.path, ledger.path.with_name("other.db"))
            settle(reservation, release)

        monkeypatch.setattr(Reservation, "settle", linked)
        model = searching(ledger=ledger)
        with pytest.warns(LedgerWarning, match="has 2 names.* Its worst case was charged before, as entry") as said:
            model.fit(X, Y)
        assert "Nothing" not in str(said[0].message)
        ledger.path.with_name("other.db").unlink()
        assert only_entry(ledger).held
        assert not ledger.book(model.release_).held
        assert only_entry(ledger).loss.epsilon == model.release_.epsilon

    @pytest.mark.parametrize("wrong", [None, 0.5, "release.json"])
    def test_what_is_no_release_is_not_booked(self, ledger, wrong):
        with pytest.raises(ValueError, match="release must be a Release"):
            ledger.book(wrong)
        assert charged(ledger) == []

    @pytest.mark.parametrize("outcome", ["released", "refused", "error"])
    def test_a_ledger_that_vanishes_loses_no_release(self, ledger, monkeypatch, outcome):
        """What cannot be settled stays charged at its worst case, and the release reaches the caller all the same."""
        settled = []

        def fail(reservation, release):
            settled.append(release)
            raise OSError("the disk is full")

        monkeypatch.setattr("expost.account.ledger.Reservation.settle", fail)
        if outcome == "refused":
            with pytest.raises(AccuracyNotReached) as refusal:
                hopeless(ledger).fit(COINS)
            assert "the disk is full" in refusal.value.__notes__[0]
        elif outcome == "error":  # warnings are errors: the release is carried by the exception
            with pytest.raises(SearchInterrupted) as interruption:
                searching(ledger=ledger).fit(X, Y)
            assert interruption.value.release == settled[0]
            assert "the disk is full" in interruption.value.__notes__[0]
        else:
            model = searching(ledger=ledger)
            with pytest.warns(
                LedgerWarning, match="the disk is full. The worst case of entry .* stays charged"
            ) as said:
                model.fit(X, Y)
            assert said[0].filename == __file__
            assert model.release_ == settled[0]
        assert len(settled) == 1
        entry = only_entry(ledger)
        assert entry.held
        assert entry.loss.epsilon == settled[0].epsilon_worst_case


class TestRefusing:
    def test_a_worst_case_that_does_not_fit(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=0.25)
        fixed(ledger=ledger).fit(X, Y)
        with pytest.raises(BudgetExceeded, match=r"has 0\.15 of 0\.25 left, .* up to 0\.2\. Pass max_epsilon=0"):
            fixed(ledger=ledger, max_epsilon=0.2).fit(X, Y)
        lowering = Ledger(ledger.path, "survey", when_short="lower")
        release = fixed(ledger=lowering, max_epsilon=0.2).fit(X, Y).release_
        assert release.epsilon == 0.15
        with pytest.raises(BudgetExceeded, match=r"has 0 of 0\.25 left"):
            fixed(ledger=lowering, max_epsilon=0.2).fit(X, Y)
        assert charged(ledger) == [0.1, 0.15]

    @pytest.mark.parametrize("seed", [0, np.random.RandomState(0)])
    def test_simulations(self, ledger, seed):
        for model, data in every_estimator(ledger):
            with pytest.raises(LedgerRefused, match="a ledger books no simulation; leave random_state out"):
                model.set_params(random_state=seed).fit(*data)
        assert charged(ledger) == []

    def test_no_bound(self, ledger):
        lifted = {"max_epsilon": math.inf, "goal": RelativeExcessRisk(0.5)}
        unbounded = AccuracyFirstRidge(**lifted, bounds=1.0, target_bound=2.0, ledger=ledger)
        with pytest.raises(LedgerRefused, match="infinity cannot be reserved; pass max_epsilon=200 or less"):
            unbounded.fit(X, Y)
        with pytest.raises(LedgerRefused, match="leave out on_failure='release_optimum'"):
            searching(ledger=ledger, on_failure="release_optimum").fit(X, Y)
        assert charged(ledger) == []

    def test_another_unit(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=200.0, unit="one household replaced")
        for model, data in every_estimator(ledger):
            with pytest.raises(LedgerRefused, match="is about 'one household replaced', this search about 'one row"):
                model.fit(*data)
        assert charged(ledger) == []

    def test_persons(self, tmp_path):
        """The worst case that is held is that of a person, k times that of a row."""
        table = {**TABLE, "who": np.repeat(np.arange(1000), 2)}
        model = AccuracyFirstModel(SCHEMA, ErrorRate(0.4), max_epsilon=50.0, person="who", rows_per_person=2)
        rows = Ledger.create(tmp_path / "ledger.db", "rows", cap=200.0)
        with pytest.raises(LedgerRefused, match=r"this search about .*one person, as column 'who'"):
            model.set_params(ledger=rows).fit(table)
        unit = Unit(persons=1, column="who").neighbours
        persons = Ledger.create(tmp_path / "ledger.db", "persons", cap=50.0, unit=unit)
        release = model.set_params(ledger=persons).fit(table).release_
        entry = only_entry(persons)
        assert entry.events[0].loss.epsilon == release.epsilon_worst_case <= 50.0
        assert entry.loss.epsilon == release.epsilon

    def test_nothing_is_drawn_for_a_search_that_is_refused(self, tmp_path, monkeypatch):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=1e-3)

        def draw(self, count):
            raise AssertionError

        monkeypatch.setattr(SecureSource, "words", draw)
        for model, data in every_estimator(ledger):
            with pytest.raises(BudgetExceeded):
                model.fit(*data)
        assert charged(ledger) == []


GRID = {"regularization": [0.01, 0.1, 0.3, 1.0]}  # four of three fits each, and one more with the best: thirteen


class TestGridSearch:
    def grid(self, ledger, **options) -> GridSearchCV:
        return GridSearchCV(fixed(ledger=ledger), GRID, cv=KFold(3), **options)

    def test_thirteen_fits_are_charged_thirteen_times(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=2.0)
        search = self.grid(ledger).fit(X, Y)
        assert charged(ledger) == [0.1] * 13
        assert Fraction(ledger.budget.total.epsilon) >= 13 * Fraction(0.1)
        assert search.best_estimator_.release_.id == ledger.budget.entries[-1].id
        assert len({entry.release_id for entry in ledger.budget.entries}) == 13

    def test_without_a_ledger_only_the_last_is_seen(self):
        with pytest.warns(RepeatedFitsWarning, match=r"up to epsilon = 0\.1,"):
            search = self.grid(None).fit(X, Y)
        assert search.best_estimator_.release_.epsilon == 0.1  # the control: thirteen were spent

    def test_it_is_stopped_where_the_budget_ends(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=1.0)
        with pytest.raises(BudgetExceeded, match=r"has 0\.09999 of 1 left"):
            self.grid(ledger, error_score="raise").fit(X, Y)
        assert charged(ledger) == [0.1] * 9  # ten times the float 0.1 is more than 1

    def test_nor_does_a_search_that_goes_on_after_errors_overspend(self, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=1.0)
        with (
            pytest.warns(FitFailedWarning, match="3 fits failed"),
            pytest.warns(UserWarning, match="non-finite"),
            pytest.raises(BudgetExceeded),  # by the fit with the best, which is nobody's to catch
        ):
            self.grid(ledger).fit(X, Y)
        assert charged(ledger) == [0.1] * 9

    def test_over_several_threads(self, tmp_path):
        from joblib import parallel_config

        ledger = Ledger.create(tmp_path / "ledger.db", "survey", cap=1.0)
        with parallel_config("threading", n_jobs=3), pytest.raises(BudgetExceeded):
            self.grid(ledger, error_score="raise").fit(X, Y)
        assert 1 <= len(charged(ledger)) <= 9
        assert set(charged(ledger)) == {0.1}


def moved(split, row: int) -> int:
    """Return how many other rows change folds when the label of one row is replaced."""
    labels = np.array([0, 1] * 10)
    replaced = labels.copy()
    replaced[row] = 1 - labels[row]
    folds = np.zeros((2, len(labels)))
    for which, y in enumerate((labels, replaced)):
        for fold, (_, test) in enumerate(split.split(y, y)):
            folds[which, test] = fold
    return int(np.sum(np.delete(folds[0] != folds[1], row)))


def test_stratified_folds_depend_on_single_labels():
    """Why ``docs/ledger.md`` asks for KFold: between neighbours, what is fitted to then differs in one row at most."""
    assert max(moved(StratifiedKFold(3), row) for row in range(20)) == 4
    assert max(moved(KFold(3), row) for row in range(20)) == 0


def test_a_reservation_by_hand_is_settled_by_hand(ledger):
    """As for searches that take no ledger."""
    reservation = ledger.reserve(1.0)
    assert only_entry(ledger).held
    reservation.settle(Account("by hand", worst_case=1.0, secure=True, test=0.25).refused())
    assert charged(ledger) == [0.25]


def test_a_delta_is_refused_before_it_spends(ledger):
    """An ε at a δ is no pure loss: neither a fit nor a release made elsewhere is charged as one."""
    with pytest.raises(LedgerRefused, match="is pure, and this search holds but for"):
        AccuracyFirstModel(SCHEMA, ErrorRate(0.3), delta=1e-6, ledger=ledger).fit(TABLE)
    assert charged(ledger) == []
    release = AccuracyFirstModel(SCHEMA, ErrorRate(0.3), delta=1e-6).fit(TABLE).release_
    with pytest.raises(LedgerRefused, match="is pure, and this search holds but for"):
        ledger.book(release)
    assert charged(ledger) == []
