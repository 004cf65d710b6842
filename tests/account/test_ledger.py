"""A ledger by hand: what is reserved, settled, refused, booked and decided."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import sqlite3
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from expost import Ledger
from expost.account import ledger_file as store
from expost.account.events import Process
from expost.exceptions import BudgetExceeded, LedgerRefused, LedgerUnavailable
from tests.account.ledger_helpers import charged, new_ledger, released


class TestReserving:
    def test_a_lucky_search_leaves_more_for_the_next(self, tmp_path):
        ledger = new_ledger(tmp_path)
        reservation = ledger.reserve(1.5)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(1.0)
        reservation.settle(released(0.25, 1.5))
        ledger.reserve(1.0)
        assert charged(ledger) == [0.25, 1.0]
        assert [entry.held for entry in ledger.budget.entries] == [False, True]

    def test_the_refusal_says_what_is_left_and_what_to_pass(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.book(released(0.9))
        ledger.reserve(0.5)
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.reserve(0.75)
        assert str(refusal.value) == (
            "data set 'survey' has 0.6 of 2 left (0.5 held for searches not settled), and this search may cost up to "
            "0.75. Pass max_epsilon=0.6, or when_short='lower' to have it lowered. Nothing was spent"
        )
        assert refusal.value.remaining == ledger.budget.remaining.epsilon
        ledger.reserve(refusal.value.remaining)  # fits to the last bit
        assert pickle.loads(pickle.dumps(refusal.value)).remaining == refusal.value.remaining

    def test_infinity_cannot_be_reserved(self, tmp_path):
        with pytest.raises(LedgerRefused, match="infinity cannot be reserved; pass max_epsilon=2 or less"):
            new_ledger(tmp_path).reserve(math.inf)

    def test_a_simulation_is_refused(self, tmp_path):
        ledger = new_ledger(tmp_path)
        for attempt in (lambda: ledger.reserve(1.0, secure=False), lambda: ledger.book(released(1.0, secure=False))):
            with pytest.raises(LedgerRefused, match="seeded noise protects nobody"):
                attempt()
        assert charged(ledger) == []

    def test_another_unit_is_refused(self, tmp_path):
        ledger = new_ledger(tmp_path, unit="one household replaced")
        with pytest.raises(LedgerRefused, match="is about 'one household replaced', this search about 'one row"):
            ledger.reserve(1.0)
        with pytest.raises(LedgerRefused, match="is about 'one household replaced'"):
            ledger.book(released(0.5))
        ledger.reserve(1.0, unit="one household replaced")
        assert charged(ledger) == [1.0]

    def test_lowering(self, tmp_path):
        ledger = new_ledger(tmp_path)
        lowering = Ledger(ledger.path, "survey", when_short="lower")
        ledger.book(released(1.5))
        assert [ledger.ceiling(most) for most in (None, 1.0, 0.1)] == [None, 1.0, 0.1]
        assert [lowering.ceiling(most) for most in (None, 1.0, 0.1)] == [0.5, 0.5, 0.1]
        ledger.book(released(0.5))
        with pytest.raises(BudgetExceeded, match=r"has 0 of 2 left\. Nothing was spent"):
            lowering.ceiling(1.0)

    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from("srgdc")), max_size=10))
    def test_the_exact_sum_stays_below_the_cap(self, tmp_path_factory, steps):
        """Whatever is reserved, settled, returned, decided or left standing; against rational arithmetic."""
        ledger = new_ledger(tmp_path_factory.mktemp("ledger"))
        expected: list[Fraction] = []
        for worst, part, how in steps:
            fits = sum(expected, Fraction(worst)) <= 2
            if not fits:
                with pytest.raises(BudgetExceeded):
                    ledger.reserve(worst)
                continue
            reservation = ledger.reserve(worst)
            loss = 0.0 if how == "g" else worst if how == "c" else part * worst
            if how in "sr":
                reservation.settle(released(loss, worst))
            elif how == "g":
                reservation.give_back("ValueError")
            elif how == "d":
                loss = worst  # this process is alive, and may be charged the worst case only
                ledger.decide(reservation.id, None, reason="by lot")
            expected.append(Fraction(loss))
            assert sum(map(Fraction, charged(ledger))) == sum(expected) <= 2
            assert Fraction(ledger.budget.total.epsilon) >= sum(expected)


class TestSettling:
    def test_twice_is_as_good_as_once(self, tmp_path):
        ledger, release = new_ledger(tmp_path), released(0.25, 1.0)
        reservation = ledger.reserve(1.0)
        for _ in range(3):
            reservation.settle(release)
        assert charged(ledger) == [0.25]

    def test_a_search_has_one_outcome(self, tmp_path):
        ledger = new_ledger(tmp_path)
        reservation = ledger.reserve(1.0)
        reservation.settle(released(0.25, 1.0))
        with pytest.raises(ValueError, match="is settled already, by another release"):
            reservation.settle(released(0.1, 1.0))
        assert charged(ledger) == [0.25]

    def test_a_release_has_one_search(self, tmp_path):
        ledger, release = new_ledger(tmp_path), released(0.25, 1.0)
        ledger.reserve(1.0).settle(release)
        other = ledger.reserve(1.0)
        with pytest.raises(ValueError, match="is booked already, for another search"):
            other.settle(release)
        assert charged(ledger) == [0.25, 1.0]

    def test_more_than_was_held_is_booked_and_complained_about(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with pytest.raises(ValueError, match=r"cost 0\.75, more than the 0\.5 held; it is booked"):
            ledger.reserve(0.5).settle(released(0.75))
        assert charged(ledger) == [0.75]

    def test_a_simulation_settles_nothing(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with pytest.raises(LedgerRefused, match="simulation"):
            ledger.reserve(1.0).settle(released(0.25, 1.0, secure=False))
        assert charged(ledger) == [1.0]

    def test_what_was_returned_costs_nothing(self, tmp_path):
        ledger = new_ledger(tmp_path)
        reservation = ledger.reserve(1.0)
        reservation.give_back("MemoryError")
        reservation.give_back("MemoryError")
        assert charged(ledger) == [0.0]
        reservation.settle(released(0.25, 1.0))  # which cannot be, but if it is it costs
        assert charged(ledger) == [0.25]


class TestBooking:
    def test_the_same_release_is_never_charged_twice(self, tmp_path):
        ledger, release = new_ledger(tmp_path), released(0.25)
        first = ledger.book(release, reason="made before there was a ledger")
        again = ledger.book(type(release).from_json(release.to_json()))
        assert first == again
        assert charged(ledger) == [0.25]
        reservation = ledger.reserve(1.0)
        settled = released(0.5, 1.0)
        reservation.settle(settled)
        ledger.book(settled)
        assert charged(ledger) == [0.25, 0.5]

    def test_two_data_sets_may_be_charged_for_one_release(self, tmp_path):
        release = released(0.25)
        ledgers = [Ledger.create(tmp_path / "ledger.db", name, cap=1.0) for name in ("clinic", "register")]
        for ledger in ledgers:
            ledger.book(release)
        assert [charged(ledger) for ledger in ledgers] == [[0.25], [0.25]]

    def test_a_release_that_goes_on_from_another_costs_what_it_adds(self, tmp_path):
        first = released(0.5)
        later = released(0.75).with_details(parameters={"continues": first.id, "epsilon_increment": 0.25})
        ledger = new_ledger(tmp_path)
        ledger.book(first)
        ledger.reserve(0.3).settle(later)
        assert charged(ledger) == [0.5, 0.25]
        alone = Ledger.create(ledger.path, "without the first", cap=2.0)
        alone.book(later)
        assert charged(alone) == [0.75]

    def test_one_that_says_it_adds_too_little_is_charged_in_full(self, tmp_path):
        first = released(0.5)
        edited = released(0.75).with_details(parameters={"continues": first.id, "epsilon_increment": 0.125})
        ledger = new_ledger(tmp_path)
        ledger.book(first)
        ledger.book(edited)
        assert charged(ledger) == [0.5, 0.75]

    def test_an_id_stands_for_one_release(self, tmp_path):
        """A copy that says more than what was booked is not taken for it."""
        ledger, release = new_ledger(tmp_path), released(0.5, 1.0)
        edited = dataclasses.replace(release, epsilon_generation=0.125)
        ledger.book(edited)
        with pytest.raises(ValueError, match=r"0\.125 is charged for it; this one says 0\.5, so it is not the same"):
            ledger.book(release)
        reservation = ledger.reserve(1.0)
        other = released(0.25, 1.0)
        reservation.settle(other)
        with pytest.raises(ValueError, match=r"0\.25 is charged for it; this one says 0\.75"):
            reservation.settle(dataclasses.replace(other, epsilon_generation=0.75))

    @pytest.mark.parametrize("delta", [-1e-6, 1.0, math.nan])
    def test_what_is_no_delta(self, tmp_path, delta):
        with pytest.raises(ValueError, match="delta must be"):
            new_ledger(tmp_path, cap=2.0, delta=1e-6).reserve(0.1, delta=delta)

    def test_what_is_spent_is_spent(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.book(released(3.0))
        budget = ledger.budget
        assert (budget.total.epsilon, budget.remaining.epsilon) == (3.0, 0.0)
        with pytest.raises(BudgetExceeded, match="has 0 of 2 left"):
            ledger.reserve(0.1)


class TestDeciding:
    def left_standing(self, tmp_path, worst_case=1.0):
        """Return a ledger with a reservation whose process is over."""
        ledger = new_ledger(tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Process, "this", classmethod(lambda cls: cls("elsewhere", 1, "long ago")))
            return ledger, ledger.reserve(worst_case)

    @pytest.mark.parametrize(("loss", "expected"), [(None, 1.0), (0.0, 0.0), (0.25, 0.25), (1.0, 1.0)])
    def test_a_decision_is_recorded_with_its_reason(self, tmp_path, loss, expected):
        ledger, reservation = self.left_standing(tmp_path)
        entry = ledger.decide(reservation.id[:6], loss, reason="  power cut  ")
        assert (entry.loss.epsilon, entry.held) == (expected, False)
        assert [event.kind for event in entry.events] == ["reserved", "decided"]
        assert entry.events[-1].reason == "power cut"
        assert entry.events[-1].by
        with pytest.raises(ValueError, match="is settled"):
            ledger.decide(reservation.id, 0.0, reason="again")

    def test_by_the_release_that_was_found(self, tmp_path):
        ledger, reservation = self.left_standing(tmp_path)
        release = released(0.25, 1.0)
        assert ledger.decide(reservation.id, release, reason="found it").loss.epsilon == 0.25
        ledger.book(release)
        reservation.settle(release)
        assert charged(ledger) == [0.25]

    @pytest.mark.parametrize("reason", ["", "   ", None])
    def test_no_decision_without_a_reason(self, tmp_path, reason):
        ledger, reservation = self.left_standing(tmp_path)
        with pytest.raises(ValueError, match="reason must say why"):
            ledger.decide(reservation.id, 0.0, reason=reason)
        assert charged(ledger) == [1.0]

    @pytest.mark.parametrize(("loss", "words"), [(1.5, "could cost more than what is held, 1"), (-1, "not negative")])
    def test_what_cannot_be_charged(self, tmp_path, loss, words):
        ledger, reservation = self.left_standing(tmp_path)
        with pytest.raises(ValueError, match=words):
            ledger.decide(reservation.id, loss, reason="why not")
        assert charged(ledger) == [1.0]

    def test_a_search_that_runs_is_charged_in_full_or_not_decided(self, tmp_path):
        ledger = new_ledger(tmp_path)
        reservation = ledger.reserve(1.0)
        with pytest.raises(ValueError, match=r"process \d+, which holds entry \w+, is still running; end it first"):
            ledger.decide(reservation.id, 0.5, reason="it hangs")
        ledger.decide(reservation.id, None, reason="it hangs")
        assert charged(ledger) == [1.0]

    @pytest.mark.parametrize(("decided", "cost", "expected"), [(0.0, 0.75, 0.75), (0.5, 0.25, 0.5)])
    def test_an_outcome_that_turns_up_later_raises_and_never_lowers(self, tmp_path, decided, cost, expected):
        ledger, reservation = self.left_standing(tmp_path)
        ledger.decide(reservation.id, decided, reason="taken for dead")
        reservation.settle(released(cost, 1.0))
        assert charged(ledger) == [expected]

    @pytest.mark.parametrize(("decided", "expected"), [(0.0, 0.75), (1.0, 1.0)])
    def test_or_is_booked_by_hand(self, tmp_path, decided, expected):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Process, "this", classmethod(lambda cls: cls("elsewhere", 1, "long ago")))
            ledger, release = new_ledger(tmp_path), released(0.75, 1.0)
            ledger.reserve(1.0, held=release)
        ledger.decide(release.id, decided, reason="taken for dead")
        for _ in range(2):
            ledger.book(release)
        assert charged(ledger) == [expected]

    def test_entries_are_named_by_how_their_ids_begin(self, tmp_path):
        ledger = new_ledger(tmp_path)
        first, second = (ledger.book(released(0.1)).id for _ in range(2))
        assert ledger.budget.entry(first).id == first
        with pytest.raises(ValueError, match="no entry of data set 'survey'"):
            ledger.budget.entry("xyz")
        with pytest.raises(ValueError, match="no entry of data set"):
            ledger.budget.entry("")
        common = next((d for d in "0123456789abcdef" if first[0] == second[0] == d), None)
        if common:
            with pytest.raises(ValueError, match="2 entries"):
                ledger.budget.entry(common)


class TestTheFile:
    def test_a_budget_is_stated_once(self, tmp_path):
        new_ledger(tmp_path)
        with pytest.raises(ValueError, match="'survey' already, whose cap is 2; a budget is stated once"):
            new_ledger(tmp_path, cap=5.0)

    @pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan, "2", True])
    def test_what_is_no_cap(self, tmp_path, cap):
        with pytest.raises(ValueError, match="cap must be a positive finite number"):
            new_ledger(tmp_path, cap=cap)
        assert not list(tmp_path.iterdir())

    def test_nothing_is_made_by_using_it(self, tmp_path):
        ledger = Ledger(tmp_path / "none.db", "survey")
        for use in (lambda: ledger.budget, lambda: ledger.reserve(1.0), lambda: Ledger.datasets(ledger.path)):
            with pytest.raises(ValueError, match="there is no ledger"):
                use()
        assert not list(tmp_path.iterdir())

    def test_a_data_set_that_is_not_there(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with pytest.raises(ValueError, match="has no data set 'census'; it has 'survey'"):
            Ledger(ledger.path, "census").reserve(1.0)

    def test_files_of_others_are_left_alone(self, tmp_path):
        text, other = tmp_path / "notes.txt", tmp_path / "other.db"
        text.write_text("a" * 5000)
        with sqlite3.connect(other) as connection:
            connection.execute("CREATE TABLE patients (name TEXT)")
        connection.close()
        for path in (text, other):
            before = path.read_bytes()
            with pytest.raises(ValueError, match="is no ledger of expost"):
                Ledger.create(path, "survey", cap=1.0)
            with pytest.raises(ValueError, match="is no ledger of expost"):
                Ledger(path, "survey").reserve(1.0)
            assert path.read_bytes() == before

    def test_nothing_can_be_changed_or_deleted(self, tmp_path):
        ledger = new_ledger(tmp_path)
        ledger.reserve(1.0)
        connection = sqlite3.connect(ledger.path)
        for statement in (
            "UPDATE events SET loss = '0'",
            "DELETE FROM events",
            "UPDATE datasets SET cap = '9'",
            "DELETE FROM datasets",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="kept for ever"):
                connection.execute(statement)
        connection.close()

    def test_it_is_durable(self, tmp_path):
        ledger = new_ledger(tmp_path)
        with store.Store(ledger.path)._connection("rw") as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (3,)

    def test_a_ledger_that_is_locked_is_an_error_of_the_file(self, tmp_path, monkeypatch):
        ledger = new_ledger(tmp_path)
        monkeypatch.setattr(store, "PATIENCE", 0.01)
        blocker = sqlite3.connect(ledger.path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="cannot be used: database is locked"):
            ledger.reserve(1.0)
        assert ledger.budget.remaining.epsilon == 2.0  # reading goes on
        blocker.close()

    def test_copies_mean_the_same_file(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Ledger.create("ledger.db", "survey", cap=2.0)
        ledger = Ledger("ledger.db", "survey")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        for same in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
            assert same == ledger
            same.reserve(0.5)
        assert charged(ledger) == [0.5, 0.5]

    def test_what_is_no_ledger(self, tmp_path):
        with pytest.raises(ValueError, match="dataset must be the name"):
            Ledger(tmp_path / "ledger.db", "")
        with pytest.raises(ValueError, match="when_short must be"):
            Ledger(tmp_path / "ledger.db", "survey", when_short="shrug")
        with pytest.raises(ValueError, match="unit must say in words"):
            new_ledger(tmp_path, unit=" ")
        with pytest.raises(ValueError, match="does not exist"):
            Ledger.create(tmp_path / "none" / "ledger.db", "survey", cap=1.0)
