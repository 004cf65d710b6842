"""What a search books becomes its release; a search that does not end is charged the worst case."""

from __future__ import annotations

import math
import pickle

import pytest

from expost import AccuracyNotReached, Release, SearchInterrupted
from expost.privacy import add_losses
from expost.privacy.account import Account, Spending

PRIVATE = "a row of somebody's"


def booked(**changes) -> Account:
    settings = {"worst_case": 2.0, "secure": True, "probe": 0.125, "test": 0.25, "generation": 0.5}
    return Account("by hand", **{**settings, **changes})


def test_a_release_reports_what_was_booked():
    account = booked(reasons=["first", "second"])
    release = account.released([1.0, 2.0], level=3, n_levels=8, parameters={"loss": "squared"})
    assert (release.status, release.method, release.secure) == ("released", "by hand", True)
    assert (release.epsilon_probe, release.epsilon_test, release.epsilon_generation) == (0.125, 0.25, 0.5)
    assert release.epsilon == account.total == 0.875
    assert release.epsilon_worst_case == 2.0
    assert release.hypothesis == (1.0, 2.0)
    assert (release.level, release.n_levels) == (3, 8)
    assert release.parameters == {"loss": "squared", "reasons": ("first", "second")}
    assert "reasons" not in booked().released([1.0]).parameters


def test_a_refusal_costs_the_same_and_carries_no_hypothesis():
    refusal = booked().refused(n_levels=8)
    assert (refusal.status, refusal.hypothesis, refusal.epsilon) == ("refused", None, 0.875)


def test_more_than_the_worst_case_is_noticed():
    with pytest.raises(ValueError, match="cannot have a worst case"):
        booked(generation=1.75).released([1.0])


def test_what_will_have_been_spent_is_rounded_as_it_will_be():
    account = booked(probe=0.1, test=0.2, generation=0.3)
    after = account.after(0.7)
    account.generation = add_losses(account.generation, 0.7)
    assert after == account.total == account.released([0.0]).epsilon


@pytest.mark.parametrize("status", ["released", "refused"])
def test_an_inner_search_is_added_to_what_came_before(status):
    inner = booked(worst_case=1.0, reasons=["inner"], probe=0.0)
    outcome = inner.released([3.0], level=1, n_levels=4, noise="over the reals", calibration="tight")
    if status == "refused":
        outcome = inner.refused(n_levels=4, noise="over the reals", calibration="tight")
    account = booked(worst_case=4.0, test=0.0, generation=0.0, reasons=["outer"])
    release = account.conclude(outcome)
    assert release.status == status
    assert (release.epsilon_probe, release.epsilon_test, release.epsilon_generation) == (0.125, 0.25, 0.5)
    assert release.epsilon_worst_case == 4.0
    assert release.parameters["reasons"] == ("outer", "inner")
    for name in ("hypothesis", "level", "n_levels", "noise", "calibration"):
        assert getattr(release, name) == getattr(outcome, name)


@pytest.mark.parametrize("worst_case", [2.0, math.inf])
def test_an_interruption_is_charged_the_worst_case_whatever_was_booked(worst_case):
    release = booked(worst_case=worst_case, reasons=["so far"]).interrupted()
    assert release.status == "refused"
    assert release.epsilon == release.epsilon_worst_case == worst_case
    assert release.parameters["reasons"][0] == "so far"
    assert "did not come to its end" in release.parameters["reasons"][1]
    assert Release.from_json(release.to_json()) == release


def fail(held, error):
    with Spending() as spending:
        spending.release = held
        raise error


class TestSpending:
    def test_nothing_happens_where_nothing_is_raised(self):
        with Spending() as spending:
            spending.release = booked().interrupted()
        assert spending.release.epsilon == 2.0

    @pytest.mark.parametrize("error", [ValueError(PRIVATE), KeyboardInterrupt(), SystemExit(4)])
    def test_before_anything_is_spent_errors_pass_as_they_are(self, error):
        with pytest.raises(type(error)) as caught, Spending():
            raise error
        assert caught.value is error

    @pytest.mark.parametrize("error", [ValueError(PRIVATE), KeyboardInterrupt(), SystemExit(4), MemoryError(PRIVATE)])
    def test_after_that_they_carry_the_cost_and_no_text(self, error):
        held = booked().interrupted()
        with pytest.raises(SearchInterrupted) as caught:
            fail(held, error)
        interruption = caught.value
        assert interruption.release is held
        assert interruption.by == type(error).__name__
        assert "epsilon = 2 has to be counted as spent" in str(interruption)
        assert PRIVATE not in str(interruption)
        assert interruption.__cause__ is None
        assert interruption.__suppress_context__

    @pytest.mark.parametrize(
        "error", [AccuracyNotReached(booked().refused()), SearchInterrupted(booked().interrupted(), "MemoryError")]
    )
    def test_what_carries_a_release_keeps_it(self, error):
        with pytest.raises(type(error)) as caught:
            fail(booked(worst_case=9.0).interrupted(), error)
        assert caught.value is error


def test_an_interruption_survives_pickling():
    again = pickle.loads(pickle.dumps(SearchInterrupted(booked().interrupted(), "KeyboardInterrupt")))
    assert again.by == "KeyboardInterrupt"
    assert again.release == booked().interrupted()
    assert str(again) == str(SearchInterrupted(booked().interrupted(), "KeyboardInterrupt"))
