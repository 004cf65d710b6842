"""A privacy loss as a value: sums never too small, what is left never too large, text that is exact."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from expost.account.loss import KINDS, PrivacyLoss, PureLoss, loss_from_json
from expost.shown import down, up

EPSILONS = st.floats(0, 1e3)
MANY = st.lists(EPSILONS, max_size=8)


def exact(epsilons) -> Fraction:
    return sum(map(Fraction, epsilons), Fraction(0))


def losses(epsilons) -> list[PureLoss]:
    return [PureLoss(epsilon) for epsilon in epsilons]


@given(MANY)
def test_a_total_is_the_exact_sum_rounded_up_once(epsilons):
    total = PureLoss.total(losses(epsilons)).epsilon
    assert Fraction(total) >= exact(epsilons)
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact(epsilons)


@given(MANY, st.floats(1e-3, 1e4))
def test_what_is_left_is_the_most_that_fits(epsilons, cap):
    left = PureLoss(cap).left(losses(epsilons)).epsilon
    if exact(epsilons) > Fraction(cap):
        assert left == 0
        return
    assert exact([*epsilons, left]) <= Fraction(cap)
    assert exact([*epsilons, math.nextafter(left, math.inf)]) > Fraction(cap)
    assert PureLoss.total([*losses(epsilons), PureLoss(left)]).within(PureLoss(cap))


@given(MANY, st.floats(1e-3, 1e4))
def test_a_cap_is_kept_exactly(epsilons, cap):
    assert PureLoss.total(losses(epsilons)).within(PureLoss(cap)) == (exact(epsilons) <= Fraction(cap))


def test_sums_in_floating_point_are_caught():
    """The broken variants: ordinary addition, and decimals read as what they say."""
    tenths = [0.1] * 10
    assert Fraction(sum(tenths)) < exact(tenths)
    assert sum(tenths) <= 1.0 and not PureLoss.total(losses(tenths)).within(PureLoss(1.0))  # noqa: PT018
    assert sum(Fraction(repr(epsilon)) for epsilon in tenths) < exact(tenths)


@given(st.floats(0, allow_nan=False))
def test_text_gives_the_same_loss(epsilon):
    loss = PureLoss(epsilon)
    again = loss_from_json(loss.to_json())
    assert again == loss
    assert json.loads(loss.to_json())["epsilon"] == epsilon.hex()


@given(st.floats(1e-9, 1e9))
def test_few_digits_err_on_the_safe_side(value):
    assert float(down(value)) <= value <= float(up(value))
    assert math.isclose(float(down(value)), float(up(value)), rel_tol=1.1e-3)


def test_infinity_is_no_bound():
    endless = PureLoss(math.inf)
    assert not endless.bounded
    assert PureLoss(1.0).bounded
    assert PureLoss(2.0).left([endless]) == PureLoss(0.0)
    assert not PureLoss.total([endless, PureLoss(1.0)]).within(PureLoss(2.0))


@pytest.mark.parametrize("wrong", [-0.5, math.nan, "1", None, True, 10**400])
def test_what_is_no_loss(wrong):
    with pytest.raises((ValueError, OverflowError), match=r"loss|large"):
        PureLoss(wrong)


@pytest.mark.parametrize(
    "wrong", ["", "1", "{}", '{"kind": "renyi"}', '{"kind": "pure"}', '{"kind": "pure", "epsilon": 1}']
)
def test_what_is_no_text_of_a_loss(wrong):
    with pytest.raises(ValueError, match="not a privacy loss of a kind known here"):
        loss_from_json(wrong)


def test_another_kind_can_join():
    """All that a ledger asks of a loss is in the protocol: here losses whose cap is kept in each of two coordinates."""

    class Pair(PrivacyLoss):
        kind = "pair"

        def __init__(self, *parts):
            self.parts = parts

        @classmethod
        def total(cls, losses):
            return cls(*(sum(column) for column in zip((0, 0), *(loss.parts for loss in losses), strict=True)))

        def within(self, cap):
            return all(part <= most for part, most in zip(self.parts, cap.parts, strict=True))

        def left(self, losses):
            total = self.total(losses)
            return Pair(*(max(most - part, 0) for part, most in zip(total.parts, self.parts, strict=True)))

        @property
        def bounded(self):
            return True

        def text(self, *, rounding="up"):
            return str(self.parts)

        def to_dict(self):
            return {"parts": self.parts}

        @classmethod
        def from_dict(cls, plain):
            return cls(*plain["parts"])

    from expost.account.events import Budget, Event

    events = (
        Event("a", "reserved", Pair(3, 1), "2026-01-01", "ada"),
        Event("b", "booked", Pair(0, 5), "2026-01-01", "ada"),
    )
    budget = Budget("survey", "one row", Pair(10, 7), "2026-01-01", "ada", events)
    assert budget.total.parts == (3, 6)
    assert budget.remaining.parts == (7, 1)
    assert budget.admits(Pair(7, 1))
    assert not budget.admits(Pair(1, 2))
    assert list(KINDS) == ["pure", "curve", "approximate"]
