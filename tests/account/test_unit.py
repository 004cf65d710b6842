"""What a unit of several rows charges: never below the product, never above the budget."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from expost.account.account import Account
from expost.account.composition import ROW, Unit
from expost.release import NEIGHBOURS

UNITS = [Unit(k, 100, "id") for k in (1, 2, 3, 5, 7, 1000, 2**40 + 1)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.rows))
def test_charges_are_rounded_up_and_only_just(unit):
    for loss in np.random.default_rng(0).lognormal(0, 5, 300).tolist():
        exact = unit.rows * Fraction(loss)
        assert exact <= Fraction(unit.charge(loss)) <= exact * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit.rows))
def test_no_outcome_exceeds_its_worst_case_or_the_budget(unit):
    """All of the budget spent in three parts, whose charges are rounded one by one."""
    rng = np.random.default_rng(1)
    for budget in rng.lognormal(0, 3, 200).tolist():
        most = unit.share(budget)
        account = Account("by hand", most, secure=False, unit=unit)
        account.probe, account.test = 0.3 * most * rng.random(), 0.3 * most * rng.random()
        account.generation = most - account.probe - account.test
        while account.total > most:
            account.generation = math.nextafter(account.generation, 0.0)
        release = account.released([0.0])
        assert release.epsilon <= release.epsilon_worst_case <= budget
        assert Fraction(release.epsilon) >= unit.rows * sum(
            map(Fraction, (account.probe, account.test, account.generation))
        )
        assert account.interrupted().epsilon <= budget


def test_infinities_stay():
    assert UNITS[2].charge(math.inf) == UNITS[2].worst_case(math.inf) == math.inf
    assert UNITS[-1].charge(1e308) == math.inf
    assert UNITS[2].charge(0.0) == 0.0


def test_rows_are_charged_as_they_were():
    assert ROW.neighbours == NEIGHBOURS
    assert (ROW.charge(0.1), ROW.worst_case(0.1), ROW.share(0.1), ROW.described) == (0.1, 0.1, 0.1, {})
    assert "persons is public" in UNITS[0].neighbours
