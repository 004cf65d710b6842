"""Losses add, upwards; refusals count."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from expost import Release, compose
from expost.account.composition import add_losses

losses = st.floats(0, 1e12)


@given(st.lists(losses, max_size=20))
def test_the_sum_is_rounded_up_and_not_further(values):
    exact, total = sum(map(Fraction, values), Fraction(0)), add_losses(*values)
    assert Fraction(total) >= exact
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact


@given(st.lists(losses, min_size=1, max_size=8), st.integers(0, 7), losses)
def test_more_never_costs_less(values, index, more):
    larger = list(values)
    larger[index % len(values)] += more
    assert add_losses(*larger) >= add_losses(*values)


@pytest.mark.parametrize("values", [(0.1, 0.2), (1e16, 1.0), (1.0, 2.0**-60), (0.1,) * 10])
def test_where_plain_addition_falls_short_or_rounds(values):
    assert Fraction(add_losses(*values)) >= sum(map(Fraction, values))


def test_nothing_and_infinity():
    assert add_losses() == 0.0
    assert add_losses(1.0, math.inf) == math.inf


@given(
    st.lists(
        st.tuples(st.sampled_from(["released", "refused"]), losses, losses, losses, st.booleans()),
        max_size=8,
    )
)
def test_compose_adds(parts):
    releases = [
        Release(
            status=status,
            method="m",
            epsilon_generation=a,
            epsilon_test=b,
            epsilon_worst_case=math.inf if uncapped else add_losses(a, b, more),
        )
        for status, a, b, more, uncapped in parts
    ]
    together = compose(releases)
    assert together.count == len(releases)
    assert Fraction(together.epsilon) >= sum((Fraction(a) + Fraction(b) for _, a, b, _, _ in parts), Fraction(0))
    assert together.epsilon == pytest.approx(sum(release.epsilon for release in releases))
    assert together.epsilon_worst_case >= together.epsilon
    assert math.isinf(together.epsilon_worst_case) == any(uncapped for *_, uncapped in parts)
    assert together.risk_factor == (math.inf if together.epsilon > 709.8 else pytest.approx(math.exp(together.epsilon)))


def test_order_and_grouping_do_not_matter_but_for_the_last_bit():
    releases = [Release(status="released", method="m", epsilon_generation=x) for x in (0.1, 0.7, 0.2, 1e-17)]
    assert compose(releases).epsilon == compose(reversed(releases)).epsilon


def test_a_release_that_says_it_adds_too_little_counts_in_full():
    """As a ledger charges it: what a file says of its increment is compared with the release it goes on from."""
    first = Release(status="released", method="m", epsilon_generation=0.5)
    adds = {"continues": first.id, "epsilon_increment": 1.0}
    honest = Release(status="released", method="m", epsilon_generation=1.5, parameters=adds)
    edited = dataclasses.replace(honest, parameters={**adds, "epsilon_increment": 0.0})
    assert compose([first, honest]).epsilon == 1.5
    assert compose([first, edited]).epsilon == 2.0


def test_releases_that_go_on_from_each_other_count_in_full():
    """No release was the first of them, so none is paid for by another."""

    def made(name, continues=None):
        parameters = {} if continues is None else {"continues": continues, "epsilon_increment": 0.0}
        return Release(status="released", method="m", epsilon_generation=1.0, id=name, parameters=parameters)

    assert compose([made("a", "b"), made("b", "a")]).epsilon == 2.0
    assert compose([made("a", "b"), made("b", "c"), made("c", "a"), made("d", "a")]).epsilon == 4.0
    assert compose([made("c", "b"), made("b", "a"), made("a")]).epsilon == 1.0
