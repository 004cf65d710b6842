"""Accounts: what was booked becomes a release, and whatever is raised after noise was drawn carries one."""

from __future__ import annotations

import contextlib
import math
import pickle
import traceback
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from expost.account.account import Account, Spending, unspent
from expost.account.composition import add_losses
from expost.exceptions import AccuracyNotReached, SearchInterrupted, TargetUnreachable
from expost.release.release import Promise, Release

LOSSES = st.floats(0, 10)


@contextlib.contextmanager
def guarded():
    """Guard what is in a ``with`` block, as :meth:`Spending.guard` guards a function."""
    spending = Spending()
    try:
        yield spending
    except BaseException as error:
        raised = error

        def again(_):
            raise raised

        spending.guard(again)


def account(**booked) -> Account:
    return Account("by hand", worst_case=100.0, secure=False, **booked)


class TestBooking:
    @given(LOSSES, LOSSES, LOSSES, LOSSES)
    def test_no_total_is_below_its_parts(self, probe, test, generation, more):
        booked = account(probe=probe, test=test, generation=generation)
        exact = Fraction(probe) + Fraction(test) + Fraction(generation)
        assert Fraction(booked.total) >= exact
        assert Fraction(booked.after(more)) >= exact + Fraction(more)

    @given(LOSSES, LOSSES, LOSSES, LOSSES)
    def test_after_is_rounded_as_it_will_be(self, probe, test, generation, more):
        booked = account(probe=probe, test=test, generation=generation)
        expected = booked.after(more)
        booked.generation = add_losses(booked.generation, more)
        assert booked.total == expected == booked.released(1.0).epsilon

    def test_a_release_says_what_was_booked(self):
        booked = account(probe=0.25, test=0.5, generation=1.0, reasons=["first", "then"])
        released = booked.released([1.0, 2.0], level=3, n_levels=5, parameters={"n": 7})
        assert (released.status, released.hypothesis) == ("released", (1.0, 2.0))
        parts = (released.epsilon_probe, released.epsilon_test, released.epsilon_generation)
        assert parts == (0.25, 0.5, 1.0)
        assert (released.method, released.epsilon_worst_case, released.secure) == ("by hand", 100.0, False)
        assert (released.level, released.n_levels) == (3, 5)
        assert dict(released.parameters) == {"n": 7, "reasons": ("first", "then")}

    def test_a_refusal_is_a_release_without_a_hypothesis(self):
        refused = account(test=0.5).refused(n_levels=5)
        assert isinstance(refused, Release)
        assert (refused.status, refused.hypothesis, refused.epsilon, refused.n_levels) == ("refused", None, 0.5, 5)
        assert "reasons" not in refused.parameters

    def test_more_than_the_worst_case_is_never_reported(self):
        booked = Account("by hand", worst_case=1.0, secure=True, test=0.5, generation=0.6)
        for leave in (lambda: booked.released(0.0), booked.refused):
            with pytest.raises(ValueError, match="worst case"):
                leave()

    def test_secure_noise_is_owned_up_to(self):
        assert Account("by hand", 1.0, secure=True).refused().secure
        assert Account("by hand", 1.0, secure=True).interrupted().secure


class TestInterrupted:
    def test_it_charges_what_the_dearest_outcome_costs(self):
        """Where a search stopped may depend on the rows: what was booked so far would not do."""
        for booked in (account(), account(probe=1.0, test=2.0, generation=3.0)):
            held = booked.interrupted()
            assert held.epsilon == held.epsilon_worst_case == 100.0
            assert (held.status, held.hypothesis) == ("refused", None)

    def test_it_fits_beside_what_was_booked(self):
        """The three parts do not add up beyond the worst case, though parts were booked that would."""
        held = account(probe=99.0, test=1.0).interrupted()
        assert (held.epsilon_generation, held.epsilon_test, held.epsilon_probe) == (100.0, 0.0, 0.0)

    def test_without_a_bound_it_is_infinite(self):
        held = Account("relative", math.inf, secure=True).interrupted()
        assert math.isinf(held.epsilon)
        assert Release.from_json(held.to_json()) == held

    def test_it_says_why_and_changes_nothing(self):
        booked = account(test=0.5, reasons=["first"])
        reasons = booked.interrupted().parameters["reasons"]
        assert reasons[0] == "first"
        assert "did not come to its end" in reasons[1]
        assert (booked.reasons, booked.total) == (["first"], 0.5)
        assert booked.released(0.0).parameters["reasons"] == ("first",)


class TestConclude:
    def inner(self, status="released", **details):
        found = Account("inner", worst_case=50.0, secure=False, probe=0.1, test=0.2, generation=0.4, reasons=["found"])
        kept = {"level": 2, "n_levels": 9, "noise": "over the reals", "calibration": "tight", "claims": ("a claim",)}
        return found.released([1.0], **kept) if status == "released" else found.refused(**kept)

    def test_losses_and_reasons_add_up(self):
        booked = account(probe=1.0, test=2.0, generation=4.0, reasons=["probed"])
        joined = booked.conclude(self.inner(), promise=Promise("reduced", excess_risk=0.3))
        assert joined.epsilon_probe == add_losses(0.1, 1.0)
        assert joined.epsilon_test == add_losses(0.2, 2.0)
        assert joined.epsilon_generation == add_losses(0.4, 4.0)
        assert Fraction(joined.epsilon) >= sum(map(Fraction, (0.1, 0.2, 0.4, 1.0, 2.0, 4.0)))
        assert joined.parameters["reasons"] == ("probed", "found")
        assert joined.promise.excess_risk == 0.3

    def test_what_the_inner_search_says_is_kept(self):
        joined, inner = account().conclude(self.inner()), self.inner()
        for name in ("status", "hypothesis", "level", "n_levels", "noise", "calibration", "claims"):
            assert getattr(joined, name) == getattr(inner, name)

    def test_method_and_bound_are_the_outer_ones(self):
        joined = account().conclude(self.inner())
        assert (joined.method, joined.epsilon_worst_case, joined.secure) == ("by hand", 100.0, False)

    def test_a_refusal_stays_one(self):
        joined = account(probe=1.0).conclude(self.inner("refused"))
        assert (joined.status, joined.hypothesis) == ("refused", None)
        assert joined.epsilon >= 1.7

    def test_more_than_the_outer_bound_is_refused(self):
        with pytest.raises(ValueError, match="worst case"):
            Account("by hand", worst_case=0.5, secure=True).conclude(self.inner())


SECRET = "row 17 has an income of 123456"


def spend(error: BaseException, worst_case: float = 0.5, outcome: Release | None = None) -> None:
    with guarded() as spending:
        spending.release = Account("by hand", worst_case, secure=False).interrupted()
        if outcome is not None:
            spending.release = outcome
        raise error


class TestSpending:
    def test_nothing_is_spent_at_first(self):
        with guarded() as spending:
            assert spending.release is None

    @pytest.mark.parametrize(
        "error", [ValueError("n_levels"), TargetUnreachable("rows"), KeyError("x"), KeyboardInterrupt()], ids=repr
    )
    def test_before_anything_is_spent_exceptions_pass(self, error):
        with pytest.raises(type(error)) as raised, guarded():
            raise error
        assert raised.value is error

    @pytest.mark.parametrize("kind", [AccuracyNotReached, SearchInterrupted])
    def test_those_that_carry_a_release_pass(self, kind):
        release = account(test=0.25).refused()
        error = kind(release) if kind is AccuracyNotReached else kind(release, "KeyError")
        with pytest.raises(kind) as raised:
            spend(error)
        assert raised.value is error
        assert raised.value.release.epsilon == 0.25

    @pytest.mark.parametrize(
        "error",
        [ValueError(SECRET), TargetUnreachable(SECRET), KeyError(SECRET), KeyboardInterrupt(SECRET), MemoryError()],
        ids=lambda error: type(error).__name__,
    )
    def test_others_are_replaced(self, error):
        with pytest.raises(SearchInterrupted) as raised:
            spend(error)
        assert raised.value.release.epsilon == raised.value.release.epsilon_worst_case == 0.5
        assert raised.value.by == type(error).__name__
        assert type(error).__name__ in str(raised.value)
        assert "epsilon = 0.5" in str(raised.value)

    def test_nothing_is_quoted(self):
        """Not in the message, the release or what is printed of it; and not after pickling."""

        def work(spending):
            spending.release = Account("by hand", worst_case=0.5, secure=False).interrupted()
            raise KeyError(SECRET)

        with pytest.raises(SearchInterrupted) as raised:
            Spending().guard(work)
        error = raised.value
        assert error.__context__ is None  # nor reachable by whoever logs exceptions
        assert error.__cause__ is None
        printed = "".join(traceback.format_exception(error))
        again = pickle.loads(pickle.dumps(error))
        for text in (str(error), repr(error), printed, error.release.to_json(), repr(again), str(again)):
            assert "123456" not in text

    def test_it_survives_pickling(self):
        with pytest.raises(SearchInterrupted) as raised:
            spend(KeyError(SECRET))
        again = pickle.loads(pickle.dumps(raised.value))
        assert (again.release, again.by, str(again)) == (raised.value.release, "KeyError", str(raised.value))

    def test_after_the_outcome_is_known_that_is_what_is_charged(self):
        """An error between the search and the caller: the outcome is lost, and what it cost is not."""
        with pytest.raises(SearchInterrupted) as raised:
            spend(ZeroDivisionError(), outcome=account(test=0.25).released([1.0]))
        assert raised.value.release.epsilon == 0.25

    def test_a_bound_of_zero_is_not_an_interruption(self):
        """A search that cannot cost anything has nothing to charge for."""
        with pytest.raises(KeyError):
            spend(KeyError("x"), worst_case=0.0)

    def test_without_an_exception_nothing_happens(self):
        with guarded() as spending:
            spending.release = account(test=0.25).released([1.0])
        assert spending.release.epsilon == 0.25


def test_an_error_after_a_search_does_not_say_that_nothing_was_spent():
    """At a door, where the guard is passed; what comes before a search, or after another one, still says so."""

    def search(spending):
        spending.release = Account("by hand", 0.5, False).interrupted()

    for drawn in (False, True, False):
        with pytest.raises(KeyError) as raised, unspent():  # noqa: PT012
            if drawn:
                Spending().guard(search)
            raise KeyError("a name")
        assert ("Nothing was spent" in getattr(raised.value, "__notes__", ())) is not drawn
